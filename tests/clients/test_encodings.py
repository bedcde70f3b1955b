"""Clients whose encoding is not UTF-8: statements, values, names and errors on protected columns
are what they are on plain ones, for each encoding with one byte a character
(test_wide_encodings.py has those with several). With others protected columns are refused.

A bug would show other characters, or a value that another client reads differently."""

import os
import re
from pathlib import Path

import psycopg
import pytest

ROOT = Path(__file__).parent.parent.parent
TABLES = ROOT / "crates/proxy/src/charset/tables.rs"
NAMES = (
    "LATIN1 LATIN2 LATIN3 LATIN4 LATIN5 LATIN6 LATIN7 LATIN8 LATIN9 LATIN10"
    " ISO_8859_5 ISO_8859_6 ISO_8859_7 ISO_8859_8 KOI8R KOI8U WIN866 WIN874"
    " WIN1250 WIN1251 WIN1252 WIN1253 WIN1254 WIN1255 WIN1256 WIN1257 WIN1258"
).split()
HEAD = """//! Made by tests/clients/test_encodings.py (CONFIDE_UPDATE=1); do not edit.
//! The characters from 0x80 on of PostgreSQL's encodings with one byte a character; 0: none.

/// Names as the server reports them, and characters.
pub(super) static ALL: &[(&str, [u16; 128])] = &[
"""


def characters(dba, name):
    """What the server makes of each byte above ASCII; None where it refuses."""
    found = []
    for byte in range(0x80, 0x100):
        try:
            row = dba.execute("SELECT convert_from(%s, %s)", (bytes([byte]), name)).fetchone()
            found.append(row[0])
        except psycopg.errors.UntranslatableCharacter:
            found.append(None)
    return found


def source(tables):
    out = HEAD
    for name, found in tables.items():
        out += f'    (\n        "{name}",\n        [\n'
        codes = [f"0x{ord(c):04x}" if c else "0" for c in found]
        for at in range(0, len(codes), 8):
            out += "            " + ", ".join(codes[at : at + 8]) + ",\n"
        out += "        ],\n    ),\n"
    return out + "];\n"


def codes(text):
    return re.findall(r'"(\w+)"|(0x[0-9a-f]{4}|\b0\b)', text.split("static ALL", 1)[1])


def test_tables(stack):
    """The characters that the proxy knows are those of the server."""
    with stack.connect_dba() as dba:
        made = source({name: characters(dba, name) for name in NAMES})
    if os.environ.get("CONFIDE_UPDATE"):
        TABLES.write_text(made)
    assert codes(TABLES.read_text()) == codes(made)


def text_of(name):
    """All characters of an encoding that text can have."""
    letters = [b for b in range(0xA0, 0x100)]
    tables = dict(re.findall(r'"(\w+)",\s*\[([^\]]*)\]', TABLES.read_text()))
    found = [int(code, 16) for code in tables[name].replace(",", " ").split()]
    return "".join(chr(found[b - 0x80]) for b in letters if found[b - 0x80])


def connect(stack, schema, name):
    connection = psycopg.connect(stack.app_url, autocommit=True)
    connection.execute(f'SET search_path = "{schema}"')
    connection.execute(f"SET client_encoding = '{name}'")
    return connection


@pytest.fixture
def table(stack, schema):
    with psycopg.connect(stack.app_url, autocommit=True) as connection:
        connection.execute(f'SET search_path = "{schema}"')
        connection.execute(
            "CREATE TABLE t (id int PRIMARY KEY, p text, e enc_text UNIQUE, n enc_int4)"
            " USING confide"
        )
        yield connection


@pytest.mark.parametrize("name", NAMES)
def test_values(stack, schema, table, name):
    """Literals, parameters in both formats, COPY both ways: what one client writes, another one
    reads."""
    text = text_of(name)
    quoted = text.replace("'", "''")
    with connect(stack, schema, name) as client:
        assert client.info.parameter_status("client_encoding") == name
        client.execute(f"INSERT INTO t VALUES (1, '{quoted} 1', '{quoted} 1')")
        for n, form in enumerate(["%s", "%b", "%t"], 2):
            values = (n, f"{text} {n}", f"{text} {n}")
            client.execute(f"INSERT INTO t VALUES (%s, {form}, {form})", values)
        with client.cursor().copy("COPY t (id, p, e) FROM STDIN") as copy:
            copy.write_row((5, f"{text} 5", f"{text} 5"))
        wanted = [(n, f"{text} {n}", f"{text} {n}") for n in range(1, 6)]
        read = "SELECT id, p, e FROM t ORDER BY id"
        assert client.execute(read).fetchall() == wanted
        for binary in (False, True):
            assert client.execute(read, (), binary=binary).fetchall() == wanted
            row = client.execute("SELECT id FROM t WHERE e = %s", (f"{text} 3",), binary=binary)
            assert row.fetchall() == [(3,)]
        with client.cursor().copy(f"COPY ({read}) TO STDOUT") as copy:
            assert [(int(i), p, e) for i, p, e in copy.rows()] == wanted
    assert table.execute(read).fetchall() == wanted


def test_names_and_errors(stack, schema, table):
    """Names with umlauts, and errors that quote values, as for plain columns."""
    with connect(stack, schema, "LATIN1") as client:
        client.execute(
            'CREATE TABLE "Bücher" (p text UNIQUE, "größe" enc_text UNIQUE) USING confide'
        )
        insert = 'INSERT INTO "Bücher" (p, "größe") VALUES (\'ä\', %s)'
        client.execute("INSERT INTO \"Bücher\" VALUES ('ä', 'ö')")
        assert client.execute('SELECT "größe" FROM "Bücher"').description[0].name == "größe"
        with pytest.raises(psycopg.errors.UniqueViolation) as raised:
            client.execute("INSERT INTO \"Bücher\" VALUES ('ü', 'ö')")
        assert raised.value.diag.message_detail == 'Key ("größe")=(ö) already exists.'
        with pytest.raises(psycopg.errors.UndefinedColumn) as raised:
            client.execute(insert.replace("größe", "grüße"), ("x",))
        assert "grüße" in str(raised.value)
        with pytest.raises(psycopg.errors.InvalidTextRepresentation) as raised:
            client.execute("INSERT INTO t (id, e, n) VALUES (1, 'ß', 'fünf')")
        assert 'invalid input syntax for type integer: "fünf"' in str(raised.value)
        plan = client.execute("EXPLAIN SELECT id FROM t WHERE e = 'ä' AND p = 'ü'").fetchall()
        assert "'ä'" in str(plan)
        assert "'ü'" in str(plan)
        with client.transaction():
            client.execute('DECLARE c CURSOR FOR SELECT p, "größe" FROM "Bücher"')
            assert client.execute("FETCH c").fetchone() == ("ä", "ö")


def test_sql_in_parameters(stack, schema, table):
    """A parameter that is SQL with a constant for a protected column is refused in any encoding."""
    for name in ("UTF8", "LATIN1"):
        with connect(stack, schema, name) as client, pytest.raises(psycopg.Error) as raised:
            client.execute(
                "SELECT query_to_xml(%t, true, false, '')", ("SELECT id FROM t WHERE e = 'sé'",)
            )
        assert raised.value.sqlstate == "0A000"


def test_no_equivalents(stack, schema, table):
    """A character that the other side does not have is an error, with PostgreSQL's words."""
    table.execute("INSERT INTO t (id, e) VALUES (1, '€')")
    with connect(stack, schema, "LATIN1") as client:
        with pytest.raises(psycopg.Error) as raised:
            client.execute("SELECT e FROM t")
        assert raised.value.sqlstate == "22P05"
        wanted = (
            'character with byte sequence 0xe2 0x82 0xac in encoding "UTF8"'
            ' has no equivalent in encoding "LATIN1"'
        )
        assert wanted in str(raised.value)
    with connect(stack, schema, "WIN1252") as client:
        assert client.execute("SELECT e FROM t").fetchone() == ("€",)
        for column in ("p", "e"):
            with pytest.raises(psycopg.Error) as raised:
                client.execute(f"SELECT id FROM t WHERE {column} = ".encode() + b"'\x81'")
            assert raised.value.sqlstate == "22P05"
            assert 'byte sequence 0x81 in encoding "WIN1252"' in str(raised.value)
        assert client.execute("SELECT 1").fetchone() == (1,)


def test_changed_and_restored(stack, schema, table):
    """The encoding is the server's setting: RESET and ROLLBACK bring the old one back."""
    table.execute("INSERT INTO t (id, e) VALUES (1, 'ä')")
    read = "SELECT e FROM t WHERE e = 'ä'"
    with psycopg.connect(stack.app_url, autocommit=True, client_encoding="WIN1250") as client:
        client.execute(f'SET search_path = "{schema}"')
        assert client.execute("SHOW client_encoding").fetchone() == ("WIN1250",)
        assert client.execute(read).fetchone() == ("ä",)
        with client.transaction(force_rollback=True):
            client.execute("SET client_encoding = 'KOI8R'")
            assert client.execute("SELECT id FROM t WHERE e <> 'д'").fetchone() == (1,)
        assert client.info.parameter_status("client_encoding") == "WIN1250"
        assert client.execute(read).fetchone() == ("ä",)
        client.execute("RESET client_encoding")
        assert client.execute(read).fetchone() == ("ä",)


def test_others(stack, schema, table):
    """With an encoding that the proxy does not convert, statements in ASCII on plain columns work;
    others, and protected columns, are refused."""
    table.execute("CREATE TABLE plain AS SELECT '日本' AS p")
    with connect(stack, schema, "SHIFT_JIS_2004") as client:
        assert client.execute("SELECT p FROM plain").fetchone() == ("日本",)
        with pytest.raises(psycopg.Error) as raised:
            client.execute("SELECT p FROM plain WHERE p = '日本'")
        assert raised.value.sqlstate == "22021"
        with pytest.raises(psycopg.Error) as raised:
            client.execute("SELECT id FROM t WHERE e = 'a'")
        assert raised.value.sqlstate == "0A000"
        assert "client_encoding" in str(raised.value)
