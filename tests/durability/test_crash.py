"""Crashes under load: keeper, PostgreSQL or both are killed with SIGKILL, and afterwards every
acknowledged commit is there with its values, and nothing else.

The simple cases; test_torture.py does this at random.
"""

import os
import signal
import threading

import psycopg
import pytest
from waiting import stopped_backend
from workload import Load

SEED = os.environ.get("CONFIDE_SEED", "1")


def crash(stack, what: str) -> None:
    if what in ("keeper", "both"):
        stack.kill_keeper()
    if what in ("postgres", "both"):
        stack.kill_postgres()


@pytest.mark.parametrize("what", ["keeper", "postgres", "both"])
def test_values_survive(stack, app, schema, what):
    """The plainest case, one for each kind of crash."""
    app.execute("CREATE TABLE t (id int, v enc_int4, s enc_text UNIQUE)")
    with app.cursor().copy("COPY t FROM STDIN") as copy:
        for i in range(5000):
            copy.write_row((i, i * 7, f"text {i}"))
    app.execute("BEGIN")
    app.execute("INSERT INTO t VALUES (-1, -1, 'not committed')")
    crash(stack, what)
    stack.up()
    app.close()  # when only the keeper died, its transaction is still open
    options = f"-c search_path={schema} -c statement_timeout=300s"
    with stack.connect_app(options=options) as connection:
        query = "SELECT count(*), sum(v), min(s), max(s) FROM t"
        row = connection.execute(query).fetchone()
        assert row == (5000, 7 * 4999 * 2500, "text 0", "text 999")
        row = connection.execute("SELECT id, v FROM t WHERE s = 'text 77'").fetchone()
        assert row == (77, 539)
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute("INSERT INTO t VALUES (1, 1, 'text 4000')")
        connection.execute("INSERT INTO t VALUES (-1, -1, 'not committed')")


def test_no_identifier_twice(stack, app, schema):
    """The keeper dies while FIDs are on their way into the WAL, again and again, and new rows
    come at once. Bug: the next run gives such a FID to another row, and one of the two shows
    the other's value, or the WAL gives the slot back to the first at the restart after."""
    load = Load(stack, schema + "_load", SEED)
    for client in load.clients:
        client.step = client.insert
    for _ in range(6):
        for client in load.clients:
            client.step = client.insert
        load.start()
        load.goes_on(15)
        stack.kill_keeper()
        stack.up()
        load.goes_on(5)
        load.stop()
        load.verify()
    commits, rows = load.counts()
    print(f"{commits} commits, {rows} rows")
    assert commits > 100


def test_a_record_of_the_run_before(stack, app, second, dba, schema):
    """A backend has a FID and its record, and stands still before it writes it. The keeper is
    restarted, and gives the FID to another row. Bug: the record is written after all, and at the
    next restart both rows have one value."""
    app.execute("CREATE TABLE t (id int, v enc_int4)")
    app.execute("INSERT INTO t VALUES (1, 1)")
    failed = []

    def insert():
        dba.execute("ALTER ROLE app SET confide.fault_point = 'stop holds-record'")
        with stack.connect_app(options=f"-c search_path={schema}") as connection:
            dba.execute("ALTER ROLE app RESET confide.fault_point")
            try:
                connection.execute("INSERT INTO t VALUES (2, 2)")
            except psycopg.Error as error:
                failed.append(error.sqlstate)

    thread = threading.Thread(target=insert)
    thread.start()
    with stack.connect_dba() as watch:
        pid = stopped_backend(watch)
        try:
            stack.kill_keeper()
            stack.up()
            options = f"-c search_path={schema}"
            with stack.connect_app(options=options) as connection:
                connection.execute("INSERT INTO t VALUES (3, 3)")
        finally:
            os.kill(pid, signal.SIGCONT)
    thread.join()
    rows = [(1, 1), (3, 3)]
    for restart in (False, True):
        if restart:
            stack.kill_keeper()
            stack.up()
        with stack.connect_app(options=options) as connection:
            found = connection.execute("SELECT id, v FROM t ORDER BY id").fetchall()
            assert found == rows, restart
    assert failed == ["08006"]


def test_record_of_a_column_is_lost(stack, app, schema):
    """The first row of a column is not committed when PostgreSQL dies, and what was in its WAL
    buffers is lost; the keeper lives on. Bug: it believes that the WAL knows the column, nobody
    writes that any more, and the next run of the keeper finds values of no column."""
    with stack.connect_dba() as dba:
        dba.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
        dba.execute("SELECT pg_reload_conf()")
    try:
        app.execute("CREATE TABLE t (id int, v enc_int4, s enc_text)")
        app.execute("BEGIN")
        app.execute("INSERT INTO t VALUES (1, 1, 'lost')")
        stack.kill_postgres()
        stack.up()
        app.close()
        options = f"-c search_path={schema} -c statement_timeout=300s"
        with stack.connect_app(options=options) as connection:
            connection.execute("INSERT INTO t VALUES (2, 22, 'kept')")
        stack.kill_keeper()
        stack.up()
        with stack.connect_app(options=options) as connection:
            assert connection.execute("SELECT * FROM t").fetchall() == [(2, 22, "kept")]
    finally:
        with stack.connect_dba() as dba:
            dba.execute("ALTER SYSTEM RESET wal_writer_delay")
            dba.execute("SELECT pg_reload_conf()")
