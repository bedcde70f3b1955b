"""Plain functions and types behave the same with the extension and without.

Bugs: `abs('5')` was ambiguous (42725), because there are also protected numbers; the application's
calls get a cast, but the database's own do not. An error about a type modifier lost its position,
because the extension checked the modifier first. A function had the name of a built-in one.
"""

import psycopg
import pytest
from results import run

NUMBERS = ["abs", "ceil", "ceiling", "floor", "round", "sign", "@", "+"]


@pytest.mark.parametrize("name", NUMBERS)
def test_untyped_literal(app, name):
    expected = run(app, f"SELECT {name}('-2.5'::float8) AS x")
    got = run(app, f"SELECT {name}('-2.5') AS x")
    assert got.rows
    assert got.same(expected)


def test_position_of_a_modifier(dba):
    statement = "CREATE TABLE t (a int, b numeric(3, 1, 5))"
    with pytest.raises(psycopg.errors.InvalidParameterValue) as error:
        dba.execute(statement)
    assert error.value.diag.statement_position == str(statement.index("numeric") + 1)


def test_names_of_functions(dba):
    same = dba.execute(
        "SELECT ours.proname FROM pg_proc ours JOIN pg_proc theirs USING (proname, proargtypes) "
        "WHERE ours.oid > theirs.oid AND ours.oid >= 16384 AND theirs.oid < 16384"
    ).fetchall()
    assert same == []


def test_strings_beside_plain_arguments(app, dba, stack):
    """A string in a call with a plain column, whose result goes into a protected one, is sealed,
    and the protected function of the name is called. Bug: it was refused (0A000); sent as it is
    it would stand in the server's log."""
    app.execute("CREATE TABLE t (id int, s enc_text)")
    sizes = stack.log_sizes()
    app.execute("INSERT INTO t SELECT g, repeat('mellon', g) FROM generate_series(1, 3) g")
    app.execute("UPDATE t SET s = lpad('mellon', id + 7, '*') WHERE id = 2")
    found = app.execute("SELECT s FROM t ORDER BY id").fetchall()
    assert found == [("mellon",), ("***mellon",), ("mellon" * 3,)]
    assert "mellon" not in stack.logged_since(sizes)
