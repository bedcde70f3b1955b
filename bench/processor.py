"""Processor time that a keeper and the backends of its PostgreSQL have used.

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
from stack import Stack

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


def fields(pid: int) -> list[int]:
    """utime, stime, and those of children that were waited for (proc(5), from field 14 on)."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [int(field) for field in stat[11:15]]


def whole(stack: Stack) -> float:
    """Processor seconds of the keeper, and of all backends that have ended."""
    keeper, postmaster = fields(stack.keeper_pid()), fields(stack.postmaster_pid())
    return (sum(keeper[:2]) + sum(postmaster[2:])) / TICK


def of_run(stack: Stack, run: Callable[[], dict]) -> dict:
    """What a run of the driver gives, and the processor seconds of each of its transactions."""
    before = whole(stack)
    found = run()
    wait_for_ends(stack)
    found["processor"] = (whole(stack) - before) / max(1, found["done"])
    return found


def wait_for_ends(stack: Stack) -> None:
    """Until the application's backends have ended and the postmaster knows it."""
    with stack.connect_dba() as dba:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            asked = dba.execute("SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'")
            if asked.fetchone() == (0,):
                break
            time.sleep(PAUSE)
    settled(lambda: whole(stack))


def children(pid: int) -> list[int]:
    """The processes that it has started and that have not ended."""
    return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


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
        self.keeper, self.postmaster = stack.keeper_pid(), stack.postmaster_pid()

    def read(self) -> dict[str, float]:
        writer = writer_ms(self.keeper)
        ticks = sum(fields(self.postmaster)[2:]) + sum(fields(self.keeper)[:2])
        for pid in children(self.postmaster):
            # One that has just ended is among the postmaster's ended children.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                ticks += sum(fields(pid)[:2])
        return {"statements": ticks * 1000 / TICK - writer, "writer": writer}

    def since(self, before: dict[str, float]) -> dict[str, float]:
        return {name: spent - before[name] for name, spent in self.read().items()}
