"""asyncpg: prepared statements and binary values in both directions. See checks.py."""

import asyncio
import contextlib
import functools

import asyncpg
from checks import check, main
from drivers import COLUMNS, NULLS, ROWS, STATEMENTS, TABLE, insert, numbered

LOOP = asyncio.new_event_loop()
wait = LOOP.run_until_complete


def create(url):
    async def made():
        c = await asyncpg.connect(url)
        await c.execute(TABLE)
        await c.close()

    wait(made())


@contextlib.contextmanager
def session(url):
    c = wait(asyncpg.connect(url))
    wait(c.executemany(insert(lambda n: f"${n}"), [*ROWS, NULLS]))

    @contextlib.contextmanager
    def fresh():
        transaction = c.transaction()
        wait(transaction.start())
        yield c
        wait(transaction.rollback())

    yield fresh
    wait(c.close())


def waited(function):
    @functools.wraps(function)
    def run(c):
        return wait(function(c))

    return check(run)


# Untyped parameters of CASE are text here, and a product with numeric needs a type.
def statement(name, sql, values):
    async def run(c):
        prepared = await c.prepare(numbered(sql))
        types = [(a.name, a.type.name) for a in prepared.get_attributes()]
        return [types, [tuple(r) for r in await prepared.fetch(*values)]]

    run.__name__ = name
    waited(run)


for name, (sql, values) in STATEMENTS.items():
    statement(name, sql, values)


@waited
async def parameter_types(c):
    found = {}
    for name, (sql, _) in STATEMENTS.items():
        if not name.endswith("_error"):
            prepared = await c.prepare(numbered(sql))
            found[name] = [p.name for p in prepared.get_parameters()]
    return found


@waited
async def fetch_value(c):
    return await c.fetchval("SELECT name FROM item WHERE id = $1", 2)


@waited
async def fetch_row(c):
    return dict(await c.fetchrow("SELECT name, day, span FROM item WHERE id = $1", 2))


@waited
async def cursor_in_parts(c):
    return [r["name"] async for r in c.cursor("SELECT name FROM item ORDER BY id", prefetch=3)]


@waited
async def cursor_by_hand(c):
    cursor = await c.cursor("SELECT name, price FROM item WHERE n > $1 ORDER BY id", 1000)
    return [await cursor.fetchrow(), await cursor.forward(2), await cursor.fetch(3)]


@waited
async def execute_many(c):
    await c.executemany(
        "UPDATE item SET name = $1 WHERE id = $2", [(f"b{n}", n) for n in range(1, 6)]
    )
    return await c.fetch("SELECT name FROM item ORDER BY id")


@waited
async def insert_many(c):
    rows = [(100 + n, f"v{n}", n) for n in range(500)]
    await c.executemany("INSERT INTO item (id, name, n) VALUES ($1, $2, $3)", rows)
    return await c.fetchval("SELECT sum(n) FROM item WHERE name LIKE 'v%'")


@waited
async def insert_unnest(c):
    sql = "INSERT INTO item (id, name, n) SELECT * FROM unnest($1::int[], $2::text[], $3::int[])"
    await c.execute(sql, [80, 81], ["a", "b"], [1, None])
    return await c.fetch("SELECT name, n FROM item WHERE id >= 80 ORDER BY id")


@waited
async def copy_records_in(c):
    await c.copy_records_to_table("item", records=[(90, "binary", 5)], columns=["id", "name", "n"])
    return await c.fetch("SELECT name, n FROM item WHERE id = 90")


@waited
async def copy_all_records_in(c):
    rows = [(r[0] + 200, *r[1:]) for r in ROWS]
    await c.copy_records_to_table("item", records=rows, columns=COLUMNS)
    return await c.fetch("SELECT * FROM item WHERE id > 200 ORDER BY id")


@waited
async def copy_text_out(c):
    import io

    out = io.BytesIO()
    await c.copy_from_query("SELECT * FROM item WHERE id < $1 ORDER BY id", 4, output=out)
    return out.getvalue()


@waited
async def copy_binary_out(c):
    import io

    out = io.BytesIO()
    await c.copy_from_query("SELECT name, price FROM item ORDER BY id", output=out, format="binary")
    return out.getvalue()


@waited
async def simple_script(c):
    return await c.execute(
        "UPDATE item SET name = 'm' WHERE id = 2; DELETE FROM item WHERE name = 'm'"
    )


@waited
async def status_of_execute(c):
    return await c.execute("UPDATE item SET n = n + 1 WHERE name = $1", "plain")


@waited
async def prepared_twice(c):
    prepared = await c.prepare("SELECT id FROM item WHERE name = $1 ORDER BY id")
    return [await prepared.fetch("plain"), await prepared.fetch("o'Hara"), prepared.get_query()]


@waited
async def nested_transaction(c):
    try:
        async with c.transaction():
            await c.execute("UPDATE item SET name = 'gone'")
            await c.execute("INSERT INTO item (id, name) VALUES (1, 'x')")
    except asyncpg.UniqueViolationError as error:
        return [
            error.constraint_name,
            error.table_name,
            await c.fetchval("SELECT min(name) FROM item"),
        ]


@waited
async def fetch_many(c):
    rows = [(300 + n, f"r{n}") for n in range(3)]
    sql = "INSERT INTO item (id, name) VALUES ($1, $2) RETURNING name"
    return await c.fetchmany(sql, rows)


@waited
async def column_types_of_table(c):
    sql = "SELECT column_name, data_type, udt_name FROM information_schema.columns WHERE table_name = 'item' ORDER BY ordinal_position"
    return await c.fetch(sql)


if __name__ == "__main__":
    main(create, session)
