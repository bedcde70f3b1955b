"""What the proxy does in addition to a client's statements must not affect them. It learns the
schema and the search path from reports that the server sends with its answers. So it runs nothing
in the client's transaction, which would take a snapshot too early, hold it while the client is
idle, or leave portals and prepared statements."""

import threading

import psycopg
import pytest
from waiting import until


def waits_for_lock(dba, pid):
    query = "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = %s AND NOT granted)"
    return dba.execute(query, [pid]).fetchone()[0]


def pid_of(connection):
    # Not by a statement: it would take a snapshot.
    return connection.info.backend_pid


@pytest.mark.parametrize("before", ["path", "ddl of another session"])
def test_snapshot_is_taken_after_the_lock(app, second, dba, schema, before):
    """REPEATABLE READ takes its snapshot with the first statement that needs one, so behind a
    LOCK TABLE that had to wait it sees what was committed meanwhile: 1. A query of the proxy's
    own within the transaction took it before, and the count was 0."""
    dba.execute("CREATE TABLE lk (a int); GRANT ALL ON lk TO app")
    app.execute("SELECT * FROM lk")
    dba.execute("BEGIN; INSERT INTO lk VALUES (1)")
    app.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    if before == "path":
        app.execute(f"SET LOCAL search_path TO {schema}")
    else:
        second.execute("CREATE TABLE meanwhile (a int)")
    locker = threading.Thread(target=app.execute, args=["LOCK TABLE lk IN SHARE MODE"])
    locker.start()
    until(lambda: waits_for_lock(dba, pid_of(app)), "the lock is waited for")
    dba.execute("COMMIT")
    locker.join()
    assert app.execute("SELECT count(*) FROM lk").fetchone() == (1,)
    app.execute("COMMIT")


def test_idle_transaction_holds_no_snapshot(stack, app, second, dba, schema):
    """Between the statements of a READ COMMITTED transaction there is no snapshot, so it holds
    back neither vacuum nor CREATE INDEX CONCURRENTLY on a table that it does not use. A portal
    that the proxy had left open kept one: backend_xmin was set, and the index never done."""
    second.execute("CREATE TABLE used (a int); CREATE TABLE indexed (a enc_int4, b int)")
    app.execute("BEGIN; SELECT * FROM used")
    second.execute("CREATE TABLE meanwhile (a int)")
    app.execute("SELECT * FROM used")
    app.execute(f"SET LOCAL search_path TO {schema}, public")
    app.execute("SELECT * FROM meanwhile")
    state = "SELECT state, backend_xmin FROM pg_stat_activity WHERE pid = %s"
    assert dba.execute(state, [pid_of(app)]).fetchone() == ("idle in transaction", None)
    second.execute("SET statement_timeout = '600s'")
    second.execute("CREATE INDEX CONCURRENTLY ON indexed (b)")
    app.execute("COMMIT")


def nothing_of_ours(connection):
    own = "SELECT name FROM pg_cursors UNION ALL SELECT name FROM pg_prepared_statements"
    found = connection.execute(own).fetchall()
    # psycopg's statement for the query itself has no name.
    assert [name for (name,) in found if name] == []


def test_nothing_is_left_on_the_server(app, second):
    """Neither outside of transactions nor within, whatever the proxy had to find out: not a
    portal and not a prepared statement (it was confide_internal)."""
    nothing_of_ours(app)
    app.execute("BEGIN; CREATE TABLE made (a enc_text)")
    nothing_of_ours(app)
    second.execute("CREATE TABLE other (a enc_text)")
    app.execute("INSERT INTO other VALUES ('x')")
    nothing_of_ours(app)
    with pytest.raises(psycopg.errors.UndefinedTable), app.transaction():
        app.execute("SELECT * FROM nowhere")
    nothing_of_ours(app)
    app.execute("COMMIT")
    nothing_of_ours(app)


@pytest.mark.parametrize("type", ["text", "enc_text"])
def test_copy_freeze(app, type):
    """COPY FREEZE wants a table of the same transaction, and no other snapshot or portal."""
    app.execute(f"BEGIN; CREATE TABLE frozen (a {type})")
    with app.cursor().copy("COPY frozen FROM stdin WITH (FREEZE)") as copy:
        copy.write_row(["one"])
        copy.write_row(["two"])
    app.execute("COMMIT")
    assert sorted(app.execute("SELECT a FROM frozen").fetchall()) == [("one",), ("two",)]


ANSWERED_BY_THE_SERVER = [
    "ALTER TABLE IF EXISTS nosuch ADD COLUMN f int DEFAULT 5",
    "DROP TABLE IF EXISTS nosuch",
    "SELECT 5 FROM FROM",
    "SELECT 123abc",
    "SELECT nosuch FROM plain WHERE a = 5",
    "SELECT plan.a FROM plain WHERE a = 5",
    "SELECT a FROM plain FETCH FIRST 5 ROWS WITH TIES",
    "SELECT E'wrong: \\u00g'",
    "SELECT U&'wrong: \\00g'",
    "INSERT INTO plain (nosuch) VALUES (5)",
    "SELECT 5 FROM nosuch",
    "SELECT nosuch(5)",
    "SELECT a + 'x'::bytea FROM plain",
    "CREATE RULE r AS ON INSERT TO plain WHERE nosuch = 5 DO NOTHING",
]
FIELDS = [
    *("severity", "sqlstate", "message_primary", "message_detail", "message_hint"),
    *("statement_position", "internal_position", "schema_name", "table_name", "column_name"),
]


def said(connection, sql):
    """The notices and the error of a statement, with all of their fields."""
    heard = []

    def hear(diag):
        heard.append([getattr(diag, field) for field in FIELDS])

    connection.add_notice_handler(hear)
    try:
        connection.execute(sql, prepare=False)
    except psycopg.Error as error:
        hear(error.diag)
    return heard


@pytest.mark.parametrize("sql", ANSWERED_BY_THE_SERVER)
def test_answers_are_the_servers(app, dba, sql):
    """What the proxy does not understand, and what names nothing, is for PostgreSQL to answer: with
    its notices, texts, positions and hints. A proxy that answers itself has others."""
    app.execute("CREATE TABLE plain (a int); CREATE TABLE beside (a enc_int4)")
    straight = said(dba, sql)
    assert any(field for told in straight for field in told)
    assert said(app, sql) == straight


SECRET = "SEKRIT-7391"


def insert(app, table="made"):
    app.execute(f"INSERT INTO {table} VALUES ('{SECRET}')")
    assert app.execute(f"SELECT a FROM {table} WHERE a = '{SECRET}'").fetchall() == [(SECRET,)]
    app.execute(f"DELETE FROM {table}")


def test_changes_of_the_open_transaction(stack, app, second, schema):
    """What a transaction has changed of the schema holds for its next statement, though no
    other session can see it, and what is rolled back does not: values are sealed when and only
    when the column is protected. With an old schema they would be in the server's log, or
    envelopes would be in a plain column."""
    sizes = stack.log_sizes()
    app.execute("BEGIN; CREATE TABLE made (a text)")
    app.execute("INSERT INTO made VALUES ('plain')")
    app.execute("SAVEPOINT one")
    app.execute("DROP TABLE made")
    app.execute("CREATE TABLE made (a enc_text)")
    insert(app)
    app.execute("ROLLBACK TO one")
    app.execute("INSERT INTO made VALUES ('again')")
    assert app.execute("SELECT a FROM made ORDER BY a").fetchall() == [("again",), ("plain",)]
    app.execute("ROLLBACK")
    app.execute("CREATE TABLE made (a enc_text)")
    insert(app)
    # The other session learns of it with the commit, whatever it knew before.
    insert(second)
    app.execute("BEGIN; ALTER TABLE made RENAME TO gone; CREATE TABLE made (a text)")
    app.execute("INSERT INTO made VALUES ('plain')")
    app.execute("ROLLBACK")
    insert(app)
    assert SECRET not in stack.logged_since(sizes)


@pytest.mark.parametrize("begin", ["BEGIN", "BEGIN; SAVEPOINT s"])
@pytest.mark.parametrize("family", ["enc", "rnd"])
def test_taken_back_in_the_same_message(app, begin, family):
    """Behind ROLLBACK in one message the table may be the plain one again: nobody could open the
    session's envelope that was stored there; of numbers the type did not fit (42804)."""
    app.execute("CREATE TABLE made (a text)")
    app.execute(f"{begin}; DROP TABLE made; CREATE TABLE made (a {family}_text)")
    back = "ROLLBACK TO s" if "SAVEPOINT" in begin else "ROLLBACK"
    with pytest.raises(psycopg.errors.FeatureNotSupported) as refused:
        app.execute(f"{back}; INSERT INTO made VALUES ('x')")
    assert refused.value.diag.message_hint
    app.execute("ROLLBACK")
    app.execute("INSERT INTO made VALUES ('plain')")
    assert app.execute("SELECT a FROM made").fetchall() == [("plain",)]
    made = f"DROP TABLE made; CREATE TABLE made (a {family}_int4)"
    app.execute("BEGIN; CREATE TABLE more (a int)")
    app.execute(f"ROLLBACK; {made}")
    app.execute("INSERT INTO made VALUES (5)")
    app.execute(f"{made}; INSERT INTO made VALUES (5)")
    app.execute(f"BEGIN; {made}; INSERT INTO made VALUES (5); COMMIT")
    assert app.execute("SELECT a FROM made WHERE a = 5").fetchall() == [(5,)]


def test_changes_within_functions(stack, app):
    """As above, when it is a function that changes the schema, and takes part of it back."""
    sizes = stack.log_sizes()
    app.execute("""DO $$BEGIN
        CREATE TABLE made (a enc_text);
        BEGIN
            DROP TABLE made;
            CREATE TABLE made (a text);
            RAISE division_by_zero;
        EXCEPTION WHEN division_by_zero THEN NULL;
        END;
        CREATE TABLE plain (a text);
    END$$""")
    insert(app)
    app.execute("INSERT INTO plain VALUES ('kept')")
    assert app.execute("SELECT a FROM plain").fetchall() == [("kept",)]
    app.execute("""CREATE PROCEDURE steps() LANGUAGE plpgsql AS $$BEGIN
        DROP TABLE plain;
        CREATE TABLE plain (a enc_text);
        COMMIT;
        DROP TABLE plain;
        ROLLBACK;
    END$$""")
    app.execute("CALL steps()")
    insert(app, "plain")
    assert SECRET not in stack.logged_since(sizes)


def test_changes_within_a_pipeline(stack, app):
    """Statements of a pipeline, sent before the answers to those before them."""
    sizes = stack.log_sizes()
    with app.pipeline(), app.transaction():
        app.execute("CREATE TABLE made (a enc_text)")
        app.execute(f"INSERT INTO made VALUES ('{SECRET}')")
        rows = app.execute(f"SELECT count(*) FROM made WHERE a = '{SECRET}'")
    assert rows.fetchone() == (1,)
    assert SECRET not in stack.logged_since(sizes)


def test_changes_of_others(stack, app, dba):
    """A superuser makes a column protected, not through the proxy. The session is told with
    its next answer, and asks: the value after that is sealed."""
    app.execute("CREATE TABLE made (a text)")
    app.execute("INSERT INTO made VALUES ('plain')")
    sizes = stack.log_sizes()
    dba.execute("DROP TABLE made; CREATE TABLE made (a enc_text); GRANT ALL ON made TO app")
    app.execute("SELECT 1")
    insert(app)
    # In a transaction as well.
    app.execute("BEGIN")
    dba.execute("DROP TABLE made; CREATE TABLE made (a text); GRANT ALL ON made TO app")
    app.execute("SELECT 1")
    app.execute("INSERT INTO made VALUES ('plain')")
    app.execute("ROLLBACK")
    dba.execute("CREATE TABLE unheard (a enc_text); GRANT ALL ON unheard TO app")
    insert(app, "unheard")
    assert SECRET not in stack.logged_since(sizes)


def test_path_follows(stack, app, schema):
    """The search path as it is, set for a transaction, by a function, by DISCARD ALL, taken
    back with a savepoint: the same name is a protected table in one schema and a plain one in
    the other."""
    other = schema + "_2"
    app.execute(f"CREATE TABLE made (a enc_text); CREATE SCHEMA {other}")
    app.execute(f"CREATE TABLE {other}.made (a text)")
    sizes = stack.log_sizes()
    try:
        follow_path(app, schema, other)
    finally:
        app.execute("ROLLBACK")
        app.execute(f"SET search_path TO {schema}; DROP SCHEMA {other} CASCADE")
    assert SECRET not in stack.logged_since(sizes)


def follow_path(app, schema, other):
    def plain():
        app.execute("INSERT INTO made VALUES ('plain')")
        assert app.execute("SELECT a FROM made WHERE a = 'plain'").fetchone() == ("plain",)

    insert(app)
    app.execute(f"BEGIN; SET LOCAL search_path TO {other}")
    plain()
    app.execute("SAVEPOINT one")
    app.execute(f"SET LOCAL search_path TO {schema}")
    insert(app)
    app.execute("ROLLBACK TO one")
    plain()
    app.execute("COMMIT")
    insert(app)
    app.execute(f"SELECT set_config('search_path', '{other}', false)")
    plain()
    app.execute("DISCARD ALL")
    app.execute(f"SET search_path TO nowhere, {schema}, {other}")
    insert(app)
    app.execute(f"ALTER SCHEMA {other} RENAME TO nowhere")
    plain()
    app.execute(f"ALTER SCHEMA nowhere RENAME TO {other}")
    insert(app)


def test_temporary_tables_hide(stack, app):
    """A temporary table hides another of its name until it is dropped, at the latest with the
    transaction."""
    sizes = stack.log_sizes()
    app.execute("CREATE TABLE made (a enc_text)")
    app.execute("BEGIN; CREATE TEMP TABLE made (a text) ON COMMIT DROP")
    app.execute("INSERT INTO made VALUES ('plain')")
    assert app.execute("SELECT a FROM made WHERE a = 'plain'").fetchone() == ("plain",)
    app.execute("COMMIT")
    insert(app)
    app.execute("CREATE TEMP TABLE made (a text)")
    app.execute("INSERT INTO made VALUES ('plain')")
    app.execute("DISCARD TEMP")
    insert(app)
    assert SECRET not in stack.logged_since(sizes)


def stats(stack):
    with stack.connect_app(dbname="confide") as console:
        return {name: int(value) for name, value in console.execute("SHOW STATS").fetchall()}


def cost(stack, app, prefix, count=20):
    before = stats(stack)
    for n in range(count):
        app.execute(f"CREATE TABLE {prefix}{n:03} (a int, b enc_text)")
        app.execute(f"INSERT INTO {prefix}{n:03} VALUES (1, 'x')")
    after = stats(stack)
    return {name: (after[name] - before[name]) / count for name in after}


def test_cost_of_ddl(stack, app, dba, schema):
    """A statement that changes the schema costs the same few bytes of reports, whether there
    are ten tables or many, and no question; the schema was read as a whole once for each of
    them. A new session reads only what has changed since others began."""
    few = cost(stack, app, "few")
    dba.execute(f"""DO $$BEGIN FOR n IN 1..400 LOOP
        EXECUTE 'CREATE TABLE {schema}.filler' || n || ' (a int, b text, c enc_text)';
    END LOOP; END$$""")
    app.execute("SELECT 1")
    app.execute("SELECT * FROM few001")
    many = cost(stack, app, "many")
    for found in (few, many):
        assert found["confide_proxy_schema_loads_total"] == 0
        assert found["confide_proxy_schema_questions_total"] == 0
    reports = "confide_proxy_schema_report_bytes_total"
    assert many[reports] < 1.5 * few[reports] < 3000
    to_server = "confide_proxy_to_server_bytes_total"
    assert many[to_server] < 1.5 * few[to_server]

    def reads_little():
        before = stats(stack)
        with stack.connect_app() as connection:
            connection.execute(f"SELECT * FROM {schema}.many001")
        after = stats(stack)
        loads = "confide_proxy_schema_loads_total"
        return after[loads] == before[loads] and after[reports] - before[reports] < 3000

    # One that comes when the schema was last read long ago reads it as a whole.
    assert any(reads_little() for _ in range(5))


@pytest.mark.parametrize("ended_by", ["same", "another"])
def test_tables_of_a_prepared_transaction(app, second, schema, ended_by):
    """COMMIT PREPARED tells the proxy that something has changed, not what: it has to ask. It
    took its schema for complete instead: literals for the new table left in the clear, and a
    table that a crash had left prepared could not be read (42501)."""
    app.execute("BEGIN")
    app.execute("CREATE TABLE late (a int, v enc_int8)")
    app.execute("INSERT INTO late VALUES (1, 10)")
    app.execute(f"PREPARE TRANSACTION '{schema}'")
    {"same": app, "another": second}[ended_by].execute(f"COMMIT PREPARED '{schema}'")
    for client in (app, second):
        client.execute("INSERT INTO late VALUES (2, 20)")
        assert client.execute("SELECT v FROM late WHERE v > 15").fetchone() == (20,)
