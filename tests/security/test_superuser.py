"""What a superuser who connects directly gets for protected columns: export envelopes, or refusals.
No operator, cast, constant or trick returns a value, or an oracle for one."""

import psycopg
import pytest
from results import run

REFUSED = {"42501", "0A000", "42883", "42846", "42804", "22P02", "42725"}


@pytest.fixture
def emp(app):
    app.execute(
        "CREATE TABLE emp (id int PRIMARY KEY, name enc_text, pay enc_int4, tax enc_int4, "
        "born enc_date, rate enc_numeric(8, 2), at enc_timestamptz, ok enc_bool)"
    )
    app.execute(
        "INSERT INTO emp VALUES "
        "(1, 'Ada', 5200, 11, '1815-12-10', 0.5, '2024-01-01 00:00+00', true), "
        "(2, 'Bob', 4100, 11, '1990-01-01', 0.25, '2024-02-01 00:00+00', false), "
        "(3, 'Cyd', 5200, 12, '1990-01-01', 0.25, NULL, NULL)"
    )
    app.execute("CREATE TABLE open (id int, note text, n int)")
    app.execute("INSERT INTO open VALUES (1, 'Ada', 5200)")
    app.execute("CREATE INDEX emp_pay ON emp (pay)")
    return app


def test_sees_envelopes(emp, dba):
    for row in run(dba, "SELECT name, pay, tax, born, rate, at, ok FROM emp").rows:
        assert all(value is None or value.startswith("cfd1.") for value in row)


def test_envelopes_tell_nothing(emp, dba):
    """Equal values have different envelopes; the same value has another each time."""
    query = "SELECT pay, tax FROM emp ORDER BY id"
    first, second = run(dba, query).rows, run(dba, query).rows
    seen = [value for row in first + second for value in row]
    assert len(set(seen)) == len(seen)
    lengths = {len(value) for value in seen}
    assert len(lengths) == 1


def test_binary_output(emp, dba):
    for name, pay in dba.cursor(binary=True).execute("SELECT name, pay FROM emp").fetchall():
        assert b"Ada" not in bytes(name)
        assert bytes(pay)[:1] == b"\xcf"
    with dba.cursor().copy("COPY emp TO STDOUT (FORMAT binary)") as copy:
        data = b"".join(map(bytes, copy))
    assert b"Ada" not in data
    assert (5200).to_bytes(4, "big") not in data


TRIES = [
    # Constants.
    "SELECT id FROM emp WHERE pay = 5200",
    "SELECT id FROM emp WHERE pay > 5000::enc_int4",
    "SELECT id FROM emp WHERE name = 'Ada'",
    "SELECT id FROM emp WHERE name LIKE 'A%'",
    "SELECT id FROM emp WHERE born < date '1900-01-01'",
    "SELECT id FROM emp WHERE pay BETWEEN 5000 AND 6000",
    "SELECT id FROM emp WHERE pay IN (5200, 4100)",
    "SELECT id FROM emp WHERE pay = (SELECT n FROM open)",
    "SELECT emp.id FROM emp JOIN open ON pay = n",
    "SELECT emp.id FROM emp JOIN open ON name = note",
    # Casts.
    "SELECT pay::int FROM emp",
    "SELECT pay::text FROM emp",
    "SELECT name::text FROM emp",
    "SELECT CAST(pay AS bigint) FROM emp",
    "SELECT pay::enc_int8 FROM emp",
    "SELECT ok::bool FROM emp",
    "SELECT id FROM emp WHERE ok",
    "SELECT 5200::enc_int4",
    "SELECT '5200'::enc_int4",
    "SELECT n::enc_int4 FROM open",
    # Arithmetic: one from nothing (x / x), then counting up.
    "SELECT pay / pay FROM emp",
    "SELECT pay - pay FROM emp",
    "SELECT pay + pay FROM emp",
    "SELECT pay * rate FROM emp",
    "SELECT -pay FROM emp",
    "SELECT id FROM emp WHERE pay = tax + tax",
    "SELECT id FROM emp WHERE pay / pay + pay / pay < tax",
    "SELECT extract(year FROM born) FROM emp",
    "SELECT length(name) FROM emp",
    "SELECT name || name FROM emp",
    "SELECT substring(name FROM 1 FOR 1) FROM emp",
    "SELECT upper(name) FROM emp",
    # Aggregates that compute.
    "SELECT sum(pay) FROM emp",
    "SELECT avg(pay) FROM emp",
    # Between columns.
    "SELECT id FROM emp WHERE pay > tax",
    "SELECT id FROM emp WHERE pay = tax",
    # Into plain columns.
    "INSERT INTO open SELECT id, name, pay FROM emp",
    "UPDATE open SET n = pay FROM emp WHERE emp.id = open.id",
    "ALTER TABLE emp ALTER COLUMN pay TYPE int",
]


@pytest.mark.parametrize("sql", TRIES)
def test_refused(emp, dba, sql):
    outcome = run(dba, sql)
    assert outcome.sqlstate in REFUSED, outcome
    assert "5200" not in outcome.message.replace(sql, "")
    # And the session is not hurt by it.
    assert len(run(dba, "SELECT pay FROM emp").rows) == 3


@pytest.mark.parametrize("sql", TRIES)
def test_refused_as_the_application_role(emp, dba, sql):
    """The role is not the key: a superuser who becomes `app` has no client session."""
    dba.execute("SET SESSION AUTHORIZATION app")
    assert run(dba, sql).sqlstate in REFUSED
    dba.execute("RESET SESSION AUTHORIZATION")


def test_column_made_plain(emp, dba):
    """The superuser can change a column's type to text: envelopes are in it, at most."""
    for using in ("", " USING name::text"):
        outcome = run(dba, f"ALTER TABLE emp ALTER COLUMN name TYPE text{using}")
        if outcome.sqlstate is None:
            for (name,) in run(dba, "SELECT name FROM emp").rows:
                assert name.startswith("cfd1.")


def test_text_of_an_identifier(emp, dba):
    """Ways from a protected value to something printable give an envelope at most."""
    for sql in (
        "SELECT row_to_json(emp)::text FROM emp",
        "SELECT emp::text FROM emp",
        "SELECT format('%s', pay) FROM emp",
        "SELECT concat(name, '') FROM emp",
        "SELECT array_agg(pay)::text FROM emp",
        "SELECT string_agg(quote_literal(name), ',') FROM emp",
        "SELECT to_jsonb(name)::text FROM emp",
        "SELECT xmlforest(name)::text FROM emp",
        "SELECT min(pay) FROM emp",
        "SELECT max(name) FROM emp",
    ):
        outcome = run(dba, sql)
        for row in outcome.rows:
            assert "Ada" not in (row[0] or "")
            assert "5200" not in (row[0] or "")
        assert outcome.rows == [] or any("cfd1." in (r[0] or "cfd1.") for r in outcome.rows)


def test_application_in_a_trap(emp, dba):
    """What the superuser hides in the application's path gets no value out, either."""
    schema = dba.execute("SELECT current_schema()").fetchone()[0]
    dba.execute(
        f"CREATE FUNCTION {schema}.trap() RETURNS trigger LANGUAGE plpgsql AS $$\n"
        "BEGIN INSERT INTO open VALUES (9, NEW.name, NEW.pay); RETURN NEW; END $$"
    )
    dba.execute("CREATE TRIGGER trap BEFORE UPDATE ON emp FOR EACH ROW EXECUTE FUNCTION trap()")
    outcome = run(emp, "UPDATE emp SET pay = 77 WHERE id = 1")
    found = run(dba, "SELECT note, n FROM open WHERE id = 9").rows
    assert all("Ada" not in str(row) and "77" not in row for row in found)
    assert outcome.sqlstate is not None or found
    dba.execute("DROP TRIGGER trap ON emp")
    # PL/pgSQL converts between any types by way of text: that gives envelopes.
    dba.execute(
        f"CREATE OR REPLACE FUNCTION {schema}.trap() RETURNS trigger LANGUAGE plpgsql AS $$\n"
        "DECLARE x text; n int;\n"
        "BEGIN x := NEW.name; INSERT INTO open VALUES (8, x); n := NEW.pay; "
        "INSERT INTO open VALUES (8, n::text); RETURN NEW; END $$"
    )
    dba.execute("CREATE TRIGGER trap BEFORE UPDATE ON emp FOR EACH ROW EXECUTE FUNCTION trap()")
    run(emp, "UPDATE emp SET pay = 78 WHERE id = 1")
    for row in run(dba, "SELECT note FROM open WHERE id = 8").rows:
        assert "Ada" not in row[0]
        assert "78" not in row[0].removeprefix("cfd1.")[:2]
    dba.execute("DROP TRIGGER trap ON emp")


def test_forged_identifiers(emp, dba):
    """A datum that no function of ours made is not a value. A superuser may declare casts that
    show identifiers, and make some up: no value comes of it, and nothing to compare with."""
    dba.execute("CREATE CAST (pg_lsn AS enc_int4) WITHOUT FUNCTION")
    dba.execute("CREATE CAST (enc_int4 AS pg_lsn) WITHOUT FUNCTION")
    try:
        seen = run(dba, "SELECT pay::pg_lsn FROM emp ORDER BY id")
        assert all(int(row[0].split("/")[1], 16) != 5200 for row in seen.rows)
        for forged in ("0/0", "0/1", "0/1450", "FFFFFFFF/FFFFFFFF", "1000/1", "7/8"):
            constant = f"'{forged}'::pg_lsn::enc_int4"
            for sql in (
                f"SELECT {constant}",
                f"SELECT id FROM emp WHERE pay = {constant}",
                f"SELECT {constant} + {constant}",
                f"INSERT INTO emp (id, pay) VALUES (9, {constant})",
            ):
                assert run(dba, sql).sqlstate is not None, sql
    finally:
        dba.execute("DROP CAST (pg_lsn AS enc_int4)")
        dba.execute("DROP CAST (enc_int4 AS pg_lsn)")
    assert run(emp, "SELECT pay FROM emp ORDER BY id").rows == [("5200",), ("4100",), ("5200",)]


def test_modifiers_make_no_constants(stack, emp, dba):
    """An export envelope enters a column as it is, or not at all. Were it rounded or cut on the
    way, a superuser had 0, 10, 100 and first letters, to compare a column's values with."""
    emp.execute("CREATE TABLE exact (p enc_numeric(10, 2), s enc_varchar(8), t enc_timestamp(6))")
    emp.execute("INSERT INTO exact VALUES (123.45, 'Ada', '2020-01-01 10:00:00.5')")
    (row,) = run(dba, "SELECT p, s, t FROM exact").rows
    dba.execute(f"SET confide.restore_ticket = '{stack.ticket('app', '--other-columns')}'")
    dba.execute(
        "CREATE TABLE bare (p enc_numeric(10, 2), p2 enc_numeric(4, -1), p3 enc_numeric(2, -9), "
        "s enc_varchar(8), s2 enc_varchar(1), t enc_timestamp(6), t2 enc_timestamp(0))"
    )
    for column, value, kind in (
        *(("p2", row[0], "enc_numeric(4, -1)"), ("p3", row[0], "enc_numeric(2, -9)")),
        *(("s2", row[1], "enc_varchar(1)"), ("t2", row[2], "enc_timestamp(0)")),
    ):
        assert (
            run(dba, f"INSERT INTO bare ({column}) VALUES ('{value}'::{kind})").sqlstate == "42501"
        )
        assert run(dba, f"SELECT '{value}'::{kind}").sqlstate == "42501"
        refused = "22001" if column == "s2" else "42501"
        assert run(dba, f"INSERT INTO bare ({column}) VALUES ('{value}')").sqlstate == refused
        with (
            pytest.raises(psycopg.Error),
            dba.cursor().copy(f"COPY bare ({column}) FROM STDIN") as c,
        ):
            c.write(f"{value}\n")
    assert run(dba, "SELECT count(*) FROM bare").rows == [("0",)]
    # What a restore does, also into a wider column.
    dba.execute("ALTER TABLE bare ADD w enc_numeric(14, 4), ADD x enc_varchar(99)")
    values = ", ".join(f"'{row[i]}'" for i in (0, 1, 2, 0, 1))
    assert run(dba, f"INSERT INTO bare (p, s, t, w, x) VALUES ({values})").sqlstate is None
    dba.execute("GRANT SELECT ON bare TO app")
    assert run(emp, "SELECT p, s, t, w, x FROM bare").rows == [
        ("123.45", "Ada", "2020-01-01 10:00:00.5", "123.4500", "Ada")
    ]


def test_index_and_analyze_work(stack, emp, dba):
    """What a superuser must be able to do: maintenance of a client's indexes, and of others with
    a restore ticket. ANALYZE goes over columns that may not be compared."""
    assert run(emp, "SELECT id FROM emp WHERE pay = 5200 ORDER BY id").rows == [("1",), ("3",)]
    for sql in ("REINDEX TABLE emp", "VACUUM FULL emp", "ANALYZE emp", "CLUSTER emp USING emp_pay"):
        assert run(dba, sql).sqlstate is None, sql
    analyzed = "SELECT attname FROM pg_stats WHERE tablename = 'emp' AND schemaname = '{}'"
    schema = dba.execute("SHOW search_path").fetchone()[0].strip('"')
    assert ("born",) not in run(dba, analyzed.format(schema)).rows
    assert run(dba, "CREATE INDEX emp_born ON emp (born)").sqlstate == "42501"
    dba.execute(f"SET confide.restore_ticket = '{stack.ticket('app')}'")
    for sql in (
        "CREATE INDEX emp_born ON emp (born)",
        "REINDEX TABLE emp",
        "VACUUM FULL emp",
        "ANALYZE emp",
        "CLUSTER emp USING emp_pay",
        "CREATE UNIQUE INDEX emp_name ON emp (name)",
    ):
        assert run(dba, sql).sqlstate is None, sql
    assert run(emp, "SELECT id FROM emp WHERE pay = 5200 ORDER BY id").rows == [("1",), ("3",)]


def test_no_session_functions(emp, dba):
    """Whatever the schema confide offers, called without a key, gives no session."""
    functions = dba.execute(
        "SELECT p.oid::regprocedure::text, pronargs FROM pg_proc p "
        "JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname = 'confide'"
    ).fetchall()
    for name, arguments in functions:
        call = name.split("(")[0] + "(" + ", ".join(["NULL"] * arguments) + ")"
        run(dba, f"SELECT {call}")
        run(dba, f"SELECT * FROM {call}")
        if arguments == 1:
            run(dba, f"SELECT {name.split('(')[0]}('\\x00112233')")
    assert run(dba, "SELECT pay + pay FROM emp").sqlstate in REFUSED


def test_error_details_for_the_superuser(emp, dba):
    """DETAIL of a violated constraint shows no value."""
    emp.execute("ALTER TABLE emp ADD CHECK (pay < 9000)")
    with pytest.raises(psycopg.Error) as caught:
        emp.execute("INSERT INTO emp (id, name, pay) VALUES (5, 'Secret', 9001)")
    assert caught.value.sqlstate == "23514"
