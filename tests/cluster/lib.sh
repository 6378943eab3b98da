# What the cluster tests share: sourced, with `yoke`, `actor` and `tool` set by `begin`.

# begin YOKE ACTOR
begin() {
  yoke=$1 actor=$2
  tool=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/tools/cluster-test
  scratch=$(mktemp -d)
  export YOKE_SECRET=0123456789abcdef0123456789 YOKE_TELEMETRY_DIR=$scratch/telemetry
  failed=0
}

# up KIND: or the test is skipped, with the reason said
up() {
  local status=0
  "$tool" up "$1" "$scratch/$1" || status=$?
  if ((status != 0)); then
    rm -rf "$scratch"
    exit "$status"
  fi
  trap "'$tool' down '$1' '$scratch/$1'; rm -rf '$scratch'" EXIT
}

# expect NAME GOT PATTERN: whether the text fits the extended regular expression
expect() {
  if grep -qE -- "$3" <<<"$2"; then
    echo "ok: $1"
  else
    failed=1
    printf 'FAILED: %s\n  wanted: %s\n  got:\n%s\n' "$1" "$3" "$(sed 's/^/    /' <<<"$2")"
  fi
}

equal() { expect "$1" "$2" "^$3\$"; }

# wait_until SECONDS COMMAND...
wait_until() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.1
  done
}

finish() { exit "$failed"; }
