"""MODE=software: PostgreSQL and proxy without a keeper.

Mechanism: the extension has no keeper socket, and the proxy no keeper key. Right: the family soft_
works, no keeper runs, and the other families are refused immediately. Bug: something starts a
keeper, or waits for one.
"""

from pathlib import Path

import psycopg
import pytest


def programs(stack) -> set[str]:
    """Names of this stack's running programs."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(str(stack.data.parent).encode() in word for word in words):
            found.add(Path(words[0].decode(errors="replace")).name)
    return found


def test_no_keeper_runs(stack):
    """Nor has one run, and PostgreSQL looks for none, also not when it starts and recovers."""
    # Other tests ask for what needs a keeper.
    before = len((stack.logs / "postgres.log").read_text())
    for _ in range(2):
        with stack.connect_app() as app:
            app.execute("CREATE TABLE IF NOT EXISTS kept (pay soft_int4)")
            app.execute("INSERT INTO kept VALUES (5)")
        assert "confide-proxy" in programs(stack)
        assert "confide-keeper" not in programs(stack)
        stack.kill_postgres()
        stack.up()
    with stack.connect_app() as app:
        assert app.execute("SELECT pay FROM kept").fetchall() == [(5,), (5,)]
    keeper = stack.data.parent / "keeper"
    assert list(keeper.iterdir()) == []
    assert (stack.logs / "keeper.log").read_text() == ""
    assert "keeper" not in (stack.logs / "postgres.log").read_text()[before:]


def test_soft_columns(stack):
    with stack.connect_app() as app:
        app.execute("CREATE TABLE t (id int PRIMARY KEY, name soft_text, pay soft_int4)")
        app.execute("INSERT INTO t VALUES (1, 'Ann', 5), (2, 'Bob', -7), (3, %s, %s)", ("Ann", 9))
        app.execute("CREATE INDEX ON t (pay)")
        app.execute("VACUUM ANALYZE t")
        got = app.execute("SELECT id FROM t WHERE name = 'Ann' ORDER BY pay DESC").fetchall()
        assert got == [(3,), (1,)]
        assert app.execute("SELECT sum(pay), max(pay) FROM t").fetchall() == [(7, 9)]
    assert "no session with the keeper" not in (stack.logs / "proxy.log").read_text()


@pytest.mark.parametrize("family", ["enc", "rnd"])
def test_the_other_families_are_refused(stack, family):
    """By the proxy, which has no keeper's key, and by the server."""
    with stack.connect_app() as app, pytest.raises(psycopg.Error) as error:
        app.execute(f"CREATE TABLE {family} (x {family}_int4)")
        app.execute(f"INSERT INTO {family} VALUES (1)")
    assert error.value.sqlstate == "0A000"
    assert "keeper" in str(error.value)
    with stack.connect_dba() as dba, pytest.raises(psycopg.Error) as error:
        dba.execute(f"CREATE TABLE {family}_too (x {family}_int4)")
        dba.execute(f"INSERT INTO {family}_too VALUES (1::{family}_int4)")
    assert error.value.sqlstate in ("0A000", "42501")
