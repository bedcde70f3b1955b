"""Protected values of versions that go to a history: no statement waits for them, and their redo
record comes with the transaction's entries. Right: what committed is in the history with its
values, whatever crashed; what did not leaves nothing. Bug: a history row whose identifier has no
value, or somebody else's."""

import psycopg
import pytest
from garbage import vacuumed
from ledgers import change, make_bond, unresolved

VERSIONS = "SELECT id, what, price FROM bond_history ORDER BY valid_to, id"


@pytest.fixture
def bond(stack, app, dba):
    dba.execute("GRANT pg_monitor TO app")
    make_bond(app)
    yield app
    with stack.connect_dba() as dba:
        dba.execute("REVOKE pg_monitor FROM app")


def moved(connection) -> int:
    sql = "SELECT value FROM confide.confide_stat_keeper WHERE name = 'session.messages.LedgerMove'"
    found = connection.execute(sql).fetchone()
    return int(found[0]) if found else 0


def versions(*numbers: int) -> list[tuple]:
    return [(n, f"bond {n}", n) for n in numbers]


def test_changes(bond, auditor):
    """By UPDATE and DELETE, with and without new values, one row or many."""
    change(bond, 1)
    bond.execute("UPDATE bond SET what = 'new', price = 0 WHERE id = 1")
    bond.execute("DELETE FROM bond WHERE id BETWEEN 2 AND 4")
    assert moved(bond) == 5
    assert bond.execute(VERSIONS).fetchall() == versions(1, 1, 2, 3, 4)
    assert auditor.findings("bond") == []


def test_savepoints(bond, auditor, dba):
    """What is rolled back is not in the record, though its identifiers have values by then."""
    with bond.transaction():
        change(bond, 1)
        with pytest.raises(psycopg.errors.DivisionByZero), bond.transaction():
            change(bond, 2)
            assert bond.execute(VERSIONS).fetchall() == versions(1, 2)
            bond.execute("SELECT 1 / 0")
        bond.execute("INSERT INTO bond VALUES (50, 'bond 50', 50)")
        change(bond, 3)
    assert bond.execute(VERSIONS).fetchall() == versions(1, 3)
    assert auditor.findings("bond") == []
    assert unresolved(dba) == 0


def test_many(bond, auditor):
    """More than are sent without waiting in one transaction: the rest is promoted."""
    bond.execute("INSERT INTO bond SELECT n, 'bond ' || n, n FROM generate_series(41, 2500) n")
    bond.execute("UPDATE bond SET note = 'all'")
    assert 2000 < moved(bond) < 2100
    assert bond.execute(VERSIONS).fetchall() == versions(*range(1, 2501))
    assert auditor.findings("bond") == []


def test_index_on_the_history(bond):
    """An index would compare values of which the keeper may never have heard; one of plain columns
    does not."""
    bond.execute("ALTER TABLE bond_history ADD PRIMARY KEY (sn)")
    change(bond, 1)
    assert moved(bond) == 1
    bond.execute("CREATE INDEX ON bond_history (what)")
    change(bond, 2)
    assert moved(bond) == 1
    assert bond.execute(VERSIONS).fetchall() == versions(1, 2)


def test_garbage(bond, dba, auditor):
    """A collection removes what a rolled-back transaction moved, and nothing else."""
    for number in range(1, 21):
        change(bond, number)
    with pytest.raises(psycopg.errors.DivisionByZero), bond.transaction():
        for number in range(1, 31):
            change(bond, number)
        bond.execute("SELECT 1 / 0")
    assert vacuumed(dba, "bond_history", 60) == 60
    assert bond.execute(VERSIONS).fetchall() == versions(*range(1, 21))
    assert auditor.findings("bond") == []


@pytest.mark.parametrize("what", ["keeper", "postgres", "both"])
@pytest.mark.parametrize("checkpoint", [False, True])
def test_crashes(stack, bond, auditor, schema, what, checkpoint):
    with stack.connect_app() as open_one, stack.connect_dba() as dba:
        open_one.execute(f"SET search_path = {schema}")
        change(bond, 1)
        open_one.execute("BEGIN")
        change(open_one, 2)
        if checkpoint:
            dba.execute("SELECT confide.checkpoint()")
        change(bond, 3)
        if what in ("keeper", "both"):
            stack.kill_keeper()
        if what in ("postgres", "both"):
            stack.kill_postgres()
        stack.up()
        with pytest.raises(psycopg.OperationalError):
            open_one.execute("COMMIT")
    with stack.connect_app() as app, stack.connect_dba() as dba:
        for connection in (app, dba):
            connection.execute(f"SET search_path = {schema}")
        assert app.execute(VERSIONS).fetchall() == versions(1, 3)
        assert unresolved(dba) == 0
        # What was leased and not used is given to others.
        for number in (2, 4, 5):
            change(app, number)
    stack.kill_keeper()
    stack.up()
    with stack.connect_app() as app:
        app.execute(f"SET search_path = {schema}")
        assert app.execute(VERSIONS).fetchall() == versions(1, 3, 2, 4, 5)
        auditor.app = app
        assert auditor.findings("bond") == []
