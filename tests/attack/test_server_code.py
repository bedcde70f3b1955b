"""C code that a superuser loads into the server, and decoding of its WAL.

Mechanism: PostgreSQL's memory and WAL contain identifiers; only the keeper opens and computes, and
it requires the session's grants, whoever calls. Right: such code sees identifiers and envelopes,
and moves no value; decoded changes have envelopes. Bug: a library is all that a superuser needs.
"""

import contextlib

import psycopg
import pytest
from libraries import built
from results import run
from stack import POSTGRES, RUN, Stack

SECRET, PAY = "Kimberley the secret", 52_034

SOURCE = """
#include "postgres.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(spy_raw);
Datum spy_raw(PG_FUNCTION_ARGS) { PG_RETURN_INT64((int64) PG_GETARG_DATUM(0)); }
PG_FUNCTION_INFO_V1(spy_forged);
Datum spy_forged(PG_FUNCTION_ARGS) { return (Datum) PG_GETARG_INT64(0); }
PG_FUNCTION_INFO_V1(spy_shown);
Datum spy_shown(PG_FUNCTION_ARGS)
{
    Oid output;
    bool varlena;
    getTypeOutputInfo(get_fn_expr_argtype(fcinfo->flinfo, 0), &output, &varlena);
    PG_RETURN_TEXT_P(cstring_to_text(OidOutputFunctionCall(output, PG_GETARG_DATUM(0))));
}
"""

FUNCTIONS = [
    "CREATE FUNCTION raw(enc_int4) RETURNS int8 AS '{file}', 'spy_raw' LANGUAGE C STRICT",
    "CREATE FUNCTION raw(enc_text) RETURNS int8 AS '{file}', 'spy_raw' LANGUAGE C STRICT",
    "CREATE FUNCTION forged(int8) RETURNS enc_text AS '{file}', 'spy_forged' LANGUAGE C STRICT",
    "CREATE FUNCTION shown(enc_text) RETURNS text AS '{file}', 'spy_shown' LANGUAGE C STRICT",
]


@pytest.fixture(scope="module")
def library(stack, tmp_path_factory):
    """The superuser's library, where the server can read it."""
    return built(stack, "spy", SOURCE, tmp_path_factory.mktemp("library"))


@pytest.fixture
def emp(app, dba, library):
    app.execute("CREATE TABLE emp (id int PRIMARY KEY, name enc_text, pay enc_int4)")
    app.execute(f"INSERT INTO emp VALUES (1, '{SECRET}', {PAY}), (2, 'Bo', 100)")
    for function in FUNCTIONS:
        dba.execute(function.format(file=library))
    dba.execute("CREATE TABLE loot (seen text)")
    dba.execute("GRANT ALL ON loot TO app")
    return app


def test_library_without_a_client(emp, dba, attack):
    raw = dba.execute("SELECT raw(pay) FROM emp").fetchall()
    attack.attempt("a library reads what a row holds", (PAY,) in raw)
    shown = dba.execute("SELECT shown(name) FROM emp").fetchall()
    attack.attempt("a library calls the output function", SECRET in str(shown))
    for name, sql in {
        "an identifier made anew, in another row": (
            "UPDATE emp SET name = forged((SELECT raw(name) FROM emp WHERE id = 1)) WHERE id = 2"
        ),
        "an identifier made anew, in a table of his own": (
            "CREATE TABLE mine AS SELECT forged(raw(name)) AS name FROM emp"
        ),
        "an identifier of another type": "SELECT forged(raw(pay)) || forged(raw(pay)) FROM emp",
    }.items():
        done = run(dba, sql)
        attack.attempt(name, done.sqlstate is None)
        assert done.sqlstate in ("42501", "42804", "22023", "XX000", "08P01"), done
    assert emp.execute("SELECT name FROM emp ORDER BY id").fetchall() == [(SECRET,), ("Bo",)]


def test_library_in_a_clients_session(emp, dba, attack):
    """It runs in the victim's session, and gets the victim's envelopes."""
    dba.execute(
        "CREATE FUNCTION take() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN INSERT INTO loot SELECT shown(name) FROM emp; RETURN NEW; END'"
    )
    trigger = "CREATE TRIGGER take BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION take()"
    dba.execute(trigger)
    emp.execute("SELECT name FROM emp").fetchall()
    with contextlib.suppress(psycopg.Error):
        emp.execute("INSERT INTO emp VALUES (3, 'Cy', 7)")
    seen = dba.execute("SELECT seen FROM loot").fetchall()
    attack.attempt("a library calls the output function for a client", SECRET in str(seen))


@pytest.fixture(scope="module")
def decoded():
    made = Stack(RUN.with_name(f"{RUN.name}-decoded"), POSTGRES + "wal_level = logical\n")
    made.up()
    yield made
    made.down("--remove")


def test_logical_decoding(decoded, attack):
    """Decoding of changes calls output functions, in a superuser's session."""
    with decoded.connect_app() as app, decoded.connect_dba() as dba:
        dba.execute("SELECT pg_create_logical_replication_slot('spy', 'test_decoding')")
        app.execute("CREATE TABLE emp (id int PRIMARY KEY, name enc_text, pay enc_int4)")
        dba.execute("ALTER TABLE emp REPLICA IDENTITY FULL")
        app.execute(f"INSERT INTO emp VALUES (1, '{SECRET}', {PAY})")
        app.execute("UPDATE emp SET pay = pay + 1")
        app.execute("DELETE FROM emp")
        changes = dba.execute("SELECT data FROM pg_logical_slot_get_changes('spy', NULL, NULL)")
        text = str(changes.fetchall())
        dba.execute("SELECT pg_drop_replication_slot('spy')")
    assert "emp: INSERT" in text
    attack.attempt("logical decoding", SECRET in text or str(PAY) in text)
