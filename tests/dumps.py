"""Common parts of the tests of dumps: a schema with each kind of definition over protected columns,
where to restore it, and what must then hold."""

import contextlib
import subprocess

import psycopg
from results import run
from stack import PG_BIN

DDL = """
CREATE TABLE person (id int PRIMARY KEY, name enc_text NOT NULL CHECK (name <> 'nobody''s'),
    pay enc_numeric(10, 2) DEFAULT 100.25 CHECK (pay > 10), code enc_bpchar(4) UNIQUE,
    CHECK (id >= 0));
CREATE TABLE visit (id int PRIMARY KEY, code enc_bpchar(4) REFERENCES person (code), note text);
CREATE UNIQUE INDEX high ON person (name) WHERE pay > 1020.75;
CREATE VIEW rich AS SELECT name FROM person WHERE pay > 1030.50;
"""
FORMS = ["plain", "inserts", "columns", "custom", "directory", "data only", "by table"]
PSQL = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d"]
PEOPLE = 40
QUERY = "SELECT p.*, v.note FROM person p LEFT JOIN visit v USING (code) ORDER BY p.id"
SECRETS = [b"Secretname", b"1003", b"C007", b"100.25", b"1030.5", b"1020.75", b"nobody"]


def tool(name, *args, stdin=None, env=None):
    done = subprocess.run(
        [PG_BIN / name, *map(str, args)],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        env=env,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def dump_and_restore(source, target, schema, form, directory, env):
    """`source` and `target` are addresses."""
    head = ["pg_dump", "-d", source]
    whole = [*head, "-n", schema]
    options = {"inserts": ["--rows-per-insert=7"], "columns": ["--column-inserts"]}
    if form == "directory":
        tool(*whole, "-Fd", "-j", 2, "-f", directory / "dump")
        tool("pg_restore", "--exit-on-error", "-j", 2, "-d", target, directory / "dump", env=env)
    elif form == "custom":
        tool("pg_restore", "--exit-on-error", "-d", target, stdin=tool(*whole, "-Fc"), env=env)
    elif form in ("data only", "by table"):
        tool(*PSQL, target, stdin=tool(*whole, "--section=pre-data"), env=env)
        if form == "data only":
            tool(*PSQL, target, stdin=tool(*whole, "--data-only"), env=env)
        for table in ("visit", "person") if form == "by table" else ():
            data = tool(*head, "-t", f'"{schema}".{table}', "--data-only")
            tool(*PSQL, target, stdin=data, env=env)
        tool(*PSQL, target, stdin=tool(*whole, "--section=post-data"), env=env)
    else:
        tool(*PSQL, target, stdin=tool(*whole, *options.get(form, [])), env=env)


def fill(app):
    app.execute(DDL)
    rows = [(i, f"Secretname{i}", 1000 + i, f"C{i:03}") for i in range(PEOPLE)]
    with app.cursor().copy("COPY person FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    app.execute("INSERT INTO visit SELECT id, code, 'seen' FROM person WHERE id < 10")


@contextlib.contextmanager
def another_database(stack):
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
    found = run(connection, QUERY)
    assert found.same(expected), found


def not_valid(connection):
    found = "SELECT conname FROM pg_constraint WHERE NOT convalidated ORDER BY 1"
    return [row[0] for row in connection.execute(found)]


def not_ready(connection):
    found = (
        "SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisready AND NOT indisvalid"
    )
    return [row[0] for row in connection.execute(found)]


def finish(connection):
    """What the owner does after a restore without a client."""
    for name in not_valid(connection):
        connection.execute(f"ALTER TABLE {name.split('_')[0]} VALIDATE CONSTRAINT {name}")
    for name in not_ready(connection):
        connection.execute(f"REINDEX INDEX {name}")
    assert not_valid(connection) == not_ready(connection) == []


def holds(connection):
    """Constraints, default and view do what they did."""
    for sql, state in [
        ("INSERT INTO person VALUES (50, 'x', 5, NULL)", "23514"),
        ("INSERT INTO person VALUES (50, 'nobody''s', 50, NULL)", "23514"),
        ("INSERT INTO visit VALUES (50, 'none')", "23503"),
        ("INSERT INTO person VALUES (50, 'Secretname30', 2000, NULL)", "23505"),
        ("INSERT INTO person VALUES (52, 'Secretname30', 50, NULL)", None),
        ("INSERT INTO visit VALUES (50, 'C020')", None),
        ("INSERT INTO person (id, name) VALUES (51, 'y')", None),
    ]:
        assert run(connection, sql).sqlstate == state, sql
    assert run(connection, "SELECT pay FROM person WHERE id = 51").rows == [("100.25",)]
    assert run(connection, "SELECT count(*) FROM rich").rows == [("9",)]
