"""A superuser takes the export envelope of a victim's value into another row, or another column,
that he may read through an account of his own.

Mechanism: with `take_exports = false` the keeper takes no export envelope in. Right: 42501. By
default it does, so that dumps can be restored: then the attacker's row shows 5200.
"""

import psycopg
import pytest

WAYS = {
    "row": "UPDATE emp SET pay = %s WHERE id = 2",
    "column": "UPDATE emp SET bonus = %s WHERE id = 2",
    "table": "INSERT INTO own VALUES (2, %s)",
}
DEFAULT = "take_exports is on: export envelopes go into any row and column of their type"


@pytest.fixture
def emp(app):
    app.execute("CREATE TABLE emp (id int PRIMARY KEY, pay enc_int4, bonus enc_int4)")
    app.execute("CREATE TABLE own (id int, pay enc_int4)")
    app.execute("INSERT INTO emp VALUES (1, 5200, 1), (2, 100, 1)")
    return app


def attempts(stack, schema, attack, allowed):
    for name, sql in WAYS.items():
        with stack.connect_dba(options=f"-c search_path={schema}") as dba:
            (envelope,) = dba.execute("SELECT pay FROM emp WHERE id = 1").fetchone()
            try:
                dba.execute(sql, (envelope,))
            except psycopg.Error as error:
                assert error.sqlstate == "42501"
        with stack.connect_app(options=f"-c search_path={schema}") as app:
            rows = app.execute("SELECT pay, bonus FROM emp WHERE id = 2").fetchall()
            rows += app.execute("SELECT pay, pay FROM own").fetchall()
        attack.attempt(f"an envelope into another {name}", "5200" in str(rows), allowed)


def test_taken_in(stack, emp, schema, attack):
    attempts(stack, schema, attack, DEFAULT)


def test_not_taken_in(stack, emp, schema, attack):
    stack.kill_keeper()
    stack.start_keeper(CONFIDE_KEEPER_TAKE_EXPORTS="false")
    try:
        attempts(stack, schema, attack, "")
    finally:
        stack.kill_keeper()
        stack.start_keeper()
