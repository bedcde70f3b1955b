# Sourced by the other scripts: names of everything, and small helpers.
#
# A stack (PostgreSQL, keeper, proxy) is named by its run directory; two stacks
# with different CONFIDE_RUN and ports do not disturb each other.
# shellcheck shell=bash
# shellcheck disable=SC2034  # what is set here is used where this is sourced

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
PG_CONFIG=${PG_CONFIG:-/usr/lib/postgresql/15/bin/pg_config}
PROFILE=release
command -v cargo >/dev/null || PATH=$PATH:$HOME/.cargo/bin
TARGET=${CARGO_TARGET_DIR:-$ROOT/target}

RUN=${CONFIDE_RUN:-$ROOT/.run}
PGPORT_=${CONFIDE_PGPORT:-5442}
PROXY_PORT=${CONFIDE_APP_PORT:-6432}
# keeper, or software: no keeper at all, only the family soft_. A stack keeps its mode.
STACK_MODE=${MODE:-$(cat "$RUN/mode" 2>/dev/null || echo keeper)}

say() { printf '%s\n' "$*"; }
die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}
is_root() { [ "$(id -u)" = 0 ]; }
as_root() { if is_root; then "$@"; else sudo "$@"; fi; }

# As root, each program runs as a user of its own, in a directory that these
# users can enter; otherwise all run as the caller, in the run directory. Tests
# that compare times have theirs in memory: CONFIDE_STATES.
if is_root; then
    PG_USER=postgres
    KEEPER_USER=confide-keeper
    PROXY_USER=confide-proxy
    STATES=${CONFIDE_STATES:-/var/lib/confide}
    STATE=$STATES/dev-$(printf %s "$RUN" | sha256sum | cut -c1-10)
    SOCKETS=$STATE
else
    PG_USER=$(id -un)
    KEEPER_USER=$PG_USER
    PROXY_USER=$PG_USER
    STATE=${CONFIDE_STATES:+$CONFIDE_STATES/dev-$(printf %s "$RUN" | sha256sum | cut -c1-10)}
    STATE=${STATE:-$RUN}
    SOCKETS=$STATE
    # A Unix socket's path has at most 107 bytes.
    if [ ${#SOCKETS} -gt 70 ]; then
        SOCKETS=${XDG_RUNTIME_DIR:-/tmp}/confide-$(id -u)-$(printf %s "$RUN" | sha256sum | cut -c1-10)
    fi
fi
PG_DATA=$STATE/pgdata
PG_SOCKETS=$SOCKETS/pg
KEEPER_DIR=$STATE/keeper
KEEPER_SOCKET=$SOCKETS/ks/keeper.sock
PROXY_DIR=$STATE/proxy
LOGS=$STATE/log
BIN=$STATE/bin

# run_as USER COMMAND...: from a directory that this user can enter.
run_as() {
    local user=$1
    shift
    [ "$user" = "$(id -un)" ] || set -- setpriv --reuid="$user" --regid="$user" --init-groups -- "$@"
    (cd / && exec "$@")
}

# process_ended PID: also if nobody has taken notice of it, which in a container
# without an init can take long.
process_ended() {
    ! grep -q '^State:	[^ZX]' "/proc/$1/status" 2>/dev/null
}

# process_runs PID NAME: this process is alive and is this program (a pid file
# may be older than the last boot).
process_runs() {
    local pid=$1 name=$2 exe
    case $pid in '' | *[!0-9]*) return 1 ;; esac
    process_ended "$pid" && return 1
    exe=$(tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | head -n 1) || return 1
    [ "${exe##*/}" = "$name" ]
}

# pid_of FILE NAME: prints the pid in the file if that program runs.
pid_of() {
    local pid
    pid=$(head -n 1 "$1" 2>/dev/null) || return 1
    process_runs "$pid" "$2" || return 1
    printf '%s\n' "$pid"
}

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for() {
    local until=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$until" ] || return 1
        sleep 0.05
    done
}

# port_taken PORT: something listens there, on IPv4 loopback.
port_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# stop_pid PID SECONDS: SIGTERM, then SIGKILL.
stop_pid() {
    kill -TERM "$1" 2>/dev/null || return 0
    wait_for "$2" process_ended "$1" || kill -KILL "$1" 2>/dev/null || true
}
