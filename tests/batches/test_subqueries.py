"""Comparisons with the results of correlated subqueries, by the batch: the same as over plain
values, and as row by row; a few waits for all rows.

Bugs: a subquery sees another row's parameters; a sum over no rows, which the keeper keeps as NULL
without telling, is taken for a value or is missing; a subquery is evaluated for a row that another
qual removes, or that nobody reads, and fails; rows are lost at the end of a batch or in a rescan;
what is kept for one comparison is seen by another expression.
"""

import random
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from plans import force_workers
from results import plain, run
from waiting import LIMIT, until_waits

DDL = """
CREATE TABLE t (i int PRIMARY KEY, k int, a enc_int4, b enc_int4, n enc_numeric(12, 2),
                f enc_float8, s enc_text, d enc_date, c rnd_int4);
CREATE TABLE u (j int PRIMARY KEY, k int, p int, a enc_int4, b enc_int4, n enc_numeric(12, 2),
                f enc_float8, s enc_text, d enc_date);
CREATE INDEX u_k ON u (k);
"""
ROWS = 700
GROUPS = 40  # of t; u has no rows for a third of them
SWITCH = "confide.enable_batch_subquery"


def values(rng):
    made = [
        rng.randrange(-20, 40),
        rng.randrange(4),
        f"{rng.randrange(900)}.{rng.randrange(100):02}",
        rng.choice([0.5, -2.25, 1e10, "NaN"]),
        rng.choice(["", "a", "ab", "b"]),
        f"2024-{rng.randrange(1, 13):02}-05",
    ]
    return [v if rng.random() > 0.15 else None for v in made]


@pytest.fixture
def both(app, plain_twin):
    app.execute(DDL)
    plain_twin.execute(plain(DDL).replace("rnd_", ""))
    for connection in (app, plain_twin):
        rng = random.Random(5)
        with connection.cursor().copy("COPY t FROM STDIN") as copy:
            for i in range(ROWS):
                copy.write_row([i, i % GROUPS, *values(rng), i % 7])
        with connection.cursor().copy("COPY u FROM STDIN") as copy:
            for j in range(ROWS):
                k = j * 13 % GROUPS
                if k % 3:
                    copy.write_row([j, k, j % 5, *values(rng)])
        connection.execute("ANALYZE t")
        connection.execute("ANALYZE u")
    return app, plain_twin


def explain(connection, query):
    return "\n".join(row[0] for row in connection.execute(f"EXPLAIN (COSTS off) {query}"))


def by_batch(connection, query):
    """How many nodes compare by the batch, with a subquery among what they compare."""
    plan = explain(connection, query).splitlines()
    return sum("Protected Filter:" in line and "SubPlan" in line for line in plan)


def agree(both, query, nodes=None):
    app, second = both
    expected = run(second, query)
    if nodes is not None:
        assert by_batch(app, query) == nodes, explain(app, query)
    assert run(app, query).same(expected), (query, expected.sqlstate, run(app, query).message)
    app.execute(f"SET {SWITCH} = off")
    assert by_batch(app, query) == 0
    assert run(app, query).same(expected), query
    app.execute(f"RESET {SWITCH}")
    return expected


SUM = "(SELECT sum(u.n) FROM u WHERE u.k = t.k AND u.a > 3)"
QUERIES = {
    f"SELECT i FROM t WHERE n > {SUM} ORDER BY i": 1,
    "SELECT i, n * 2 FROM t WHERE n < (SELECT 0.9 * avg(n) FROM u WHERE k = t.k) ORDER BY i": 1,
    "SELECT count(*), sum(n) FROM t WHERE n < (SELECT avg(n) FROM u WHERE k = t.k)": 1,
    # A value in t.c is a cell.
    "SELECT i FROM t WHERE c < (SELECT min(b) FROM u WHERE k = t.k) ORDER BY i": None,
    f"SELECT i FROM t WHERE (n > {SUM}) IS NULL ORDER BY i": 1,
    f"SELECT i FROM t WHERE n IS DISTINCT FROM {SUM} ORDER BY i": 1,
    f"SELECT i FROM t WHERE NOT n > {SUM} ORDER BY i": 1,
    f"SELECT i FROM t WHERE n > {SUM} OR a > 20 ORDER BY i": None,
    f"SELECT i FROM t WHERE a > 20 OR n > {SUM} ORDER BY i": None,
    f"SELECT i FROM t WHERE coalesce({SUM}, 100) > n ORDER BY i": 1,
    f"SELECT i FROM t WHERE {SUM} IS NULL AND n > 4 ORDER BY i": None,
    f"SELECT i FROM t WHERE CASE WHEN b = 1 THEN n > {SUM} ELSE f > 1 END ORDER BY i": 0,
    f"SELECT i FROM t WHERE n > {SUM} AND a > 2 AND s <> 'b' ORDER BY i": 1,
    f"SELECT i FROM t WHERE n > {SUM} AND n < (SELECT max(n) FROM u WHERE u.k = t.k)"
    f" AND a = (SELECT max(a) FROM u WHERE u.k = t.k + 1) ORDER BY i": 3,
    f"SELECT i, {SUM} FROM t WHERE n > {SUM} ORDER BY i": 1,
    f"SELECT i FROM t WHERE {SUM} > n AND {SUM} > 7 ORDER BY i": 2,
    # What must know whether the sum is NULL.
    "SELECT i FROM t WHERE n > (SELECT coalesce(sum(u.n), 5) FROM u WHERE u.k = t.k AND u.a > 3)"
    " ORDER BY i": 1,
    "SELECT i FROM t WHERE n > (SELECT CASE WHEN sum(u.n) IS NULL THEN 7 ELSE 2 * sum(u.n) END"
    " FROM u WHERE u.k = t.k AND u.a > 3) ORDER BY i": 1,
    "SELECT i FROM t WHERE n > (SELECT count(*) + sum(u.n) FROM u WHERE u.k = t.k AND u.a > 3)"
    " ORDER BY i": 1,
    # Rows as they are, not of an aggregate: none, one, more.
    "SELECT i FROM t WHERE a >= (SELECT a FROM u WHERE j = t.i) ORDER BY i": 1,
    "SELECT i FROM t WHERE a >= (SELECT a FROM u WHERE k = t.k ORDER BY j LIMIT 1) ORDER BY i": 1,
    "SELECT i FROM t WHERE a > (SELECT count(*) FROM u WHERE u.k = t.k) ORDER BY i": None,
    "SELECT i FROM t WHERE a > (SELECT sum(a) FROM u WHERE u.k = t.k GROUP BY u.k) ORDER BY i": 1,
    "SELECT i FROM t WHERE a > (SELECT sum(a) FROM u WHERE u.k = t.k HAVING sum(a) > 9)"
    " ORDER BY i": 1,
    # Joins: the pairs are compared.
    "SELECT t.i, u.j FROM t JOIN u USING (k) WHERE t.n < (SELECT avg(n) FROM u v WHERE v.k = t.k"
    " AND v.p = u.p) ORDER BY 1, 2": 1,
    "SELECT t.i, u.j FROM t LEFT JOIN u ON u.k = t.k AND t.n < (SELECT sum(n) FROM u v"
    " WHERE v.k = t.k AND v.p = u.p) ORDER BY 1, 2": None,
    "SELECT t.i, u.j FROM t LEFT JOIN u ON u.j = t.i WHERE t.n < (SELECT sum(n) FROM u v"
    " WHERE v.k = t.k AND v.p <> u.p) ORDER BY 1, 2": 1,
    # Unique only together with the comparison.
    "SELECT t.i, v.i FROM t JOIN t v ON v.k = t.k AND v.i = (SELECT max(j) FROM u"
    " WHERE u.k = t.k AND u.n < t.n) ORDER BY 1, 2": None,
    f"SELECT i FROM t WHERE n > {SUM} AND EXISTS (SELECT FROM u WHERE u.k = t.k AND u.p = 1)"
    " ORDER BY i": 1,
    "SELECT i FROM t WHERE EXISTS (SELECT FROM u WHERE u.k = t.k AND u.n > (SELECT sum(n)"
    " FROM u v WHERE v.k = u.k AND v.p = t.k)) ORDER BY i": None,
    f"SELECT i FROM t WHERE n > {SUM} AND k NOT IN (SELECT p FROM u) ORDER BY i": 1,
    f"SELECT i FROM t WHERE n > {SUM} AND b NOT IN (SELECT a FROM u WHERE a > 0) ORDER BY i": 1,
    # In a query that is evaluated once, and in one for each row.
    f"SELECT i FROM t WHERE a < (SELECT max(b) FROM t WHERE n > {SUM}) ORDER BY i": None,
    "SELECT x.k, y.i FROM (SELECT DISTINCT k FROM u) x, LATERAL (SELECT i FROM t WHERE t.k = x.k"
    f" AND n > {SUM} OFFSET 0) y ORDER BY 1, 2": 1,
    f"SELECT i FROM t WHERE n > {SUM} UNION ALL SELECT j FROM u WHERE u.n > (SELECT avg(n) FROM t"
    " WHERE t.k = u.k) ORDER BY 1": 2,
    f"WITH w AS MATERIALIZED (SELECT i, k FROM t WHERE n > {SUM}) SELECT count(*) FROM w": None,
}


def test_queries(both):
    for query, nodes in QUERIES.items():
        assert agree(both, query, nodes).sqlstate is None, query


def test_joins_of_each_kind(both):
    kinds = ["hashjoin", "mergejoin", "nestloop"]
    for kept in kinds:
        for connection in both:
            for kind in kinds:
                connection.execute(f"SET enable_{kind} = {'on' if kind == kept else 'off'}")
        for query, nodes in QUERIES.items():
            if "JOIN" in query:
                agree(both, query, nodes)


def test_workers(both):
    app, _ = both
    force_workers(app, "on")
    for setting in ("parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size"):
        app.execute(f"SET {setting} = 0")
    for query in QUERIES:
        agree(both, query)


def random_query(rng):
    column = rng.choice("abnfsd")
    outer = rng.choice([f"t.{column}", f"t.{column}", f"coalesce(t.{column}, t.{column})"])
    aggregates = ["max({})", "min({})"]
    if column in "abn":
        aggregates += ["sum({})", "avg({})", "2 * sum({})", "sum({}) - 7", "sum({} * {})"]
    inner = rng.choice(aggregates).replace("{}", f"u.{column}")
    if column == "n" or inner[:3] in ("max", "min"):
        operator = rng.choice(["<", "<=", "=", "<>", ">=", ">", "IS DISTINCT FROM"])
    else:
        operator, outer = rng.choice(["<", ">"]), "t.n"
    wheres = [rng.choice(["u.k = t.k", "u.k = t.k", "u.k % 9 = t.k % 9", "u.j < t.i - 600"])]
    wheres += rng.sample(["u.p <> t.k % 5", "u.a > t.b", "u.s <> 'b'", "t.a > 0", "u.f > 0"], 2)
    value = f"(SELECT {inner} FROM u WHERE {' AND '.join(wheres[: rng.randrange(1, 4)])})"
    test = f"{outer} {operator} {value}"
    test = rng.choice(
        ["{}", "{}", "NOT {}", "({}) IS NULL", "({}) IS NOT TRUE", "({} OR t.a > 30)"]
    ).format(test)
    return test


def test_random_comparisons(both):
    rng = random.Random(11)
    nodes = 0
    for _ in range(60):
        tests = [random_query(rng) for _ in range(rng.choice([1, 1, 2]))]
        tests += rng.sample(["t.a > 3", "t.s < 'b'", "t.i % 3 = 1"], rng.randrange(3))
        rng.shuffle(tests)
        query = f"SELECT i FROM t WHERE {' AND '.join(tests)} ORDER BY i"
        assert agree(both, query).sqlstate is None, query
        nodes += by_batch(both[0], query)
    assert nodes > 50


@pytest.mark.parametrize("rows", [1, 7, 64])
def test_ends_of_batches(both, rows):
    both[0].execute(f"SET confide.batch_rows = {rows}")
    for query in list(QUERIES)[:8]:
        agree(both, query)


ERRORS = [
    # In PostgreSQL, in the keeper, and as there is more than one row.
    "SELECT i FROM t WHERE a > (SELECT max(a) FROM u WHERE u.k = t.k AND 1 / (t.i - 300) < 9)",
    "SELECT i FROM t WHERE a > (SELECT 1 / min(b) FROM u WHERE u.k = t.k)",
    "SELECT i FROM t WHERE a > (SELECT sum(1 / b) FROM u WHERE u.k = t.k AND u.a > 1)",
    "SELECT i FROM t WHERE a > 1 / (SELECT min(b) FROM u WHERE u.k = t.k)",
    "SELECT i FROM t WHERE a > (SELECT a FROM u WHERE u.k = t.k)",
    "SELECT i FROM t WHERE a > (SELECT sum(a) * 2000000000000000000 FROM u WHERE u.k = t.k)",
]


def test_errors(both):
    for query in ERRORS:
        assert agree(both, query, 1).sqlstate in ("22012", "21000", "22003"), query
        assert run(both[0], "SELECT count(*) FROM t WHERE a > 3").sqlstate is None


# A subquery that fails for some rows of t, which are not asked for it.
FAILS = "(SELECT max(a) FROM u WHERE u.k = t.k AND 1 / (t.i - 30) < 9)"
IN_KEEPER = "(SELECT sum(a) / (t.k - 9) FROM u WHERE u.k = t.k AND u.a > 0)"
QUIET = [
    f"SELECT i FROM t WHERE i <> 30 AND a > {FAILS} ORDER BY i",
    f"SELECT i FROM t WHERE i > 31 AND a > 0 AND a > {FAILS} ORDER BY i",
    f"SELECT i FROM t WHERE i < 30 AND n > {SUM} AND a > {FAILS} ORDER BY i",
    f"SELECT i FROM t WHERE k <> 9 AND a > {IN_KEEPER} ORDER BY i",
    f"SELECT i FROM t WHERE CASE WHEN i = 30 THEN a > 3 ELSE a > {FAILS} END ORDER BY i",
    # The rows that fail are not reached.
    f"SELECT i FROM (SELECT i FROM t WHERE a > {FAILS} OR a IS NOT NULL) x LIMIT 5",
    f"SELECT i FROM t WHERE a IS NULL OR a > {FAILS} LIMIT 3",
    f"SELECT i FROM t WHERE a > {FAILS} LIMIT 1",
    # A batch that began with the last of these rows would have the one that fails.
    "SELECT i FROM t WHERE coalesce(n, 1) >= (SELECT min(0 * u.n) FROM u WHERE 1 / (t.i - 9) < 9)"
    " LIMIT 8",
    f"SELECT EXISTS (SELECT FROM t WHERE a > {FAILS})",
    f"SELECT j FROM u WHERE EXISTS (SELECT FROM t WHERE a > {FAILS}) AND j < 9 ORDER BY 1",
    f"SELECT (SELECT i FROM t WHERE a > {FAILS} LIMIT 1)",
    # A hash join that finds its inner side empty after the first outer row.
    f"SELECT t.i FROM t JOIN u ON u.j = t.i AND u.a > 1000 WHERE t.a >= {FAILS}",
]


def test_rows_that_are_not_asked_for(both):
    for connection in both:
        connection.execute("SET enable_indexscan = off")
        connection.execute("SET enable_bitmapscan = off")
    for query in QUIET:
        assert agree(both, query).sqlstate is None, query


def test_guarded_by_the_keeper(both):
    """A protected qual that removes the row with which the subquery would fail stands before it,
    also if there are several."""
    for connection in both:
        connection.execute("UPDATE t SET s = 'no' WHERE i = 30")
    for query in (
        f"SELECT i FROM t WHERE s <> 'no' AND a > {FAILS} ORDER BY i",
        f"SELECT i FROM t WHERE s <> 'no' AND n > {SUM} AND a > {FAILS} ORDER BY i",
    ):
        assert agree(both, query).sqlstate is None, query


def test_changes(both):
    statements = [
        f"UPDATE t SET a = a + 1 WHERE n > {SUM}",
        "DELETE FROM t WHERE a < (SELECT avg(v.a) FROM t v WHERE v.k = t.k) AND k < 9",
        "INSERT INTO t (i, k, a) SELECT i + 10000, k, a FROM t WHERE a >"
        " (SELECT min(b) FROM u WHERE k = t.k)",
        "WITH gone AS (DELETE FROM t WHERE a = (SELECT max(b) FROM u WHERE u.k = t.k) RETURNING i)"
        " INSERT INTO t (i, k) SELECT i + 20000, i FROM gone",
    ]
    # What is assigned comes of a subquery for each row, and is fitted to the column.
    several = "UPDATE t SET (n, a) = (SELECT 1.005 * sum(u.n), max(u.b) FROM u WHERE u.k = t.k)"
    statements += [f"{several} WHERE n > {SUM}", f"{several} WHERE k > 4"]
    for sql in statements:
        assert by_batch(both[0], sql) == ("k > 4" not in sql), explain(both[0], sql)
        for connection in both:
            connection.execute(sql)
        agree(both, "SELECT i, k, a, n FROM t ORDER BY i")


def test_side_effects(both):
    """A subquery that has effects is evaluated when its row is."""
    sql = (
        "SELECT i FROM t WHERE a > (SELECT max(a) FROM u WHERE u.k = t.k"
        " AND nextval('counted') > 0) LIMIT 2"
    )
    for connection in both:
        connection.execute("CREATE SEQUENCE counted")
    agree(both, sql, 0)
    app = both[0]
    app.execute(sql.replace(" LIMIT 2", ""))
    assert by_batch(app, sql.replace(" LIMIT 2", "")) == 0


def test_prepared(both):
    """Parameters of the statement, within the subquery and without; generic plans."""
    sql = f"SELECT i FROM t WHERE n > {SUM} AND k = $1 AND a > $2 ORDER BY i"
    app, second = both
    app.execute(f"PREPARE p (int, enc_int4) AS {sql.replace('u.a > 3', 'u.a > $2')}")
    second.execute(f"PREPARE p (int, int4) AS {sql.replace('u.a > 3', 'u.a > $2')}")
    for mode in ("force_generic_plan", "force_custom_plan"):
        for connection in both:
            connection.execute(f"SET plan_cache_mode = {mode}")
        for k, least in ((1, 3), (2, 5), (0, 3), (1, 20)):
            expected = run(second, f"EXECUTE p ({k}, {least})")
            assert run(app, f"EXECUTE p ({k}, {least})").same(expected), (mode, k)


def test_cursor(both):
    """Positioned and scrolled as ever."""
    for connection in both:
        connection.execute("BEGIN")
        connection.execute(
            f"DECLARE c SCROLL CURSOR FOR SELECT i FROM t WHERE n > {SUM} ORDER BY i"
        )
    for fetch in ("FETCH 3 FROM c", "FETCH BACKWARD 2 FROM c", "FETCH ALL FROM c"):
        assert run(both[0], fetch).same(run(both[1], fetch))
    for connection in both:
        connection.execute("ROLLBACK")


def waits(connection):
    query = "SELECT value FROM confide.confide_stat_keeper WHERE name = 'session.answered_total'"
    return int(connection.execute(query).fetchone()[0])


@pytest.mark.parametrize("workers", [0, 2])
def test_waits(both, dba, workers):
    """Some for each batch. Bug: one for each row, for the subquery's result or the comparison."""
    app, _ = both
    dba.execute("GRANT pg_monitor TO app")
    app.execute(f"SET max_parallel_workers_per_gather = {workers}")
    app.execute("SET plan_cache_mode = force_generic_plan")
    try:
        for query in (
            f"SELECT i FROM t WHERE n > {SUM}",
            "SELECT i FROM t WHERE n < (SELECT 0.2 * avg(n) FROM u WHERE k = t.k)",
            "SELECT sum(t.n) FROM t JOIN u USING (k) WHERE t.n <"
            " (SELECT 0.5 * sum(n) FROM u v WHERE v.k = t.k AND v.d > date '2024-03-01')",
        ):
            found = {}
            for switch in ("on", "off", "on"):
                app.execute(f"SET {SWITCH} = {switch}")
                before = waits(app)
                app.execute(query).fetchall()
                found[switch] = waits(app) - before
            assert found["off"] > ROWS / 2, (query, found)
            assert found["on"] < 40, (query, found)
    finally:
        dba.execute("REVOKE pg_monitor FROM app")


def test_inner_scans(both, dba):
    """Above a loop whose inner scan finds few rows each time. Bug: a wait for each outer row."""
    app, _ = both
    dba.execute("GRANT pg_monitor TO app")
    for connection in both:
        for name in ("hashjoin", "mergejoin", "material", "memoize"):
            connection.execute(f"SET enable_{name} = off")
    query = (
        "SELECT t.i, u.j FROM t JOIN u ON u.k = t.k {} WHERE u.n <"
        " (SELECT 1.1 * avg(v.n) FROM u v WHERE v.k = u.k AND v.p = u.p) AND t.i % 9 = 2"
        " ORDER BY 1, 2"
    )
    try:
        for found in ("", "AND u.j <> t.i", "AND 7 / (u.p + 1) > 0"):
            agree(both, query.format(found))
        shown = explain(app, query.format(""))
        assert "Nested Loop" in shown, shown
        before = waits(app)
        app.execute(query.format("")).fetchall()
        assert waits(app) - before < 40, shown
        # By the outer row's own column, which is a parameter of the inner scan.
        agree(
            both,
            "SELECT t.i, x.j FROM t, LATERAL (SELECT u.j, u.n, u.k FROM u WHERE u.k = t.k AND"
            " u.n < (SELECT avg(v.n) FROM u v WHERE v.k = t.k AND v.p = u.p) OFFSET 0) x"
            " ORDER BY 1, 2",
        )
    finally:
        dba.execute("REVOKE pg_monitor FROM app")


def test_explained(both):
    app, _ = both
    query = f"SELECT i FROM t WHERE n > {SUM}"
    shown = "\n".join(
        row[0] for row in app.execute(f"EXPLAIN (ANALYZE, COSTS off, TIMING off) {query}")
    )
    assert "Round Trips" in shown
    assert "Result: not told" in shown
    assert "SubPlan" in shown
    # It is evaluated once for each row.
    assert f"loops={ROWS}" in shown, shown


def test_cancelled(both):
    """In the subquery of some row. The session goes on."""
    app, _ = both
    slow = (
        "SELECT count(*) FROM t WHERE n > (SELECT sum(v.n) FROM u v, u w, u x"
        " WHERE v.k <> t.k AND v.a > 2)"
    )
    assert by_batch(app, slow) == 1
    app.execute("SET statement_timeout = '300ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        app.execute(slow)
    app.execute("RESET statement_timeout")
    agree(both, f"SELECT i FROM t WHERE n > {SUM} ORDER BY i", 1)


def test_row_that_changed_meanwhile(both, stack):
    """A row that another session has changed is compared again."""
    app, _ = both
    app.execute("UPDATE t SET n = 5 WHERE i < 10")
    sql = (
        "UPDATE t SET k = k + 1000 WHERE i < 10 AND n <"
        " (SELECT 100 + coalesce(min(n), 0) FROM u WHERE u.k = t.k AND u.a > 0)"
    )
    assert by_batch(app, sql) == 1
    with stack.connect_app() as other:
        other.execute(f"SET search_path = {app.execute('SHOW search_path').fetchone()[0]}")
        other.execute("BEGIN")
        other.execute("UPDATE t SET n = 50000 WHERE i = 7")
        other.execute("UPDATE t SET n = 6 WHERE i = 8")
        with ThreadPoolExecutor(1) as pool:
            update = pool.submit(app.execute, sql)
            until_waits(stack, app, "Lock")
            other.execute("COMMIT")
            update.result(timeout=LIMIT)
    found = app.execute("SELECT i FROM t WHERE k > 999 ORDER BY 1").fetchall()
    assert [i for (i,) in found] == [0, 1, 2, 3, 4, 5, 6, 8, 9]
