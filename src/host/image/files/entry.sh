#!/bin/sh
# Entry of an image that `yoke image` built: says which stack is inside and what the run lacks, then
# becomes the program.
#
#   (nothing)   a shell in /workspace
#   jupyter     JupyterLab on port 8888 (JUPYTER_PORT); with $JUPYTER_TOKEN, else a token it makes
#   sshd        an SSH server on port 22 (SSH_PORT), for keys alone: $SSH_AUTHORIZED_KEYS, or a file
#               mounted at /run/yoke/authorized_keys or ~/.ssh/authorized_keys
#   PROGRAM...  that program
#
# NB_UID and NB_GID: run it as that user, who gets the home folder /home/yoke.
# YOKE_QUIET=1: say nothing.
set -eu

say() { [ "${YOKE_QUIET:-}" = 1 ] || printf 'yoke: %s\n' "$*" >&2; }
fail() { printf 'yoke: %s\n' "$*" >&2; exit 1; }

say_stack() {
  say "$(cat /opt/yoke-image/stack)"
  [ "${YOKE_QUIET:-}" = 1 ] || warn
}

warn() {
  shared=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $2 }')
  [ "${shared:-0}" -gt 65536 ] ||
    say "shared memory is ${shared:-0} KB: data workers may die of a bus error; add --shm-size=8g or --ipc=host"
  locked=$(ulimit -l 2>/dev/null || echo unlimited)
  [ "$locked" = unlimited ] || [ "$locked" -ge 1048576 ] ||
    say "at most $locked KB may be locked in memory: NCCL over InfiniBand fails; add --ulimit memlock=-1"
  [ -e /opt/yoke-image/without-cuda ] || [ -e /dev/nvidiactl ] || [ -e /dev/dxg ] ||
    say "no NVIDIA driver came in, so torch sees no GPU; add --gpus all"
}

# Sessions of sshd get what this container was started with: by sshd itself, and again in login
# shells, whose /etc/profile sets PATH anew.
quoted() { printf %s "$1" | sed "s/'/'\\\\''/g; 1s/^/'/; \$s/\$/'/"; }
session_variables() {
  env | sed -n 's/^\([A-Za-z_][A-Za-z_0-9]*\)=.*/\1/p' | sort -u | while read -r name; do
    case $name in
      PATH | LD_LIBRARY_PATH | VIRTUAL_ENV | CUDA_* | NVIDIA_* | NCCL_* | YOKE_* | PIP_CONSTRAINT | \
        PYTHON* | OMP_* | TORCH_* | HF_* | LANG | TZ) echo "$name" ;;
    esac
  done
}

write_session() {
  : >"$1/environment.sh"
  set_env=
  for name in $(session_variables); do
    eval "value=\$$name"
    printf 'export %s=%s\n' "$name" "$(quoted "$value")" >>"$1/environment.sh"
    case $value in
      *'"'* | *"
"*) ;;  # sshd_config cannot hold these; login shells still get them
      *) set_env="$set_env \"$name=$value\"" ;;
    esac
  done
}

start_sshd() {
  command -v sshd >/dev/null 2>&1 || [ -x /usr/sbin/sshd ] ||
    fail "no SSH server in this image: build it without --without ssh"
  state=/run/yoke/ssh
  mkdir -p "$state"
  keys=$state/authorized_keys
  for file in /run/yoke/authorized_keys "$HOME/.ssh/authorized_keys"; do
    [ ! -s "$file" ] || cat "$file"
  done >"$keys"
  [ -z "${SSH_AUTHORIZED_KEYS:-}" ] || printf '%s\n' "$SSH_AUTHORIZED_KEYS" >>"$keys"
  [ -s "$keys" ] ||
    fail "sshd: no key may enter; pass -e SSH_AUTHORIZED_KEYS=\"\$(cat ~/.ssh/id_ed25519.pub)\""
  chmod 600 "$keys"
  write_session "$state"
  chmod 644 "$state/environment.sh"
  ln -sf ssh/environment.sh /run/yoke/environment.sh
  # Made at the first start, so that no two containers share one and no layer holds one.
  [ -s "$state/host_key" ] || ssh-keygen -q -t ed25519 -N '' -C yoke -f "$state/host_key"
  cat >"$state/config" <<EOF
Port ${SSH_PORT:-22}
HostKey $state/host_key
AuthorizedKeysFile $keys
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
StrictModes no
PidFile none
PrintMotd no
Subsystem sftp internal-sftp
SetEnv$set_env
EOF
  [ -z "${SSH_ADDRESS:-}" ] || echo "ListenAddress $SSH_ADDRESS" >>"$state/config"
  [ "$(id -u)" != 0 ] || mkdir -p /run/sshd
  unset SSH_AUTHORIZED_KEYS
  say "sshd on port ${SSH_PORT:-22} for $(grep -c . "$keys") key(s), host key $(ssh-keygen -lf "$state/host_key.pub" | cut -d' ' -f2)"
  exec /usr/sbin/sshd -D -e -f "$state/config" "$@"
}

start_jupyter() {
  command -v jupyter >/dev/null 2>&1 ||
    fail "no Jupyter in this image: build it without --without jupyter"
  # An empty token would switch the check off.
  if [ -z "${JUPYTER_TOKEN:-}" ]; then
    JUPYTER_TOKEN=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')
    printf 'yoke: jupyter: http://127.0.0.1:%s/lab?token=%s\n' "${JUPYTER_PORT:-8888}" "$JUPYTER_TOKEN" >&2
  fi
  export JUPYTER_TOKEN  # by the environment: a command line is for all to read
  as_root=
  [ "$(id -u)" != 0 ] || as_root=--allow-root
  exec jupyter lab --no-browser --ip="${JUPYTER_ADDRESS:-0.0.0.0}" --port="${JUPYTER_PORT:-8888}" \
    --ServerApp.root_dir="$PWD" --ServerApp.password= $as_root "$@"
}

# The caller's number, so that files in /workspace are the caller's. Only root can change it.
change_user() {
  [ "$(id -u)" = 0 ] || fail "NB_UID=$NB_UID: the container does not run as root; leave -u away"
  case $NB_UID${NB_GID:-} in *[!0-9]*) fail "NB_UID and NB_GID are numbers" ;; esac
  uid=$NB_UID gid=${NB_GID:-$NB_UID}
  unset NB_UID NB_GID
  [ "$uid" != 0 ] || return 0
  getent group "$gid" >/dev/null || groupmod -o -g "$gid" yoke
  usermod -o -u "$uid" -g "$gid" yoke >/dev/null 2>&1 || fail "NB_UID=$uid: usermod failed"
  chown "$uid:$gid" /home/yoke
  mkdir -p /run/yoke
  chown "$uid:$gid" /run/yoke
  export HOME=/home/yoke USER=yoke
  exec setpriv --reuid "$uid" --regid "$gid" --init-groups --inh-caps=-all "$0" "$@"
}

[ -z "${NB_UID:-}" ] || change_user "$@"
say_stack
case ${1:-} in
  '') if [ -t 0 ]; then exec bash -l; else exec bash; fi ;;
  jupyter) shift; start_jupyter "$@" ;;
  sshd) shift; start_sshd "$@" ;;
  *) exec "$@" ;;
esac
