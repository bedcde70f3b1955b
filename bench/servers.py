"""The stack that a benchmark measures: PostgreSQL, keeper and proxy of its own. Plaintext and
protected tables live in the same PostgreSQL, so every setting holds for both.

SETTINGS=tuned (as benchmarks that do not say otherwise have it): a server that is meant to be fast
and durable. SETTINGS=default: PostgreSQL's own, but for what would work in the background while
something is measured.
"""

import contextlib
import os
import subprocess
import time
from pathlib import Path

import psycopg
from report import parameter, parameters
from stack import ROOT, Stack

KIND = parameter("SETTINGS", "tuned")
# Nothing that works in the background while something is measured.
QUIET = {
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "confide.checkpoint_wal": "8GB",
    "confide.checkpoint_interval": "30min",
    "autovacuum": "off",
    "deadlock_timeout": "100ms",
}
# Parallel query and JIT are off unless asked for: both sides then use one core in PostgreSQL.
TUNED = {
    "shared_buffers": parameter("SHARED_BUFFERS", "1GB"),
    "work_mem": parameter("WORK_MEM", "256MB"),
    "maintenance_work_mem": "512MB",
    "effective_cache_size": "4GB",
    "max_parallel_workers_per_gather": int(parameter("WORKERS", "0").split(",")[0]),
    "random_page_cost": "1.1",
    **QUIET,
    "jit": "off",
}
# Named, though they are what PostgreSQL has, so that a report shows them.
DEFAULT = {
    "shared_buffers": "128MB",
    "work_mem": "4MB",
    "maintenance_work_mem": "64MB",
    "effective_cache_size": "4GB",
    "max_parallel_workers_per_gather": 2,
    "random_page_cost": "4",
    "jit": "on",
    **QUIET,
}
if KIND not in ("default", "tuned"):
    raise SystemExit(f"SETTINGS={KIND} is none of default, tuned")
SETTINGS = DEFAULT if KIND == "default" else TUNED
# Ends the name of a benchmark's report: reports of both stand beside each other.
SUFFIX = "" if KIND == "tuned" else f"-{KIND}"
# A benchmark that compares them goes through all of these in one run.
WORKERS = [int(n) for n in parameters("WORKERS", "0,2" if KIND == "default" else "0")]


def direct_url(stack: Stack) -> str:
    """The application's role, straight to PostgreSQL: how it would connect without Confide."""
    port = stack.environment["CONFIDE_PGPORT"]
    head, _, _ = stack.app_url.rpartition(":")
    return f"{head}:{port}/app"


@contextlib.contextmanager
def running(memory_limit: str = "16GB", **settings):
    """A fresh stack, removed at the end; with KEEP=1 it stays for a look."""
    conf = "".join(f"{key} = '{value}'\n" for key, value in {**SETTINGS, **settings}.items())
    os.environ.setdefault("CONFIDE_KEEPER_MEMORY_LIMIT", memory_limit)
    os.environ.setdefault("CONFIDE_KEEPER_SESSION_MEMORY_LIMIT", "8GB")
    stack = Stack(ROOT / f".run/bench-{os.getpid()}", conf, "none")
    stack.fresh()
    try:
        yield stack
    finally:
        if parameter("KEEP", "") in ("", "0"):
            stack.down("--remove")
        else:
            print(f"kept: {stack.run}/env")


def connect(url: str, schema: str = "public") -> psycopg.Connection:
    connection = psycopg.connect(url, autocommit=True, prepare_threshold=None)
    connection.execute(f"SET search_path = {schema}")
    return connection


def prioritize(stack: Stack, connections, priority: int) -> None:
    """With PRIORITY=n what is measured goes before all other work on the machine (`chrt -f n`, as
    root), which then does not matter to the clock but by the memory that it uses."""
    if priority == 0:
        return
    backends = [c.execute("SELECT pg_backend_pid()").fetchone()[0] for c in connections]
    for pid in [stack.keeper_pid(), stack.proxy_pid(), os.getpid(), *backends]:
        subprocess.run(["chrt", "-a", "-f", "-p", str(priority), str(pid)], check=True)


def batch_settings(connection: psycopg.Connection) -> list[str]:
    """The switches of batched execution that this build has."""
    found = connection.execute(
        "SELECT name FROM pg_settings WHERE name LIKE 'confide.enable\\_%' ORDER BY 1"
    )
    return [name for (name,) in found]


class Mode:
    """How protected queries run: `on` (all batches), `off` (row at a time), or `no_x` (all but
    confide.enable_x)."""

    def __init__(self, name: str, connection: psycopg.Connection):
        self.name = name
        self.switches = {s: name != "off" for s in batch_settings(connection)}
        if name.startswith("no_"):
            switch = "confide.enable_" + name.removeprefix("no_")
            if switch not in self.switches:
                raise SystemExit(f"no setting {switch}; there are {sorted(self.switches)}")
            self.switches[switch] = False
        elif name not in ("on", "off"):
            raise SystemExit(f"mode {name} is none of on, off, no_x")

    def apply(self, connection: psycopg.Connection) -> None:
        for switch, value in self.switches.items():
            connection.execute(f"SET {switch} = {'on' if value else 'off'}")


def modes(connection: psycopg.Connection, default: str = "on,off") -> list[Mode]:
    """The modes asked for; only `off` when this build has no batches."""
    wanted = parameters("MODES", default) if batch_settings(connection) else ["off"]
    return [Mode(name, connection) for name in wanted]


def stat_keeper(connection: psycopg.Connection) -> dict[str, str]:
    return dict(connection.execute("SELECT name, value FROM confide.confide_stat_keeper"))


def answered(connection: psycopg.Connection, channels: int) -> int:
    """Answers of the keeper on channels that are closed, once no more than so many are open."""
    until = time.monotonic() + 30
    while int((found := stat_keeper(connection))["channels"]) > channels:
        if time.monotonic() > until:
            raise RuntimeError("channels stay open")
        time.sleep(0.05)
    return int(found["answered_total"])


def size(path: Path) -> int:
    return sum(f.stat().st_size for f in path.rglob("*") if f.is_file())


# So much of the WAL's files is used again (`recycle_wal`).
RECYCLED = {"min_wal_size": "2GB"}


def touch_buffers(stack: Stack) -> None:
    """Uses all shared buffers once, as a server has that has run for a while. The operating system
    gives a server its memory when it is first written to, which takes longer than to insert a row.
    To be called before anything is loaded."""
    with connect(stack.dba_url) as dba:
        query = "SELECT setting::int FROM pg_settings WHERE name = 'shared_buffers'"
        blocks = dba.execute(query).fetchone()[0]
        dba.execute("CREATE UNLOGGED TABLE filler (block text)")
        dba.execute("ALTER TABLE filler ALTER block SET STORAGE PLAIN")
        block = "repeat('x', 8000)"
        dba.execute(f"INSERT INTO filler SELECT {block} FROM generate_series(1, {blocks})")
        dba.execute("DROP TABLE filler")


def recycle_wal(stack: Stack) -> None:
    """To be called when all is loaded: from now on files of the WAL are those of the load, as a
    server that has run for a while uses its files again. New ones are written twice."""
    checkpoint(stack)
    with connect(stack.dba_url) as dba:
        dba.execute("SELECT pg_switch_wal()")
        dba.execute("CHECKPOINT")


def keeper_files(stack: Stack) -> int:
    """Bytes of the keeper's files, once everything that is in memory is in them."""
    checkpoint(stack)
    return size(stack.data.parent / "keeper" / "data")


def checkpoint(stack: Stack) -> None:
    """Has PostgreSQL and keeper write what they have in memory to their files."""
    with stack.connect_dba() as dba:
        dba.execute("CHECKPOINT")
        dba.execute("SELECT confide.checkpoint()")


def keeper_memory(stack: Stack) -> int:
    """Resident bytes of the keeper."""
    status = Path(f"/proc/{stack.keeper_pid()}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024
