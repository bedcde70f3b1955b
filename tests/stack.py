"""A stack (PostgreSQL, keeper, proxy) of the tests' own, beside that of `make up`."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import psycopg

ROOT = Path(__file__).resolve().parent.parent
RUN = ROOT / ".run" / f"test-{os.getpid()}"
# As in scripts/lib.sh: another PostgreSQL can be named by its pg_config.
PG_BIN = Path(os.environ.get("PG_CONFIG", "/usr/lib/postgresql/15/bin/pg_config")).parent

# Everything that a server can log is logged, so that a leak into a log shows.
POSTGRES = """
fsync = off
log_min_duration_statement = 0
log_parameter_max_length = -1
log_parameter_max_length_on_error = -1
log_error_verbosity = verbose
debug_print_parse = off
max_prepared_transactions = 10
"""


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Stack:
    """Starts, stops and damages a stack; its addresses are those of `.run/env`."""

    def __init__(self, run: Path = RUN, postgres: str = POSTGRES, log_statement: str = "all"):
        self.run = run
        self.environment = dict(
            os.environ,
            CONFIDE_PGPORT=str(free_port()),
            CONFIDE_APP_PORT=str(free_port()),
            CONFIDE_KEEP_BINARIES="1",  # one run tests one build
            CONFIDE_LOG_STATEMENT=log_statement,
            CONFIDE_PGCONF=postgres,
        )
        self.env: dict[str, str] = {}

    def script(self, name: str, *args: str, timeout: float = 180, run: Path | None = None) -> str:
        done = subprocess.run(
            [ROOT / "scripts" / name, *args],
            env={**self.environment, "CONFIDE_RUN": str(run or self.run)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == 0, f"scripts/{name} failed:\n{done.stdout}"
        return done.stdout

    def up(self) -> str:
        output = self.script("up")
        lines = (self.run / "env").read_text().splitlines()
        self.env = dict(line.split("=", 1) for line in lines)
        return output

    def down(self, *args: str) -> None:
        self.script("down", *args)

    def fresh(self) -> None:
        """Removes what earlier runs left and starts anew."""
        for old in self.run.parent.glob(self.run.name.split("-")[0] + "-*"):
            if not Path(f"/proc/{old.name.split('-')[1]}").exists():
                self.script("down", "--remove", run=old)
        self.up()

    # Addresses.
    @property
    def app_url(self) -> str:
        return self.env["APP_URL"]

    @property
    def dba_url(self) -> str:
        return self.env["DBA_URL"]

    @property
    def data(self) -> Path:
        return Path(self.env["PGDATA"])

    @property
    def logs(self) -> Path:
        return Path(self.env["LOG_DIR"])

    def connect_app(self, **options) -> psycopg.Connection:
        return psycopg.connect(self.app_url, autocommit=True, **options)

    def connect_dba(self, **options) -> psycopg.Connection:
        return psycopg.connect(self.dba_url, autocommit=True, **options)

    # Damage.
    def keeper_pid(self) -> int:
        return int(Path(self.env["KEEPER_PID_FILE"]).read_text().split()[0])

    def proxy_pid(self) -> int:
        return int(Path(self.env["PROXY_PID_FILE"]).read_text().split()[0])

    def postmaster_pid(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def kill_keeper(self) -> None:
        kill(self.keeper_pid())

    def kill_postgres(self) -> None:
        """The postmaster first, then every process of it."""
        postmaster = self.postmaster_pid()
        os.kill(postmaster, signal.SIGSTOP)  # starts no other process
        processes = children(postmaster)
        kill(postmaster)
        for pid in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def kill(pid: int) -> None:
    """Kills a process and waits until it is gone."""
    os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} does not end")
