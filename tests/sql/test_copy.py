"""COPY FROM of protected columns beside a plaintext twin: rows and errors are the same.

Values are sent to the server in batches (1024 rows, or 256 kB), so the data here is longer than a
batch. Bug: a row gets another row's value, or an error names a different line than in PostgreSQL.
"""

import psycopg
import pytest

COLUMNS = "k int, i enc_int4, t enc_text, n enc_numeric(8,2), v enc_varchar(6), d enc_date"
ROWS = 2600


def plain(ddl):
    return ddl.replace("enc_", "")


def row(at):
    """Fields of a row; NULLs in runs, so that batches of columns begin at different rows."""
    null = r"\N"
    return [
        str(at),
        null if at % 7 == 3 else str(at - 1000),
        null if 900 < at < 1500 else f"text {at} \\\\ \\t x" + "y" * (at % 50),
        f"{at}.5",
        null if at < 1100 else f"v{at}",
        f"2020-01-{at % 28 + 1:02}",
    ]


def lines(rows, delimiter="\t"):
    return "".join(delimiter.join(fields) + "\n" for fields in rows)


def copy(connection, sql, data, piece=1 << 16):
    with connection.cursor().copy(sql) as stream:
        for start in range(0, len(data), piece):
            stream.write(data[start : start + piece])


@pytest.fixture
def twins(app, plain_twin):
    for connection, ddl in ((app, COLUMNS), (plain_twin, plain(COLUMNS))):
        connection.execute(f"CREATE TABLE t ({ddl})")
    return app, plain_twin


def same(twins, sql="SELECT * FROM t ORDER BY k"):
    protected, plaintext = (c.execute(sql).fetchall() for c in twins)
    assert protected == plaintext
    return plaintext


@pytest.mark.parametrize(
    ("options", "delimiter"),
    [("", "\t"), ("DELIMITER '@'", "@"), ("FORMAT csv, NULL '\\N', HEADER", ",")],
    ids=["text", "odd", "csv"],
)
@pytest.mark.parametrize("piece", [97, 1 << 20])
def test_rows(twins, options, delimiter, piece):
    data = lines((row(at) for at in range(ROWS)), delimiter)
    if "csv" in options:
        data = "a,b,c,d,e,f\n" + data
    for connection in twins:
        copy(connection, f"COPY t FROM STDIN {options and f'WITH ({options})'}", data, piece)
    assert len(same(twins)) == ROWS


def test_a_reference_that_looks_like_null(twins):
    """References are `@` and a number; here that is what stands for NULL."""
    data = lines(
        [[str(at), "@3" if at % 5 == 0 else "1", "x", "1", "v", "2020-01-01"] for at in range(20)]
    )
    for connection in twins:
        copy(connection, "COPY t FROM STDIN WITH (NULL '@3')", data)
    same(twins)


def test_binary(twins):
    protected, plaintext = twins
    copy(plaintext, "COPY t FROM STDIN", lines(row(at) for at in range(ROWS)))
    with plaintext.cursor().copy("COPY t TO STDOUT (FORMAT binary)") as stream:
        data = b"".join(stream)
    copy(protected, "COPY t FROM STDIN (FORMAT binary)", data)
    same(twins)


BAD = [
    (1300, 1, "12x"),
    (1300, 1, "9999999999"),
    (1301, 3, "1234567.1"),
    (1500, 4, "far too long"),
    (1499, 5, "2020-13-01"),
    (1200, 0, "seven"),
]


@pytest.mark.parametrize(("line", "column", "value"), BAD)
def test_errors_name_the_line(twins, line, column, value):
    rows = [row(at) for at in range(ROWS)]
    rows[line - 1][column] = value
    found = []
    for connection in twins:
        with pytest.raises(psycopg.Error) as error:
            copy(connection, "COPY t FROM STDIN", lines(rows))
        diag = error.value.diag
        place = diag.context.split('"')[0] if diag.context else None
        found.append((diag.sqlstate, place))
    assert found[0] == found[1]
    assert f"line {line}" in found[0][1]
    assert same(twins) == []


@pytest.mark.parametrize("condition", ["i IS NOT NULL", "d < '2020-01-20'", "t LIKE 'text%'"])
def test_constraints_and_where(twins, condition):
    data = lines(row(at) for at in range(ROWS))
    for connection in twins:
        copy(connection, f"COPY t FROM STDIN WHERE {condition}", data)
    same(twins)
    found = []
    for connection in twins:
        connection.execute("TRUNCATE t")
        connection.execute(f"ALTER TABLE t ADD CHECK (({condition}) IS NOT FALSE AND n < 1700)")
        with pytest.raises(psycopg.errors.CheckViolation) as error:
            copy(connection, "COPY t FROM STDIN", data)
        found.append(error.value.diag.context.split(":")[0])
    assert found[0] == found[1]


def test_unique(twins):
    found = []
    for connection in twins:
        connection.execute("CREATE UNIQUE INDEX ON t (n)")
        rows = [row(at) for at in range(ROWS)]
        rows[2000][3] = "1234.5"
        with pytest.raises(psycopg.errors.UniqueViolation) as error:
            copy(connection, "COPY t FROM STDIN", lines(rows))
        found.append(error.value.diag.context.split(":")[0])
    assert found[0] == found[1]


def test_partitions_defaults_and_triggers(app, plain_twin):
    for connection, enc in ((app, "enc_"), (plain_twin, "")):
        connection.execute(
            f"CREATE TABLE t (k int, i {enc}int4, t {enc}text DEFAULT 'none')"
            " PARTITION BY RANGE (k)"
        )
        for at in range(3):
            connection.execute(
                f"CREATE TABLE t{at} PARTITION OF t"
                f" FOR VALUES FROM ({at * 1000}) TO ({at * 1000 + 1000})"
            )
        connection.execute(
            "CREATE FUNCTION twice() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN NEW.i := NEW.i + NEW.i; RETURN NEW; END'"
        )
        connection.execute(
            "CREATE TRIGGER twice BEFORE INSERT ON t1 FOR EACH ROW EXECUTE FUNCTION twice()"
        )
        data = lines([str(at * 7 % 2600), str(at)] for at in range(ROWS))
        copy(connection, "COPY t (k, i) FROM STDIN", data)
    same((app, plain_twin), "SELECT * FROM t ORDER BY k, i")


def test_long_values(twins):
    """Longer than a batch, than the values that go into one, than the redo record."""
    data = lines([str(at), "1", "z" * (10 ** (at % 7)), "1", "v", "2020-01-01"] for at in range(40))
    for connection in twins:
        copy(connection, "COPY t FROM STDIN", data)
    same(twins, "SELECT k, length(t), substr(t, 1, 3) FROM t ORDER BY k")


def test_wrong_rows(twins):
    """What the server says of an earlier row comes first, and a row of the wrong shape is none."""
    for bad in ("1\t2\n", "1\t2\t3\t4\t5\t2020-01-01\t7\n"):
        for first in ("", "x\t1\tx\t1\tv\t2020-01-01\n"):
            found = []
            for connection in twins:
                with pytest.raises(psycopg.Error) as error:
                    copy(connection, "COPY t FROM STDIN", lines([row(1)]) + first + bad)
                found.append((error.value.sqlstate, error.value.diag.message_primary))
            assert found[0] == found[1]


def test_references_need_a_batch(dba, app):
    """The server takes a reference in a COPY with a batch of the column only."""
    app.execute("CREATE TABLE t (i enc_int4)")
    for value in ("@0", "@1", "@", "@x", "@4294967297"):
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            copy(dba, "COPY t FROM STDIN", value + "\n")
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            dba.execute(f"INSERT INTO t VALUES ('{value}')")
