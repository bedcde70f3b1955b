"""B-trees and hash indexes on expressions over protected columns.

Mechanism: what an expression makes is promoted into a partition of the table before the index
stores it (extension/src/index/derived.h). Right: plans that use the index return the same rows in
the same order as on a plain twin, after inserts, updates, deletes, COPY, REINDEX. Bug: the index
holds a temporary identifier, which names nothing once the statement has ended, or another value.
"""

import psycopg
import pytest
from garbage import collect, slots, sound, verify
from results import run

NAMES = ["Ann", "ann", "BOB", "Bob", "Çelik", "", "zoe", "Zoe", "a'b", "Émile", None]


def columns(prefix: str) -> str:
    return (
        f"id int PRIMARY KEY, name {prefix}text, pay {prefix}int4, bonus {prefix}int4, "
        f"doc {prefix}jsonb, d {prefix}date"
    )


INDEXES = {
    "lower": "CREATE INDEX emp_lower ON emp (lower(name))",
    "sum": "CREATE INDEX emp_sum ON emp ((pay + bonus), id)",
    "field": "CREATE INDEX emp_field ON emp ((doc ->> 'k'))",
    "length": "CREATE INDEX emp_length ON emp (length(name) DESC NULLS LAST)",
    "second": "CREATE INDEX emp_second ON emp (id, (pay * 2))",
    "hash": "CREATE INDEX emp_hash ON emp USING hash (upper(name))",
    "part": "CREATE INDEX emp_part ON emp ((pay - 7)) WHERE bonus > 3",
    "constant": "CREATE INDEX emp_constant ON emp ((name || 'x'))",
}

QUERIES = {
    "lower": [
        "SELECT id FROM emp WHERE lower(name) = 'ann' ORDER BY id",
        "SELECT id, name FROM emp WHERE lower(name) >= 'b' ORDER BY lower(name), id",
        "SELECT lower(name) FROM emp ORDER BY lower(name) LIMIT 7",
        "SELECT id FROM emp WHERE lower(name) IN ('bob', 'zoe', 'no') ORDER BY id",
        "SELECT min(lower(name)) FROM emp",
    ],
    "sum": [
        "SELECT id FROM emp WHERE pay + bonus = 21 ORDER BY id",
        "SELECT id, pay + bonus FROM emp WHERE pay + bonus BETWEEN 10 AND 40 ORDER BY 2, id",
        "SELECT a.id, b.id FROM emp a JOIN emp b ON a.pay + a.bonus = b.pay + b.bonus "
        "WHERE a.id < 5 ORDER BY 1, 2",
    ],
    "field": ["SELECT id FROM emp WHERE doc ->> 'k' = 'v3' ORDER BY id"],
    "length": ["SELECT id FROM emp WHERE length(name) > 3 ORDER BY length(name) DESC, id"],
    "second": ["SELECT id FROM emp WHERE id = 12 AND pay * 2 = 24"],
    "hash": ["SELECT id FROM emp WHERE upper(name) = 'BOB' ORDER BY id"],
    "part": ["SELECT id FROM emp WHERE pay - 7 = 12 AND bonus > 3 ORDER BY id"],
    "constant": ["SELECT id FROM emp WHERE name || 'x' = 'BOBx' ORDER BY id"],
}

CHANGES = [
    "INSERT INTO emp VALUES (1001, 'ANN', 20, 1, '{\"k\": \"v3\"}', '2020-02-29')",
    "INSERT INTO emp SELECT id + 500, name, bonus, pay, doc, d FROM emp WHERE id < 40",
    "UPDATE emp SET name = upper(name) WHERE id < 30",
    "UPDATE emp SET pay = pay + 1, bonus = bonus - 1 WHERE id BETWEEN 20 AND 50",
    "DELETE FROM emp WHERE id % 5 = 0",
    "INSERT INTO emp VALUES (1001, 'x', 1, 1, NULL, NULL) "
    "ON CONFLICT (id) DO UPDATE SET name = 'bOb'",
]


def fill(connection, prefix: str, indexes, before: bool) -> None:
    connection.execute(f"CREATE TABLE emp ({columns(prefix)})")
    if before:
        for name in indexes:
            connection.execute(INDEXES[name])
    with connection.cursor().copy("COPY emp FROM STDIN") as copy:
        for i in range(200):
            document = None if i % 11 == 3 else f'{{"k": "v{i % 7}"}}'
            copy.write_row(
                (i, NAMES[i % len(NAMES)], i, (i * 7) % 20, document, f"2001-01-{i % 28 + 1:02}")
            )
    if not before:
        for name in indexes:
            connection.execute(INDEXES[name])


def compare(app, plain_twin, indexes) -> None:
    for settings in ("off", "on"):
        for kind in ("seqscan", "bitmapscan"):
            app.execute(f"SET enable_{kind} = {settings}")
        for name in indexes:
            for query in QUERIES[name]:
                mine, twin = run(app, query), run(plain_twin, query)
                assert mine.sqlstate is None, (query, mine)
                assert mine.rows == twin.rows, (settings, query)


@pytest.mark.parametrize("before", [True, False], ids=["insert", "build"])
@pytest.mark.parametrize("name", sorted(INDEXES))
def test_same_rows(app, plain_twin, schema, name, before):
    fill(app, "enc_", [name], before)
    fill(plain_twin, "", [name], before)
    compare(app, plain_twin, [name])
    for change in CHANGES:
        app.execute(change)
        plain_twin.execute(change)
    compare(app, plain_twin, [name])
    sound(app, "emp")
    for command in (f"REINDEX INDEX emp_{name}", "VACUUM FULL emp", "CLUSTER emp USING emp_pkey"):
        app.execute(command)
    app.execute(f"REINDEX INDEX CONCURRENTLY emp_{name}")
    compare(app, plain_twin, [name])
    sound(app, "emp")


def test_plans_use_them(app):
    fill(app, "enc_", ["lower", "sum", "hash", "field", "part", "constant"], True)
    app.execute("SET enable_seqscan = off")
    for query, index in (
        ("SELECT id FROM emp WHERE lower(name) = 'ann'", "emp_lower"),
        ("SELECT id FROM emp ORDER BY lower(name) LIMIT 1", "emp_lower"),
        ("SELECT id FROM emp WHERE pay + bonus > 40", "emp_sum"),
        ("SELECT id FROM emp WHERE upper(name) = 'BOB'", "emp_hash"),
        ("SELECT id FROM emp WHERE doc ->> 'k' = 'v3'", "emp_field"),
        ("SELECT id FROM emp ORDER BY name || 'x' LIMIT 1", "emp_constant"),
        ("SELECT name || 'x' FROM emp WHERE name || 'x' > 'b'", "emp_constant"),
    ):
        plan = "\n".join(row[0] for row in app.execute("EXPLAIN " + query))
        assert index in plan, plan
    query = "EXPLAIN SELECT id FROM emp ORDER BY name || 'y'"
    other = "\n".join(row[0] for row in app.execute(query))
    assert "emp_constant" not in other, other


def test_unique(app):
    """The error shows the application the value, as PostgreSQL's."""
    app.execute("CREATE TABLE emp (id int, name enc_text)")
    app.execute("CREATE UNIQUE INDEX emp_once ON emp (lower(name))")
    app.execute("INSERT INTO emp VALUES (1, 'Ann'), (2, 'Bob'), (3, NULL), (4, NULL)")
    with pytest.raises(psycopg.errors.UniqueViolation) as twice:
        app.execute("INSERT INTO emp VALUES (5, 'ANN')")
    assert twice.value.diag.message_detail == "Key (lower(name))=(ann) already exists."
    assert run(app, "UPDATE emp SET name = 'bOB' WHERE id = 1").sqlstate == "23505"
    app.execute("INSERT INTO emp VALUES (6, 'aNN') ON CONFLICT (lower(name)) DO NOTHING")
    app.execute(
        "INSERT INTO emp VALUES (7, 'aNN') ON CONFLICT (lower(name)) DO UPDATE SET id = excluded.id"
    )
    assert run(app, "SELECT id, name FROM emp ORDER BY id").rows == [
        ("2", "Bob"),
        ("3", None),
        ("4", None),
        ("7", "Ann"),
    ]
    app.execute("INSERT INTO emp VALUES (8, 'bob ')")
    app.execute("ALTER TABLE emp ADD EXCLUDE USING btree ((upper(name)) WITH =)")
    assert run(app, "INSERT INTO emp VALUES (9, 'BOB ')").sqlstate in ("23505", "23P01")


def test_constant_results(app):
    """A test is a plain boolean, which an index stores as PostgreSQL's own."""
    fill(app, "enc_", [], True)
    app.execute("CREATE INDEX emp_rich ON emp ((pay > 100))")
    app.execute("INSERT INTO emp (id, pay) VALUES (900, 500)")
    app.execute("SET enable_seqscan = off")
    assert run(app, "SELECT count(*) FROM emp WHERE (pay > 100) = true").rows == [("100",)]


def test_partitions(app, plain_twin):
    """An index on a partitioned table is one on each partition, also on later ones."""
    for connection, prefix in ((app, "enc_"), (plain_twin, "")):
        connection.execute(f"CREATE TABLE emp (id int, name {prefix}text) PARTITION BY RANGE (id)")
        connection.execute("CREATE TABLE low PARTITION OF emp FOR VALUES FROM (0) TO (10)")
        connection.execute("CREATE INDEX emp_lower ON emp (lower(name))")
        connection.execute("CREATE TABLE high PARTITION OF emp FOR VALUES FROM (10) TO (100)")
        connection.execute(
            "INSERT INTO emp VALUES (1, 'Ann'), (20, 'ANN'), (3, 'Bob'), (40, 'bob')"
        )
        connection.execute("SET enable_seqscan = off")
    for query in (
        "SELECT id FROM emp WHERE lower(name) = 'ann' ORDER BY id",
        "SELECT id FROM emp ORDER BY lower(name), id",
    ):
        mine = run(app, query)
        assert mine.sqlstate is None, mine
        assert mine.rows == run(plain_twin, query).rows


def test_renamed(app):
    """Values that were stored under a former name are found by the new one."""
    fill(app, "enc_", ["lower", "sum"], True)
    app.execute("ALTER TABLE emp RENAME name TO called")
    app.execute("ALTER TABLE emp RENAME pay TO wage")
    app.execute("ALTER TABLE emp RENAME TO staff")
    app.execute("INSERT INTO staff (id, called, wage, bonus) VALUES (700, 'ANN', 20, 1)")
    app.execute("SET enable_seqscan = off")
    assert ("700",) in run(app, "SELECT id FROM staff WHERE lower(called) = 'ann'").rows
    assert ("700",) in run(app, "SELECT id FROM staff WHERE wage + bonus = 21").rows


def test_garbage(app, dba):
    """Values that only an index names are kept; those that no index names any more are freed."""
    app.execute("CREATE TABLE t (id int, v enc_int4, s enc_text) WITH (autovacuum_enabled = off)")
    app.execute("CREATE INDEX t_v ON t ((v + 1))")
    app.execute("CREATE INDEX t_s ON t (lower(s))")
    app.execute("INSERT INTO t SELECT g, g, 'Text' FROM generate_series(1, 3000) g")
    assert slots(dba) == 12_000
    assert collect(app) == 0
    assert verify(app)["index t_v"][0] >= 3000
    app.execute("SET enable_seqscan = off")
    assert run(app, "SELECT id FROM t WHERE v + 1 = 2000").rows == [("1999",)]
    app.execute("REINDEX TABLE t")
    assert collect(app) == 6000
    app.execute("DROP INDEX t_s")
    assert collect(app) == 3000
    sound(app)
    assert run(app, "SELECT id FROM t WHERE v + 1 = 2000").rows == [("1999",)]
    app.execute("DROP TABLE t")


def test_analyze_without_client(app, dba):
    fill(app, "enc_", ["lower", "sum", "part"], True)
    for command in ("ANALYZE emp", "VACUUM ANALYZE emp", "VACUUM (FREEZE) emp"):
        dba.execute(command)
    app.execute("ANALYZE emp")
    sound(app, "emp")
    statistics = (
        "SELECT count(*) FROM pg_statistic s JOIN pg_class c ON c.oid = s.starelid "
        "WHERE c.relname LIKE 'emp\\_%' AND c.relnamespace = current_schema::regnamespace"
    )
    assert dba.execute(statistics).fetchone()[0] == 0


def test_without_client(app, dba):
    """Not built without a client, as partial indexes are not; the owner has it built."""
    fill(app, "enc_", [], True)
    dba.execute("SET client_min_messages = error")
    dba.execute("CREATE INDEX emp_dba ON emp (lower(name))")
    state = "SELECT indisvalid, indisready FROM pg_index WHERE indexrelid = 'emp_dba'::regclass"
    assert dba.execute(state).fetchone() == (False, False)
    assert run(app, "REINDEX INDEX emp_dba").sqlstate == "42501"
    app.execute("INSERT INTO emp (id, name) VALUES (800, 'Ann')")
    app.execute("SELECT confide.authorise('CREATE INDEX emp_dba ON emp (lower(name))')")
    app.execute("REINDEX INDEX emp_dba")
    assert dba.execute(state).fetchone() == (True, True)
    assert run(dba, "REINDEX INDEX emp_dba").sqlstate is not None


def test_planted(app, dba):
    """An index of a superuser's, which he has marked as ready, stores nothing in a client's
    session, not even what the client's own statements compute. Bug: its order is told."""
    app.execute("CREATE TABLE emp (id int, name enc_text)")
    dba.execute("SET client_min_messages = error")
    dba.execute("CREATE INDEX emp_planted ON emp (lower(name))")
    dba.execute(
        "UPDATE pg_index SET indisready = true, indisvalid = true "
        "WHERE indexrelid = 'emp_planted'::regclass"
    )
    insert = (
        "INSERT INTO emp SELECT 1, 'Ann' "
        "WHERE NOT EXISTS (SELECT FROM emp WHERE lower(name) = 'ann')"
    )
    refused = run(app, insert)
    assert refused.sqlstate == "42501", refused
    app.execute("SELECT confide.authorise('CREATE INDEX emp_planted ON emp (lower(name))')")
    app.execute(insert)


def test_refused(app):
    """A whole row has columns of any kind: what is made of it has no column's name."""
    app.execute(f"CREATE TABLE emp ({columns('enc_')})")
    app.execute(
        "CREATE FUNCTION whole(emp) RETURNS enc_text LANGUAGE sql IMMUTABLE AS 'SELECT $1.name'"
    )
    with pytest.raises(psycopg.errors.FeatureNotSupported) as refused:
        app.execute("CREATE INDEX ON emp (whole(emp))")
    assert "single columns" in refused.value.diag.message_detail
    assert "generated column" in refused.value.diag.message_hint
