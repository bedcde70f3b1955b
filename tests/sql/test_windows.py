"""Windows whose frame is given by an offset from the current row's value (`RANGE BETWEEN 5
PRECEDING AND …`), on plain and on protected columns.

Mechanism: PostgreSQL asks the support function `in_range` of the column's operator class for each
row whether another one is in its frame; the keeper answers. Bug: other rows in a frame, another
SQLSTATE for offsets that are none, or an offset in the clear on the server
(tests/security/canaries).
"""

import random

import psycopg
import pytest
from results import run

INTEGERS = ["0", "1", "3", "32767", "'2'"]
SPANS = ["interval '1 day'", "interval '1 mon -2 days'", "interval '36:00'", "'1 year'"]
# Of each type: values beside random ones, and offsets.
KINDS = {
    "int2": (["-32768", "32767"], INTEGERS),
    "int4": (["-2147483648", "2147483647"], [*INTEGERS, "2147483647", "5000000000"]),
    "int8": (["-9223372036854775808", "9223372036854775807"], ["0", "2", "9223372036854775807"]),
    "float4": (["NaN", "Infinity", "-Infinity", "0.1"], ["0.1", "2", "'Infinity'", "2.5::float8"]),
    "float8": (
        ["NaN", "Infinity", "-Infinity", "0.1"],
        ["0.1", "2", "'Infinity'", "1e300::float8"],
    ),
    "numeric": (["NaN", "Infinity", "-Infinity", "0.1"], ["0.1", "2", "'Infinity'", "'1e40'"]),
    "date": (["infinity", "-infinity", "2020-02-29"], SPANS),
    "timestamp": (["infinity", "-infinity", "2020-02-29 12:00"], SPANS),
    "timestamptz": (["infinity", "-infinity", "2020-03-29 02:30+01"], SPANS),
    "time": (["00:00", "24:00", "23:59:59.999999"], ["interval '1 hour'", "'1 mon 30:00'"]),
    "interval": (["-1 mon", "30 days", "1 mon 1 day -00:01"], ["interval '1 day'", "'1 mon'"]),
}
FRAMES = [
    "RANGE BETWEEN {} PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN {} PRECEDING AND {} FOLLOWING",
    "RANGE BETWEEN {} FOLLOWING AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND {} PRECEDING EXCLUDE CURRENT ROW",
]
ORDERS = ["", "DESC", "NULLS FIRST"]


def some(kind, rng):
    """A random value that has neighbours."""
    match kind:
        case "date":
            return f"2020-0{rng.randrange(1, 10)}-{rng.randrange(10, 29)}"
        case "timestamp" | "timestamptz":
            return f"2020-03-{rng.randrange(10, 31)} {rng.randrange(10, 24)}:00"
        case "time":
            return f"{rng.randrange(10, 24)}:{rng.randrange(10, 60)}"
        case "interval":
            return f"{rng.randrange(-2, 3)} mon {rng.randrange(-40, 40)} days"
    return str(rng.randrange(-9, 9))


@pytest.fixture
def sides(app):
    """The same rows in a plain and a protected table, some of them NULL."""
    app.execute("SET timezone = 'Europe/Berlin'")
    columns = ", ".join(f"c_{kind} {{0}}{kind}" for kind in KINDS)
    for table, prefix in (("p", ""), ("e", "enc_")):
        app.execute(f"CREATE TABLE {table} (id int, g int, {columns.format(prefix)})")
    rng = random.Random(19)
    with app.cursor().copy("COPY p FROM STDIN") as copy:
        for row in range(24):
            values = [
                None if row % 8 == 7 else special[row] if row < len(special) else some(kind, rng)
                for kind, (special, _) in KINDS.items()
            ]
            copy.write_row((row, row % 2, *values))
    app.execute("INSERT INTO e SELECT * FROM p")
    return app


def both(connection, query, *parameters):
    plain, protected = (run(connection, query.format(t), *parameters) for t in "pe")
    assert (protected.sqlstate, protected.rows) == (plain.sqlstate, plain.rows), query
    return plain


def over(kind, frame, offset, order="", result="count(*), min(id), sum(id)"):
    window = f"(PARTITION BY g ORDER BY c_{kind} {order} {frame.format(offset, offset)})"
    calls = ", ".join(f"{call} OVER w" for call in result.split(", "))
    return f"SELECT id, {calls} FROM {{}} WINDOW w AS {window} ORDER BY id"


@pytest.mark.parametrize("kind", KINDS)
def test_frames(sides, kind):
    rows = 0
    for frame in FRAMES:
        for offset in KINDS[kind][1]:
            outcome = both(sides, over(kind, frame, offset, ORDERS[rows % 3]))
            rows += len(outcome.rows or [])
    assert rows > 24


@pytest.mark.parametrize("kind", ["int4", "numeric", "date"])
def test_results_are_protected(sides, kind):
    """Aggregates of what is in the frame."""
    offset = KINDS[kind][1][0]
    both(sides, over(kind, FRAMES[1], offset, result=f"min(c_{kind}), last_value(c_{kind})"))


@pytest.mark.parametrize("kind", KINDS)
def test_no_offsets(sides, kind):
    """Negative and missing offsets: PostgreSQL's SQLSTATEs."""
    negative = {"int8": "-1::int8", "time": "interval '-1 hour'"}.get(kind)
    if negative is None:
        negative = "-1" if KINDS[kind][1][0][0] in "0123456789" else "interval '-1 day'"
    assert both(sides, over(kind, FRAMES[0], negative)).sqlstate == "22013"
    missing = "NULL::interval" if "interval" in negative else "NULL::" + kind
    if kind == "float4":
        missing = "NULL::float8"
    assert both(sides, over(kind, FRAMES[0], missing)).sqlstate == "22004"


def test_beyond_the_range(sides):
    outcome = both(sides, over("timestamp", FRAMES[0], "interval '290000 years'"))
    assert outcome.sqlstate == "22008"


def test_parameters_and_expressions(sides):
    both(sides, over("int4", FRAMES[0], "%s::int4"), [2])
    both(sides, over("date", FRAMES[0], "%s::interval"), ["1 day"])
    both(sides, over("int4", FRAMES[0], "(1 + 1)"))
    both(sides, over("date", FRAMES[0], "(2 * interval '1 day')"))
    both(sides, over("numeric", FRAMES[0], "(SELECT 2.5)"))


@pytest.mark.parametrize("offset", ["1.5", "'x'", "interval '1 day'"])
def test_of_another_type(sides, offset):
    """What PostgreSQL does not take is not taken, with an error of the same kind."""
    assert both(sides, over("int4", FRAMES[0], offset)).sqlstate


def test_other_families(sides):
    """A column of the family rnd_ has no such frames: the server says so, and sees no offset."""
    sides.execute("CREATE TABLE r (id int, g int, c_int4 rnd_int4)")
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        sides.execute(over("int4", FRAMES[0], "4711").format("r"))
