"""Hash joins and hash aggregations by protected keys, which PostgreSQL makes by the keys' tokens,
give what they give over plain values; and the keeper is asked by the batch.

Bugs: equal values of two types, scales or paddings get two tokens, or different ones get one, and
rows are lost or found; NULL meets NULL in a join, or does not in a group; a token of one batch,
rescan or execution is compared with one of another; rows are lost where a batch ends; more is
asked about than the query wants.
"""

import itertools
import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from results import plain, run

NODE = "ConfideTokens"
DDL = """
CREATE TABLE l (id int, p int, i enc_int4, m enc_int8, n enc_numeric, q enc_numeric(9,2),
    f enc_float8, g enc_float4, t enc_text, w enc_varchar(20), b enc_bpchar(6), d enc_date,
    v enc_interval, o enc_bool, u enc_uuid, y enc_bytea, s enc_timestamp);
CREATE TABLE r (LIKE l);
CREATE TABLE e (LIKE l);
CREATE TABLE big (id int, k enc_int8, t enc_text)
"""
VALUES = [
    lambda rng: rng.randrange(4),
    lambda rng: rng.choice(["-7", "0", "1", "2", "2147483647"]),
    lambda rng: rng.choice(["-7", "0", "1", "3", "2147483647", "9223372036854775807"]),
    lambda rng: rng.choice(["1.0", "1.00", "0.000", "-0", "NaN", "1e30", "1.5", "-Infinity"]),
    lambda rng: rng.choice(["1", "1.5", "0", "-7.25", "9999999.99"]),
    lambda rng: rng.choice(["0", "-0", "NaN", "0.5", "1e300", "Infinity"]),
    lambda rng: rng.choice(["0", "-0", "NaN", "0.5", "2", "Infinity"]),
    lambda rng: rng.choice(["", "a", "a ", "abcdefg", "abcdefgh", "ä", "x" * 300]),
    lambda rng: rng.choice(["", "a", "a ", "abcdefg", "abcdefgh", "ä"]),
    lambda rng: rng.choice(["a", "a  ", "ab", "", "abcdef"]),
    lambda rng: rng.choice(["2020-01-01", "infinity", "1999-12-31"]),
    lambda rng: rng.choice(["1 mon", "30 days", "720:00", "1 day"]),
    lambda rng: rng.choice(["t", "f"]),
    lambda rng: f"00000000-0000-0000-0000-00000000000{rng.randrange(3)}",
    lambda rng: rng.choice(["\\x", "\\x00", "\\x0001"]),
    lambda rng: rng.choice(["2020-01-01", "2020-01-01 00:00:01", "-infinity"]),
]
# Equalities that PostgreSQL hashes.
KEYS = [
    *[f"l.{c} = r.{c}" for c in "i m n q f g t w b d v o u y s".split()],
    *["l.i = r.m", "l.m = r.i", "l.n = r.q", "l.f = r.g", "l.t = r.w", "l.w = r.t"],
    *["l.i - 1 = r.m", "l.t = r.w || ''", "l.i::enc_numeric = r.n", "abs(l.i) = abs(r.i)"],
]
JOINS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
EXISTS = ["EXISTS", "NOT EXISTS"]
HASHED = "SET enable_mergejoin = off; SET enable_nestloop = off; SET enable_sort = off"
SMALL = "SET work_mem = '64kB'; SET hash_mem_multiplier = 1"
ROWS = 160
BIG = 4000


def rows(seed, count):
    rng = random.Random(seed)
    return [
        (n, *(None if rng.random() < 0.1 else value(rng) for value in VALUES)) for n in range(count)
    ]


def fill(connection):
    for table, data in (("l", rows(1, ROWS)), ("r", rows(2, ROWS // 2)), ("big", big())):
        with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
            for row in data:
                copy.write_row(row)
    connection.execute("ANALYZE l, r, e, big")


def big():
    return [(n, n * 7919 % BIG, f"a text that takes room {n % (BIG // 2)}") for n in range(BIG)]


@pytest.fixture(scope="module")
def sides(stack):
    """Plaintext, and protected."""
    connections = []
    for name, ddl in (("tok_plain", plain(DDL)), ("tok_enc", DDL)):
        connection = stack.connect_app()
        connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
        connection.execute(f"CREATE SCHEMA {name}")
        connection.execute(f"SET search_path = {name}")
        connection.execute(ddl)
        fill(connection)
        connection.execute("SET statement_timeout = '60s'")
        connections.append(connection)
    yield connections
    for connection in connections:
        connection.execute("ROLLBACK")
        connection.execute(
            f"DROP SCHEMA {connection.execute('SHOW search_path').fetchone()[0]} CASCADE"
        )
        connection.close()


@pytest.fixture
def both(sides):
    for side in sides:
        side.execute("RESET ALL")
    for name, side in zip(("tok_plain", "tok_enc"), sides, strict=True):
        side.execute(f"SET search_path = {name}; SET statement_timeout = '60s'; {HASHED}")
    return sides


def agree(both, sql, node=True):
    protected = plain(sql)
    expected, got = run(both[0], protected), run(both[1], sql)
    for outcome in (expected, got):
        outcome.rows.sort(key=lambda row: [(value is None, value or "") for value in row])
    assert expected.sqlstate is None, (sql, expected.message)
    assert got.same(expected), (sql, got.message, len(got.rows), len(expected.rows))
    shown = "\n".join(row[0] for row in run(both[1], f"EXPLAIN {sql}").rows)
    assert (NODE in shown) == node, (sql, shown)
    return expected


@pytest.mark.parametrize("join", JOINS)
def test_joins(both, join):
    found = 0
    for key in KEYS:
        found += len(agree(both, f"SELECT l.id, r.id FROM l {join} r ON {key}").rows)
    assert found > 1000
    for one, two in itertools.pairwise(KEYS[:12]):
        agree(both, f"SELECT l.id, r.id FROM l {join} r ON {one} AND {two}")
    agree(both, f"SELECT l.id, r.id, l.p FROM l {join} r ON l.p = r.p AND l.i = r.i AND l.t = r.t")


@pytest.mark.parametrize("exists", EXISTS)
def test_semi_and_anti_joins(both, exists):
    for key in KEYS:
        agree(both, f"SELECT l.id FROM l WHERE {exists} (SELECT FROM r WHERE {key})")
    agree(both, f"SELECT l.id FROM l WHERE {exists} (SELECT FROM r WHERE l.i = r.m AND l.b = r.b)")


@pytest.mark.parametrize("join", JOINS)
def test_empty_sides(both, join):
    for one, two in (("l", "e"), ("e", "l"), ("e", "e")):
        agree(both, f"SELECT a.id, b.id FROM {one} a {join} {two} b ON a.i = b.m")


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize("size", ["1", "7", "4096"])
def test_spilled(both, join, size):
    """The hash table in several batches on disk; tokens are in the rows that are written."""
    for side in both:
        side.execute(SMALL)
    both[1].execute(f"SET confide.batch_rows = {size}")
    sql = "SELECT a.id, b.id, a.t, b.k FROM big a {} big b ON a.k = b.k + {} AND b.id % 5 <> 0"
    agree(both, sql.format(join, 0))
    agree(both, sql.replace("a.k = b.k + {}", "a.t = b.t AND a.k = b.k").format(join))
    spilled = "\n".join(
        row[0] for row in run(both[1], f"EXPLAIN ANALYZE {sql.format(join, 0)}").rows
    )
    assert "Batches: 1 " not in spilled, spilled


GROUPS = [
    *[
        "SELECT DISTINCT i, m FROM l",
        "SELECT DISTINCT p, t, b FROM l",
        "SELECT DISTINCT v + v FROM l",
    ],
    *["SELECT i FROM l UNION SELECT i FROM r", "SELECT n + 0.000 FROM l UNION SELECT q FROM r"],
    "SELECT t, array_length(array_agg(id), 1) FROM l GROUP BY t",
    "SELECT i, string_agg('x', '') FROM l GROUP BY i HAVING count(*) > 1",
    "SELECT p, b = 'a', bool_and(id > 0) FROM l GROUP BY p, b, i",
    "SELECT count(*) FROM (SELECT DISTINCT t, w FROM l) x",
    "SELECT DISTINCT id, t FROM big",
]


@pytest.mark.parametrize("memory", ["", SMALL])
def test_groups(both, memory):
    for side in both:
        side.execute(memory)
        side.execute("SET enable_sort = off")
    both[1].execute("SET confide.enable_batch_aggregate = off")
    for sql in GROUPS:
        agree(both, sql)


def test_again(both):
    """Rescans: of the outer side with the table kept, of both, and of one with a parameter."""
    for side in both:
        side.execute(
            "SET enable_nestloop = on; SET enable_material = off; SET enable_memoize = off"
        )
    inner = "SELECT count(*) AS c FROM l JOIN r ON l.i = r.m WHERE {} OFFSET 0"
    for condition in ("l.p >= x.p", "r.p >= x.p", "l.p + r.p > x.p", "l.id > x.id AND r.id < x.id"):
        agree(both, f"SELECT x.id, y.c FROM r x, LATERAL ({inner.format(condition)}) y")
    both[1].execute("SET confide.enable_batch_aggregate = off")
    agree(
        both,
        "SELECT x.id, y.c FROM r x, LATERAL (SELECT count(*) AS c FROM"
        " (SELECT DISTINCT i FROM l WHERE l.p > x.p) z) y",
    )


def test_prepared(both):
    """A generic plan is executed again and again; its tokens are new each time."""
    app = both[1]
    app.execute("SET plan_cache_mode = force_generic_plan")
    app.execute("PREPARE j AS SELECT count(*) FROM l JOIN r ON l.i = r.m WHERE l.id > $1")
    counts = [app.execute(f"EXECUTE j ({n})").fetchone()[0] for n in (-1, -1, 80, -1)]
    assert counts[0] == counts[1] == counts[3] > counts[2] > 0
    assert NODE in str(run(app, "EXPLAIN EXECUTE j (1)").rows)
    app.execute("DEALLOCATE j")


def test_statements_that_write(both):
    """Rows to be changed come from a join; what the join is checked by again is another one."""
    for side in both:
        side.execute("BEGIN")
    for sql in [
        "UPDATE l SET p = 9 FROM r WHERE l.t = r.t AND r.p = 1",
        "DELETE FROM l USING r WHERE l.i = r.m AND l.p = 2",
        "INSERT INTO e SELECT l.* FROM l JOIN r ON l.u = r.u AND l.d = r.d",
        "MERGE INTO r USING (SELECT DISTINCT i FROM l WHERE i > 0) x ON x.i = r.m"
        " WHEN MATCHED THEN UPDATE SET p = 10 WHEN NOT MATCHED THEN DO NOTHING",
    ]:
        for side in both:
            side.execute(plain(sql) if side is both[0] else sql)
    for table in ("l", "r", "e"):
        agree(both, f"SELECT id, p, count(*) FROM {table} GROUP BY 1, 2", node=False)
    for side in both:
        side.execute("ROLLBACK")


def test_parallel(both):
    """Each worker has tokens of its own; a table that they share is hashed as before."""
    for side in both:
        side.execute(
            "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;"
            "SET min_parallel_table_scan_size = 0; SET enable_parallel_hash = off"
        )
    sql = "SELECT a.id, b.id FROM big a JOIN big b ON a.k = b.k AND b.id < 2000"
    agree(both, sql)
    assert "Gather" in str(run(both[1], f"EXPLAIN {sql}").rows)
    for side in both:
        side.execute("SET enable_parallel_hash = on")
    agree(both, sql, node="Parallel Hash" not in str(run(both[1], f"EXPLAIN {sql}").rows))


def test_the_switch(both):
    both[1].execute("SET confide.enable_hash_tokens = off")
    agree(both, "SELECT l.id, r.id FROM l JOIN r ON l.i = r.m", node=False)


def test_errors_have_their_turn(both):
    """A key that fails in a row that nobody wants is not an error; in one that is wanted, it is."""
    sql = "SELECT a.id FROM big a JOIN big b ON 100 / (a.k - {}) = b.k {}"
    first = run(both[1], sql.format(big()[0][1], "")).sqlstate
    assert first == run(both[0], sql.format(big()[0][1], "")).sqlstate == "22012"
    late = sql.format(big()[BIG - 1][1], "LIMIT 1")
    assert run(both[1], late).sqlstate == run(both[0], late).sqlstate is None


@pytest.fixture
def told(both, stack):
    """How many tokens and exchanges a query takes."""
    with stack.connect_dba() as dba:
        dba.execute("GRANT pg_monitor TO app")
    app = both[1]

    def value(name):
        row = app.execute("SELECT value FROM confide.confide_stat_keeper WHERE name = %s", [name])
        return int((row.fetchone() or [0])[0])

    def counted(sql):
        names = ("channel.answered_total", "session.declassified_rows_total")
        before = [value(name) for name in names]
        app.execute(sql).fetchall()
        after = [value(name) for name in names]
        return tuple(b - a for a, b in zip(before, after, strict=True))

    yield counted
    with stack.connect_dba() as dba:
        dba.execute("REVOKE pg_monitor FROM app")


def test_exchanges(both, told):
    """Row at a time a join is one exchange for each hash and match."""
    join = "SELECT count(*) FROM big a JOIN big b ON a.k = b.k"
    exchanges, rows = told(join)
    assert exchanges < 60, exchanges
    assert rows == 2 * BIG
    both[1].execute("SET confide.enable_batch_aggregate = off")
    exchanges, rows = told("SELECT count(*) FROM (SELECT DISTINCT t, k FROM big) x")
    assert exchanges < 40, exchanges
    assert rows == BIG
    both[1].execute("SET confide.enable_hash_tokens = off")
    assert told(join)[0] > 2 * BIG


def test_no_more_than_wanted(both, told):
    """Of the outer rows no more than twice those that the query looks at; none but the first where
    there is nothing to join them with."""
    inner = "(SELECT k FROM big WHERE id < 50 OFFSET 0) b"
    for limit, most in ((1, 1), (3, 7), (20, 63)):
        sql = f"SELECT a.id FROM big a LEFT JOIN {inner} ON a.k = b.k LIMIT {limit}"
        assert told(sql)[1] <= 50 + most
    assert told("SELECT a.id FROM big a JOIN e b ON a.k = b.m")[1] <= 1


def test_reads_ahead_only_what_has_no_effects(both):
    sql = (
        "SELECT a.id, c FROM (SELECT *, nextval('counted') AS c FROM big OFFSET 0) a"
        " LEFT JOIN r ON a.k = r.m AND r.id < 0 LIMIT 5"
    )
    for side in both:
        side.execute("CREATE SEQUENCE counted")
        side.execute(sql)
    counted = [side.execute("SELECT last_value FROM counted").fetchone()[0] for side in both]
    assert counted == [5, 5]
    assert NODE not in str(run(both[1], f"EXPLAIN {sql}").rows)
    for side in both:
        side.execute("DROP SEQUENCE counted")


def test_rows_that_changed_meanwhile(both, stack):
    """The join is checked again for a row that another session has changed."""
    with stack.connect_app() as other:
        other.execute("SET search_path = tok_enc; BEGIN")
        other.execute("UPDATE big SET t = 'changed' WHERE id = 7")
        other.execute("UPDATE big SET id = -8 WHERE id = 8")
        both[1].execute("BEGIN")
        with ThreadPoolExecutor(1) as pool:
            update = pool.submit(
                both[1].execute,
                "UPDATE big a SET id = a.id + 100000 FROM big b"
                " WHERE a.t = b.t AND b.id = a.id AND a.id BETWEEN 5 AND 9 AND a.k = b.k",
            )
            time.sleep(0.5)
            assert not update.done()
            other.execute("COMMIT")
            update.result(timeout=20)
        found = both[1].execute("SELECT id FROM big WHERE id > 100000 ORDER BY 1").fetchall()
        assert found == [(100005,), (100006,), (100009,)]
        both[1].execute("ROLLBACK")
        other.execute("UPDATE big SET id = 8 WHERE id = -8")
        text = f"a text that takes room {7 % (BIG // 2)}"
        other.execute(f"UPDATE big SET t = '{text}' WHERE id = 7")


def test_without_a_client(both, stack):
    """The superuser hashes nothing."""
    with stack.connect_dba() as dba:
        dba.execute(f"SET search_path = tok_enc; {HASHED}")
        for sql in ("SELECT count(*) FROM l JOIN r ON l.i = r.m", GROUPS[0]):
            assert run(dba, sql).sqlstate == "42501"
