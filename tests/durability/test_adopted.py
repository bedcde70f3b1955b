"""Crashes while rows are adopted (batches/test_adopt.py): the WAL has values that the client sealed
and the keeper may not have read. Right: every acknowledged commit is there with its values, before
and after checkpoints, and no identifier is given twice. Bug: a row whose identifier has no value,
or somebody else's."""

import psycopg
import pytest
from psycopg.types.numeric import Int4
from waiting import poll_in_vain

SQL = "INSERT INTO t VALUES (%s, %s, %s)"


@pytest.fixture
def fitting(stack):
    with stack.another_proxy(fit_values="true") as (_, url):
        yield url


def connect(url, schema):
    return psycopg.connect(url, autocommit=True, options=f"-c search_path={schema}")


def adopted(connection):
    sql = "SELECT value FROM confide.confide_stat_keeper WHERE name = 'session.messages.Adopt'"
    found = connection.execute(sql).fetchone()
    return int(found[0]) if found else 0


def fill(connection, numbers):
    for i in numbers:
        connection.execute(SQL, (i, Int4(i), f"text {i}"))


@pytest.mark.parametrize("what", ["keeper", "postgres", "both"])
@pytest.mark.parametrize("checkpoint", [False, True])
def test_values_survive(stack, app, dba, schema, fitting, what, checkpoint):
    dba.execute("GRANT pg_monitor TO app")
    app.execute("CREATE TABLE t (id int, v enc_int4, s enc_text)")
    with connect(fitting, schema) as first, connect(fitting, schema) as second:
        fill(first, range(40))
        second.execute("BEGIN")
        fill(second, range(1000, 1020))
        if checkpoint:
            dba.execute("SELECT confide.checkpoint()")
        fill(first, range(40, 60))
        assert (adopted(first), adopted(second)) == (60, 20)
        if what in ("keeper", "both"):
            stack.kill_keeper()
        if what in ("postgres", "both"):
            stack.kill_postgres()
        stack.up()
        # The keeper that would have confirmed its values is gone.
        with pytest.raises(psycopg.OperationalError):
            second.execute("COMMIT")
    expected = [(i, i, f"text {i}") for i in range(60)]
    with connect(fitting, schema) as connection:
        assert connection.execute("SELECT * FROM t ORDER BY id").fetchall() == expected
        # What was leased and not used is given to others.
        fill(connection, range(60, 200))
        connection.execute("DELETE FROM t WHERE id = 7")
    stack.kill_keeper()
    stack.up()
    with connect(fitting, schema) as connection, stack.connect_dba() as dba:
        rows = connection.execute("SELECT * FROM t ORDER BY id").fetchall()
        assert rows == [(i, i, f"text {i}") for i in range(200) if i != 7]
        sql = "SELECT sum(unresolved) FROM confide.verify(%s::regclass)"
        assert dba.execute(sql, (f"{schema}.t",)).fetchone()[0] == 0


def test_idle_in_transaction(stack, app, dba, schema, fitting):
    """A checkpoint takes in what was sent before it, though nobody wakes the channel. Bug: it waits
    until the client goes on, and fails."""
    dba.execute("GRANT pg_monitor TO app")
    app.execute("CREATE TABLE t (id int, v enc_int4, s enc_text)")
    with connect(fitting, schema) as connection:
        fill(connection, range(3))
        with poll_in_vain(stack, connection):
            connection.execute("BEGIN")
            fill(connection, range(3, 6))
            dba.execute("SELECT confide.checkpoint()")
            connection.execute("COMMIT")
        assert connection.execute("SELECT count(v), sum(v) FROM t").fetchone() == (6, 15)
