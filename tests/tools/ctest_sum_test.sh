#!/usr/bin/env bash
source "$(dirname "${BASH_SOURCE[0]}")/fake_machine.sh"

# closing FILE LINE: a log of a ctest run
closing() {
  printf '1/1 Test #1: a ... Passed\n\n%s\n\nTotal Test time (real) = 0.01 sec\n' "$2" \
    >"$checkout/$1"
}
closing passed "100% tests passed, 0 tests failed out of 199"
closing failed "0% tests passed, 1 tests failed out of 1"
closing one "100% tests passed, 0 tests failed out of 1"
echo 'No tests were found!!!' >"$checkout/empty"

test_that "runs are added up"
runs 0 tools/ctest-sum passed one
last_line_is "100% tests passed, 0 tests failed out of 200"

test_that "one failure of many is never rounded to 100 %"
runs 1 tools/ctest-sum passed failed
last_line_is "99% tests passed, 1 tests failed out of 200"

test_that "a log without tests adds nothing"
runs 0 tools/ctest-sum empty one
last_line_is "100% tests passed, 0 tests failed out of 1"

test_that "no test at all is a failure"
runs 1 tools/ctest-sum empty
says "no test ran"
