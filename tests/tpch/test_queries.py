"""The 22 TPC-H queries return the same rows on plain columns, on protected columns in batches, and
on protected columns row by row.

The data are loaded twice through the proxy by COPY; the texts are the standard's with its
validation parameters. Loading is that of the benchmark (bench/tpch_data.py). Durations are
reported, not checked: row by row some queries take minutes.
"""

import time

import pytest
import tpch_data
from results import run
from tpch_data import PRIMARY, QUERIES, TABLES

SCALES = (0.01, 0.1)
SIDES = ("plain", "batches", "row at a time")


class Loaded:
    """Connections to the plain and the protected tables of one scale."""

    def __init__(self, stack, scale: float):
        self.scale = scale
        self.sides = {side: stack.connect_app() for side in SIDES}
        for side, connection in self.sides.items():
            kind = "plain" if side == "plain" else "protected"
            schema = f"tpch_{kind}_{scale:g}".replace(".", "_")
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            connection.execute(f"SET search_path = {schema}")
        for side in SIDES[:2]:
            tpch_data.load(self.sides[side], scale, side != "plain")
        slow = self.sides["row at a time"]
        switches = run(slow, "SELECT name FROM pg_settings WHERE name LIKE 'confide.enable%'").rows
        assert switches
        for (switch,) in switches:
            slow.execute(f"SET {switch} = off")

    def close(self) -> None:
        for connection in self.sides.values():
            connection.close()


@pytest.fixture(scope="module", params=SCALES, ids=lambda scale: f"scale-{scale:g}")
def loaded(stack, request):
    loaded = Loaded(stack, request.param)
    yield loaded
    loaded.close()


@pytest.fixture(scope="module")
def times(report):
    """Seconds of each side, by scale and number of the query."""
    measured = {}
    yield measured
    report(f"TPC-H: scale, query, seconds of {', '.join(SIDES)}")
    for (scale, number), seconds in sorted(measured.items()):
        report(f"  {scale:4g} Q{number:02} " + " ".join(f"{s:8.3f}" for s in seconds))


@pytest.mark.parametrize("table", TABLES)
def test_rows(loaded, table):
    """What was loaded is there, in every column."""
    query = f"SELECT * FROM {table} ORDER BY {PRIMARY[table]}"
    expected = run(loaded.sides["plain"], query)
    assert len(expected.rows) > 0
    assert run(loaded.sides["batches"], query).same(expected)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("number", QUERIES)
def test_query(loaded, times, number):
    outcomes, seconds = [], []
    for connection in loaded.sides.values():
        start = time.monotonic()
        outcomes.append([run(connection, part) for part in tpch_data.query(number, loaded.scale)])
        seconds.append(time.monotonic() - start)
    times[loaded.scale, number] = seconds
    expected, *others = outcomes
    assert all(result.sqlstate is None for result in expected), expected
    for side, found in zip(SIDES[1:], others, strict=True):
        for before, after in zip(expected, found, strict=True):
            assert after.sqlstate is None, f"{side}: {after}"
            assert after.types == before.types, side
            assert after.rows == before.rows, side
