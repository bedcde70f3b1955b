"""A cluster is restored, with its keeper's store, to a point before a mistake."""

import shutil
import signal
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from copies import Copy, backup, owned
from stack import PG_BIN, Stack
from waiting import until

TIMEOUT = 60


@contextmanager
def archive(stack, directory: Path):
    """Takes the WAL along, as an archive would."""
    directory.mkdir()
    command = [PG_BIN / "pg_receivewal", "-D", directory, "-d", stack.dba_url, "--synchronous"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield
    with stack.connect_dba() as dba:
        name = dba.execute("SELECT pg_walfile_name(pg_switch_wal())").fetchone()[0]
    until((directory / name).exists, f"{name} is archived")
    process.send_signal(signal.SIGINT)
    process.wait(TIMEOUT)


def insert(app, first: int, last: int) -> None:
    rows = f"generate_series({first}, {last}) g"
    app.execute(f"INSERT INTO point.t SELECT g, g, 'text ' || g FROM {rows}")


@pytest.fixture
def before_the_mistake(stack, open_path):
    """A backup and an archive; the point is named, and after it a table is dropped, its
    partition's place taken by others."""
    with stack.connect_app() as app, stack.connect_dba() as dba:
        app.execute("DROP SCHEMA IF EXISTS point CASCADE")
        app.execute("CREATE SCHEMA point")
        app.execute("CREATE TABLE point.t (id int PRIMARY KEY, v enc_int4, s enc_text UNIQUE)")
        app.execute("CREATE VIEW point.w AS SELECT v, v + v AS twice FROM point.t WHERE s > 'a'")
        insert(app, 1, 500)
        with archive(stack, open_path / "archive"):
            backup(stack, open_path / "backup")
            app.execute("CREATE VIEW point.later AS SELECT v + v AS twice FROM point.t")
            insert(app, 501, 900)
            app.execute("UPDATE point.t SET v = v + 1000 WHERE id <= 100")
            dba.execute("SELECT pg_create_restore_point('before the mistake')")
            app.execute("DROP TABLE point.t CASCADE")
            app.execute("CREATE TABLE point.u (id int, v enc_int4, s enc_text)")
            app.execute("INSERT INTO point.u SELECT g, -g, 'later' FROM generate_series(1, 900) g")
            dba.execute("SELECT confide.checkpoint()")
    owned("postgres", open_path / "archive")
    yield open_path
    with stack.connect_app() as app:
        app.execute("DROP SCHEMA point CASCADE")


@pytest.fixture
def restored(stack, before_the_mistake):
    settings = f"""
restore_command = 'cp {before_the_mistake}/archive/%f %p'
recovery_target_name = 'before the mistake'
recovery_target_action = 'promote'
"""
    copy = Copy(stack, "restored", before_the_mistake / "backup", settings)
    (copy.data_home / "recovery.signal").touch()
    owned("postgres", copy.data_home / "recovery.signal")
    yield copy
    copy.down("--remove")


def check(copy: Stack, rows: int) -> None:
    with copy.connect_app() as app:
        sql = "SELECT count(*), sum(v), min(s), max(s) FROM point.t"
        total = rows * (rows + 1) // 2 + 100_000
        assert app.execute(sql).fetchone() == (rows, total, "text 1", "text 99")
        # What the view does was authorised before the backup; a keeper without that refuses it.
        assert app.execute("SELECT sum(twice) FROM point.w").fetchone() == (2 * total,)
        # This was authorised between the backup and the point.
        assert app.execute("SELECT sum(twice) FROM point.later").fetchone() == (2 * total,)
        row = app.execute("SELECT id, v FROM point.t WHERE s = 'text 77'").fetchone()
        assert row == (77, 1077)
        with pytest.raises(psycopg.errors.UniqueViolation):
            app.execute("INSERT INTO point.t VALUES (-1, 1, 'text 900')")


def test_a_dropped_table_comes_back(restored):
    """Bug: the keeper stands at another point than the cluster, and values are missing or are
    those of later tables."""
    restored.accept()
    restored.up()
    check(restored, 900)
    with restored.connect_app() as app:
        insert(app, 901, 950)
    check(restored, 950)
    with restored.connect_dba() as dba:
        bad = dba.execute("SELECT sum(unresolved) FROM confide.verify('point.t')").fetchone()
        assert bad == (0,)
    # Across the timelines: the checkpoint of the backup is on the first.
    restored.kill_keeper()
    restored.up()
    check(restored, 950)


def test_the_keeper_comes_late(restored):
    """Recovery is over, and a checkpoint has removed what was replayed, before the keeper is met
    for the first time. Bug: no slot holds the WAL since the keeper's checkpoint, and the keeper
    can never be brought up to date."""
    restored.accept()
    restored.environment["CONFIDE_PGCONF"] += "confide.keeper_socket = '/nowhere/keeper.sock'\n"
    restored.environment["CONFIDE_PGCONF"] += "confide.wal_lag_warning = '1MB'\n"
    restored.environment["CONFIDE_WAIT"] = "1"
    try:
        restored.up()  # the proxy may wait for the keeper, and go on
    except AssertionError as error:
        assert "a query through the proxy" in str(error), error
    with restored.connect_dba() as dba:
        until(
            lambda: not dba.execute("SELECT pg_is_in_recovery()").fetchone()[0],
            "the cluster is promoted",
        )
        for _ in range(2):
            dba.execute("SELECT pg_switch_wal()")
            dba.execute("CHECKPOINT")
        slots = "SELECT array_agg(slot_name::text) FROM pg_replication_slots"
        assert dba.execute(slots).fetchone() == (["confide_recovery"],)
        log = restored.logs / "postgres.log"
        until(
            lambda: 'slot "confide_recovery" holds' in log.read_text(),
            "the administrator is warned of the WAL that is held",
        )
    del restored.environment["CONFIDE_WAIT"]
    restored.environment["CONFIDE_PGCONF"] += (
        f"confide.keeper_socket = '{restored.keeper_socket}'\n"
    )
    restored.up()
    check(restored, 900)
    with restored.connect_dba() as dba:
        assert dba.execute(slots).fetchone() == (["confide"],)


def test_the_store_of_another_history(stack, restored):
    """The newest store of the primary does not fit a cluster that was restored to before it.
    Bug: identifiers name what came after the point."""
    later = restored.keeper_home.parent / "later"
    backup(stack, later)
    shutil.rmtree(restored.keeper_home / "data")
    shutil.copytree(later / "keeper" / "data", restored.keeper_home / "data")
    owned("confide-keeper", restored.keeper_home)
    restored.accept()
    impatient = "-c confide.connect_timeout=200ms"
    restored.environment.update(CONFIDE_WAIT="1", PGOPTIONS=impatient)
    with suppress(AssertionError):  # PostgreSQL starts; values are another matter
        restored.up()

    def refused():
        with (
            restored.connect_dba(options=impatient) as dba,
            pytest.raises(psycopg.OperationalError) as error,  # a stalled keeper says nothing
        ):
            dba.execute("SELECT v FROM point.t LIMIT 1")
        return "has gone another way than this cluster" in str(error.value)

    until(refused, "the store is refused")
