"""MODE=software: PostgreSQL and proxy without a keeper.

Mechanism: the extension has no keeper socket, and the proxy no keeper key. Right: the family soft_
works, and the other families are refused immediately. Bug: something waits for a keeper.
"""

import psycopg
import pytest
from stack import ROOT, Stack, free_port


@pytest.fixture(scope="module")
def alone():
    stack = Stack(ROOT / ".run" / f"software-{free_port()}")
    stack.environment["MODE"] = "software"
    stack.environment["CONFIDE_WAIT"] = "30"
    try:
        stack.up()
        yield stack
    finally:
        stack.down("--remove")


def test_soft_columns(alone):
    with alone.connect_app() as app:
        app.execute("CREATE TABLE t (id int PRIMARY KEY, name soft_text, pay soft_int4)")
        app.execute("INSERT INTO t VALUES (1, 'Ann', 5), (2, 'Bob', -7), (3, %s, %s)", ("Ann", 9))
        app.execute("CREATE INDEX ON t (pay)")
        app.execute("VACUUM ANALYZE t")
        got = app.execute("SELECT id FROM t WHERE name = 'Ann' ORDER BY pay DESC").fetchall()
        assert got == [(3,), (1,)]
        assert app.execute("SELECT sum(pay), max(pay) FROM t").fetchall() == [(7, 9)]
    assert not (alone.data.parent / "keeper" / "pid").exists()
    assert "no session with the keeper" not in (alone.logs / "proxy.log").read_text()


@pytest.mark.parametrize("family", ["enc", "rnd"])
def test_the_other_families_are_refused(alone, family):
    """By the proxy, which has no keeper's key, and by the server."""
    with alone.connect_app() as app, pytest.raises(psycopg.Error) as error:
        app.execute(f"CREATE TABLE {family} (x {family}_int4)")
        app.execute(f"INSERT INTO {family} VALUES (1)")
    assert error.value.sqlstate == "0A000"
    assert "keeper" in str(error.value)
    with alone.connect_dba() as dba, pytest.raises(psycopg.Error) as error:
        dba.execute(f"CREATE TABLE {family}_too (x {family}_int4)")
        dba.execute(f"INSERT INTO {family}_too VALUES (1::{family}_int4)")
    assert error.value.sqlstate in ("0A000", "42501")
