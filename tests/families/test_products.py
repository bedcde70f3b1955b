"""The encoding mul of the family soft_: PostgreSQL multiplies and divides encodings.

Mechanism: `*` and `/` of columns with the encoding, and of literals, multiply masked values modulo
a prime; the client removes the masks of all factors. Right: value, type and error of the plain
operators. Bug: another value or type, an overflow that is no error, a literal in the clear.
"""

import random
from decimal import Decimal

import psycopg
import pytest
from test_soft import both, refusal

TYPES = {
    "a": ("int2", "eq, mul", [0, 1, -1, 7, -32768, 32767, None]),
    "b": ("int4", "mul", [0, 2, -3, 46341, 2147483647, -2147483648, None]),
    "c": ("int8", "eq, ord, add, mul", [0, 5, -1, 1 << 40, (1 << 63) - 1, -(1 << 63), None]),
    "d": ("numeric(5,2)", "mul", ["0", "0.01", "-12.5", "999.99", "-3", None]),
    "e": ("numeric(18,0)", "ord, mul", ["0", "1", "-7", "999999999999999999", None]),
}
ROWS = 42
PAIRS = [f"{x} {o} {y}" for x in TYPES for y in TYPES for o in "*/"]
LITERALS = [
    *[f"{x} * {n}" for x in TYPES for n in ("2", "-3", "'5'", "0", "3000000000", "1.10", "1e3")],
    *[f"{n} * {x}" for x in TYPES for n in ("2", "-0.5", "2::int2", "NULL")],
    *[f"{x} / {n}" for x in TYPES for n in ("2", "-3", "7::int8", "'4'", "0.7", "3000000000")],
    *[f"{n} / {x}" for x in TYPES for n in ("100", "-1.5", "32767::int2")],
    *[f"{x} / 0" for x in TYPES],
]
CHAINS = [
    "a * a * a",
    "a * (a * a)",
    "b * a * b",
    "b * a * 2",
    "2 * b * a",
    "(2 * a) * b",
    "c * a * b",
    "d * d * d",
    "d * e * a",
    "d * a / e",
    "a * b / c",
    "c / (a * b)",
    "(a * a) / (b * a)",
    "d * 1.5 / (a * 3)",
    "e / d",
    "a * b * 0 / c",
]


def answer(connection, query):
    """Rows, or the SQLSTATE."""
    try:
        return connection.execute(query).fetchall()
    except psycopg.Error as error:
        assert error.sqlstate in ("22003", "22012"), (query, str(error))
        return error.sqlstate


def fill(connection, rows, protected):
    def declared(name):
        ty, encodings, _ = TYPES[name]
        if not protected:
            return ty
        base, _, rest = ty.partition("(")
        return f"soft_{base}({rest.removesuffix(')') + ', ' if rest else ''}{encodings})"

    columns = ", ".join(f"{name} {declared(name)}" for name in TYPES)
    connection.execute(f"CREATE TABLE m (id int PRIMARY KEY, {columns})")
    for row in rows:
        marks = ", ".join(["%s"] * len(row))
        connection.execute(f"INSERT INTO m VALUES ({marks})", row)


@pytest.fixture
def twins(app, plain_twin):
    """All pairs of edges of neighbouring columns meet in some row."""
    rng = random.Random(1)
    edges = [list(values) for _, _, values in TYPES.values()]
    rows = []
    for _ in range(ROWS // 7):
        for column in edges:
            rng.shuffle(column)
        rows += [(len(rows) + at, *(c[at % len(c)] for c in edges)) for at in range(7)]
    fill(app, rows, True)
    fill(plain_twin, rows, False)
    return app, plain_twin


@pytest.mark.parametrize(
    "expressions", [PAIRS, LITERALS, CHAINS], ids=["pairs", "literals", "chains"]
)
def test_each_row(twins, expressions):
    """Of all rows at once the value, in both formats, or an error; then of single rows."""
    rng = random.Random(2)
    told = set()
    for expression in expressions:
        query = f"SELECT id, {expression} FROM m ORDER BY id"
        theirs = answer(twins[1], query)
        if not isinstance(theirs, str):
            assert both(*twins, query)[0] == theirs, expression
            told.add("a value")
            continue
        assert isinstance(answer(twins[0], query), str), expression
        for at in rng.sample(range(ROWS), 6):
            query = f"SELECT {expression} FROM m WHERE id = {at}"
            ours, theirs = (answer(twin, query) for twin in twins)
            # A NULL factor is NULL here, whatever comes before it.
            if expression in CHAINS and ours == [(None,)]:
                assert theirs in ([(None,)], "22003"), query
            else:
                assert ours == theirs, query
            told.add(theirs if isinstance(theirs, str) else "a value")
    assert told == {"a value", "22003", "22012"}


def test_types_of_results(twins):
    """A product has the plain operator's type and scale."""
    for expression in [*PAIRS, *LITERALS, *CHAINS]:
        query = f"SELECT {expression} FROM m WHERE id < 0"
        ours, theirs = (c.execute(query).description[0] for c in twins)
        assert (ours.name, ours.type_code) == (theirs.name, theirs.type_code), expression
    query = "SELECT d * 1.10, d * d, a * d, d * 0.00 FROM m ORDER BY id"
    ours, theirs = both(*twins, query)
    assert [list(map(str, row)) for row in ours] == [list(map(str, row)) for row in theirs]


def test_parameters(twins):
    """Parameters are factors, of their declared type or the column's."""
    queries = [
        ("SELECT id, d * %s FROM m ORDER BY id", Decimal("1.25")),
        ("SELECT id, e / %s FROM m ORDER BY id", Decimal("0.3")),
        ("SELECT id, d * %s FROM m ORDER BY id", 3),
        ("SELECT id, b / %s FROM m ORDER BY id", 3),
        ("SELECT id, c / %s FROM m ORDER BY id", 1 << 33),
        ("SELECT id, c * %s::numeric FROM m ORDER BY id", Decimal("2.5")),
    ]
    for query, value in queries:
        for form in ["%s", "%b", "%t"]:
            shaped = query.replace("%s", form)
            ours, theirs = (
                [c.execute(shaped, (value,), prepare=p).fetchall() for p in (True, False, True)]
                for c in twins
            )
            assert ours == theirs, shaped
    # A wider type would have another result.
    with pytest.raises(psycopg.Error) as error, twins[0].transaction():
        twins[0].execute("SELECT b * %s FROM m", (Decimal("2.5"),))
    state, message = error.value.sqlstate, str(error.value)
    assert state == "0A000"
    assert "::numeric" in message


def test_where_results_are(twins):
    """Subqueries, WITH, views, RETURNING, cursors, EXPLAIN."""
    for connection in twins:
        connection.execute("CREATE VIEW v AS SELECT id, a * d AS p FROM m")
    for query in [
        "SELECT p FROM v ORDER BY id",
        "SELECT p FROM (SELECT id, e * a AS p FROM m) s ORDER BY id",
        "WITH w AS (SELECT id, d * d AS p FROM m) SELECT p FROM w ORDER BY id",
        "UPDATE m SET id = id WHERE id < 4 RETURNING id, d * 2, a / 2",
        "SELECT x.d * y.d FROM m x JOIN m y ON x.id = y.id + 1 ORDER BY x.id",
        "SELECT id, CASE WHEN id > 3 THEN 1 END, e * 2 FROM m ORDER BY id",
    ]:
        ours, theirs = both(*twins, query)
        assert ours == theirs, query
    fetched = []
    for connection in twins:
        with connection.transaction():
            connection.execute("DECLARE c CURSOR FOR SELECT d * a FROM m ORDER BY id")
            fetched.append(connection.execute("FETCH ALL FROM c").fetchall())
    assert fetched[0] == fetched[1]
    plan = "\n".join(r[0] for r in twins[0].execute("EXPLAIN VERBOSE SELECT d * 77 FROM m"))
    assert "@*" in plan


def test_other_keys_and_changes(app):
    """Factors of any columns; the encoding survives a new key, and can be added and removed."""
    app.execute("CREATE TABLE x (id int, p soft_int4(mul), q soft_int4(eq, mul))")
    app.execute("INSERT INTO x VALUES (1, 12, -3), (2, NULL, 5), (3, 0, 2)")
    expected = [(-36,), (None,), (0,)]
    product = "SELECT p * q FROM x ORDER BY id"
    assert app.execute(product).fetchall() == expected
    app.execute("ALTER TABLE x ALTER p TYPE soft_int4(eq, mul)")
    assert app.execute(product).fetchall() == expected
    app.execute("ALTER TABLE x ALTER q TYPE soft_int4(eq)")
    assert refusal(app, product)[0] == "0A000"
    assert app.execute("SELECT p, q FROM x WHERE q = 5").fetchall() == [(None, 5)]


def test_cells(app, dba):
    """A row's cell says that a value is zero, and is otherwise new for each row; 24 bytes more."""
    app.execute("CREATE TABLE z (id int, p soft_int4(mul), q soft_int4(eq))")
    app.execute("INSERT INTO z VALUES (1, 5, 5), (2, 5, 5), (3, 0, 0)")
    sizes = dba.execute("SELECT pg_column_size(p), pg_column_size(q) FROM z").fetchall()
    assert {p - q for p, q in sizes} == {24 + 16}
    raw = [row[0] for row in dba.execute("SELECT p FROM z ORDER BY id").fetchall()]
    assert len(set(raw)) == 3


def test_refused(app, dba):
    """What a product cannot do is refused, and sends no literal in the clear."""
    app.execute(
        "CREATE TABLE t (a soft_int4(mul), b soft_int4(eq), c soft_int8(mul),"
        " n soft_numeric(18,0, mul), p int4)"
    )
    app.execute("INSERT INTO t VALUES (2, 3, 4, 999999999999999999, 5)")
    for query, state, text in [
        ("SELECT a * a * c FROM t", "0A000", "cannot be computed with"),
        ("SELECT a / a * a FROM t", "0A000", "quotient"),
        ("SELECT (a * a) * (a * a) FROM t", "0A000", "product"),
        ("SELECT a * a * p FROM t", "0A000", "cannot be computed with"),
        ("SELECT a * a * b FROM t", "0A000", "cannot be computed with"),
        ("SELECT n * n * n FROM t", "0A000", "126 bits"),
        ("SELECT n * n * 1.5 FROM t", "0A000", "126 bits"),
        ("SELECT n * 1234567890.1234567890 FROM t", "0A000", "18 digits"),
        ("SELECT DISTINCT a * 77 FROM t", "0A000", ""),
        ("SELECT 1 FROM t WHERE a * 77 = 154", "0A000", ""),
        ("INSERT INTO t (a) SELECT a * 77 FROM t", "42804 0A000", ""),
        ("SELECT a @* b FROM t", "0A000", 'no encoding "mul"'),
        ("SELECT 1 FROM t WHERE a @* 77 = 154", "0A000", ""),
        ("SELECT a @* a AS x FROM t ORDER BY x", "42883", "ordering operator"),
        ("SELECT a * 77777, 77777 FROM t", "0A000", "in the clear in another"),
    ]:
        got, message = refusal(app, query)
        assert got in state.split(), (query, message)
        assert text in message, query
    with (
        pytest.raises(psycopg.errors.FeatureNotSupported),
        app.transaction(),
        app.cursor().copy("COPY (SELECT a * 77 FROM t) TO STDOUT") as copy,
    ):
        assert not list(copy)
    # Without a client there are no keys, and no plaintext factor.
    with pytest.raises(psycopg.Error) as error:
        dba.execute("SELECT a @* '2' FROM t")
    assert error.value.sqlstate == "42501"
