"""Garbage collection: an identifier that may still be used is never swept, and all others are
reclaimed."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from garbage import SECONDS, SEED, Worker, collect, slots, slowly, sound, vacuum, vacuumed, verify
from waiting import until, until_waits


def test_verify_finds_all_places(stack, app):
    """Bug: a place that verification does not look at could dangle unseen."""
    app.execute("CREATE TABLE t (id int, v enc_int4, s enc_text, w enc_int4)")
    app.execute("INSERT INTO t SELECT g, g, NULL, g % 3 FROM generate_series(1, 1000) g")
    app.execute("CREATE INDEX t_v ON t (v) INCLUDE (w)")
    app.execute("CREATE INDEX t_hash ON t USING hash (v)")
    app.execute("CREATE STATISTICS t_stat (mcv) ON v, w FROM t")
    app.execute("ALTER TABLE t ALTER v SET STATISTICS 10")
    app.execute("ALTER TABLE t ALTER w SET STATISTICS 10")
    app.execute("ANALYZE t")
    found = verify(app)
    assert found["table t"] == (2000, 0)
    fids, unresolved = found["index t_v"]
    assert unresolved == 0
    assert 2000 < fids < 2050  # with the keys above the leaves
    assert found["index t_hash"] == (0, 0)
    fids, unresolved = found["statistics t"]
    # Histogram of v (11), values of w (3), combinations.
    assert unresolved == 0
    assert fids > 14
    app.execute("DELETE FROM t WHERE id > 500")
    assert verify(app)["table t"] == (2000, 0), "dead rows are still there"
    app.execute("VACUUM t")
    assert verify(app)["table t"] == (1000, 0)


def test_verify_is_for_owners(dba, app):
    app.execute("CREATE TABLE t (id int, v enc_int4)")
    app.execute("CREATE TABLE plain (id int)")
    with pytest.raises(Exception, match="not a table of access method confide"):
        verify(app, "plain")
    with pytest.raises(Exception, match="must be owner"):
        verify(app, "pg_class")
    assert verify(dba) == {"table t": (0, 0), "statistics t": (0, 0)}


def test_storage_is_reclaimed(app, dba):
    """VACUUM frees what deleted and updated rows held, and the room is used again. Bug: the store
    grows with every cycle."""
    columns = "id int PRIMARY KEY, v enc_int4, s enc_text"
    # An ANALYZE of autovacuum's would leave statistics, which hold values.
    app.execute(f"CREATE TABLE t ({columns}) WITH (autovacuum_enabled = off)")
    app.execute("CREATE INDEX t_v ON t (v)")
    for cycle in range(4):
        app.execute("INSERT INTO t SELECT g, g, NULL FROM generate_series(1, 5000) g")
        app.execute("UPDATE t SET v = v + 1, s = 'text'")
        assert slots(dba) >= 15_000
        app.execute("DELETE FROM t WHERE id > 10")
        app.execute("VACUUM t")
        # Keys of the index outlive their rows.
        assert slots(dba) < 200, cycle
        sound(app)
        query = "SELECT count(*), sum(v), min(s) FROM t"
        assert app.execute(query).fetchone() == (10, 65, "text")
        app.execute("DELETE FROM t")
    app.execute("DROP INDEX t_v")
    vacuum(app)
    assert collect(app) < 200
    assert slots(dba) == 0


def test_little_garbage_is_left(app, dba):
    """VACUUM does not read the table again for a few values; the function does."""
    app.execute("CREATE TABLE t (id int, v enc_int4)")
    app.execute("INSERT INTO t SELECT g, g FROM generate_series(1, 100) g")
    app.execute("DELETE FROM t")
    vacuum(app)
    assert slots(dba) == 100
    assert collect(app) == 100
    assert slots(dba) == 0


def test_row_that_moves_while_it_is_looked_for(stack, app, dba, second):
    """A collection has read the first page and sleeps; a row of a later page is updated, which
    brings its identifier to the first page, and pruned from where it was. Without a snapshot that
    keeps the old version the collection sees the identifier nowhere and frees a living value."""
    app.execute("CREATE TABLE t (id int, filler text, v enc_int4) WITH (autovacuum_enabled = off)")
    app.execute("INSERT INTO t SELECT g, repeat('x', 700), g FROM generate_series(1, 400) g")
    app.execute("DELETE FROM t WHERE id <= 5")
    dba.execute("SET confide.gc = off")
    dba.execute("VACUUM t")  # the first page has room now
    assert app.execute("SELECT max((ctid::text::point)[0]) FROM t WHERE id < 20").fetchone()[0] <= 1
    old = app.execute("SELECT ctid::text FROM t WHERE id = 350").fetchone()[0]

    def run():
        with slowly(second, 1):
            second.execute("SET statement_timeout = 0")
            second.execute("VACUUM t")

    dba.execute("ALTER SYSTEM SET confide.gc_threshold = 0")
    dba.execute("SELECT pg_reload_conf()")
    shown = "SHOW confide.gc_threshold"
    until(lambda: second.execute(shown).fetchone() == ("0",), "the setting is read")
    thread = threading.Thread(target=run)
    thread.start()
    sql = "SELECT pages_done FROM confide.confide_stat_progress_gc WHERE phase = 'marking table'"
    until(lambda: dba.execute(f"{sql} AND pages_done >= 2").fetchone(), "two pages are marked")
    # To the page that has room, since its own is full.
    app.execute("UPDATE t SET filler = repeat('y', 700) WHERE id = 350")
    new = app.execute("SELECT ctid::text FROM t WHERE id = 350").fetchone()[0]
    assert new.startswith("(0,"), (old, new)
    for _ in range(3):
        app.execute("SELECT count(filler) FROM t WHERE id BETWEEN 330 AND 370").fetchone()  # prunes
    thread.join()
    dba.execute("ALTER SYSTEM RESET confide.gc_threshold")
    dba.execute("SELECT pg_reload_conf()")
    assert slots(dba) == 395
    sound(app)
    assert app.execute("SELECT v FROM t WHERE id = 350").fetchone() == (350,)


def test_no_living_value_is_swept(stack, app, dba, schema):
    """Collections, VACUUM and ANALYZE again and again while rows are inserted, updated (also in
    place), deleted, rolled back, prepared, looked up by index. Every identifier that is physically
    anywhere resolves, and every row has its own values."""
    app.execute(
        "CREATE TABLE t (id int PRIMARY KEY, p int, v enc_int4, s enc_text, filler text)"
        " WITH (fillfactor = 70)"
    )
    app.execute("CREATE INDEX t_v ON t (v)")
    app.execute("CREATE INDEX t_s ON t (s)")
    app.execute("CREATE STATISTICS t_x (mcv) ON v, s FROM t")
    stop = threading.Event()
    workers = [Worker(stack, schema, n, stop) for n in range(3)]
    for worker in workers:
        worker.start()
    dba.execute("SET confide.gc_threshold = 0")
    end = time.monotonic() + SECONDS
    swept = cycles = 0

    def goes_on():
        return cycles < 3 or swept == 0 or time.monotonic() < end

    try:
        while goes_on() and not any(w.error for w in workers):
            cycles += 1
            with slowly(dba, 20):
                swept += collect(dba)
            sound(dba)
            dba.execute(["VACUUM t", "ANALYZE t", "VACUUM (ANALYZE) t"][cycles % 3])
            sound(dba)
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    for worker in workers:
        if worker.error:
            raise worker.error
    rows = app.execute("SELECT p, v, s FROM t").fetchall()
    assert all(v == p and s == str(p) for p, v, s in rows)
    steps = sum(worker.steps for worker in workers)
    print(f"seed {SEED}: {cycles} cycles, {swept} values swept by the function, {steps} steps")


STALLS = """CREATE FUNCTION stalls(v enc_int4) RETURNS enc_int4 LANGUAGE plpgsql STABLE AS
    'BEGIN PERFORM pg_advisory_xact_lock(1900); RETURN v; END'"""


def test_statistics_replaced_while_a_query_is_planned(stack, app, dba, second):
    """A query is being planned: its estimator has got a column's statistics, and calls the
    query's function, which waits. ANALYZE replaces the statistics, and a collection comes. Right:
    it waits for the planning. Bug: it sweeps the values of the old statistics, which no row has
    any more, and the query fails with an identifier that does not resolve."""
    app.execute("CREATE TABLE t (id int, v enc_int4) WITH (autovacuum_enabled = off)")
    app.execute("INSERT INTO t SELECT g, g FROM generate_series(1, 1000) g")
    app.execute("ANALYZE t")
    app.execute(STALLS)
    app.execute("DELETE FROM t")
    app.execute("INSERT INTO t SELECT g, g FROM generate_series(2001, 3000) g")
    vacuumed(dba, "t", 500)
    dba.execute("SELECT pg_advisory_lock(1900)")
    query = "SELECT count(*) FROM t WHERE v < stalls(2011)"
    with ThreadPoolExecutor(2) as pool:
        counted = pool.submit(lambda: second.execute(query).fetchone())
        until_waits(stack, second, "advisory")
        app.execute("ANALYZE t")
        collected = pool.submit(collect, app)
        phase = "SELECT phase FROM confide.confide_stat_progress_gc"
        waits = [("waiting for planners",)]
        until(
            lambda: collected.done() or dba.execute(phase).fetchall() == waits,
            "the collection waits or has ended",
        )
        dba.execute("SELECT pg_advisory_unlock(1900)")
        assert counted.result() == (10,)
        assert collected.result() > 0


SLOW = """
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_advisory_xact_lock(1901); RETURN NEW; END';
CREATE TRIGGER slow BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION slow()"""


def test_vacuum_waits_once(stack, app, dba):
    """A row is on its way into a table for long, and VACUUM has other tables and what dropped ones
    have left to collect. Right: it gives up all of that after it has waited once. Bug: it waits
    for each, for hours if many tables were dropped."""
    for table in "t", "w", "gone", "lost":
        app.execute(f"CREATE TABLE {table} (id int, v enc_int4)")
        app.execute(f"INSERT INTO {table} SELECT g, g FROM generate_series(1, 100) g")
    # Nobody tells the keeper.
    for sql in "BEGIN", "DROP TABLE gone, lost", "PREPARE TRANSACTION 'p'", "COMMIT PREPARED 'p'":
        dba.execute(sql)
    dba.execute(SLOW)
    dba.execute("SET confide.gc_threshold = 0")
    dba.execute("SELECT pg_advisory_lock(1901)")
    waits = "SELECT relid FROM confide.confide_stat_progress_gc"
    waited = set()
    with ThreadPoolExecutor(2) as pool:
        updated = pool.submit(app.execute, "UPDATE t SET v = v + 1")
        until_waits(stack, app, "advisory")
        vacuumed = pool.submit(dba.execute, "VACUUM w, t")
        try:
            with stack.connect_dba() as watch:
                while not vacuumed.done():
                    waited.update(watch.execute(waits).fetchall())
            sql = "SELECT count(*) FROM confide.gc() WHERE postponed IS NOT NULL"
            orphans = dba.execute(sql).fetchone()[0]
        finally:
            dba.execute("SELECT pg_advisory_unlock(1901)")
        updated.result()
        vacuumed.result()
    assert waited == set(dba.execute("SELECT 'w'::regclass::oid").fetchall())
    assert orphans == 1
