"""A superuser without a key moves a victim's value to a row that he can read with an account of his
own: by UPDATE, INSERT, MERGE, a trigger, a rewrite, or another column.

Mechanism: the access method reports to the keeper every identifier that a row did not have before
(tableam/moved.c); without a client the keeper refuses it. Right: 42501, and the application reads
what it wrote. Bug: the attacker's row shows 5200.
"""

import psycopg
import pytest

pytestmark = pytest.mark.ten(1)

VICTIM, OWN = "5200", "100"

FUNCTION = (
    "CREATE FUNCTION victims() RETURNS enc_int4 LANGUAGE sql VOLATILE AS "
    "'SELECT pay FROM emp WHERE id = 1'"
)
TRIGGER = (
    "CREATE FUNCTION take() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN "
    "SELECT pay INTO NEW.pay FROM emp WHERE id = 1; RETURN NEW; END$$"
)

WAYS = {
    "update with a subquery": [
        "UPDATE emp SET pay = (SELECT pay FROM emp WHERE id = 1) WHERE id = 2"
    ],
    "update with a join": ["UPDATE emp SET pay = v.pay FROM emp v WHERE v.id = 1 AND emp.id = 2"],
    "update of several rows": [
        "INSERT INTO emp VALUES (3, NULL), (4, NULL)",
        "UPDATE emp SET pay = v.pay FROM emp v WHERE v.id = 1 AND emp.id > 1",
    ],
    "insert and delete": [
        "DELETE FROM emp WHERE id = 2",
        "INSERT INTO emp SELECT 2, pay FROM emp WHERE id = 1",
    ],
    "insert of many rows": [
        "DELETE FROM emp WHERE id = 2",
        "INSERT INTO emp SELECT g, pay FROM emp, generate_series(2, 40) g WHERE id = 1",
    ],
    "on conflict": [
        "INSERT INTO emp SELECT 2, pay FROM emp WHERE id = 1 "
        "ON CONFLICT (id) DO UPDATE SET pay = excluded.pay"
    ],
    "merge": [
        "MERGE INTO emp USING (SELECT pay FROM emp WHERE id = 1) v ON emp.id = 2 "
        "WHEN MATCHED THEN UPDATE SET pay = v.pay"
    ],
    "another's key": ["UPDATE emp SET id = -id", "UPDATE emp SET id = 3 + id"],
    "trigger": [
        TRIGGER,
        "CREATE TRIGGER take BEFORE UPDATE ON emp "
        "FOR EACH ROW WHEN (NEW.id = 2) EXECUTE FUNCTION take()",
        "UPDATE emp SET id = 2 WHERE id = 2",
    ],
    "rewrite": [
        FUNCTION,
        "ALTER TABLE emp ALTER COLUMN pay TYPE enc_int4 "
        "USING CASE WHEN id = 2 THEN victims() ELSE pay END",
    ],
    "do block": [
        "DO $$DECLARE v enc_int4; BEGIN SELECT pay INTO v FROM emp WHERE id = 1; "
        "UPDATE emp SET pay = v WHERE id = 2; END$$"
    ],
    "another table": ["INSERT INTO own SELECT 2, pay FROM emp WHERE id = 1"],
    "another column": ["UPDATE emp SET bonus = (SELECT pay FROM emp WHERE id = 1) WHERE id = 2"],
    "partition of a table": [
        "UPDATE parts SET pay = v.pay FROM emp v WHERE v.id = 1",
    ],
}

# The identifier stays where it is; the attacker renames the row that it is in. Plain columns are
# the database's (docs/security.md).
PLAIN_KEY = {"another's key": "plain columns, also keys, are the database's to change"}


@pytest.fixture
def emp(app):
    app.execute("CREATE TABLE emp (id int PRIMARY KEY, pay enc_int4, bonus enc_int4)")
    app.execute(f"INSERT INTO emp VALUES (1, {VICTIM}, 1), (2, {OWN}, 1)")
    app.execute("CREATE TABLE own (id int, pay enc_int4)")
    app.execute("CREATE TABLE parts (id int, pay enc_int4) PARTITION BY RANGE (id)")
    app.execute("CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10)")
    app.execute(f"INSERT INTO parts VALUES (2, {OWN})")
    return app


def shown(app):
    """What the attacker's account reads in its own rows."""
    rows = app.execute("SELECT pay, bonus FROM emp WHERE id > 1").fetchall()
    rows += app.execute("SELECT pay, pay FROM own").fetchall()
    rows += app.execute("SELECT pay, pay FROM parts").fetchall()
    return {str(value) for row in rows for value in row}


@pytest.mark.parametrize("name", WAYS)
def test_moved(emp, dba, attack, name):
    refused = None
    for statement in WAYS[name]:
        try:
            dba.execute(statement)
        except psycopg.Error as error:
            refused = error.sqlstate
    attack.attempt(f"move a value by {name}", VICTIM in shown(emp), PLAIN_KEY.get(name, ""))
    assert refused == (None if name in PLAIN_KEY else "42501")


def test_what_stays(emp, dba):
    """Not refused: rewriting or changing rows whose identifiers remain; envelopes."""
    emp.execute("INSERT INTO emp SELECT g, g FROM generate_series(10, 60) g")
    before = emp.execute("SELECT id, pay FROM emp ORDER BY id").fetchall()
    for statement in (
        "UPDATE emp SET bonus = NULL",
        "UPDATE emp SET id = id",
        "VACUUM FULL emp",
        "CLUSTER emp USING emp_pkey",
        "ALTER TABLE emp ADD COLUMN seen timestamptz DEFAULT clock_timestamp()",
        "ALTER TABLE emp ALTER COLUMN id TYPE bigint",
        "ALTER TABLE emp ALTER COLUMN pay TYPE enc_int4 USING pay",
        "UPDATE emp SET pay = pay, id = id + 1000 WHERE id > 2",
        "UPDATE emp SET id = id - 1000 WHERE id > 2",
    ):
        dba.execute(statement)
    assert emp.execute("SELECT id, pay FROM emp ORDER BY id").fetchall() == before


def test_clients_move_values(emp):
    """In a client's session, moving a value is the client's own statement."""
    emp.execute("UPDATE emp SET pay = (SELECT pay FROM emp WHERE id = 1) WHERE id = 2")
    emp.execute("INSERT INTO emp SELECT id + 10, pay FROM emp")
    assert {str(v) for (v,) in emp.execute("SELECT pay FROM emp")} == {VICTIM}
