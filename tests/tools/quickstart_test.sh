#!/usr/bin/env bash
source "$(dirname "${BASH_SOURCE[0]}")/fake_machine.sh"
printf 'echo "cmake $*" >>"$machine/calls"; [[ ! -e $machine/cmake-fails ]]\n' | fake cmake
printf 'echo "yoke $*" >>"$machine/calls"; exit "$(cat "$machine/yoke-status")"\n' | fake yoke
mkdir -p "$checkout/build/release/bin"
ln -s "$machine/bin/yoke" "$checkout/build/release/bin/yoke"
echo 0 >"$machine/yoke-status"

test_that "it sets up, builds the programs and trains"
runs 0 tools/quickstart
called "cmake --preset release -DYOKE_TORCH_DIR=$checkout/.yoke/torch/2.11.0-.*/torch"
called "cmake --build --preset release --target yoke_programs"
called "yoke train --data fashion-mnist --model small-cnn .*--out runs/quickstart --overwrite"

test_that "without a GPU it trains on 2 ranks, with GPUs on one each"
if [[ $(cd "$checkout" && source tools/checkout.sh && default_flavour) == cpu ]]; then
  called "--ranks 2"
else
  never_called "--ranks"
fi

test_that "further arguments come last"
runs 0 tools/quickstart --epochs 1
called "--overwrite.* --epochs 1$"

test_that "the exit status of training is passed on, with the words"
echo 4 >"$machine/yoke-status"
runs 4 tools/quickstart
says "training ended with status 4"

test_that "a build that fails stops it before training"
touch "$machine/cmake-fails"
forget_calls
runs 1 tools/quickstart
never_called "^yoke"

test_that "a machine where set-up is not possible gets status 3"
echo 1000 >"$machine/uid"
: >"$machine/installed"
runs 3 tools/quickstart
never_called "^yoke"
