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
        "IF NEW.price <= 0 THEN RETURN NULL; END IF; RETURN NEW;",
        "NEW.name := coalesce(NEW.name, 'nobody'); RETURN NEW;",
    ],
)
def test_refused(twins, body):
    """What it says leads to a function that gives the constant."""
    outcome = run(
        twins[0],
        f"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$",
    )
    assert outcome.sqlstate == "0A000"
