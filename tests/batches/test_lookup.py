"""Protected keys that a nested loop looks up in an index, for many outer rows at once.

Mechanism: outer rows are read ahead, their keys are placed on the pages of the index together, and
the inner scan finds known facts. Right: rows of the plain twin, in a few round trips. Bug: a row is
lost or duplicated at the end of a batch; a row with NULL, or without a partner, gets another's; a
place on another page, or for another first column, is used.
"""

import pytest
from results import plain

OUTER = 700
DDL = """
CREATE TABLE part (w enc_int4, i enc_int4, n enc_int4, PRIMARY KEY (w, i));
INSERT INTO part SELECT g % 3, g / 3, g % 17 FROM generate_series(0, 8999) g;
CREATE TABLE line (id int PRIMARY KEY, w enc_int4, i enc_int4, big enc_int8);
INSERT INTO line SELECT g, g % 4, nullif(g * 37 % 3100, 0), g * 13 % 3100
    FROM generate_series(1, 700) g;
CREATE TABLE name (key enc_text, v int);
CREATE INDEX ON name (key);
INSERT INTO name SELECT 'name ' || (g % 500)::text, g FROM generate_series(1, 4000) g;
CREATE TABLE named (id int PRIMARY KEY, key enc_text);
INSERT INTO named SELECT g, 'name ' || (g * 7)::text FROM generate_series(1, 200) g;
"""
LOOP = """SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off;
SET enable_bitmapscan = off; SET enable_material = off; SET enable_memoize = off"""
# Each with whether many rows are looked up together.
QUERIES = {
    "SELECT id, n FROM line, part WHERE part.w = 1 AND part.i = line.i": True,
    "SELECT id, n FROM line, part WHERE part.w = line.w AND part.i = line.i": True,
    "SELECT id, n FROM line LEFT JOIN part ON part.w = line.w AND part.i = line.i": True,
    "SELECT id, n FROM line, part WHERE part.w = 2 AND part.i = line.big": True,
    "SELECT id, count(*) FROM line, part WHERE part.w = line.w GROUP BY id": True,
    "SELECT id FROM line WHERE EXISTS"
    " (SELECT FROM part WHERE part.w = 0 AND part.i = line.i AND part.n = 3)": None,
    "SELECT id FROM line WHERE NOT EXISTS"
    " (SELECT FROM part WHERE part.w = line.w AND part.i = line.i)": None,
    "SELECT id, v FROM named, name WHERE name.key = named.key": True,
    "SELECT a.id, b.id FROM line a, part p, line b"
    " WHERE p.w = 1 AND p.i = a.i AND b.id = a.id": True,
    "SELECT id, n FROM line, part WHERE part.w = 1 AND part.i = line.i ORDER BY id LIMIT 3": None,
    "SELECT id, (SELECT n FROM part WHERE part.w = 1 AND part.i = line.i) FROM line": None,
}


@pytest.fixture
def both(app, plain_twin, dba):
    dba.execute("GRANT pg_monitor TO app")
    for connection, ddl in ((app, DDL), (plain_twin, plain(DDL))):
        connection.execute(ddl)
        connection.execute("ANALYZE part, line, name, named")
        connection.execute(LOOP)
    yield app, plain_twin
    dba.execute("REVOKE pg_monitor FROM app")


def searches(connection) -> int:
    names = "^session[.]messages[.](Search|Descend)"
    query = "SELECT sum(value::int8) FROM confide.confide_stat_keeper WHERE name ~ %s"
    found = connection.execute(query, [names]).fetchone()
    return int(found[0] or 0)


def explained(connection, query: str) -> str:
    return "\n".join(line for (line,) in connection.execute(f"EXPLAIN (COSTS off) {query}"))


@pytest.mark.parametrize("rows", [4096, 7, 2])
def test_results(both, rows):
    app, twin = both
    app.execute(f"SET confide.batch_rows = {rows}")
    for query, together in QUERIES.items():
        expected = sorted(twin.execute(query).fetchall(), key=repr)
        assert sorted(app.execute(query).fetchall(), key=repr) == expected, query
        if together:
            assert "ConfideLookup" in explained(app, query), query


def test_round_trips(both):
    """A few for each batch and level of the index, not two for each row."""
    app, _ = both
    query = "SELECT count(*) FROM line, part WHERE part.w = 1 AND part.i = line.i"
    found = {}
    for switch in ("off", "on"):
        app.execute(f"SET confide.enable_batch_lookup = {switch}")
        before = searches(app)
        app.execute(query).fetchall()
        found[switch] = searches(app) - before
    assert found["off"] > OUTER
    assert found["on"] < 40, found


def test_changed_meanwhile(both):
    """Rows written by the transaction itself, dead entries, pages that have split."""
    app, twin = both
    query = "SELECT id, n FROM line, part WHERE part.w = 1 AND part.i = line.i ORDER BY 1, 2"
    for connection in both:
        connection.execute("DELETE FROM part WHERE i > 1500 AND n < 9")
        connection.execute("UPDATE part SET i = i + 5000 WHERE w = 1 AND n = 10")
        connection.execute(
            "INSERT INTO part SELECT 1, g + 3000, g % 5 FROM generate_series(1, 1500) g"
        )
    assert app.execute(query).fetchall() == twin.execute(query).fetchall()
    with app.transaction(), twin.transaction():
        for connection in both:
            connection.execute("UPDATE part SET i = i - 5000 WHERE i > 6000")
        assert app.execute(query).fetchall() == twin.execute(query).fetchall()


def test_parallel(both):
    app, twin = both
    query = "SELECT id, n FROM line, part WHERE part.w = 1 AND part.i = line.i"
    for setting in (
        "max_parallel_workers_per_gather = 2",
        "min_parallel_table_scan_size = 0",
        "parallel_setup_cost = 0",
        "parallel_tuple_cost = 0",
        "enable_seqscan = on",
    ):
        app.execute(f"SET {setting}")
    assert sorted(app.execute(query).fetchall()) == sorted(twin.execute(query).fetchall())
