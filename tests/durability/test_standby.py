"""A standby with its own keeper: it answers queries on protected columns while it follows, and
continues alone after the primary and its keeper were killed."""

from pathlib import Path

import psycopg
import pytest
import tpch_data
from copies import Copy, backup
from delivered import warm
from garbage import vacuumed
from results import run
from waiting import until

SCALE = 0.01


@pytest.fixture(scope="module")
def primary(stack):
    """A stack of its own, since it is killed in the end."""
    with stack.connect_app() as app:
        app.execute("DROP SCHEMA IF EXISTS replica CASCADE")
        app.execute("CREATE SCHEMA replica")
        app.execute("CREATE TABLE replica.early (id int PRIMARY KEY, v enc_text)")
        app.execute("INSERT INTO replica.early SELECT g, g::text FROM generate_series(1, 100) g")
    return stack


@pytest.fixture(scope="module")
def replica(primary, tmp_path_factory):
    directory = tmp_path_factory.mktemp("backup") / "standby"
    backup(primary, directory, "--write-recovery-conf")
    copy = Copy(primary, "replica", directory)
    try:
        yield copy
    finally:
        copy.down("--remove")


def caught_up(primary, replica) -> None:
    with primary.connect_dba() as one, replica.connect_dba() as other:
        end = one.execute("SELECT pg_current_wal_lsn()").fetchone()[0]
        replayed = "SELECT pg_last_wal_replay_lsn() >= %s"
        until(lambda: other.execute(replayed, (end,)).fetchone()[0], "the standby catches up")


def test_not_without_an_operator(primary, replica):
    """A restored store is not the newest before somebody says so."""
    with pytest.raises(AssertionError) as error:
        replica.up()
    log = (Path(replica.keeper_home).parent / "log" / "keeper.log").read_text()
    assert "manifest" in log, (error.value, log)
    assert "is now the newest" in replica.accept()
    replica.up()
    row = ("", None)
    with replica.connect_dba() as dba:
        row = dba.execute("SELECT state, reason FROM confide.confide_stat_recovery").fetchone()
    assert row == ("following", None)


def test_follows(primary, replica):
    """Rows that are written while the standby is asked. Bug: an identifier on a replayed page
    names nothing yet in the standby's keeper."""
    with primary.connect_app() as one, replica.connect_app() as other:
        one.execute("CREATE TABLE replica.late (id int PRIMARY KEY, v enc_int4, s enc_text)")
        one.execute("CREATE INDEX ON replica.late (v)")
        caught_up(primary, replica)
        query = "SELECT count(*), coalesce(sum(v), 0), count(s) FROM replica.late"
        for n in range(150):
            rows = f"generate_series({n * 20 + 1}, {n * 20 + 20}) g"
            one.execute(f"INSERT INTO replica.late SELECT g, g, 'x' || g FROM {rows}")
            count, total, texts = other.execute(query).fetchone()
            assert total == count * (count + 1) // 2
            assert texts == count
        caught_up(primary, replica)
        assert other.execute(query).fetchone() == one.execute(query).fetchone()
        found = other.execute("SELECT id FROM replica.late WHERE v = 2999").fetchall()
        assert found == [(2999,)]
        assert other.execute("SELECT count(*) FROM replica.early").fetchone() == (100,)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            other.execute("INSERT INTO replica.late VALUES (-1, 1, 'x')")
    with replica.connect_dba() as dba:
        position = dba.execute("SELECT confide.checkpoint()").fetchone()[0]
    replica.kill_keeper()
    replica.up()
    with replica.connect_app() as other, primary.connect_app() as one:
        assert other.execute(query).fetchone() == one.execute(query).fetchone()
    with replica.connect_dba() as dba:
        sql = "SELECT state, checkpoint_lsn FROM confide.confide_stat_recovery"
        assert dba.execute(sql).fetchone() == ("following", position)


def test_held_cursor(primary, replica):
    """A standby's cursor WITH HOLD has identifiers of rows that the primary deletes and collects.
    Right answer: what can still be read, then an error of the kind that says "again"."""
    with primary.connect_app() as one, primary.connect_dba() as dba, replica.connect_app() as other:
        one.execute(
            "CREATE TABLE replica.held (id int, v enc_int4) WITH (autovacuum_enabled = off)"
        )
        one.execute("INSERT INTO replica.held SELECT g, g FROM generate_series(1, 100) g")
        caught_up(primary, replica)
        other.execute("BEGIN")
        other.execute("DECLARE c CURSOR WITH HOLD FOR SELECT v FROM replica.held ORDER BY id")
        other.execute("COMMIT")
        assert other.execute("FETCH 2 FROM c").fetchall() == [(1,), (2,)]
        one.execute("DELETE FROM replica.held WHERE id % 10 > 0")
        assert vacuumed(dba, "replica.held", 90) == 90
        caught_up(primary, replica)
        with pytest.raises(psycopg.errors.SerializationFailure) as error:
            other.execute("FETCH ALL FROM c")
        assert "Run the query again" in error.value.diag.message_hint
        other.execute("CLOSE c")
        found = other.execute("SELECT v FROM replica.held ORDER BY id").fetchall()
        assert found == [(10 * g,) for g in range(1, 11)]
        one.execute("DROP TABLE replica.held")


def test_freed_identifiers(primary, replica):
    """What the standby keeps of values, of rows that the primary deletes and collects, and whose
    identifiers it gives to others. Bug: the standby shows the old values for the new rows."""
    query = "SELECT v, s FROM replica.kept WHERE id = {}"
    with primary.connect_app() as one, primary.connect_dba() as dba, replica.connect_app() as other:
        dba.execute("GRANT pg_monitor TO app")
        columns = "id int PRIMARY KEY, v enc_int4, s enc_text"
        one.execute(f"CREATE TABLE replica.kept ({columns}) WITH (autovacuum_enabled = off)")
        one.execute("INSERT INTO replica.kept SELECT g, g, 's' || g FROM generate_series(1, 60) g")
        caught_up(primary, replica)
        for turn in range(1, 4):
            for i in range(1, 61):
                warm(other, query.format(i), [(i * turn, f"s{i * turn}")])
            one.execute("DELETE FROM replica.kept")
            vacuumed(dba, "replica.kept", 60)
            dba.execute("SELECT confide.checkpoint()")  # only now are they given out again
            rows = f"generate_series(60, 1, -1) g ORDER BY g * {turn + 6} % 61"
            new = turn + 1
            one.execute(
                f"INSERT INTO replica.kept SELECT g, g * {new}, 's' || g * {new} FROM {rows}"
            )
            caught_up(primary, replica)
            for i in range(1, 61):
                assert other.execute(query.format(i)).fetchall() == [(i * new, f"s{i * new}")]
        one.execute("DROP TABLE replica.kept")
        dba.execute("REVOKE pg_monitor FROM app")
        caught_up(primary, replica)


def test_tpch(primary, replica):
    with primary.connect_app() as one, replica.connect_app() as other:
        one.execute("CREATE SCHEMA replica_tpch")
        for connection in (one, other):
            connection.execute("SET search_path = replica_tpch")
        tpch_data.load(one, SCALE, True)
        caught_up(primary, replica)
        for number in tpch_data.QUERIES:
            match tpch_data.query(number, SCALE):
                case [make_view, query, drop_view]:  # a standby makes none, but reads it
                    one.execute(make_view)
                    caught_up(primary, replica)
                case [query]:
                    drop_view = None
            expected = run(one, query)
            found = run(other, query)
            assert expected.sqlstate is None, (number, expected)
            assert found.sqlstate is None, (number, found)
            assert found.rows == expected.rows, number
            if drop_view:
                one.execute(drop_view)


def test_promoted(primary, replica):
    """The primary and its keeper are killed at once; the standby goes on writing."""
    with primary.connect_app() as one:
        one.execute("INSERT INTO replica.late VALUES (1000000, 7, 'the last one')")
        rows = one.execute("SELECT id, v, s FROM replica.late ORDER BY id").fetchall()
    caught_up(primary, replica)
    primary.kill_postgres()
    primary.kill_keeper()
    with replica.connect_dba() as dba:
        dba.execute("SELECT pg_promote()")
    with replica.connect_app() as other:
        other.execute("INSERT INTO replica.late VALUES (1000001, 8, 'after promotion')")
        other.execute("UPDATE replica.late SET v = v + 1 WHERE id = 1000000")
        found = other.execute("SELECT id, v, s FROM replica.late ORDER BY id").fetchall()
        rows[-1] = (1000000, 8, "the last one")
        assert found == [*rows, (1000001, 8, "after promotion")]
    with replica.connect_dba() as dba:
        row = dba.execute("SELECT state FROM confide.confide_stat_recovery").fetchone()
        assert row == ("serving",)
        dba.execute("SELECT confide.checkpoint()")
    replica.kill_keeper()
    replica.up()
    with replica.connect_app() as other:
        assert other.execute("SELECT id, v, s FROM replica.late ORDER BY id").fetchall() == found
        other.execute("DROP SCHEMA replica CASCADE")
    primary.up()
