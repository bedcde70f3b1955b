"""UNIQUE, PRIMARY KEY, foreign keys, CHECK, NOT NULL, DEFAULT, generated columns and
ON CONFLICT on protected columns."""

import psycopg
import pytest
from results import run


def test_unique(app):
    app.execute("CREATE TABLE t (i int, u enc_text UNIQUE)")
    app.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL), (4, NULL)")
    assert run(app, "INSERT INTO t VALUES (5, 'a')").sqlstate == "23505"
    assert run(app, "UPDATE t SET u = 'a' WHERE i = 2").sqlstate == "23505"
    assert run(app, "SELECT i, u FROM t ORDER BY i").rows == [
        ("1", "a"),
        ("2", "b"),
        ("3", None),
        ("4", None),
    ]


def test_errors_and_plans_show_the_application_its_values(app):
    """As in PostgreSQL; the server's side of the same error has an envelope."""
    app.execute("CREATE TABLE t (k enc_int4 PRIMARY KEY, name enc_text CHECK (name <> 'no'))")
    app.execute("INSERT INTO t VALUES (4711, 'O''Hara')")
    with pytest.raises(psycopg.errors.UniqueViolation) as duplicate:
        app.execute("INSERT INTO t VALUES (4711)")
    assert duplicate.value.diag.message_detail == "Key (k)=(4711) already exists."
    plan = app.execute("EXPLAIN SELECT * FROM t WHERE name = 'O''Hara'").fetchall()
    assert any("'O''Hara'" in line for (line,) in plan)


def test_primary_and_foreign_key(app):
    app.execute("CREATE TABLE parent (k enc_int4 PRIMARY KEY, v text)")
    app.execute("CREATE TABLE child (i int, k enc_int4 REFERENCES parent ON DELETE CASCADE)")
    app.execute("INSERT INTO parent VALUES (1, 'one'), (2, 'two')")
    app.execute("INSERT INTO child VALUES (10, 1), (20, 2), (30, NULL)")
    assert run(app, "INSERT INTO child VALUES (40, 3)").sqlstate == "23503"
    app.execute("DELETE FROM parent WHERE k = 1")
    assert run(app, "SELECT i, k FROM child ORDER BY i").rows == [("20", "2"), ("30", None)]
    assert run(app, "INSERT INTO parent VALUES (NULL, 'x')").sqlstate == "23502"


def test_foreign_key_update(app):
    app.execute("CREATE TABLE parent (k enc_text PRIMARY KEY)")
    app.execute("CREATE TABLE child (i int, k enc_text REFERENCES parent ON UPDATE CASCADE)")
    app.execute("INSERT INTO parent VALUES ('old')")
    app.execute("INSERT INTO child VALUES (1, 'old')")
    app.execute("UPDATE parent SET k = 'new' WHERE k = 'old'")
    assert run(app, "SELECT k FROM child").rows == [("new",)]
    app.execute("ALTER TABLE child DROP CONSTRAINT child_k_fkey")
    app.execute("UPDATE child SET k = 'gone'")
    statement = "ALTER TABLE child ADD FOREIGN KEY (k) REFERENCES parent"
    assert run(app, statement).sqlstate == "23503"


def test_deferred_unique(app):
    app.execute("CREATE TABLE t (k enc_int4 UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    app.execute("INSERT INTO t VALUES (1), (2)")
    with app.transaction():
        app.execute("UPDATE t SET k = k + 1")
    assert run(app, "SELECT k FROM t ORDER BY k").rows == [("2",), ("3",)]


def test_on_conflict(app):
    app.execute("CREATE TABLE t (k enc_text PRIMARY KEY, n enc_int4, i int)")
    app.execute("INSERT INTO t VALUES ('a', 1, 1)")
    app.execute("INSERT INTO t VALUES ('a', 2, 2) ON CONFLICT DO NOTHING")
    assert run(app, "SELECT n, i FROM t").rows == [("1", "1")]
    app.execute(
        "INSERT INTO t AS x VALUES ('a', 5, 3), ('b', 7, 4) "
        "ON CONFLICT (k) DO UPDATE SET n = x.n + excluded.n, i = excluded.i"
    )
    assert run(app, "SELECT k, n, i FROM t ORDER BY k").rows == [("a", "6", "3"), ("b", "7", "4")]
    app.execute(
        "INSERT INTO t VALUES ('b', 1, 9) ON CONFLICT (k) DO UPDATE SET n = 100 "
        "WHERE t.n > 50 RETURNING n"
    )
    assert run(app, "SELECT n FROM t WHERE k = 'b'").rows == [("7",)]


def test_check(app):
    app.execute("CREATE TABLE t (n enc_int4 CHECK (n > 10), s enc_text CHECK (length(s) < 5))")
    app.execute("INSERT INTO t VALUES (11, 'abcd'), (NULL, NULL)")
    assert run(app, "INSERT INTO t VALUES (10, 'a')").sqlstate == "23514"
    assert run(app, "INSERT INTO t VALUES (20, 'abcde')").sqlstate == "23514"
    assert run(app, "UPDATE t SET n = n - 5").sqlstate == "23514"
    assert run(app, "ALTER TABLE t ADD CHECK (n > 11)").sqlstate == "23514"


def test_default(app):
    app.execute("CREATE TABLE t (i int, n enc_int4 DEFAULT 42, s enc_text DEFAULT 'unknown')")
    app.execute("INSERT INTO t (i) VALUES (1)")
    app.execute("INSERT INTO t VALUES (2, DEFAULT, DEFAULT), (3, 5, 'x')")
    assert run(app, "SELECT * FROM t ORDER BY i").rows == [
        ("1", "42", "unknown"),
        ("2", "42", "unknown"),
        ("3", "5", "x"),
    ]


def test_fast_default(app):
    app.execute("CREATE TABLE t (i int, s enc_text)")
    app.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    app.execute("ALTER TABLE t ADD COLUMN n enc_int4 DEFAULT 7")
    app.execute("ALTER TABLE t ADD COLUMN m enc_text")
    app.execute("INSERT INTO t (i) VALUES (3)")
    assert run(app, "SELECT i, s, n, m FROM t ORDER BY i").rows == [
        ("1", "a", "7", None),
        ("2", "b", "7", None),
        ("3", None, "7", None),
    ]
    assert run(app, "SELECT count(*) FROM t WHERE n = 7").rows == [("3",)]


def test_typmod(app):
    app.execute("CREATE TABLE t (v enc_varchar(3), c enc_bpchar(4), n enc_numeric(5, 2))")
    app.execute("INSERT INTO t VALUES ('abc', 'ab', 123.456)")
    assert run(app, "SELECT v, c, n FROM t").rows == [("abc", "ab  ", "123.46")]
    assert run(app, "INSERT INTO t VALUES ('abcd', 'a', 1)").sqlstate == "22001"
    assert run(app, "INSERT INTO t VALUES ('abc   ', 'abcd  ', 1)").sqlstate is None
    assert run(app, "INSERT INTO t VALUES ('a', 'abcde', 1)").sqlstate == "22001"
    assert run(app, "INSERT INTO t VALUES ('a', 'a', 1000)").sqlstate == "22003"


@pytest.mark.parametrize("level", ["NOT NULL"])
def test_not_null(app, level):
    app.execute(f"CREATE TABLE t (n enc_int4 {level})")
    assert run(app, "INSERT INTO t VALUES (NULL)").sqlstate == "23502"
    app.execute("INSERT INTO t VALUES (1)")


def test_generated(app):
    app.execute("CREATE TABLE t (n enc_int4, twice enc_int4 GENERATED ALWAYS AS (n + n) STORED)")
    app.execute("INSERT INTO t VALUES (21)")
    assert run(app, "SELECT n, twice FROM t").rows == [("21", "42")]
    app.execute("UPDATE t SET n = 4")
    assert run(app, "SELECT twice FROM t WHERE twice = 8").rows == [("8",)]


def test_values_on_their_way(app, second):
    """Checks, generated columns, policies, triggers and conditions of indexes see what a statement
    of another session is about to store, whichever column it comes from. With the bug they are
    refused values that have not been stored there yet."""
    for statement in (
        "CREATE TABLE src (i int, a enc_int4, s enc_text, n int)",
        "INSERT INTO src VALUES (1, 10, 'abc', 30), (2, 20, 'abd', 40)",
        "CREATE TABLE old (i int, p enc_int4 CHECK (p < 500))",
        "CREATE TABLE t (i int, p enc_int4 CHECK (p < 1000),"
        " q enc_int4 GENERATED ALWAYS AS (p + p) STORED, s enc_text CHECK (s LIKE 'a%'))",
        "CREATE INDEX ON t (i) WHERE p > 15",
        "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS "
        "$$BEGIN INSERT INTO old VALUES (NEW.i, NEW.p); RETURN NEW; END$$",
        "CREATE TRIGGER keep BEFORE INSERT OR UPDATE ON t FOR EACH ROW "
        "WHEN (NEW.p > 5) EXECUTE FUNCTION keep()",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE t FORCE ROW LEVEL SECURITY",
        "CREATE POLICY p ON t USING (p < 2000) WITH CHECK (p + p < 2000)",
    ):
        app.execute(statement)
    second.execute("INSERT INTO t (i, p, s) SELECT i, a, s FROM src")
    second.execute("INSERT INTO t (i, p, s) SELECT i + 2, n, 'a' || n FROM src")
    second.execute("UPDATE t SET p = src.a + t.p FROM src WHERE src.i = t.i")
    assert run(second, "SELECT p, q, s FROM t ORDER BY p, s").rows == [
        ("20", "40", "abc"),
        ("30", "60", "a30"),
        ("40", "80", "a40"),
        ("40", "80", "abd"),
    ]
    assert run(second, "SELECT count(*), sum(p) FROM old").rows == [("6", "160")]
    assert run(second, "UPDATE t SET p = p + 990").sqlstate == "23514"
    # With what a policy or a view does in one with the rest of the statement.
    app.execute("CREATE VIEW v AS SELECT i, p + p AS twice FROM t WHERE s > 'aa'")
    assert run(second, "SELECT sum(twice), max(twice) FROM v").rows == [("120", "80")]
    second.execute("INSERT INTO src (i, a) SELECT i, max(twice) FROM v GROUP BY i")
    assert run(second, "SELECT sum(p) FROM t WHERE s LIKE 'ab%'").rows == [("60",)]


def test_operator_classes(app):
    """An index that names the operator class of the plain type, or for patterns, as Django's do,
    is one on the protected column. Bug: 42804, the class does not accept the type."""
    app.execute("CREATE TABLE t (i int, name enc_text, n enc_int4, code enc_varchar(9))")
    app.execute("INSERT INTO t SELECT g, 'n', g, 'c' FROM generate_series(1, 500) g")
    app.execute("UPDATE t SET name = 'name', code = 'code' WHERE i = 7")
    app.execute("CREATE INDEX names ON t (name text_pattern_ops, i int4_ops)")
    app.execute("CREATE UNIQUE INDEX numbers ON t USING btree (n int4_ops DESC)")
    app.execute("CREATE INDEX codes ON t (code varchar_pattern_ops)")
    app.execute("SET enable_seqscan = off")
    plan = str(app.execute("EXPLAIN SELECT i FROM t WHERE name LIKE 'na%'").fetchall())
    assert "names" in plan
    for condition in ("name LIKE 'na%'", "code = 'code'", "n = 7"):
        assert run(app, f"SELECT i FROM t WHERE {condition}").rows == [("7",)]
    assert run(app, "INSERT INTO t VALUES (1, 'x', 7)").sqlstate == "23505"
    refused = run(app, "CREATE INDEX ON t (n int8_ops)")
    assert refused.sqlstate == "42804"
