"""A keeper that stops responding while a backend compares keys on a page of a B-tree. Others wait
for the page, and PostgreSQL cannot cancel a backend that holds or awaits a page's lock.

Mechanism: a wait for the keeper under such a lock checks for cancel and statement_timeout itself,
and ends after `confide.locked_timeout`. Right: 57014, or 08006. Bug: the backend hangs as long as
the keeper does, and neither it nor those that wait for it can be cancelled.
"""

import threading

import psycopg
import pytest
from waiting import standing_still, until, until_waits

pytestmark = pytest.mark.ten(10)

PATIENCE = 600


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


@pytest.mark.parametrize("way", ["cancel", "timeout"])
def test_page_lock(stack, searcher, dba, attack, way):
    if way == "timeout":
        dba.execute("ALTER SYSTEM SET confide.locked_timeout = '500ms'")
        dba.execute("SELECT pg_reload_conf()")
    search = Search(searcher)
    try:
        with standing_still(stack.keeper_pid()):
            search.start()
            if way == "cancel":
                until_waits(stack, searcher, "Extension")
                dba.execute("SELECT pg_cancel_backend(%s)", (searcher.info.backend_pid,))
            search.join(PATIENCE)
            hangs = search.is_alive()
    finally:
        dba.execute("ALTER SYSTEM RESET confide.locked_timeout")
        dba.execute("SELECT pg_reload_conf()")
    search.join()
    shown = "SHOW confide.locked_timeout"
    until(lambda: searcher.execute(shown).fetchone() == ("30s",), "the setting is read")
    attack.attempt(f"a backend hangs under a page's lock, {way}", hangs)
    assert search.sqlstate == {"cancel": "57014", "timeout": "08006"}[way]
    assert searcher.execute("EXECUTE look").fetchall() == [(7,)]
