"""B-trees on protected columns are searched a page at a time: the rows are plaintext's, and a
lookup takes few round trips.
"""

import re
import threading

import psycopg
import pytest
from garbage import collect, slots
from results import plain, run

ROWS = 20000
DDL = """
CREATE TABLE k (i int, n enc_int4, t enc_text, m enc_numeric(12, 2));
CREATE INDEX k_n ON k (n);
CREATE INDEX k_t ON k (t DESC, n);
CREATE INDEX k_m ON k (m NULLS FIRST);
"""


@pytest.fixture
def both(app, plain_twin):
    """The protected table, and its plain twin under the same name in another schema."""
    app.execute(DDL)
    plain_twin.execute(plain(DDL))
    for connection in (app, plain_twin):
        with connection.cursor().copy("COPY k FROM STDIN") as copy:
            for i in range(ROWS):
                k = i * 7919 % 19997 // 2
                copy.write_row(
                    [i, k if i % 50 else None, f"t{k % 5000:05}" if i % 70 else None, k / 4]
                )
        connection.execute("SET enable_seqscan = off")
    return app, plain_twin


@pytest.fixture
def answered(app, dba):
    """Round Trips of the application's channel so far."""
    dba.execute("GRANT pg_monitor TO app")
    name = "channel.answered_total"
    query = "SELECT value FROM confide.confide_stat_keeper WHERE name = %s"
    yield lambda: int(app.execute(query, [name]).fetchone()[0])
    dba.execute("REVOKE pg_monitor FROM app")


def same(both, query):
    expected = run(both[1], query)
    assert run(both[0], query).same(expected), query
    return expected.rows


CONDITIONS = [
    "n = 4711",
    "n = 0",
    "n = -5",
    "n = 10000000",
    "n IS NULL",
    "n < 40",
    "n <= 40",
    "n > 9950",
    "n >= 9950",
    "n BETWEEN 400 AND 900",
    "n > 400 AND n < 900",
    "n = 5 AND t = 't00005'",
    "n IN (1, 77, 5000, 9000)",
    "t = 't00100'",
    "t < 't00030'",
    "t >= 't04980'",
    "t BETWEEN 't00100' AND 't00300' AND n > 50",
    "m = 12.25",
    "m <= 5",
    "m > 2495.75",
    "n < 50 AND n < 30",
    "n > 50 AND n < 30",
    "n = 40 AND n > 39",
    "n::int8 = 77",
    "n = 77.0",
    "n BETWEEN 10 AND 15 OR n BETWEEN 4000 AND 4300 OR n = 77 OR n > 9990",
    "n < 5 OR n > 9995 OR n BETWEEN 9000 AND 8000 OR n BETWEEN 14 AND 20",
    "n > 14 AND n < 20 OR n >= 18 AND n <= 30 OR n = 5 AND t = 't00005' OR n > 20000",
    "t = 't00100' OR t BETWEEN 't00100' AND 't00120' OR t > 't04990'",
    "m BETWEEN 5 AND 5.5 OR m = 12.25 OR n BETWEEN 5 AND 9 OR n BETWEEN 50 AND 59",
]


def find(both, scan, conditions, orders, limit):
    """By this scan: all rows of each condition, and by the index some in each of these orders."""
    for connection in both:
        connection.execute(f"SET enable_{'bitmap' if scan == 'index' else 'index'}scan = off")
        connection.execute("SET enable_indexonlyscan = off")
    for condition in conditions:
        same(both, f"SELECT i FROM k WHERE {condition} ORDER BY i")
        for order in orders if scan == "index" else ():
            same(
                both,
                f"SELECT count(*) FROM (SELECT n, t FROM k WHERE {condition}"
                f" ORDER BY {order} LIMIT {limit}) x",
            )


@pytest.mark.parametrize("scan", ["index", "bitmap"])
def test_conditions(both, scan):
    find(both, scan, CONDITIONS, ("n", "n DESC", "t", "t DESC"), 70)


def test_order_and_join(both):
    same(both, "SELECT n, count(*) FROM k WHERE n > 500 AND n < 600 GROUP BY n ORDER BY n DESC")
    for connection in both:
        connection.execute("SET enable_hashjoin = off")
        connection.execute("SET enable_mergejoin = off")
    same(both, "SELECT a.i, b.i FROM k a JOIN k b ON a.n = b.n WHERE a.i < 300 ORDER BY 1, 2")
    same(
        both,
        "SELECT a.i, (SELECT min(b.n) FROM k b WHERE b.n > a.n) FROM k a WHERE a.i < 50 ORDER BY 1",
    )


def test_exchanges(both, answered):
    """A lookup in a tree of two levels costs a question a level, with its result in an
    envelope; one by one it would be twenty comparisons."""
    app, _ = both
    query = "SELECT i FROM k WHERE n = 4711"
    same(both, query)
    idle = answered()
    idle = answered() - idle
    before = answered()
    for _ in range(10):
        app.execute(query)
    assert (answered() - before - idle) / 10 <= 4
    app.execute("SET confide.enable_index_search = off")
    before = answered()
    app.execute(query)
    assert answered() - before - idle > 10


def test_other_tests_of_a_known_order(both, answered):
    """A search tells how keys compare with the value; so other tests of the same two values are
    known, too. Known for the scan's own condition only, `<>` would be a round trip for each row."""
    app, twin = both
    for connection in both:
        connection.execute("SET enable_bitmapscan = off")
    app.execute("SET confide.enable_batch_scan = off")
    query = "SELECT i FROM k WHERE n > %(v)s AND n <> %(v)s ORDER BY i"
    value = {"v": 9900}
    rows = len(twin.execute(query, value).fetchall())
    assert rows > 50
    app.execute(query, value)
    idle = answered()
    idle = answered() - idle
    before = answered()
    assert len(app.execute(query, value).fetchall()) == rows
    assert answered() - before - idle < rows / 2


def test_planning_of_arms(both, answered):
    """What the planner asks about a column's statistics it asks once for all conditions on the
    column; one condition after the other it would be a round trip each."""
    app, _ = both
    app.execute("ANALYZE k")
    ranges = " OR ".join(f"n BETWEEN {low} AND {low + 5}" for low in range(0, 10000, 1000))
    query = f"SELECT i FROM k WHERE {ranges} OR n = 7 LIMIT 0"
    app.execute(query)
    before = answered()
    idle = answered() - before
    before = answered()
    app.execute(query)
    assert answered() - before - idle <= 6


def test_planning_at_the_ends(both, answered):
    """Near the ends of a histogram PostgreSQL compares a constant with the column's present minimum
    or maximum; the histogram's own bound stands for it, where it would be a round trip for each
    condition. Beyond the histogram it is asked, about all conditions at once: rows that came since
    ANALYZE are counted."""
    app, _ = both
    for connection in both:
        connection.execute("ANALYZE k")
    lows = [*range(2, 72, 8), *range(9920, 9990, 8)]
    ranges = " OR ".join(f"n BETWEEN {low} AND {low + 5}" for low in lows)
    query = f"SELECT i FROM k WHERE {ranges} LIMIT 0"
    beyond = " OR ".join(f"n BETWEEN {low} AND {low + 5}" for low in range(20000, 20100, 10))
    idle = answered()
    idle = answered() - idle
    for sql, most in ((query, 4), (f"SELECT i FROM k WHERE {beyond} LIMIT 0", 8)):
        app.execute(sql)
        before = answered()
        app.execute(sql)
        assert answered() - before - idle <= most, sql

    def rows(connection, condition):
        line = connection.execute(f"EXPLAIN SELECT i FROM k WHERE {condition}").fetchone()[0]
        return int(re.search(r"rows=(\d+)", line).group(1))

    for connection in both:
        connection.execute("INSERT INTO k SELECT 1, g, 'x', 1 FROM generate_series(10000, 30000) g")
    for condition in (
        "n < 50",
        "n < 2",
        "n > 9950",
        "n >= 9990",
        "n < -5",
        "n > 40000",
        "n > 29000",
    ):
        found, expected = (rows(connection, condition) for connection in both)
        assert abs(found - expected) <= 300, (condition, found, expected)


def test_arms(both, answered):
    """The scans of an OR ask together: once for a page that they have in common."""
    app, _ = both
    app.execute("ANALYZE k")
    ranges = " OR ".join(f"n BETWEEN {low} AND {low + 5}" for low in range(0, 10000, 1000))
    query = f"SELECT count(*), min(i), max(i) FROM k WHERE {ranges}"
    plan = "\n".join(row for (row,) in app.execute(f"EXPLAIN {query}"))
    assert plan.count("Bitmap Index Scan") == 10, plan
    for connection in both:
        connection.execute(f"PREPARE arms AS {query}")
    rows = [connection.execute("EXECUTE arms").fetchall() for connection in both]
    assert rows[0] == rows[1]
    before = answered()
    idle = answered() - before
    before = answered()
    app.execute("EXECUTE arms")
    # The root, and a leaf or two of each arm.
    assert answered() - before - idle <= 16


def test_arms_change(both):
    """Rows that come between two runs of the same plan, and while a run stands still."""
    ranges = " OR ".join(f"n BETWEEN {low} AND {low + 5}" for low in range(0, 10000, 1000))
    for connection in both:
        connection.execute("SET enable_indexscan = off")
        connection.execute(f"PREPARE arms AS SELECT i, n FROM k WHERE {ranges} ORDER BY i")
    for i in range(30):
        for connection in both:
            connection.execute(
                f"INSERT INTO k VALUES ({50000 + i}, {i % 10 * 1000 + i % 7}, 'x', 1)"
            )
            connection.execute(f"DELETE FROM k WHERE n = {i % 10 * 1000 + 3}")
        rows = [connection.execute("EXECUTE arms").fetchall() for connection in both]
        assert rows[0] == rows[1]
    inner = f"(SELECT count(*) FROM k WHERE a.i >= 0 AND ({ranges}))"
    same(both, f"SELECT a.i, {inner} FROM k a WHERE a.i BETWEEN 100 AND 104 ORDER BY a.i")


def listed(values):
    return ", ".join(str(value) for value in values)


def some(count, seed=1):
    """Values of k.n in no order, some of them twice, and some that are not there."""
    return [(i * 7919 + seed) % 10040 for i in range(count)] + [seed, seed]


ARRAYS = [
    f"n IN ({listed(some(300))})",
    f"n IN ({listed(some(40))}, NULL)",
    "n IN (NULL, NULL)",
    "n IN (5, 5, 5)",
    "n IN (-1, 20000)",
    "n NOT IN (1, 2)",
    f"n IN ({listed(some(40))}) AND n > 3000",
    "n IN (1, 2, 3) AND n IN (2, 3, 4)",
    "n < ANY (ARRAY[30, 7, 20]::enc_int4[])",
    "n >= ALL (ARRAY[9000, 9990]::enc_int4[])",
    "n = ANY (ARRAY[5, 77, 5000000000]::enc_int8[])",
    "n = ANY ('{}')",
    "t IN ('t00100', 't00007', 't04999', 'nothing', 't00100')",
    "t IN ('t00100', 't00007', 't04999') AND n IN (100, 7, 5007, 5)",
    "t = 't00100' AND n IN (100, 5100, 7)",
    "m IN (12.25, 12.250, 0, 2499, 3)",
]


@pytest.mark.parametrize("scan", ["index", "bitmap"])
def test_arrays(both, scan):
    """Each element of an array is looked up, whether they are asked about together or not."""
    find(both, scan, ARRAYS, ("n", "n DESC"), 7)


def test_arrays_again(both):
    """Arrays that are other ones in each turn of a loop, two scans that take turns, rows that come
    and go between, and a scan that turns round."""
    for connection in both:
        connection.execute("SET enable_hashjoin = off; SET enable_mergejoin = off")
        connection.execute("SET enable_material = off; SET enable_memoize = off")
    same(
        both,
        "SELECT a.i, b.i FROM k a JOIN k b ON b.n IN (a.n, a.n + 1, a.n - 7, a.n + 4000)"
        " WHERE a.i < 200 ORDER BY 1, 2",
    )
    elements = [listed(some(70, seed)) for seed in (1, 2)]
    same(
        both,
        f"SELECT a.i, b.i FROM k a, k b WHERE a.n IN ({elements[0]}) AND b.n IN ({elements[1]})"
        " AND a.i % 100 = 7 ORDER BY 1, 2",
    )
    for connection in both:
        connection.execute(f"PREPARE p AS SELECT i, n FROM k WHERE n IN ({elements[0]}) ORDER BY i")
    for i in range(20):
        for connection in both:
            connection.execute(f"INSERT INTO k VALUES ({60000 + i}, {some(70)[i]}, 'x', 1)")
            connection.execute(f"UPDATE k SET n = n + 1 WHERE n IN ({listed(some(5, i))})")
            connection.execute(f"DELETE FROM k WHERE n IN ({some(70)[i + 20]}, {i})")
        rows = [connection.execute("EXECUTE p").fetchall() for connection in both]
        assert rows[0] == rows[1]
    for connection in both:
        connection.execute("SET enable_bitmapscan = off; BEGIN")
        connection.execute(
            f"DECLARE c SCROLL CURSOR FOR SELECT i, n FROM k WHERE n IN ({elements[0]}) ORDER BY n"
        )
    for move in ("FORWARD 20", "BACKWARD 15", "FORWARD 40", "BACKWARD ALL", "FORWARD ALL"):
        rows = [{row[1] for row in c.execute(f"FETCH {move} FROM c")} for c in both]
        assert rows[0] == rows[1]
    for connection in both:
        connection.execute("ROLLBACK")


def test_arrays_marked(both):
    """A merge join returns to the first of several equal rows, from which the scan has gone on to
    the next element. Bug: it goes on as if it were still there, and leaves out rows."""
    elements = listed(some(70))
    for connection in both:
        for node in "hashjoin nestloop bitmapscan material sort incremental_sort".split():
            connection.execute(f"SET enable_{node} = off")
    query = (
        "SELECT a.i, b.i FROM k a JOIN k b ON a.n = b.n"
        f" WHERE a.n IN ({elements}) AND b.n IN ({elements})"
    )
    plan = "\n".join(row for (row,) in both[0].execute(f"EXPLAIN (COSTS off) {query}"))
    inner = r"Merge Join\n.*Index Scan.*Index Scan using k_n[^\n]*\n +Index Cond: [^\n]*ANY"
    assert re.search(inner, plan, re.DOTALL), plan
    assert len(same(both, f"{query} ORDER BY 1, 2")) > 200


@pytest.fixture
def taken(both, answered):
    """Round Trips that a prepared query takes."""
    app, _ = both
    app.execute("ANALYZE k")
    app.execute("SET plan_cache_mode = force_generic_plan")

    def count(query):
        app.execute(f"PREPARE q AS {query}")
        app.execute("EXECUTE q").fetchall()
        idle = answered()
        idle = answered() - idle
        before = answered()
        app.execute("EXECUTE q").fetchall()
        app.execute("DEALLOCATE q")
        return answered() - before - idle

    return count


def test_exchanges_of_arrays(both, taken):
    """The elements are ranked in one round trip, and ask together: once for a page that they have
    in common; one by one it was a comparison for each step of the sort and of each descent."""
    app, _ = both
    query = f"SELECT count(*) FROM k WHERE n IN ({listed(some(100))})"
    app.execute("SET enable_indexscan = off; SET enable_indexonlyscan = off")
    # The ranks, four questions about the root, and a leaf (or two) of each element.
    assert taken(query) <= 115
    app.execute("SET enable_indexscan = on; SET enable_bitmapscan = off")
    assert taken(query) <= 120
    # Near to each other they have their leaves in common.
    near = f"SELECT count(*) FROM k WHERE n IN ({listed(range(500, 600))})"
    assert taken(near) <= 25
    app.execute("SET confide.enable_index_search = off")
    assert taken(query) > 1000


def test_pages_of_arrays(both):
    """Pages on the way to the elements are read when the elements ask together, and by PostgreSQL.
    Bug: the scan reads them once more to find the answers."""
    query = f"SELECT count(i) FROM k WHERE n IN ({listed(range(0, 9000, 30))})"
    hits = []
    for connection in both:
        connection.execute("VACUUM ANALYZE k")
        connection.execute("SET enable_indexonlyscan = off; SET enable_indexscan = off")
        connection.execute(query)
        explain = f"EXPLAIN (ANALYZE, BUFFERS, TIMING off, FORMAT json) {query}"
        (plan,) = connection.execute(explain).fetchone()
        scan = plan[0]["Plan"]
        while scan["Node Type"] != "Bitmap Index Scan":
            (scan,) = scan["Plans"]
        hits.append(scan["Shared Hit Blocks"])
    ours, twin = hits
    # 300 descents of two pages each, and each page of the index at most once for the questions.
    assert twin >= 600
    assert ours - twin < 200


def test_arrays_tell_no_more_than_wanted(both, taken):
    """A scan that ends early has asked about twice the elements at most that it came to."""
    app, _ = both
    app.execute("SET enable_bitmapscan = off; SET enable_indexonlyscan = off")
    query = f"SELECT i FROM k WHERE n IN ({listed(range(100, 9000, 100))}) ORDER BY n LIMIT 1"
    # The ranks, a descent, the result.
    assert taken(query) <= 6


def test_planning_of_arrays(both, answered):
    """The planner asks about a column's common values once for all elements."""
    app, _ = both
    app.execute("UPDATE k SET n = 77 WHERE n < 77")
    app.execute("UPDATE k SET n = 5000 WHERE n BETWEEN 4900 AND 5100")
    app.execute("ANALYZE k")
    query = f"SELECT i FROM k WHERE n IN ({listed(some(50))}) LIMIT 0"
    app.execute(query)
    idle = answered()
    idle = answered() - idle
    before = answered()
    app.execute(query)
    assert answered() - before - idle <= 3


def test_same_pages_again(both, answered):
    """A descent that comes where the one before came asks once, not once a level."""
    app, _ = both

    def taken(statements):
        idle = answered()
        idle = answered() - idle
        before = answered()
        for statement in statements:
            app.execute(statement)
        return answered() - before - idle

    lookups = [f"SELECT i FROM k WHERE n = {4711 + i}" for i in range(10)]
    taken(lookups[:2])
    assert taken(lookups) <= 13
    # One promotion, and one search in each of three indexes; pages that split take more.
    rows = [f"INSERT INTO k VALUES (0, {4711 + i}, 't04711', 9000.5)" for i in range(20)]
    taken(rows[:2])
    assert taken(rows[2:]) <= 18 * 5
    # What is far is looked up as ever.
    far = [f"SELECT i FROM k WHERE n = {i * 977 % 9999}" for i in range(20)]
    assert taken(far) <= 20 * 3


def test_pages_change_meanwhile(app, stack, schema, dba):
    """Insertions, updates and lookups near by and far, by several backends, while pages split
    and, after rows were deleted, are given up: the index stays in order, and nothing is lost."""
    app.execute("CREATE TABLE c (w enc_int4, n enc_int4, who int, k enc_int4)")
    app.execute("CREATE UNIQUE INDEX c_key ON c (w, n)")
    app.execute("CREATE INDEX c_k ON c (k)")
    failures = []

    def work(who):
        try:
            with stack.connect_app() as own:
                own.execute(f'SET search_path = "{schema}"')
                own.execute("SET enable_seqscan = off")
                for i in range(500):
                    n = (i // 20 * 7919 % 1009) * 1000 + i % 20 * 10 + who
                    own.execute("INSERT INTO c VALUES (1, %s, %s, %s)", [n, who, n % 97])
                    if i % 5 == 0:
                        found = own.execute("SELECT who FROM c WHERE w = 1 AND n = %s", [n])
                        assert found.fetchall() == [(who,)]
                        own.execute("UPDATE c SET k = k + 1 WHERE w = 1 AND n = %s", [n])
                    if i % 100 == 99:
                        own.execute("DELETE FROM c WHERE who = %s AND k < 60", [who])
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=[who]) for who in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        dba.execute("VACUUM (INDEX_CLEANUP ON) c")
        threads[0].join(0.05)
    assert not failures, failures
    rows = app.execute("SELECT w, n, who FROM c ORDER BY ctid").fetchall()
    app.execute("SET enable_seqscan = off")
    assert app.execute("SELECT w, n, who FROM c ORDER BY w, n").fetchall() == sorted(rows)
    dba.execute("CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA public")
    for index in ("c_key", "c_k"):
        dba.execute("SELECT public.bt_index_parent_check(%s, true)", [index])


def test_insert(both, answered, dba):
    """Insertions find their place; unique and foreign keys hold."""
    for connection in both:
        connection.execute("DELETE FROM k a USING k b WHERE a.n = b.n AND a.i > b.i")
        connection.execute("CREATE UNIQUE INDEX k_u ON k (n)")
        for i in range(200):
            connection.execute(
                f"INSERT INTO k VALUES ({100000 + i}, {20000 + i * 7919 % 997}, 'x', 1)"
            )
        for statement in (
            "INSERT INTO k VALUES (1, 20001)",
            "UPDATE k SET n = 20001 WHERE i = 100000",
        ):
            with pytest.raises(psycopg.errors.UniqueViolation):
                connection.execute(statement)
                connection.execute(statement)
        connection.execute("INSERT INTO k VALUES (1, 20002), (2, 30000) ON CONFLICT DO NOTHING")
    same(both, "SELECT i FROM k WHERE n >= 19000 ORDER BY n")
    dba.execute("CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA public")
    for index in ("k_n", "k_t", "k_m", "k_u"):
        dba.execute("SELECT public.bt_index_check(%s, true)", [index])


def test_empty_index(app, second, dba):
    """An empty index has no page to search. What the scan before has read, of another index, is
    not asked about: neither if it was swept since, nor if it is of another type."""
    app.execute("CREATE TABLE filled (v enc_int4); CREATE INDEX ON filled (v)")
    app.execute("CREATE TABLE words (v enc_text); CREATE INDEX ON words (v)")
    app.execute("CREATE TABLE empty (v enc_int4); CREATE INDEX ON empty (v)")
    app.execute("INSERT INTO filled VALUES (1), (2), (3)")
    app.execute("INSERT INTO words VALUES ('a'), ('b')")
    app.execute("SET enable_seqscan = off")
    numbers = "SELECT v FROM {} WHERE v BETWEEN 1 AND 3"
    assert len(app.execute("SELECT v FROM words WHERE v BETWEEN 'a' AND 'b'").fetchall()) == 2
    assert app.execute(numbers.format("empty")).fetchall() == []
    assert len(app.execute(numbers.format("filled")).fetchall()) == 3
    second.execute("DELETE FROM filled")
    dba.execute("VACUUM filled")
    collect(dba, "filled")
    assert slots(dba, "filled") == 0
    assert app.execute(numbers.format("empty")).fetchall() == []


SEVERAL = """
CREATE TABLE s (w enc_int4, d enc_int4, p int, t enc_text, i int);
CREATE UNIQUE INDEX s_key ON s (w, d, p DESC, t DESC);
CREATE INDEX s_mixed ON s (p, d DESC NULLS LAST, t);
"""
SEVERAL_CONDITIONS = [
    "w = 1 AND d = 7 AND p = 11 AND t = 't3'",
    "w = 1 AND d = 7 AND p = 11",
    "w = 1 AND d = 7 AND p BETWEEN 5 AND 20 AND t > 't4'",
    "w = 1 AND d > 7",
    "w = 1 AND d BETWEEN 3 AND 4",
    "w = 1 AND d <= 2 AND p = 3",
    "w = 2 AND d = 5",
    "w < 1",
    "w = 1 AND d IS NULL",
    "p = 3 AND d < 4",
    "p = 3 AND d >= 4 AND t = 't1'",
    "p = 3 AND d = 4 AND t BETWEEN 't1' AND 't2'",
    "p = 3 AND d IS NOT NULL AND t = 't1'",
    "p < 2 AND d = 5",
]


@pytest.fixture
def several(app, plain_twin):
    """A table with indexes of several columns, protected and not, and its plain twin."""
    for connection, ddl in ((app, SEVERAL), (plain_twin, plain(SEVERAL))):
        connection.execute(ddl)
        with connection.cursor().copy("COPY s FROM STDIN") as copy:
            for i in range(12000):
                d, p, t = i % 11 or None, i // 11 % 60, f"t{i // 660 % 20}"
                copy.write_row([1, d, p, t if i % 90 else None, i])
        connection.execute("SET enable_seqscan = off")
        connection.execute("SET enable_bitmapscan = off")
    return app, plain_twin


def test_several_columns(several, dba):
    """All columns of an index's keys are placed, whatever their order and protection; rows
    come out as plaintext's, and insertions leave the index in order."""
    for condition in SEVERAL_CONDITIONS:
        same(several, f"SELECT i FROM s WHERE {condition} ORDER BY i")
        for order in ("w, d, p DESC, t DESC", "w DESC, d DESC, p, t", "p, d DESC NULLS LAST, t"):
            same(several, f"SELECT i FROM s WHERE {condition} ORDER BY {order}, i LIMIT 40")
    for connection in several:
        for i in range(150):
            connection.execute(
                "INSERT INTO s VALUES (1, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
                [i * 7 % 12 or None, i * 13 % 61, f"t{i % 23}", 20000 + i],
            )
    same(several, "SELECT i FROM s WHERE w = 1 AND d = 7 ORDER BY w, d, p DESC, t DESC, i")
    dba.execute("CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA public")
    for index in ("s_key", "s_mixed"):
        dba.execute("SELECT public.bt_index_check(%s, true)", [index])


def test_several_columns_at_once(several, answered):
    """A page costs a question for all protected columns of its keys; one by one a lookup
    took more than twenty comparisons."""
    app, _ = several
    app.execute("ANALYZE s")
    query = "SELECT i FROM s WHERE w = 1 AND d = 7 AND p = 11 AND t = 't3'"
    app.execute("SET plan_cache_mode = force_generic_plan")
    app.execute(f"PREPARE q AS {query}")
    app.execute("EXECUTE q").fetchall()
    idle = answered()
    idle = answered() - idle
    before = answered()
    app.execute("EXECUTE q").fetchall()
    assert answered() - before - idle <= 6
    before = answered()
    app.execute("INSERT INTO s VALUES (1, 7, 100, 't1', 1)")
    assert answered() - before - idle <= 14


def test_planning(both, answered):
    """Tests of all common values and bounds that the planner knows take one round trip."""
    app, _ = both
    app.execute("ANALYZE k")
    for condition in ("n < 700", "n = 700", "700 >= n", "n <> 12", "m > 3"):
        app.execute(f"EXPLAIN SELECT i FROM k WHERE {condition}")
        idle = answered()
        idle = answered() - idle
        before = answered()
        app.execute(f"EXPLAIN SELECT i FROM k WHERE {condition}")
        assert answered() - before - idle <= 3, condition
