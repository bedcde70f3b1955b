"""Index builds with several key columns, protected and plain: the order is that of plaintext,
including NULLs, and equal rows are ordered by their position; the keeper gets a few requests, not
one for each pair of rows.

Bug (in the information about neighbours): two values are compared in place of their rows, or in the
wrong direction; bt_index_check compares all neighbours one by one, and their positions.
"""

import random

import psycopg
import pytest
from results import plain, run

ROWS = 3000
# More round trips than any build here takes; comparisons one by one took thousands.
FEW = 40

DDL = """CREATE TABLE t (i int, a enc_int4, b enc_text, c enc_numeric, p int, q text COLLATE "C",
                         w numeric, n name, r int[], s enc_varchar(20))"""

KEYS = [
    "a, b",
    "a DESC, b NULLS FIRST, c DESC NULLS LAST",
    "p, a",
    "p DESC NULLS LAST, a DESC, p",
    "a, p DESC",
    "b NULLS FIRST, p, c",
    "q, a",
    "q DESC, b DESC, w, c",
    "a, q NULLS FIRST, b",
    "w DESC NULLS LAST, s",
    "n, c DESC",
    "r, a, n DESC",
    "a, a DESC, b, b",
    "q text_pattern_ops DESC, c",
    "(p % 2), a, (q || 'x') DESC, b",
    "b, c | INCLUDE (p, q, a)",
    "p, c | INCLUDE (n)",
    "c, p | WHERE p < 1",
    "a, b | WITH (fillfactor = 30)",
]


def rows():
    chance = random.Random(20)

    def one(i):
        def pick(count, make):
            k = chance.randrange(count + 1)
            return None if k == count else make(k)

        return [
            i,
            pick(6, lambda k: k - 3),
            pick(5, lambda k: "same beginning" * (k % 3) + str(k)),
            pick(7, lambda k: "NaN" if k == 3 else f"{k}.{'0' * k}"),
            pick(4, lambda k: k * 10**9 // 2 - 10**9),
            pick(5, lambda k: "abcÄ"[k % 4] * k),
            pick(5, lambda k: f"{k - 2}e{k * 9}"),
            pick(3, lambda k: f"name {k}"),
            pick(4, lambda k: "{" + ",".join(str(k * j) for j in range(k)) + "}"),
            pick(9, lambda k: f"v{k % 4}"),
        ]

    return [one(i) for i in range(ROWS)]


@pytest.fixture
def both(app, plain_twin, dba):
    """The protected table, and its plain twin under the same name in another schema. Numbers of
    rows grow with their places."""
    dba.execute("GRANT pg_monitor TO app")
    dba.execute("CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA public")
    for connection, ddl in ((app, DDL), (plain_twin, plain(DDL))):
        connection.execute(ddl)
        with connection.cursor().copy("COPY t FROM STDIN") as copy:
            for row in rows():
                copy.write_row(row)
        # COPY goes back to pages with room; a rewrite does not.
        connection.execute("CREATE INDEX place ON t (i); CLUSTER t USING place; DROP INDEX place")
        for setting in ("seqscan", "sort", "bitmapscan", "incremental_sort"):
            connection.execute(f"SET enable_{setting} = off")
    yield app, plain_twin
    dba.execute("REVOKE pg_monitor FROM app")


def answered(connection) -> int:
    query = "SELECT value FROM confide.confide_stat_keeper WHERE name = 'channel.answered_total'"
    return int(connection.execute(query).fetchone()[0])


def round_trips(connection, statement: str) -> int:
    before = answered(connection)
    connection.execute(statement)
    return answered(connection) - before


def in_order(both, keys: str) -> None:
    """The index's order, read by a scan of it, is that of the twin's."""
    app, second = both
    order, _, rest = keys.partition(" | ")
    where = rest if "WHERE" in rest else ""
    order = order.replace("text_pattern_ops DESC", "USING ~>~")
    query = f"SELECT i FROM t {where} ORDER BY {order}"
    found = app.execute(f"EXPLAIN (COSTS off) {query}").fetchall()
    assert "using made" in str(found), found
    expected = run(second, query)
    assert len(expected.rows) > ROWS / 4
    got = run(app, query)
    pairs = zip(got.rows, expected.rows, strict=True)
    assert next(((at, x, y) for at, (x, y) in enumerate(pairs) if x != y), None) is None, keys


def test_order_and_round_trips(both, dba):
    """By the application, and again by the superuser, who has no client session."""
    app, second = both
    for number, keys in enumerate(KEYS):
        order, _, rest = keys.partition(" | ")
        create = f"CREATE INDEX made ON t ({order}) {rest}"
        taken = round_trips(app, create)
        assert taken < FEW, (keys, taken)
        if number % 2:
            taken = round_trips(dba, "REINDEX INDEX made")
            assert taken < FEW, (keys, taken)
        second.execute(create)
        in_order(both, keys)
        dba.execute("SELECT public.bt_index_check('made', true)")
        for each in both:
            each.execute("DROP INDEX made")


def test_off(both, dba):
    """One by one the index is the same."""
    for connection in (both[0], dba):
        connection.execute("SET confide.enable_bulk_sort = off")
    both[0].execute("CREATE INDEX made ON t (p, a)")
    both[1].execute("CREATE INDEX made ON t (p, a)")
    in_order(both, "p, a")


def test_rebuilt(both, dba):
    """REINDEX, VACUUM FULL and CLUSTER build the same way, and CLUSTER does not sort; rows that are
    not in the order of their places, since some were updated, are put so."""
    app, _ = both
    app.execute("CREATE INDEX made ON t (b, p, a)")
    for connection in both:
        connection.execute("ALTER TABLE t SET (fillfactor = 50)")
    for statement in ("REINDEX INDEX made", "VACUUM FULL t", "CLUSTER t USING made", "ANALYZE t"):
        assert round_trips(dba, statement) < 2 * FEW, statement
        dba.execute("SELECT public.bt_index_check('made', true)")
    for _ in range(3):
        app.execute("UPDATE t SET w = i WHERE i % 3 = 0")
    dba.execute("VACUUM t")
    app.execute("UPDATE t SET w = i WHERE i % 7 = 0")
    assert round_trips(dba, "REINDEX INDEX made") < FEW
    dba.execute("SELECT public.bt_index_check('made', true)")
    assert round_trips(dba, "REINDEX INDEX CONCURRENTLY made") < FEW
    dba.execute("SELECT public.bt_index_check('made', true)")


def test_values_of_several_rows(both, dba):
    """An old version of a row that somebody may still see shares values with the new one: its rank
    is not taken for the other's."""
    app, second = both
    second.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    second.execute("SELECT count(*) FROM t")
    app.execute("UPDATE t SET a = 2 - a, p = 1 WHERE i % 2 = 0")
    for keys in ("a, b", "b, a", "p, b, c", "a, b, c DESC"):
        app.execute(f"CREATE INDEX made ON t ({keys})")
        dba.execute("SELECT public.bt_index_check('made', true)")
        app.execute("DROP INDEX made")
    second.execute("COMMIT")


def error(connection, statement: str):
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(statement)
    diag = caught.value.diag
    return diag.sqlstate, diag.message_primary, diag.constraint_name, diag.message_detail


def test_rows_on_disk(both, dba):
    """More than maintenance_work_mem, also of PostgreSQL's sort, which merges runs: it compares
    rows that are no neighbours."""
    app, second = both
    for connection in both:
        connection.execute("SET maintenance_work_mem = '1MB'")
        connection.execute("INSERT INTO t SELECT t.* FROM t, generate_series(1, 6)")
        connection.execute("CREATE INDEX place ON t (i); CLUSTER t USING place; DROP INDEX place")
    for keys in ("a, b", "b DESC, p, a NULLS FIRST", "q, a, n DESC, c", "p, a, b, c, i"):
        create = f"CREATE INDEX made ON t ({keys})"
        taken = round_trips(app, create)
        assert taken < FEW, (keys, taken)
        second.execute(create)
        in_order(both, keys)
        for each in both:
            each.execute("DROP INDEX made")
    assert error(app, "CREATE UNIQUE INDEX ON t (b, i)")[0] == "23505"
    app.execute("SET confide.bulk_sort_rows = 18000")
    app.execute("CREATE INDEX made ON t (c, i)")
    dba.execute("SELECT public.bt_index_check('made', true)")


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("", "a, i"),
        ("", "i, a"),
        ("", "b, i, q"),
        ("", "q, i, c"),
        ("NULLS NOT DISTINCT", "a, b, i"),
    ],
)
def test_unique(both, kind, keys):
    """Two equal rows are found wherever they are; rows with NULLs equal none unless asked for."""
    app, second = both
    create = "CREATE UNIQUE INDEX made ON t ({}) {}"
    assert round_trips(app, create.format(keys, kind)) < FEW
    app.execute("DROP INDEX made")
    for connection in both:
        connection.execute("INSERT INTO t SELECT * FROM t WHERE i = 1717")
        connection.execute("INSERT INTO t (i) VALUES (5000), (5000)")
        if not kind:
            connection.execute("UPDATE t SET a = 1, b = 'one', c = 1, q = 'q' WHERE i = 1717")
    found = error(app, create.format(keys, kind))
    expected = error(second, create.format(keys, kind))
    assert expected[0] == "23505"
    assert found[:3] == expected[:3]
    assert found[3].split("=")[0] == expected[3].split("=")[0]
    assert found[3].endswith("is duplicated.")
    app.execute("SET confide.enable_bulk_sort = off")
    assert error(app, create.format(keys, kind))[:3] == found[:3]
    app.execute("RESET confide.enable_bulk_sort")
    app.execute("DELETE FROM t WHERE i IN (1717, 5000)")
    app.execute(create.format(keys, kind))


def test_more_rows_than_are_ranked(both, dba):
    """A larger build compares, and is right."""
    app, _ = both
    app.execute("SET confide.bulk_sort_rows = 1000")
    for keys in ("a, b", "q, a, p"):
        app.execute(f"CREATE INDEX made ON t ({keys})")
        dba.execute("SELECT public.bt_index_check('made', true)")
        app.execute("DROP INDEX made")
