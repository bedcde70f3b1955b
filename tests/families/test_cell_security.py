"""The family rnd_ against a superuser, and without its keeper's memory.

Mechanism: a cell can be opened only for a client, has the label of the column for which it was
sealed, and needs only the root key. Bug: values are in the database's files, a cell reveals its
value in another column, or the loss of a keeper loses values.
"""

import subprocess

import psycopg
import pytest
from dumps import another_database, tool

SECRET = "Canarybird"
NUMBER = 770055331


@pytest.fixture
def staff(app):
    app.execute("CREATE TABLE staff (id int PRIMARY KEY, name rnd_text, salary rnd_int4)")
    app.execute("CREATE TABLE notes (id int, body rnd_text)")
    app.execute("INSERT INTO staff VALUES (1, %s, %s), (2, 'Bob', 41)", (SECRET, NUMBER))
    app.execute("INSERT INTO notes VALUES (1, 'mine')")
    return app


@pytest.mark.parametrize(
    "query",
    [
        "SELECT name::enc_text FROM staff",
        "SELECT name || name FROM staff",
        "SELECT id FROM staff WHERE salary = '1'",
        "SELECT id FROM staff WHERE salary = 770055331",
        "SELECT a.id FROM staff a JOIN staff b ON a.salary < b.salary",
        "SELECT id FROM staff ORDER BY salary",
        "SELECT count(*) FROM staff GROUP BY salary",
        "SELECT max(salary) FROM staff",
        "SELECT salary::text FROM staff",
        "INSERT INTO staff VALUES (3, 'x', 1)",
        "UPDATE staff SET salary = salary + salary",
        "INSERT INTO notes SELECT id, name FROM staff",
    ],
)
def test_nothing_without_a_client(staff, dba, query):
    with pytest.raises(psycopg.Error) as error:
        dba.execute(query).fetchall()
    assert error.value.sqlstate in ("42501", "22P02", "42846", "0A000"), error.value


def test_a_cell_that_was_moved(staff, second, dba):
    """Pasted where the client's statement may look, a cell is refused: it is of its column. In
    a session of its own, since grants end with the session."""
    (cell,) = dba.execute("SELECT name FROM staff WHERE id = 1").fetchone()
    with dba.cursor().copy("COPY notes FROM STDIN") as copy:
        copy.write_row((2, cell))
    assert second.execute("SELECT body FROM notes WHERE id = 1").fetchall() == [("mine",)]
    for query in (
        "SELECT body FROM notes",
        "SELECT count(*) FROM notes WHERE body > 'A'",
        "SELECT id FROM notes WHERE body > 'A'",
        "SELECT max(body) FROM notes",
        "SELECT count(*) FROM notes GROUP BY body",
        "SELECT id FROM notes ORDER BY body",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            second.execute(query).fetchall()


def test_an_altered_cell(staff, dba):
    (cell,) = dba.execute("SELECT name FROM staff WHERE id = 1").fetchone()
    other = cell[:-1] + ("A" if cell[-1] != "A" else "Q")
    with dba.cursor().copy("COPY staff (id, name) FROM STDIN") as copy:
        copy.write_row((9, other))
    with pytest.raises(psycopg.errors.DataCorrupted):
        staff.execute("SELECT name FROM staff WHERE id = 9").fetchall()


def test_not_in_files(staff, dba, stack):
    """The values are nowhere in PostgreSQL's files."""
    dba.execute("CHECKPOINT")
    for word in (SECRET, str(NUMBER)):
        command = ["grep", "-rlaF", word, stack.data / "base", stack.data / "pg_wal"]
        found = subprocess.run(command, capture_output=True, text=True)
        assert (found.stdout, found.returncode) == ("", 1)


def test_indexes_are_kept_without_a_client(staff, dba):
    """Only of a column that a client has an index on; no other is compared."""
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        dba.execute("CREATE INDEX ON staff (salary)")
    staff.execute("CREATE INDEX by_salary ON staff (salary)")
    staff.execute("SET enable_seqscan = off")
    assert staff.execute("SELECT id FROM staff WHERE salary = 41").fetchall() == [(2,)]
    dba.execute("REINDEX TABLE staff")
    dba.execute("VACUUM ANALYZE staff")
    assert staff.execute("SELECT id FROM staff WHERE salary = 41").fetchall() == [(2,)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        dba.execute("CREATE INDEX ON staff (name)")


def test_a_lost_keeper_loses_nothing(staff, stack, schema):
    staff.close()
    stack.kill_keeper()
    stack.up()
    with stack.connect_app(options=f"-c search_path={schema}") as connection:
        got = connection.execute("SELECT name, salary FROM staff WHERE id = 1").fetchall()
        assert got == [(SECRET, NUMBER)]


def test_the_cell_is_the_dump(staff, stack, schema):
    """pg_dump needs no keeper to speak of, and no ticket to restore."""
    staff.execute("CREATE INDEX by_salary ON staff (salary)")
    dump = tool("pg_dump", "-d", stack.dba_url, "-n", schema)
    assert SECRET.encode() not in dump
    assert b"cell1." in dump
    with another_database(stack) as addresses:
        tool("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", addresses["straight"], stdin=dump)
        with psycopg.connect(addresses["proxy"], options=f"-c search_path={schema}") as connection:
            got = connection.execute("SELECT name, salary FROM staff ORDER BY id").fetchall()
            assert got == [(SECRET, NUMBER), ("Bob", 41)]
            connection.execute("UPDATE staff SET salary = salary + 1")
            got = connection.execute("SELECT salary FROM staff WHERE name = 'Bob'").fetchall()
            assert got == [(42,)]
