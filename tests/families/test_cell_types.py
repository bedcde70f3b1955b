"""Every type of the family rnd_, and the operators published by HEDB (papers: A.2).

Mechanism: cells contain each type's binary format; operators other than comparisons are those of
the enc_ type, by an implicit cast. Right: PostgreSQL's results on the plain twin. Bug: a value
changes, or an operator is not found, or is another type's.
"""

import pytest

TYPES = {
    "bool": ["true", "false"],
    "int2": ["-32768", "12"],
    "int4": ["2147483647", "-5"],
    "int8": ["9223372036854775807", "0"],
    "float4": ["1.5", "-0.25"],
    "float8": ["1e300", "2.5"],
    "numeric": ["123456789012345678901234567890.5", "-0.00"],
    "numeric(6,2)": ["1.005", "-9999.99"],
    "text": ["", "Zürich"],
    "varchar(5)": ["abc", "x"],
    "char(4)": ["ab", "abcd"],
    "bytea": ["\\x00ff", "\\x"],
    "date": ["2024-02-29", "1999-12-31"],
    "time": ["23:59:59.5", "00:00"],
    "timestamp": ["2024-02-29 12:00", "1999-12-31 00:00"],
    "timestamptz": ["2024-02-29 12:00+02", "1900-01-01 00:00+00"],
    "interval": ["1 mon -2 days 03:00", "1 sec"],
    "jsonb": ['{"a": 1.0, "b": null}', "[1, 2]"],
    "uuid": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000"],
}


def cell_type(name):
    return "rnd_bpchar(4)" if name == "char(4)" else f"rnd_{name}"


@pytest.mark.parametrize("name", TYPES)
def test_type(app, plain_twin, name):
    """Written, ordered, found, grouped, updated to itself, with its modifier applied."""
    found = []
    for connection, column in ((app, cell_type(name)), (plain_twin, name)):
        column += ' COLLATE "C"' if column in ("text", "varchar(5)", "char(4)") else ""
        connection.execute(f"CREATE TABLE t (id int, v {column})")
        for i, value in enumerate([*TYPES[name], None, TYPES[name][0]]):
            connection.execute("INSERT INTO t VALUES (%s, %s)", (i, value))
        connection.execute("UPDATE t SET v = v WHERE id = 1")
        connection.execute("CREATE INDEX ON t (v)")
        found.append(
            [
                connection.execute(query).fetchall()
                for query in (
                    "SELECT v, v::text FROM t ORDER BY id",
                    "SELECT id FROM t ORDER BY v DESC, id",
                    "SELECT v, count(*) FROM t GROUP BY v ORDER BY v",
                    f"SELECT id FROM t WHERE v = '{TYPES[name][0]}' ORDER BY id",
                    f"SELECT id FROM t WHERE v >= '{TYPES[name][1]}' ORDER BY id",
                    "SELECT a.id, b.id FROM t a JOIN t b ON a.v = b.v ORDER BY 1, 2",
                )
            ]
        )
    assert found[0] == found[1]


# The operators of HEDB's types, as far as two columns or a column and a constant have them.
OPERATORS = [
    *(f"i {op} j" for op in ("+", "-", "*", "/", "=", "<>", "<", "<=", ">", ">=")),
    *(f"f {op} g" for op in ("+", "-", "*", "/", "=", "<>", "<", "<=", ">", ">=")),
    *(f"s {op} r" for op in ("=", "<>", "<", "<=", ">", ">=", "||")),
    *(f"at {op} b" for op in ("=", "<>", "<", "<=", ">", ">=", "-")),
    "-i",
    "-f",
    "i % 3",
    "i + 1",
    "f * 2::float4",
    "s LIKE 'a%'",
    "s NOT LIKE '%c'",
    "substring(s, 1, 2)",
    "s || 'x'",
    "extract(year FROM at)",
    "extract(month FROM at)",
    *(f"{f}(i)" for f in ("min", "max", "sum", "avg", "count")),
    *(f"{f}(f)" for f in ("min", "max", "sum", "avg", "count")),
    *(f"{f}(s)" for f in ("min", "max", "count")),
    *(f"{f}(at)" for f in ("min", "max", "count")),
]
VALUES = [
    (7, 2, "1.5", "0.25", "abc", "abd", "2024-02-29 12:00", "2023-01-01 00:00"),
    (-9, 4, "-2", "8", "zc", "", "1999-12-31 23:59:59", "2000-01-01 00:00"),
    (5, 5, "3", "3", "same", "same", "2020-01-01 00:00", "2020-01-01 00:00"),
    (None, 1, None, "1", None, "a", None, "2020-01-01 00:00"),
]


@pytest.fixture(scope="module")
def operands(stack):
    """Both twins in one schema each, for all operators."""
    connections = []
    for schema, prefix in (("families_cells", "rnd_"), ("families_plain", "")):
        with stack.connect_dba() as dba:
            dba.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
            dba.execute(f"CREATE SCHEMA {schema} AUTHORIZATION app")
        app = stack.connect_app()
        app.execute(f"SET search_path = {schema}")
        text = f"{prefix}text" + ("" if prefix else ' COLLATE "C"')
        app.execute(
            f"CREATE TABLE t (i {prefix}int4, j {prefix}int4, f {prefix}float4, g {prefix}float4,"
            f" s {text}, r {text}, at {prefix}timestamp, b {prefix}timestamp)"
        )
        for row in VALUES:
            app.execute("INSERT INTO t VALUES (%s, %s, %s, %s, %s, %s, %s, %s)", row)
        connections.append(app)
    yield connections
    for connection in connections:
        connection.close()
    with stack.connect_dba() as dba:
        dba.execute("SET client_min_messages = warning")
        dba.execute("DROP SCHEMA families_cells, families_plain CASCADE")


@pytest.mark.parametrize("operator", OPERATORS)
def test_operator(operands, operator):
    """In the select list, and as a condition where it is one."""
    queries = [f"SELECT ({operator})::text FROM t"]
    if any(op in operator for op in ("=", "<", ">", "LIKE")):
        queries = [f"SELECT {operator} FROM t", f"SELECT j FROM t WHERE {operator}"]
    for query in queries:
        found = [sorted(map(str, c.execute(query).fetchall())) for c in operands]
        assert found[0] == found[1], query
