"""Commands that rewrite or completely read tables: VACUUM FULL, CLUSTER, ALTER TABLE, ANALYZE,
REINDEX, TRUNCATE, COPY between tables. Values and indexes remain the same."""

import pytest
from results import run

ROWS = 500


@pytest.fixture
def t(app):
    app.execute("CREATE TABLE t (i int PRIMARY KEY, n enc_int4, s enc_text, x enc_numeric(9, 1))")
    with app.cursor().copy("COPY t FROM STDIN") as copy:
        for i in range(ROWS):
            copy.write_row((i, i * 37 % ROWS, f"text {i}" if i % 9 else None, i / 2))
    app.execute("CREATE INDEX t_n ON t (n)")
    app.execute("CREATE INDEX t_s ON t (s)")
    return app


CHECK = "SELECT i, n, s, x FROM t ORDER BY i"


def verify(connection, expected):
    assert run(connection, CHECK).rows == expected
    connection.execute("SET enable_seqscan = off")
    assert run(connection, "SELECT i FROM t WHERE n = 37").rows == [("1",)]
    assert run(connection, "SELECT i FROM t WHERE s = 'text 77'").rows == [("77",)]
    assert run(connection, "SELECT n FROM t ORDER BY n LIMIT 3").rows == [("0",), ("1",), ("2",)]
    connection.execute("SET enable_seqscan = on")


STATEMENTS = [
    "VACUUM FULL t",
    "CLUSTER t USING t_n",
    "VACUUM (ANALYZE) t",
    "VACUUM (FREEZE) t",
    "ANALYZE t",
    "REINDEX TABLE t",
    "REINDEX INDEX CONCURRENTLY t_n",
    "ALTER TABLE t ADD COLUMN extra int DEFAULT 5",
    "ALTER TABLE t ADD COLUMN extra timestamptz DEFAULT clock_timestamp()",
    "ALTER TABLE t ALTER COLUMN i TYPE bigint",
    "ALTER TABLE t SET UNLOGGED",
    "ALTER TABLE t SET TABLESPACE pg_default",
    "DROP INDEX t_n; CREATE INDEX CONCURRENTLY t_n ON t (n)",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_rewrite(t, second, statement):
    expected = run(t, CHECK).rows
    t.execute("UPDATE t SET x = x WHERE i % 3 = 0")  # some dead rows
    for part in statement.split("; "):
        t.execute(part)
    verify(t, expected)
    verify(second, expected)


def test_alter_type(t, second):
    """The column's values become those of another protected type."""
    before = run(t, CHECK).rows
    t.execute("ALTER TABLE t ALTER COLUMN n TYPE enc_int8")
    t.execute("ALTER TABLE t ALTER COLUMN x TYPE enc_numeric(12, 3)")
    rows = run(second, CHECK).rows
    assert [r[:3] for r in rows] == [r[:3] for r in before]
    assert [r[3] for r in rows] == [r[3] + "00" for r in before]
    t.execute("INSERT INTO t VALUES (9999, 5000000000, 'big', 1.2345)")
    assert run(t, "SELECT n, x FROM t WHERE i = 9999").rows == [("5000000000", "1.235")]


def test_alter_type_with_constants(t, second):
    """Checks, indexes and defaults of the column are printed and read again."""
    t.execute(
        "ALTER TABLE t ADD CHECK (n < 4000), ALTER COLUMN n SET DEFAULT 5, ADD CHECK (s <> '')"
    )
    t.execute("CREATE INDEX few ON t (i) WHERE n > 30")
    t.execute("ALTER TABLE t ALTER COLUMN n TYPE enc_int8, ALTER COLUMN s TYPE enc_varchar(50)")
    assert run(second, "INSERT INTO t (i, n) VALUES (8000, 4000)").sqlstate == "23514"
    assert run(second, "INSERT INTO t (i, s) VALUES (8000, '')").sqlstate == "23514"
    assert run(second, "INSERT INTO t (i) VALUES (8000) RETURNING n").rows == [("5",)]
    assert run(t, "SELECT i FROM t WHERE n > 30 AND i = 37").sqlstate is None


def test_alter_using(t):
    t.execute("ALTER TABLE t ALTER COLUMN s TYPE enc_varchar(20) USING upper(s)")
    assert run(t, "SELECT s FROM t WHERE i = 1").rows == [("TEXT 1",)]


def test_protect_a_plain_column(app, second):
    """A column that was plain becomes protected: its plain values go through the keeper. The
    table gets the access method by itself, and its indexes stay."""
    app.execute("CREATE TABLE o (i int PRIMARY KEY, n int UNIQUE CHECK (n <> i), s text)")
    app.execute("CREATE INDEX o_s ON o (s)")
    app.execute("INSERT INTO o SELECT g, g * 2, 'row ' || g FROM generate_series(1, 50) g")
    app.execute("ALTER TABLE o ALTER COLUMN s TYPE enc_text")
    assert run(second, "SELECT n, s FROM o WHERE s = 'row 7'").rows == [("14", "row 7")]
    # Constants of the old type would meet the new one.
    app.execute("ALTER TABLE o ADD CONSTRAINT more CHECK (n > 0)")
    protect = "ALTER TABLE o ALTER COLUMN n TYPE enc_int4"
    assert run(app, protect).sqlstate == "42501"
    app.execute("ALTER TABLE o DROP CONSTRAINT more, DROP CONSTRAINT o_check")
    app.execute(protect)
    app.execute("ALTER TABLE o ADD CHECK (n > 0)")
    assert run(second, "INSERT INTO o VALUES (51, -1)").sqlstate == "23514"
    assert run(second, "INSERT INTO o VALUES (51, 14)").sqlstate == "23505"
    assert run(second, "SELECT i FROM o WHERE n = 14").rows == [("7",)]


def test_add_to_a_plain_table(app, second):
    app.execute("CREATE TABLE o (i int, s text)")
    app.execute("INSERT INTO o SELECT g, 'row ' || g FROM generate_series(1, 50) g")
    app.execute("ALTER TABLE o ADD note enc_text DEFAULT 'none', ADD n enc_int4")
    second.execute("UPDATE o SET n = 5 WHERE i = 7")
    assert run(second, "SELECT s, note, n FROM o WHERE i = 7").rows == [("row 7", "none", "5")]
    assert run(app, "SELECT count(*) FROM o WHERE note = 'none' AND n IS NULL").rows == [("49",)]


def test_a_table_of_others(app, dba):
    """Whose table it is PostgreSQL checks first; a failure leaves all as it was."""
    dba.execute("CREATE TABLE others (i int, s text)")
    method = "SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 'others'"
    assert run(app, "ALTER TABLE others ALTER s TYPE enc_text").sqlstate == "42501"
    assert run(dba, method).rows == [("heap",)]
    dba.execute("ALTER TABLE others OWNER TO app; INSERT INTO others VALUES (1, 'x')")
    failing = "ALTER TABLE others ADD n enc_int4, ADD CHECK (i > 1)"
    assert run(app, failing).sqlstate == "23514"
    assert run(dba, method).rows == [("heap",)]


def test_truncate(t):
    t.execute("TRUNCATE t")
    assert run(t, CHECK).rows == []
    t.execute("INSERT INTO t VALUES (1, 37, 'text 77', 0)")
    assert run(t, "SELECT n, s FROM t").rows == [("37", "text 77")]


def test_insert_select_into_itself(t):
    t.execute("INSERT INTO t SELECT i + 1000, n, s, x FROM t")
    assert run(t, "SELECT count(*), count(DISTINCT s) FROM t").rows == [
        (str(2 * ROWS), str(ROWS - ROWS // 9 - 1))
    ]


def test_copy_out(t, second):
    with t.cursor().copy("COPY t TO STDOUT") as copy:
        lines = b"".join(bytes(block) for block in copy)
    second.execute("CREATE TABLE u (LIKE t)")
    with second.cursor().copy("COPY u FROM STDIN") as copy:
        copy.write(lines)
    assert run(t, CHECK.replace("FROM t", "FROM u")).rows == run(t, CHECK).rows
    assert b"cfd1." not in lines


def test_large_values(app):
    """Texts of 1 MB, empty ones, numerics of 1000 digits."""
    app.execute("CREATE TABLE big (i int, s enc_text, n enc_numeric)")
    text, digits = "xyz€" * 250_000, "7" * 1000
    app.execute("INSERT INTO big VALUES (1, %s, %s)", (text, digits))
    app.execute("INSERT INTO big VALUES (2, '', 0)")
    rows = run(app, "SELECT length(s), s, n, n * n FROM big ORDER BY i").rows
    assert rows[0] == ("1000000", text, digits, str(int(digits) ** 2))
    assert rows[1] == ("0", "", "0", "0")
    assert run(app, "SELECT i FROM big WHERE s LIKE '%€xyz€'").rows == [("1",)]
    app.execute("UPDATE big SET s = s || s WHERE i = 1")
    assert run(app, "SELECT octet_length(s) FROM big WHERE i = 1").rows == [("3000000",)]
