"""Each node that works in batches, in the middle of its work: timeout, cancel, a keeper that stands
still, one that dies, too little memory. Right answer: an SQL error in time, and the session goes
on. (More of scans in test_scan_faults.py.)

Bug: a backend that waits for ever, that takes the answer to a request given up for that to a later
one, or a keeper that ends with the memory of all."""

import os
import signal
import threading
import time
from contextlib import contextmanager

import pytest
from results import run

ROWS = 6000
SOON = 4.0

SCANS = """SELECT count(*) FROM big a, LATERAL (SELECT b.n * a.n AS m FROM big b
           WHERE b.i > -1 AND b.n * a.n + b.n > 0 OFFSET 0) x WHERE x.m IS NULL"""
PARALLEL = """SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
              SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2"""

# Name: who runs it, settings, a statement that takes minutes, what its plan shows.
LONG = {
    "sequential": ("app", "", SCANS, "ConfideScan"),
    "index": ("app", "SET enable_seqscan = off; SET enable_bitmapscan = off", SCANS, "Index Scan"),
    "bitmap": ("app", "SET enable_seqscan = off; SET enable_indexscan = off", SCANS, "Bitmap"),
    "anti join": (
        "app",
        "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_material = off",
        "SELECT count(*) FROM big a, generate_series(1, 1000) g WHERE NOT EXISTS"
        " (SELECT FROM big b WHERE b.i > a.i - g AND b.n * a.n < 0)",
        "Nested Loop Anti Join",
    ),
    "parallel": (
        "app",
        PARALLEL,
        "SELECT count(*) FROM big a, LATERAL (SELECT a.n * b AS m FROM generate_series(1, 100000) b"
        " OFFSET 0) x WHERE a.n * a.n + a.n > 0 AND x.m > 0",
        "Gather",
    ),
    "aggregate": (
        "app",
        "",
        "SELECT a.i % 7, sum(a.n * b.n), max(a.s || b.s) FROM big a, big b GROUP BY 1",
        "ConfideAggregate",
    ),
    "sort": ("app", "", "SELECT a.i FROM big a, big b ORDER BY a.n * b.n", "ConfideSort"),
    "search": (
        "app",
        "SET enable_seqscan = off; SET enable_bitmapscan = off",
        "SELECT count(*) FROM big a, generate_series(1, 1000) g,"
        " LATERAL (SELECT b.i FROM big b WHERE b.n = a.n AND b.i > g - 2000 OFFSET 0) x",
        "big_n",
    ),
    "results": ("app", "", "SELECT b.n, b.s FROM big a, big b", ""),
    "create index": (
        "dba",
        "",
        "DO $$BEGIN LOOP CREATE INDEX again ON big (s); DROP INDEX again; END LOOP; END$$",
        "",
    ),
    "analyze": ("dba", "", "DO $$BEGIN LOOP ANALYZE big; END LOOP; END$$", ""),
}


@pytest.fixture(scope="module")
def filled(stack):
    stack.up()
    with stack.connect_app() as app:
        app.execute("DROP SCHEMA IF EXISTS interrupted CASCADE")
        app.execute("CREATE SCHEMA interrupted")
        app.execute("SET search_path = interrupted")
        app.execute("CREATE TABLE big (i int PRIMARY KEY, n enc_numeric(12, 1), s enc_text)")
        with app.cursor().copy("COPY big FROM STDIN") as copy:
            for i in range(ROWS):
                copy.write_row((i, i + 0.5, f"{'text ' * 20}{i}"))
        app.execute("CREATE INDEX big_n ON big (n)")
        app.execute("ANALYZE big")
    yield stack
    stack.up()
    with stack.connect_app() as app:
        app.execute("DROP SCHEMA interrupted CASCADE")


class Session:
    def __init__(self, stack, name: str):
        self.who, settings, self.query, self.shows = LONG[name]
        connect = stack.connect_dba if self.who == "dba" else stack.connect_app
        self.connection = connect(options="-c search_path=interrupted")
        for setting in settings.split(";") if settings else ():
            self.connection.execute(setting)
        if self.shows:
            plan = self.connection.execute(f"EXPLAIN {self.query}").fetchall()
            assert self.shows in "\n".join(line for (line,) in plan), plan

    def interrupted(self) -> str | None:
        """How the long statement ends."""
        began = time.monotonic()
        state = run(self.connection, self.query).sqlstate
        assert time.monotonic() - began < SOON
        return state

    def usable(self) -> None:
        self.connection.execute("RESET ALL")
        self.connection.execute("SET search_path = interrupted")
        if self.who == "app":
            query = "SELECT i, n, s FROM big WHERE n * 2 > %s ORDER BY n DESC LIMIT 2"
            rows = self.connection.execute(query % (2 * ROWS - 10)).fetchall()
            assert [row[0] for row in rows] == [ROWS - 1, ROWS - 2]
            assert rows[0][2].endswith(f" {ROWS - 1}")
            total = "SELECT sum(n) FROM big"
            assert self.connection.execute(total).fetchone() == (ROWS * ROWS / 2,)
        self.connection.execute("ANALYZE big")


@pytest.fixture(params=LONG)
def session(filled, request):
    session = Session(filled, request.param)
    yield session
    session.connection.close()


@contextmanager
def after(seconds, action):
    timer = threading.Timer(seconds, action)
    timer.start()
    yield
    timer.join()


def test_timeout_and_cancel(session):
    for timeout in (150, 333):
        session.connection.execute(f"SET statement_timeout = {timeout}")
        assert session.interrupted() == "57014"
    session.connection.execute("SET statement_timeout = 0")
    with after(0.25, session.connection.cancel):
        assert session.interrupted() == "57014"
    session.usable()


def test_keeper_stands_still(filled, session):
    pid = filled.keeper_pid()
    session.connection.execute("SET statement_timeout = 500")
    try:
        with after(0.2, lambda: os.kill(pid, signal.SIGSTOP)):
            assert session.interrupted() == "57014"
    finally:
        os.kill(pid, signal.SIGCONT)
    session.usable()


def test_keeper_dies(filled, session):
    try:
        with after(0.25, filled.kill_keeper):
            assert session.interrupted()[:2] in ("08", "57", "58")
    finally:
        filled.start_keeper()
    assert run(session.connection, "SELECT 1").rows == [("1",)]
    fresh = filled.connect_dba if session.who == "dba" else filled.connect_app
    session.connection.close()
    session.connection = fresh(options="-c search_path=interrupted")
    session.usable()


# More than a session may have, in each node.
LARGE = [
    "SELECT count(*) FROM wide WHERE s || s > s",
    "SELECT i, max(s || s) FROM wide GROUP BY i",
    "SELECT s || s, count(*) FROM wide GROUP BY 1",
    "SELECT i FROM wide ORDER BY s || s, i",
    "SELECT s || s FROM wide",
]


def test_memory(filled):
    filled.environment["CONFIDE_KEEPER_SESSION_MEMORY_LIMIT"] = "8MB"
    try:
        filled.up()
        session = Session(filled, "sequential")
        session.connection.execute("CREATE TABLE wide (i int, s enc_text)")
        with session.connection.cursor().copy("COPY wide FROM STDIN") as copy:
            for i in range(4000):
                copy.write_row((i, f"{i} " + "x" * 3000))
        session.connection.execute("SET statement_timeout = '20s'")
        states = [run(session.connection, query).sqlstate for query in LARGE]
        assert set(states) <= {None, "53200"}, states
        assert "53200" in states
        session.usable()
        session.connection.close()
    finally:
        del filled.environment["CONFIDE_KEEPER_SESSION_MEMORY_LIMIT"]
        filled.up()
