// node-postgres: the statements of ../drivers.py, unnamed and prepared, cursors, forms of its own.
"use strict";
const { Client, Pool } = require("pg");
const Cursor = require("pg-cursor");
const { check, runAll, main } = require("./checks");

// As ../drivers.py prints it.
const given = JSON.parse(process.env.CONFIDE_DRIVERS);
const value = (v) => (v !== null && typeof v === "object" && "bytes" in v ? Buffer.from(v.bytes, "hex") : v);

async function create(url) {
  const client = new Client(url);
  await client.connect();
  await client.query(given.table);
  await client.end();
}

function told(result) {
  return [result.command, result.rowCount, result.fields.map((f) => [f.name, f.dataTypeID, f.dataTypeModifier]), result.rows];
}

const asked = (sql, values, name) => ({ text: sql, values: values.map(value), rowMode: "array", name });

for (const [name, [sql, values]] of Object.entries(given.statements)) {
  check(name, async (c) => told(await c.query(asked(sql, values))));
  if (!name.endsWith("_error")) {
    check(`prepared_${name}`, async (c) => {
      const twice = [];
      for (let n = 0; n < 2; n++) {
        await c.query("SAVEPOINT again");
        twice.push(told(await c.query(asked(sql, values, `by name ${name}`))));
        await c.query("ROLLBACK TO again");
      }
      return twice;
    });
  }
}

check("objects", async (c) => (await c.query("SELECT name, day, price, ok FROM item ORDER BY id")).rows);
check("several_statements", async (c) => (await c.query("UPDATE item SET n = 5 WHERE id = 1; SELECT n, name FROM item WHERE id = 1")).map(told));
check("cursor", async (c) => {
  const cursor = c.query(new Cursor("SELECT id, name, price FROM item WHERE n > $1 ORDER BY id", [1000]));
  const parts = [await cursor.read(2), await cursor.read(3), await cursor.read(100)];
  await cursor.close();
  return parts;
});
check("json_parameter", async (c) => (await c.query("SELECT $1::json AS j, name FROM item WHERE id = 2", [{ a: [1, "x"] }])).rows);
check("array_parameter", async (c) => (await c.query("SELECT id FROM item WHERE name = ANY($1::text[]) ORDER BY id", [["plain", "o'Hara", null]])).rows);
check("null_parameter", async (c) => (await c.query("UPDATE item SET price = $1, short = $2 WHERE id = 3 RETURNING price, short", [null, null])).rows);
check("number_for_text", async (c) => (await c.query("UPDATE item SET name = $1 WHERE id = 3 RETURNING name", [42])).rows);
check("date_object", async (c) => (await c.query("SELECT id FROM item WHERE seen = $1", [new Date("2011-12-13T04:15:16Z")])).rows);
check("error_fields", async (c) => {
  try {
    await c.query("INSERT INTO item (id, name) VALUES (1, 'x')");
  } catch (e) {
    return [e.code, e.constraint, e.table, e.severity, e.schema];
  }
});
check("error_position", async (c) => {
  try {
    await c.query("SELECT name FROM item WHERE nosuch = 'x'");
  } catch (e) {
    return [e.code, e.position, e.message];
  }
});
check("savepoint_after", async (c) => {
  await c.query("SAVEPOINT a");
  await c.query("UPDATE item SET short = repeat('x', 30)").catch(() => null);
  await c.query("ROLLBACK TO a");
  return (await c.query("SELECT count(*) FROM item WHERE name = 'plain'")).rows;
});
check("columns_of_the_table", async (c) => {
  const sql = "SELECT column_name, data_type, udt_name, character_maximum_length FROM information_schema.columns WHERE table_name = $1 ORDER BY ordinal_position";
  return (await c.query(sql, ["item"])).rows;
});
check("pool", async () => {
  const pool = new Pool({ connectionString: process.argv[2], max: 3 });
  const all = await Promise.all([1, 2, 3, 4, 5].map((n) => pool.query("SELECT name FROM item WHERE id = $1", [n])));
  await pool.end();
  return all.map((r) => r.rows);
});

async function session(url) {
  const client = new Client(url);
  await client.connect();
  for (const row of given.rows) await client.query(given.insert, row.map(value));
  await runAll(async (run) => {
    await client.query("BEGIN");
    try {
      return await run(client);
    } finally {
      await client.query("ROLLBACK");
    }
  });
  await client.end();
}

main(create, session).catch((error) => {
  console.error(error);
  process.exit(1);
});
