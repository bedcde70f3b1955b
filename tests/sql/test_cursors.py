"""Names of cursors that are used again: the rows of each are those of its own query.

Mechanism: the proxy remembers which columns of a cursor may be protected, and ends the session if
others are. Right: what plain tables give. Bug: a session ends since its proxy takes a function's
cursor for one of the same name that was closed before.
"""

import psycopg

TABLES = [
    "CREATE TABLE emp (id int, name @text, note text)",
    "INSERT INTO emp VALUES (1, 'a', 'x'), (2, 'b', 'y')",
    "CREATE FUNCTION opened(c refcursor) RETURNS refcursor LANGUAGE plpgsql AS "
    "$$ BEGIN OPEN c FOR SELECT name FROM emp ORDER BY id; RETURN c; END $$",
]
PLAIN = "DECLARE c CURSOR FOR SELECT note FROM emp ORDER BY id"
HELD = "DECLARE c CURSOR WITH HOLD FOR SELECT note, name FROM emp ORDER BY id"
BY_FUNCTION = "SELECT opened('c')"
MESSAGES = [
    # Closed by the end of a transaction, by CLOSE, by ROLLBACK TO, by an error.
    *("BEGIN", PLAIN, "FETCH c", "COMMIT", "BEGIN", BY_FUNCTION, "FETCH c"),
    *("CLOSE c", PLAIN, f"CLOSE c; {BY_FUNCTION}; FETCH ALL c", "ROLLBACK"),
    *("BEGIN", "SAVEPOINT s", PLAIN, "ROLLBACK TO s", BY_FUNCTION, "FETCH c", "COMMIT"),
    *(f"{HELD}; SELECT 1/0", f"BEGIN; {BY_FUNCTION}; FETCH c; COMMIT"),
    # Held.
    *(f"BEGIN; {HELD}; COMMIT", "FETCH c", "MOVE c", "CLOSE ALL", BY_FUNCTION),
    *(HELD, "FETCH ALL c", "DISCARD ALL"),
]
PREPARED = [
    *("PREPARE p AS SELECT name, note FROM emp ORDER BY id", "EXECUTE p", "DEALLOCATE p"),
    *("PREPARE p AS SELECT note, name FROM emp ORDER BY id; EXECUTE p", "EXPLAIN EXECUTE p"),
    *("DEALLOCATE p; PREPARE p AS DELETE FROM emp RETURNING name", "EXECUTE p"),
]


def answers(connection, sql):
    try:
        cursor = connection.execute(sql)
        found = [cursor.statusmessage]
        while True:
            # Plans differ in their costs.
            shown = cursor.description and not sql.startswith("EXPLAIN")
            found.append(cursor.fetchall() if shown else None)
            if not cursor.nextset():
                return found
    except psycopg.Error as error:
        return error.sqlstate


def test_as_on_plain_tables(app, schema, plain_twin):
    for sql in TABLES + MESSAGES:
        expected = answers(plain_twin, sql.replace("@", ""))
        assert answers(app, sql.replace("@", "enc_")) == expected, sql
    app.execute(f'SET search_path = "{schema}"')
    plain_twin.execute(f'SET search_path = "{schema}_plain"')
    for sql in PREPARED:
        assert answers(app, sql) == answers(plain_twin, sql), sql
