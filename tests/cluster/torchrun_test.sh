#!/usr/bin/env bash
# usage: torchrun_test.sh YOKE RANK_ACTOR PYTHON
# A program of ours, unchanged, under PyTorch's torchrun, on one machine and as two agents.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
begin "$1" "$2"
trap 'rm -rf "$scratch"' EXIT
[[ -x $(dirname "$3")/torchrun ]] || { echo "torchrun_test: no torchrun beside $3 (tools/setup --full)"; exit 77; }
PATH=$(dirname "$3"):$PATH

# What is emitted is what runs.
"$yoke" launch --emit torchrun --cpu --nproc-per-node 2 -- "$actor" facts >"$scratch/one.sh"
out=$(timeout 90 sh "$scratch/one.sh" 2>&1)
expect 'torchrun: rank 1' "$out" '^facts torchrun rank 1 of 2 local 1 of 2 node 0 of 1'

"$yoke" launch --emit torchrun --cpu --nproc-per-node 2 -- "$actor" wait 'throw:bad label 11 in sample 42' >"$scratch/fails.sh"
code=0
out=$(timeout 90 sh "$scratch/fails.sh" 2>&1) || code=$?
equal 'a failure: code' "$code" 1
expect 'a failure: our words in its report' "$out" 'bad label 11 in sample 42'

"$yoke" launch --emit torchrun --cpu --nnodes 2 --nproc-per-node 2 --name two -- "$actor" facts |
  sed 's/FIRST_HOST:29400/127.0.0.1:21417/' >"$scratch/two.sh"
timeout 90 sh "$scratch/two.sh" >"$scratch/other" 2>&1 &
out=$(timeout 90 sh "$scratch/two.sh" 2>&1)
wait
out+=$(<"$scratch/other")
for rank in 0 1 2 3; do
  expect "two agents: rank $rank" "$out" "facts torchrun rank $rank of 4 local $((rank % 2)) of 2 node $((rank / 2)) of 2"
done
finish
