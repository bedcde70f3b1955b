"""Places of identifiers (docs/durability.md): each is marked by a collection, contains only
permanent ones, postpones the collection, or is refused. There is one test for each place, which
first removes all other references to the value."""

import threading

import psycopg
import pytest
from authority import authorise
from garbage import collect, postponed, slots, sound, vacuum, verify
from waiting import until_waits


@pytest.fixture
def t(app):
    app.execute("CREATE TABLE t (id int PRIMARY KEY, v enc_int4) WITH (autovacuum_enabled = off)")
    app.execute("INSERT INTO t SELECT g, g FROM generate_series(1, 3000) g")
    return app


def test_dead_and_aborted_rows(t, dba):
    """Not vacuumed: their identifiers are on pages, and resolve."""
    t.execute("BEGIN")
    t.execute("INSERT INTO t VALUES (-1, -1)")
    t.execute("ROLLBACK")
    t.execute("DELETE FROM t WHERE id <= 100")
    assert collect(dba) == 0
    sound(dba)
    dba.execute("SET confide.gc = off")
    vacuum(dba)
    assert collect(dba) == 101


def test_keys_above_the_leaves(t, dba):
    """Pivots and high keys of a B-tree outlive their rows, and every search compares with them."""
    t.execute("CREATE INDEX t_v ON t (v)")
    t.execute("DELETE FROM t WHERE id % 1000 > 0")
    dba.execute("SET confide.gc = off")
    vacuum(dba)
    collect(dba)
    sound(dba)
    assert 3 < slots(dba) < 40
    t.execute("SET enable_seqscan = off")
    assert t.execute("SELECT id FROM t WHERE v BETWEEN 900 AND 2500 ORDER BY v").fetchall() == [
        (1000,),
        (2000,),
    ]
    t.execute("INSERT INTO t SELECT g, g FROM generate_series(1, 999) g")


def test_entries_marked_dead(t, dba):
    """A search marks entries of rows that are gone; later ones still compare with them, until
    they are removed. The pages of the table have forgotten the rows by then."""
    t.execute("CREATE INDEX t_v ON t (v)")
    t.execute("DELETE FROM t WHERE id BETWEEN 1000 AND 1999")
    query = "SELECT id FROM t WHERE v BETWEEN 999 AND 2000 ORDER BY id"
    for method in ("seqscan", "bitmapscan"):
        t.execute(f"SET enable_{method} = off")
    for _ in range(3):
        assert t.execute(query).fetchall() == [(999,), (2000,)]
    assert verify(dba)["table t"][0] < 2500, "rows are still on their pages"
    assert collect(dba) == 0
    assert t.execute(query).fetchall() == [(999,), (2000,)]
    t.execute("INSERT INTO t SELECT g, g FROM generate_series(1000, 1999, 7) g")


@pytest.mark.parametrize("kind", ["plain", "extended"])
def test_statistics(t, dba, kind):
    """The planner compares with them after their rows are gone."""
    if kind == "extended":
        t.execute("ALTER TABLE t ADD COLUMN w enc_int4")
        t.execute("UPDATE t SET v = id % 2, w = id % 2")
        t.execute("CREATE STATISTICS t_x (mcv) ON v, w FROM t")
    t.execute("ANALYZE t")
    t.execute("DELETE FROM t")
    dba.execute("SET confide.gc = off")
    dba.execute("VACUUM t")
    collect(dba)
    sound(dba)
    # Bounds of the histogram; or two values of each column, in both kinds of statistics.
    assert slots(dba) == (101 if kind == "plain" else 8)
    t.execute("EXPLAIN SELECT * FROM t WHERE v < 1500")
    t.execute("ANALYZE t")
    dba.execute("DELETE FROM pg_statistic WHERE starelid = 't'::regclass")
    dba.execute("VACUUM pg_statistic")


def test_statistics_of_a_parent(app, dba):
    """A partitioned table's statistics hold identifiers of its partitions, also of dropped ones."""
    app.execute("CREATE TABLE p (id int, v enc_int4) PARTITION BY RANGE (id)")
    app.execute("CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (1000)")
    app.execute("CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (1000) TO (2000)")
    app.execute("INSERT INTO p SELECT g, g FROM generate_series(0, 1999) g")
    app.execute("ANALYZE p")
    app.execute("DELETE FROM p1")
    dba.execute("VACUUM p1")
    collect(dba, "p")
    sound(dba, "p")
    assert 101 <= slots(dba, "p1") <= 152  # its own statistics and the parent's
    app.execute("DROP TABLE p1")
    dba.execute("SELECT * FROM confide.gc()")
    sound(dba, "p")
    app.execute("EXPLAIN SELECT * FROM p WHERE v < 1500")
    assert app.execute("SELECT count(*) FROM p WHERE v < 1500").fetchone() == (500,)


def test_cursor_with_hold(t, dba, second):
    """It keeps identifiers of rows that may be gone: collections wait for its end."""
    second.execute("BEGIN")
    second.execute("DECLARE c CURSOR WITH HOLD FOR SELECT v FROM t WHERE id <= 10 ORDER BY id")
    second.execute("COMMIT")
    t.execute("DELETE FROM t")
    vacuum(dba)
    assert "WITH HOLD" in postponed(dba)
    assert second.execute("FETCH 2 FROM c").fetchall() == [(1,), (2,)]
    assert slots(dba) == 3000
    second.execute("CLOSE c")
    assert collect(dba) == 3000


def test_variable_across_a_commit(stack, t, dba, second, schema):
    """A procedure's variables outlive the transaction that read them."""
    dba.execute(
        """CREATE PROCEDURE keep(INOUT x enc_int4) LANGUAGE plpgsql AS $$
        BEGIN
            SELECT v INTO x FROM t WHERE id = 7;
            COMMIT;
            PERFORM pg_advisory_lock(77);
        END $$"""
    )
    authorise(t, schema)
    found: list = []

    def call():
        found.append(second.execute("CALL keep(NULL)").fetchone())

    dba.execute("SELECT pg_advisory_lock(77)")
    thread = threading.Thread(target=call)
    thread.start()
    until_waits(stack, second, "advisory")
    t.execute("DELETE FROM t")
    dba.execute("VACUUM t")
    assert "procedure" in postponed(dba)
    dba.execute("SELECT pg_advisory_unlock(77)")
    thread.join()
    assert found == [(7,)]
    dba.execute("VACUUM t")
    collect(dba)
    assert slots(dba) == 0


def test_row_on_its_way(stack, t, dba, second):
    """An update has its new identifier and waits for another transaction's lock: it is on no page
    yet. Bug: a collection that does not wait frees it, and the row comes without its value."""
    t.execute("BEGIN")
    t.execute("UPDATE t SET v = -1 WHERE id = 7")
    update = threading.Thread(
        target=second.execute, args=["UPDATE t SET v = -2 WHERE id IN (7, 8)"]
    )
    update.start()
    until_waits(stack, second, "Lock")
    collection = threading.Thread(target=dba.execute, args=["SELECT confide.gc('t')"])
    collection.start()
    until_waits(stack, dba, "Extension", looks=50)
    assert collection.is_alive()
    t.execute("ROLLBACK")  # the update goes on with what it has
    update.join()
    collection.join()
    sound(dba)
    rows = t.execute("SELECT v FROM t WHERE id IN (7, 8)").fetchall()
    assert rows == [(-2,), (-2,)]


def test_portal_fetched_in_parts(t, dba, second):
    """Its snapshot keeps the rows."""
    second.execute("BEGIN")
    second.execute("DECLARE c CURSOR FOR SELECT v FROM t ORDER BY v")
    assert second.execute("FETCH 1 FROM c").fetchone() == (1,)
    t.execute("DELETE FROM t")
    dba.execute("VACUUM t")
    assert collect(dba) == 0
    assert len(second.execute("FETCH ALL FROM c").fetchall()) == 2999
    second.execute("COMMIT")
    vacuum(dba)
    collect(dba)
    assert slots(dba) == 0


def test_prepared_transaction(t, dba):
    t.execute("BEGIN")
    t.execute("INSERT INTO t VALUES (9999, 9999)")
    t.execute("PREPARE TRANSACTION 'places'")
    assert collect(dba) == 0
    t.execute("COMMIT PREPARED 'places'")
    assert t.execute("SELECT v FROM t WHERE id = 9999").fetchone() == (9999,)


def test_constants_in_catalogs(app, dba):
    """Defaults (also the fast one of old rows), views, checks: permanent."""
    app.execute("CREATE TABLE t (id int, v enc_int4)")
    app.execute("INSERT INTO t VALUES (1, 1)")
    app.execute("ALTER TABLE t ADD COLUMN w enc_int4 DEFAULT 42 CHECK (w > 40)")
    app.execute("CREATE VIEW seen AS SELECT id, v + 5 AS sum FROM t WHERE w = 42")
    app.execute("INSERT INTO t VALUES (2, 2)")
    assert collect(dba) == 0
    dba.execute("SELECT * FROM confide.gc()")
    assert app.execute("SELECT sum FROM seen ORDER BY id").fetchall() == [(6,), (7,)]
    with pytest.raises(psycopg.errors.CheckViolation):
        app.execute("INSERT INTO t VALUES (3, 3, 40)")


def test_rewritten_tables(t, dba):
    """ALTER TABLE, CLUSTER and VACUUM FULL leave values of rows that they did not copy, and ALTER
    TYPE the whole old column."""
    t.execute("DELETE FROM t WHERE id > 1000")
    t.execute("CLUSTER t USING t_pkey")
    assert collect(dba) == 2000
    t.execute("BEGIN")
    t.execute("ALTER TABLE t ALTER v TYPE enc_int8")
    t.execute("ROLLBACK")
    t.execute("ALTER TABLE t ALTER v TYPE enc_numeric(9, 2)")
    collect(dba)
    assert slots(dba) == 1000
    sound(dba)
    t.execute("TRUNCATE t")
    assert collect(dba) == 1000


def test_dropped_column(t, dba):
    t.execute("ALTER TABLE t ADD COLUMN w enc_text DEFAULT 'w'")
    t.execute("UPDATE t SET w = 'v' || id::text")
    t.execute("ALTER TABLE t DROP COLUMN w")
    dba.execute("VACUUM t")
    collect(dba)
    assert slots(dba) == 3000
    sound(dba)


def test_materialized_view(t, dba):
    t.execute("CREATE MATERIALIZED VIEW m AS SELECT id, v FROM t WHERE id <= 100")
    t.execute("DELETE FROM t")
    dba.execute("VACUUM t")
    collect(dba)
    t.execute("REFRESH MATERIALIZED VIEW m")
    assert collect(dba, "m") == 100
    assert slots(dba, "m") == 0


def test_index_that_cannot_be_read(t):
    """Only B-trees and hash indexes take protected columns, also beside their keys."""
    t.execute("ALTER TABLE t ADD COLUMN place point")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="index"):
        t.execute("CREATE INDEX t_place ON t USING gist (place) INCLUDE (v)")
    with pytest.raises(psycopg.Error, match="no default operator class"):
        t.execute("CREATE INDEX t_brin ON t USING brin (v)")
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        t.execute("CREATE TABLE arrays (a enc_int4[] UNIQUE)")


REFUSED = [
    "CREATE TABLE r (a enc_int4[]) USING heap",
    "CREATE TABLE r (a enc_int4[]) USING confide; CREATE INDEX ON r (a)",
    "CREATE TABLE r (a enc_int4[], b int) USING confide; CREATE STATISTICS s ON a, b FROM r",
    "CREATE TYPE few AS (a enc_int4[]); CREATE TABLE r (f few) USING confide",
    "CREATE TYPE pair AS (a enc_int4, b int); CREATE TABLE r (p pair) USING confide",
    "CREATE TYPE span AS RANGE (subtype = enc_int4); CREATE TABLE r (p span) USING confide",
    "CREATE DOMAIN small AS enc_int4; CREATE TABLE r (p small[]) USING confide",
    "CREATE STATISTICS s ON (v + v) FROM t",
    "CREATE TABLE r (v enc_int4) USING heap",
    "ALTER TABLE t SET ACCESS METHOD heap",
    "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER x FOREIGN DATA WRAPPER w;"
    " CREATE FOREIGN TABLE r (v enc_int4) SERVER x",
]


@pytest.mark.usefixtures("t")
@pytest.mark.parametrize("sql", REFUSED)
def test_refused_places(dba, sql):
    """Where no collection looks, no identifier may be stored."""
    with pytest.raises(psycopg.errors.FeatureNotSupported) as error, dba.transaction():
        for statement in sql.split(";"):
            dba.execute(statement)
    assert error.value.diag.message_hint or "expressions" in str(error.value)


@pytest.fixture
def logical(stack):
    """PostgreSQL with WAL that can be decoded."""
    for change in ("SET wal_level = logical", "RESET wal_level"):
        with stack.connect_dba() as dba:
            dba.execute(f"ALTER SYSTEM {change}")
        stack.kill_postgres()
        stack.up()
        if change.startswith("SET"):
            yield


def test_logical_slot(logical, t, dba):
    """The rows of a slot that lags behind are in the WAL only, with their identifiers. Bug: who
    decodes them finds others' values, or none."""
    dba.execute("SELECT pg_create_logical_replication_slot('lagging', 'pgoutput')")
    t.execute("DELETE FROM t")
    dba.execute("SET confide.gc = off")
    vacuum(dba)
    waits = postponed(dba)
    dba.execute("SELECT pg_drop_replication_slot('lagging')")
    assert '"lagging"' in waits
    assert collect(dba) == 3000


def test_dropped_tables(t, dba, stack):
    """What tables dropped before a restart of the keeper held comes back with its checkpoint, and
    goes with the next look for such tables."""
    oid = dba.execute("SELECT 't'::regclass::oid").fetchone()[0]
    dba.execute("SELECT confide.checkpoint()")
    # Inherited statistics anywhere in the database may name its values.
    t.execute("CREATE TABLE parent (a enc_int4)")
    t.execute("CREATE TABLE child () INHERITS (parent)")
    t.execute("INSERT INTO child VALUES (1)")
    t.execute("ANALYZE parent")
    t.execute("DROP TABLE t")
    stack.kill_keeper()
    stack.up()
    count = "SELECT count(*) FROM confide.stat_keeper() WHERE name LIKE '%%.' || %s || '.%%.live'"
    assert dba.execute(count, [oid]).fetchone() == (1,)
    swept = dict(dba.execute("SELECT relation, swept FROM confide.gc()").fetchall())
    assert swept[oid] == 3000
    assert dba.execute(count, [oid]).fetchone() == (0,)


@pytest.fixture
def elsewhere(stack):
    """Another database, which the superuser fills with values of the first one."""
    url = stack.dba_url.removesuffix("/app") + "/elsewhere"
    with stack.connect_dba() as dba:
        dba.execute("DROP DATABASE IF EXISTS elsewhere")
        dba.execute("CREATE DATABASE elsewhere")
        yield url
        dba.execute("DROP DATABASE IF EXISTS elsewhere")


SCOPE = ("elsewhere", "--other-columns")


def fill(url: str, exports: list, ticket: str) -> int:
    """The database's OID."""
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("CREATE EXTENSION confide")
        other.execute("CREATE TABLE t (v enc_int4)")
        other.execute(f"SET confide.restore_ticket = '{ticket}'")
        other.cursor().executemany("INSERT INTO t VALUES (%s)", exports)
        sql = "SELECT oid FROM pg_database WHERE datname = current_database()"
        return other.execute(sql).fetchone()[0]


def partitions(dba, database: int) -> int:
    sql = "SELECT count(*) FROM confide.stat_keeper() WHERE name LIKE 'column.' || %s || '.%%.live'"
    return dba.execute(sql, [database]).fetchone()[0]


def test_dropped_database(t, dba, elsewhere, stack):
    """Its partitions go with the next look, also after a restart of the keeper; those of the others
    stay. Bug: they stay for ever."""
    oid = fill(elsewhere, dba.execute("SELECT v FROM t LIMIT 5").fetchall(), stack.ticket(*SCOPE))
    dba.execute("SELECT confide.gc()")
    assert partitions(dba, oid) == 1
    dba.execute("SELECT confide.checkpoint()")
    dba.execute("DROP DATABASE elsewhere")
    assert partitions(dba, oid) == 1
    found = dba.execute("SELECT relation, swept FROM confide.gc()").fetchall()
    assert (None, 5) in found
    assert partitions(dba, oid) == 0
    stack.kill_keeper()
    stack.up()
    assert partitions(dba, oid) == 0
    assert slots(dba) == 3000


def test_copied_database(t, dba, elsewhere, stack):
    """CREATE DATABASE would copy identifiers. Bug: what one of the two databases deletes is lost
    for the other."""
    fill(elsewhere, dba.execute("SELECT v FROM t LIMIT 5").fetchall(), stack.ticket(*SCOPE))
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="cannot be copied"):
        dba.execute("CREATE DATABASE copied TEMPLATE elsewhere")


def test_table_of_a_running_transaction(app, dba, second):
    """A table whose creation has not committed exists already."""
    app.execute("BEGIN")
    app.execute("CREATE TABLE young (v enc_int4)")
    app.execute("INSERT INTO young VALUES (1)")
    dba.execute("SELECT * FROM confide.gc()")
    app.execute("INSERT INTO young VALUES (2)")
    app.execute("COMMIT")
    assert second.execute("SELECT v FROM young ORDER BY v").fetchall() == [(1,), (2,)]
