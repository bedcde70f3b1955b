"""Processor time that a keeper and its PostgreSQL have used.

Of a statement: nanoseconds of the scheduler, task by task. Of a run with connections of its own:
what the system counts for whole processes, those that have ended among them, in steps of its
clock, so that a run must take seconds. A backend or channel that polls while it waits counts, too.

Not here: what the time is compared with. A busy machine moves these figures less than a clock on
the wall, but not by nothing: caches and the processor's own clock are shared.
"""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
from stack import Stack, children

TICK = os.sysconf("SC_CLK_TCK")
# How often it is asked whether those that spin for a while have gone to sleep.
LOOKS = 100
PAUSE = 0.002


def nanoseconds(pid: int) -> int:
    """Of all tasks of a process that have not ended."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total


def settled(read: Callable[[], float]) -> float:
    """A figure once it stands still: a task's is exact when it sleeps."""
    before = read()
    for _ in range(LOOKS):
        time.sleep(PAUSE)
        now = read()
        if now == before:
            break
        before = now
    return before


class Statements:
    """Processor seconds of the statements of one connection."""

    def __init__(self, stack: Stack, connection: psycopg.Connection):
        row = connection.execute("SELECT pg_backend_pid()").fetchone()
        self.pids = [stack.keeper_pid(), row[0]]

    def seconds(self) -> float:
        """Used so far, by keeper and backend."""
        return settled(lambda: sum(nanoseconds(pid) for pid in self.pids)) / 1e9


def of_process(pid: int, with_ended: bool = False) -> float:
    """Seconds that a process has used; with those of its children that ended."""
    # utime, stime, and those of children that were waited for: proc(5), from field 14 on.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(n) for n in fields[11 : 15 if with_ended else 13]) / TICK


def of_stack(stack: Stack, *more: int) -> float:
    """Seconds that PostgreSQL with all its processes, the keeper, and the processes of these
    numbers have used."""
    postmaster = stack.postmaster_pid()
    spent = of_process(postmaster, with_ended=True)
    for pid in [*children(postmaster), stack.keeper_pid(), *more]:
        # A process that ends meanwhile is not counted yet; the next reading has it.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            spent += of_process(pid)
    return spent


def of_stack_alone(stack: Stack, dba: psycopg.Connection) -> float:
    """The same, once no client but this one is connected any more."""
    others = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    until = time.monotonic() + 30
    while dba.execute(others).fetchone()[0] > 0:
        if time.monotonic() > until:
            raise RuntimeError("clients stay connected")
        time.sleep(PAUSE)
    return settled(lambda: of_stack(stack))


def of_run(stack: Stack, run: Callable[[], dict]) -> dict:
    """What a run of the driver gives, and the processor seconds of each of its transactions."""
    with stack.connect_dba() as dba:
        before = of_stack_alone(stack, dba)
        found = run()
        found["processor"] = (of_stack_alone(stack, dba) - before) / max(1, found["done"])
    return found


def writer_ms(keeper: int) -> float:
    """Milliseconds of the keeper's thread that writes recordings."""
    for task in Path(f"/proc/{keeper}/task").iterdir():
        try:
            if (task / "comm").read_text().strip() == "recorder":
                return float((task / "schedstat").read_text().split()[0]) / 1e6
        except (FileNotFoundError, ProcessLookupError):
            continue
    return 0.0


class Processor:
    """Milliseconds that PostgreSQL and the keeper had the processor: for statements, and to write
    recordings."""

    def __init__(self, stack: Stack):
        self.stack = stack

    def read(self) -> dict[str, float]:
        writer = writer_ms(self.stack.keeper_pid())
        return {"statements": of_stack(self.stack) * 1000 - writer, "writer": writer}

    def since(self, before: dict[str, float]) -> dict[str, float]:
        return {name: spent - before[name] for name, spent in self.read().items()}
