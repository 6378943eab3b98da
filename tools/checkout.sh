# Sourced by the scripts beside it: where the checkout is, which PyTorch is taken, how words are
# said.

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
default_torch=2.11.0
script=$(basename "$0")

say() { printf '%s: %s\n' "$script" "$*"; }

# die STATUS WHAT [HINT]: 1 failed, 2 usage, 3 this machine cannot do it
die() {
  printf '%s: %s\n' "$script" "$2" >&2
  [[ -z ${3-} ]] || printf '  %s\n' "$3" >&2
  exit "$1"
}

# usage: the comment at the head of the script
usage() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"; }

# value_of OPTION VALUES_LEFT...: the option's argument, or a usage error
value_of() {
  [[ $# -ge 2 && -n $2 ]] || die 2 "$1 needs a value" "tools/$script --help"
  printf '%s' "$2"
}

has_gpu() { [[ -e /dev/nvidia0 ]] || nvidia-smi -L >/dev/null 2>&1; }

default_flavour() { if has_gpu; then echo cuda; else echo cpu; fi; }

# Compiling a file that includes torch takes 1.3 GB: as many at once as cores and free memory allow.
build_jobs() {
  local cores gigabytes
  cores=$(nproc)
  gigabytes=$(awk '/^MemAvailable:/ {print int($2 / 1024 / 1024 / 1.3)}' /proc/meminfo)
  ((gigabytes >= 1)) || gigabytes=1
  echo $((cores < gigabytes ? cores : gigabytes))
}
