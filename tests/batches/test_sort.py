"""Sorts whose keys are ranked in one round trip: the order must be plaintext's in any plan, and
only values that could be compared one by one may be ranked.

The counter `session.ranked_rows_total` says whether there was a ranking: otherwise a test would
also pass with comparisons row by row.
"""

import re

import psycopg
import pytest
from results import plain, run
from waiting import limited

ROWS = 3000

DDL = """
CREATE TABLE s (i int PRIMARY KEY, n enc_int4, b enc_int8, f enc_float8, m enc_numeric(10, 2),
                g enc_numeric, t enc_text, c enc_bpchar(12), d enc_date, z enc_timestamptz,
                v enc_interval, u enc_uuid, y enc_bytea);
"""

COLUMNS = "n b f m g t c d z v u y".split()


def row(i):
    k = i * 7919 % 1009
    special = {0: "NaN", 1: "-Infinity", 2: "Infinity"}
    values = {
        "n": k - 500,
        "b": (k - 500) * 10**15,
        "f": special.get(k, (k - 500) / 7 if k != 500 else "-0"),
        "m": f"{k - 500}.{k % 100:02}",
        "g": "NaN" if k == 3 else f"{k}e{k % 40 - 20}",
        "t": ""
        if k == 4
        else f"shared prefix {k % 97}é{k}"
        if k % 2
        else chr(65 + k % 60) * (k % 9),
        "c": f"c{k % 50}" + " " * (k % 3),
        "d": "infinity" if k == 5 else f"{1900 + k % 200}-{1 + k % 12:02}-{1 + k % 28:02}",
        "z": f"{1990 + k % 50}-03-{1 + k % 28:02} 0{k % 10}:00+0{k % 3}",
        "v": f"{k % 13} mons {k % 31} days {k} secs" if k % 2 else f"{k % 400} days",
        "u": f"00000000-0000-{k:04}-0000-{k * k % 10**12:012}",
        "y": f"\\x{k % 256:02x}{k % 7:02x}",
    }
    hidden = i % 17
    return [i] + [None if hidden == at else v for at, v in enumerate(values.values())]


@pytest.fixture
def both(app, plain_twin):
    """The protected table, and its plain twin under the same name in another schema."""
    app.execute(DDL)
    plain_twin.execute(plain(DDL))
    for connection in (app, plain_twin):
        with connection.cursor().copy("COPY s FROM STDIN") as copy:
            for i in range(ROWS):
                copy.write_row(row(i))
    return app, plain_twin


def counter(connection, name="session.ranked_rows_total"):
    query = "SELECT value FROM confide.confide_stat_keeper WHERE name = %s"
    return int(connection.execute(query, [name]).fetchone()[0])


@pytest.fixture
def stats(dba):
    dba.execute("GRANT pg_monitor TO app")
    yield
    dba.execute("REVOKE pg_monitor FROM app")


def same(both, query):
    app, second = both
    expected = run(second, query)
    assert expected.rows
    assert run(app, query).same(expected), query


@pytest.mark.parametrize("column", COLUMNS)
def test_every_type(both, stats, column):
    """Each type in both directions, NULLs on either side, equal values in order of i."""
    before = counter(both[0])
    same(both, f"SELECT i, {column} FROM s ORDER BY {column}, i")
    same(both, f"SELECT i, {column} FROM s ORDER BY {column} DESC, i DESC")
    same(both, f"SELECT i FROM s ORDER BY {column} NULLS FIRST, i")
    same(both, f"SELECT i FROM s ORDER BY {column} DESC NULLS LAST, i")
    assert counter(both[0]) - before > 2 * ROWS


def test_create_index(both, stats, dba):
    """Built by the application, and again by the superuser, who has no client session; the
    index is in the order that row-at-a-time comparisons find."""
    app, _ = both
    dba.execute("CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA public")
    before = counter(app)
    for column in COLUMNS:
        app.execute(f"CREATE INDEX s_{column} ON s ({column})")
        dba.execute("SELECT public.bt_index_check(%s, true)", [f"s_{column}"])
    assert counter(app) - before >= len(COLUMNS) * ROWS * 0.9
    before = counter(dba)
    dba.execute("REINDEX TABLE s")
    assert counter(dba) - before >= len(COLUMNS) * ROWS * 0.9
    app.execute("CREATE UNIQUE INDEX s_ni ON s (n DESC, i)")
    dba.execute("SELECT public.bt_index_check('s_ni', true)")
    app.execute("SET enable_seqscan = off")
    for column in COLUMNS:
        same(both, f"SELECT count(*) FROM s WHERE {column} IS NOT NULL")


def test_index_orders(both, dba):
    """Builds hand rows on in the order of the first key, wherever NULLs are, and as they come
    when there are too many; the index must be right either way."""
    dba.execute("CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA public")
    app, _ = both
    for memory in ("64MB", "1MB"):
        for connection in (app, dba):
            connection.execute(f"SET maintenance_work_mem = '{memory}'")
        dba.execute("UPDATE s SET i = -i")
        for number, order in enumerate(
            ("n DESC", "n NULLS FIRST, t", "t DESC NULLS LAST, n", "n, i DESC")
        ):
            app.execute(f"CREATE INDEX s_{number} ON s ({order})")
            dba.execute("SELECT public.bt_index_check(%s, true)", [f"s_{number}"])
        dba.execute("REINDEX TABLE s")
        for number in range(4):
            dba.execute("SELECT public.bt_index_check(%s, true)", [f"s_{number}"])
            dba.execute(f"DROP INDEX s_{number}")


def test_unique_index(both):
    app, _ = both
    with pytest.raises(psycopg.errors.UniqueViolation):
        app.execute("CREATE UNIQUE INDEX ON s (n)")
    app.execute("DELETE FROM s a USING s b WHERE a.n = b.n AND a.i > b.i")
    app.execute("CREATE UNIQUE INDEX ON s (n)")


def test_no_client(both, dba):
    """The superuser may compare within a column that a client has an index on, not within
    others, nor between columns, also in bulk."""
    app, _ = both
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        dba.execute("SELECT i FROM s ORDER BY n, i")
    app.execute("CREATE INDEX ON s (n)")
    dba.execute("SELECT i FROM s ORDER BY n, i")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        dba.execute(
            "SELECT n, 1 FROM s UNION ALL SELECT n, 2 FROM (SELECT a.n FROM s a) x"
            " UNION ALL SELECT b::enc_int4, 3 FROM s ORDER BY 1, 2"
        )
    assert dba.execute("SELECT 1").fetchone() == (1,)


def test_off(both, stats):
    """Without the mechanism the order is the same, and nothing is ranked."""
    app, _ = both
    app.execute("SET confide.enable_bulk_sort = off")
    before = counter(app)
    same(both, "SELECT i, t FROM s WHERE i < 300 ORDER BY t, i")
    assert counter(app) == before


def test_spill(both, stats):
    """A sort in several runs."""
    app, _ = both
    for connection in both:
        connection.execute("SET work_mem = '64kB'")
    before = counter(app)
    same(both, "SELECT i, n, t, repeat('x', 50) FROM s ORDER BY t DESC, i")
    same(both, "SELECT i, n, t, repeat('x', 50) FROM s ORDER BY n, i")
    assert counter(app) - before >= 2 * ROWS


@pytest.mark.parametrize("memory", ["64kB", "64MB"])
def test_more_rows_than_are_ranked(both, memory):
    """A larger sort is left to PostgreSQL's, which compares; it is no error."""
    app, _ = both
    for connection in both:
        connection.execute(f"SET work_mem = '{memory}'")
    app.execute("SET confide.bulk_sort_rows = 100")
    same(both, "SELECT i, n, t FROM s WHERE i < 700 ORDER BY c, n DESC NULLS LAST, i")
    same(both, "SELECT i, d FROM s WHERE i < 700 ORDER BY i % 7 DESC, d NULLS FIRST, i")
    analyzed = app.execute(
        "EXPLAIN (ANALYZE, COSTS off) SELECT n FROM s WHERE i < 700 ORDER BY n"
    ).fetchall()
    assert any("Rows Kept: disk" in line for (line,) in analyzed)


def explain(connection, query):
    return "\n".join(r[0] for r in connection.execute("EXPLAIN (COSTS off) " + query))


def test_several_keys(both):
    """Protected and plain keys, in any order and direction."""
    same(both, "SELECT i, t, n FROM s ORDER BY c, n DESC NULLS LAST, i")
    same(both, "SELECT i FROM s ORDER BY i % 7 DESC, t NULLS FIRST, d DESC, i")
    same(both, "SELECT i FROM s ORDER BY nullif(i % 5, 3), c DESC, nullif(i, 7) DESC NULLS FIRST")
    same(both, "SELECT n FROM s ORDER BY n")
    same(both, "SELECT n, t FROM s ORDER BY 1 DESC, 2 DESC OFFSET 2990")


def test_who_sorts(both):
    """Plain keys that have no number, where few rows are wanted, and the setting, leave
    PostgreSQL's Sort."""
    app, _ = both
    assert "ConfideSort" in explain(app, "SELECT i FROM s ORDER BY n, i")
    query = "SELECT i FROM s ORDER BY n, i::text"
    assert "ConfideSort" in explain(app, query)
    assert "ConfideSort" not in explain(app, query + " LIMIT 3")
    assert "ConfideSort" not in explain(app, "DECLARE c CURSOR FOR " + query)
    same(both, query + " LIMIT 3")
    grouped = "SELECT count(*) FROM (SELECT 1 FROM s ORDER BY n, i::text OFFSET 0) x LIMIT 1"
    assert "ConfideSort" in explain(app, grouped)
    app.execute("SET confide.enable_bulk_sort = off")
    assert "ConfideSort" not in explain(app, "SELECT i FROM s ORDER BY n, i")


PLAIN_KEYS = [
    "nullif(i % 5, 3)::text DESC, n, i",
    "c, (i % 7)::numeric DESC NULLS LAST, t DESC, i::name",
    "nullif(i % 3, 2)::text NULLS FIRST, i % 4, b, array[i % 2, 1], i::text DESC",
]


@pytest.mark.parametrize("memory", ["64kB", "64MB"])
def test_plain_keys(both, stats, memory):
    """Plain keys that are no numbers take part by ranks that PostgreSQL finds: few round trips."""
    app, _ = both
    for connection in both:
        connection.execute(f"SET work_mem = '{memory}'")
    for keys in PLAIN_KEYS:
        query = f"SELECT i, t FROM s ORDER BY {keys}"
        assert "ConfideSort" in explain(app, query)
        before = counter(app, "channel.answered_total")
        same(both, query)
        assert counter(app, "channel.answered_total") - before < 20, keys
    again = "(SELECT i FROM s WHERE i < 40 * j ORDER BY (i % 3)::text, n, i OFFSET 25) x"
    same(both, f"SELECT j, x.i FROM generate_series(1, 3) j, LATERAL {again}")
    app.execute("SET confide.bulk_sort_rows = 100")
    same(both, f"SELECT i FROM s WHERE i < 500 ORDER BY {PLAIN_KEYS[0]}")


def test_sorted_in_part(both, stats):
    """Rows that come in the order of a plain key are ranked by all keys, unless few are wanted:
    PostgreSQL's incremental sort compares them one by one."""
    app, _ = both
    for connection in both:
        connection.execute("CREATE INDEX ON s ((i / 50)); ANALYZE s")
        connection.execute("SET enable_seqscan = off; SET enable_bitmapscan = off")
    query = "SELECT i FROM s ORDER BY i / 50, n DESC, t, i"
    app.execute("SET confide.enable_bulk_sort = off")
    assert "Incremental Sort" in explain(app, query)
    app.execute("RESET confide.enable_bulk_sort")
    assert "ConfideSort" in explain(app, query)
    assert "Incremental Sort" in explain(app, query + " LIMIT 9")
    assert "Incremental Sort" in explain(app, "DECLARE c CURSOR FOR " + query)
    before = counter(app, "channel.answered_total")
    same(both, query)
    assert counter(app, "channel.answered_total") - before < 20
    same(both, query + " LIMIT 9")


def test_top_n(both, stats):
    """Rows beyond the limit are dropped as they come; the keeper must be asked in batches
    (one round trip for 8192 rows), and again for other parameters."""
    app, _ = both
    app.execute(
        "INSERT INTO s (i, n) SELECT i, n FROM (SELECT i + 10000 * j AS i, n FROM s,"
        " generate_series(1, 9) j) x"
    )
    both[1].execute(
        "INSERT INTO s (i, n) SELECT i, n FROM (SELECT i + 10000 * j AS i, n FROM s,"
        " generate_series(1, 9) j) x"
    )
    before = counter(app, "channel.answered_total")
    same(both, "SELECT i FROM s ORDER BY n DESC NULLS LAST, i LIMIT 1")
    same(both, "SELECT i, n FROM s ORDER BY n, i LIMIT 10 OFFSET 5")
    same(both, "SELECT i FROM s ORDER BY n NULLS FIRST, i DESC LIMIT 100")
    assert counter(app, "channel.answered_total") - before < 100
    same(both, "SELECT i FROM s ORDER BY n, i LIMIT 20000")
    same(both, "SELECT count(*) FROM (SELECT i FROM s ORDER BY n LIMIT 0) x")
    same(
        both,
        "SELECT x.j, y.i FROM generate_series(0, 3) x(j),"
        " LATERAL (SELECT i FROM s WHERE i < 500 ORDER BY n, i LIMIT x.j) y",
    )
    for connection in both:
        connection.execute("PREPARE p(int) AS SELECT i FROM s ORDER BY n, i LIMIT $1")
    for n in (3, 1, 7000):
        same(both, f"EXECUTE p({n})")


def test_cursor(both):
    """Backwards, forwards, past both ends; in memory and on disk."""
    for memory in ("4MB", "64kB"):
        for connection in both:
            connection.execute(f"SET work_mem = '{memory}'")
            connection.execute("BEGIN")
            connection.execute("DECLARE c SCROLL CURSOR FOR SELECT i, t FROM s ORDER BY t DESC, i")
        for move in (
            "3",
            "BACKWARD 2",
            "BACKWARD 5",
            "ABSOLUTE 2990",
            "FORWARD 100",
            "BACKWARD 3",
            "RELATIVE -1",
            "LAST",
            "NEXT",
            "PRIOR",
            "FIRST",
        ):
            expected = run(both[1], f"FETCH {move} FROM c")
            assert run(both[0], f"FETCH {move} FROM c").same(expected), (memory, move)
        for connection in both:
            connection.execute("COMMIT")


def test_above(both):
    """What wants sorted rows: merge joins (mark and restore), groups, windows, DISTINCT,
    parameters from outside, workers."""
    for connection in both:
        for setting in ("enable_hashjoin", "enable_nestloop", "enable_hashagg"):
            connection.execute(f"SET {setting} = off")
    same(
        both,
        "SELECT a.i, b.i FROM s a JOIN s b ON a.n = b.n WHERE a.i < 900 AND b.i < 1200"
        " ORDER BY 1, 2",
    )
    same(both, "SELECT DISTINCT c FROM s WHERE i < 300 ORDER BY c")
    same(both, "SELECT c, count(*) FROM s WHERE i < 300 GROUP BY c ORDER BY c")
    same(
        both,
        "SELECT i, rank() OVER (PARTITION BY c ORDER BY n DESC) FROM s WHERE i < 300 ORDER BY i",
    )
    same(
        both,
        "SELECT j, (SELECT string_agg(i::text, ' ') FROM (SELECT i FROM s WHERE i < j"
        " ORDER BY n, i) x) FROM generate_series(5, 50, 9) j",
    )
    for connection in both:
        for setting in (
            "parallel_setup_cost",
            "parallel_tuple_cost",
            "min_parallel_table_scan_size",
        ):
            connection.execute(f"SET {setting} = 0")
    query = "SELECT i, t FROM s WHERE i % 2 = 0 ORDER BY t, i"
    plan = explain(both[0], query)
    assert "Gather" in plan
    assert "Gather Merge" not in plan
    same(both, query)


def test_keys_of_gathered_rows(both):
    """What workers give in order may have more columns than what is merged of it: keys that are
    computed again above. With a bug the sort takes another column for the key, or one that is not
    there (EXPLAIN died of it)."""
    for connection in both:
        for setting in (
            *("parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size"),
            *("enable_hashjoin", "enable_mergejoin", "enable_indexscan", "enable_bitmapscan"),
        ):
            connection.execute(f"SET {setting} = 0")
    for keys in ("2 DESC, 1 DESC, 3", "2, 3", "3 DESC, 2"):
        query = (
            "SELECT length(s.t), s.n + s.n, s.i FROM s WHERE s.i % 3 = 0 AND EXISTS"
            f" (SELECT FROM s b WHERE b.i > s.i AND b.n > 3) ORDER BY {keys} LIMIT 7"
        )
        same(both, query)
    plan = explain(both[0], query)
    assert re.search(
        r"Result\n +->  Custom Scan \(ConfideSort\)[^\n]*\n[^\n]*\n +->  Gather", plan
    ), plan


def test_errors(both, stack):
    """An error among the keys, a refusal for memory and a cancel leave the session usable."""
    app, _ = both
    with pytest.raises(psycopg.errors.DivisionByZero):
        app.execute("SELECT i FROM s ORDER BY 10 / (n - n), i")
    assert app.execute("SELECT count(*) FROM s").fetchone() == (ROWS,)
    with limited(app, "300ms"), pytest.raises(psycopg.errors.QueryCanceled):
        app.execute("SELECT a.i FROM s a, s b ORDER BY a.n, b.n")
    same(both, "SELECT i FROM s ORDER BY n, i")


def test_keeper_dies(both, stack):
    app, _ = both
    app.execute("BEGIN")
    app.execute("DECLARE c CURSOR FOR SELECT a.i FROM s a, s b ORDER BY a.n, b.n, 1")
    stack.kill_keeper()
    try:
        with pytest.raises(psycopg.Error) as caught:
            app.execute("FETCH c")
        assert caught.value.sqlstate[:2] in ("08", "57", "58")
    finally:
        stack.up()


def test_analyze(both, stats, dba):
    """Statistics are those of the plain twin where they tell of order and frequency, and
    cost few round trips."""
    app, plain_twin = both
    before = counter(app, "channel.answered_total")
    app.execute("ANALYZE s")
    assert counter(app, "channel.answered_total") - before < 20 * len(COLUMNS)
    plain_twin.execute("ANALYZE s")
    query = (
        "SELECT attname, null_frac, n_distinct, correlation, most_common_freqs::text"
        " FROM pg_stats WHERE schemaname = current_schema() AND tablename = 's' ORDER BY 1"
    )
    bulk = dba.execute(query).fetchall()
    app.execute("SET confide.enable_bulk_sort = off")
    app.execute("ANALYZE s")
    assert bulk == dba.execute(query).fetchall()
    plain_twin.execute("ANALYZE s")
    for ours, theirs in zip(bulk, plain_twin.execute(query).fetchall(), strict=True):
        assert ours[:3] == theirs[:3]


def test_parallel_build(both, dba):
    """Ranks of several processes do not compare: the build must not take workers, and the
    index must be right."""
    app, _ = both
    app.execute("ALTER TABLE s SET (parallel_workers = 2)")
    app.execute("CREATE INDEX s_p ON s (t)")
    dba.execute("CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA public")
    dba.execute("SELECT public.bt_index_check('s_p', true)")
    assert app.execute("SHOW max_parallel_maintenance_workers").fetchone() != ("0",)


def test_neighbours(both, stats):
    """Nodes above a sort by one key learn from it which neighbours are equal: a DISTINCT asks
    nothing (one by one it asked for each row). Sorts that take turns, or go back, are not
    taken for each other."""
    app, _ = both
    for connection in both:
        connection.execute("SET enable_hashagg = off")
        connection.execute("SET enable_hashjoin = off")
        connection.execute("SET enable_nestloop = off")
    query = "SELECT DISTINCT n FROM s WHERE i < 700 ORDER BY n"
    same(both, query)
    before = counter(app, "channel.answered_total")
    app.execute(query)
    assert counter(app, "channel.answered_total") - before < 20
    same(both, "SELECT n, count(*), min(i) FROM s WHERE i < 700 GROUP BY n ORDER BY n DESC")
    same(
        both,
        "SELECT * FROM (SELECT DISTINCT n FROM s WHERE i < 500 ORDER BY n) a"
        " JOIN (SELECT DISTINCT n FROM s WHERE i < 900 ORDER BY n) b ON a.n = b.n ORDER BY 1, 2",
    )
    for connection in both:
        connection.execute("SET enable_mergejoin = off")
        connection.execute("SET enable_nestloop = on")
    same(
        both,
        "SELECT a.n FROM (SELECT DISTINCT n FROM s WHERE i < 60 ORDER BY n) a,"
        " (SELECT DISTINCT n FROM s WHERE i < 70 ORDER BY n) b WHERE a.n = b.n ORDER BY 1",
    )
    same(
        both,
        "SELECT j, (SELECT count(*) FROM (SELECT DISTINCT n FROM s WHERE i < 40 * j) x)"
        " FROM generate_series(1, 4) j",
    )
    same(
        both,
        "SELECT i, rank() OVER (ORDER BY n), sum(i) OVER (PARTITION BY n) FROM s WHERE i < 400"
        " ORDER BY 2, 1",
    )
