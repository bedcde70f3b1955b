"""An error of an operation that nobody waited for is the error of its own statement.

Mechanism: a constant expression is computed while a statement is planned, and the error comes
with a later answer; answers to batches (what EXPLAIN shows, rows, conditions) do not bring it.
Right: the statement fails as on plain tables, or works if PostgreSQL does not compute the
expression, and the next one is what it would be without. Bug: the next one fails with the error
of the one before it.
"""

import pytest
from results import plain, run

DDL = "CREATE TABLE t (id int, k enc_int4, n enc_numeric, s enc_text)"
ROWS = "INSERT INTO t SELECT g, g, g / 2.0, 'row ' || g FROM generate_series(1, 40) g"
STATEMENTS = [
    "EXPLAIN (COSTS OFF) SELECT id FROM t WHERE k = 1 / 0",
    "EXPLAIN (COSTS OFF) SELECT k / 0 FROM t",
    "SELECT id FROM t WHERE k = 1 / 0",
    "SELECT id FROM t WHERE id < 0 AND k / 0 = 1",
    "SELECT k / 0 FROM t LIMIT 0",
    "SELECT count(*) FROM (SELECT k / 0 AS x FROM t) q",
    "SELECT id FROM t WHERE EXISTS (SELECT k / 0 FROM t) ORDER BY k",
    "SELECT n, CASE WHEN id < 0 THEN k / 0 END FROM t ORDER BY s",
    "SELECT sum(n), avg(n / 0) FILTER (WHERE k < 0) FROM t GROUP BY id % 3",
    "PREPARE p AS SELECT id FROM t WHERE n > 1 / (k - k); DEALLOCATE p",
    "DO $$ BEGIN PERFORM k / 0 FROM t; END $$",
    "DO $$ BEGIN PERFORM k / 0 FROM t; EXCEPTION WHEN division_by_zero THEN NULL; END $$",
]
NEXT = [
    "SELECT k FROM t ORDER BY n DESC LIMIT 3",
    "SELECT 1",
    "UPDATE t SET k = k + 1 WHERE id = 9",
]


@pytest.fixture
def twins(app, plain_twin):
    for connection, ddl in ((app, DDL), (plain_twin, plain(DDL))):
        connection.execute(ddl)
        connection.execute(ROWS)
        connection.execute("ANALYZE t")
    return app, plain_twin


@pytest.mark.parametrize("statement", STATEMENTS)
def test_in_its_statement(twins, statement):
    for following in NEXT:
        for connection in twins:
            connection.execute("SET confide.round_trip_cost = 0")
        protected, expected = (run(connection, statement) for connection in twins)
        assert protected.sqlstate == expected.sqlstate, protected.message
        if not statement.startswith("EXPLAIN"):
            assert sorted(protected.rows) == sorted(expected.rows)
        protected, expected = (run(connection, following) for connection in twins)
        assert (protected.sqlstate, protected.rows) == (expected.sqlstate, expected.rows)
