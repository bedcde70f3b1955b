"""Constants in bodies of triggers, procedures and DO blocks that use something protected.

Mechanism: routines of typical applications are created on protected and on plain tables; constants
that meet something protected come from functions whose bodies the server keeps parsed. Right: both
do the same. Bug: every such body is refused (0A000).
"""

import pytest
from results import run

TABLES = """
CREATE TABLE item (id int PRIMARY KEY, name enc_text, price enc_numeric(9, 2), kind text);
CREATE TABLE log (at int GENERATED ALWAYS AS IDENTITY, what text, name enc_text);
CREATE FUNCTION nothing() RETURNS enc_numeric LANGUAGE sql RETURN 0;
CREATE FUNCTION nobody() RETURNS enc_text LANGUAGE sql RETURN 'nobody';
CREATE FUNCTION check_item() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE other int := 0;
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.id = 13 THEN
        RETURN OLD;
    ELSIF NEW.price <= nothing() THEN
        RAISE EXCEPTION 'item % costs nothing', NEW.id USING ERRCODE = '23514', HINT = 'Ask.';
    END IF;
    SELECT count(*) INTO other FROM item WHERE name = NEW.name AND kind = 'new' LIMIT 1;
    IF other > 0 THEN
        NEW.kind := 'again';
    END IF;
    NEW.name := coalesce(lower(NEW.name), nobody());
    RETURN NEW;
END $$;
CREATE FUNCTION log_item() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO log (what, name) VALUES (TG_OP || ' 1', OLD.name);
    RETURN NULL;
EXCEPTION WHEN SQLSTATE '22012' THEN
    RETURN NULL;
END $$;
CREATE PROCEDURE dearer(more enc_numeric, up_to int) LANGUAGE plpgsql AS $$
BEGIN
    FOR n IN 1..10 LOOP
        EXIT WHEN n > up_to;
        UPDATE item SET price = price + more WHERE id = n * 1;
    END LOOP;
END $$;
CREATE FUNCTION same(given item.name%TYPE) RETURNS bigint LANGUAGE sql
    AS 'SELECT count(*) FROM item WHERE name = given AND id > 0';
CREATE TRIGGER a BEFORE INSERT OR UPDATE ON item FOR EACH ROW EXECUTE FUNCTION check_item();
CREATE TRIGGER b AFTER UPDATE OR DELETE ON item FOR EACH ROW EXECUTE FUNCTION log_item()
"""
USED = [
    "INSERT INTO item VALUES (1, 'Ann', 5, 'new'), (2, NULL, 6.5, 'new'), (3, 'ann', 7, 'old')",
    "INSERT INTO item VALUES (4, 'Zero', 0, 'new')",
    "INSERT INTO item VALUES (13, 'Thirteen', 13, 'new')",
    "UPDATE item SET name = 'other' WHERE id = 13",
    "CALL dearer(0.5, 2)",
    "SELECT same('ann'), same('nobody')",
    "DELETE FROM item WHERE name = 'ann' AND id = 3",
    "DO $$ DECLARE n int; BEGIN SELECT count(name) INTO n FROM item WHERE id < 100; "
    "IF n <> 2 THEN RAISE EXCEPTION 'there are %', n; END IF; END $$",
    "SELECT * FROM item ORDER BY id",
    "SELECT what, name FROM log ORDER BY at",
]


def plain(sql):
    """Of plain types and another name: what is protected is told by names, too."""
    for word, other in (("enc_", ""), ("item", "goods"), ("dearer", "costlier"), ("same", "akin")):
        sql = sql.replace(word, other)
    return sql


@pytest.fixture
def twins(app, plain_twin):
    for connection, sql in ((app, TABLES), (plain_twin, plain(TABLES))):
        # What stands before is known when a statement is sent by itself.
        for statement in sql.strip().split(";\nCREATE "):
            connection.execute("CREATE " + statement.removeprefix("CREATE "))
    return app, plain_twin


def test_as_on_plain_tables(twins):
    for sql in USED:
        protected, other = run(twins[0], sql), run(twins[1], plain(sql))
        assert (protected.sqlstate, protected.rows) == (other.sqlstate, other.rows), (
            sql,
            protected.message,
        )
    assert len(other.rows) > 3


@pytest.mark.parametrize(
    "body",
    [
        "CASE NEW.name || 'nobody' WHEN NEW.kind THEN RETURN NULL; ELSE RETURN NEW; END CASE;",
        "NEW.name := coalesce(NEW.name, 'nobody'); RAISE NOTICE 'nobody'; RETURN NEW;",
    ],
)
def test_refused(twins, body):
    """What it says leads to a function that gives the constant."""
    outcome = run(
        twins[0],
        f"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$",
    )
    assert outcome.sqlstate == "0A000"


# Of constants that are sealed: signs, casts, parts of texts, CASE, types of columns, plain quotes.
SEALED = """
CREATE TABLE part (id int PRIMARY KEY, tag enc_text, size enc_int4, state enc_text, seen enc_date);
CREATE FUNCTION filled() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE usual part.state%TYPE := 'usual';
BEGIN
    CASE NEW.state WHEN 'new', 'fresh' THEN NEW.size := -1; WHEN usual THEN NEW.size := 77;
        ELSE NEW.state := 'is ' || NEW.state || ', no more'; END CASE;
    NEW.tag := NEW.tag || '!'::text;
    NEW.seen := '2024-02-29'::date;
    IF NEW.size < -70000 THEN RETURN NULL; END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION small() RETURNS bigint LANGUAGE sql
    AS 'SELECT count(*) FROM part WHERE size = -1 AND tag LIKE ''A%''';
CREATE TRIGGER filled BEFORE INSERT OR UPDATE ON part FOR EACH ROW EXECUTE FUNCTION filled()
"""
SEALED_USED = [
    "INSERT INTO part VALUES (1, 'Axle', 5, 'new'), (2, 'Bolt', 6, 'usual'), (3, 'Cog', 7, 'old')",
    "INSERT INTO part VALUES (4, 'Disc', -70001, 'x'), (5, NULL, 1, NULL)",
    "UPDATE part SET state = 'fresh' WHERE id = 3",
    "SELECT small()",
    "SELECT * FROM part ORDER BY id",
]
OTHER_NAMES = [
    *(("enc_", ""), ("part", "piece"), ("tag", "label"), ("size", "width"), ("state", "status")),
    *(("seen", "shown"), ("filled", "completed"), ("small", "tiny")),
]


@pytest.mark.parametrize("family", ["enc_", "rnd_"])
def test_sealed_constants(app, dba, plain_twin, family):
    def of_plain_types(sql):
        for word, other in OTHER_NAMES:
            sql = sql.replace(word, other)
        return sql

    for connection, sql in ((app, SEALED), (plain_twin, of_plain_types(SEALED))):
        for statement in sql.replace("enc_", family).strip().split(";\nCREATE "):
            connection.execute("CREATE " + statement.removeprefix("CREATE "))
    for sql in SEALED_USED:
        protected, plain = run(app, sql), run(plain_twin, of_plain_types(sql))
        assert protected.sqlstate is None, (sql, protected.message)
        assert protected.rows == plain.rows, sql
    bodies = "SELECT prosrc FROM pg_proc WHERE proname IN ('filled', 'small')"
    for (body,) in dba.execute(bodies).fetchall():
        assert "cfd1." in body
        assert not [word for word in ("'usual'", "no more", "2024", "70000", "A%") if word in body]


def test_a_trigger_of_another_table(app):
    """The constant would not fit when the trigger runs (42846), perhaps much later."""
    app.execute("CREATE TABLE one (name enc_text); CREATE TABLE other (name text)")
    made = "CREATE FUNCTION {} RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {} RETURN NEW; END $$"
    app.execute(made.format("f()", "NEW.name := coalesce(NEW.name, 'none');"))
    app.execute(made.format("g()", "IF TG_TABLE_NAME = 'one' THEN NEW.name := 'someone'; END IF;"))
    trigger = "CREATE TRIGGER {0} BEFORE INSERT ON {1} FOR EACH ROW EXECUTE FUNCTION {0}()"
    refused = run(app, trigger.format("f", "other"))
    assert refused.sqlstate == "0A000", refused
    assert '"name"' in refused.message
    for function, table in (("f", "one"), ("g", "other")):
        app.execute(trigger.format(function, table))
    app.execute("INSERT INTO other VALUES ('plain'); INSERT INTO one VALUES (NULL)")
    assert run(app, "SELECT name FROM one").rows == [("none",)]
