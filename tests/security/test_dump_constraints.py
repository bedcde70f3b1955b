"""Dumps with constraints, defaults and views over protected columns: straight and through the
proxy, both ways, whole, table by table, data only, and by parallel workers.

Mechanism: a superuser who restores has no client session, so the keeper checks no constraint for
him. Rows come in all the same; the constraints become NOT VALID, and their owner validates them
through the proxy. With the bug no row was loaded (08003). Through the proxy definitions hold
values, not the session's envelopes, with which nobody could restore.
"""

import subprocess

import psycopg
import pytest
from results import run
from stack import PG_BIN

DDL = """
CREATE TABLE person (id int PRIMARY KEY, name enc_text NOT NULL CHECK (name <> 'nobody''s'),
    pay enc_numeric(10, 2) DEFAULT 100.25 CHECK (pay > 10), code enc_bpchar(4) UNIQUE,
    CHECK (id >= 0));
CREATE TABLE visit (id int PRIMARY KEY, code enc_bpchar(4) REFERENCES person (code), note text);
CREATE VIEW rich AS SELECT name FROM person WHERE pay > 1030.50;
"""
PEOPLE = 40
QUERY = "SELECT p.*, v.note FROM person p LEFT JOIN visit v USING (code) ORDER BY p.id"
SECRETS = [b"Secretname", b"1003", b"C007", b"100.25", b"1030.5", b"nobody"]


def tool(name, *args, stdin=None):
    done = subprocess.run(
        [PG_BIN / name, *map(str, args)],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.fixture
def people(app):
    app.execute(DDL)
    rows = [(i, f"Secretname{i}", 1000 + i, f"C{i:03}") for i in range(PEOPLE)]
    with app.cursor().copy("COPY person FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    app.execute("INSERT INTO visit SELECT id, code, 'seen' FROM person WHERE id < 10")
    return app


@pytest.fixture
def other(stack, people):
    """Another database, owned by the application: addresses straight and through the proxy."""
    with stack.connect_dba() as dba:
        dba.execute("DROP DATABASE IF EXISTS restored")
        dba.execute("CREATE DATABASE restored OWNER app")
    addresses = {
        "straight": stack.dba_url.rsplit("/", 1)[0] + "/restored",
        "proxy": stack.app_url.rsplit("/", 1)[0] + "/restored",
    }
    tool("psql", "-X", "-q", "-d", addresses["straight"], "-c", "CREATE EXTENSION confide")
    yield addresses
    with stack.connect_dba() as dba:
        dba.execute("DROP DATABASE restored WITH (FORCE)")


def restored(addresses, schema):
    return psycopg.connect(addresses["proxy"], autocommit=True, options=f"-c search_path={schema}")


def same(people, connection):
    expected = run(people, QUERY)
    assert len(expected.rows) == PEOPLE
    assert run(connection, QUERY).same(expected)


def not_valid(connection):
    found = "SELECT conname FROM pg_constraint WHERE NOT convalidated ORDER BY 1"
    return [row[0] for row in connection.execute(found)]


def holds(connection):
    """Constraints, default and view do what they did."""
    for sql, state in [
        ("INSERT INTO person VALUES (50, 'x', 5, NULL)", "23514"),
        ("INSERT INTO person VALUES (50, 'nobody''s', 50, NULL)", "23514"),
        ("INSERT INTO visit VALUES (50, 'none')", "23503"),
        ("INSERT INTO visit VALUES (50, 'C020')", None),
        ("INSERT INTO person (id, name) VALUES (51, 'y')", None),
    ]:
        assert run(connection, sql).sqlstate == state, sql
    assert run(connection, "SELECT pay FROM person WHERE id = 51").rows == [("100.25",)]
    assert run(connection, "SELECT count(*) FROM rich").rows == [("9",)]


@pytest.mark.parametrize("form", ["plain", "inserts", "custom", "directory"])
def test_straight(stack, people, other, schema, form, tmp_path):
    """Dumped and restored by the superuser."""
    target = other["straight"]
    head = ["-d", stack.dba_url, "-n", schema]
    if form == "directory":
        tool("pg_dump", *head, "-Fd", "-j", 2, "-f", tmp_path / "dump")
        tool("pg_restore", "--exit-on-error", "-j", 2, "-d", target, tmp_path / "dump")
    elif form == "custom":
        dump = tool("pg_dump", *head, "-Fc")
        tool("pg_restore", "--exit-on-error", "-d", target, stdin=dump)
    else:
        dump = tool("pg_dump", *head, *(["--rows-per-insert=7"] if form == "inserts" else []))
        assert [s for s in SECRETS if s in dump] == []
        tool("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", target, stdin=dump)
    with restored(other, schema) as connection:
        same(people, connection)
        # The plain one was checked.
        waiting = not_valid(connection)
        assert waiting == ["person_name_check", "person_pay_check", "visit_code_fkey"]
        for name in waiting:
            table = name.split("_")[0]
            connection.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT {name}")
        assert not_valid(connection) == []
        holds(connection)


def test_data_only_and_by_table(stack, people, other, schema):
    """The schema first, with constraints that are there while rows come in."""
    head = ["-d", stack.dba_url]
    load = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", other["straight"]]
    tool(*load, stdin=tool("pg_dump", *head, "-n", schema, "--schema-only"))
    for table in ("person", "visit"):
        name = f'"{schema}".{table}'
        data = tool("pg_dump", *head, "-t", name, "--data-only", "--disable-triggers")
        tool(*load, stdin=data)
    with restored(other, schema) as connection:
        same(people, connection)
        holds(connection)


def test_through_the_proxy(stack, people, other, schema):
    """Definitions and rows are values, and load as they are."""
    dump = tool("pg_dump", "-d", stack.app_url, "-n", schema, "--no-owner")
    assert b"cfd1." not in dump
    assert [s for s in SECRETS if s not in dump] == []
    tool("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", other["proxy"], stdin=dump)
    with restored(other, schema) as connection:
        same(people, connection)
        assert not_valid(connection) == []
        holds(connection)


def test_a_wrong_row_is_found(stack, people, other, schema):
    """What came in unchecked does not pass for checked."""
    dump = tool("pg_dump", "-d", stack.dba_url, "-n", schema, "-t", f'"{schema}".person')
    tool(
        "psql",
        "-X",
        "-q",
        "-d",
        other["straight"],
        "-c",
        f'CREATE SCHEMA "{schema}" AUTHORIZATION app',
    )
    tool("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", other["straight"], stdin=dump)
    with restored(other, schema) as connection:
        connection.execute("ALTER TABLE person DROP CONSTRAINT person_pay_check")
        connection.execute("ALTER TABLE person ADD CHECK (pay > 1010) NOT VALID")
        outcome = run(connection, "ALTER TABLE person VALIDATE CONSTRAINT person_pay_check")
        assert outcome.sqlstate == "23514"
