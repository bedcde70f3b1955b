// TypeORM: its schema builder, repositories, relations, query builder, what it would change in a
// schema that it finds.
"use strict";
const orm = require("typeorm");
const { check, runAll, main } = require("./checks");

const Author = new orm.EntitySchema({
  name: "Author",
  columns: {
    id: { type: Number, primary: true },
    name: { type: "varchar", length: 60, unique: true },
    bio: { type: "text", nullable: true },
    born: { type: "date", nullable: true },
  },
  relations: { books: { type: "one-to-many", target: "Book", inverseSide: "author" } },
});
const Book = new orm.EntitySchema({
  name: "Book",
  columns: {
    id: { type: Number, primary: true, generated: "increment" },
    title: { type: "text" },
    isbn: { type: "varchar", length: 13 },
    price: { type: "numeric", precision: 8, scale: 2, nullable: true },
    pages: { type: "int" },
    sold: { type: "bigint" },
    rating: { type: "double precision", nullable: true },
    available: { type: "boolean" },
    published: { type: "date", nullable: true },
    stamp: { type: "timestamp with time zone", nullable: true },
    opens: { type: "time", nullable: true },
    cover: { type: "bytea", nullable: true },
    code: { type: "uuid", nullable: true },
  },
  indices: [{ columns: ["isbn"], unique: true }, { columns: ["price", "title"] }],
  relations: { author: { type: "many-to-one", target: "Author", inverseSide: "books", joinColumn: true, nullable: true } },
});

const source = (url, synchronize) => new orm.DataSource({ type: "postgres", url, entities: [Author, Book], synchronize });

async function create(url) {
  const made = source(url, true);
  await made.initialize();
  await made.destroy();
}

const NAMES = ["Ann Miller", "Bob 100%", "Carl_Under", "Dora\\Slash", "Änne Öz", "o'Hara"];
const book = (n) => ({
  title: `Book ${n} of ${NAMES[n % 6]}`, isbn: `978-${n}`, price: n === 7 ? null : `${n * 10}.99`, pages: n * 100,
  sold: `${n}000000000`, rating: n / 3, available: n % 2 === 0, published: `200${n}-0${n}-0${n}`,
  stamp: new Date(Date.UTC(2023, n, n, 23, 30, 1, 5)), opens: `0${n}:15:30`, cover: Buffer.from([n, 255]),
  code: `00000000-0000-0000-0000-00000000000${n}`, author: n === 8 ? null : { id: (n % 6) + 1 },
});

async function load(data) {
  const authors = NAMES.map((name, n) => ({ id: n + 1, name, bio: n % 2 ? null : `bio of ${name}`, born: `19${50 + n}-01-02` }));
  await data.manager.save("Author", authors);
  for (let n = 1; n <= 8; n++) await data.manager.save("Book", book(n));
}

const order = { id: "ASC" };
const found = (name, where) => check(`find_${name}`, (m) => m.find("Book", { where, order, select: { id: true } }));
found("equal", { title: "Book 2 of Carl_Under" });
found("like", { title: orm.Like("%Carl%") });
found("ilike", { title: orm.ILike("%MILLER") });
found("in", { isbn: orm.In(["978-1", "978-3", "none"]) });
found("not_in", { isbn: orm.Not(orm.In(["978-1", "978-3"])) });
found("any", { isbn: orm.Any(["978-4", "978-5"]) });
found("more", { price: orm.MoreThan("40") });
found("less_or_equal", { pages: orm.LessThanOrEqual(300) });
found("between_dates", { published: orm.Between("2002-01-01", "2005-12-31") });
found("is_null", { price: orm.IsNull() });
found("not_null", { price: orm.Not(orm.IsNull()) });
found("boolean", { available: true });
found("bigint", { sold: "3000000000" });
found("double", { rating: orm.MoreThan(1.5) });
found("timestamp", { stamp: orm.LessThan(new Date(Date.UTC(2023, 4, 9))) });
found("time", { opens: orm.MoreThanOrEqual("04:00:00") });
found("uuid", { code: "00000000-0000-0000-0000-000000000004" });
found("bytes", { cover: Buffer.from([3, 255]) });
found("or", [{ title: orm.Like("Book 1%") }, { pages: 500 }]);
found("and", { available: true, pages: orm.MoreThan(300) });
found("raw", { title: orm.Raw((c) => `length(${c}) > :n`, { n: 18 }) });
found("relation", { author: { name: "Ann Miller" } });
found("relation_like", { author: { name: orm.Like("%o%") } });

check("all", (m) => m.find("Book", { order, relations: { author: true } }));
check("one", (m) => m.findOneByOrFail("Book", { isbn: "978-5" }));
check("order", (m) => m.find("Book", { order: { available: "DESC", title: "ASC" }, select: { id: true } }));
check("order_nulls", (m) => m.find("Book", { order: { price: { direction: "DESC", nulls: "LAST" } }, select: { id: true } }));
check("page", (m) => m.findAndCount("Book", { order: { title: "ASC" }, skip: 2, take: 3 }));
check("page_with_relation", (m) => m.find("Author", { relations: { books: true }, order: { name: "ASC" }, skip: 1, take: 2 }));
check("relations", (m) => m.find("Author", { relations: { books: true }, order: { id: "ASC", books: { id: "ASC" } } }));
check("count", (m) => m.count("Book", { where: { price: orm.MoreThan("30") } }));
check("exists", (m) => m.exists("Book", { where: { title: "none" } }));
check("sum", (m) => m.sum("Book", "pages", {}));
check("average", (m) => m.average("Book", "price", {}));
check("minimum", (m) => m.minimum("Book", "price", {}));
check("maximum", (m) => m.maximum("Book", "rating", {}));
check("save_new", async (m) => {
  const saved = await m.save("Book", { ...book(9), title: "new" });
  return [saved, await m.findOneBy("Book", { isbn: "978-9" })].map((b) => ({ ...b, id: 0 }));
});
check("save_changed", async (m) => {
  const one = await m.findOneByOrFail("Book", { isbn: "978-2" });
  Object.assign(one, { title: "changed", price: "1.5", rating: null });
  await m.save("Book", one);
  return m.findOneBy("Book", { isbn: "978-2" });
});
check("save_many", async (m) => {
  await m.save("Author", Array.from({ length: 50 }, (_, n) => ({ id: 100 + n, name: `author ${n}` })));
  return m.countBy("Author", { name: orm.Like("author %") });
});
check("insert", async (m) => (await m.insert("Author", { id: 50, name: "inserted" })).raw);
check("update", async (m) => [(await m.update("Book", { available: true }, { title: "x" })).affected, await m.findBy("Book", { title: "x" })]);
check("delete", async (m) => [(await m.delete("Book", { title: orm.Like("%Miller") })).affected, await m.count("Book")]);
check("upsert", async (m) => {
  await m.upsert("Author", { id: 1, name: "again", bio: "b" }, ["id"]);
  return m.findOneBy("Author", { id: 1 });
});
check("upsert_by_name", async (m) => {
  await m.upsert("Author", { id: 1, name: "Ann Miller", bio: "c" }, ["name"]);
  return m.findOneBy("Author", { id: 1 });
});
check("increment", async (m) => {
  await m.increment("Book", { available: true }, "pages", 7);
  return m.find("Book", { order, select: { pages: true } });
});
check("remove", async (m) => {
  await m.remove("Book", await m.findBy("Book", { author: { id: 1 } }));
  return m.count("Book");
});
const built = (name, make) => check(`builder_${name}`, (m) => make(m.createQueryBuilder("Book", "b")));
built("where", (q) => q.where("b.title LIKE :t AND b.price < :p", { t: "Book%", p: 50 }).orderBy("b.id").getMany());
built("join", (q) => q.innerJoinAndSelect("b.author", "a").where("a.name = :n", { n: "o'Hara" }).getMany());
built("group", (q) => q.select("b.available", "available").addSelect("SUM(b.price)", "sum").groupBy("b.available").orderBy("b.available").getRawMany());
built("having", (q) => q.leftJoin("b.author", "a").select("a.name", "name").addSelect("COUNT(*)", "n").groupBy("a.name").having("SUM(b.pages) > :m", { m: 500 }).orderBy("a.name").getRawMany());
built("expressions", (q) => q.select("UPPER(b.title)", "t").addSelect("b.price * 2 + :x", "p").addSelect("EXTRACT(year FROM b.published)", "y").setParameter("x", 1).orderBy("b.id").getRawMany());
built("case", (q) => q.select("CASE WHEN b.pages > 400 THEN 'long' ELSE 'short' END", "kind").orderBy("b.id").getRawMany());
built("coalesce", (q) => q.select("COALESCE(b.price, 0)", "p").orderBy("b.id").getRawMany());
built("subquery", (q) => q.where("b.price > " + q.subQuery().select("AVG(c.price)").from("Book", "c").getQuery()).orderBy("b.id").getMany());
built("distinct_on", (q) => q.distinctOn(["b.available"]).orderBy("b.available").addOrderBy("b.price", "DESC").getMany());
built("window", (q) => q.select("b.id", "id").addSelect("RANK() OVER (ORDER BY b.price DESC)", "r").orderBy("b.id").getRawMany());
built("locked", (q) => q.setLock("pessimistic_write").where("b.pages > 600").orderBy("b.id").getMany());
built("update", (q) => q.update().set({ title: () => "'The ' || title" }).where("pages < :p", { p: 300 }).returning(["title"]).execute().then((r) => r.raw.map((b) => b.title).sort()));
built("insert_ignore", (q) => q.insert().values(book(1)).orIgnore().execute().then((r) => r.raw.length));
check("raw_query", (m) => m.query("SELECT title, price, published FROM book WHERE price > $1 ORDER BY id", ["50"]));
check("unique_error", (m) => m.insert("Author", { id: 60, name: "Ann Miller" }));
check("not_null_error", (m) => m.insert("Author", { id: 60, name: null }));
check("too_long_error", (m) => m.insert("Author", { id: 60, name: "x".repeat(61) }));
check("what_synchronize_would_do", async (m) => {
  const log = await m.connection.driver.createSchemaBuilder().log();
  return log.upQueries.map((q) => q.query);
});
check("synchronize", async (m) => {
  await m.connection.synchronize();
  return m.count("Book");
});

async function session(url) {
  const data = source(url, false);
  await data.initialize();
  await load(data);

  await runAll(async (run) => {
    const runner = data.createQueryRunner();
    await runner.startTransaction();
    try {
      return await run(runner.manager);
    } finally {
      await runner.rollbackTransaction();
      await runner.release();
    }
  });
  await data.destroy();
}

main(create, session).catch((error) => {
  console.error(error);
  process.exit(1);
});
