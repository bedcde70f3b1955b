"""Input errors beside a plaintext twin: the same message with the same value, the same position in
the text, the same CONTEXT; and neither PostgreSQL nor the proxy logs the value."""

import re

import psycopg
import pytest
from results import plain

COLUMNS = (
    "k int, b enc_bool, i2 enc_int2, i4 enc_int4, i8 enc_int8, f4 enc_float4, f8 enc_float8, "
    "n enc_numeric(8,2), t enc_text, v enc_varchar(6), c enc_bpchar(3), y enc_bytea, d enc_date, "
    "tm enc_time, ts enc_timestamp, tz enc_timestamptz, iv enc_interval, u enc_uuid"
)
FIELDS = ("sqlstate", "message_primary", "message_detail", "message_hint", "statement_position")

# A column and a text that its type does not take.
BAD = [
    ("b", "maybe"),
    ("b", ""),
    ("i2", "abc"),
    ("i2", "40000"),
    ("i4", "abc"),
    ("i4", ""),
    ("i4", " 12 x"),
    ("i4", "9999999999"),
    ("i4", "naïve ☃"),
    ("i4", "it''s"),
    ("i8", "9999999999999999999"),
    ("f4", "1e400"),
    ("f4", "1.5x"),
    ("f8", " 1e400 "),
    ("f8", "x"),
    ("n", "1.2.3"),
    ("n", "1234567.1"),
    ("v", "far too long"),
    ("c", "four"),
    ("y", r"\xabq"),
    ("y", r"\xab0"),
    ("y", r"\x a b"),
    ("d", "yesterdayish"),
    ("d", "2020-13-01"),
    ("d", "31-12-2020"),
    ("d", "5874898-01-01"),
    ("tm", "25:00"),
    ("tm", "noonish"),
    ("ts", "2020-02-30 10:00"),
    ("ts", "294277-01-01"),
    ("ts", "x"),
    ("tz", "2020-01-01 10:00+99"),
    ("tz", "x"),
    ("iv", "1 fortnight"),
    ("iv", "99999999999999999999 years"),
    ("u", "a0eebc99-9c0b"),
]
PLACES = [
    "INSERT INTO t (k, {0}) VALUES (1, '{1}')",
    "INSERT INTO t (k, {0})\n  VALUES (2, NULL), (3, '{1}') -- ☃",
    "UPDATE t SET {0} = '{1}' WHERE k = 1",
    "SELECT '☃', k FROM t WHERE {0} = '{1}' AND k > 0",
    "SELECT k FROM t WHERE {0} IN (NULL, '{1}')",
    "SELECT '{1}'::{2}",
]


@pytest.fixture
def twins(app, plain_twin):
    for connection, ddl in ((app, COLUMNS), (plain_twin, plain(COLUMNS))):
        connection.execute("SET log_parameter_max_length_on_error = 0")
        connection.execute(f"CREATE TABLE t ({ddl})")
        connection.execute("INSERT INTO t (k) VALUES (1)")
    return app, plain_twin


def told(connection, sql, params=None):
    """What an error says; psycopg gives the place in characters."""
    try:
        connection.execute(sql, params)
    except psycopg.Error as error:
        return {name: getattr(error.diag, name) for name in (*FIELDS, "context")}
    return None


def copy(connection, sql, *pieces):
    with connection.cursor().copy(sql) as stream:
        for piece in pieces:
            stream.write(piece)


def type_of(column):
    return dict(part.split(" ", 1) for part in COLUMNS.split(", "))[column]


@pytest.mark.parametrize("place", PLACES)
def test_literals(twins, place):
    app, twin = twins
    for column, value in BAD:
        sql = place.format(column, value, type_of(column))
        expected = told(twin, plain(sql))
        # A condition takes what is too long for the column.
        assert expected or column in "nvc", sql
        assert told(app, sql) == expected, sql


def test_parameters(twins):
    app, twin = twins
    for column, value in BAD:
        sql = f"INSERT INTO t (k, {column}) VALUES (%s, %s)"
        params = (1, value.replace("''", "'"))
        expected = told(twin, sql, params)
        assert told(app, sql, params) == expected, (column, value)


def test_prepared(twins):
    """By name, with a literal and parameters."""
    found = []
    for connection in twins:
        with pytest.raises(psycopg.Error) as error:
            connection.execute(
                "UPDATE t SET i4 = %s, d = %s WHERE i8 = '7'", ("1", "soon"), prepare=True
            )
        found.append((error.value.sqlstate, error.value.diag.message_primary))
    assert found[0] == found[1]
    assert found[0][1] == 'invalid input syntax for type date: "soon"'


def test_copy(twins):
    for column, value in BAD:
        found = []
        for connection in twins:
            with pytest.raises(psycopg.Error) as error:
                copy(
                    connection,
                    f"COPY t (k, {column}, t) FROM STDIN WITH (NULL 'nil')",
                    "1\tnil\tx\n" * 2000,
                    f"2\t{value.replace(chr(92), chr(92) * 2)}\tx\n",
                    "3\tnil\tx\n" * 10,
                )
            diag = error.value.diag
            found.append({name: getattr(diag, name) for name in (*FIELDS, "context")})
        assert found[0] == found[1]


def test_copy_shows_a_long_value_as_postgresql(twins):
    found = []
    for connection in twins:
        with pytest.raises(psycopg.Error) as error:
            copy(connection, "COPY t (i4) FROM STDIN (FORMAT csv)", '"' + "ü1" * 40 + '"\n')
        found.append((error.value.diag.message_primary, error.value.diag.context))
    assert found[0] == found[1]


LINES = [
    ("", "2\tx\n"),
    ("", "2\tx\t7\ty\n"),
    ("", "2\n"),
    ("", "2\t" + "☃" * 60 + "\n"),
    ("WITH (FORMAT csv)", "2,x\n"),
    ("WITH (FORMAT csv)", "2,x,7,y\n"),
    ("WITH (FORMAT csv)", '2,"x'),
]


@pytest.mark.parametrize(("options", "line"), LINES)
def test_copy_of_a_line_that_is_wrong(twins, options, line):
    good = "1\tx\t7\n" if not options else "1,x,7\n"
    found = []
    for connection in twins:
        with pytest.raises(psycopg.Error) as error:
            copy(connection, f"COPY t (k, t, i4) FROM STDIN {options}", good * 1500, line)
        diag = error.value.diag
        found.append({name: getattr(diag, name) for name in (*FIELDS, "context")})
    assert found[0] == found[1]


def test_copy_shows_no_envelopes(app):
    app.execute("CREATE TABLE checked (k int, s enc_text, CHECK (k < 2))")
    with pytest.raises(psycopg.errors.CheckViolation) as error:
        copy(app, "COPY checked FROM STDIN", "1\tone\n2\ttwo\n")
    assert "line 2" in error.value.diag.context
    assert "cfd1." not in error.value.diag.context


def message(connection, sql, params=None):
    return told(connection, sql, params)["message_primary"]


def test_not_a_literal_of_the_statement(app):
    """A stored value fails in the same way as another literal would: nobody is blamed."""
    app.execute("CREATE TABLE s (k int, s enc_text, n enc_int4)")
    app.execute("INSERT INTO s VALUES (1, 'seven', 7)")
    bare = "invalid input syntax for type integer"
    assert message(app, "SELECT s::enc_int4 FROM s WHERE s <> 'abc'") == bare
    assert message(app, "UPDATE s SET n = s::enc_int4 WHERE s <> %s", ("abc",)) == bare


def test_several(app):
    """Of several that fail alike, the first where PostgreSQL's order is known."""
    app.execute("CREATE TABLE s (k int, n enc_int4)")
    app.execute("INSERT INTO s VALUES (1, 7)")
    bare = "invalid input syntax for type integer"
    assert message(app, "INSERT INTO s VALUES (1, 'a'), (2, 'b')") == f'{bare}: "a"'
    assert message(app, "UPDATE s SET n = 'a' WHERE n = 'b'") == bare
    assert message(app, "SELECT 1; INSERT INTO s VALUES (1, 'c')") == f'{bare}: "c"'


def test_nobody_else_is_told(stack, app):
    """Not the server's log, which has every statement and every error, nor the proxy's."""
    sizes = stack.log_sizes()
    app.execute("CREATE TABLE s (k int, n enc_int4)")
    told(app, "INSERT INTO s VALUES (1, 'Vkq8LiteralZ')")
    told(app, "INSERT INTO s VALUES (1, %s)", ("Vkq8ParameterZ",))
    with pytest.raises(psycopg.Error):
        copy(app, "COPY s FROM STDIN", "1\tVkq8CopyZ\n")
    # In full: four letters stand in some envelope, too.
    assert not re.findall(r"Vkq8(?:Literal|Parameter|Copy)Z", stack.logged_since(sizes))
