"""A store, WAL and cluster that do not belong together: nobody is served, whoever waits gets the
reason, and after the problem is fixed all values are there."""

import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from waiting import drop_slot, until

# Sessions that are to be refused need not wait for it. A keeper that does not answer in that time
# gives no reason.
IMPATIENT = "-c confide.connect_timeout=200ms"
REFUSED = (
    psycopg.errors.CannotConnectNow,
    psycopg.errors.SqlclientUnableToEstablishSqlconnection,
)


@pytest.fixture
def table(stack, app, schema):
    app.execute("CREATE TABLE t (id int, v enc_int4)")
    app.execute("INSERT INTO t VALUES (1, 42)")
    yield f"{schema}.t"
    with stack.connect_dba() as dba:
        dba.execute("ALTER SYSTEM RESET ALL")
        dba.execute("SELECT pg_reload_conf()")


def up_in_vain(stack) -> None:
    """scripts/up waits for a query through the proxy, which is not answered."""
    impatient = {"CONFIDE_WAIT": "1", "PGOPTIONS": IMPATIENT}
    stack.environment.update(impatient)
    with suppress(AssertionError):
        stack.up()
    for name in impatient:
        del stack.environment[name]


@contextmanager
def without_keeper(stack):
    """Things may be changed while the keeper is down; it is up, if it can, afterwards."""
    stack.kill_keeper()
    yield Path(stack.env["KEEPER_PID_FILE"]).parent
    up_in_vain(stack)


# What a backend may be told first: the worker has not met the keeper that was just started.
PASSING = ("brought up to date", "waits for", "could not connect")


def refusal(stack, table: str) -> str:
    """What a backend is told, once it is more than that recovery is under way."""

    def told():
        with (
            stack.connect_dba(options=IMPATIENT) as dba,
            pytest.raises(REFUSED) as error,
        ):
            dba.execute(f"SELECT v FROM {table}")
        detail = error.value.diag.message_detail or PASSING[0]
        return None if any(passing in detail for passing in PASSING) else detail

    return until(told, "there is a reason that stays")


def served(stack, table: str) -> None:
    stack.up()

    def answered():
        # However long backends wait for the recovery worker, it may be too short.
        with suppress(psycopg.errors.CannotConnectNow), stack.connect_app() as connection:
            return connection.execute(f"SELECT v FROM {table} WHERE id = 1").fetchone()

    assert until(answered, "the keeper serves") == (42,)


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


def exchange(home: Path, name: str, files=("data", "data.freshness")) -> None:
    """The keeper's files and those that stand aside under a name change places."""
    for file in files:
        (home / file).rename(home / f"{file}.between")
        (home / f"{file}.{name}").rename(home / file)
        (home / f"{file}.between").rename(home / f"{file}.{name}")


def set_aside(home: Path, name: str) -> None:
    subprocess.run(["cp", "-a", home / "data", home / f"data.{name}"], check=True)
    subprocess.run(
        ["cp", "-a", home / "data.freshness", home / f"data.freshness.{name}"], check=True
    )


def change(stack, table: str) -> None:
    """Values and WAL that an older copy does not have, and a checkpoint after them."""

    def inserted():
        # As in `served`: what was refused has had no effect.
        with suppress(psycopg.errors.CannotConnectNow), stack.connect_app() as connection:
            connection.execute(f"INSERT INTO {table} VALUES (2, 43)")
            return True

    until(inserted, "the keeper serves")
    with stack.connect_dba() as dba:
        dba.execute("SELECT confide.checkpoint()")


def test_store_and_slot_lost(stack, table):
    """Nothing but the cluster's own file knows of the store. Bug: the keeper begins anew, and
    identifiers in tables name other values."""
    change(stack, table)
    with without_keeper(stack) as home:
        with stack.connect_dba() as dba:
            drop_slot(dba)
        for file in ("data", "data.freshness"):
            (home / file).rename(home / f"{file}.away")
    assert "but this cluster has protected values" in refusal(stack, table)
    with without_keeper(stack) as home:
        subprocess.run(["rm", "-rf", home / "data", home / "data.freshness"], check=True)
        for file in ("data", "data.freshness"):
            (home / f"{file}.away").rename(home / file)
    served(stack, table)


def test_older_store(stack, table):
    with without_keeper(stack) as home:
        set_aside(home, "older")
    change(stack, table)
    with without_keeper(stack) as home:
        exchange(home, "older")
    assert "is an older copy" in refusal(stack, table)
    with without_keeper(stack) as home:
        exchange(home, "older")
        subprocess.run(
            ["rm", "-rf", home / "data.older", home / "data.freshness.older"], check=True
        )
    served(stack, table)


def test_newer_store(stack, table):
    """The cluster is an older copy of itself."""
    data = stack.data
    older = data.with_name("pgdata.older")
    stack.down()
    subprocess.run(["cp", "-a", data, older], check=True)
    stack.up()
    change(stack, table)
    stack.down()
    data.rename(data.with_name("pgdata.newer"))
    older.rename(data)
    up_in_vain(stack)
    assert "is newer than this cluster" in refusal(stack, table)
    stack.down()
    data.rename(older)
    data.with_name("pgdata.newer").rename(data)
    subprocess.run(["rm", "-rf", older], check=True)
    served(stack, table)


def test_another_store(stack, table):
    """A keeper that serves, but another cluster's values. Bug: backends use it meanwhile."""
    change(stack, table)
    marker = stack.data / "confide.store"
    ours = marker.read_text()
    marker.write_text("confide store 00000000deadbeef\n")
    with without_keeper(stack):
        pass
    assert "is not that of this cluster" in refusal(stack, table)
    marker.write_text(ours)
    served(stack, table)


def test_another_store_that_serves(stack, table):
    """The keeper was not restarted, and serves whoever asks. Bug: backends ask before the recovery
    worker has looked whose it is."""
    change(stack, table)
    # No record is replayed then, else backends wait for the worker anyway, as at a standby.
    with stack.connect_dba() as dba:
        dba.execute("CHECKPOINT")
    marker = stack.data / "confide.store"
    ours = marker.read_text()
    marker.write_text("confide store 00000000deadbeef\n")
    stack.kill_postgres()
    up_in_vain(stack)
    assert "is not that of this cluster" in refusal(stack, table)
    marker.write_text(ours)
    served(stack, table)


def test_no_store(stack, table):
    """A keeper that keeps values in memory only, for a cluster that has some. Bug: it gives out
    identifiers that pages hold already."""
    stack.environment["CONFIDE_KEEPER_DATA_DIR"] = ""
    try:
        with without_keeper(stack):
            pass
        assert "has no store" in refusal(stack, table)
    finally:
        del stack.environment["CONFIDE_KEEPER_DATA_DIR"]
    served(stack, table)


def test_damaged_marker(stack, table):
    change(stack, table)
    marker = stack.data / "confide.store"
    ours = marker.read_text()
    try:
        for damaged in ("", ours[:20], ours.replace(" store ", " stores ")):
            marker.write_text(damaged)
            with without_keeper(stack):
                pass
            assert '"confide.store" of the cluster is damaged' in refusal(stack, table), damaged
    finally:
        marker.write_text(ours)
    served(stack, table)


def test_wal_damaged(stack, table):
    """A byte of a record that the keeper needs is another. Bug: it serves without what came
    after."""
    with stack.connect_dba() as dba, stack.connect_app() as app:
        dba.execute("SELECT confide.checkpoint()")
        app.execute(f"INSERT INTO {table} VALUES (3, 44)")
        sql = """SELECT file_name, file_offset
                 FROM pg_walfile_name_offset(pg_current_wal_insert_lsn())"""
        name, end = dba.execute(sql).fetchone()
        dba.execute("SELECT pg_switch_wal()")
    segment = stack.data / "pg_wal" / name
    good = segment.read_bytes()
    bad = bytearray(good)
    bad[end - 16] ^= 1  # of the commit, after the value's record
    with without_keeper(stack):
        segment.write_bytes(bad)
    assert "could not read the WAL at" in refusal(stack, table)
    segment.write_bytes(good)
    served(stack, table)
    with stack.connect_app() as app:
        assert app.execute(f"SELECT v FROM {table} WHERE id = 3").fetchone() == (44,)


def test_lag_is_shown_and_warned_of(stack, table):
    with stack.connect_dba() as dba:
        dba.execute("ALTER SYSTEM SET confide.wal_lag_warning = '1MB'")
        dba.execute("SELECT pg_reload_conf(), confide.checkpoint()")
        stack.kill_keeper()
        dba.execute(
            "CREATE TABLE public.filler AS SELECT repeat('x', 1000) FROM generate_series(1, 4000)"
        )
        dba.execute("DROP TABLE public.filler")

        def not_serving():
            sql = """SELECT wal_bytes, reason, slot_status FROM confide.confide_stat_recovery
                     WHERE state = 'not serving'"""
            return dba.execute(sql).fetchone()

        behind, reason, slot = until(not_serving, "the worker has met the keeper's end")
        assert (behind > 2**20, slot) == (True, "reserved"), behind
        assert "could not connect" in reason
        log = stack.logs / "postgres.log"
        warning = "of WAL for Confide's keeper"
        until(lambda: warning in log.read_text(errors="replace"), "the warning")
    served(stack, table)
    with stack.connect_dba() as dba:
        row = dba.execute("SELECT state, reason FROM confide.confide_stat_recovery").fetchone()
        assert row == ("serving", None)
