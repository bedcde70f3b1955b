"""ALTER TABLE ... ALTER ... TYPE between plain columns and the three families, in all directions.

Mechanism: between plain, enc_ and rnd_ the server rewrites the table, with casts; from the
keeper's families to plain ones, and to and from soft_, the proxy reads the values under a lock and
writes them anew, in one transaction. Right answer: the rows, keys and rights are those of before,
and what fails leaves all as it was. With a bug envelopes or encodings are stored as values, rows
get others' values, or somebody else than the owner sees them.
"""

import itertools

import psycopg
import pytest

FAMILIES = ["", "enc_", "rnd_", "soft_"]
PAIRS = [pair for pair in itertools.product(FAMILIES, FAMILIES) if pair[0] != pair[1]]
ROWS = [
    (1, 7, "a\tb\\N\n", "12.50"),
    (2, -7, "", "-0.05"),
    (3, 2147483647, "žluťoučký 'kůň'", None),
    (4, 0, None, "0.00"),
]


def types(family):
    return f"{family}int4", f"{family}text", f"{family}numeric(10,2)"


def fill(app, family):
    number, text, price = types(family)
    app.execute(
        f"CREATE TABLE t (id int PRIMARY KEY, n {number} NOT NULL UNIQUE, s {text}, p {price})"
    )
    for row in ROWS:
        app.execute("INSERT INTO t VALUES (%s, %s, %s, %s)", row)
    app.execute("CREATE INDEX by_s ON t (s)")


def rows(connection):
    got = connection.execute("SELECT id, n, s, p FROM t ORDER BY id").fetchall()
    return [(i, n, s, None if p is None else str(p)) for i, n, s, p in got]


def raw_starts(dba):
    return {
        str(value)[:5] for row in dba.execute("SELECT n, s, p FROM t").fetchall() for value in row
    }


@pytest.mark.parametrize(
    ("start", "end"), PAIRS, ids=[f"{a or 'plain'}-{b or 'plain'}" for a, b in PAIRS]
)
def test_each_direction(app, dba, start, end):
    """Values stay, keys work, and new rows take the new family's literals."""
    fill(app, start)
    app.execute("ALTER TABLE t ALTER p SET DEFAULT 1.5")
    app.execute("ALTER TABLE t ALTER p DROP DEFAULT")
    for column, new in zip("nsp", types(end), strict=True):
        app.execute(f"ALTER TABLE t ALTER {column} TYPE {new}")
    assert rows(app) == ROWS
    prefix = {"enc_": "cfd1.", "rnd_": "cell1", "soft_": "soft1"}
    if end:
        assert raw_starts(dba) == {prefix[end], "None"}
    app.execute("ALTER TABLE t ALTER p SET DEFAULT 1.5")
    with pytest.raises(psycopg.errors.UniqueViolation):
        app.execute("INSERT INTO t VALUES (9, -7, 'x', 1)")
    with pytest.raises(psycopg.errors.NotNullViolation):
        app.execute("INSERT INTO t VALUES (9, NULL, 'x', 1)")
    app.execute("INSERT INTO t VALUES (5, 50, 'five')")
    assert rows(app) == [*ROWS, (5, 50, "five", "1.50")]
    app.execute("SET enable_seqscan = off")
    assert app.execute("SELECT id FROM t WHERE s = 'five' OR n = 7 ORDER BY id").fetchall() == [
        (1,),
        (5,),
    ]


@pytest.mark.parametrize(("start", "end"), [("enc_", ""), ("", "soft_"), ("soft_", "rnd_")])
def test_in_a_transaction(app, second, start, end):
    """A change within the client's transaction is taken back with it, and the connection goes on
    knowing what the column is."""
    fill(app, start)
    with app.transaction(force_rollback=True):
        app.execute(f"ALTER TABLE t ALTER n TYPE {end}int4")
        assert rows(app) == ROWS
        app.execute("UPDATE t SET n = 8 WHERE id = 1")
    assert rows(app) == ROWS
    app.execute("INSERT INTO t VALUES (6, 60, 's', 1)")
    assert app.execute("SELECT id FROM t WHERE n = 60").fetchall() == [(6,)]
    second.execute(f"SET search_path = {app.execute('SHOW search_path').fetchone()[0]}")
    assert second.execute("SELECT id FROM t WHERE n = 60").fetchall() == [(6,)]


def test_failures_leave_all(app):
    """What PostgreSQL refuses is refused with its error; the table and the connection stay good."""
    fill(app, "enc_")
    app.execute("CREATE VIEW v AS SELECT n FROM t")
    for statement, state in [
        ("ALTER TABLE t ALTER n TYPE int4", "0A000"),  # the view
        ("ALTER TABLE t ALTER n TYPE soft_int4(eq)", "0A000"),
        ("ALTER TABLE t ALTER s TYPE int4", "0A000"),  # another type at once
        ("ALTER TABLE t ALTER p TYPE numeric(3,2)", "22003"),  # a value does not fit
        ("ALTER TABLE t ALTER s TYPE text, ALTER p TYPE numeric(10,2)", "42846"),
        ("ALTER TABLE t ALTER s TYPE text; SELECT 1", "0A000"),
        ("ALTER TABLE t ALTER s TYPE text USING s", "42846"),
        ("ALTER TABLE t ALTER s TYPE soft_text USING s", "42846"),
    ]:
        with pytest.raises(psycopg.Error) as error:
            app.execute(statement)
        assert error.value.sqlstate == state, (statement, str(error.value))
        assert app.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert rows(app) == ROWS
    with pytest.raises(psycopg.Error), app.transaction():
        app.execute("ALTER TABLE t ALTER p TYPE numeric(3,2)")
    assert rows(app) == ROWS


def test_not_the_owner(app, dba, schema):
    """Somebody else is refused, and a superuser without a client gets no values."""
    fill(app, "enc_")
    dba.execute("CREATE TABLE others (n enc_int4)")
    dba.execute(f"GRANT USAGE ON SCHEMA {schema} TO app; GRANT ALL ON others TO app")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="must be owner"):
        app.execute("ALTER TABLE others ALTER n TYPE int4")
    with pytest.raises(psycopg.Error), app.transaction():
        app.execute("ALTER TABLE others ALTER n TYPE int4")
    for family in ["enc_", "rnd_", "soft_"]:
        if family != "enc_":
            app.execute(f"ALTER TABLE t ALTER s TYPE {family}text")
        for statement in [
            "ALTER TABLE t ALTER s TYPE text",
            "ALTER TABLE t ALTER s TYPE text USING s",
            "ALTER TABLE t ALTER s TYPE text USING s::text",
            "ALTER TABLE t ALTER s TYPE varchar",
        ]:
            with pytest.raises(psycopg.Error) as error:
                dba.execute(statement)
            assert error.value.sqlstate in ("42846", "0A000", "42501"), statement
    assert rows(app) == ROWS


@pytest.mark.parametrize("family", ["enc_", "rnd_", "soft_"])
def test_functions_of_the_place(app, dba, family):
    """A function of the row's place gives the new family's values, not the old one's: else
    envelopes, cells or encodings would be stored as text."""
    fill(app, family)
    dba.execute(
        f"CREATE FUNCTION old(tid) RETURNS {family}text LANGUAGE sql"
        " AS 'SELECT s FROM t WHERE ctid = $1'"
    )
    with pytest.raises(psycopg.errors.CannotCoerce):
        dba.execute("ALTER TABLE t ALTER s TYPE text USING old(ctid)")
    assert rows(app) == ROWS


def test_encodings_are_added(app, dba):
    """A column of soft_ gets other encodings, and with them another key."""
    app.execute("CREATE TABLE t (id int PRIMARY KEY, n soft_int4(eq))")
    app.execute("INSERT INTO t SELECT i FROM generate_series(1, 12000) i")
    app.execute("UPDATE t SET n = 5 WHERE id = 1")
    app.execute("UPDATE t SET n = 7 WHERE id = 12000")
    notices = []
    app.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    app.execute("ALTER TABLE t ALTER n TYPE soft_int4(eq, ord)")
    assert app.execute("SELECT id FROM t WHERE n > 5").fetchall() == [(12000,)]
    assert app.execute("SELECT id, n FROM t ORDER BY n, id LIMIT 2").fetchall() == [
        (1, 5),
        (12000, 7),
    ]
    assert len([n for n in notices if n.startswith("confide: ")]) >= 2
