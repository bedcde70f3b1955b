"""Tables and random queries of aggregations, and how sides are compared."""

from results import run

DDL = """
CREATE TABLE r (id int PRIMARY KEY, g int, c "char", t text, k enc_text, b enc_bpchar(4),
    i enc_int4, l enc_int8, n enc_numeric(15,2), u enc_numeric, f enc_float8, d enc_date,
    v enc_interval, o enc_bool);
CREATE TABLE e (LIKE r)
"""
VALUES = {
    "g": ["1", "2", "3"],
    "c": ["x", "y"],
    "t": ["p", "q"],
    "k": ["", "a", "b", "abcdefgh", "a longer text than seven bytes", "ä"],
    "b": ["a", "ab  ", "zz"],
    "i": ["-7", "0", "1", "2147483647"],
    "l": ["9223372036854775807", "-1", "5"],
    "n": ["0.00", "1.50", "-3.10", "9999999999999.99", "NaN"],
    "u": ["1.0", "1.00", "0.000", "170141183460469231731687303715884105728.5", "NaN", "Infinity"],
    "f": ["0.1", "-0", "0", "NaN", "Infinity", "1e15"],
    "d": ["2020-01-01", "2021-02-03", "infinity"],
    "v": ["1 mon", "30 days", "1 day 01:00"],
    "o": ["t", "f"],
}
KEYS = [
    "k",
    "b",
    "i",
    "u",
    "d",
    "f",
    "v",
    "o",
    "g",
    "c",
    "upper(k)",
    "extract(year from d)",
    "id % 7",
    "n",
    "i > 0",
    "k LIKE 'a%' OR n < 2",
    "NOT o",
]
SHOWN = {"u": "u + 0.000", "f": "f + 0", "v": "extract(epoch from v)"}
AGGREGATES = [
    *["count(*)", "count(k)", "count(g)", "count(t)", "count(distinct k)", "count(distinct g)"],
    *[
        "count(distinct u)",
        "count(i > 0)",
        "count(distinct n < 2)",
        "sum(i)",
        "sum(l)",
        "sum(n)",
        "sum(u)",
        "avg(i)",
        "avg(n)",
        "avg(u)",
    ],
    *[
        "min(k)",
        "max(b)",
        "min(d)",
        "max(u) + 0.000",
        "min(f) + 0",
        "extract(epoch from max(v))",
        "sum(v)",
        "avg(v)",
        "min(n)",
    ],
    *["sum(distinct i)", "avg(distinct n)", "sum(f)", "avg(f)", "sum(n * (1 - n))", "max(i)"],
    *["sum(i + 0)", "sum(10 / i)", "sum(case when i <> 0 then 10 / i end)", "max(k || 'x')"],
]
CONDITIONS = [
    *["i > 0", "n < 2", "k like 'a%'", "id < 400", "d > '2020-06-01'", "u is not null", "o"],
    *["i <> 0", "k in ('a', 'ä')", "g = 2", "f < 1 and n > 0", "b = 'ab'", "not (i = 1 or g = 3)"],
]


def fill(connection, rows):
    connection.execute("TRUNCATE r")
    with connection.cursor().copy("COPY r FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    connection.execute("ANALYZE r")


def rows(rng, count):
    def value(column):
        return None if rng.random() < 0.15 else rng.choice(VALUES[column])

    return [(n, *(value(column) for column in VALUES)) for n in range(count)]


def query(rng):
    """A query; its rows are compared as a set."""
    keys = rng.sample(KEYS, rng.choice([0, 1, 1, 2, 3]))
    items = rng.sample(AGGREGATES, rng.choice([1, 2, 4]))
    items = [
        f"{item} filter (where {rng.choice(CONDITIONS)})"
        if rng.random() < 0.2 and item.endswith(")") and "(max(" not in item
        else item
        for item in items
    ]
    table = rng.choice(
        ["r", "r", "r", "r a join r using (id)", "(select * from r where id < 300) r", "e r"]
    )
    # Of equal keys that look different PostgreSQL shows any one.
    items = [SHOWN.get(key, key) for key in keys] + items
    if "join" in table:
        table = "r join (select id as same from r where i > 0) s on id = same"
    sql = f"SELECT {', '.join(items)} FROM {table}"
    if rng.random() < 0.5:
        sql += f" WHERE {' AND '.join(rng.sample(CONDITIONS, rng.choice([1, 2])))}"
    if keys:
        sql += f" GROUP BY {', '.join(keys)}"
    if rng.random() < 0.2:
        sql += (
            f" HAVING {rng.choice(['sum(i) > 3', 'count(*) > 2', 'max(n) > 1 and count(*) > 1'])}"
        )
    return sql


def by_set(outcome):
    outcome.rows.sort(key=lambda row: [(value is None, value or "") for value in row])
    return outcome


def agree(sides, sql):
    outcomes = [by_set(run(side, sql)) for side in sides]
    assert outcomes[1].same(outcomes[0]), f"row by row: {sql}\n{outcomes[0]}\n{outcomes[1]}"
    assert outcomes[2].same(outcomes[0]), f"in batches: {sql}\n{outcomes[0]}\n{outcomes[2]}"
