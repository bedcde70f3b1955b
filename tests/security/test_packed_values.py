"""A session's envelopes are only for the client. If a trigger or function packed them into text,
JSON or XML, they would be stored or sent on although nobody can open them after the session: an
audit trail would be silently lost. So this is refused, with the column and an alternative in the
message; a trigger that stores protected values in protected columns works."""

import pytest
from authority import authorise
from results import run

TABLE = """CREATE TABLE p (id int, name {0}_text, n {0}_int4);
CREATE TABLE audit (what text, doc jsonb);
INSERT INTO p VALUES (1, 'Ann', 5)"""

BODIES = [
    "INSERT INTO audit (doc) VALUES (to_jsonb(NEW))",
    "INSERT INTO audit (doc) VALUES (to_jsonb(NEW.name))",
    "INSERT INTO audit (what) VALUES (NEW::text)",
    "INSERT INTO audit (what) VALUES (row_to_json(NEW)::text)",
    "INSERT INTO audit (what) VALUES (json_build_object(NEW.id, NEW.name)::text)",
    "INSERT INTO audit (what) VALUES (row(NEW.id, NEW.name)::text)",
    "INSERT INTO audit (what) SELECT to_json(x)::text FROM (SELECT NEW.id, NEW.name) x",
    "INSERT INTO audit (doc) SELECT jsonb_agg(x) FROM p x",
    "INSERT INTO audit (what) VALUES (xmlforest(NEW.name)::text)",
    "INSERT INTO audit (what) VALUES (array[NEW.name]::text)",
    "INSERT INTO audit (what) VALUES (format(E'\\x2573', NEW))",
    "INSERT INTO audit (what) VALUES (concat(NEW, NEW))",
    "EXECUTE 'INSERT INTO audit (what) VALUES ($1::text)' USING NEW",
    "EXECUTE 'INSERT INTO audit (doc) VALUES (to_jsonb($1))' USING NEW",
    "PERFORM pg_notify(TG_NAME, NEW::text)",
    "PERFORM pg_notify(TG_NAME, row_to_json(NEW)::text)",
    "DECLARE v text; BEGIN v := NEW.name; INSERT INTO audit (what) VALUES (v); END",
    # What has no types before it runs.
    "DECLARE v text; BEGIN v := NEW; INSERT INTO audit (what) VALUES (v); END",
    "DECLARE r record; v text; BEGIN r := NEW; v := r; INSERT INTO audit (what) VALUES (v); END",
    "DECLARE r record; v text; BEGIN SELECT NEW.id, NEW.name INTO r; v := r; "
    "INSERT INTO audit (what) VALUES (v); END",
    "DECLARE r record; BEGIN SELECT NEW.id, NEW.name INTO r; "
    "INSERT INTO audit (doc) VALUES (to_jsonb(r)); END",
    "DECLARE v text[]; BEGIN v := array[NEW.name]; INSERT INTO audit (what) VALUES (v[1]); END",
    "INSERT INTO audit (what) SELECT query_to_xml(q, true, false, TG_NAME)::text "
    "FROM current_setting($$test.query$$) q",
    "INSERT INTO audit (what) SELECT table_to_xml(TG_RELID, true, false, TG_NAME)::text",
    "INSERT INTO audit (what) VALUES (hstore(NEW)::text)",
    "RAISE NOTICE USING MESSAGE = NEW",
]


@pytest.fixture(params=["enc", "rnd"])
def table(app, dba, request):
    app.execute(TABLE.format(request.param))
    app.family = request.param
    return app


@pytest.mark.parametrize("body", BODIES)
def test_triggers(table, dba, schema, body):
    # Made by the superuser: the proxy would refuse some of these bodies for their constants.
    dba.execute(
        f"CREATE FUNCTION {schema}.keep() RETURNS trigger LANGUAGE plpgsql AS "
        f"$t$ BEGIN {body}; RETURN NEW; END $t$"
    )
    if "hstore" in body:
        dba.execute(f'CREATE EXTENSION hstore SCHEMA "{schema}"')
    dba.execute("CREATE TRIGGER keep AFTER UPDATE ON p FOR EACH ROW EXECUTE FUNCTION keep()")
    table.execute("SET test.query = 'SELECT * FROM p'")
    with pytest.raises(Exception, match=r"cannot be put into|cannot cast") as refused:
        table.execute("UPDATE p SET n = n + 1")
    assert refused.value.sqlstate in ("0A000", "42846")
    assert refused.value.diag.message_hint
    assert dba.execute("SELECT count(*) FROM audit").fetchone() == (0,)
    assert run(table, "SELECT n FROM p").rows == [("5",)]


def test_the_column_is_named(table, dba, schema):
    dba.execute(
        f"CREATE FUNCTION {schema}.keep() RETURNS trigger LANGUAGE plpgsql AS "
        "$t$ BEGIN INSERT INTO audit (doc) VALUES (to_jsonb(NEW)); RETURN NEW; END $t$"
    )
    dba.execute("CREATE TRIGGER keep AFTER UPDATE ON p FOR EACH ROW EXECUTE FUNCTION keep()")
    with pytest.raises(Exception, match='"name"') as refused:
        table.execute("UPDATE p SET n = 6")
    assert refused.value.sqlstate == "0A000"


def test_what_works(table, dba, schema):
    """Whole rows that stay rows, and plain parts."""
    table.execute(f"CREATE TABLE old (id int, name {table.family}_text, n {table.family}_int4)")
    dba.execute(
        f"CREATE FUNCTION {schema}.keep() RETURNS trigger LANGUAGE plpgsql AS $t$ BEGIN "
        "INSERT INTO old VALUES (NEW.*); "
        "EXECUTE 'INSERT INTO old SELECT ($1).*' USING OLD; "
        "INSERT INTO audit (doc) VALUES (to_jsonb(NEW.id)); "
        "INSERT INTO audit (what) VALUES (row(NEW.id, TG_NAME)::text); RETURN NEW; END $t$"
    )
    dba.execute("CREATE TRIGGER keep AFTER UPDATE ON p FOR EACH ROW EXECUTE FUNCTION keep()")
    authorise(table, schema)
    table.execute("UPDATE p SET n = 6")
    assert run(table, "SELECT name, n FROM old ORDER BY n").rows == [("Ann", "5"), ("Ann", "6")]
    assert run(table, "SELECT what FROM audit WHERE what IS NOT NULL").rows == [("(1,keep)",)]


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("CREATE VIEW v AS SELECT to_jsonb(p) AS doc FROM p", None),
        (
            "CREATE RULE r AS ON DELETE TO p DO INSTEAD "
            "INSERT INTO audit (doc) VALUES (to_jsonb(OLD))",
            "42804",
        ),
        (
            "CREATE FUNCTION f() RETURNS jsonb LANGUAGE sql RETURN (SELECT to_jsonb(p) FROM p)",
            "42P13",
        ),
        ("SELECT to_jsonb(p) FROM p", None),
    ],
)
def test_documents_of_rows(table, dba, sql, sqlstate):
    """The proxy has documents of rows made that are protected, too, and do not go into plain ones.
    The database makes none."""
    assert run(dba, sql).sqlstate == "0A000"
    assert run(table, sql).sqlstate == sqlstate


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT p::text FROM p",
        "SELECT row(p.*)::text FROM p",
    ],
)
def test_queries_and_stored_expressions(table, dba, sql):
    """The proxy refuses these itself; the database does, whoever asks."""
    for connection in (table, dba):
        assert run(connection, sql).sqlstate == "0A000"


def test_deferred_triggers(table, dba, schema):
    """What runs at the commit, outside of every statement."""
    dba.execute(
        f"CREATE FUNCTION {schema}.keep() RETURNS trigger LANGUAGE plpgsql AS $t$ DECLARE v text; "
        "BEGIN v := NEW; INSERT INTO audit (what) VALUES (v); RETURN NEW; END $t$"
    )
    dba.execute(
        "CREATE CONSTRAINT TRIGGER keep AFTER UPDATE ON p DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION keep()"
    )
    table.execute("BEGIN")
    table.execute("UPDATE p SET n = 6")
    assert run(table, "COMMIT").sqlstate == "0A000"
    assert dba.execute("SELECT count(*) FROM audit").fetchone() == (0,)


def test_plain_variables(table, dba, schema):
    """PL/pgSQL converts between types through text, whoever runs it: without a client there would
    be an export envelope in the variable."""
    block = "DO $t$ DECLARE v text; BEGIN SELECT name FROM p INTO v; END $t$"
    assert run(dba, block).sqlstate == "0A000"
    assert run(dba, block.replace("v text", f"v {table.family}_text")).sqlstate is None


def test_messages(table, dba, schema):
    """A single value in a message goes to the client, which can open it; also in a loop over rows
    that hold it, and in errors."""
    dba.execute(
        f"CREATE FUNCTION {schema}.keep() RETURNS trigger LANGUAGE plpgsql AS $t$ "
        "DECLARE r record; BEGIN FOR r IN SELECT name FROM p LOOP "
        "RAISE NOTICE USING MESSAGE = TG_NAME || TG_OP; RAISE NOTICE E'\\x25', r.name; END LOOP; "
        "RETURN NEW; END $t$"
    )
    dba.execute("CREATE TRIGGER keep AFTER UPDATE ON p FOR EACH ROW EXECUTE FUNCTION keep()")
    authorise(table, schema)
    notices = []
    table.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    table.execute("UPDATE p SET n = 6")
    assert len(notices) == 2
    table.execute("CREATE UNIQUE INDEX ON p (name)")
    assert run(table, "INSERT INTO p VALUES (2, 'Ann', 6)").sqlstate == "23505"


def test_records_as_results(table, dba, schema):
    """The client could not open what is in them: it would be shown envelopes. Without a client they
    are shown as they are."""
    dba.execute(
        f"CREATE FUNCTION {schema}.packed(a {table.family}_text) RETURNS record LANGUAGE sql "
        "AS 'SELECT row(a)';"
        f"CREATE FUNCTION {schema}.plain(a int) RETURNS record LANGUAGE sql AS 'SELECT row(a)';"
        f"CREATE PROCEDURE {schema}.given(INOUT a record) LANGUAGE plpgsql AS "
        "'BEGIN SELECT name INTO a FROM p; END'"
    )
    assert run(table, "SELECT plain(id) FROM p").rows == [("(1)",)]
    for query in (
        "SELECT id, packed(name) FROM p",
        "SELECT array[packed(name)] FROM p",
        "UPDATE p SET id = 1 RETURNING packed(name)",
        "CALL given(NULL)",
    ):
        assert run(table, query).sqlstate == "0A000", query
    # An array of values is opened.
    assert table.execute("SELECT array[name, name] FROM p").fetchone() == (["Ann", "Ann"],)
    assert len(run(dba, "SELECT id, packed(name) FROM p").rows) == 1
    assert run(table, "SELECT name FROM p").rows == [("Ann",)]


def test_null_constants(table, dba):
    """NULL that is written as an expression is no plaintext constant."""
    for sql in (
        "SELECT enc_date(nullif(null::date, null::date)) IS NULL",
        "SELECT count(*) FROM p WHERE n = (nullif(null::int, null::int))::enc_int4",
        "SELECT enc_text(CASE WHEN true THEN null::text ELSE null END) IS NULL",
    ):
        assert run(table, sql).sqlstate is None, run(table, sql).message
    assert run(dba, "SELECT enc_int4(coalesce(null::int, 5))").sqlstate == "42501"
