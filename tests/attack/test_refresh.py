"""A superuser's code that runs while a client refreshes a materialized view CONCURRENTLY, when a
temporary table may have a column of rows with protected values.

Mechanism: PostgreSQL drops its own such table at the end of the command; if another one is left,
the command fails as a whole. Right: 0A000, and no such table. Bug: rows stay where neither garbage
collection nor the refusal of rows as text expects them.
"""

import psycopg
import pytest

TRIED = """
CREATE FUNCTION tried() RETURNS void LANGUAGE plpgsql AS $a$
DECLARE s text;
BEGIN
  IF session_user <> 'app' OR current_setting('tried.within', true) = 'on'
     OR to_regclass('pg_temp.rows') IS NOT NULL THEN RETURN; END IF;
  PERFORM set_config('tried.within', 'on', false);
  INSERT INTO loot VALUES ('ran');
  FOREACH s IN ARRAY ARRAY[
    'CREATE TEMP TABLE rows (id int, pay enc_int4)',
    'CREATE TEMP TABLE made (r rows)',
    'CREATE TEMP TABLE kept (i int)',
    'ALTER TABLE kept ADD r rows',
    'INSERT INTO kept SELECT id, ROW(id, pay)::rows FROM emp',
    'INSERT INTO loot SELECT r::text FROM kept',
    'INSERT INTO loot SELECT g::text FROM emp JOIN generate_series(5000, 5400) g ON pay = g'
  ] LOOP
    BEGIN EXECUTE s;
    EXCEPTION WHEN internal_error THEN RAISE;
    WHEN OTHERS THEN NULL;
    END;
  END LOOP;
  PERFORM set_config('tried.within', 'off', false);
END $a$;
CREATE TABLE loot (seen text);
GRANT ALL ON loot TO app;
CREATE OR REPLACE FUNCTION low(int) RETURNS int LANGUAGE plpgsql AS
  'BEGIN PERFORM {schema}.tried(); RETURN $1; END';
CREATE FUNCTION at_ddl() RETURNS event_trigger LANGUAGE plpgsql AS
  'BEGIN IF current_schema = ''{schema}'' THEN PERFORM {schema}.tried(); END IF; END';
"""
PLANTED = {
    "a function of the view": "",
    "an event trigger before": "CREATE EVENT TRIGGER planted ON ddl_command_start "
    "EXECUTE FUNCTION at_ddl()",
    "an event trigger behind": "CREATE EVENT TRIGGER planted ON ddl_command_end "
    "EXECUTE FUNCTION at_ddl()",
}


@pytest.mark.parametrize("name", PLANTED)
def test_refresh(app, dba, schema, attack, name):
    app.execute("CREATE TABLE emp (id int PRIMARY KEY, pay enc_int4)")
    app.execute("INSERT INTO emp VALUES (1, 5200), (2, 5100)")
    app.execute(
        "CREATE FUNCTION low(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN $1; END';"
        "CREATE MATERIALIZED VIEW m AS SELECT low(id) AS id, pay FROM emp"
    )
    app.execute("CREATE UNIQUE INDEX ON m (id)")
    app.execute("INSERT INTO emp VALUES (3, 7)")
    dba.execute(TRIED.replace("{schema}", schema))
    refused = None
    try:
        dba.execute(PLANTED[name] or "SELECT 1")
        app.execute("REFRESH MATERIALIZED VIEW CONCURRENTLY m")
        assert "event" not in name
    except psycopg.Error as error:
        refused = error.sqlstate
    finally:
        dba.execute("DROP EVENT TRIGGER IF EXISTS planted")
    kept = app.execute("SELECT to_regclass('pg_temp.kept')::text").fetchone()[0]
    attack.attempt(f"rows kept by {name} during a refresh", kept is not None)
    seen = [row[0] for row in dba.execute("SELECT seen FROM loot").fetchall()]
    attack.attempt(f"values told by {name} during a refresh", bool(set(seen) - {"ran"}))
    assert refused == ("0A000" if "event" in name else None)
    # The refresh itself works as before.
    dba.execute("CREATE OR REPLACE FUNCTION low(int) RETURNS int LANGUAGE sql AS 'SELECT $1'")
    app.execute("REFRESH MATERIALIZED VIEW CONCURRENTLY m")
    assert app.execute("SELECT pay FROM m ORDER BY id").fetchall() == [(5200,), (5100,), (7,)]
