"""What ledger tables cost, in counts: how often a transaction waits for the keeper.

Right: once for the log, at its commit, however many rows and statements it has and however long the
log is, and for new protected values together with it; a signed result once, for its text. Bug: a
statement that waits for what it has told the keeper of its rows, for values that go to the history,
or for the signature before it asks for the text; a commit that waits twice."""

import pytest
from delivered import counted, waits


@pytest.fixture
def counting(app, dba):
    dba.execute("GRANT pg_monitor TO app")
    app.execute("CREATE TABLE deed (id int, what text, price int) WITH (confide.ledger = on)")
    app.execute("INSERT INTO deed VALUES (0, 'opens the log', 0)")
    app.execute("UPDATE deed SET price = 1")
    yield app
    dba.execute("REVOKE pg_monitor FROM app")


def waited(connection, *statements) -> int:
    """Answers that these waited for; to read the counter takes one."""
    before = waits(connection)
    for statement in statements:
        connection.execute(statement)
    return waits(connection) - before - 1


def many(rows: int, first: int) -> str:
    last = first + rows - 1
    return f"INSERT INTO deed SELECT n, 'what', 2 FROM generate_series({first}, {last}) n"


def test_once_a_transaction(counting):
    """One row or a thousand, one statement or forty, in a log of three entries or of a thousand."""
    assert waited(counting, many(1, 10)) == 1
    assert waited(counting, many(1000, 100)) == 1
    assert waited(counting, many(1, 2000)) == 1
    assert waited(counting, "UPDATE deed SET price = 3 WHERE id < 200") == 1
    assert waited(counting, "DELETE FROM deed WHERE id = 2000") == 1
    counting.execute("BEGIN")
    statements = [many(1, n) for n in range(3000, 3020)]
    statements += [f"UPDATE deed SET price = 4 WHERE id = {n}" for n in range(3000, 3020)]
    assert waited(counting, *statements) == 0
    assert waited(counting, "COMMIT") == 1


def test_savepoints_do_not_wait(counting, auditor):
    """What is rolled back to a savepoint is in neither table nor log, without a wait of its own."""
    counting.execute("BEGIN")
    statements = [many(1, 10), "SAVEPOINT s", many(3, 20), "ROLLBACK TO s", many(1, 30)]
    assert waited(counting, *statements) == 0
    assert waited(counting, "COMMIT") == 1
    found = counting.execute("SELECT id FROM deed ORDER BY id").fetchall()
    assert found == [(0,), (10,), (30,)]
    assert auditor.findings("deed") == []


@pytest.mark.parametrize("key", ["", ", PRIMARY KEY (what)"])
def test_new_values(counting, auditor, key):
    """Values that the client has fitted are confirmed at the commit, with the entries of the log,
    and what the session reads comes with the confirmation; those of an index are promoted, and
    searched for in the same message. Bug: a wait of its own for the values of the version that goes
    to the history, or for the confirmation."""
    counting.execute(
        f"CREATE TABLE bond (id int, what enc_text, price enc_numeric(9,2){key})"
        " WITH (confide.ledger = on)"
    )
    counting.execute("INSERT INTO bond VALUES (1, 'a', 1), (2, 'b', 2)")
    both, one = "UPDATE bond SET what = %s, price = %s WHERE id = %s", "UPDATE bond SET what = %s"
    for statement, values in ((both, ("x", 3, 2)), (f"{one} WHERE id = 2", ("opens",))):
        counting.execute(statement, values)
    counting.execute("SELECT what, price FROM bond")
    counting.execute("BEGIN")
    waiting = 1 if key else 0
    assert waited(counting, "UPDATE bond SET what = 'c', price = 4 WHERE id = 1") == waiting
    assert waited(counting, "UPDATE bond SET what = 'd' WHERE id = 1") == waiting
    assert waited(counting, "COMMIT") == 1
    found = counting.execute("SELECT what, price FROM bond_history WHERE id = 1 ORDER BY sn")
    assert found.fetchall() == [("a", 1), ("c", 4)]
    assert counted(counting, "SELECT what, price FROM bond WHERE id = 1") == ([("d", 4)], 0)
    assert auditor.findings("bond") == []


@pytest.mark.parametrize(("rows", "answers"), [(8, 1), (9, 2)])
def test_many_values(counting, rows, answers):
    """What the session reads of more than sixteen values is asked for by itself, without the lock.
    Bug: it is not asked for, or the commit does without the confirmation."""
    counting.execute(
        "CREATE TABLE bond (id int, what enc_text, price enc_numeric(9,2))"
        " WITH (confide.ledger = on)"
    )
    insert = "INSERT INTO bond VALUES (%s, 'a', 1)"
    counting.execute(insert, (0,))
    counting.execute("SELECT what, price FROM bond")
    counting.execute("BEGIN")
    for number in range(1, rows + 1):
        counting.execute(insert, (number,))
    assert waited(counting, "COMMIT") == answers
    found = counted(counting, "SELECT what, price FROM bond WHERE id > 0")
    assert found == ([("a", 1)] * rows, 0)


def test_values_that_stay(counting, auditor):
    """Protected values that a change leaves as they are. Bug: it waits for their way into the
    history."""
    counting.execute(
        "CREATE TABLE bond (id int, what enc_text, price enc_numeric(9,2))"
        " WITH (confide.ledger = on)"
    )
    counting.execute("INSERT INTO bond SELECT n, 'a', n FROM generate_series(1, 9) n")
    counting.execute("UPDATE bond SET id = 0 WHERE id = 9")
    assert waited(counting, "UPDATE bond SET id = id + 10 WHERE id < 4") == 1
    assert waited(counting, "DELETE FROM bond WHERE id BETWEEN 4 AND 6") == 1
    found = counting.execute("SELECT what, price FROM bond_history ORDER BY sn").fetchall()
    assert sorted(found) == [("a", n) for n in (1, 2, 3, 4, 5, 6, 9, 9)]
    assert auditor.findings("bond") == []


@pytest.mark.parametrize("rows", [3, 600])
def test_a_signature_is_waited_for_once(counting, rows):
    """However many parts the rows are sent in."""
    counting.execute(many(1, rows))
    statement = "SELECT id, what FROM deed WHERE id = 1 WITH SIGNATURE 'n'"
    counting.execute(statement)
    assert waited(counting, statement) == 1
