#!/bin/sh
# usage: install-wheels LOCK
#        install-wheels --report FILE REQUIREMENT...
#        install-wheels --more FILE STATE REQUIREMENT...
#        install-wheels --guarded LOCK
#
# Installs a lock's wheels into the image's environment, so that equal locks give equal bytes:
# compiled Python files name their source by its hash, not by its time.
# --report writes pip's report of what it would install into an empty environment, --more into this
# one, beside the state of what is guarded. --guarded installs, and fails where a guarded package
# changed, in its version or in any file. The builder's pip settings and certificate come as secrets (pip.conf,
# ca.pem) and stay outside.
set -eu
[ ! -s /run/secrets/pip.conf ] || export PIP_CONFIG_FILE=/run/secrets/pip.conf
[ ! -s /run/secrets/ca.pem ] || export PIP_CERT=/run/secrets/ca.pem
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_INPUT=1 PYTHONDONTWRITEBYTECODE=1
export PYTHONHASHSEED=0
unset PIP_CONSTRAINT
set -f  # patterns of packages are no files

pip() { /opt/venv/bin/pip install --quiet --no-cache-dir --only-binary=:all: "$@"; }

if [ "$1" = --report ]; then
  report=$2
  shift 2
  pip --dry-run --ignore-installed --report "$report" "$@"
  exit
fi
guard() { /opt/venv/bin/python /opt/yoke-image/guard.py "$@"; }
if [ "$1" = --more ]; then
  report=$2
  guard state $(cat /opt/yoke-image/guarded) >"$3"
  shift 3
  pip --dry-run --report "$report" "$@"
  exit
fi
before=
if [ "$1" = --guarded ]; then
  shift
  before=$(guard state $(cat /opt/yoke-image/guarded))
fi
mark=$(mktemp)
pip --no-compile --no-deps --require-hashes -r "$1"
# Not every file in a wheel is sound Python (templates, tests of syntax errors): those stay as they are.
find /opt/venv -name '*.py' -newercm "$mark" | LC_ALL=C sort >"$mark.list"
# Without a name compileall would compile the system's own files anew.
[ ! -s "$mark.list" ] ||
  /opt/venv/bin/python -m compileall -q --invalidation-mode checked-hash -i "$mark.list" >/dev/null 2>&1 || true
if [ -n "$before" ]; then
  after=$(guard state $(cat /opt/yoke-image/guarded))
  [ "$before" = "$after" ] || { echo "guarded packages changed: $before became $after" >&2; exit 1; }
  touched=$(guard touched "$mark" $(cat /opt/yoke-image/guarded))
  [ -z "$touched" ] || { echo "files of guarded packages changed:" >&2; echo "$touched" >&2; exit 1; }
fi
set +f
rm -rf /tmp/* /root/.cache
