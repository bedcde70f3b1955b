"""The family soft_ against a superuser, and without its keeper.

Mechanism: values leave the client encoded, keys never do. Bug: values are in the log, in the
database's files or in a dump, a superuser learns more than the encodings reveal, or a keeper is
used.
"""

import subprocess

import psycopg
import pytest
from dumps import another_database, tool

SECRET = "Canarybird"
NUMBER = 770055331


@pytest.fixture
def staff(app):
    app.execute(
        "CREATE TABLE staff (id int PRIMARY KEY, name soft_text, salary soft_int4,"
        " hidden soft_int4(add))"
    )
    app.execute("INSERT INTO staff VALUES (1, %s, %s, 5), (2, 'Bob', 41, 5)", (SECRET, NUMBER))
    return app


def test_not_in_the_log(stack, app):
    """Literals, parameters, COPY and defaults: the log of all statements has encodings only."""
    before = stack.log_sizes()
    app.execute("CREATE TABLE t (name soft_text, salary soft_int4)")
    app.execute(f"ALTER TABLE t ALTER name SET DEFAULT '{SECRET}'")
    app.execute(f"INSERT INTO t VALUES ('{SECRET}', {NUMBER}) /* {SECRET} */")
    app.execute("INSERT INTO t VALUES (%s, %s)", (SECRET, NUMBER))
    app.execute(
        f"CREATE TABLE u (n soft_text(key_5) DEFAULT '{SECRET}',"
        f" s soft_int4(key_6) CHECK (s < {NUMBER}))"
    )
    app.execute("SELECT * FROM t WHERE name = ANY (%s)", ([SECRET],))
    with app.cursor().copy("COPY t FROM STDIN") as copy:
        copy.write_row((SECRET, NUMBER))
    for query in [
        f"SELECT * FROM t WHERE name = '{SECRET}' AND salary = {NUMBER}",
        f"SELECT * FROM t WHERE name = '{SECRET}' AND salary <= '{NUMBER}'::int4",
        f"SELECT * FROM t WHERE name = ANY ('{{{SECRET},b}}') AND salary = ANY ('{{{NUMBER}}}')",
        f"SELECT * FROM t WHERE name IN ('{SECRET}', 'b') AND salary < {NUMBER + 1}",
    ]:
        assert app.execute(query).fetchall() == [(SECRET, NUMBER)] * 3
    for query in [
        f"SELECT name || '{SECRET}' FROM t",
        f"SELECT salary + {NUMBER} FROM t",
        f"SELECT '{SECRET}' FROM t WHERE name = '{SECRET}'",
        f"SELECT * FROM t WHERE upper('{SECRET}') = name",
        f"SELECT * FROM t WHERE name LIKE '{SECRET}'",
        f"SELECT * FROM t WHERE salary = '{SECRET}'",
    ]:
        with pytest.raises(psycopg.Error), app.transaction():
            app.execute(query)
    logged = stack.logged_since(before)
    assert "soft1." in logged
    assert SECRET not in logged
    assert str(NUMBER) not in logged


def test_not_in_files(staff, dba, stack):
    """The values are nowhere in PostgreSQL's files, statistics among them."""
    staff.execute("CREATE INDEX ON staff (salary)")
    staff.execute("ANALYZE staff")
    dba.execute("CHECKPOINT")
    for word in (SECRET, str(NUMBER)):
        command = ["grep", "-rlaF", word, stack.data / "base", stack.data / "pg_wal"]
        found = subprocess.run(command, capture_output=True, text=True)
        assert (found.stdout, found.returncode) == ("", 1)


def test_what_a_superuser_can_do(staff, dba):
    """He sees equality and order where a column has these encodings, and nothing where not."""
    order = dba.execute("SELECT id FROM staff ORDER BY salary").fetchall()
    assert order == [(2,), (1,)]
    cells = dba.execute("SELECT hidden FROM staff").fetchall()
    assert len(set(cells)) == 2
    for query in [
        "SELECT id FROM staff WHERE salary = 770055331",
        "SELECT id FROM staff WHERE salary = '770055331'",
        "SELECT id FROM staff ORDER BY hidden",
        "SELECT a.id FROM staff a JOIN staff b ON a.hidden = b.hidden AND a.id < b.id",
        "SELECT count(*) FROM staff GROUP BY hidden",
        "INSERT INTO staff VALUES (3, 'x', 1, 1)",
        "INSERT INTO staff (id, name) SELECT 3, salary::text FROM staff",
    ]:
        with pytest.raises(psycopg.Error) as error:
            dba.execute(query).fetchall()
        assert error.value.sqlstate in ("42501", "0A000", "42883", "42804"), query


@pytest.mark.parametrize("change", ["cut", "flipped", "longer", "other type", "no cell"])
def test_an_altered_cell(staff, dba, change):
    """A cell that is not whole is refused by the server, or does not open."""
    (cell,) = dba.execute("SELECT name FROM staff WHERE id = 1").fetchone()
    altered = {
        "cut": cell[:-4],
        "flipped": cell[:-2] + ("AA" if cell[-2:] != "AA" else "BB"),
        "longer": cell + "AAAA",
        "other type": dba.execute("SELECT salary FROM staff WHERE id = 1").fetchone()[0],
        "no cell": "soft1.",
    }[change]
    with pytest.raises(psycopg.Error) as error:
        with dba.cursor().copy("COPY staff (id, name) FROM STDIN") as copy:
            copy.write_row((9, altered))
        staff.execute("SELECT name FROM staff WHERE id = 9").fetchall()
    assert error.value.sqlstate in ("22P02", "XX001")


def test_the_cell_is_the_dump(staff, stack, schema):
    """pg_dump needs no keeper, and no ticket to restore; the restored columns have their keys."""
    staff.execute("CREATE INDEX by_salary ON staff (salary)")
    staff.execute("ALTER TABLE staff ALTER salary SET DEFAULT 77")
    dump = tool("pg_dump", "-d", stack.dba_url, "-n", schema)
    assert SECRET.encode() not in dump
    assert b"soft1." in dump
    with another_database(stack) as addresses:
        tool("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", addresses["straight"], stdin=dump)
        with psycopg.connect(addresses["proxy"], options=f"-c search_path={schema}") as connection:
            got = connection.execute("SELECT name, salary FROM staff ORDER BY id").fetchall()
            assert got == [(SECRET, NUMBER), ("Bob", 41)]
            connection.execute("INSERT INTO staff (id) VALUES (3)")
            got = connection.execute("SELECT id FROM staff WHERE salary >= 77 ORDER BY salary")
            assert got.fetchall() == [(3,), (1,)]
            got = connection.execute("SELECT sum(hidden), sum(salary) FROM staff").fetchall()
            assert got == [(10, NUMBER + 41 + 77)]
