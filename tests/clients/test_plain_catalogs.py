"""Catalogs that show plain types to tools (plain_catalogs), and the real types to all others.

Mechanism: a second proxy has the setting; the answers to tools' catalog queries about a protected
table are compared with those about its plain twin. Bug: a protected type is shown, a modifier is
lost, or a dump has plain types and would restore values as plaintext.
"""

import os
import subprocess

import psycopg
import pytest
from stack import PG_BIN

TABLE = """CREATE TABLE {name} (id int PRIMARY KEY, name {p}text NOT NULL, short {p}varchar(20),
    fixed {p}bpchar(4), price {p}numeric(10, 2), free {p}numeric, n {p}int4, f {p}float8,
    day {p}date, made {p}timestamptz, span {p}interval, ok {p}bool, bits {p}bytea, code {p}uuid,
    doc {p}jsonb, raw {p}json)"""

QUESTIONS = {
    "information_schema": "SELECT column_name, is_nullable, data_type, udt_name, collation_name, "
    "character_maximum_length, numeric_precision, numeric_scale, datetime_precision "
    "FROM information_schema.columns WHERE table_name = %s ORDER BY ordinal_position",
    "three_parts": "SELECT information_schema.columns.data_type FROM information_schema.columns "
    "WHERE information_schema.columns.table_name = %s ORDER BY ordinal_position",
    "format_type": "SELECT attname, pg_catalog.format_type(atttypid, atttypmod), attlen, "
    "attcollation FROM pg_catalog.pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 "
    "ORDER BY attnum",
    "types": "SELECT a.attname, t.typname, t.oid FROM pg_attribute a JOIN pg_type t "
    "ON a.atttypid = t.oid WHERE attrelid = %s::regclass ORDER BY attnum",
    "whole_names": "SELECT pg_catalog.pg_attribute.atttypid::regtype FROM pg_catalog.pg_attribute "
    "WHERE pg_catalog.pg_attribute.attrelid = %s::regclass ORDER BY attnum",
}


@pytest.fixture(scope="module")
def shown(stack):
    with stack.another_proxy(plain_catalogs="app") as (_, url):
        yield url


@pytest.fixture
def tool(shown, app, schema):
    app.execute(TABLE.format(name="protected", p="enc_"))
    app.execute(TABLE.format(name="plain", p=""))
    with psycopg.connect(shown, autocommit=True) as connection:
        connection.execute(f'SET search_path = "{schema}"')
        yield connection


@pytest.mark.parametrize("question", QUESTIONS)
def test_questions(tool, app, question):
    def ask(connection, table):
        return connection.execute(QUESTIONS[question], [table]).fetchall()

    expected = ask(tool, "plain")
    assert len(expected) >= 16
    assert ask(tool, "protected") == expected
    assert ask(app, "protected") != expected, "the others see the truth"


def test_type_of_a_value(tool, app):
    ask = "SELECT pg_typeof(name), pg_catalog.pg_typeof(price) AS p, pg_typeof('x') FROM protected"
    for connection in (tool, app):
        connection.execute(
            "INSERT INTO protected (id, name, price) VALUES (1, 'x', 1) ON CONFLICT DO NOTHING"
        )
    result = tool.execute(ask)
    assert [c.name for c in result.description] == ["pg_typeof", "p", "pg_typeof"]
    assert result.fetchall() == [("text", "numeric", "unknown")]
    assert app.execute(ask).fetchall() == [("enc_text", "enc_numeric", "unknown")]


def test_values_are_sealed_as_ever(tool, dba):
    tool.execute("INSERT INTO protected (id, name) VALUES (1, 'canary-plain-catalogs')")
    found = dba.execute("SELECT name FROM protected").fetchall()
    assert "canary" not in str(found)
    query = (
        "SELECT name FROM protected WHERE name LIKE 'canary%' AND EXISTS (SELECT FROM pg_attribute)"
    )
    assert tool.execute(query).fetchall() == [("canary-plain-catalogs",)]


def output(url, program, *arguments):
    command = [PG_BIN / program, *arguments, "-d", url]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_describe_and_dump(tool, shown, schema):
    described = output(shown, "psql", "-X", "-c", rf'\d "{schema}".protected')
    assert "character varying(20)" in described
    assert "enc_" not in described
    dumped = output(shown, "pg_dump", "-s", "-t", f'"{schema}".protected')
    assert "enc_varchar(20)" in dumped


def test_pin(stack, tool, shown, schema, tmp_path):
    """A pin that is made through such a proxy has the protected columns and routines, like one that
    is made at the server."""
    tool.execute(
        "CREATE FUNCTION more(a enc_int4, b int DEFAULT 3, OUT c enc_int4, OUT d protected) "
        "LANGUAGE sql AS $$ SELECT a + a, protected FROM protected WHERE id = b $$"
    )
    confide = stack.data.parent / "bin" / "confide"
    file = tmp_path / "pin"
    command = [confide, "pin", file, "--dbname", shown, "--bindir", PG_BIN]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"{schema}.protected.day enc_date 9" in file.read_text()
    assert f"{schema}.more routine " in file.read_text()
    command = [confide, "pin", file, "--check", "--dbname", stack.dba_url, "--bindir", PG_BIN]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_other_users(stack, app):
    """Of another role the setting says nothing."""
    app.execute(TABLE.format(name="protected", p="enc_"))
    with stack.another_proxy(plain_catalogs="postgres") as (_, url), psycopg.connect(url) as other:
        asked = "SELECT data_type FROM information_schema.columns WHERE table_name = 'protected'"
        assert ("enc_date",) in other.execute(asked).fetchall()
