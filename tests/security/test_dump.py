"""pg_dump by the superuser contains only envelopes, and can be restored in the same cluster."""

import subprocess

import psycopg
import pytest
from results import run
from stack import PG_BIN

DDL = """
CREATE TABLE person (id int PRIMARY KEY, name enc_text NOT NULL, born enc_date,
                     pay enc_numeric(10, 2) DEFAULT 100.25, code enc_bpchar(4) UNIQUE);
CREATE INDEX person_name ON person (name);
CREATE TABLE visit (id int PRIMARY KEY REFERENCES person, code enc_bpchar(4),
                    at enc_timestamptz, note text);
"""


def tool(name, *args, stdin=None, env=None):
    done = subprocess.run(
        [PG_BIN / name, *args],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        env=env,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.fixture
def people(app):
    app.execute(DDL)
    for i in range(40):
        app.execute(
            "INSERT INTO person VALUES (%s, %s, %s, %s, %s)",
            (i, f"Secretname{i}", f"19{40 + i}-01-02", 1000 + i, f"C{i:03}"),
        )
    app.execute("INSERT INTO person (id, name) VALUES (100, 'Secretname by default')")
    app.execute("INSERT INTO visit SELECT id, code, NULL, 'seen' FROM person WHERE id < 10")
    app.execute("UPDATE visit SET at = '2024-05-06 07:08+00'")
    app.execute("CREATE VIEW rich AS SELECT name FROM person WHERE pay > 1030")
    return app


@pytest.fixture
def other(stack, people):
    """Another database of the same cluster, owned by the application."""
    with stack.connect_dba() as dba:
        dba.execute("DROP DATABASE IF EXISTS restored")
        dba.execute("CREATE DATABASE restored OWNER app")
    yield stack.dba_url.rsplit("/", 1)[0] + "/restored"
    with stack.connect_dba() as dba:
        dba.execute("DROP DATABASE restored WITH (FORCE)")


SECRETS = [b"Secretname", b"1003", b"C007", b"1947-01-02", b"2024-05-06", b"100.25", b"1030"]


OPTIONS = {"plain": [], "inserts": ["--rows-per-insert=10"], "custom": ["-Fc"]}


def restore(stack, other, schema, form):
    dump = tool("pg_dump", "-d", stack.dba_url, "-n", schema, *OPTIONS[form])
    tool("psql", "-X", "-q", "-d", other, "-c", "CREATE EXTENSION confide")
    env = stack.restoring("restored")
    if form == "custom":
        tool("pg_restore", "--exit-on-error", "-d", other, stdin=dump, env=env)
    else:
        tool("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", other, stdin=dump, env=env)
    return dump


def connect(stack, schema):
    url = stack.app_url.rsplit("/", 1)[0] + "/restored"
    return psycopg.connect(url, autocommit=True, options=f"-c search_path={schema}")


@pytest.mark.parametrize("form", OPTIONS)
def test_dump_and_restore(stack, people, other, schema, form):
    dump = restore(stack, other, schema, form)
    if form != "custom":
        assert [s for s in SECRETS if s in dump] == []
        assert dump.count(b"cfd1.") > 100
    query = "SELECT p.*, v.at, v.note FROM person p LEFT JOIN visit v USING (code) ORDER BY p.id"
    expected = run(people, query)
    assert len(expected.rows) == 41
    with connect(stack, schema) as restored:
        assert run(restored, query).same(expected)
        assert run(restored, "SELECT id FROM person WHERE name = 'Secretname7'").rows == [("7",)]
        assert run(restored, "SELECT count(*) FROM rich").rows == [("9",)]
        restored.execute("INSERT INTO person (id, name) VALUES (200, 'new')")
        assert run(restored, "SELECT pay FROM person WHERE id = 200").rows == [("100.25",)]
        twice = "INSERT INTO person VALUES (201, 'x', NULL, 1, 'C007')"
        assert run(restored, twice).sqlstate == "23505"
