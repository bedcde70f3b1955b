"""Rows whose values the client has fitted to their columns are stored without waiting for the
keeper (proxy setting fit_values; docs/durability.md, "Leased identifiers").

Right: the same rows and errors as with plaintext, in the same statements; no statement waits, the
commit once. Bugs: a value that is not coerced as PostgreSQL does, or stored before it is certain;
an error at the commit instead of the statement; a row that another session reads before its values
are there.
"""

import datetime
import struct
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import psycopg
import pytest
from psycopg.types.numeric import Int4
from waiting import until_waits

COLUMNS = (
    "id int PRIMARY KEY, v {0}int4, s {0}varchar(6), c {0}bpchar(4), n {0}numeric(7,2), d {0}date"
)
DAY = datetime.date(2024, 2, 29)
PROMOTIONS = ("Promote", "PromoteSearch", "PromoteRuns")


@pytest.fixture(scope="module")
def fitting(stack):
    with stack.another_proxy(fit_values="true") as (_, url):
        yield url


@pytest.fixture
def fit(stack, schema, fitting, app):
    with stack.connect_dba() as dba:
        dba.execute("GRANT pg_monitor TO app")
    with psycopg.connect(
        fitting, autocommit=True, options=f"-c search_path={schema}"
    ) as connection:
        connection.execute(f"CREATE TABLE t ({COLUMNS.format('enc_')})")
        connection.execute(f"CREATE TABLE p ({COLUMNS.format('')})")
        yield connection


def messages(connection):
    sql = "SELECT name, value FROM confide.confide_stat_keeper WHERE name LIKE 'session.messages.%'"
    return {name.rsplit(".", 1)[1]: int(value) for name, value in connection.execute(sql)}


class Counted:
    """What a block sent to the keeper, by kind."""

    def __init__(self, connection):
        self.connection = connection

    def __enter__(self):
        self.before = messages(self.connection)
        return self

    def __exit__(self, *failed):
        if failed[0] is None:
            self.after = messages(self.connection)

    def __getitem__(self, kind):
        return self.after.get(kind, 0) - self.before.get(kind, 0)

    def promotions(self):
        return sum(self[kind] for kind in PROMOTIONS)


def both(connection, sql, *values):
    for table in "tp":
        connection.execute(sql.replace("TABLE", table), *values)


def same(connection):
    rows = [connection.execute(f"SELECT * FROM {table} ORDER BY id").fetchall() for table in "tp"]
    assert rows[0] == rows[1]
    return rows[0]


def row(i):
    return (i, Int4(i), f"x{i}", "ab", Decimal(i) / 8, DAY)


def insert(connection, i):
    connection.execute("INSERT INTO t VALUES (%s, %s, %s, %s, %s, %s)", row(i))


LITERAL = "INSERT INTO TABLE VALUES ({0}, {0}, 'x{0}', 'ab', {0}.125, '2024-02-29')"


def test_no_statement_waits(fit):
    insert(fit, 0)
    with Counted(fit) as sent, fit.transaction():
        for i in range(1, 9):
            insert(fit, i)
        for i in range(11, 19):
            fit.execute(LITERAL.format(i).replace("TABLE", "t"))
        fit.execute("INSERT INTO t (v, id, s) VALUES (7, 50, 'a'), (NULL, 51, 'b'), (9, 52, 'c')")
        for i in range(1, 5):
            fit.execute("UPDATE t SET v = %s, s = 'new' WHERE id = %s", (Int4(-i), i))
    assert sent.promotions() == 0
    assert sent["Adopt"] == 21
    assert (sent["Fence"], sent["Lease"]) == (1, 0)
    rows = dict(fit.execute("SELECT id, v FROM t").fetchall())
    assert (rows[1], rows[5], rows[18], rows[50], rows[51]) == (-1, 5, 18, 7, None)
    # Each further lease is of more.
    with Counted(fit) as sent, fit.transaction():
        for i in range(100, 400):
            insert(fit, i)
    assert sent.promotions() == 0
    assert 1 <= sent["Lease"] <= 5
    assert fit.execute("SELECT sum(v) FROM t WHERE id >= 100").fetchone()[0] == sum(range(100, 400))


def test_as_plaintext(fit):
    both(fit, LITERAL.format(1))
    both(
        fit, "INSERT INTO TABLE VALUES (2, -2147483648, 'abcdef   ', 'a', 99999.994, '0001-01-01')"
    )
    both(
        fit,
        "INSERT INTO TABLE VALUES (3, 5, '', '', -0.005, 'epoch'),"
        " (4, 6, 'ä''ö', 'äöü', 1e3, '2024-1-2')",
    )
    both(
        fit,
        "INSERT INTO TABLE VALUES (%s, %s, %s, %s, %s, %s)",
        (5, Int4(1), "12345 ", "x ", Decimal("1.005"), DAY),
    )
    both(fit, "UPDATE TABLE SET s = 'long' || id, n = 12.345 WHERE id = 1")
    both(fit, "UPDATE TABLE SET n = %s, s = NULL WHERE id > 3", (Decimal("0.125"),))
    assert len(same(fit)) == 5
    errors = [
        ("INSERT INTO TABLE VALUES (9, 1, 'toolong')", "22001"),
        ("INSERT INTO TABLE VALUES (9, 1, 'a', 'longer')", "22001"),
        ("INSERT INTO TABLE VALUES (9, 1, 'a', 'b', 123456)", "22003"),
        ("UPDATE TABLE SET d = '2024-02-30' WHERE id = 1", "22008"),
        ("INSERT INTO TABLE VALUES (1, 1)", "23505"),
    ]
    for sql, state in errors:
        for table in "tp":
            fit.execute("BEGIN")
            insert(fit, 77)
            with pytest.raises(psycopg.Error) as failed:
                fit.execute(sql.replace("TABLE", table))
            assert failed.value.sqlstate == state, (sql, table)
            fit.execute("ROLLBACK")
    assert len(same(fit)) == 5


WIDER = "id int PRIMARY KEY, b {0}int8, f {0}float8, n {0}numeric(5,2), x {0}float4, c {0}bpchar(4)"
INT2, INT4, INT8, VARCHAR = 21, 23, 20, 1043


def wide(connection):
    for table, prefix in (("t", "enc_"), ("p", "")):
        connection.execute(f"DROP TABLE {table}")
        connection.execute(f"CREATE TABLE {table} ({WIDER.format(prefix)})")


def failed(connection, sql, *values):
    """How a statement fails with both tables."""
    errors = []
    for table in "tp":
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(sql.replace("TABLE", table), *values)
        told = caught.value.diag
        errors.append(
            (told.sqlstate, told.message_primary, told.message_detail, told.statement_position)
        )
    assert errors[0] == errors[1]
    return errors[0][0]


def test_wider_types(fit):
    """Literals and parameters of types narrower than the column's are cast by the client. Bug: they
    are promoted; another value or another error than the server's cast gives."""
    wide(fit)
    both(fit, "INSERT INTO TABLE VALUES (0, 0, 0, 0, 0, '')")
    statements = [
        ("INSERT INTO TABLE VALUES (1, 5, 6, 7, 8, 'ab'), (2, -5, -6, -7, -8, 'c')", ()),
        ("INSERT INTO TABLE VALUES (3, 3000000000, 3000000001, 70000 / 100, 70001, 'd')", ()),
        ("INSERT INTO TABLE VALUES (%s, %s, %s, %s, %s, %s)", (4, 5, 6, 7, 8, "ab")),
        ("INSERT INTO TABLE VALUES (%s, %s, %s, %s, %s, 'x')", (5, 70000, -70000, -999, 16777217)),
        ("UPDATE TABLE SET b = %s, f = %s, x = %s WHERE id = 4", (1, 9007199254740993, 2**62)),
        ("UPDATE TABLE SET b = 9, n = 9 WHERE id = 1", ()),
    ]
    with Counted(fit) as sent, fit.transaction():
        for sql, values in statements:
            both(fit, sql, values)
    # Both rows of the first statement are adopted at once. 70000 / 100 is not a literal.
    assert (sent["Adopt"], sent.promotions()) == (5, 1)
    assert len(same(fit)) == 6


def test_wider_errors(fit):
    wide(fit)
    assert failed(fit, "INSERT INTO TABLE (id, n) VALUES (9, 1000)") == "22003"
    assert failed(fit, "INSERT INTO TABLE (id, n) VALUES (%s, %s)", (9, 1000)) == "22003"
    assert failed(fit, "INSERT INTO TABLE (id, b) VALUES (9, 1e30)") == "22003"
    assert failed(fit, "INSERT INTO TABLE (id, b) VALUES (9, 99999999999999999999)") == "22003"
    for types, value in (
        ([INT2], b"70000"),
        ([INT2], b"1x"),
        ([INT4], b"5000000000"),
        ([INT8], b""),
    ):
        told = []
        for table in (b"t", b"p"):
            sql = b"INSERT INTO " + table + b" (id, n) VALUES (9, $1)"
            answer = fit.pgconn.exec_params(sql, [value], param_types=types)
            told.append([answer.error_field(ord(field)) for field in "CMDP"])
        assert told[0] == told[1]
        assert told[0][0] is not None
    assert same(fit) == []


def test_wider_is_not_told(fit):
    """Who asks is told the types that he has declared. In binary format values have these."""
    wide(fit)
    for table in (b"t", b"p"):
        sql = b"INSERT INTO " + table + b" (id, b, n, c) VALUES ($1, $2, $3, $4)"
        name = b"wider " + table
        types = [INT4, INT2, INT8, VARCHAR]
        fit.pgconn.prepare(name, sql, types)
        described = fit.pgconn.describe_prepared(name)
        assert [described.param_type(i) for i in range(4)] == types
        for i in range(2):
            values = [struct.pack(">i", i), struct.pack(">h", -i), struct.pack(">q", i), b"a"]
            done = fit.pgconn.exec_prepared(name, values, [1] * 4)
            assert done.error_message == b""
    assert len(same(fit)) == 2


def test_what_is_promoted(fit):
    """An indexed value may be compared by others before the commit; a computed one is not
    sealed."""
    insert(fit, 1)
    fit.execute("CREATE INDEX ON t (v)")
    with Counted(fit) as sent:
        insert(fit, 2)
    assert (sent["Adopt"], sent.promotions()) == (0, 1)
    with Counted(fit) as sent:
        fit.execute("UPDATE t SET s = 'new' WHERE id = 2")
    assert (sent["Adopt"], sent.promotions()) == (1, 0)
    fit.execute("SET enable_seqscan = off")
    assert fit.execute("SELECT s FROM t WHERE v = 2").fetchall() == [("new",)]
    with Counted(fit) as sent:
        fit.execute("UPDATE t SET n = n + 1, s = 'other' WHERE id = 2")
    assert (sent["Adopt"], sent.promotions()) == (0, 1)
    fit.execute("DROP INDEX t_v_idx")
    fit.execute("SET confide.adopt = off")
    with Counted(fit) as sent:
        insert(fit, 3)
    assert (sent["Adopt"], sent.promotions()) == (0, 1)
    # A name that the envelope does not say any more.
    fit.execute("SET confide.adopt = on")
    fit.execute("ALTER TABLE t RENAME COLUMN v TO w")
    insert(fit, 4)
    assert fit.execute("SELECT w FROM t ORDER BY id").fetchall() == [(1,), (2,), (3,), (4,)]


def test_some_columns(fit, stack, fitting, schema):
    """A session that may write some columns of a table leases identifiers of these. Bug: it asks
    for all, gets none, and its rows are promoted."""
    insert(fit, 1)
    options = f"-c search_path={schema}"
    with psycopg.connect(fitting, autocommit=True, options=options) as other:
        with Counted(other) as sent:
            for i in range(5):
                other.execute("UPDATE t SET s = %s WHERE id = 1", (f"s{i}",))
        assert (sent["Adopt"], sent["Lease"], sent.promotions()) == (5, 1, 0)


def test_used_elsewhere(fit):
    """A parameter that is rounded for a column is not rounded for what else it is used for."""
    insert(fit, 1)
    sql = "UPDATE t SET n = %(n)s WHERE %(n)s::numeric > 1.129::enc_numeric"
    assert fit.execute(sql.replace("::numeric", ""), {"n": Decimal("1.1299")}).rowcount == 1
    fit.execute("CREATE TABLE log (s enc_varchar(3))")
    fit.execute("CREATE RULE also AS ON INSERT TO p DO ALSO INSERT INTO log VALUES ('abc')")
    fit.execute("INSERT INTO p VALUES (1)")
    assert fit.execute("SELECT s FROM log").fetchall() == [("abc",)]


def test_savepoints(fit, second, schema):
    with fit.transaction():
        insert(fit, 1)
        fit.execute("SAVEPOINT a")
        insert(fit, 2)
        with pytest.raises(psycopg.errors.DivisionByZero):
            fit.execute("UPDATE t SET v = 1 / (v - v)")
        fit.execute("ROLLBACK TO a")
        insert(fit, 3)
        fit.execute("SAVEPOINT b")
        insert(fit, 4)
        fit.execute("RELEASE b")
    assert second.execute("SELECT id, v, s FROM t ORDER BY id").fetchall() == [
        (1, 1, "x1"),
        (3, 3, "x3"),
        (4, 4, "x4"),
    ]


def test_prepared_transaction(fit, second):
    insert(fit, 1)
    with Counted(fit) as sent:
        fit.execute("BEGIN")
        insert(fit, 2)
        fit.execute("PREPARE TRANSACTION 'adopted'")
        second.execute("COMMIT PREPARED 'adopted'")
    assert (sent["Fence"], sent["Adopt"]) == (1, 1)
    assert second.execute("SELECT v FROM t WHERE id = 2").fetchall() == [(2,)]


def test_workers_read_the_transaction(fit):
    for setting in ("parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size"):
        fit.execute(f"SET {setting} = 0")
    fit.execute("SET confide.enable_batch_aggregate = off")
    with fit.transaction():
        for i in range(200):
            insert(fit, i)
        plan = fit.execute("EXPLAIN SELECT v FROM t WHERE v > 5").fetchall()
        assert any("Gather" in line for (line,) in plan), plan
        found = fit.execute("SELECT v FROM t WHERE v > 5").fetchall()
    assert sorted(found) == [(i,) for i in range(6, 200)]


WIDE = 30  # columns: what is known of them is as large as a cache entry of PostgreSQL's


def test_columns_freed_meanwhile(fit, dba, stack, schema):
    """Reading the indexes of a table takes in changes by others, which frees what the backend knows
    of the table's columns. Bug: a row is stored by what stands in that memory then."""
    columns = ", ".join(f"v{i} enc_int4" for i in range(WIDE))
    fit.execute(f"CREATE TABLE wide (id int PRIMARY KEY, {columns})")
    computed = ", ".join(["abs(-5)"] * WIDE)
    fitted = ", ".join(str(i) for i in range(WIDE))
    # The first row opens the columns. Before the second one the table's definition changes.
    sql = (
        f"INSERT INTO wide VALUES (1, {computed}),"
        f" ((SELECT 2 FROM pg_advisory_xact_lock(20)), {fitted})"
    )
    dba.execute("SELECT pg_advisory_lock(20)")
    with Counted(fit) as sent, ThreadPoolExecutor(1) as pool:
        done = pool.submit(fit.execute, sql)
        until_waits(stack, fit, "advisory")
        dba.execute(f"ALTER TABLE {schema}.wide SET (autovacuum_enabled = off)")
        dba.execute("SELECT pg_advisory_unlock(20)")
        done.result()
    assert (sent["Adopt"], sent.promotions()) == (1, 1)
    assert fit.execute("SELECT * FROM wide WHERE id = 2").fetchone() == (2, *range(WIDE))


FREED = {
    "truncated": ["TRUNCATE t"],
    "dropped": ["DROP TABLE t", f"CREATE TABLE t ({COLUMNS.format('enc_')})"],
    "dropped column": [
        "ALTER TABLE t DROP COLUMN v, DROP COLUMN n, DROP COLUMN d",
        "ALTER TABLE t ADD v enc_int4, ADD n enc_numeric(7,2), ADD d enc_date",
    ],
}


@pytest.mark.parametrize("what", FREED)
@pytest.mark.parametrize("by", ["itself", "another", "the same transaction"])
def test_freed_between(fit, second, what, by):
    """Leases of columns that are gone are not used for those that have their names. Bug: a row with
    identifiers of a column that has been dropped."""
    sql = "INSERT INTO t (id, v, s, n) VALUES (%s, %s, %s, %s)"
    for turn in range(3):
        fit.execute("BEGIN")
        for i in range(5):
            fit.execute(sql, (100 * turn + i, Int4(i), f"x{i}", Decimal(i)))
        if by != "the same transaction":
            fit.execute("COMMIT")
        for statement in FREED[what]:
            (second if by == "another" else fit).execute(statement)
        with Counted(fit) as sent:
            for i in range(50, 55):
                fit.execute(sql, (100 * turn + i, Int4(i), f"y{i}", Decimal(i)))
        assert (sent["Adopt"], sent.promotions()) == (5, 0)
        if by == "the same transaction":
            fit.execute("COMMIT")
        found = "SELECT v, s, n FROM t WHERE id >= %s ORDER BY id"
        expected = [(i, f"y{i}", i) for i in range(50, 55)]
        for connection in (fit, second):
            assert connection.execute(found, (100 * turn + 50,)).fetchall() == expected
