#!/usr/bin/env bash
# usage: slurm_test.sh YOKE RANK_ACTOR
# A program of ours, unchanged, under a real Slurm of four nodes on this machine.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
begin "$@"
up slurm
export SLURM_CONF=$scratch/slurm/slurm.conf
run=(timeout 90 srun --immediate=60)

out=$("${run[@]}" -N2 --ntasks-per-node=2 "$actor" facts 2>&1 | sort)
expect 'srun: ranks 0 to 3' "$out" 'facts slurm rank 3 of 4 local 1 of 2 node 1 of 2'
expect 'srun: rank 0' "$out" 'facts slurm rank 0 of 4 local 0 of 2 node 0 of 2'

# One task on each node: the launcher takes the nodes from Slurm.
out=$("${run[@]}" -N2 --ntasks-per-node=1 "$yoke" launch --ranks 2 --rdzv-endpoint 127.0.0.1:21410 \
  -- "$actor" facts 2>&1 | sort)
expect 'srun yoke launch: all ranks' "$out" 'facts yoke rank 3 of 4 local 1 of 2 node 1 of 2'
expect 'srun yoke launch: nodes' "$out" 'machine 1 of 2 by slurm'

code=0
out=$("${run[@]}" -N2 --ntasks-per-node=1 "$yoke" launch --ranks 2 --grace 2 --rdzv-endpoint 127.0.0.1:21411 \
  -- "$actor" wait wait wait 'throw:bad label 11 in sample 42' 2>&1) || code=$?
equal 'a failure: exit code' "$code" 1
expect 'a failure: its words' "$out" 'error: rank 3 .*bad label 11 in sample 42'

# The emitted batch script, with the port of our choice since the four nodes are one machine.
PATH=$(dirname "$yoke"):$PATH
"$yoke" launch --emit slurm --cpu --nnodes 2 --nproc-per-node 2 --grace 1 --signal-grace 5 --name emitted \
  -- "$actor" facts >"$scratch/job.sh"
bash -n "$scratch/job.sh"
sed -i 's/ --nproc-per-node/ --rdzv-endpoint 127.0.0.1:21412&/' "$scratch/job.sh"
code=0
timeout 90 sbatch -W --chdir="$scratch" --output="$scratch/job.log" "$scratch/job.sh" >/dev/null || code=$?
equal 'sbatch: exit code' "$code" 0
expect 'sbatch: all ranks' "$(<"$scratch/job.log")" 'facts yoke rank 3 of 4 local 1 of 2 node 1 of 2'
expect 'sbatch: no secret is left' "$(ls -A "$scratch")" '^job.log$'
[[ ! $(ls -A "$scratch") =~ yoke-secret ]] || { echo 'FAILED: the secret file stays'; failed=1; }

# A signal before the time limit: the ranks save and leave with 128+n, and the job is queued again.
"$yoke" launch --emit slurm --cpu --nnodes 1 --nproc-per-node 2 --grace 1 --signal-grace 5 --name requeued \
  -- "$actor" if-attempt:0,await-signal >"$scratch/again.sh"
job=$(sbatch --parsable --chdir="$scratch" --output="$scratch/again.log" "$scratch/again.sh")
ready() { [[ $(grep -c '^ready' "$scratch/again.log" 2>/dev/null) -ge 2 ]]; }
wait_until 60 ready || { echo 'FAILED: the job does not start'; failed=1; }
scancel -s USR1 "$job"
restarted() { [[ $(scontrol show job "$job") =~ Restarts=1 ]]; }
wait_until 60 restarted || true
expect 'USR1: queued again' "$(scontrol show job "$job")" 'Restarts=1'
expect 'USR1: the ranks heard it' "$(<"$scratch/again.log")" 'got SIGUSR1'
scancel "$job"

# A node fails: Slurm queues the job again, and the launcher tells nobody's failure but that.
"$yoke" launch --emit slurm --cpu --nnodes 2 --nproc-per-node 1 --grace 1 --signal-grace 5 --name failing \
  -- "$actor" say:ready,env:SLURM_RESTART_COUNT,wait | sed 's/ --nproc-per-node/ --rdzv-endpoint 127.0.0.1:21413&/' >"$scratch/node.sh"
job=$(sbatch --parsable --chdir="$scratch" --output="$scratch/node.log" "$scratch/node.sh")
ready() { [[ $(grep -c '^ready' "$scratch/node.log" 2>/dev/null) -ge ${1:-2} ]]; }
wait_until 60 ready || { echo 'FAILED: the job does not start'; failed=1; }
second=$(scontrol show hostnames "$(squeue -h -j "$job" -o %N)" | tail -1)
scontrol update nodename="$second" state=down reason=test
wait_until 60 restarted || true
# Slurm lets two minutes pass before it starts such a job again, unless told so.
started_again() { scontrol update jobid="$job" StartTime=now 2>/dev/null || true; ready 3; }
wait_until 40 started_again || true
wait_until 20 ready 4 || true
expect 'a node fails: queued again' "$(scontrol show job "$job")" 'Restarts=1'
expect 'a node fails: the ranks run again, and know it' "$(<"$scratch/node.log")" '^SLURM_RESTART_COUNT=1'
scancel "$job"
finish
