"""The 22 TPC-H queries return the same rows on plain columns and on columns of the family rnd_.

There are few rows, because some operations on cells take a request each. The texts, the tables and
the data are those of test_queries.py. Bug: an operator is not found, or a wrong one is.
"""

import pytest
import tpch_data
from results import run
from tpch_data import PRIMARY, QUERIES, TABLES

SCALE = 0.01


@pytest.fixture(scope="module")
def sides(stack, tmp_path_factory):
    """Connections to the plain tables and to those of cells."""
    data = tpch_data.fewer(tpch_data.generate(SCALE), tmp_path_factory.mktemp("tpch"))
    connections = []
    for schema, family in (("tpch_cells_plain", ""), ("tpch_cells", "rnd_")):
        connection = stack.connect_app()
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}")
        connection.execute(f"SET search_path = {schema}")
        connection.execute(tpch_data.ddl(bool(family), family))
        for table in TABLES:
            tpch_data.copy(connection, table, data)
        tpch_data.finish(connection)
        connections.append(connection)
    yield connections
    for connection in connections:
        connection.close()


@pytest.mark.parametrize("table", TABLES)
def test_rows(sides, table):
    """What was loaded is there, in every column."""
    plain, cells = (run(c, f"SELECT * FROM {table} ORDER BY {PRIMARY[table]}") for c in sides)
    assert len(plain.rows) > 0
    assert cells.same(plain)


@pytest.mark.parametrize("number", QUERIES)
def test_query(sides, number):
    for part in tpch_data.query(number, SCALE):
        plain, cells = (run(connection, part) for connection in sides)
        assert plain.sqlstate is None
        assert cells.same(plain), (cells.sqlstate, cells.message)
