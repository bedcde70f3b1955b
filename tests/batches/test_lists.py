"""Comparing a column with a list is one request for all rows of a batch.

Mechanism: `x = ANY (list)` and `x <> ALL (list)` are sent to the keeper as the column and the list.
Right: the results of plain SQL, including NULL, whatever the width of the list's elements (drivers
send lists of small numbers as smallint[]), and few requests. Bug: each row is compared with each
element in a separate message.
"""

import pytest
from results import plain, run

ROWS = 3000
DDL = """
CREATE TABLE t (i int PRIMARY KEY, s enc_int2, k enc_int4, b enc_int8, n enc_numeric(12, 2),
    f enc_float4, g enc_float8, v enc_varchar(20), x enc_text, c enc_bpchar(8), d enc_date)
"""
COPY = "COPY t FROM STDIN"
NUMBERS = ["int2", "int4", "int8", "numeric"]
TEXTS = ["text", "varchar"]


@pytest.fixture
def both(app, dba, plain_twin):
    dba.execute("GRANT pg_monitor TO app")
    for connection in (app, plain_twin):
        connection.execute(DDL if connection is app else plain(DDL))
        with connection.cursor().copy(COPY) as copy:
            for i in range(ROWS):
                day = f"2024-{1 + i % 12:02}-{1 + i % 28:02}"
                row = [i, i, i, i, i, i / 4, i / 4, f"v{i}", f"v{i}", f"v{i}", day]
                copy.write_row([v if n == 0 or (i + n) % 19 else None for n, v in enumerate(row)])
        connection.execute("ANALYZE t")
    yield app, plain_twin
    dba.execute("REVOKE pg_monitor FROM app")


ASKED = """SELECT sum(value::int8) FROM confide.confide_stat_keeper
    WHERE name LIKE 'session.messages.Declassify%'"""


def asked(connection) -> int:
    """Questions. Casts of a list's elements are one-way, and envelopes are for the server's log."""
    return int(connection.execute(ASKED).fetchone()[0] or 0)


def agree(both, query, params=None) -> int:
    """How many questions the protected side has asked."""
    app, twin = both
    expected = run(twin, query, params)
    before = asked(app)
    found = run(app, query, params)
    waited = asked(app) - before
    assert found.sqlstate is None, found.message
    assert found.same(expected), query
    return waited


def literal(values, type_):
    return "'{" + ",".join("NULL" if v is None else str(v) for v in values) + "}'::" + type_ + "[]"


@pytest.mark.parametrize("column", "skbn")
@pytest.mark.parametrize("type_", NUMBERS)
def test_numbers(both, column, type_):
    wanted = list(range(0, 2 * ROWS, 7))
    for test in (f"{column} = ANY (%s::{type_}[])", f"{column} <> ALL (%s::{type_}[])"):
        query = f"SELECT i FROM t WHERE {test} ORDER BY i"
        assert agree(both, query, (wanted,)) < 100
        assert agree(both, query.replace("%s", literal(wanted, type_))) < 100


def test_as_drivers_send_it(both):
    """psycopg sends a list of small numbers as smallint[]; also with a plan for any list."""
    wanted = list(range(0, 2 * ROWS, 7))
    query = "SELECT count(*), sum(i) FROM t WHERE k = ANY (%s)"
    assert agree(both, query, (wanted,)) < 100
    app, twin = both
    app.execute("SET plan_cache_mode = force_generic_plan")
    expected = twin.execute(query, (wanted,)).fetchall()
    for _ in range(3):
        assert app.execute(query, (wanted,), prepare=True).fetchall() == expected
    assert app.execute(query, ([5],), prepare=True).fetchall() == [(1, 5)]
    assert app.execute(query, (None,), prepare=True).fetchall() == [(0, None)]


@pytest.mark.parametrize("column", "vxc")
@pytest.mark.parametrize("type_", TEXTS)
def test_texts(both, column, type_):
    wanted = [f"v{i}" for i in range(0, 2 * ROWS, 7)]
    query = f"SELECT i FROM t WHERE {column} = ANY (%s::{type_}[]) ORDER BY i"
    assert agree(both, query, (wanted,)) < 100


@pytest.mark.parametrize("column", "fg")
@pytest.mark.parametrize("type_", ["float4", "float8"])
def test_floats(both, column, type_):
    wanted = [i / 4 for i in range(0, 2 * ROWS, 7)] + [float("nan"), -0.0]
    query = f"SELECT i FROM t WHERE {column} = ANY (%s::{type_}[]) ORDER BY i"
    assert agree(both, query, (wanted,)) < 100


def test_null(both):
    """A list with NULL does not decide the rows that it does not have; an empty one decides all."""
    some = [None, *range(0, 40)]
    for values in (some, [None] * 20, list(range(20)), []):
        for test in ("k = ANY ({})", "k <> ALL ({})", "(k = ANY ({})) IS NULL"):
            condition = test.format(literal(values, "int4"))
            agree(both, f"SELECT i FROM t WHERE {condition} ORDER BY i")
            agree(both, f"SELECT i FROM t WHERE NOT ({condition}) AND i < 100 ORDER BY i")
            agree(both, f"SELECT i, CASE WHEN {condition} THEN k END FROM t WHERE n > 5 ORDER BY i")


def test_two_lists(both):
    few, many = list(range(0, 90, 3)), list(range(0, 900, 2))
    for condition in (
        f"k = ANY ({literal(many, 'int2')}) AND b <> ALL ({literal(few, 'int4')})",
        f"k = ANY ({literal(few, 'int8')}) OR v = ANY ({literal(['v7'] * 9, 'text')})",
        f"k = ANY ({literal(few, 'int4')}) AND NOT (b = ANY ({literal(few, 'int4')}))",
        f"k + 1 = ANY ({literal(few, 'int4')})",
        f"d = ANY ({literal(['2024-01-01', '2024-03-03'] * 5, 'date')})",
    ):
        agree(both, f"SELECT i FROM t WHERE {condition} ORDER BY i")
        agree(both, f"SELECT count(*), sum(n), max(k) FROM t WHERE {condition}")
