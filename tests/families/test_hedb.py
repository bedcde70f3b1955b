"""The 79 operators of HEDB on columns of the family rnd_, one test each.

HEDB (papers: section 5.1) counts 79 operators of four types and does not list them. These are
what its published interface has: of each type input, output, encryption, decryption, seven
comparisons and an operator class; six operators of arithmetic, and aggregates, of both types of
numbers; those of text; `extract`, a test for each field.

Mechanism: an operator finds PostgreSQL's meaning of it on values that cells are opened into.
Right answer: what PostgreSQL gives on the plain twin: rows, types, or SQLSTATE (float4 has no %).
With a bug an operator is not found, is another type's, or opens another cell.
"""

import datetime

import pytest
from results import raw, run

# Of each type two columns.
COLUMNS = {"int4": "ij", "float4": "fg", "text": "sr", "timestamp": "ab"}
AT = datetime.datetime
ROWS = [
    (1, 7, 2, 1.5, 0.25, "abc", "ab%", AT(2024, 2, 29, 12), AT(2023, 1, 1)),
    (2, -9, 4, -2.0, 8.0, "zc", "", AT(1999, 12, 31, 23, 59, 59, 500000), AT(2000, 1, 1)),
    (3, 5, 5, 3.0, 3.0, "same", "same", AT(2020, 1, 1), AT(2020, 1, 1)),
    (4, None, 1, None, 1.0, None, "a", None, AT(2020, 1, 1)),
    (5, 7, 3, 1.5, 2.0, "ab%", "abc", AT(2024, 2, 29, 12), None),
]
FIELDS = ["year", "month", "day", "hour", "minute", "second"]
WAYS = ["input", "output", "encryption", "decryption"]


def operators():
    """Name of each operator, and an expression over a row, or a whole query."""
    for name, (x, y) in COLUMNS.items():
        for way in WAYS:
            yield f"{name} {way}", f"{x}, {y}"
        for sign in ("=", "<>", "<", "<=", ">", ">="):
            yield f"{name} {sign}", f"{x} {sign} {y}"
        yield f"{name} order", f"SELECT id FROM t ORDER BY {x}, {y} DESC, id"
        yield f"{name} class", f"SELECT id FROM t WHERE {x} >= {y} AND {x} = {x} ORDER BY {x}, id"
    for name in ("int4", "float4"):
        x, y = COLUMNS[name]
        for sign in "+-*/%^":
            yield f"{name} {sign}", f"{x} {sign} {y}"
        for aggregate in ("sum", "avg", "min", "max"):
            yield f"{aggregate} of {name}", f"SELECT {aggregate}({x}), {aggregate}({y}) FROM t"
    yield "sum of float4, group by group", "SELECT i, sum(f), sum(g) FROM t GROUP BY i ORDER BY i"
    yield "||", "s || r"
    yield "LIKE", "s LIKE r"
    yield "NOT LIKE", "s NOT LIKE r"
    yield "substring", "substring(s, 2, 2)"
    for field in FIELDS:
        yield f"{field} of timestamp", f"extract({field} FROM a)"


OPERATORS = dict(operators())


@pytest.fixture(scope="module")
def both(stack):
    """Connections to the protected and the plain twin, each with an index on every first column."""
    schemas = {"hedb_cells": "rnd_", "hedb_plain": ""}
    connections = []
    for schema, family in schemas.items():
        app = stack.connect_app()
        app.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}")
        app.execute(f"SET search_path = {schema}")
        columns = [
            f"{column} {family}{name}" + (' COLLATE "C"' if name == "text" and not family else "")
            for name, pair in COLUMNS.items()
            for column in pair
        ]
        app.execute(f"CREATE TABLE t (id int, {', '.join(columns)})")
        for row in ROWS:
            app.execute(f"INSERT INTO t VALUES ({', '.join(['%s'] * len(row))})", row)
        for first, _ in COLUMNS.values():
            app.execute(f"CREATE INDEX ON t ({first})")
        connections.append(app)
    yield connections
    for connection in connections:
        connection.close()


def way(connection, told, columns):
    """Values go in as text or in their types' binary form, and come back in either."""
    names = [*COLUMNS["int4"], *COLUMNS["float4"], *COLUMNS["text"], *COLUMNS["timestamp"]]
    places = [1 + names.index(column) for column in columns.split(", ")]
    query = f"SELECT {columns} FROM t ORDER BY id"
    if told == "decryption":
        return connection.cursor(binary=True).execute(query).fetchall()
    with connection.transaction(force_rollback=True):
        if told != "output":
            connection.execute("DELETE FROM t")
        for row in ROWS if told != "output" else []:
            values = [row[place] for place in places]
            form = "%b"
            if told == "input":
                form = "%t"
                values = [value if value is None else str(value) for value in values]
            text = f"INSERT INTO t (id, {columns}) VALUES (%s, {form}, {form})"
            connection.execute(text, (row[0], *values))
        return raw(connection.execute(query))


@pytest.mark.parametrize("name", OPERATORS)
def test_operator(both, name):
    expression = OPERATORS[name]
    if name.split()[-1] in WAYS:
        ours, theirs = (way(connection, name.split()[-1], expression) for connection in both)
        assert ours == theirs
        return
    query = expression
    if not query.startswith("SELECT"):
        query = f"SELECT id, {expression} FROM t ORDER BY id"
    for connection in both:
        connection.execute(f"SET enable_seqscan = {'off' if name.endswith('class') else 'on'}")
    ours, theirs = (run(connection, query) for connection in both)
    assert ours.same(theirs), (ours, theirs)
    assert theirs.sqlstate == ("42883" if name == "float4 %" else None)


def test_count():
    assert len(OPERATORS) == 79
