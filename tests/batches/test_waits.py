"""How many answers of the keeper a statement waits for: what short transactions cost, in figures
that do not depend on the machine.

Mechanism: the session's counter of answered messages, before and after. Right answer: the figures
below at most. Bug: a value, a row or an index asks by itself.
"""

import psycopg
import pytest

DDL = """
CREATE TABLE w (id int PRIMARY KEY, name enc_text, amount enc_numeric(12,2), n enc_int4,
                note enc_text);
INSERT INTO w SELECT g, 'a', 1.50, 7, 'x' FROM generate_series(1, 200) g;
CREATE TABLE once (id enc_int4 PRIMARY KEY, name enc_text);
INSERT INTO once VALUES (1, 'a'), (2, 'b');
CREATE TABLE twice (id enc_int4 PRIMARY KEY, other enc_int8, name enc_text);
CREATE INDEX ON twice (other, name);
INSERT INTO twice VALUES (1, 1, 'a'), (2, 2, 'b');
CREATE TABLE keyed (id enc_int4 PRIMARY KEY, name enc_text);
CREATE TABLE behind (id int PRIMARY KEY, k enc_int4);
CREATE INDEX ON behind (k);
INSERT INTO behind VALUES (1, 1), (2, 2);
CREATE TABLE many (id int, name enc_text, kind enc_text, size enc_int4);
INSERT INTO many SELECT g, 'a' || g::text, 'k' || (g % 11)::text, g % 9
    FROM generate_series(1, 200) g;
INSERT INTO keyed VALUES (1, 'a'), (2, 'b'), (3, 'c');
"""
# Statements, and the waits of each once it has run before.
STATEMENTS = {
    "a point select": ("SELECT name, amount, n, note FROM w WHERE id = 17", 1),
    "plain columns": ("SELECT id FROM w WHERE id = 17", 0),
    "many rows": ("SELECT name, amount FROM w WHERE id < 150", 1),
    "an insert": ("INSERT INTO w VALUES (%s, 'b', 2.00, 3, 'y')", 1),
    "an insert, several rows": (
        "INSERT INTO w VALUES (%s, 'b', 2.00, 3, 'y'), (-%s, 'c', 3.00, 4, 'z')",
        1,
    ),
    "an insert that returns": (
        "INSERT INTO w VALUES (%s, 'b', 2.0, 3, 'y') RETURNING name, n, note",
        2,
    ),
    "an update of literals": ("UPDATE w SET name = 'd', n = 9 WHERE id = 18", 1),
    "an update that computes": ("UPDATE w SET amount = amount + 1, n = n * 2 WHERE id = 19", 1),
    "an update of many rows": ("UPDATE w SET amount = amount + 1 WHERE id < 100", 1),
    "an update that returns": (
        "UPDATE w SET amount = amount + 1 WHERE id = 20 RETURNING name, amount, n, note",
        2,
    ),
    "an insert into an index": ("INSERT INTO once VALUES (%s, 'b')", 1),
    "an insert into two indexes": ("INSERT INTO twice VALUES (%s, -%s, 'b')", 1),
    "an upsert into an index": ("INSERT INTO behind VALUES (%s, 7) ON CONFLICT DO NOTHING", 1),
    "a delete": ("DELETE FROM w WHERE id = %s", 0),
    "an upsert that updates": (
        "INSERT INTO w VALUES (21, 'e', 1.00, 1, 'u') ON CONFLICT (id) DO UPDATE"
        " SET amount = w.amount + EXCLUDED.amount, n = EXCLUDED.n",
        1,
    ),
    "an upsert that inserts": (
        "INSERT INTO w VALUES (%s, 'e', 1.00, 1, 'u') ON CONFLICT (id) DO NOTHING",
        1,
    ),
    "a sum": ("SELECT sum(amount) FROM w WHERE id < 10", 1),
    # Not sorted by comparing one by one, though PostgreSQL counts no cost for that.
    "a count of distinct values": (
        "SELECT count(DISTINCT n), count(DISTINCT name) FROM w WHERE id < 150",
        2,
    ),
    "few distinct values": ("SELECT count(DISTINCT n) FROM w WHERE id < 12", 2),
    # Two of them in planning: the values of the statistics are tested at once.
    "a pattern": ("SELECT id FROM many WHERE name LIKE '%7%' AND id < 20", 3),
    # All literals that a column is compared with at once, though they are in arms of a join's.
    "alternatives of a join": (
        "SELECT many.id FROM many, w WHERE many.id = w.id AND ("
        + " OR ".join(f"many.kind = 'k{i}' AND many.size > {i} AND w.id = {i}" for i in range(9))
        + ")",
        6,
    ),
    # Two of them in planning: all columns at once.
    "conditions on several columns": (
        "SELECT id FROM many WHERE kind > 'k3' AND name > 'a1' AND id < 20",
        3,
    ),
    # Two of them in planning: the statistics are asked about the literal.
    "a protected key": ("SELECT name FROM keyed WHERE id = 2", 4),
}


@pytest.fixture
def tables(app, dba):
    dba.execute("GRANT pg_monitor TO app")
    app.execute(DDL)
    app.execute("ANALYZE w, keyed, many")
    app.execute("SET plan_cache_mode = force_generic_plan")
    yield app
    dba.execute("REVOKE pg_monitor FROM app")


def waits(connection) -> int:
    query = "SELECT value FROM confide.confide_stat_keeper WHERE name = 'session.answered_total'"
    return int(connection.execute(query).fetchone()[0])


def test_waits(tables):
    found = {}
    number = 1000
    for name, (sql, _) in STATEMENTS.items():
        for _ in range(3):
            number += 1
            before = waits(tables)
            tables.execute(sql.replace("%s", str(number)))
            found[name] = waits(tables) - before - 1
    most = {name: limit for name, (_, limit) in STATEMENTS.items()}
    assert {name: count for name, count in found.items() if count > most[name]} == {}


# Statements that write a table anew, and how many rows of it there are.
WRITTEN = {
    "CREATE TABLE made AS SELECT id, amount * 2 AS amount, name || 'x' AS name FROM w": "made",
    "CREATE MATERIALIZED VIEW made AS SELECT id, amount + n AS amount, name FROM w": "made",
    "SELECT id, n * 3 AS n INTO made FROM w": "made",
    "ALTER TABLE w ALTER note TYPE enc_varchar(30)": "w",
}


@pytest.mark.parametrize("sql", WRITTEN)
def test_new_tables(tables, dba, sql):
    """Bug: a wait for each row; rows that were held back are lost, or come twice."""
    tables.execute(
        "INSERT INTO w SELECT g, 'a' || g::text, g, g, 'x' FROM generate_series(201, 3000) g"
    )
    before = waits(tables)
    tables.execute(sql)
    assert waits(tables) - before < 40
    count = f"SELECT count(*), count(DISTINCT id), min(id), max(id) FROM {WRITTEN[sql]}"
    assert tables.execute(count).fetchone() == (3000, 3000, 1, 3000)
    if "name FROM" in sql or "AS name" in sql:
        wrong = "SELECT count(*) FROM made JOIN w USING (id) WHERE made.name < w.name"
        assert tables.execute(wrong).fetchone() == (0,)


def test_new_table_given_up(tables):
    """Rows that are held back go with their (sub)transaction, and the next table has its own."""
    make = "CREATE TABLE t AS SELECT id, 1 / (n - %s) AS n FROM w"
    for _ in range(2):
        with pytest.raises(psycopg.errors.DivisionByZero):
            tables.execute(make % "7")
    with tables.transaction():
        with pytest.raises(psycopg.errors.DivisionByZero), tables.transaction():
            tables.execute(make % "7")
        tables.execute(make % "9")
    assert tables.execute("SELECT count(n), count(*) FROM t").fetchone() == (200, 200)


def test_more_pairs_than_expected(tables):
    """The rows that a nested loop looks up are beyond what statistics know of: the planner expects
    one. Bug: their quals are asked about one by one."""
    tables.execute("CREATE TABLE line (number int PRIMARY KEY, item int)")
    tables.execute("INSERT INTO line SELECT g, g % 200 + 1 FROM generate_series(1, 1000) g")
    tables.execute("ANALYZE line")
    tables.execute("INSERT INTO line SELECT g, g % 200 + 1 FROM generate_series(9001, 9150) g")
    tables.execute("SET enable_hashjoin = off")
    tables.execute("SET enable_mergejoin = off")
    newest = "number BETWEEN 9000 AND 9999"
    query = f"SELECT count(*) FROM line, w WHERE {newest} AND w.id = item AND w.n < 8"
    explained = "\n".join(line for (line,) in tables.execute(f"EXPLAIN {query}"))
    assert "Nested Loop" in explained, explained
    before = waits(tables)
    assert tables.execute(query).fetchone() == (150,)
    assert waits(tables) - before < 12, explained


def test_an_index_made_later(tables):
    """In a session that has written to the table before: rows are placed in the index without
    comparing one by one."""
    tables.execute("CREATE TABLE later (id int PRIMARY KEY, v enc_int4)")
    tables.execute("INSERT INTO later SELECT g, (g * 7919) % 1009 FROM generate_series(1, 1000) g")
    tables.execute("CREATE INDEX ON later (v)")
    tables.execute("INSERT INTO later VALUES (2001, 6)")
    before = waits(tables)
    for number in range(2002, 2012):
        tables.execute(f"INSERT INTO later VALUES ({number}, {number % 100})")
    assert waits(tables) - before <= 12
