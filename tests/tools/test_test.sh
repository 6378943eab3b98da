#!/usr/bin/env bash
source "$(dirname "${BASH_SOURCE[0]}")/fake_machine.sh"
fake cmake <<'F'
echo "cmake $*" >>"$machine/calls"
if [[ $1 == --list-presets ]]; then grep -o '"name": "[a-z]*"' CMakePresets.json | cut -d' ' -f2; fi
[[ ! -e $machine/cmake-fails ]]
F
# Each label in $machine/labels has 4 tests; one of them fails for a label in $machine/failing.
fake ctest <<'F'
echo "ctest $*" >>"$machine/calls"
label=$(tr -d '^$()' <<<"${@: -1}")
[[ $* != *"-LE"* ]] || label=none
count=0
for name in ${label//|/ }; do ! grep -qx "$name" "$machine/labels" || count=$((count + 4)); done
if [[ " $* " == *" -N "* ]]; then echo "Total Tests: $count"; exit; fi
((count)) || { echo 'No tests were found!!!'; exit 8; }
if grep -qx "$label" "$machine/failing"; then
  echo "75% tests passed, 1 tests failed out of $count"; exit 8
fi
echo "100% tests passed, 0 tests failed out of $count"
F
printf 'unit\nprocs\ncli\n' >"$machine/labels"
touch "$machine/failing"

test_that "the default run sums all labels and both sanitizers"
runs 0 tools/test --flavour cpu
last_line_is "100% tests passed, 0 tests failed out of 28"
called "cmake --preset asan"
called "cmake --preset tsan"

test_that "without sanitizers it has only the labels"
runs 0 tools/test --flavour cpu --no-sanitizers
last_line_is "100% tests passed, 0 tests failed out of 12"

test_that "one failing label fails the run, and the others still run"
echo unit >"$machine/failing"
runs 1 tools/test --flavour cpu --no-sanitizers
last_line_is "91% tests passed, 1 tests failed out of 12"
: >"$machine/failing"

test_that "a label that was asked for and runs nothing fails"
runs 1 tools/test --flavour cpu --label unit,image
last_line_is "100% tests passed, 0 tests failed out of 4"
runs 1 tools/test --flavour cpu --label image
says "no test ran"

test_that "another torch runs unit and procs in its own folder and keeps the result there"
runs 0 tools/test --flavour cpu --torch 2.6.0
last_line_is "100% tests passed, 0 tests failed out of 8"
[[ $(tail -n 1 "$checkout/build/dev-2.6.0/result.txt") == "${output##*$'\n'}" ]] ||
  wrong "no result.txt with the closing line"
called "cmake --preset dev -B build/dev-2.6.0 -DYOKE_TORCH_DIR=.*/.yoke/torch/2.6.0-cpu/torch"

test_that "tests for GPUs that this machine lacks are skipped with the reason"
echo gpu1 >>"$machine/labels"
runs 0 tools/test --flavour cpu --no-sanitizers
says "label gpu1: skipped; it needs 1 usable GPU(s), this machine has 0"

test_that "schedulers are started only when they are asked for"
echo cluster >>"$machine/labels"
runs 0 tools/test --flavour cpu --no-sanitizers
says "label cluster: left out"
last_line_is "100% tests passed, 0 tests failed out of 12"
runs 0 tools/test --flavour cpu --label cluster
last_line_is "100% tests passed, 0 tests failed out of 4"

test_that "a build that fails fails the run"
touch "$machine/cmake-fails"
runs 1 tools/test --flavour cpu
says "build build/dev: cmake --preset dev failed"

test_that "an unknown argument is a usage error"
runs 2 tools/test --frobnicate
