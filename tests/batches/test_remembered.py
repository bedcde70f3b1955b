"""Pages of B-trees that the keeper remembers: a search names them, and descends in one request.

Mechanism: the backend sends a page's keys once, and then only its number, as long as the page has
the same bytes. Right: rows, order and errors of the plain twin, whatever happens to the pages
between two searches; one round trip for a descent over known pages. Bug: an answer about a former
state of a page is used for the present one; a search uses a page of another index; facts about
swept values are used.
"""

import random

import pytest
from garbage import collect
from results import plain, run

ROWS = 12000
DDL = """
CREATE TABLE r (i int PRIMARY KEY, a enc_int4, b enc_int4, s enc_text, v enc_int8, UNIQUE (a, b),
    g int GENERATED ALWAYS AS (i % 5) STORED);
CREATE INDEX r_s ON r (s DESC, b);
CREATE INDEX r_mixed ON r (i, s, b);
CREATE INDEX r_behind ON r (g, s, b);
"""


@pytest.fixture
def both(app, plain_twin):
    """Three levels of pages in one index, two in the others."""
    for connection, ddl in ((app, DDL), (plain_twin, plain(DDL))):
        connection.execute(ddl)
        with connection.cursor().copy("COPY r FROM STDIN") as copy:
            for i in range(ROWS):
                copy.write_row([i, i % 7, i, f"s{i * 7919 % 5003:05}", i])
        connection.execute("SET enable_seqscan = off; SET enable_bitmapscan = off")
        connection.execute("SET plan_cache_mode = force_generic_plan")
        connection.execute("PREPARE pair AS SELECT i, v FROM r WHERE a = $1 AND b = $2")
        connection.execute("PREPARE text AS SELECT i FROM r WHERE s = $1 ORDER BY i")
        connection.execute(
            "PREPARE behind AS SELECT i, v FROM r WHERE g = $1 AND s = $2 ORDER BY i"
        )
        connection.execute(
            "PREPARE next AS SELECT i FROM r WHERE a = $1 AND b > $2 ORDER BY b LIMIT 3"
        )
    return app, plain_twin


def agree(both, sql):
    found, expected = (run(connection, sql) for connection in both)
    assert (found.sqlstate, found.rows) == (expected.sqlstate, expected.rows), sql
    return found


def look(both, keys):
    for key in keys:
        agree(both, f"EXECUTE pair ({key % 7}, {key})")
        agree(both, f"EXECUTE text ('s{key % 5003:05}')")
        agree(both, f"EXECUTE next ({key % 7}, {key})")
        agree(both, f"EXECUTE behind ({key % 5}, 's{key * 7919 % 5003:05}')")


def asked(app) -> int:
    query = "SELECT value FROM confide.confide_stat_keeper WHERE name = 'session.answered_total'"
    return int(app.execute(query).fetchone()[0])


STATEMENTS = {
    "protected columns first": lambda key: f"EXECUTE pair ({key % 7}, {key})",
    "behind a plain column": lambda key: f"EXECUTE behind ({key % 5}, 's{key * 7919 % 5003:05}')",
}


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS.keys())
def test_one_round_trip(both, dba, statement):
    """A descent takes one request, not one per level; with the result there are two."""
    app, _ = both
    dba.execute("GRANT pg_monitor TO app")
    keys = random.Random(1).sample(range(ROWS), 40)
    counts = {}
    for memory in ("on", "off"):
        app.execute(f"SET confide.enable_page_memory = {memory}; SET confide.delivery = off")
        for _ in range(2):
            before = asked(app)
            for key in keys:
                app.execute(statement(key))
            counts[memory] = asked(app) - before - 1
    dba.execute("REVOKE pg_monitor FROM app")
    assert counts["on"] <= 2 * len(keys) + 4, counts
    assert counts["off"] >= 3 * len(keys) - 4, counts


def test_pages_change(both, dba, stack, schema):
    """Rows are inserted, deleted and changed between searches, also by others; pages split, become
    empty and are reused."""
    pick = random.Random(2)
    look(both, pick.sample(range(ROWS), 60))
    other = stack.connect_app()
    other.execute(f'SET search_path = "{schema}"')
    for turn in range(6):
        low = turn * 1500
        for sql in (
            f"DELETE FROM r WHERE i BETWEEN {low} AND {low + 400}",
            f"UPDATE r SET s = s || 'x', b = b + 20000 WHERE i / 60 = {low // 60 + 9}",
            "INSERT INTO r SELECT g, g % 7, g - 30000, 's00017', 1"
            f" FROM generate_series({30000 + low}, {30400 + low}) g",
        ):
            other.execute(sql)
            both[1].execute(sql)
        if turn % 2:
            dba.execute("VACUUM r")
        look(both, [*pick.sample(range(ROWS), 25), low + 1, low + 541, low + 20541, 17])
    other.close()


@pytest.mark.parametrize(
    "change", ["REINDEX TABLE r", "TRUNCATE r", "VACUUM FULL r", "CLUSTER r USING r_s"]
)
def test_written_anew(both, change):
    """The same index, with other pages under the same block numbers."""
    keys = random.Random(3).sample(range(ROWS), 30)
    look(both, keys)
    for connection in both:
        connection.execute(change)
    look(both, keys)
    for connection in both:
        connection.execute("INSERT INTO r VALUES (90001, 3, 90001, 's00005', 4)")
        connection.execute("UPDATE r SET b = -b, s = 's00009' WHERE i % 50 = 3")
    look(both, [*keys, 90001, 5, 9])
    agree(both, "INSERT INTO r VALUES (90002, 3, 90001, 'twice', 4)")
    agree(both, "SELECT a, b, i FROM r ORDER BY a, b")
    agree(both, "SELECT s, b FROM r ORDER BY s DESC, b")


def test_values_swept(both, dba):
    """Identifiers on a remembered page refer to other values after a garbage collection."""
    keys = random.Random(4).sample(range(ROWS), 40)
    for _ in range(3):
        look(both, keys)
        for connection in both:
            connection.execute("DELETE FROM r WHERE i % 3 = 1 AND i < 9000")
        collect(dba, "r")
        for connection in both:
            connection.execute(
                "INSERT INTO r SELECT g, g % 7, 50000 - g, 's' || g::text, 2"
                " FROM generate_series(0, 8999) g WHERE g % 3 = 1"
            )
        look(both, keys)


def test_other_types(both):
    """A column of another type, and another index with the same name."""
    keys = random.Random(5).sample(range(ROWS), 20)
    look(both, keys)
    for connection, kind in zip(both, ("enc_int8", "int8"), strict=True):
        connection.execute("DEALLOCATE ALL")
        connection.execute(f"ALTER TABLE r ALTER b TYPE {kind}")
        connection.execute("DROP INDEX r_s")
        connection.execute("CREATE INDEX r_s ON r (b, s)")
    for key in keys:
        agree(both, f"SELECT i FROM r WHERE a = {key % 7} AND b = {key}")
        agree(both, f"SELECT i FROM r WHERE b = {key} AND s >= 's'")


def test_many_errors(both):
    """A statement that fails or is rolled back leaves no partial knowledge."""
    keys = random.Random(6).sample(range(ROWS), 30)
    for key in keys:
        agree(both, f"SELECT i FROM r WHERE a = {key % 7} AND b = {key} AND 1 / (i - {key}) > 5")
        with both[0].transaction(force_rollback=True), both[1].transaction(force_rollback=True):
            agree(both, f"UPDATE r SET b = 1000000 + {key} WHERE a = {key % 7} AND b = {key}")
            agree(both, f"EXECUTE pair ({key % 7}, {1000000 + key})")
        agree(both, f"EXECUTE pair ({key % 7}, {key})")
