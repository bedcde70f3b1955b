"""Shared by the tests of the switch of the family soft_ (`confide.soft_mode`): a table, queries on
it, and what EXPLAIN and the view say about which side has evaluated.
"""

import re
import subprocess

from stack import PG_BIN

ROWS = 3000
MODES = ("software", "keeper", "static", "adaptive")
COLUMNS = {
    "n": "int4",
    "big": "int8",
    "price": "numeric(10,2)",
    "name": "text",
    "born": "date",
    "up": "bool",
}
# Keys that two columns share can be compared.
SHARED = "soft_int4(key_4712)"

# Comparisons with literals, of columns, what AND, OR and NOT make of them, beside plain quals,
# joins, sorts, limits, subqueries and what the switch leaves to PostgreSQL.
QUERIES = [
    "SELECT count(*) FROM item WHERE n > 500",
    "SELECT id FROM item WHERE n >= 100 AND n < 130 ORDER BY id",
    "SELECT id FROM item WHERE n BETWEEN 100 AND 120 AND id % 2 = 0 ORDER BY id",
    "SELECT id, n, name FROM item WHERE n = 31 ORDER BY id",
    "SELECT count(*) FROM item WHERE n <> 31",
    "SELECT count(*) FROM item WHERE NOT (n > 500 OR n < 100)",
    "SELECT count(*) FROM item WHERE (n > 900 AND price < 50.00) OR born >= '1999-01-01'",
    "SELECT count(*) FROM item WHERE n IS NULL AND id > 10",
    "SELECT count(*) FROM item WHERE n < 500 AND big IS NOT NULL",
    "SELECT count(*) FROM item WHERE name = 'name 3' AND n > 10",
    "SELECT count(*) FROM item WHERE name IN ('name 3', 'name 5') AND n <= 900",
    "SELECT count(*), sum(n), max(price) FROM item WHERE born < '1980-05-05'",
    "SELECT name, count(*) FROM item WHERE n > 100 GROUP BY name ORDER BY count(*), max(id)",
    "SELECT id FROM item WHERE big > 10000000000 ORDER BY price DESC, id LIMIT 7",
    "SELECT id FROM item WHERE n > 990 ORDER BY id LIMIT 1",
    "SELECT count(*) FROM item WHERE n < m",
    "SELECT count(*) FROM item WHERE n = m OR m > 400",
    "SELECT a.id FROM item a JOIN item b ON a.n = b.m WHERE a.n > 950 AND b.n < 40"
    " ORDER BY 1, b.id",
    "SELECT count(*) FROM item a WHERE n > 700 AND EXISTS"
    " (SELECT 1 FROM item b WHERE b.id = a.id + 1 AND b.n < 300)",
    "SELECT count(*) FROM item a WHERE a.id < (SELECT max(id) FROM item b WHERE b.n > 900)",
    "SELECT id FROM item WHERE up = true AND n > 980 ORDER BY id",
    "SELECT (SELECT count(*) FROM item b WHERE b.n > 500 AND b.id <= a.id) FROM item a"
    " WHERE a.id % 1000 = 1 ORDER BY a.id",
    "UPDATE item SET id = id WHERE n > 995 RETURNING id",
    "WITH gone AS (DELETE FROM item WHERE n > 2000 RETURNING id) SELECT count(*) FROM gone",
]


def row(number: int) -> tuple:
    """Every seventh row has NULLs; names repeat."""
    if number % 7 == 0:
        return (number, *[None] * 7)
    day = f"{1950 + number % 60}-{number % 12 + 1:02}-{number % 28 + 1:02}"
    return (
        number,
        number * 31 % 1000,
        number * 7 % 1000,
        number * 10_000_019,
        f"{number % 90}.50",
        f"name {number % 40}",
        day,
        number % 3 == 0,
    )


def fill(connection, prefix: str) -> None:
    types = {name: prefix + type_ for name, type_ in COLUMNS.items()}
    if prefix:
        types["n"] = SHARED
    m = SHARED if prefix else "int4"
    columns = ", ".join(f"{name} {type_}" for name, type_ in types.items())
    columns = columns.replace(", big", f", m {m}, big")
    connection.execute(f"CREATE TABLE item (id int PRIMARY KEY, {columns})")
    with connection.cursor().copy("COPY item FROM STDIN") as copy:
        for number in range(ROWS):
            copy.write_row(row(number))
    connection.execute("ANALYZE item")


def transfer(stack, column: str, *more: str, url: str | None = None) -> None:
    program = stack.data.parent / "bin" / "confide"
    command = [program, "transfer-key", column, "--bindir", PG_BIN]
    command += ["--dbname", url or stack.app_url, *more]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def evaluated(connection, query: str) -> tuple[int, int]:
    """Rows that were evaluated in software and in the keeper."""
    lines = connection.execute(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {query}").fetchall()
    found = [
        re.search(r"in software: (\d+) rows, in keeper: (\d+) rows", line) for (line,) in lines
    ]
    found = [(int(m[1]), int(m[2])) for m in found if m]
    return sum(s for s, _ in found), sum(k for _, k in found)


def stat(connection) -> dict[str, str]:
    return dict(connection.execute("SELECT * FROM confide.confide_stat_soft_mode").fetchall())
