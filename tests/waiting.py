"""Waits for states, not for fixed times: a test continues as soon as the state is reached, on slow
and fast machines alike. The limit only ends a test whose state never comes, with its name."""

import os
import signal
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from results import run

LIMIT = 600


def until(state, what, limit=LIMIT):
    """What `state` gives, once that is true. Errors of `state` are the test's."""
    end = time.monotonic() + limit
    while True:
        found = state()
        if found:
            return found
        if time.monotonic() > end:
            pytest.fail(f"not within {limit} s: {what}")
        time.sleep(0.01)


@contextmanager
def limited(connection, limit):
    """The block's statements have this statement_timeout; so has the one that takes it back."""
    connection.execute(f"SET statement_timeout = '{limit}'")
    yield
    back = "SET statement_timeout = 0"
    until(lambda: run(connection, back).sqlstate is None, "statements have no limit")


def until_waits(stack, connection, event, looks=1):
    """Until a connection's backend waits for this: a type of wait events ("Lock") or an event
    ("PgSleep"), and does so at each of so many looks. Asks on a connection of its own: the
    other one is busy."""
    pid = connection.info.backend_pid
    asked = "SELECT wait_event_type, wait_event FROM pg_stat_activity WHERE pid = %s"
    with stack.connect_dba() as dba:
        until(
            lambda: all(
                event in (dba.execute(asked, [pid]).fetchone() or ()) for _ in range(looks)
            ),
            f"the backend waits for {event}",
        )


def drop_slot(dba) -> None:
    """Drops the keeper's slot. The worker lets go of it when it notices that the keeper is gone."""

    def dropped():
        with suppress(psycopg.errors.ObjectInUse):
            dba.execute("SELECT pg_drop_replication_slot('confide')")
            return True

    until(dropped, "the slot is free")


def active(dba, pid):
    """Whether a backend works on a statement."""
    asked = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND state = 'active'"
    return dba.execute(asked, [pid]).fetchone() is not None


def worked(pid):
    """Nanoseconds that all threads of a process have run, those that have ended, too: the process's
    clock, as clock_getcpuclockid(3) names it."""
    return time.clock_gettime_ns((~pid << 3) | 2)


OTHERS = """SELECT 1 FROM pg_stat_activity WHERE state = 'active'
            AND backend_type = 'client backend' AND pid <> pg_backend_pid()"""

# What a keeper works at least before it is in the middle of something.
WORK = 30_000_000


@contextmanager
def meanwhile(state, action):
    """Does something in the background once `state` is true, while the block runs. An error of
    it is the test's."""
    errors = []

    def wait():
        try:
            until(state, "the statement runs")
            action()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    yield
    thread.join()
    if errors:
        raise errors[0]


def cancelled_while_it_sleeps(stack, connection):
    """Cancels the block's statement once a backend sleeps in pg_sleep: it need not be the one whose
    process ID the client was told."""

    def sleeps():
        with stack.connect_dba() as dba:
            asked = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
            return dba.execute(asked).fetchone() is not None

    return meanwhile(sleeps, connection.cancel)


def amid(stack, action):
    """Does something while the block's statement has the keeper work. What the keeper does by
    itself before the statement has come does not count: there would be nothing to cancel."""
    keeper = stack.keeper_pid()
    since = []

    def works():
        if since:
            return worked(keeper) - since[0] > WORK
        with stack.connect_dba() as dba:
            if dba.execute(OTHERS).fetchone():
                since.append(worked(keeper))
        return False

    return meanwhile(works, action)


def stopped(pid):
    """Whether a process stands still, with all its threads."""
    states = (task / "stat" for task in Path(f"/proc/{pid}/task").iterdir())
    return all(stat.read_text().rsplit(")", 1)[1].split()[0] == "T" for stat in states)


def stopped_backend(dba) -> int:
    """The pid of the application's backend that has stopped itself."""

    def found():
        rows = dba.execute("SELECT pid FROM pg_stat_activity WHERE usename = 'app'").fetchall()
        return [pid for (pid,) in rows if stopped(pid)]

    return until(found, "a backend has stopped")[0]


@contextmanager
def standing_still(pid):
    """Stops a process for the block. The signal alone is not enough: until its first thread
    has run again, the others go on, and a keeper still answers."""
    os.kill(pid, signal.SIGSTOP)
    try:
        until(lambda: stopped(pid), f"process {pid} stands still")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def poll_in_vain(stack, connection):
    """For the block, the connection's backend has one processor with the keeper: while it polls for
    an answer, nothing answers. So it gives up polling, and from then on wakes the keeper only for
    messages that are answered, or once much waits. (A backend that polls wakes it for each.)"""
    tasks = Path(f"/proc/{stack.keeper_pid()}/task").iterdir()
    before = {}
    try:
        for task in (connection.info.backend_pid, *(int(task.name) for task in tasks)):
            with suppress(ProcessLookupError):  # a thread that has just ended
                before[task] = os.sched_getaffinity(task)
                os.sched_setaffinity(task, {min(before[task])})
        asked = "SELECT count(*) FROM generate_series(1, 1000) g WHERE g::enc_int4 > 1"
        assert connection.execute(asked).fetchone() == (999,)
        yield
    finally:
        for task, processors in before.items():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(task, processors)
