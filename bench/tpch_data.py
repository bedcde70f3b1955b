"""TPC-H: data, tables, loading. The tables are those of the tests; for loading, their constraints
are taken out and come back afterwards, with an index on every foreign key, for plaintext and
protected alike.
"""

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
from results import plain
from stack import ROOT

TABLES = ["region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem"]
QUERIES = range(1, 23)
# A tenth of the orders of scale 0.01: for tests.
LAST_ORDER = 6000
PRIMARY = {
    "region": "r_regionkey",
    "nation": "n_nationkey",
    "part": "p_partkey",
    "supplier": "s_suppkey",
    "partsupp": "ps_partkey, ps_suppkey",
    "customer": "c_custkey",
    "orders": "o_orderkey",
    "lineitem": "l_orderkey, l_linenumber",
}
FOREIGN = [
    ("nation", "n_regionkey", "region"),
    ("supplier", "s_nationkey", "nation"),
    ("customer", "c_nationkey", "nation"),
    ("partsupp", "ps_partkey", "part"),
    ("partsupp", "ps_suppkey", "supplier"),
    ("orders", "o_custkey", "customer"),
    ("lineitem", "l_orderkey", "orders"),
    ("lineitem", "l_partkey, l_suppkey", "partsupp"),
    ("lineitem", "l_suppkey", "supplier"),
]


def generate(scale: float) -> Path:
    """The data files at this scale, made once."""
    directory = ROOT / f".run/tpch-{scale:g}"
    if not (directory / "done").exists():
        program = ROOT / ".venv/bin/tpchgen-cli"
        arguments = ["--quiet", "-s", f"{scale:g}", "--output-dir", directory]
        subprocess.run([program, *arguments], check=True)
        (directory / "done").touch()
    return directory


def fewer(directory: Path, target: Path) -> Path:
    """The data without most orders and their lines; where they are."""
    for table in TABLES:
        rows = (directory / f"{table}.tbl").read_text().splitlines(keepends=True)
        if table in ("orders", "lineitem"):
            rows = [row for row in rows if int(row.split("|")[0]) <= LAST_ORDER]
        (target / f"{table}.tbl").write_text("".join(rows))
    return target


def ddl(protected: bool, family: str = "enc_") -> str:
    text = (ROOT / "tests/tpch/schema.sql").read_text()
    text = re.sub(r" PRIMARY KEY\b(?! \()| REFERENCES \w+", "", text)
    text = re.sub(r",\s*PRIMARY KEY \([^)]*\)", "", text)
    return text.replace("enc_", family) if protected else plain(text)


def constraints() -> list[str]:
    keys = [f"ALTER TABLE {t} ADD PRIMARY KEY ({c})" for t, c in PRIMARY.items()]
    # partsupp's primary key begins with its first foreign key.
    indexes = [f"CREATE INDEX ON {t} ({c})" for t, c, _ in FOREIGN if c not in PRIMARY[t]]
    foreign = [f"ALTER TABLE {t} ADD FOREIGN KEY ({c}) REFERENCES {r}" for t, c, r in FOREIGN]
    return keys + indexes + foreign


def rows_of(path: Path):
    """The file's rows without the delimiter at their ends, in large pieces."""
    with path.open("rb") as file:
        while piece := file.readlines(1 << 20):
            yield b"".join(piece).replace(b"|\n", b"\n")


def copy(connection: psycopg.Connection, table: str, directory: Path) -> float:
    """Loads one table; seconds."""
    start = time.monotonic()
    with connection.cursor().copy(f"COPY {table} FROM STDIN WITH (DELIMITER '|')") as stream:
        for piece in rows_of(directory / f"{table}.tbl"):
            stream.write(piece)
    return time.monotonic() - start


def timed(function: Callable, *args) -> float:
    start = time.monotonic()
    function(*args)
    return time.monotonic() - start


def finish(connection: psycopg.Connection) -> dict[str, float]:
    """Constraints, indexes, statistics; seconds of each."""

    def run(statements):
        for statement in statements:
            connection.execute(statement)

    return {
        "constraints": timed(run, constraints()),
        "vacuum": timed(run, ["VACUUM " + ", ".join(TABLES)]),
        "analyze": timed(run, ["ANALYZE " + ", ".join(TABLES)]),
    }


def load(connection: psycopg.Connection, scale: float, protected: bool) -> None:
    """Makes all tables where the search path says, with their data and all that is finished."""
    directory = generate(scale)
    connection.execute(ddl(protected))
    for table in TABLES:
        copy(connection, table, directory)
    finish(connection)


def query(number: int, scale: float) -> list[str]:
    """The statements of a query, in the standard's text with its validation parameters."""
    text = (ROOT / f"tests/tpch/queries/{number:02}.sql").read_text()
    # Q11's fraction depends on the scale.
    text = text.replace("0.0001000000", f"{0.0001 / scale:.10f}")
    return [part for part in text.split(";\n") if part.strip()]


def storage(connection: psycopg.Connection, schema: str) -> dict[str, int]:
    """Bytes of tables and of indexes, and rows."""
    tables, indexes = connection.execute(
        """SELECT sum(pg_table_size(c.oid))::int8, sum(pg_indexes_size(c.oid))::int8
        FROM pg_class c WHERE relkind = 'r' AND relnamespace = %s::regnamespace""",
        (schema,),
    ).fetchone()
    rows = sum(
        connection.execute(f"SELECT count(*) FROM {schema}.{table}").fetchone()[0]
        for table in TABLES
    )
    return {"tables": tables, "indexes": indexes, "rows": rows}
