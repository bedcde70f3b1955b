"""Common parts of the programs for single drivers: one table, and checks that are the same for all
of them. Each program says how its driver runs a statement. See checks.py."""

import datetime as dt
import decimal
import uuid

D = decimal.Decimal
TABLE = """
CREATE TABLE item (
    id int PRIMARY KEY, name text NOT NULL, short varchar(20), fixed char(5), price numeric(10, 2),
    n int4, big int8, small int2, f4 float4, f8 float8, ok bool, day date, clock time,
    made timestamp, seen timestamptz, span interval, bits bytea, code uuid)
"""
COLUMNS = (
    "id name short fixed price n big small f4 f8 ok day clock made seen span bits code"
).split()


def row(n):
    """A row's values."""
    names = ["plain", "o'Hara", "back\\slash", "Änne Öz", "100%_sure", "tab\there", "", "x" * 3000]
    return (
        n,
        names[n % 8],
        f"short {n}",
        f"f{n}",
        D(n) * D("1.25"),
        n * 1000,
        n * 10**12,
        n,
        n / 4,
        n / 7,
        n % 2 == 0,
        dt.date(1990 + n, 2, 3),
        dt.time(n, 5, 6, 7000),
        dt.datetime(2001, 2, 3, n, 5, 6, 789),
        dt.datetime(2011, 12, 13, n, 15, 16, tzinfo=dt.UTC),
        dt.timedelta(days=n, seconds=5),
        bytes([0, n, 255]),
        uuid.UUID(int=n * 7),
    )


ROWS = [row(n) for n in range(1, 11)]
NULLS = (50, "nulls") + (None,) * 16

# Statements with the values of their parameters, which are written ?.
STATEMENTS = {
    "all_columns": ("SELECT * FROM item ORDER BY id", ()),
    "equal_text": ("SELECT id FROM item WHERE name = ? ORDER BY id", ("o'Hara",)),
    "equal_backslash": ("SELECT id FROM item WHERE name = ? ORDER BY id", ("back\\slash",)),
    "equal_varchar": ("SELECT id FROM item WHERE short = ?", ("short 4",)),
    "equal_char": ("SELECT id, fixed FROM item WHERE fixed = ?", ("f4",)),
    "equal_numeric": ("SELECT id FROM item WHERE price = ?", (D("3.75"),)),
    "compare_integer": ("SELECT id FROM item WHERE n > ? ORDER BY id", (4000,)),
    "compare_bigint": ("SELECT id FROM item WHERE big <= ? ORDER BY id", (3 * 10**12,)),
    "compare_float": ("SELECT id FROM item WHERE f8 < ? ORDER BY id", (0.5,)),
    "equal_bool": ("SELECT id FROM item WHERE ok = ? ORDER BY id", (True,)),
    "compare_date": ("SELECT id FROM item WHERE day >= ? ORDER BY id", (dt.date(1995, 1, 1),)),
    "compare_time": ("SELECT id FROM item WHERE clock < ? ORDER BY id", (dt.time(4, 0),)),
    "compare_timestamp": (
        "SELECT id FROM item WHERE made > ? ORDER BY id",
        (dt.datetime(2001, 2, 3, 6),),
    ),
    "compare_timestamptz": (
        "SELECT id FROM item WHERE seen > ? ORDER BY id",
        (dt.datetime(2011, 12, 13, 6, tzinfo=dt.UTC),),
    ),
    "compare_interval": ("SELECT id FROM item WHERE span > ? ORDER BY id", (dt.timedelta(days=4),)),
    "equal_bytes": ("SELECT id FROM item WHERE bits = ?", (bytes([0, 3, 255]),)),
    "equal_uuid": ("SELECT id FROM item WHERE code = ?", (uuid.UUID(int=21),)),
    "between": ("SELECT id FROM item WHERE n BETWEEN ? AND ? ORDER BY id", (2000, 4000)),
    "in_list": ("SELECT id FROM item WHERE name IN (?, ?) ORDER BY id", ("plain", "o'Hara")),
    "like": ("SELECT id FROM item WHERE name LIKE ? ORDER BY id", ("%a%",)),
    "like_escape": ("SELECT id FROM item WHERE name LIKE ? ORDER BY id", ("100\\%%",)),
    "ilike": ("SELECT id FROM item WHERE short ILIKE ? ORDER BY id", ("SHORT 1%",)),
    "any_of_array": ("SELECT id FROM item WHERE n = ANY(?) ORDER BY id", ([1000, 4000],)),
    "any_of_texts": ("SELECT id FROM item WHERE name = ANY(?) ORDER BY id", (["plain", "x"],)),
    "is_null": ("SELECT id FROM item WHERE price IS NULL", ()),
    "or_and": ("SELECT id FROM item WHERE (n = ? OR name = ?) AND ok ORDER BY id", (4000, "plain")),
    "arithmetic": ("SELECT price * ? + n FROM item ORDER BY id", (D("2.5"),)),
    "concat": ("SELECT name || ? || short FROM item WHERE id < 4 ORDER BY id", (" - ",)),
    "upper_lower": ("SELECT upper(name), lower(short) FROM item WHERE id < 5 ORDER BY id", ()),
    "substring": ("SELECT substr(short, ?, ?) FROM item ORDER BY id", (2, 3)),
    "coalesce": ("SELECT coalesce(short, ?) FROM item ORDER BY id", ("none",)),
    "case": ("SELECT CASE WHEN n > ? THEN ? ELSE ? END FROM item ORDER BY id", (5000, "a", "b")),
    "cast_parameter": ("SELECT id FROM item WHERE day = ?::date", (dt.date(1993, 2, 3),)),
    "cast_column": ("SELECT price::int, n::text FROM item ORDER BY id", ()),
    "extract": (
        "SELECT extract(year FROM day), date_trunc('month', made) FROM item ORDER BY id",
        (),
    ),
    "dates": (
        "SELECT made + span, day - 3, seen - made::timestamptz > span FROM item ORDER BY id",
        (),
    ),
    "count": ("SELECT count(*), count(price) FROM item", ()),
    "sums": ("SELECT sum(n), sum(big), sum(price), avg(n), avg(price), sum(f8) FROM item", ()),
    "min_max": (
        "SELECT min(name), max(day), min(code::text), max(seen) FROM item WHERE id < 9",
        (),
    ),
    "group_by": ("SELECT ok, sum(price) FROM item GROUP BY ok ORDER BY ok", ()),
    "having": ("SELECT ok, sum(n) FROM item GROUP BY ok HAVING sum(n) > ? ORDER BY ok", (25000,)),
    "order_limit": ("SELECT name FROM item ORDER BY name DESC, id LIMIT ? OFFSET ?", (3, 1)),
    "window": ("SELECT id, rank() OVER (ORDER BY price DESC NULLS LAST) FROM item ORDER BY id", ()),
    "join": (
        "SELECT a.id, b.id FROM item a JOIN item b ON a.price = b.price WHERE a.n < ? ORDER BY 1",
        (3500,),
    ),
    "subquery": ("SELECT id FROM item WHERE price > (SELECT avg(price) FROM item) ORDER BY id", ()),
    "exists": (
        "SELECT a.id FROM item a WHERE EXISTS (SELECT FROM item b WHERE b.price = a.price * ?)",
        (2,),
    ),
    "cte": ("WITH x AS (SELECT * FROM item WHERE n > ?) SELECT name FROM x ORDER BY id", (7000,)),
    "union": (
        "SELECT name FROM item WHERE n = ? UNION SELECT short FROM item WHERE n = ? ORDER BY 1",
        (2000, 3000),
    ),
    "insert_returning": (
        "INSERT INTO item (id, name, price, day, seen) VALUES (?, ?, ?, ?, ?) RETURNING name, price, day, seen",
        (60, "new", D("9.99"), dt.date(2024, 2, 29), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
    ),
    "update_returning": (
        "UPDATE item SET name = ?, n = n + ? WHERE id = ? RETURNING *",
        ("upd", 5, 3),
    ),
    "update_many": ("UPDATE item SET price = price * ? WHERE ok RETURNING id, price", (D("1.1"),)),
    "delete_returning": ("DELETE FROM item WHERE n > ? RETURNING id, name", (9000,)),
    "upsert": (
        "INSERT INTO item (id, name, n) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name, "
        "n = item.n + excluded.n RETURNING name, n",
        (1, "again", 7),
    ),
    "numeric_overflow_error": ("UPDATE item SET price = ?", (D(10) ** 12,)),
    "too_long_error": ("UPDATE item SET short = ?", ("x" * 21,)),
    "not_null_error": ("UPDATE item SET name = ?", (None,)),
    "duplicate_error": ("INSERT INTO item (id, name) VALUES (?, ?)", (1, "x")),
    "division_error": ("SELECT n / (n - n) FROM item WHERE name = ?", ("plain",)),
    "no_column_error": ("SELECT nosuch FROM item WHERE name = ?", ("plain",)),
}


def numbered(sql):
    """With $1, $2 instead of question marks."""
    parts = sql.split("?")
    return parts[0] + "".join(f"${n}{part}" for n, part in enumerate(parts[1:], 1))


def insert(mark):
    """An INSERT of a whole row; `mark` gives the n-th placeholder."""
    marks = ", ".join(mark(n) for n in range(1, len(COLUMNS) + 1))
    return f"INSERT INTO item ({', '.join(COLUMNS)}) VALUES ({marks})"


def as_json(value):
    """For programs in other languages: what they send as text, as text."""
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, list | tuple):
        return [as_json(v) for v in value]
    if isinstance(value, dt.timedelta):
        return f"{value.days} days {value.seconds} seconds"
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, D | uuid.UUID):
        return str(value)
    return value


def everything():
    """The table, its rows and the statements."""
    statements = {
        name: [numbered(sql), [as_json(v) for v in values]]
        for name, (sql, values) in STATEMENTS.items()
    }
    rows = [as_json(row) for row in [*ROWS, NULLS]]
    return {
        "table": TABLE,
        "insert": insert(lambda n: f"${n}"),
        "rows": rows,
        "statements": statements,
    }
