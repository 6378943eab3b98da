#!/usr/bin/env bash
# usage: hosts_test.sh YOKE RANK_ACTOR PYTHON
# Two network name spaces as two machines: one launcher on each, a cable that is cut, hosts started
# from one of them; with a PYTHON that has torch also DDP over Gloo, and a cut in the middle of its steps.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
begin "$1" "$2"
python=$3
up hosts

# both NAME OPTION... -- WORD...: a launcher on each machine; output in NAME-a and NAME-b, codes in
# code_a and code_b
both() {
  local name=$1 pid_a pid_b
  shift
  "$tool" on yoke-a timeout 120 "$yoke" launch --nnodes 2 --node-rank 0 --rdzv-endpoint 10.77.0.1:29400 \
    --rdzv-id "$name" "$@" >"$scratch/$name-a" 2>&1 &
  pid_a=$!
  "$tool" on yoke-b timeout 120 "$yoke" launch --nnodes 2 --node-rank 1 --rdzv-endpoint 10.77.0.1:29400 \
    --rdzv-id "$name" "$@" >"$scratch/$name-b" 2>&1 &
  pid_b=$!
  code_a=0 code_b=0
  ! declare -F meanwhile >/dev/null || meanwhile "$name"
  wait "$pid_a" || code_a=$?
  wait "$pid_b" || code_b=$?
}

both world --ranks 2 -- "$actor" facts,env:MASTER_ADDR,env:GLOO_SOCKET_IFNAME
equal 'two machines: codes' "$code_a $code_b" '0 0'
expect 'two machines: first' "$(<"$scratch/world-a")" 'facts yoke rank 0 of 4 local 0 of 2 node 0 of 2'
expect 'two machines: last' "$(<"$scratch/world-b")" 'facts yoke rank 3 of 4 local 1 of 2 node 1 of 2'
expect 'two machines: where they meet' "$(<"$scratch/world-b")" '^MASTER_ADDR=10.77.0.1'
expect 'two machines: by which interface' "$(<"$scratch/world-b")" '^GLOO_SOCKET_IFNAME=yoke-vb'
expect 'two machines: the start line' "$(<"$scratch/world-b")" 'node 1 of 2 \(yoke-b, 10.77.0.2\): ranks 2 to 3 of 4; they meet at 10.77.0.1:[0-9]+ over yoke-vb, TCP'

both fails --ranks 2 --grace 2 -- "$actor" wait wait wait 'throw:bad label 11 in sample 42'
equal 'a failure: codes' "$code_a $code_b" '1 1'
expect 'a failure: named on the other machine' "$(<"$scratch/fails-a")" 'error: rank 3 \(host yoke-b\): bad label 11'

both network --ranks 1 --interface 10.77.0.0/24 -- "$actor" env:NCCL_SOCKET_IFNAME
expect '--interface with a network' "$(<"$scratch/network-a")" '^NCCL_SOCKET_IFNAME=yoke-va'

# The cable is cut: each side ends its own ranks.
soon=(--rdzv-conf keep_alive_interval=1)
both_ready() { grep -q ready "$scratch/$1-a" && grep -q ready "$scratch/$1-b"; }
meanwhile() {
  wait_until 60 both_ready "$1" || echo 'FAILED: not started'
  ip -n yoke-a link set yoke-va down
}
both cut --ranks 1 --grace 2 "${soon[@]}" -- "$actor" say:ready,wait
unset -f meanwhile
ip -n yoke-a link set yoke-va up
equal 'a cut cable: codes' "$code_a $code_b" '1 1'
expect 'a cut cable: named by the first machine' "$(<"$scratch/cut-a")" 'machine yoke-b \(10.77.0.2\) was lost'
expect 'a cut cable: named by the other' "$(<"$scratch/cut-b")" 'the coordinator at 10.77.0.1:29400'

if [[ -x $python ]]; then
  both ddp --ranks 1 -- "$python" "$(dirname "$0")/../../src/cli/tests/ddp_script.py"
  equal 'DDP over Gloo: codes' "$code_a $code_b" '0 0'
  weights=$(sed -n 's/^ddp rank 0 of 2 weights //p' "$scratch/ddp-a")
  expect 'DDP over Gloo: both have the same weights' "$(<"$scratch/ddp-b")" "^ddp rank 1 of 2 weights ${weights:-none}\$"

  cat >"$scratch/steps.py" <<'END'
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
gradients = torch.ones(1 << 20)
for step in range(1 << 30):
    dist.all_reduce(gradients)
    gradients /= 2
    if step == 3:
        print("ready", flush=True)
END
  meanwhile() {
    wait_until 60 both_ready "$1" || echo 'FAILED: not started'
    ip -n yoke-a link set yoke-va down
  }
  both middle --ranks 1 --grace 2 "${soon[@]}" -- "$python" "$scratch/steps.py"
  unset -f meanwhile
  ip -n yoke-a link set yoke-va up
  equal 'a cable cut between steps: codes' "$code_a $code_b" '1 1'
  expect 'a cable cut between steps: named' "$(<"$scratch/middle-a")" 'machine yoke-b \(10.77.0.2\) was lost'
  equal 'a cable cut between steps: no rank is left' "$(pgrep -cf "$scratch/steps.py" || true)" 0
fi

# A stranger, and one who only knocks.
meanwhile() {
  wait_until 60 grep -q ready "$scratch/$1-a" || echo 'FAILED: not started'
  "$tool" on yoke-b curl -s -o /dev/null -X POST -d '{}' http://10.77.0.1:29400/v1/beat || true
  "$tool" on yoke-b curl -s -o /dev/null http://10.77.0.1:29400/ || true
  touch "$scratch/go"
}
if command -v curl >/dev/null; then
  both stranger --ranks 1 -- "$actor" "say:ready,until-file:$scratch/go"
  equal 'a stranger: no harm' "$code_a $code_b" '0 0'
  expect 'a stranger: counted' "$(<"$scratch/stranger-a")" 'refused 2 requests of strangers'
fi
unset -f meanwhile

# From one machine: the others over a shell of our choice, in place of ssh.
cat >"$scratch/shell" <<END
#!/bin/sh
host=\$1; shift
exec "$tool" on "\$host" sh -c "\$*"
END
chmod +x "$scratch/shell"
code=0
out=$(timeout 120 "$yoke" launch --hosts yoke-a:2,yoke-b:1 --ssh "$scratch/shell" \
  --rdzv-endpoint 10.77.0.1:29401 -- "$actor" facts 2>&1) || code=$?
equal '--hosts: code' "$code" 0
expect '--hosts: first' "$out" 'facts yoke rank 0 of 3 local 0 of 2 node 0 of 2'
expect '--hosts: last' "$out" 'facts yoke rank 2 of 3 local 0 of 1 node 1 of 2'
expect '--hosts: the secret is no argument' "$(grep -c "$YOKE_SECRET" <<<"$out" || true)" '^0$'
# A connection that breaks: what stands for ssh is killed with the launcher here, the ones there are not.
cat >"$scratch/shell" <<END
#!/bin/sh
host=\$1; shift
exec 3<&0
setsid "$tool" on "\$host" sh -c "\$*" <&3 &
exec 3<&-
wait
END
"$yoke" launch --hosts yoke-a:1,yoke-b:1 --ssh "$scratch/shell" --rdzv-endpoint 10.77.0.1:29402 -- \
  "$actor" say:here,await-signal >"$scratch/broken" 2>&1 &
here=$!
two_ready() { [[ $(grep -c "^here" "$scratch/broken") == 2 ]]; }
wait_until 60 two_ready || echo 'FAILED: not started'
kill -KILL "$here"
two_heard() { [[ $(grep -c '^got SIGTERM' "$scratch/broken") == 2 ]]; }
wait_until 30 two_heard || true
equal 'a broken connection: the ranks are asked to end' "$(grep -c '^got SIGTERM' "$scratch/broken" || true)" 2
none_left() { ! pgrep -f "$actor say:here,await-signal" >/dev/null; }
wait_until 20 none_left || true
equal 'a broken connection: no process is left' "$(pgrep -cf "$actor say:here,await-signal" || true)" 0

printf 'yoke-a slots=1\nyoke-b lots=1\n' >"$scratch/hostfile"
code=0
out=$("$yoke" launch --hostfile "$scratch/hostfile" -- true 2>&1) || code=$?
equal 'a bad host file: code' "$code" 2
expect 'a bad host file: the line' "$out" "line 2: 'yoke-b lots=1'"
finish
