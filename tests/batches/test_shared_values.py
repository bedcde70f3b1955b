"""Values shared by the processes of a parallel query: computed by a worker and passed to the
leader, computed by the leader and passed to workers as parameters, or stored in shared hash tables.

Mechanism: a worker's operations are one-way messages, and the keeper has executed them before
another process uses their results. Right: results and errors of plaintext, with few waits for
thousands of rows. Bugs: a wait for each operation; a value that is used before it exists.
"""

import re

import pytest
from results import plain, run
from waiting import until

ROWS = 6000
FEW = 400  # waits; there was one for each row and operation at least
DDL = """
CREATE TABLE s (id int, g int, k enc_text, i enc_int4, n enc_numeric(15,2));
ALTER TABLE s SET (parallel_workers = 2);
CREATE TABLE few (id int, n enc_numeric(15,2));
"""
SETTINGS = {
    "parallel_setup_cost": "0",
    "parallel_tuple_cost": "0",
    "min_parallel_table_scan_size": "0",
    "max_parallel_workers_per_gather": "2",
    "confide.enable_batch_aggregate": "off",
    "confide.enable_batch_scan": "off",
    "parallel_leader_participation": "off",
    "enable_mergejoin": "off",
    "enable_nestloop": "off",
}


@pytest.fixture(scope="module")
def sides(stack):
    with stack.connect_dba() as dba:
        dba.execute("GRANT pg_monitor TO app")
    connections = []
    for name, ddl in (("shared_plain", plain(DDL)), ("shared", DDL)):
        connection = stack.connect_app()
        connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
        connection.execute(f"CREATE SCHEMA {name}; SET search_path = {name}")
        connection.execute(ddl)
        with connection.cursor().copy("COPY s FROM STDIN") as copy:
            for i in range(ROWS):
                copy.write_row([i, i % 5, f"k{i % 40}", i % 100 + 1, f"{i % 1000}.25"])
        with connection.cursor().copy("COPY few FROM STDIN") as copy:
            for i in range(8):
                copy.write_row([i, f"{i}.5"])
        connection.execute("ANALYZE s; ANALYZE few")
        for setting, value in SETTINGS.items():
            connection.execute(f"SET {setting} = {value}")
        connections.append(connection)
    yield connections
    for connection in connections:
        connection.close()
    with stack.connect_dba() as dba:
        dba.execute("REVOKE pg_monitor FROM app")


def counters(connection) -> dict[str, str]:
    return dict(
        connection.execute("SELECT name, value FROM confide.confide_stat_keeper").fetchall()
    )


def waits(connection, sql) -> int:
    """Answers that were waited for. What workers did is counted when their channels are gone."""
    before = counters(connection)
    assert run(connection, sql).sqlstate is None
    polls = 0

    def quiet() -> dict[str, str] | None:
        nonlocal polls
        polls += 1
        now = counters(connection)
        return now if int(now["channels"]) <= int(before["channels"]) else None

    after = until(quiet, "the workers' channels are gone")
    return int(after["session.answered_total"]) - int(before["session.answered_total"]) - polls


def explain(connection, sql) -> str:
    return "\n".join(line for (line,) in run(connection, f"EXPLAIN (COSTS off) {sql}").rows)


JOINED = "SELECT b.id, b.n * 2 AS m, upper(b.k) AS u FROM s b"
CASES = [
    # what workers compute goes to the leader
    ("SELECT g, sum(n * (1 - n)), count(k), min(k) FROM s GROUP BY g ORDER BY g", "Partial.*Agg"),
    ("SELECT sum(n), max(i), count(*) FROM s", "Partial Aggregate"),
    ("SELECT id, n * 2 + i, upper(k) FROM s WHERE id % 2 = 0 ORDER BY id", "Gather"),
    ("SELECT count(*), sum(m) FROM (SELECT n * 3 AS m FROM s WHERE id > 10 OFFSET 0) x", "Gather"),
    # parameters: of the leader's own making, and of a plan that workers have part in
    ("SELECT sum(n + (SELECT max(n) * 0.5 FROM few)) FROM s WHERE g < 4", "InitPlan"),
    ("SELECT g, sum(n * (SELECT sum(n * 2) FROM s)) FROM s GROUP BY g ORDER BY g", "InitPlan"),
    # a hash table that all fill, with values that they have computed
    (
        f"SELECT sum(x.m), min(x.u), count(*) FROM s a LEFT JOIN ({JOINED}) x ON x.id = a.id + 1",
        "Parallel Hash",
    ),
    (
        "SELECT sum(y.m), count(y.q) FROM s a LEFT JOIN (SELECT c.id, x.m, x.m + c.n AS q FROM s c"
        f" LEFT JOIN ({JOINED}) x ON x.id = c.id) y ON y.id = a.id + 1",
        "Parallel Hash",
    ),
]


@pytest.mark.parametrize("leader", ["off", "on"])
@pytest.mark.parametrize(("sql", "node"), CASES)
def test_results(sides, sql, node, leader):
    for connection in sides:
        connection.execute(f"SET parallel_leader_participation = {leader}")
    expected = run(sides[0], sql)
    assert expected.sqlstate is None, expected.message
    shown = explain(sides[1], sql)
    assert "Gather" in shown, shown
    for _ in range(3):
        got = run(sides[1], sql)
        assert got.same(expected), (got.message, shown)


@pytest.mark.parametrize(("sql", "node"), CASES[:-1])
def test_waits(sides, sql, node):
    """Bug: a wait for each row."""
    sides[1].execute("SET parallel_leader_participation = off")
    shown = explain(sides[1], sql)
    assert re.search(node, shown), shown
    assert waits(sides[1], sql) < FEW, shown


def test_batches_on_disk(sides):
    """Computed values go to files that all processes read."""
    sql = f"SELECT sum(x.m), min(x.u), count(*) FROM s a LEFT JOIN ({JOINED}) x ON x.id = a.id"
    for connection in sides:
        connection.execute("SET work_mem = '64kB'; SET hash_mem_multiplier = 1")
    assert "Parallel Hash" in explain(sides[1], sql)
    expected = run(sides[0], sql)
    for _ in range(3):
        assert run(sides[1], sql).same(expected)
    for connection in sides:
        connection.execute("RESET work_mem; RESET hash_mem_multiplier")


def test_few_rows_wanted(sides):
    """A leader that wants few rows gets them, and workers end."""
    sql = "SELECT i + 0 FROM s WHERE id % 5 = 0 LIMIT 7"
    for _ in range(5):
        assert len(run(sides[1], sql).rows) == 7


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(10 / (i - 100)) FROM s",
        "SELECT id, 10 / (i - 100) FROM s ORDER BY id",
        "SELECT g, sum(n * 99999999999.0 * i::enc_int4::enc_int2) FROM s GROUP BY g",
        "SELECT count(x.e) FROM s a LEFT JOIN (SELECT b.id, 1 / (b.i - 5) AS e FROM s b) x"
        " ON x.id = a.id",
    ],
)
def test_errors(sides, sql):
    """An error of an operation that nobody waits for ends the query."""
    expected, got = run(sides[0], plain(sql)), run(sides[1], sql)
    assert got.sqlstate == expected.sqlstate
    assert run(sides[1], "SELECT count(*) FROM s").rows == [(str(ROWS),)]
