"""The 22 TPC-H queries on plain and on protected columns give the same rows.

The data are loaded twice through the proxy by COPY; the texts are the standard's
with its validation parameters.
"""

import subprocess
import time
from pathlib import Path

import pytest
from results import plain, run
from stack import ROOT

HERE = Path(__file__).parent
TABLES = ["region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem"]
KEYS = {"partsupp": "1, 2", "lineitem": "1, 4"}
LIMIT = 60


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tpch")
    subprocess.run(
        [ROOT / ".venv/bin/tpchgen-cli", "--quiet", "-s", "0.01", "--output-dir", directory],
        check=True,
    )
    return directory


def load(connection, schema, ddl, data):
    connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    connection.execute(f"CREATE SCHEMA {schema}")
    connection.execute(f"SET search_path = {schema}")
    connection.execute(ddl)
    for table in TABLES:
        rows = (data / f"{table}.tbl").read_bytes().replace(b"|\n", b"\n")
        with connection.cursor().copy(f"COPY {table} FROM STDIN WITH (DELIMITER '|')") as copy:
            copy.write(rows)
    connection.execute("SET default_statistics_target = 20")
    connection.execute("ANALYZE " + ", ".join(TABLES))


@pytest.fixture(scope="module")
def loaded(stack, data):
    """Two connections: where the search path finds the plain and the protected tables."""
    ddl = (HERE / "schema.sql").read_text()
    with stack.connect_app() as plaintext, stack.connect_app() as protected:
        load(plaintext, "tpch_plain", plain(ddl), data)
        load(protected, "tpch_protected", ddl, data)
        yield plaintext, protected


@pytest.fixture(scope="module")
def times(report):
    measured = {}
    yield measured
    report("TPC-H at scale 0.01: query, plain s, protected s, ratio")
    for number, (before, after) in sorted(measured.items()):
        report(f"  Q{number:02} {before:7.3f} {after:7.3f} {after / before:7.1f}")


@pytest.mark.parametrize("table", TABLES)
def test_rows(loaded, table):
    """What was loaded is there, in every column."""
    plaintext, protected = loaded
    query = f"SELECT * FROM {table} ORDER BY {KEYS.get(table, '1')}"
    expected = run(plaintext, query)
    assert len(expected.rows) > 0
    assert run(protected, query).same(expected)


@pytest.mark.parametrize("number", range(1, 23))
def test_query(loaded, times, number):
    text = (HERE / "queries" / f"{number:02}.sql").read_text()
    taken = []
    outcomes = []
    for connection in loaded:
        connection.execute(f"SET statement_timeout = '{2 * LIMIT}s'")
        statements = [s for s in text.split(";\n") if s.strip()]
        results = []
        start = time.monotonic()
        for statement in statements:
            results.append(run(connection, statement))
        taken.append(time.monotonic() - start)
        outcomes.append(results)
    times[number] = taken
    for before, after in zip(*outcomes, strict=True):
        assert before.sqlstate is None, before
        assert after.sqlstate is None, after
        assert after.types == before.types
        assert after.rows == before.rows
    assert taken[1] < LIMIT
