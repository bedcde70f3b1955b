"""psycopg 3 through the proxy: text and binary results, server-side parameters, pipelines,
COPY in all formats."""

import datetime as dt
import uuid
from decimal import Decimal

import psycopg
import pytest
from results import run

DDL = """
CREATE TABLE every (
    i int PRIMARY KEY, bo enc_bool, i2 enc_int2, i4 enc_int4, i8 enc_int8, f4 enc_float4,
    f8 enc_float8, nu enc_numeric(12, 3), te enc_text, vc enc_varchar(20), bp enc_bpchar(5),
    by enc_bytea, da enc_date, ti enc_time, ts enc_timestamp, tz enc_timestamptz,
    iv enc_interval, uu enc_uuid)
"""
ROW = (
    *(1, True, -7, 70000, 5_000_000_000, 1.5, -0.1, Decimal("1234.500"), "tëxt", "vc", "bp123"),
    *(b"\x00\xff", dt.date(2024, 2, 29), dt.time(12, 34, 56, 789), dt.datetime(2024, 1, 2, 3, 4)),
    *(dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC), dt.timedelta(days=3, seconds=7)),
    uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
)
NULLS = (2, *[None] * (len(ROW) - 1))
PLACES = ", ".join(["%s"] * len(ROW))


@pytest.fixture
def every(app):
    app.execute(DDL)
    app.execute("SET TimeZone = 'UTC'")
    app.execute(f"INSERT INTO every VALUES ({PLACES})", ROW)
    app.execute(f"INSERT INTO every VALUES ({PLACES})", NULLS)
    return app


@pytest.mark.parametrize("binary", [False, True])
def test_demo_queries(stack, expected, binary):
    with stack.connect_app() as connection, stack.connect_dba() as dba:
        for query, _ in expected:
            wanted = dba.cursor(binary=binary).execute(query.replace("payroll.", "payroll_plain."))
            got = connection.cursor(binary=binary).execute(query)
            assert got.fetchall() == wanted.fetchall()
            assert [c.type_code for c in got.description] == [
                c.type_code for c in wanted.description
            ]


@pytest.mark.parametrize("binary", [False, True])
def test_every_type(every, binary):
    """Python values go in as parameters and come out equal, in both formats."""
    rows = every.cursor(binary=binary).execute("SELECT * FROM every ORDER BY i").fetchall()
    assert rows == [ROW, NULLS]


@pytest.mark.parametrize("format", ["%s", "%b", "%t"])
@pytest.mark.parametrize("prepare", [False, True])
def test_parameters(every, format, prepare):
    """Parameters in conditions, typed and untyped, text and binary."""
    names = [d.name for d in every.execute("SELECT * FROM every").description]
    for name, value in zip(names[1:], ROW[1:], strict=True):
        query = f"SELECT i FROM every WHERE {name} = {format}"
        for _ in range(3):
            rows = every.execute(query, (value,), prepare=prepare).fetchall()
            assert rows == [(1,)], (name, value)


def test_parameter_expressions(every):
    query = "SELECT i4 + %s, te || %s, nu * %s, %s || vc, da + %s FROM every WHERE i = %s"
    row = every.execute(query, (5, "!", Decimal("0.5"), "<", 3, 1)).fetchone()
    assert row == (70005, "tëxt!", Decimal("617.2500"), "<vc", dt.date(2024, 3, 3))
    update = "UPDATE every SET te = %s, nu = nu + %s WHERE i4 = %s AND te LIKE %s RETURNING te, nu"
    row = every.execute(update, ("new", 1, 70000, "t%")).fetchone()
    assert row == ("new", Decimal("1235.500"))
    rows = every.execute("SELECT i FROM every WHERE i4 = ANY (%s)", ([70000, 3],))
    assert rows.fetchall() == [(1,)]


def test_null_parameters(every):
    assert every.execute("SELECT i FROM every WHERE te = %s", (None,)).fetchall() == []
    every.execute("UPDATE every SET te = %s, i4 = %s WHERE i = 1", (None, None))
    assert every.execute("SELECT te, i4 FROM every WHERE i = 1").fetchone() == (None, None)


def test_executemany(every):
    with every.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO every (i, te, nu) VALUES (%s, %s, %s)",
            [(i, f"row {i}", Decimal(i) / 8) for i in range(10, 60)],
        )
        cursor.executemany("SELECT te FROM every WHERE i = %s", [(10,), (59,)], returning=True)
        assert cursor.fetchall() == [("row 10",)]
        assert cursor.nextset()
        assert cursor.fetchall() == [("row 59",)]
    assert every.execute("SELECT sum(nu) FROM every WHERE i > 9").fetchone()[0] == Decimal(
        sum(round(Decimal(i) / 8, 3) for i in range(10, 60))
    )


def test_pipeline(every):
    with every.pipeline():
        cursors = [every.execute("SELECT te, i4 + %s FROM every WHERE i = 1", (n,)) for n in (1, 2)]
        every.execute("INSERT INTO every (i, te) VALUES (%s, %s)", (50, "piped"))
        third = every.execute("SELECT te FROM every WHERE te = %s", ("piped",))
    assert [c.fetchone() for c in cursors] == [("tëxt", 70001), ("tëxt", 70002)]
    assert third.fetchall() == [("piped",)]


def test_pipeline_error(every):
    """An error in a pipeline comes in its place; what follows is skipped; then all is well."""
    with pytest.raises(psycopg.errors.DivisionByZero), every.pipeline():
        first = every.execute("SELECT te FROM every WHERE i = %s", (1,))
        every.execute("SELECT 1 / (i4 - i4) FROM every WHERE i = %s", (1,))
        every.execute("SELECT te FROM every")
    assert first.fetchone() == ("tëxt",)
    assert every.execute("SELECT i4 FROM every WHERE i = 1").fetchone() == (70000,)


@pytest.mark.parametrize("options", ["", "WITH (FORMAT csv, HEADER)", "WITH (FORMAT binary)"])
def test_copy(every, options):
    """COPY out and in again, whatever the format and however the blocks are cut."""
    with every.cursor().copy(f"COPY every TO STDOUT {options}") as copy:
        data = b"".join(bytes(block) for block in copy)
    assert b"cfd1." not in data
    every.execute("CREATE TABLE again (LIKE every)")
    for size in (1, 7, 8192):
        every.execute("TRUNCATE again")
        with every.cursor().copy(f"COPY again FROM STDIN {options}") as copy:
            for start in range(0, len(data), size):
                copy.write(data[start : start + size])
        assert every.execute("SELECT * FROM again ORDER BY i").fetchall() == [ROW, NULLS]


def test_copy_columns_and_query(every):
    with every.cursor().copy("COPY every (te, i, nu) FROM STDIN WITH (FORMAT csv)") as copy:
        copy.write(b'"a ""quoted"", one\nline",7,1.5\n,8,\n"",9,2\n')
    rows = every.execute("SELECT i, te, nu FROM every WHERE i > 5 ORDER BY i").fetchall()
    assert rows == [
        (7, 'a "quoted", one\nline', Decimal("1.500")),
        (8, None, None),
        (9, "", Decimal("2.000")),
    ]
    with every.cursor().copy("COPY (SELECT te, nu + 1 FROM every WHERE i = 7) TO STDOUT") as copy:
        assert b"".join(map(bytes, copy)) == b'a "quoted", one\\nline\t2.500\n'


def test_copy_error(every):
    """A bad value in COPY is an error as in PostgreSQL; nothing of it stays."""
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):  # noqa: SIM117
        with every.cursor().copy("COPY every (i, i4) FROM STDIN") as copy:
            copy.write(b"70\t1\n71\tnonsense\n")
    assert every.execute("SELECT count(*) FROM every WHERE i >= 70").fetchone() == (0,)
    with pytest.raises(psycopg.errors.UniqueViolation):  # noqa: SIM117
        with every.cursor().copy("COPY every (i, i4) FROM STDIN") as copy:
            copy.write(b"70\t1\n70\t2\n")
    assert len(every.execute("SELECT te FROM every").fetchall()) == 2


def test_result_looks_plain(every):
    """What a client learns of the columns: plain types with their modifiers."""
    cursor = every.execute("SELECT nu, vc, te, i4 FROM every")
    described = [(d.type_code, d.precision, d.scale, d.internal_size) for d in cursor.description]
    assert [d[0] for d in described] == [1700, 1043, 25, 23]
    assert described[0][1:3] == (12, 3)


def test_describe_statement(every):
    """What a client learns of the parameters: plain types, too."""
    connection = every.pgconn
    connection.prepare(b"s", b"SELECT i4 FROM every WHERE te = $1 AND nu > $2 AND i = $3")
    described = connection.describe_prepared(b"s")
    assert [described.param_type(n) for n in range(3)] == [25, 1700, 23]
    assert described.ftype(0) == 23


def test_notify_and_listen(stack, every):
    every.execute("LISTEN news")
    with stack.connect_app() as other:
        other.execute("NOTIFY news, 'hello'")
    note = next(every.notifies())
    assert note.payload == "hello"


def test_password_is_checked(stack):
    url = stack.app_url.replace("app:", "app:wrong")
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(url)


def test_admin_console(stack):
    url = stack.app_url.rsplit("/", 1)[0] + "/confide"
    with psycopg.connect(url, autocommit=True) as connection:
        assert connection.execute("SHOW VERSION").fetchall()


def test_long_in_list(every):
    values = ", ".join(str(n) for n in range(1, 2000))
    assert run(every, f"SELECT i FROM every WHERE i4 - 69999 IN ({values})").rows == [("1",)]
