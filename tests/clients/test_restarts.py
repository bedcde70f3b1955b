"""Sessions that outlive the keeper.

Mechanism: the keeper's sessions end with it. The proxy shakes hands again and sends the statement
again that noticed it, if no transaction was open and nothing of it was completed; a prepared
statement is prepared again, because its envelopes and grants belong to the old session.

Right answer: outside of a transaction the application gets its rows, and no error. Within one it
gets 08003 once, as the transaction has lost its session. Bug: 08003 outside of a transaction, or a
statement that is executed twice.
"""

import psycopg
import pytest
from results import run

TABLE = """
CREATE TABLE person (id int PRIMARY KEY, name enc_text);
INSERT INTO person VALUES (1, 'Ann'), (2, 'Bob');
CREATE SEQUENCE calls;
"""
ANN = [(1, "Ann")]


def restart_keeper(stack):
    stack.kill_keeper()
    stack.start_keeper()


@pytest.fixture
def person(app):
    app.execute(TABLE)
    yield app
    if app.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
        app.execute("ROLLBACK")


def simple(app):
    return app.execute("SELECT id, name FROM person WHERE name = 'Ann'").fetchall()


def with_parameters(app):
    return app.execute("SELECT id, name FROM person WHERE name = %s", ("Ann",)).fetchall()


def prepared(app):
    sql = "SELECT id, name FROM person WHERE name = %s"
    return app.execute(sql, ("Ann",), prepare=True).fetchall()


def prepared_with_a_constant(app):
    sql = "SELECT id, name FROM person WHERE name = 'Ann' AND id = %s"
    return app.execute(sql, (1,), prepare=True).fetchall()


def prepared_without_constants(app):
    sql = "SELECT id, upper(name) FROM person WHERE id = %s"
    return [(i, name.title()) for i, name in app.execute(sql, (1,), prepare=True).fetchall()]


@pytest.mark.parametrize(
    "form",
    [simple, with_parameters, prepared, prepared_with_a_constant, prepared_without_constants],
)
def test_keeper_restarted(stack, person, form):
    assert form(person) == ANN
    restart_keeper(stack)
    assert form(person) == ANN
    restart_keeper(stack)
    assert form(person) == ANN


def test_writes_are_made_once(stack, person):
    for name in ["Cid", "Dan"]:
        restart_keeper(stack)
        person.execute("INSERT INTO person VALUES (nextval('calls') + 2, %s)", (name,))
    restart_keeper(stack)
    person.execute("UPDATE person SET name = name || '!' WHERE name > 'Cic'")
    rows = person.execute("SELECT name FROM person ORDER BY name").fetchall()
    assert rows == [("Ann",), ("Bob",), ("Cid!",), ("Dan!",)]


def test_a_pipeline(stack, person):
    restart_keeper(stack)
    with person.pipeline():
        first = person.execute("SELECT id, name FROM person WHERE name = %s", ("Ann",))
        second = person.execute("SELECT count(*) FROM person WHERE name < %s", ("C",))
    assert first.fetchall() == ANN
    assert second.fetchall() == [(2,)]


def test_prepared_in_the_same_pipeline(stack, person):
    """The first attempt has prepared the statement when it fails. Bug: 42P05, its name is used."""
    sql = "SELECT id, upper(name) FROM person WHERE id = %s"
    restart_keeper(stack)
    with person.pipeline():
        rows = person.execute(sql, (1,), prepare=True)
    assert rows.fetchall() == [(1, "ANN")]
    assert person.execute(sql, (2,), prepare=True).fetchall() == [(2, "BOB")]


def test_in_a_transaction(stack, person):
    """The transaction has lost its session: the application must begin it anew."""
    person.execute("BEGIN")
    person.execute("INSERT INTO person VALUES (3, 'Cid')")
    restart_keeper(stack)
    outcome = run(person, "SELECT id FROM person WHERE name = 'Cid'")
    assert outcome.sqlstate in ("08003", "08006"), outcome
    person.execute("ROLLBACK")
    assert with_parameters(person) == ANN
    assert person.execute("SELECT count(*) FROM person").fetchone() == (2,)
