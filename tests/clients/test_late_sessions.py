"""Clients of a database where nothing is protected yet have no session with the keeper. They get
one when they need it, and notice nothing: not when another client protects something, nor when a
table becomes a ledger, in whatever way.
"""

import contextlib
import json

import psycopg
import pytest
from dumps import another_database

PROTECT = "ALTER TABLE item ALTER name TYPE enc_text"
FILL = """CREATE TABLE item (id int4, name text);
    INSERT INTO item VALUES (1, 'Secretname1')"""
HELD = """CREATE FUNCTION held() RETURNS int8 LANGUAGE plpgsql
    AS 'BEGIN RETURN (SELECT count(*) FROM item WHERE lower(name) >= name); END'"""


@pytest.fixture
def plain(stack):
    """The address of a database with a plain table."""
    with another_database(stack) as addresses:
        with psycopg.connect(addresses["proxy"], autocommit=True) as first:
            first.execute(FILL)
        yield addresses["proxy"]


@contextlib.contextmanager
def client(address):
    """One that has no session yet."""
    with psycopg.connect(address, autocommit=True) as connection:
        assert connection.execute("SELECT count(*) FROM item").fetchall() == [(1,)]
        yield connection


# What another client does, what this one asks then, and the answer.
OTHERS = {
    "read": ([PROTECT], "SELECT name FROM item", [("Secretname1",)]),
    "compare": ([PROTECT], "SELECT id FROM item WHERE name = 'Secretname1'", [(1,)]),
    "write": (
        [PROTECT],
        "INSERT INTO item VALUES (2, 'Secretname2') RETURNING name",
        [("Secretname2",)],
    ),
    "new table": (
        ["CREATE TABLE more (s enc_text)", "INSERT INTO more VALUES ('Secretname3')"],
        "SELECT upper(s) FROM more",
        [("SECRETNAME3",)],
    ),
    "view": (
        [PROTECT, "CREATE VIEW seen AS SELECT name FROM item"],
        "SELECT name FROM seen",
        [("Secretname1",)],
    ),
    "ledger": (
        ["CREATE TABLE deed (id int4) IMMUTABLE YES WITH TYPE TEE"],
        "INSERT INTO deed VALUES (7) RETURNING id, \"by\" <> ''",
        [(7, True)],
    ),
    "routine": ([PROTECT, HELD], "SELECT held()", [(1,)]),
}


@pytest.mark.parametrize("extended", [False, True], ids=["simple", "extended"])
@pytest.mark.parametrize("case", OTHERS)
def test_another_client_protects(plain, case, extended):
    """Bug: the first statement after it fails with 42501, for there is no session."""
    does, asks, answer = OTHERS[case]
    with client(plain) as this, psycopg.connect(plain, autocommit=True) as other:
        for statement in does:
            other.execute(statement)
        found = this.execute(asks, prepare=True if extended else None).fetchall()
    assert found == answer


OWN = {
    "ledger": [
        "CREATE TABLE deed (id int4) IMMUTABLE YES WITH TYPE TEE",
        "INSERT INTO deed VALUES (7)",
        "SELECT id FROM deed",
    ],
    "escapes": [
        'CREATE TABLE deed (id U&"enc\\005Fint4")',
        "INSERT INTO deed VALUES (7)",
        "SELECT id FROM deed WHERE id = 7",
    ],
    "signature": ["SELECT id + 6 FROM item WITH SIGNATURE"],
    "temporary": [
        "CREATE TEMP TABLE deed (id enc_int4)",
        "INSERT INTO deed VALUES (7)",
        "SELECT id FROM deed",
    ],
}


@pytest.mark.parametrize("within", [False, True], ids=["statements", "transaction"])
@pytest.mark.parametrize("case", OWN)
def test_own_statements(plain, case, within):
    """Bug: the text is not taken for one that needs a session."""
    with client(plain) as this, this.transaction() if within else contextlib.nullcontext():
        for statement in OWN[case]:
            last = this.execute(statement)
        found = last.fetchall()
    if case == "signature":
        assert json.loads(found[0][0])["rows"] == [["7"]]
    else:
        assert found == [(7,)]
