"""Crashes during garbage collection: slots are swept and reused, and keeper or PostgreSQL or both
are killed at any moment. Right: every row has its own values and every identifier resolves.

Bugs: a slot that is reused before its sweep is in the WAL loses its new value; a value that is
freed before its sweep is on disk is missing when PostgreSQL loses the deletion.
"""

import contextlib
import os
import random
import signal
import threading
import time
from pathlib import Path

import psycopg
import pytest
from garbage import SECONDS, SEED, Worker, collect, slots, sound, vacuum
from stack import children


class Churn(Worker):
    """Goes on after lost connections; knows nothing of what was committed: each row tells itself
    whether it is whole."""

    def __init__(self, stack, schema, number, stop):
        super().__init__(stack, schema, number, stop)
        self.stack, self.schema = stack, schema

    def run(self):
        while not self.stop.is_set():
            try:
                self.step()
                self.steps += 1
            except psycopg.Error:
                with contextlib.suppress(psycopg.Error):
                    self.connection.close()
                with contextlib.suppress(psycopg.Error):
                    options = f"-c search_path={self.schema} -c synchronous_commit=off"
                    self.connection = self.stack.connect_app(options=options)
                time.sleep(0.05)
            except AssertionError as error:
                self.error = error
                return


class Collector(threading.Thread):
    def __init__(self, stack, schema, stop):
        super().__init__()
        self.stack, self.schema, self.stop, self.swept = stack, schema, stop, 0

    def run(self):
        while not self.stop.is_set():
            try:
                with self.stack.connect_dba(options=f"-c search_path={self.schema}") as dba:
                    dba.execute("SET confide.gc = off")
                    while not self.stop.is_set():
                        dba.execute("VACUUM t")
                        self.swept += dba.execute("SELECT swept FROM confide.gc('t')").fetchone()[0]
            except psycopg.Error:
                time.sleep(0.05)


@pytest.fixture
def eager(stack):
    with stack.connect_dba() as dba:
        dba.execute("ALTER SYSTEM SET confide.checkpoint_interval = '1s'")
        dba.execute("SELECT pg_reload_conf()")
    yield
    stack.up()
    with stack.connect_dba() as dba:
        dba.execute("ALTER SYSTEM RESET ALL")
        dba.execute("SELECT pg_reload_conf()")


def test_crashes_during_collections(stack, app, schema, eager):
    app.execute("CREATE TABLE t (id int PRIMARY KEY, p int, v enc_int4, s enc_text, filler text)")
    app.execute("CREATE INDEX t_v ON t (v)")
    app.close()
    chance = random.Random(f"{SEED}/garbage")
    until = time.monotonic() + 2 * SECONDS
    cycle = swept = steps = 0
    while cycle < 3 or swept == 0 or time.monotonic() < until:
        what = ["postgres", "keeper", "both"][cycle % 3]
        cycle += 1
        stop = threading.Event()
        workers = [Churn(stack, schema, n, stop) for n in range(3)]
        collector = Collector(stack, schema, stop)
        for thread in [*workers, collector]:
            thread.start()
        time.sleep(chance.uniform(1, 3))
        if what != "postgres":
            stack.kill_keeper()
        if what != "keeper":
            stack.kill_postgres()
        stop.set()
        for thread in [*workers, collector]:
            thread.join()
        assert [w.error for w in workers if w.error] == []
        stack.up()
        swept += collector.swept
        steps += sum(w.steps for w in workers)
        with stack.connect_dba(options=f"-c search_path={schema}") as dba:
            for (name,) in dba.execute("SELECT gid FROM pg_prepared_xacts").fetchall():
                dba.execute(f"ROLLBACK PREPARED '{name}'")
            sound(dba)
        with stack.connect_app(options=f"-c search_path={schema}") as connection:
            rows = connection.execute("SELECT p, v, s FROM t").fetchall()
            assert all(v == p and s == str(p) for p, v, s in rows), (SEED, cycle, what)
            connection.execute("SET enable_seqscan = off")
            ordered = connection.execute("SELECT v FROM t ORDER BY v").fetchall()
            assert ordered == sorted((v,) for _, v, _ in rows), (SEED, cycle, what)
    print(f"seed {SEED}: {cycle} crashes, {steps} steps, {swept} values swept")


def test_sweeps_survive(stack, app, dba, schema):
    """The keeper's checkpoint still has values that were swept since. Bug: after a restart they
    are back, and nobody comes for them."""
    app.execute("CREATE TABLE t (id int, v enc_int4) WITH (autovacuum_enabled = off)")
    app.execute("INSERT INTO t SELECT g, g FROM generate_series(1, 1000) g")
    dba.execute("SELECT confide.checkpoint()")
    app.execute("DELETE FROM t WHERE id > 3")
    dba.execute("SET confide.gc = off")
    vacuum(dba)
    assert collect(dba) == 997
    stack.kill_keeper()
    stack.up()
    with stack.connect_app(options=f"-c search_path={schema}") as connection:
        assert connection.execute("SELECT v FROM t ORDER BY v").fetchall() == [(1,), (2,), (3,)]
    with stack.connect_dba(options=f"-c search_path={schema}") as connection:
        assert slots(connection) == 3


def stop_writers(stack) -> None:
    """From now on nobody but whoever waits for it writes WAL."""
    for pid in children(stack.postmaster_pid()):
        title = Path(f"/proc/{pid}/cmdline").read_bytes()
        if any(name in title for name in (b"walwriter", b"background writer", b"checkpointer")):
            os.kill(pid, signal.SIGSTOP)


def test_a_delete_that_is_lost(stack, app, dba, schema):
    """Rows are deleted by a transaction that does not wait for the disk, and their values are
    collected. Then PostgreSQL dies alone. Bug: the delete is lost, the rows are back, and the
    keeper has forgotten their values."""
    app.execute("CREATE TABLE t (id int, v enc_int4) WITH (autovacuum_enabled = off)")
    app.execute("INSERT INTO t SELECT g, g FROM generate_series(1, 50) g")
    stop_writers(stack)
    for statement in ("SET synchronous_commit = off", "SET confide.gc = off"):
        dba.execute(statement)
    dba.execute("DELETE FROM t WHERE id < 50")
    vacuum(dba, options="VERBOSE, TRUNCATE off")
    assert collect(dba) == 49
    stack.kill_postgres()
    stack.up()
    app.close()
    options = f"-c search_path={schema} -c statement_timeout=300s"
    with stack.connect_dba(options=options) as connection:
        sound(connection)
    with stack.connect_app(options=options) as connection:
        assert connection.execute("SELECT id, v FROM t").fetchall() == [(50, 50)]
