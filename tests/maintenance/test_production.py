"""What an administrator can find out in production, in execution mode, without a clone and without
a key: HEDB's table 3, row by row, with pg_stat_statements and auto_explain loaded in addition to
Confide.

Mechanism: queries of a role that may only monitor; a template that collects statistics; plans of
slow statements in the server's log. Right: each question is answered, about the very statement that
waits or was slow, and no answer has a value. Bug: an administrator needs a superuser's login for
one of them, or reads a literal of a protected column.
"""

import threading

import psycopg
import pytest
from stack import PG_BIN, POSTGRES, ROOT, Stack
from templates import Fixes
from waiting import until

SECRET = "pr0duction secret"
LOADED = """
shared_preload_libraries = 'confide, pg_stat_statements, auto_explain'
auto_explain.log_min_duration = 0
auto_explain.log_analyze = on
auto_explain.log_verbose = on
"""
SLOW = f"SELECT count(*) FROM shop.person WHERE name LIKE '{SECRET}%' AND pay * 2 > 10"


class Production:
    """A stack in execution mode, with a session that holds a lock and one that waits for it."""

    def __init__(self, stack, folder):
        self.stack = stack
        with stack.connect_dba() as dba:
            dba.execute("CREATE EXTENSION pg_stat_statements SCHEMA public")
        self.fixes = Fixes(stack, folder)
        self.mode("execution")
        self.holder, self.waiter = stack.connect_app(), stack.connect_app()
        self.holder.execute("CREATE SCHEMA shop")
        self.holder.execute(
            "CREATE TABLE shop.person (id int PRIMARY KEY, name enc_text, pay enc_int4)"
        )
        rows = "SELECT i, %s || i::text, i FROM generate_series(1, 300) i"
        self.holder.execute(f"INSERT INTO shop.person {rows}".replace("%s", f"'{SECRET} '"))
        self.found = self.holder.execute(SLOW).fetchall()
        self.holder.execute("BEGIN")
        self.holder.execute("UPDATE shop.person SET id = id WHERE id = 1")
        change = f"UPDATE shop.person SET name = '{SECRET}' WHERE id = 1"
        self.thread = threading.Thread(target=self.waiter.execute, args=[change])

    def mode(self, to):
        where = ["--dbname", self.fixes.url, "--bindir", PG_BIN, "--log", self.fixes.log]
        done = self.fixes.run("mode", to, *where)
        assert done.returncode == 0, done.stderr

    def blocks(self):
        self.thread.start()
        pid = self.waiter.info.backend_pid
        waits = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
        until(lambda: self.ask(waits, [pid]), "the second session waits for the lock")

    def ask(self, query, parameters=None):
        """As the monitoring role, through no proxy."""
        with psycopg.connect(self.fixes.url, autocommit=True) as monitor:
            rows = monitor.execute(query, parameters).fetchall()
        assert SECRET not in str(rows)
        return rows

    def close(self):
        self.holder.execute("ROLLBACK")
        self.thread.join()
        self.holder.close()
        self.waiter.close()
        self.mode("maintenance")


@pytest.fixture(scope="module")
def production(stack, tmp_path_factory):
    made = Stack(ROOT / ".run" / f"{stack.run.name}-production", POSTGRES + LOADED)
    made.up()
    running = Production(made, tmp_path_factory.mktemp("production"))
    running.blocks()
    yield running
    running.close()
    made.down("--remove")


def test_no_superuser(production):
    with pytest.raises(psycopg.OperationalError, match="in execution mode"):
        production.stack.connect_dba()


def test_waiting_sessions(production):
    pid = production.waiter.info.backend_pid
    rows = production.ask(
        "SELECT pid, wait_event_type, wait_event, now() - query_start AS waits, query"
        " FROM pg_stat_activity WHERE wait_event IS NOT NULL AND backend_type = 'client backend'"
        " ORDER BY waits DESC"
    )
    (row,) = [row for row in rows if row[0] == pid]
    assert row[1:3] == ("Lock", "transactionid")
    assert "cfd1." in row[4]  # the literal's envelope


def test_waiting_threads(production):
    """PostgreSQL's are processes; the server's own are in the view, too."""
    rows = production.ask("SELECT backend_type, wait_event_type, wait_event FROM pg_stat_activity")
    kinds = {row[0] for row in rows}
    assert {"client backend", "checkpointer", "background writer", "walwriter"} <= kinds


def test_locks(production):
    rows = production.ask(
        "SELECT a.pid, pg_blocking_pids(a.pid), l.locktype, l.mode, l.granted"
        " FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid WHERE NOT l.granted"
    )
    ((pid, blockers, kind, _, _),) = rows
    assert pid == production.waiter.info.backend_pid
    assert blockers == [production.holder.info.backend_pid]
    assert kind == "transactionid"


def test_slow_queries(production):
    rows = production.ask(
        "SELECT query, calls, rows, total_exec_time, mean_exec_time"
        " FROM public.pg_stat_statements"
        " WHERE query LIKE '%%shop.person%%' ORDER BY total_exec_time DESC"
    )
    (slow,) = [row for row in rows if row[0].startswith("SELECT count(*)")]
    assert slow[1:3] == (1, 1)
    assert slow[3] > 0
    assert "$1" in slow[0]  # literals are no part of it


def test_plans(production):
    """auto_explain has the plan of what ran, with its times; EXPLAIN itself asks for SELECT."""
    text = production.stack.logs.joinpath("postgres.log").read_text()
    plans = [part for part in text.split("plan:\n")[1:] if "count(*)" in part.split("LOG:")[0]]
    plan = next(part.split("LOG:")[0] for part in plans if "LIKE" in part.split("LOG:")[0])
    assert "Seq Scan on shop.person" in plan
    assert "actual time=" in plan
    assert SECRET not in text
    assert production.found == [(295,)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        production.ask("EXPLAIN SELECT count(*) FROM shop.person")


def test_statistics(production):
    """ANALYZE is a template's action."""
    asked = (
        "SELECT n_live_tup, analyze_count FROM pg_stat_all_tables"
        " WHERE schemaname = 'shop' AND relname = 'person'"
    )
    production.fixes.applied('[[fix]]\naction = "analyze"\nrelation = "shop.person"\n')
    until(lambda: production.ask(asked)[0][1] == 1, "the table was analyzed")
    assert production.ask(asked)[0][0] >= 300


def test_examples(production):
    """The two queries that the table has in full."""
    rows = production.ask(
        "SELECT wait_event, wait_event_type, count(*) FROM pg_stat_activity"
        " GROUP BY wait_event, wait_event_type ORDER BY count(*) DESC"
    )
    assert ("transactionid", "Lock", 1) in rows
    open_for = (
        "SELECT count(1) FROM pg_stat_activity WHERE pid != pg_backend_pid()"
        " AND (now() - xact_start > interval '{}')"
    )
    assert production.ask(open_for.format("0 s")) >= [(2,)]
    assert production.ask(open_for.format("100 days")) == [(0,)]
