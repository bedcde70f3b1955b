"""pg8000, a driver in pure Python: untyped and typed parameters as text. See checks.py."""

import contextlib
import io

import pg8000.dbapi
from checks import check, main
from drivers import NULLS, ROWS, STATEMENTS, TABLE, insert
from psycopg.conninfo import conninfo_to_dict

pg8000.dbapi.paramstyle = "format"


def connect(url):
    parts = conninfo_to_dict(url)
    return pg8000.dbapi.connect(
        user=parts["user"],
        password=parts["password"],
        host=parts["host"],
        port=int(parts["port"]),
        database=parts["dbname"],
    )


def create(url):
    c = connect(url)
    c.cursor().execute(TABLE)
    c.commit()
    c.close()


@contextlib.contextmanager
def session(url):
    c = connect(url)
    cursor = c.cursor()
    for row in [*ROWS, NULLS]:
        cursor.execute(insert(lambda n: "%s"), row)
    c.commit()

    @contextlib.contextmanager
    def fresh():
        yield c
        c.rollback()

    yield fresh
    c.close()


def all_of(c, sql, values=()):
    cursor = c.cursor()
    cursor.execute(sql, values)
    return [[d[:2] for d in cursor.description], cursor.fetchall()]


def statement(name, sql, values):
    def run(c):
        return all_of(c, sql.replace("%", "%%").replace("?", "%s"), values)

    run.__name__ = name
    check(run)


# This driver leaves the types of texts to the server, which refuses these on plain tables, too.
UNTYPED = {"case", "arithmetic"}

for name, (sql, values) in STATEMENTS.items():
    if name not in UNTYPED:
        statement(name, sql, values)


@check
def execute_many(c):
    cursor = c.cursor()
    cursor.executemany(
        "UPDATE item SET name = %s WHERE id = %s", [(f"b{n}", n) for n in range(1, 5)]
    )
    return all_of(c, "SELECT name FROM item ORDER BY id")


@check
def copy_in_and_out(c):
    cursor = c.cursor()
    cursor.execute(
        "COPY item (id, name, price) FROM STDIN", stream=io.BytesIO(b"70\tcopied\t1.50\n")
    )
    out = io.BytesIO()
    cursor.execute("COPY (SELECT * FROM item ORDER BY id) TO STDOUT", stream=out)
    return out.getvalue()


@check
def fetch_in_parts(c):
    cursor = c.cursor()
    cursor.execute("SELECT name FROM item ORDER BY id")
    return [cursor.fetchone(), cursor.fetchmany(2), cursor.fetchall()]


@check
def savepoint_after(c):
    cursor = c.cursor()
    cursor.execute("SAVEPOINT a")
    with contextlib.suppress(pg8000.dbapi.DatabaseError):
        cursor.execute("INSERT INTO item (id, name) VALUES (1, 'x')")
    cursor.execute("ROLLBACK TO a")
    return all_of(c, "SELECT count(*) FROM item WHERE name = %s", ["plain"])


@check
def row_count(c):
    cursor = c.cursor()
    cursor.execute("UPDATE item SET price = 1 WHERE ok")
    return cursor.rowcount


@check
def simple_script(c):
    c.execute_simple(
        "UPDATE item SET name = 'm' WHERE id = 2; UPDATE item SET name = 'n' WHERE name = 'm'"
    )
    return all_of(c, "SELECT name FROM item WHERE id = 2")


if __name__ == "__main__":
    main(create, session)
