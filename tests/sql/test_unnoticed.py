"""Calls and operators on plain values have the same meaning with the extension and without it.

Mechanism: PostgreSQL chooses among functions with the same name by the types of the arguments; for
untyped literals and parameters by the categories of the candidates' types, and by preferred types.
Protected types are candidates, too. Bug: `abs('5')`, `@ '5'`, `left('abc', '2')` and
`round(1::int4, $1)` are ambiguous (42725), directly and in bodies of functions, because protected
types have their own categories.

Every name for which the extension adds a function or an operator is called with every combination
of an untyped parameter and values of the plain types that it accepts, in a database with the
extension and in one without.
"""

import itertools
import subprocess

import psycopg
import pytest
from stack import PG_BIN

COMBINATIONS = 400  # of a name and a number of arguments
PLAIN = [
    *("bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "bpchar"),
    *("date", "time", "timestamp", "timestamptz", "interval"),
]

# Two untyped arguments of numbers, of which none has a preferred type.
KNOWN = [f'SELECT "{name}"($1, $2)' for name in ("round", "trunc")]

FUNCTIONS = """
SELECT DISTINCT f.proname, n FROM pg_proc f, generate_series(1, 4) n
WHERE f.pronamespace = 11 AND f.prokind IN ('f', 'a')
  AND EXISTS (SELECT FROM pg_proc e WHERE e.proname = f.proname AND e.oid >= 16384
              AND n BETWEEN e.pronargs - e.pronargdefaults AND e.pronargs)
  AND EXISTS (SELECT FROM pg_proc e WHERE e.proname = f.proname AND e.oid < 16384)
ORDER BY 1, 2
"""
OPERATORS = """
SELECT DISTINCT e.oprname, 1 + (e.oprleft <> 0)::int
FROM pg_operator e JOIN pg_operator p USING (oprname)
WHERE e.oid >= 16384 AND p.oid < 16384 AND (e.oprleft = 0) = (p.oprleft = 0) ORDER BY 1, 2
"""


def calls(name, count, operator):
    """The calls of a name, with `$n` for what has no type."""
    choices = itertools.product(["?", *PLAIN], repeat=count)
    if (len(PLAIN) + 1) ** count > COMBINATIONS:
        # All untyped, and those of which one or two are.
        choices = (c for c in choices if c.count("?") >= count - 1)
    for choice in choices:
        number = itertools.count(1)
        args = [f"${next(number)}" if t == "?" else f"NULL::{t}" for t in choice]
        if operator:
            yield f"SELECT {' ' if count == 1 else args[0]} OPERATOR(pg_catalog.{name}) {args[-1]}"
        else:
            yield f'SELECT "{name}"({", ".join(args)})'


def meaning(connection, call):
    """Types of the parameters and of the result, or the error."""
    pg = connection.pgconn
    prepared = pg.prepare(b"", call.encode())
    state = prepared.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
    if state is not None:
        return state.decode()
    told = pg.describe_prepared(b"")
    return tuple(told.param_type(i) for i in range(told.nparams)), told.ftype(0)


@pytest.fixture
def without(stack):
    """A database without the extension."""
    with stack.connect_dba() as dba:
        dba.execute("DROP DATABASE IF EXISTS unprotected")
        dba.execute("CREATE DATABASE unprotected TEMPLATE template0")
    with psycopg.connect(stack.dba_url.rsplit("/", 1)[0] + "/unprotected") as connection:
        yield connection
    with stack.connect_dba() as dba:
        dba.execute("DROP DATABASE unprotected WITH (FORCE)")


def test_calls_of_plain_values(stack, without):
    differences, tried = [], 0
    with stack.connect_dba() as dba:
        names = [(*row, False) for row in dba.execute(FUNCTIONS)]
        names += [(*row, True) for row in dba.execute(OPERATORS)]
        without.autocommit = True
        for name in names:
            for call in calls(*name):
                tried += 1
                expected, found = meaning(without, call), meaning(dba, call)
                if expected != found:
                    differences.append((call, expected, found))
    assert tried > 5000
    differences = [d for d in differences if d[0] not in KNOWN]
    assert not differences, "\n".join(map(str, differences))


BODY = """
CREATE FUNCTION pg_temp.f(t text) RETURNS float8 LANGUAGE plpgsql AS $$
BEGIN RETURN abs('-5') + round('2.5') + ceil('1.5') + floor('1.5') + sign('-3') + (@ '-1') + (+ '2')
    + length(left('abc', '2')) + length(right('abc', '2')) + length(substr('abc', '2')); END $$;
SELECT pg_temp.f('');
"""


def test_in_a_body(stack):
    done = subprocess.run(
        [PG_BIN / "psql", "-X", "-A", "-t", "-q", "-d", stack.dba_url],
        input=BODY.encode(),
        capture_output=True,
    )
    assert done.stdout.decode().strip() == "18", done.stderr


def test_names(stack):
    """No function of the schema confide has the name of one of PostgreSQL's: `confide.version()`
    was listed beside `version()` by whoever looks for functions by name. (pg_typeof is called in
    its place by the proxy, and the column has the name of the function.)"""
    with stack.connect_dba() as dba:
        doubled = """SELECT e.oid::regprocedure FROM pg_proc e
            WHERE e.pronamespace = 'confide'::regnamespace AND EXISTS (SELECT FROM pg_proc p
                WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname = e.proname
                  AND p.oid < 16384 AND p.proname <> 'pg_typeof')"""
        assert dba.execute(doubled).fetchall() == []


TYPES = """
CREATE TYPE pg_temp.odd;
CREATE FUNCTION pg_temp.odd_in(cstring) RETURNS pg_temp.odd STRICT LANGUAGE internal AS 'int4in';
CREATE FUNCTION pg_temp.odd_out(pg_temp.odd) RETURNS cstring STRICT LANGUAGE internal AS 'int4out';
CREATE TYPE pg_temp.odd ("Internallength" = 4, "Input" = odd_in, "Output" = odd_out);
CREATE TYPE pg_temp.odd (internallength = 4, input = pg_temp.odd_in, "Passedbyvalue");
CREATE AGGREGATE pg_temp.g(int) (sfunc = int4pl, stype = int4, "Sortop" = >)
"""
OTHERS = """
CREATE TABLE pg_temp.t (a pg_temp.nosuch);
CREATE TEMP TABLE t (a int);
ALTER TABLE t ADD COLUMN b pg_temp.nosuch;
CREATE FUNCTION pg_temp.f(a nosuch) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE VIEW pg_temp.v AS SELECT nosuch FROM t
"""


def test_carets(stack, without):
    """Errors and warnings of definitions have their place in the text, which psql shows by a caret
    (`create_type` of the regression suite). Bug: it is lost where the extension passes a definition
    on."""
    without.autocommit = True
    with stack.connect_dba() as dba, stack.connect_app() as proxy:
        expected = carets(without, TYPES)
        assert sum(place is not None for _, place in expected) >= 3
        assert carets(dba, TYPES) == expected
        expected = carets(without, OTHERS)
        assert sum(place is not None for _, place in expected) >= 3
        assert carets(dba, OTHERS) == carets(proxy, OTHERS) == expected


def carets(connection, statements):
    heard = []

    def hear(diag):
        heard.append((diag.sqlstate, diag.statement_position))

    connection.add_notice_handler(hear)
    for sql in statements.strip().split(";\n"):
        try:
            connection.execute(sql)
        except psycopg.Error as error:
            hear(error.diag)
    connection.remove_notice_handler(hear)
    return heard
