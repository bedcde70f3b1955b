"""A store, a WAL and a cluster that do not belong together: nobody is served, the reason is
named to whoever waits, and once things are right again all values are there."""

import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

TIMEOUT = 20


@pytest.fixture
def table(stack, app, schema):
    app.execute("CREATE TABLE t (id int, v enc_int4)")
    app.execute("INSERT INTO t VALUES (1, 42)")
    with stack.connect_dba() as dba:
        dba.execute("ALTER SYSTEM SET confide.connect_timeout = '200ms'")
        dba.execute("SELECT pg_reload_conf()")
    yield f"{schema}.t"
    with stack.connect_dba() as dba:
        dba.execute("ALTER SYSTEM RESET ALL")
        dba.execute("SELECT pg_reload_conf()")


@contextmanager
def without_keeper(stack):
    """Things may be changed while the keeper is down; it is up, if it can, afterwards."""
    stack.kill_keeper()
    yield Path(stack.env["KEEPER_PID_FILE"]).parent
    with suppress(AssertionError):  # scripts/up waits for a query through the proxy
        stack.up()


def refusal(stack, table: str) -> str:
    """What a backend is told, once it is more than that recovery is under way."""
    until = time.monotonic() + TIMEOUT
    while True:
        with stack.connect_dba() as dba, pytest.raises(psycopg.errors.CannotConnectNow) as error:
            dba.execute(f"SELECT v FROM {table}")
        detail = error.value.diag.message_detail
        if "brought up to date" not in detail and "waits for" not in detail:
            return detail
        assert time.monotonic() < until, detail
        time.sleep(0.1)


def served(stack, table: str) -> None:
    stack.up()
    with stack.connect_app() as connection:
        assert connection.execute(f"SELECT v FROM {table} WHERE id = 1").fetchone() == (42,)


def test_store_lost(stack, table):
    with without_keeper(stack) as home:
        (home / "data").rename(home / "away")
        (home / "data.freshness").rename(home / "away.freshness")
    assert "slot" in refusal(stack, table)
    with without_keeper(stack):
        for path in (home / "data").iterdir():
            path.unlink()
        (home / "data").rmdir()
        (home / "away").rename(home / "data")
        (home / "away.freshness").rename(home / "data.freshness")
    served(stack, table)


def test_wal_lost(stack, table):
    with stack.connect_dba() as dba:
        for _ in range(2):
            dba.execute("CREATE TABLE IF NOT EXISTS public.filler (i int)")
            dba.execute("INSERT INTO public.filler VALUES (1)")
            dba.execute("SELECT pg_switch_wal()")
        sql = """SELECT pg_walfile_name(restart_lsn), pg_walfile_name(pg_current_wal_lsn())
                 FROM pg_replication_slots WHERE slot_name = 'confide'"""
        first, current = dba.execute(sql).fetchone()
        dba.execute("DROP TABLE public.filler")
    assert first != current
    segment = stack.data / "pg_wal" / first
    with without_keeper(stack) as home:
        segment.rename(home / first)
    assert first in refusal(stack, table)
    (home / first).rename(segment)
    served(stack, table)
