"""psycopg2: values in the text of statements, COPY, cursors on the server's side. See
checks.py."""

import contextlib
import io

import psycopg2
import psycopg2.extras
from checks import check, main
from drivers import NULLS, ROWS, STATEMENTS, TABLE, insert

psycopg2.extras.register_uuid()


def create(url):
    with psycopg2.connect(url) as c, c.cursor() as cursor:
        cursor.execute(TABLE)


@contextlib.contextmanager
def session(url):
    c = psycopg2.connect(url)
    with c.cursor() as cursor:
        cursor.executemany(insert(lambda n: "%s"), [*ROWS, NULLS])
    c.commit()

    @contextlib.contextmanager
    def fresh():
        yield c
        c.rollback()

    yield fresh
    c.close()


def all_of(c, sql, values=None):
    with c.cursor() as cursor:
        cursor.execute(sql, values)
        return [[(d.name, d.type_code) for d in cursor.description], cursor.fetchall()]


def statement(name, sql, values):
    def run(c):
        text = sql.replace("%", "%%").replace("?", "%s") if values else sql
        return all_of(c, text, values or None)

    run.__name__ = name
    check(run)


for name, (sql, values) in STATEMENTS.items():
    statement(name, sql, values)


@check
def server_side_cursor(c):
    with c.cursor("named") as cursor:
        cursor.itersize = 3
        cursor.execute("SELECT name, price FROM item WHERE n > %s ORDER BY id", [2000])
        return [cursor.fetchone(), cursor.fetchmany(2), list(cursor)]


@check
def scrollable_cursor(c):
    with c.cursor("scrolling", scrollable=True) as cursor:
        cursor.execute("SELECT name FROM item ORDER BY id")
        cursor.scroll(3)
        last = cursor.fetchone()
        cursor.scroll(-2)
        return [last, cursor.fetchone()]


@check
def dictionaries(c):
    with c.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as cursor:
        cursor.execute("SELECT name, day FROM item WHERE id = 3")
        return [dict(r) for r in cursor]


@check
def execute_values(c):
    with c.cursor() as cursor:
        rows = [(100 + n, f"v{n}", n) for n in range(300)]
        sql = "INSERT INTO item (id, name, n) VALUES %s RETURNING name"
        got = psycopg2.extras.execute_values(cursor, sql, rows, page_size=100, fetch=True)
        return [len(got), got[::50]]


@check
def execute_batch(c):
    with c.cursor() as cursor:
        rows = [(f"b{n}", n) for n in range(1, 5)]
        psycopg2.extras.execute_batch(cursor, "UPDATE item SET name = %s WHERE id = %s", rows)
    return all_of(c, "SELECT name FROM item ORDER BY id")


@check
def values_update(c):
    with c.cursor() as cursor:
        rows = [(1, "one"), (2, "two")]
        sql = "UPDATE item SET name = d.name FROM (VALUES %s) AS d (id, name) WHERE d.id = item.id"
        psycopg2.extras.execute_values(cursor, sql, rows)
    return all_of(c, "SELECT name FROM item ORDER BY id")


@check
def copy_in_and_out(c):
    with c.cursor() as cursor:
        cursor.copy_from(
            io.StringIO("70\tcopied\t1.50\n71\t\\N x\t\\N\n"),
            "item",
            columns=("id", "name", "price"),
        )
        out = io.StringIO()
        cursor.copy_expert("COPY (SELECT * FROM item ORDER BY id) TO STDOUT", out)
        return out.getvalue()


@check
def copy_csv(c):
    with c.cursor() as cursor:
        out = io.StringIO()
        cursor.copy_expert("COPY item (name, day, price) TO STDOUT WITH (FORMAT csv, HEADER)", out)
        return out.getvalue()


@check
def several_statements(c):
    return all_of(c, "UPDATE item SET name = 'm' WHERE id = 2; SELECT name FROM item WHERE id = 2")


@check
def mogrified(c):
    with c.cursor() as cursor:
        return cursor.mogrify("SELECT %s, %s", ["o'x\\", None])


@check
def row_count(c):
    with c.cursor() as cursor:
        cursor.execute("UPDATE item SET price = 1 WHERE name LIKE '%a%'")
        return [cursor.rowcount, cursor.statusmessage]


@check
def savepoint_after(c):
    with c.cursor() as cursor:
        cursor.execute("SAVEPOINT a")
        with contextlib.suppress(psycopg2.Error):
            cursor.execute("UPDATE item SET short = repeat('x', 30)")
        cursor.execute("ROLLBACK TO a")
    return all_of(c, "SELECT count(*) FROM item WHERE name = %s", ["plain"])


@check
def encoding_of_client(c):
    c.set_client_encoding("UTF8")
    return all_of(c, "SELECT 'ä', name FROM item WHERE name LIKE %s", ["Ä%"])


if __name__ == "__main__":
    main(create, session)
