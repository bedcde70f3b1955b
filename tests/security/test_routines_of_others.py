"""An argument of a plain type that meets something protected in a routine's body is not sent as
plaintext, whoever has created the routine.

Mechanism: the server reports the bodies of routines with the schema, and the proxy follows the
argument. Right: constants and parameters for such an argument are refused before they are sent, so
the server's log, which has every statement, does not have them; other arguments, and values from
the database, are sent unchanged. Bug: a proxy that knows only its own clients' routines sends
`SELECT f('x')` as plaintext.
"""

import pytest
from authority import authorise
from results import run

TABLE = """CREATE TABLE p (id int, name enc_text);
CREATE TABLE open (id int, name text);
INSERT INTO p VALUES (1, 'Ann'), (2, 'Bob');
INSERT INTO open VALUES (1, 'Ann')"""

ROUTINES = {
    "asks": """FUNCTION asks(who text, least_id int) RETURNS bigint LANGUAGE sql AS
        'SELECT count(*) FROM p WHERE name = who::enc_text AND id >= least_id'""",
    "searches": """FUNCTION searches(who text, least_id int) RETURNS bigint LANGUAGE plpgsql AS
        'DECLARE copy text := who; BEGIN
         RETURN (SELECT count(*) FROM p WHERE name = copy::enc_text AND id >= least_id); END'""",
    "counts": """FUNCTION counts(least_id int) RETURNS bigint LANGUAGE sql AS
        'SELECT count(*) FROM p WHERE name IS NOT NULL AND id >= least_id'""",
    "through": """FUNCTION through(who text, least_id int) RETURNS bigint LANGUAGE sql AS
        'SELECT asks(who, least_id)'""",
}


@pytest.fixture
def made(app, dba, schema):
    """The table, and routines that the superuser has made and the client authorises."""
    app.execute(TABLE)
    dba.execute(f"SET search_path = {schema}")
    for definition in ROUTINES.values():
        dba.execute(f"CREATE {definition}")
    authorise(app, schema)
    return app


@pytest.mark.parametrize("name", [name for name in ROUTINES if name != "counts"])
def test_constants_do_not_leave(stack, made, name):
    value = f"Canary{name}Qz"
    before = stack.log_sizes()
    for sql, params in (
        (f"SELECT {name}('{value}', 1)", None),
        (f"SELECT {name}(lower('{value}'), 1)", None),
        (f"SELECT * FROM {name}(least_id => 1, who => '{value}')", None),
        (f"SELECT {name}(%s, 1)", (value,)),
    ):
        outcome = run(made, sql, params)
        assert outcome.sqlstate == "0A000", (sql, outcome.message)
        assert "meets a protected value" in outcome.message
    assert value not in stack.logged_since(before)


def test_others_go_on(made):
    """Arguments that meet nothing protected, though the body names it; and values that the
    database has itself are no affair of the proxy's: the keeper refuses them."""
    assert run(made, "SELECT counts(2), counts(%s)", (0,)).rows == [("1", "2")]
    assert run(made, "SELECT asks(o.name, 1) FROM open o").sqlstate == "42501"


def test_changes_of_a_routine(stack, made, dba, schema):
    """The body is the one that the routine has now."""
    dba.execute(
        "CREATE OR REPLACE FUNCTION asks(who text, least_id int) RETURNS bigint LANGUAGE sql AS "
        "'SELECT count(*) FROM open WHERE name = who AND id >= least_id'"
    )
    made.execute("SELECT 1")
    assert run(made, "SELECT asks('Ann', 1)").rows == [("1",)]
    dba.execute(f"CREATE OR REPLACE {ROUTINES['asks']}")
    made.execute("SELECT 1")
    assert run(made, "SELECT asks('Ann', 1)").sqlstate == "0A000"
