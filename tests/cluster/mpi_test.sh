#!/usr/bin/env bash
# usage: mpi_test.sh YOKE RANK_ACTOR
# A program of ours, unchanged, under Open MPI's mpirun.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
begin "$@"
trap 'rm -rf "$scratch"' EXIT
command -v mpirun >/dev/null || { echo 'mpi_test: needs mpirun (tools/setup --cluster)'; exit 77; }
run=(timeout 60 mpirun --allow-run-as-root --oversubscribe)

out=$("${run[@]}" -np 3 "$actor" facts 2>&1 | sort)
expect 'mpirun: rank 0' "$out" 'facts openmpi rank 0 of 3 local 0 of 3 node 0 of 1'
expect 'mpirun: rank 2' "$out" 'facts openmpi rank 2 of 3 local 2 of 3 node 0 of 1'

code=0
out=$("${run[@]}" -np 2 "$yoke" launch --ranks 2 "$actor" facts 2>&1) || code=$?
equal 'several launchers on one machine: refused' "$code" 3
expect 'several launchers on one machine: why' "$out" 'several of them on one machine'
finish
