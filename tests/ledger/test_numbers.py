"""Numbers of row versions: no two are equal, and they rise as rows are written, whoever writes."""

import psycopg
import pytest
from ledgers import make_bond


@pytest.fixture
def bond(app):
    make_bond(app)
    return app


def write(connection, many: int = 1) -> list[int]:
    sql = "INSERT INTO bond (id) SELECT nextval('ids') FROM generate_series(1, %s) RETURNING sn"
    return [number for (number,) in connection.execute(sql, [many])]


def test_they_rise(bond, second):
    """Two sessions, also across what one takes from the sequence at once. Bug: each has numbers in
    store, so that `DELETE ... WHERE sn <= n` erases versions that were written after n."""
    bond.execute("CREATE SEQUENCE ids")
    found = []
    for many in (1, 20, 1, 40, 3):
        with bond.transaction():
            found += write(bond, many)
            found += write(second, many)
    assert found == sorted(set(found))


def test_lastval(app):
    """lastval() is the application's own, as drivers ask it for the key of a new row. Bug: it is a
    version's number."""
    app.execute("CREATE TABLE ticket (id serial, seat int) WITH (confide.ledger = on)")
    for seat in range(1, 41):
        app.execute("INSERT INTO ticket (seat) VALUES (%s)", [seat])
        assert app.execute("SELECT lastval()").fetchone() == (seat,)


def test_without_a_sequence(app):
    """A session that has asked no sequence has no lastval()."""
    app.execute("CREATE TABLE ticket (seat int) WITH (confide.ledger = on)")
    app.execute("INSERT INTO ticket SELECT generate_series(1, 100)")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        app.execute("SELECT lastval()")


def test_of_other_roles(bond):
    """Who may write to a table needs no right on the sequence, nor do they get one."""
    bond.execute("CREATE SEQUENCE ids")
    before = write(bond)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        bond.execute("SELECT setval('confide.ledger_numbers', 1)")
    # More than one block.
    assert write(bond, 600) > before
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        bond.execute("SELECT setval('confide.ledger_numbers', 1)")


def test_after_a_crash(stack, schema, app):
    """What a crash leaves of a block is not given again. Bug: a number has two versions."""
    make_bond(app)
    app.execute("CREATE SEQUENCE ids")
    options = f"-c search_path={schema}"
    found = []
    for _ in range(3):
        with stack.connect_app(options=options) as session:
            found += write(session, 5)
        stack.kill_postgres()
        stack.up()
    assert found == sorted(set(found))


def test_while_the_sequence_is_locked(bond, second, dba):
    """Who has to wait for the sequence waits alone, and can be cancelled. Bug: all writers of all
    databases wait where no cancel reaches them."""
    bond.execute("CREATE SEQUENCE ids")
    write(bond)
    second.execute("SET statement_timeout = '300ms'")
    dba.execute("SET idle_in_transaction_session_timeout = '60s'")  # ends the test with the bug
    with dba.transaction():
        dba.execute("ALTER SEQUENCE confide.ledger_numbers CACHE 1")
        with pytest.raises(psycopg.errors.QueryCanceled):
            for _ in range(6):
                write(second, 100)
        dba.execute("SELECT 1")
    write(second)
