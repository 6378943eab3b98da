# Sourced by the tests beside it: a copy of the checkout's scripts, $checkout, on a machine whose apt
# and pip are fakes that write down in $calls how they were called. $machine holds their state.

set -euo pipefail
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
machine=$(mktemp -d)
checkout=$machine/checkout
calls=$machine/calls
trap 'rm -rf "$machine"' EXIT

mkdir -p "$checkout/stack" "$machine/bin"
cp -r "$sources/tools" "$checkout/"
cp -r "$sources/stack/locks" "$sources"/stack/apt*.txt "$checkout/stack/"
cp "$sources/CMakePresets.json" "$checkout/"
grep -hv '^#' "$checkout"/stack/apt*.txt >"$machine/installed"
echo 0 >"$machine/uid"
touch "$calls" "$machine/not-offered"

# fake NAME: a program on PATH, its text from standard input
fake() {
  { printf '#!/usr/bin/env bash\nset -eu\nmachine=%q\n' "$machine"; cat; } >"$machine/bin/$1"
  chmod +x "$machine/bin/$1"
}

fake dpkg-query <<'F'
if grep -qx "${@: -1}" "$machine/installed"; then printf installed; else exit 1; fi
F
fake id <<'F'
cat "$machine/uid"
F
fake apt-cache <<'F'
candidate=1.0
! grep -qx "$2" "$machine/not-offered" || candidate='(none)'
echo "  Candidate: $candidate"
F
fake apt-get <<'F'
echo "apt-get $*" >>"$machine/calls"
if [[ " $* " == *" install "* ]]; then printf '%s\n' "$@" >>"$machine/installed"; fi
F
fake nvidia-smi <<'F'
exit 1
F
# pip writes the start of an installation, fails or kills its caller if told to, writes the rest.
fake python <<'F'
echo "python $*" >>"$machine/calls"
if [[ $2 == venv ]]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; exit; fi
target=$machine/unused
while (($#)); do [[ $1 != --target ]] || target=$2; shift; done
mkdir -p "$target/torch/lib" "$target/nvidia/cu/lib"
if [[ -e $machine/pip-says ]]; then cat "$machine/pip-says"; exit 1; fi
if [[ -e $machine/pip-is-killed ]]; then kill -9 $PPID; exit 1; fi
touch "$target/torch/lib/libtorch_cpu.so" "$target/nvidia/cu/lib/libcudart.so.13"
F
export PATH=$machine/bin:$PATH YOKE_PYTHON=$machine/bin/python

# runs STATUS COMMAND...: in the copy; keeps its words in $output; another exit status is wrong
runs() {
  local expected=$1 status=0
  shift
  output=$(cd "$checkout" && "$@" 2>&1) || status=$?
  ((status == expected)) || wrong "$* ended with $status, not $expected"
}

says() { [[ $output == *"$1"* ]] || wrong "expected the words: $1"; }
never_says() { [[ $output != *"$1"* ]] || wrong "did not expect the words: $1"; }
last_line_is() { [[ ${output##*$'\n'} == "$1" ]] || wrong "expected the last line: $1"; }
called() { grep -q -- "$1" "$calls" || wrong "expected a call: $1"; }
never_called() { ! grep -q -- "$1" "$calls" || wrong "did not expect a call: $1"; }
forget_calls() { : >"$calls"; }

# test_that SENTENCE: names the case that follows
test_that() { sentence=$1; }

wrong() {
  printf 'FAILED: %s\n  %s (%s:%s)\n--- its words:\n%s\n--- calls:\n' \
    "${sentence-}" "$1" "$(basename "$0")" "${BASH_LINENO[-2]}" "${output-}" >&2
  cat "$calls" >&2
  exit 1
}
