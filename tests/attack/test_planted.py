"""A superuser plants code that runs in the victim's session: triggers, policies, views, defaults,
rules, functions, operators. It compares a protected value with values known to the superuser, and
stores what it learns.

Mechanism: by default the keeper does in a client's session only what is covered by a grant that the
client has sealed, and no statement of the victim lets plain values meet its columns. Right: `loot`
stays empty, whether the victim's statement fails (42501) or not. Bug: `loot` has the values. Each
attack is also tried with `require_grants = false`, where it must succeed.
"""

import contextlib
import re
from pathlib import Path

import psycopg
import pytest
from stack import RUN, Stack

PAY, NAME = 5200, "Kim"

# With the schema's name: VACUUM, ANALYZE and REFRESH have a search path of their own from 17 on.
LOOT = (
    "INSERT INTO attack.loot SELECT e.id, g "
    "FROM attack.emp e JOIN generate_series(0, 9999) g ON e.pay = g"
)
LETTERS = (
    "INSERT INTO loot SELECT o, g FROM emp e, generate_series(1, 3) o, generate_series(32, 126) g, "
    "generate_series(1, 1) n WHERE substr(e.name, o::enc_int4, n::enc_int4) = chr(g)::enc_text"
)


def function(name, body, returns="trigger", rest="LANGUAGE plpgsql"):
    return f"CREATE OR REPLACE FUNCTION {name} RETURNS {returns} {rest} AS $attack$ {body} $attack$"


def once(body, result):
    """Runs once in the victim's session, although it writes rows itself."""
    return (
        "BEGIN IF session_user = 'app' AND NOT EXISTS (SELECT FROM attack.loot) THEN "
        "INSERT INTO attack.loot VALUES (0, 0); "
        f"{body}; END IF; RETURN {result}; END"
    )


TRIGGER = function("take()", once(LOOT, "NEW"))
PLANTED = function("planted()", once(LOOT, "true"), "boolean")

IMMUTABLE = function(
    "planted(int)",
    "BEGIN PERFORM attack.planted(); RETURN $1; END",
    "int",
    "LANGUAGE plpgsql IMMUTABLE",
)

LASTS = "a statement that lets plain values meet a column does so until its session ends"

READS = "SELECT id, pay FROM emp WHERE pay > 5000"
WRITES = "INSERT INTO emp VALUES (9, 100, 'Ann')"

ATTACKS = {
    "trigger before insert": (
        [TRIGGER, "CREATE TRIGGER take BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION take()"],
        WRITES,
    ),
    "trigger after insert, of the statement": (
        [
            TRIGGER,
            "CREATE TRIGGER take AFTER INSERT ON emp FOR EACH STATEMENT EXECUTE FUNCTION take()",
        ],
        WRITES,
    ),
    "trigger with dynamic SQL": (
        [
            function("take()", once(f"EXECUTE '{LOOT}'", "NEW")),
            "CREATE TRIGGER take BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION take()",
        ],
        WRITES,
    ),
    "trigger under another role": (
        [
            function("take()", once(f"SET LOCAL ROLE app; {LOOT}", "NEW")),
            "CREATE TRIGGER take BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION take()",
        ],
        WRITES,
    ),
    "policy in the text of a query": (
        [
            "ALTER TABLE emp ENABLE ROW LEVEL SECURITY",
            "ALTER TABLE emp FORCE ROW LEVEL SECURITY",
            "CREATE POLICY p ON emp USING (EXISTS (SELECT FROM generate_series(5000, 5400) g "
            "WHERE pay = g AND spy(id, g)))",
        ],
        READS,
    ),
    "deferred trigger": (
        [
            TRIGGER,
            "CREATE CONSTRAINT TRIGGER take AFTER INSERT ON emp DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION take()",
        ],
        WRITES,
    ),
    "trigger on another table": (
        [
            TRIGGER,
            "CREATE TRIGGER take BEFORE INSERT ON other FOR EACH ROW EXECUTE FUNCTION take()",
        ],
        "INSERT INTO other VALUES (1, 'x')",
    ),
    "text, letter by letter": (
        [
            function("take()", once(LETTERS, "NEW")),
            "CREATE TRIGGER take BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION take()",
        ],
        WRITES,
    ),
    "row policy": (
        [
            PLANTED,
            "ALTER TABLE emp ENABLE ROW LEVEL SECURITY",
            "ALTER TABLE emp FORCE ROW LEVEL SECURITY",
            "CREATE POLICY p ON emp USING (id < 0 OR planted())",
        ],
        READS,
    ),
    "view in place of the table": (
        [
            PLANTED,
            "ALTER TABLE emp RENAME TO emp_real",
            "CREATE VIEW emp AS SELECT id, pay, name FROM emp_real WHERE planted()",
            "GRANT ALL ON emp TO app",
            PLANTED.replace("FROM emp e", "FROM emp_real e"),
        ],
        READS,
    ),
    "view that joins": (
        [
            "ALTER TABLE emp RENAME TO emp_real",
            "CREATE VIEW emp AS SELECT e.id, e.pay, e.name FROM emp_real e JOIN "
            "generate_series(5000, 5400) g ON e.pay = g AND spy(e.id, g)",
            "GRANT ALL ON emp TO app",
        ],
        READS,
    ),
    "default": (
        [PLANTED, "ALTER TABLE emp ALTER COLUMN seen SET DEFAULT planted()"],
        WRITES,
    ),
    "check": (
        [PLANTED, "ALTER TABLE emp ADD CHECK (planted()) NOT VALID"],
        WRITES,
    ),
    "generated column": (
        [
            PLANTED,
            IMMUTABLE,
            "ALTER TABLE emp ADD COLUMN made int GENERATED ALWAYS AS (planted(id)) STORED",
        ],
        WRITES,
    ),
    "rule": (
        ["CREATE RULE r AS ON INSERT TO emp DO ALSO " + LOOT],
        WRITES,
    ),
    "function replaced": (
        [function("tax(enc_int4)", once(LOOT, "$1"), "enc_int4")],
        "SELECT tax(pay) FROM emp",
    ),
    "function that is its definer's": (
        [
            function(
                "tax(enc_int4)", once(LOOT, "$1"), "enc_int4", "LANGUAGE plpgsql SECURITY DEFINER"
            )
        ],
        "SELECT tax(pay) FROM emp",
    ),
    "operator before the search path": (
        [
            function("spied(enc_int4, enc_int4)", once(LOOT, "true"), "boolean"),
            "CREATE OPERATOR > (LEFTARG = enc_int4, RIGHTARG = enc_int4, FUNCTION = spied)",
        ],
        READS,
    ),
    "event trigger": (
        [
            function("at_ddl()", once(LOOT, "").replace("RETURN ;", ""), "event_trigger"),
            "CREATE EVENT TRIGGER at_ddl ON ddl_command_start EXECUTE FUNCTION at_ddl()",
        ],
        "CREATE TABLE later (id int, pay enc_int4)",
    ),
    "index on an expression": (
        [
            PLANTED,
            IMMUTABLE,
            "CREATE INDEX ON other (planted(id))",
        ],
        "INSERT INTO other VALUES (1, 'x')",
    ),
    "trigger before update": (
        [TRIGGER, "CREATE TRIGGER take BEFORE UPDATE ON emp FOR EACH ROW EXECUTE FUNCTION take()"],
        "UPDATE emp SET seen = true WHERE id = 1",
    ),
    "trigger after delete": (
        [TRIGGER, "CREATE TRIGGER take AFTER DELETE ON emp FOR EACH ROW EXECUTE FUNCTION take()"],
        "DELETE FROM emp WHERE id = 2",
    ),
    "trigger after truncate": (
        [
            TRIGGER,
            "CREATE TRIGGER take BEFORE TRUNCATE ON emp FOR EACH STATEMENT EXECUTE FUNCTION take()",
        ],
        "TRUNCATE emp",
    ),
    "trigger instead of a view's rows": (
        [
            TRIGGER,
            "CREATE VIEW seen_emp AS SELECT id, name FROM emp",
            "GRANT ALL ON seen_emp TO app",
            "CREATE TRIGGER take INSTEAD OF INSERT ON seen_emp "
            "FOR EACH ROW EXECUTE FUNCTION take()",
        ],
        "INSERT INTO seen_emp VALUES (9, 'Ann')",
    ),
    "trigger with the rows of a statement": (
        [
            function(
                "take()",
                once(
                    "INSERT INTO loot SELECT m.id, g FROM made m JOIN "
                    "generate_series(50, 150) g ON m.pay = g; " + LOOT,
                    "NULL",
                ),
            ),
            "CREATE TRIGGER take AFTER INSERT ON emp REFERENCING NEW TABLE AS made "
            "FOR EACH STATEMENT EXECUTE FUNCTION take()",
        ],
        WRITES,
    ),
    "domain": (
        [
            PLANTED,
            "CREATE DOMAIN watched AS boolean CHECK (planted())",
            "ALTER TABLE emp ALTER COLUMN seen TYPE watched",
        ],
        WRITES,
    ),
    "index of part of a table": (
        [PLANTED, IMMUTABLE, "CREATE INDEX ON other (id) WHERE planted(id) > 0"],
        "INSERT INTO other VALUES (1, 'x')",
    ),
    "cast's function exchanged in the catalog": (
        [
            function("spied(enc_int4)", once(LOOT, "NULL"), "enc_int8"),
            "UPDATE pg_cast SET castfunc = 'spied(enc_int4)'::regprocedure, castmethod = 'f' "
            "WHERE castsource = 'enc_int4'::regtype AND casttarget = 'enc_int8'::regtype",
        ],
        "SELECT id, pay::enc_int8 FROM emp",
    ),
    "operator's function exchanged in the catalog": (
        [
            function("spied(enc_int4, enc_int4)", once(LOOT, "NULL"), "enc_int4"),
            "UPDATE pg_operator SET oprcode = 'spied(enc_int4, enc_int4)'::regprocedure "
            "WHERE oprname = '+' AND oprleft = 'enc_int4'::regtype "
            "AND oprright = 'enc_int4'::regtype",
        ],
        "SELECT id, pay + pay FROM emp",
    ),
    "function's body exchanged in the catalog": (
        [
            "UPDATE pg_proc SET (prolang, prosrc, probin, provolatile, proparallel) = "
            "((SELECT oid FROM pg_language WHERE lanname = 'plpgsql'), "
            f"$attack$ {once(LOOT, 'NULL')} $attack$, NULL, 'v', 'u') WHERE oid = "
            "(SELECT oprcode FROM pg_operator WHERE oprname = '*' "
            "AND oprleft = 'enc_int4'::regtype AND oprright = 'enc_int4'::regtype)",
        ],
        "SELECT id, pay * pay FROM emp",
    ),
    "aggregate before the search path": (
        [
            function("spied(enc_int4, enc_int4)", once(LOOT, "$2"), "enc_int4"),
            "CREATE AGGREGATE max(enc_int4) (SFUNC = spied, STYPE = enc_int4)",
        ],
        "SELECT max(pay) FROM emp",
    ),
    "operator class": (
        [
            function("ordered(enc_text, enc_text)", once(LOOT, "0"), "int"),
            "CREATE OPERATOR CLASS own FOR TYPE enc_text USING btree AS "
            "OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, "
            "FUNCTION 1 ordered(enc_text, enc_text)",
            "CREATE INDEX ON other (note own)",
        ],
        "INSERT INTO other VALUES (1, 'x'), (2, 'y')",
    ),
    "statistics of an expression": (
        [PLANTED, IMMUTABLE, "CREATE STATISTICS s ON (planted(id)) FROM emp"],
        "ANALYZE emp",
    ),
    "materialized view": (
        [
            PLANTED,
            "CREATE MATERIALIZED VIEW numbers AS SELECT id FROM emp WHERE planted() WITH NO DATA",
            "ALTER MATERIALIZED VIEW numbers OWNER TO app",
        ],
        "REFRESH MATERIALIZED VIEW numbers",
    ),
    "partition's bound of an expression": (
        [
            PLANTED,
            IMMUTABLE,
            "CREATE TABLE part (id int, note enc_text) PARTITION BY RANGE (planted(id))",
            "CREATE TABLE part_all PARTITION OF part DEFAULT",
            "GRANT ALL ON part, part_all TO app",
        ],
        "INSERT INTO part VALUES (1, 'x')",
    ),
    "prepared statement, invalidated": (
        [TRIGGER, "CREATE TRIGGER take BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION take()"],
        "EXECUTE p",
    ),
}

SETUP = """
DROP SCHEMA IF EXISTS attack CASCADE;
CREATE SCHEMA attack AUTHORIZATION app;
CREATE TABLE attack.loot (id int, value int);
GRANT ALL ON attack.loot TO app;
CREATE FUNCTION attack.spy(int, int) RETURNS boolean LANGUAGE plpgsql COST 100000 AS
  $$BEGIN INSERT INTO attack.loot VALUES ($1, $2); RETURN true; END$$;
"""

# What a superuser has written into the catalogs of the extension is no object of a schema.
CATALOGS = {
    "pg_cast": ["castfunc", "castmethod"],
    "pg_operator": ["oprcode"],
    "pg_proc": ["prolang", "prosrc", "probin", "provolatile", "proparallel"],
}

TABLES = [
    "CREATE TABLE emp (id int, pay enc_int4, name enc_text, seen boolean)",
    "CREATE TABLE other (id int, note enc_text)",
    "CREATE FUNCTION tax(enc_int4) RETURNS enc_int4 LANGUAGE sql AS 'SELECT $1'",
    f"INSERT INTO emp VALUES (1, {PAY}, '{NAME}'), (2, 5100, 'Bo')",
    "PREPARE p AS INSERT INTO emp VALUES (9, 100, 'Ann')",
]


@pytest.fixture(scope="module", params=["bound", "unbound"])
def played(request):
    """A stack with the keeper's defaults, and one whose keeper does not check grants."""
    stack = Stack(run=Path(f"{RUN}-{request.param}"))
    if request.param == "unbound":
        stack.environment["CONFIDE_KEEPER_REQUIRE_GRANTS"] = "false"
    stack.up()
    yield stack, request.param == "bound"
    stack.down("--remove")


def in_schema(connection):
    connection.execute("SET search_path = attack, pg_catalog")
    connection.execute("SET statement_timeout = '60s'")
    return connection


@pytest.fixture
def catalogs(played):
    """Restores what an attack has changed in the catalogs."""
    stack, _ = played
    with stack.connect_dba() as dba:
        for catalog in CATALOGS:
            dba.execute(f"CREATE TEMP TABLE my_{catalog} AS SELECT * FROM {catalog}")
        yield
        for catalog, columns in CATALOGS.items():
            names = ", ".join(columns)
            ours, theirs = (f"ROW({', '.join(f'{t}.{c}' for c in columns)})" for t in "mt")
            dba.execute(
                f"UPDATE {catalog} t SET ({names}) = {ours} FROM my_{catalog} m "
                f"WHERE m.oid = t.oid AND {ours} IS DISTINCT FROM {theirs}"
            )


@pytest.mark.ten(2)
@pytest.mark.parametrize("name", ATTACKS)
def test_planted(played, attack, name, catalogs):
    stack, bound = played
    statements, victim = ATTACKS[name]
    with stack.connect_dba() as dba:
        dba.execute("DROP EVENT TRIGGER IF EXISTS at_ddl")
        dba.execute(SETUP)
        with stack.connect_app() as app:
            in_schema(app)
            for statement in TABLES:
                app.execute(statement)
            in_schema(dba)
            for statement in statements:
                dba.execute(statement)
            # What the victim asks for may fail: the attack is what it must not serve.
            try:
                app.execute(victim)
            except psycopg.Error as error:
                assert bound, f"the attack does not work at all: {error}"
        known = dba.execute("SELECT value FROM loot WHERE value NOT IN (0)").fetchall()
        dba.execute("DROP EVENT TRIGGER IF EXISTS at_ddl")
    stolen = {value for (value,) in known} & {PAY, 5100, *map(ord, NAME)}
    if bound:
        attack.attempt(name, bool(stolen))
    else:
        assert stolen, "the attack does not work at all"


def test_grant_of_another_session(played, attack):
    """A client's grant has no effect in another session."""
    stack, bound = played
    with stack.connect_dba() as dba, stack.connect_app() as one, stack.connect_app() as two:
        dba.execute(SETUP)
        for statement in TABLES:
            in_schema(one).execute(statement)
        guess = "SELECT e.id FROM emp e JOIN generate_series(5000, 5400) g ON e.pay = g::enc_int4"
        assert len(one.execute(guess).fetchall()) == 2
        in_schema(dba)
        for statement in ATTACKS["trigger before insert"][0]:
            dba.execute(statement)
        try:
            in_schema(two).execute(WRITES)
        except psycopg.Error as error:
            assert bound
            assert error.sqlstate == "42501"
        stolen = dba.execute("SELECT FROM loot WHERE value > 0").fetchall()
    if bound:
        attack.attempt("a grant of another session", bool(stolen))
    else:
        assert stolen, "the attack does not work at all"


def test_grant_of_another_statement(played, attack):
    """What a statement has authorised can be done in its session as long as that lasts."""
    stack, bound = played
    with stack.connect_dba() as dba, stack.connect_app() as app:
        dba.execute(SETUP)
        for statement in TABLES:
            in_schema(app).execute(statement)
        app.execute("SELECT e.id FROM emp e JOIN generate_series(0, 9) g ON e.pay = g::enc_int4")
        in_schema(dba)
        for statement in ATTACKS["trigger before insert"][0]:
            dba.execute(statement)
        app.execute(WRITES)
        stolen = dba.execute("SELECT FROM loot WHERE value > 0").fetchall()
    assert stolen
    if bound:
        attack.attempt("a grant of another statement of the session", True, LASTS)


REPLAY = """
DECLARE said text;
BEGIN
  FOR said IN SELECT text FROM attack.recorded LOOP
    -- The comparison is answered, so that what the keeper has against the grant is caught here.
    BEGIN EXECUTE 'SELECT FROM emp WHERE pay < pay' || chr(10) || said;
    EXCEPTION WHEN OTHERS THEN NULL; END;
  END LOOP;
  IF NOT EXISTS (SELECT FROM loot) THEN
    INSERT INTO loot VALUES (0, 0);
    LOOT;
  END IF;
  RETURN NEW;
END"""


def test_grants_replayed(played, attack):
    """The superuser has read the grants of a session that may compare plain values with the column,
    and uses them in another one, unchanged, altered, and in any order."""
    stack, bound = played
    guess = "SELECT e.id FROM emp e JOIN generate_series(5000, 5400) g ON e.pay = g::enc_int4"
    with stack.connect_dba() as dba, stack.connect_app() as one, stack.connect_app() as two:
        dba.execute(SETUP)
        dba.execute("CREATE TABLE attack.recorded (text text)")
        dba.execute("GRANT ALL ON attack.recorded TO app")
        before = stack.log_sizes()
        for statement in [*TABLES, guess]:
            in_schema(one).execute(statement)
        grants = re.findall(r"/\*confide:cfd1\.[\w-]+\*/", stack.logged_since(before))
        assert grants
        shorter = [g[:-6] + "*/" for g in grants]
        flipped = [g[:40] + ("A" if g[40] != "A" else "B") + g[41:] for g in grants]
        for text in [*grants, *reversed(grants), *shorter, *flipped]:
            dba.execute("INSERT INTO attack.recorded VALUES (%s)", (text,))
        in_schema(dba).execute(function("take()", REPLAY.replace("LOOT", LOOT)))
        dba.execute("CREATE TRIGGER take BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION take()")
        refused = ""
        try:
            in_schema(two).execute(WRITES)
        except psycopg.Error as error:
            refused = str(error)
        stolen = dba.execute("SELECT FROM loot WHERE value > 0").fetchall()
        # Without any client the same.
        straight = []
        for role in ("RESET ROLE", "SET ROLE app", "SET SESSION AUTHORIZATION app"):
            with stack.connect_dba() as other:
                in_schema(other).execute(role)
                for text in grants:
                    with contextlib.suppress(psycopg.Error):
                        other.execute("SELECT 1\n" + text)
                with contextlib.suppress(psycopg.Error):
                    straight += other.execute(guess).fetchall()
    assert not straight
    if bound:
        assert "does not authorise" in refused
        attack.attempt("grants replayed, cut, changed, in another order", bool(stolen))
    else:
        assert stolen, refused
