"""A keeper that stands still while a backend compares keys on a page of a B-tree: whoever else
wants the page waits for it, and PostgreSQL lets nobody cancel under a page's lock.

Mechanism: a wait for the keeper under such a lock heeds cancel and statement_timeout itself, and
ends after `confide.locked_timeout`. Right: 57014, or 08006. With the bug the backend hangs for as
long as the keeper stands still, and cannot be cancelled, nor can those behind it.
"""

import os
import signal
import threading
import time

import psycopg
import pytest

PATIENCE = 60.0


@pytest.fixture
def searcher(app):
    """A connection that has prepared an index scan which compares key by key."""
    app.execute("CREATE TABLE keyed (k enc_int4 PRIMARY KEY, n int)")
    app.execute("INSERT INTO keyed SELECT g, g FROM generate_series(1, 50) g")
    app.execute("SET enable_seqscan = off")
    app.execute("SET enable_bitmapscan = off")
    app.execute("SET confide.enable_index_search = off")
    app.execute("SET plan_cache_mode = force_generic_plan")
    app.execute("PREPARE look AS SELECT n FROM keyed WHERE k = 7")
    assert app.execute("EXECUTE look").fetchall() == [(7,)]
    return app


class Search(threading.Thread):
    """Runs the search in the background."""

    def __init__(self, connection):
        super().__init__(daemon=True)
        self.connection = connection
        self.sqlstate = None

    def run(self):
        try:
            self.connection.execute("EXECUTE look")
        except psycopg.Error as error:
            self.sqlstate = error.sqlstate


def waits(dba, pid):
    sql = "SELECT wait_event_type FROM pg_stat_activity WHERE pid = %s AND state = 'active'"
    until = time.monotonic() + PATIENCE
    while dba.execute(sql, (pid,)).fetchone() != ("Extension",):
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize("way", ["cancel", "timeout"])
def test_page_lock(stack, searcher, dba, attack, way):
    keeper = stack.keeper_pid()
    (pid,) = dba.execute(
        "SELECT pid FROM pg_stat_activity WHERE query LIKE '%EXECUTE look%' AND usename = 'app'"
    ).fetchone()
    if way == "timeout":
        dba.execute("ALTER SYSTEM SET confide.locked_timeout = '500ms'")
        dba.execute("SELECT pg_reload_conf()")
    os.kill(keeper, signal.SIGSTOP)
    search = Search(searcher)
    try:
        search.start()
        if way == "cancel":
            waits(dba, pid)
            dba.execute("SELECT pg_cancel_backend(%s)", (pid,))
        search.join(PATIENCE if way == "timeout" else 15.0)
        hangs = search.is_alive()
    finally:
        os.kill(keeper, signal.SIGCONT)
        dba.execute("ALTER SYSTEM RESET confide.locked_timeout")
        dba.execute("SELECT pg_reload_conf()")
    search.join(PATIENCE)
    attack.attempt(f"a backend hangs under a page's lock, {way}", hangs)
    assert search.sqlstate == {"cancel": "57014", "timeout": "08006"}[way]
    assert searcher.execute("EXECUTE look").fetchall() == [(7,)]
