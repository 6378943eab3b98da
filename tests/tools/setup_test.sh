#!/usr/bin/env bash
source "$(dirname "${BASH_SOURCE[0]}")/fake_machine.sh"
wheel=$checkout/.yoke/torch/2.11.0-cpu
setup=(tools/setup --flavour cpu)

test_that "check names what is missing and changes nothing"
runs 3 "${setup[@]}" --check
says ".yoke/torch/2.11.0-cpu: missing"
never_called python

test_that "a killed set-up leaves nothing that is taken for whole"
touch "$machine/pip-is-killed"
runs 137 "${setup[@]}"
[[ ! -e $wheel ]] || wrong "$wheel exists"
rm "$machine/pip-is-killed"
forget_calls
runs 0 "${setup[@]}"
called "pip install.*--require-hashes"
[[ -f $wheel/torch/lib/libtorch_cpu.so && ! -e $wheel.part ]] || wrong "the wheel is not in place"

test_that "libraries get the unversioned name that linkers look for"
[[ $(readlink "$wheel/nvidia/cu/lib/libcudart.so") == libcudart.so.13 ]] || wrong "no libcudart.so"

test_that "a second set-up finds everything present and calls nothing"
forget_calls
runs 0 "${setup[@]}"
says "stack/apt.txt: present"
says "2.11.0-cpu: present"
never_called .
runs 0 "${setup[@]}" --check

test_that "a changed lock installs anew, and the old wheel stays until the new one is whole"
echo '# changed' >>"$checkout/stack/locks/torch-2.11.0-cpu.txt"
echo 'THESE PACKAGES DO NOT MATCH THE HASHES' >"$machine/pip-says"
touch "$wheel/old"
runs 1 "${setup[@]}"
says "a download differs from the lock"
[[ -e $wheel/old ]] || wrong "the old wheel is gone"
rm "$machine/pip-says"
runs 0 "${setup[@]}"
[[ ! -e $wheel/old ]] || wrong "the old wheel is still there"

test_that "a full disk is told as such"
echo 'OSError: [Errno 28] No space left on device' >"$machine/pip-says"
runs 1 "${setup[@]}" --torch 2.9.1
says "free some space on the disk"
rm "$machine/pip-says"

test_that "too little space is told before anything is fetched"
printf 'echo "Avail"; echo "1G"\n' | fake df
forget_calls
runs 3 "${setup[@]}" --torch 2.6.0
says "needs 2 GB while it is installed"
never_called python
rm "$machine/bin/df"

test_that "a Python environment whose set-up failed is made anew"
echo 'ConnectionError' >"$machine/pip-says"
runs 1 "${setup[@]}" --full
says "check the network"
rm "$machine/pip-says"
runs 3 "${setup[@]}" --full --check
says ".yoke/full: missing"
runs 0 "${setup[@]}" --full
forget_calls
runs 0 "${setup[@]}" --full
never_called .

test_that "what the cluster tests need comes on top of the whole environment"
runs 0 "${setup[@]}" --cluster
says ".yoke/cluster: installed"
[[ -e $checkout/.yoke/cluster/.lock-sha256 ]] || wrong "no .yoke/cluster"
forget_calls
runs 0 "${setup[@]}" --cluster
never_called .

test_that "root installs missing packages, once"
sed -i '/^g++$/d; /^ccache$/d' "$machine/installed"
runs 0 "${setup[@]}"
called "install -y --no-install-recommends ccache g++"
forget_calls
runs 0 "${setup[@]}"
never_called apt-get

test_that "without root the one line to run is printed and the exit status is 3"
echo 1000 >"$machine/uid"
sed -i '/^g++$/d' "$machine/installed"
runs 3 "${setup[@]}"
says "sudo apt-get update && sudo apt-get install -y g++"
never_called apt-get

test_that "without root a missing test package is no obstacle"
echo g++ >>"$machine/installed"
sed -i '/^clang-tidy-19$/d' "$machine/installed"
runs 0 "${setup[@]}" --tests
says "sudo apt-get install -y clang-tidy-19"

test_that "a package that this release lacks stops set-up only when building needs it"
echo 0 >"$machine/uid"
echo clang-tidy-19 >"$machine/not-offered"
runs 0 "${setup[@]}" --tests
says "package clang-tidy-19: not offered by this release"
sed -i '/^libgloo-dev$/d' "$machine/installed"
echo libgloo-dev >"$machine/not-offered"
runs 3 "${setup[@]}"
says "package libgloo-dev: not offered"
says "enable universe"

test_that "what cannot be meant is a usage error"
runs 2 "${setup[@]}" --torch 1.0
says "2.11.0 cpu"
runs 2 "${setup[@]}" --torch
runs 2 "${setup[@]}" --torch 2.6.0 --full
runs 2 tools/setup --frobnicate
