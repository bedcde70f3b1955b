"""Bad and extreme input: each results in PostgreSQL's own error or a clear one, and the session
remains usable."""

import re

import psycopg
import pytest
from results import run
from waiting import until


@pytest.fixture
def t(app):
    app.execute("CREATE TABLE t (i int PRIMARY KEY, n enc_int4, s enc_text, x enc_numeric)")
    app.execute("INSERT INTO t VALUES (1, 7, 'seven', 7.5), (2, NULL, NULL, NULL), (3, 0, '', 0)")
    yield app
    # Whatever happened, the session goes on.
    assert run(app, "SELECT n + 1, s || '!' FROM t WHERE i = 1").rows == [("8", "seven!")]


def envelope(connection, column="n", row=1):
    """The column's value as this connection sees it, without a driver's interpretation."""
    return run(connection, f"SELECT {column} FROM t WHERE i = {row}").rows[0][0]


def full_error(connection, sql):
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(sql)
    return caught.value


# Errors that plain PostgreSQL gives, too.
SAME = [
    ("INSERT INTO t VALUES (9, 'abc')", "22P02"),
    ("INSERT INTO t VALUES (9, '')", "22P02"),
    ("INSERT INTO t VALUES (9, 2147483648)", "22003"),
    ("INSERT INTO t VALUES (9, '99999999999999')", "22003"),
    ("SELECT n + 2147483647 FROM t", "22003"),
    ("SELECT n * 2147483647 FROM t WHERE i = 1", "22003"),
    ("SELECT 1 / n FROM t", "22012"),
    ("SELECT x / 0 FROM t WHERE i = 1", "22012"),
    ("SELECT n % 0 FROM t WHERE i = 1", "22012"),
    ("SELECT s::int FROM t WHERE i = 1", "22P02"),
    ("SELECT s::enc_int4 FROM t WHERE i = 1", "22P02"),
    ("SELECT substring(s FROM 1 FOR -1) FROM t", "22011"),
    (r"SELECT s LIKE 'x\' FROM t WHERE i = 1", None),
    (r"SELECT s LIKE 's\' FROM t WHERE i = 1", "22025"),
    ("UPDATE t SET n = 3000000000", "22003"),
    ("UPDATE t SET x = 'NaN'::numeric WHERE i = 3", None),
    ("SELECT nothing FROM t", "42703"),
    ("SELECT n || 5 FROM t", "42883"),
    ("SELECT sum(s) FROM t", "42883"),
    ("SELECT FROM t WHERE", "42601"),
    ("INSERT INTO t VALUES (1, 1)", "23505"),
    ("INSERT INTO t (i, n) VALUES (9, date '2024-01-01')", "42804"),
]


@pytest.mark.parametrize(("sql", "state"), SAME)
def test_error(t, sql, state):
    assert run(t, sql).sqlstate == state


@pytest.mark.parametrize("sql", [s for s, state in SAME if state])
def test_error_in_a_transaction(t, sql):
    with pytest.raises(psycopg.Error), t.transaction():
        t.execute("INSERT INTO t VALUES (50, 50)")
        t.execute(sql)
    assert run(t, "SELECT count(*) FROM t").rows == [("3",)]


NULLS = [
    ("SELECT n + 1 FROM t WHERE i = 2", None),
    ("SELECT s || 'x' FROM t WHERE i = 2", None),
    ("SELECT n > 5 FROM t WHERE i = 2", None),
    ("SELECT NULL + n FROM t WHERE i = 1", None),
    ("SELECT n = NULL FROM t WHERE i = 1", None),
    ("SELECT sum(n) FROM t WHERE i = 2", None),
    ("SELECT sum(n) FROM t", "7"),
    ("SELECT count(n) FROM t", "2"),
    ("SELECT length(s) FROM t WHERE i = 3", "0"),
    ("SELECT s = '' FROM t WHERE i = 3", "t"),
    ("SELECT s IS NULL FROM t WHERE i = 3", "f"),
    ("SELECT coalesce(s, 'none') FROM t WHERE i = 2", "none"),
    ("SELECT x * 'NaN' FROM t WHERE i = 1", "NaN"),
    ("SELECT x = 'NaN' FROM t WHERE i = 1", "f"),
    ("SELECT 'NaN' > x FROM t WHERE i = 1", "t"),
    ("SELECT x * 'Infinity' FROM t WHERE i = 3", "NaN"),
]


@pytest.mark.parametrize(("sql", "value"), NULLS)
def test_null_and_nan(t, sql, value):
    assert run(t, sql).rows == [(value,)]


def test_multibyte_like(t):
    t.execute("INSERT INTO t (i, s) VALUES (10, 'naïve ☃ café'), (11, '日本語'), (12, 'a%b_c')")
    for pattern, found in [
        ("na_ve%", ["10"]),
        ("%☃%", ["10"]),
        ("__語", ["11"]),
        ("___", ["11"]),
        ("%é", ["10"]),
        (r"a\%b\_c", ["12"]),
        ("日%", ["11"]),
        ("_", []),
    ]:
        query = f"SELECT i FROM t WHERE s LIKE '{pattern}' ORDER BY i"
        assert [r[0] for r in run(t, query).rows] == found, pattern
    assert run(t, "SELECT i FROM t WHERE s ILIKE 'NA%' OR s NOT LIKE '%' ORDER BY i").rows == [
        ("10",)
    ]
    assert run(t, r"SELECT i FROM t WHERE s LIKE 'a#%b%' ESCAPE '#'").rows == [("12",)]


def test_large(t):
    text = "0123456789" * 100_000
    t.execute("UPDATE t SET s = %s WHERE i = 3", (text,))
    assert run(t, "SELECT s FROM t WHERE i = 3").rows == [(text,)]
    assert run(t, f"SELECT i FROM t WHERE s = '{text}'").rows == [("3",)]
    digits = "9" * 1000
    t.execute(f"UPDATE t SET x = {digits}.{digits} WHERE i = 3")
    assert run(t, "SELECT x + 1 FROM t WHERE i = 3").rows == [(f"1{'0' * 1000}.{digits}",)]


def test_too_large(t):
    """A value longer than what may cross to the keeper."""
    outcome = run(t, "UPDATE t SET s = repeat('x', 80000000) WHERE i = 3")
    if outcome.sqlstate is None:  # the plain function's value went in
        assert run(t, "SELECT octet_length(s) FROM t WHERE i = 3").rows == [("80000000",)]
        t.execute("UPDATE t SET s = '' WHERE i = 3")
    else:
        assert outcome.sqlstate in ("54000", "22023", "53200", "0A000", "42501"), outcome
    with pytest.raises(psycopg.Error) as caught:
        t.execute("UPDATE t SET s = %s WHERE i = 3", ("y" * 70_000_000,))
    assert caught.value.sqlstate in ("54000", "22023", "53200"), caught.value


def test_many_values_in_a_statement(t):
    rows = ", ".join(f"({i}, {i}, 'value {i}', {i}.5)" for i in range(100, 5100))
    t.execute(f"INSERT INTO t VALUES {rows}")
    assert run(t, "SELECT count(*), sum(n) FROM t WHERE i >= 100").rows == [("5000", "12997500")]


def test_deep_expression(t):
    deep = "n" + " + 1" * 500
    assert run(t, f"SELECT {deep} FROM t WHERE i = 1").rows == [("507",)]


def test_sessions(stack, t, schema):
    """More than 16 sessions at once, each with values of its own."""
    connections = [stack.connect_app() for _ in range(40)]
    try:
        for number, connection in enumerate(connections):
            connection.execute(f"SET search_path = {schema}")
            connection.execute("BEGIN")
            connection.execute(f"INSERT INTO t VALUES ({number + 100}, {number}, 'of {number}')")
        for number, connection in enumerate(connections):
            query = f"SELECT n + {number}, s FROM t WHERE i = {number + 100}"
            assert run(connection, query).rows == [(str(2 * number), f"of {number}")]
            connection.execute("COMMIT")
    finally:
        for connection in connections:
            connection.close()
    assert run(t, "SELECT count(*), sum(n) FROM t WHERE i >= 100").rows == [("40", "780")]


# What a superuser, who has no client session, may try as input.


def test_plaintext_where_an_envelope_is_expected(t, dba):
    for sql in (
        "INSERT INTO t (i, s) VALUES (20, 'plain text')",
        "INSERT INTO t (i, n) VALUES (20, '5')",
        "UPDATE t SET n = '5'",
        "SELECT 'plain'::enc_text",
        "SELECT '5'::enc_int4 FROM t",
    ):
        error = full_error(dba, sql)
        assert error.sqlstate in ("22P02", "42501", "22023"), (sql, error)
        assert error.diag.message_detail, sql
        assert error.diag.message_hint, sql
    assert run(dba, "SELECT 1").rows == [("1",)]
    assert run(t, "SELECT count(*) FROM t").rows == [("3",)]


def test_export_envelope_goes_in_again(stack, t, dba):
    value = envelope(dba)
    assert value.startswith("cfd1.")
    insert = f"INSERT INTO t (i, n) VALUES (20, '{value}')"
    assert full_error(dba, insert).sqlstate == "42501"
    dba.execute(f"SET confide.restore_ticket = '{stack.ticket('app')}'")
    dba.execute(insert)
    assert run(t, "SELECT n FROM t WHERE i = 20").rows == [("7",)]


def damaged(value):
    body = value.removeprefix("cfd1.")
    flipped = "A" if body[-3] != "A" else "B"
    yield "truncated", "cfd1." + body[:-4]
    yield "short", "cfd1." + body[:8]
    yield "empty", "cfd1."
    yield "altered at the end", "cfd1." + body[:-3] + flipped + body[-2:]
    yield "altered within", "cfd1." + body[:30] + ("A" if body[30] != "A" else "B") + body[31:]
    yield "altered header", "cfd1." + ("A" if body[0] != "A" else "B") + body[1:]
    yield "longer", value + "AAAA"
    yield "not base64", value + "!"
    yield "other version", "cfd9." + body


def test_damaged_envelopes(stack, t, dba):
    dba.execute(f"SET confide.restore_ticket = '{stack.ticket('app', '--other-columns')}'")
    for what, value in damaged(envelope(dba)):
        error = full_error(dba, f"INSERT INTO t (i, n) VALUES (21, '{value}')")
        assert error.sqlstate in ("22P02", "22P03", "28000", "42501", "22023", "22000"), (
            what,
            error,
        )
        assert value not in f"{error.diag.message_primary} {error.diag.message_detail}"
        assert run(dba, "SELECT 1").rows == [("1",)]
    assert run(t, "SELECT count(*) FROM t").rows == [("3",)]


def test_envelope_of_another_type(stack, t, dba):
    dba.execute(f"SET confide.restore_ticket = '{stack.ticket('app', '--other-columns')}'")
    text, number = envelope(dba, "s"), envelope(dba, "n")
    for column, value in (("n", text), ("s", number), ("x", number)):
        error = full_error(dba, f"INSERT INTO t (i, {column}) VALUES (22, '{value}')")
        assert error.sqlstate in ("22P02", "42804", "22P03", "42501", "22023"), (column, error)


def sent_by_the_proxy(stack, marker):
    """The last envelope in the server's log on a line with this marker."""

    def last():
        lines = (stack.logs / "postgres.log").read_text(errors="replace").splitlines()
        found = [re.findall(r"cfd1\.[A-Za-z0-9_-]+", line) for line in lines if marker in line]
        return [f for f in found if f]

    return until(last, "an envelope in the log")[-1][-1]


def test_envelope_of_another_session(stack, t, dba, second):
    """An envelope replayed from the server's log opens for nobody else."""
    t.execute("INSERT INTO t AS replay_me (i, s) VALUES (30, 'stolen')")
    value = sent_by_the_proxy(stack, "replay_me")
    for sql in (
        f"INSERT INTO t (i, s) VALUES (31, '{value}')",
        f"SELECT i FROM t WHERE s = '{value}'",
        f"SELECT '{value}'::enc_text",
    ):
        assert full_error(dba, sql).sqlstate in ("22P02", "42501", "28000", "22023", "22000")
    # Through the proxy it is text like any other, sealed again.
    outcome = run(second, f"INSERT INTO t (i, s) VALUES (31, '{value}')")
    rows = run(t, "SELECT s FROM t WHERE i = 31").rows
    assert (outcome.sqlstate is not None and rows == []) or rows == [(value,)]
    t.execute("DELETE FROM t WHERE i >= 30")


def test_binary_input_of_garbage(t, dba):
    """The receive function, too, takes envelopes only."""
    for value in (b"", b"\0" * 8, b"\x01\x02\x03\x04\x05\x06\x07\x08", b"\xcf" * 64):
        with pytest.raises(psycopg.Error) as caught:  # noqa: SIM117
            with dba.cursor().copy("COPY t (i, n) FROM STDIN WITH (FORMAT binary)") as copy:
                copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
                copy.write((2).to_bytes(2, "big"))
                copy.write((4).to_bytes(4, "big") + (40).to_bytes(4, "big"))
                copy.write(len(value).to_bytes(4, "big") + value)
                copy.write(b"\xff\xff")
        assert caught.value.sqlstate in ("22P02", "22P03", "42501", "22023", "22000")


def test_out_of_memory_in_the_keeper(stack):
    """The keeper's limit is an SQL error; it ends nothing else."""
    stack.environment["CONFIDE_KEEPER_MEMORY_LIMIT"] = "256MB"  # what other tests left fits in
    stack.environment["CONFIDE_KEEPER_SESSION_MEMORY_LIMIT"] = "8MB"
    try:
        stack.up()
        with stack.connect_app() as connection, stack.connect_app() as other:
            connection.execute("DROP SCHEMA IF EXISTS memory CASCADE")
            connection.execute("CREATE SCHEMA memory")
            connection.execute("CREATE TABLE memory.m (s enc_text)")
            connection.execute("CREATE TABLE memory.small (s enc_text)")
            connection.execute("INSERT INTO memory.small VALUES ('kept')")
            text = "x" * 100_000
            states = set()
            for _ in range(4000):
                outcome = run(connection, f"INSERT INTO memory.m VALUES ('{text}')")
                states.add(outcome.sqlstate)
                if outcome.sqlstate:
                    break
            assert states == {None, "53200"}
            for each in (connection, other):
                assert run(each, "SELECT s FROM memory.small").rows == [("kept",)]
            rows = ", ".join(f"('{text}')" for _ in range(200))  # more than a session may have
            assert run(other, f"INSERT INTO memory.m VALUES {rows}").sqlstate == "53200"
            assert run(other, "SELECT s FROM memory.small").rows == [("kept",)]
    finally:
        del stack.environment["CONFIDE_KEEPER_MEMORY_LIMIT"]
        del stack.environment["CONFIDE_KEEPER_SESSION_MEMORY_LIMIT"]
        stack.up()
