"""The family soft_: columns whose rows contain encodings on which PostgreSQL computes.

Mechanism: the proxy encodes a literal or parameter for the column that it meets, and decodes
results; PostgreSQL compares and adds encodings without a keeper. Right: PostgreSQL's results on the
plain twin, or a refusal. Bug: rows are missing, in another order, or in plaintext.
"""

import datetime
import random
from decimal import Decimal

import psycopg
import pytest

DAY = datetime.date
TIME = datetime.datetime
COLUMNS = "id, name, salary, small, big, price, born, seen, active"
PLAIN = (
    "id int PRIMARY KEY, name text, salary int4, small int2, big int8,"
    " price numeric(10,2), born date, seen timestamp, active bool"
)
SOFT = (
    "id int PRIMARY KEY, name soft_text, salary soft_int4, small soft_int2, big soft_int8,"
    " price soft_numeric(10,2), born soft_date, seen soft_timestamp, active soft_bool"
)
ROWS = [
    (1, "Ann", 5200, 7, 1 << 40, "12.50", DAY(1980, 2, 29), TIME(2020, 1, 1, 12, 30), True),
    (2, "Bob", 4100, -7, -(1 << 40), "-0.05", DAY(1970, 1, 1), TIME(1999, 12, 31), False),
    (3, None, 5200, None, 0, "99999999.99", None, None, None),
    (4, "Cleo", None, 32767, None, None, DAY(2024, 12, 31), TIME(2020, 1, 1, 12, 31), True),
    (5, "Ann", -7, -32768, (1 << 63) - 1, "0", DAY(1, 1, 1), TIME(2020, 1, 1, 12, 30), False),
    (6, "", 2147483647, 0, -(1 << 63), "12.5", DAY(1980, 2, 29), TIME(1, 1, 1), True),
    (7, "žluťoučký 'kůň'", -2147483648, 7, 5, "12.51", DAY(1980, 3, 1), None, None),
]


def fill(connection, columns):
    connection.execute(f"CREATE TABLE staff ({columns})")
    for row in ROWS:
        connection.execute("INSERT INTO staff VALUES (%s,%s,%s,%s,%s,%s,%s,%s,%s)", row)


@pytest.fixture
def staff(app):
    fill(app, SOFT)
    return app


def test_values_return(staff, dba):
    """What was written is read, in text and in binary format; the superuser reads encodings."""
    expected = [
        (*row[:5], row[5] and Decimal(row[5]).quantize(Decimal("0.01")), *row[6:]) for row in ROWS
    ]
    query = f"SELECT {COLUMNS} FROM staff ORDER BY id"
    assert staff.execute(query).fetchall() == expected
    with staff.cursor(binary=True) as cursor:
        assert cursor.execute(query).fetchall() == expected
    raw = dba.execute("SELECT * FROM staff").fetchall()
    assert all(v is None or str(v).startswith("soft1.") for row in raw for v in row[1:])


QUERIES = [
    "SELECT id FROM staff WHERE salary = 5200 ORDER BY id",
    "SELECT id FROM staff WHERE salary = -7 OR name = 'Ann' ORDER BY id",
    "SELECT id FROM staff WHERE name <> 'Ann' ORDER BY id",
    "SELECT id FROM staff WHERE name = '' OR name = 'žluťoučký ''kůň''' ORDER BY id",
    "SELECT id FROM staff WHERE small IN (7, -32768) ORDER BY id",
    "SELECT id FROM staff WHERE price = 12.5 ORDER BY id",
    "SELECT id FROM staff WHERE price IN (12.50, 0, '-0.05') ORDER BY id",
    "SELECT id FROM staff WHERE born = '1980-02-29' ORDER BY id",
    "SELECT id FROM staff WHERE born = date '1980-02-29' ORDER BY id",
    "SELECT id FROM staff WHERE seen = '2020-01-01 12:30' ORDER BY id",
    "SELECT id FROM staff WHERE active = true ORDER BY id",
    "SELECT id FROM staff WHERE name IS NULL",
    "SELECT id FROM staff WHERE salary IS DISTINCT FROM 5200 ORDER BY id",
    "SELECT count(*), count(salary), count(DISTINCT salary) FROM staff",
    "SELECT salary, count(*) FROM staff GROUP BY salary HAVING count(*) > 1",
    "SELECT a.id, b.id FROM staff a JOIN staff b ON a.salary = b.salary ORDER BY 1, 2",
    "SELECT a.id, b.id FROM staff a JOIN staff b USING (name) ORDER BY 1, 2",
    "SELECT id FROM staff a WHERE name IN (SELECT name FROM staff b WHERE b.id > a.id)",
    "SELECT id, coalesce(salary, 0) FROM staff ORDER BY id",
    "SELECT id, CASE WHEN salary = 5200 THEN 'x' ELSE 'y' END FROM staff ORDER BY id",
    "SELECT name FROM (SELECT name, salary AS s FROM staff) v WHERE s = 4100",
    "WITH v AS (SELECT * FROM staff) SELECT id FROM v WHERE big = 1099511627776",
    "SELECT id FROM staff WHERE nullif(salary, 5200) IS NULL ORDER BY id",
    "SELECT id FROM staff WHERE (name, salary) = ('Ann', -7)",
    "SELECT id FROM staff WHERE salary = ANY (ARRAY[4100, -7]) ORDER BY id",
]
ORDERED = [
    "SELECT id FROM staff WHERE salary < 5200 ORDER BY id",
    "SELECT id FROM staff WHERE salary >= -7 AND salary < 5200 ORDER BY id",
    "SELECT id FROM staff WHERE small BETWEEN -7 AND 7 ORDER BY id",
    "SELECT id FROM staff WHERE big > 0 ORDER BY id",
    "SELECT id FROM staff WHERE price <= 12.5 ORDER BY id",
    "SELECT id FROM staff WHERE born < '1980-03-01' ORDER BY id",
    "SELECT id FROM staff WHERE seen > timestamp '2020-01-01 12:30' ORDER BY id",
    "SELECT id FROM staff ORDER BY salary, id",
    "SELECT id FROM staff ORDER BY small DESC NULLS LAST, id",
    "SELECT id FROM staff ORDER BY big, price, id",
    "SELECT price FROM staff ORDER BY price DESC, id",
    "SELECT id FROM staff ORDER BY born, id",
    "SELECT id FROM staff ORDER BY seen, id LIMIT 4",
    "SELECT min(salary), max(salary), min(small), max(big), min(price), max(born) FROM staff",
    "SELECT name, max(salary) FROM staff WHERE name = 'Ann' GROUP BY name",
    "SELECT max(price) FROM staff WHERE salary > 6000000",
    "SELECT active, max(born) FROM staff GROUP BY 1 HAVING max(born) > '1980-01-01' ORDER BY 2",
    "SELECT id FROM staff WHERE salary = (SELECT max(salary) FROM staff)",
    "SELECT a.id, b.id FROM staff a JOIN staff b ON a.price < b.price ORDER BY 1, 2",
    "SELECT id, rank() OVER (ORDER BY salary) FROM staff ORDER BY id",
    "SELECT DISTINCT salary FROM staff ORDER BY salary",
    "SELECT id FROM staff WHERE greatest(salary, 0) = 0 ORDER BY id",
]
SUMS = [
    "SELECT sum(salary), sum(small), sum(big), sum(price) FROM staff",
    "SELECT avg(salary), avg(small), avg(price) FROM staff",
    "SELECT avg(big) FROM staff WHERE id < 4",
    "SELECT name, sum(salary), avg(price), count(*) FROM staff WHERE name = 'Ann' GROUP BY 1",
    "SELECT sum(a.salary) FROM staff a JOIN staff b ON a.name = b.name",
    "SELECT sum(salary), avg(salary) FROM staff WHERE id > 100",
    "SELECT sum(price) FROM staff WHERE price < 0",
]


def both(app, plain_twin, query):
    with app.cursor(binary=True) as binary:
        ours = app.execute(query).fetchall()
        assert binary.execute(query).fetchall() == ours
    return ours, plain_twin.execute(query).fetchall()


@pytest.fixture
def twins(staff, plain_twin):
    fill(plain_twin, PLAIN)
    return staff, plain_twin


@pytest.mark.parametrize("queries", [QUERIES, ORDERED, SUMS], ids=["equality", "order", "sums"])
def test_as_plain(twins, queries):
    """Each query gives what PostgreSQL gives on plain columns."""
    for query in queries:
        ours, theirs = both(*twins, query)
        assert ours == theirs, query


@pytest.mark.parametrize("kind", ["mergejoin", "hashjoin", "nestloop"])
def test_joins_of_each_kind(twins, kind):
    """Hash and merge joins find the operators, and agree."""
    query = "SELECT a.id, b.id FROM staff a JOIN staff b ON a.salary = b.salary ORDER BY 1, 2"
    for connection in twins:
        for other in ["mergejoin", "hashjoin", "nestloop"]:
            connection.execute(f"SET enable_{other} = {'on' if other == kind else 'off'}")
    ours, theirs = both(*twins, query)
    assert ours == theirs
    names = {"mergejoin": "Merge Join", "hashjoin": "Hash Join", "nestloop": "Nested Loop"}
    plan = "\n".join(row[0] for row in twins[0].execute(f"EXPLAIN {query}").fetchall())
    assert names[kind] in plan


def test_parameters(twins):
    """Parameters, prepared, in text and binary format, and of another declared type."""
    queries = [
        ("SELECT id FROM staff WHERE salary = %s", (4100,)),
        ("SELECT id FROM staff WHERE name = %s ORDER BY id", ("Ann",)),
        ("SELECT id FROM staff WHERE price = %s", (Decimal("12.51"),)),
        ("SELECT id FROM staff WHERE born = %s ORDER BY id", (DAY(1980, 2, 29),)),
        ("SELECT id FROM staff WHERE big > %s ORDER BY id", (5,)),
        ("SELECT id FROM staff WHERE %s::int IS NULL OR salary = %s", (1, 4100)),
        (
            "UPDATE staff SET salary = %s, name = %s WHERE salary = %s RETURNING id",
            (1, "new", 4100),
        ),
        ("DELETE FROM staff WHERE name = %s RETURNING id, salary", ("new",)),
    ]
    for query, values in queries:
        for form in ["%s", "%b", "%t"]:
            shaped = query.replace("%s", form)
            ours, theirs = (
                [c.execute(shaped, values, prepare=p).fetchall() for p in (True, False, True)]
                for c in twins
            )
            assert ours == theirs, shaped


def test_writing(twins):
    """Assignments round and check as PostgreSQL's; a whole row comes back."""
    for text in [
        "INSERT INTO staff (id, price, salary) VALUES (10, 1.005, 2.5), (11, '7', '8')",
        "UPDATE staff SET price = 3, salary = DEFAULT WHERE id = 10",
        "UPDATE staff SET salary = (SELECT b.salary FROM staff b WHERE b.id = 1) WHERE id = 11",
        "INSERT INTO staff (id, name) SELECT id + 100, name FROM staff WHERE name = 'Ann'",
    ]:
        for connection in twins:
            connection.execute(text)
    ours, theirs = both(*twins, f"SELECT {COLUMNS} FROM staff ORDER BY id")
    assert ours == theirs
    for wrong in [
        "INSERT INTO staff (id, salary) VALUES (20, 3000000000)",
        "INSERT INTO staff (id, salary) VALUES (20, 'x')",
        "INSERT INTO staff (id, price) VALUES (20, 123456789.5)",
        "INSERT INTO staff (id, born) VALUES (20, '2020-02-30')",
        "SELECT id FROM staff WHERE salary = 'x'",
    ]:
        states = []
        for connection in twins:
            with pytest.raises(psycopg.Error) as error, connection.transaction():
                connection.execute(wrong)
            states.append(error.value.sqlstate)
        assert states[0] == states[1], wrong


def test_copy(twins):
    """COPY in both directions and formats."""
    for options in ["", "(FORMAT csv)"]:
        data = []
        for connection in twins:
            with connection.cursor().copy(f"COPY staff TO STDOUT {options}") as copy:
                data.append(b"".join(bytes(chunk) for chunk in copy))
        assert sorted(data[0].splitlines()) == sorted(data[1].splitlines())
        for connection in twins:
            connection.execute("DELETE FROM staff")
            with connection.cursor().copy(f"COPY staff FROM STDIN {options}") as copy:
                copy.write(data[1])
        ours, theirs = both(*twins, f"SELECT {COLUMNS} FROM staff ORDER BY id")
        assert ours == theirs
        assert len(ours) == len(ROWS)


def test_indexes_and_constraints(twins):
    """Unique, primary and foreign keys, B-tree and hash indexes, defaults."""
    app, plain = twins
    for connection in twins:
        connection.execute("ALTER TABLE staff ALTER COLUMN salary SET DEFAULT 77")
        connection.execute("INSERT INTO staff (id) VALUES (50)")
        connection.execute("CREATE UNIQUE INDEX ON staff (big)")
        connection.execute("CREATE INDEX ON staff (salary)")
        connection.execute("CREATE INDEX ON staff USING hash (name)")
        connection.execute("ANALYZE staff")
        with pytest.raises(psycopg.errors.UniqueViolation), connection.transaction():
            connection.execute("INSERT INTO staff (id, big) VALUES (51, 5)")
        connection.execute("SET enable_seqscan = off")
    for query in [*QUERIES, *ORDERED]:
        ours, theirs = both(app, plain, query)
        assert ours == theirs, query
    plan = "".join(r[0] for r in app.execute("EXPLAIN SELECT id FROM staff WHERE salary < 5000"))
    assert "Index Scan" in plan
    assert "salary < '5000'::soft_int4" in plan


@pytest.mark.parametrize("name", ["int2", "int4", "int8", "date", "timestamp", "numeric(18,4)"])
def test_order_of_many(app, plain_twin, name):
    """The order in C is that of the encodings in Rust, over numbers of each length and sign."""
    draw = random.Random(name)
    low, high = {"int2": (-(1 << 15), 1 << 15), "int4": (-(1 << 31), 1 << 31)}.get(
        name, (-(10**13), 10**13)
    )
    numbers = [draw.randrange(low, high) >> draw.randrange(64) for _ in range(200)]
    for connection, ty in [(app, f"soft_{name}"), (plain_twin, name)]:
        connection.execute(f"CREATE TABLE many (id int, x {ty})")
        with connection.cursor().copy("COPY many FROM STDIN") as copy:
            for at, number in enumerate(numbers):
                value = number
                if name == "date":
                    value = DAY(2000, 1, 1) + datetime.timedelta(days=number % 800000)
                elif name == "timestamp":
                    value = TIME(2000, 1, 1) + datetime.timedelta(microseconds=number)
                copy.write_row((at, value))
    for query in [
        "SELECT id FROM many ORDER BY x, id",
        "SELECT a.id FROM many a JOIN many b ON a.x < b.x WHERE b.id < 5 ORDER BY 1",
        "SELECT min(x), max(x), count(DISTINCT x) FROM many",
    ]:
        ours, theirs = both(app, plain_twin, query)
        assert ours == theirs, query


def test_foreign_keys(app):
    """Columns that share a key can refer to each other."""
    app.execute("CREATE TABLE a (x soft_int4(eq, ord, key_77) PRIMARY KEY)")
    app.execute("CREATE TABLE b (y soft_int4(eq, ord, key_77) REFERENCES a ON DELETE CASCADE)")
    app.execute("INSERT INTO a VALUES (1), (2), (-3)")
    app.execute("INSERT INTO b VALUES (1), (-3)")
    assert app.execute("SELECT x, y FROM a LEFT JOIN b ON x = y ORDER BY x").fetchall() == [
        (-3, -3),
        (1, 1),
        (2, None),
    ]
    with pytest.raises(psycopg.errors.ForeignKeyViolation) as error, app.transaction():
        app.execute("INSERT INTO b VALUES (5)")
    assert "(y)=(5)" in str(error.value)
    app.execute("DELETE FROM a WHERE x = 1")
    assert app.execute("SELECT y FROM b").fetchall() == [(-3,)]


def test_arrays(twins):
    """`= ANY` of one parameter or literal, as drivers write lists; arrays as results."""
    names, numbers = ["Ann", None, "žluťoučký 'kůň'", ""], [5200, -7, 2**31 - 1]
    queries = [
        ("SELECT id FROM staff WHERE salary = ANY (%s) ORDER BY id", (numbers,)),
        ("SELECT id FROM staff WHERE salary <> ALL (%s) ORDER BY id", (numbers,)),
        ("SELECT id FROM staff WHERE salary < ANY (%s) ORDER BY id", ([-7, 5200],)),
        ("SELECT id FROM staff WHERE name = ANY (%s) ORDER BY id", (names,)),
        ("SELECT id FROM staff WHERE name = ANY (%s::text[]) ORDER BY id", (names,)),
        ("SELECT id FROM staff WHERE born = ANY (%s) ORDER BY id", ([DAY(1980, 2, 29)],)),
        ("SELECT id FROM staff WHERE price = ANY (%s) ORDER BY id", ([Decimal("12.5")],)),
        ("SELECT id FROM staff WHERE salary = ANY (%s) ORDER BY id", ([],)),
        ("SELECT id FROM staff WHERE salary = ANY ('{5200,NULL,-7}') ORDER BY id", ()),
        ("SELECT id FROM staff WHERE salary = ANY ('{-7}'::int4[]) ORDER BY id", ()),
        ("SELECT id FROM staff WHERE name = ANY (ARRAY['Ann', 'x']::text[]) ORDER BY id", ()),
        ("SELECT array_agg(salary ORDER BY id), array_agg(name ORDER BY id) FROM staff", ()),
    ]
    for query, values in queries:
        for form in ["%s", "%b", "%t"]:
            shaped = query.replace("%s", form)
            ours, theirs = (
                [c.execute(shaped, values, prepare=p).fetchall() for p in (True, False, True)]
                for c in twins
            )
            assert ours == theirs, shaped
    for connection in twins:
        with pytest.raises(psycopg.Error) as error, connection.transaction():
            connection.execute("SELECT id FROM staff WHERE salary = ANY ('{x}')")
        assert error.value.sqlstate == "22P02"


def test_definitions_with_constants(twins):
    """DEFAULT and CHECK in CREATE TABLE, where the column names its key."""
    for connection, ty in zip(twins, ["soft_int4(key_91)", "int4"], strict=True):
        connection.execute(
            f"CREATE TABLE u (id int, x {ty} DEFAULT 5 CHECK (x < 70), CHECK (x <> 9),"
            " CHECK (x NOT IN (11, 12)))"
        )
        connection.execute("INSERT INTO u VALUES (1), (2), (3)")
        connection.execute("UPDATE u SET x = 69 WHERE id = 2")
        for wrong in [9, 12, 70]:
            with pytest.raises(psycopg.errors.CheckViolation), connection.transaction():
                connection.execute("INSERT INTO u VALUES (4, %s)", (wrong,))
    ours, theirs = both(*twins, "SELECT x, count(*) FROM u GROUP BY x ORDER BY x")
    assert ours == theirs == [(5, 2), (69, 1)]


TEXTS = ["", "a", "ab", "abc", "abcd", "abd", "B", "žluť", "zebra", "abcdefg", "abcdefgh", None]
TEXT_QUERIES = [
    "SELECT id FROM words WHERE w < 'abd' ORDER BY id",
    "SELECT id FROM words WHERE w >= 'abc' AND w < 'abd' ORDER BY id",
    "SELECT id FROM words WHERE w BETWEEN '' AND 'abcd' ORDER BY id",
    "SELECT id FROM words WHERE w > 'abc' OR w > 'zebra' ORDER BY id",
    "SELECT id FROM words WHERE w = 'abcdefghijkl' OR w <= 'ab' ORDER BY id",
    "SELECT id FROM words WHERE coalesce(w, 'q') > 'm' ORDER BY id",
    "SELECT w FROM words WHERE length < 9 ORDER BY w NULLS FIRST, id",
    "SELECT w, count(*) FROM words GROUP BY w HAVING count(*) > 1",
]


@pytest.mark.parametrize("indexed", [False, True])
def test_order_of_texts(app, plain_twin, indexed):
    """Texts have the order of their first bytes: exact beside shorter literals; ties are stored."""
    words = [*TEXTS, "abcdefghijkl", "abcdefghzz", "abcdefghijkl", "zebra crossing"]
    for connection, ty in [(app, "soft_text(eq, ord)"), (plain_twin, "text")]:
        connection.execute(f"CREATE TABLE words (id int, w {ty}, length int)")
        for at, word in enumerate(words):
            row = (at, word, len((word or "").encode()))
            connection.execute("INSERT INTO words VALUES (%s, %s, %s)", row)
        if indexed:
            connection.execute("CREATE INDEX ON words (w)")
            connection.execute("ANALYZE words")
            connection.execute("SET enable_seqscan = off")
    for query in TEXT_QUERIES:
        ours, theirs = both(app, plain_twin, query)
        assert ours == theirs, query
    for query in ["SELECT id FROM words WHERE w < %s ORDER BY id"]:
        for value in ["abd", "", "zebra"]:
            ours, theirs = (c.execute(query, (value,)).fetchall() for c in (app, plain_twin))
            assert ours == theirs, value
    ordered = [row[0] for row in app.execute("SELECT w FROM words ORDER BY w").fetchall()]
    cut = [word.encode()[:8] for word in ordered[:-1]]
    assert cut == sorted(cut)
    for wrong in ["w < 'abcdefgh'", "w BETWEEN 'a' AND 'abcdefghijkl'"]:
        state, message = refusal(app, f"SELECT id FROM words WHERE {wrong}")
        assert state == "0A000", wrong
        assert "is compared by order with a column that has the order of 8 bytes" in message
    for wrong in [
        "SELECT a.id FROM words a JOIN words b ON a.w < b.w",
        "SELECT greatest(w, 'a') FROM words",
        "SELECT id FROM words WHERE (w, id) < ('a', 1)",
        "SELECT id FROM words WHERE w < ANY ('{a,b}')",
        "SELECT id FROM words WHERE w < ANY (ARRAY['a', 'b'])",
    ]:
        assert refusal(app, wrong)[0] == "0A000", wrong


def test_how_many_bytes_of_a_text(app, dba):
    """The number of bytes is in the type, and cells of other columns are kept apart."""
    app.execute("CREATE TABLE w (x soft_text(eq, ord_2, key_12), y soft_text(eq, key_12))")
    app.execute("INSERT INTO w VALUES ('ab1', 'ab1'), ('b', 'b')")
    assert app.execute("SELECT x FROM w WHERE x < 'b'").fetchall() == [("ab1",)]
    assert refusal(app, "SELECT x FROM w WHERE x < 'ab'")[0] == "0A000"
    assert refusal(app, "SELECT 1 FROM w WHERE x = y")[0] == "0A000"
    shown = dba.execute(
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = 'w'::regclass AND attnum > 0 ORDER BY attnum"
    ).fetchall()
    assert shown == [("soft_text(eq,ord_2,key_12)",), ("soft_text(eq,key_12)",)]


def refusal(connection, query):
    """SQLSTATE and text of the error of a query."""
    try:
        with connection.transaction():
            return "00000", str(connection.execute(query).rowcount)
    except psycopg.Error as error:
        return error.sqlstate, str(error)


def test_refused(app):
    """What encodings cannot do is refused, with the encoding that is missing."""
    app.execute(
        "CREATE TABLE t (e soft_int4(eq), o soft_int4(ord), a soft_int4(add), i soft_int4,"
        " n soft_numeric(5,1), s soft_text, b soft_bool, p int)"
    )
    app.execute(
        "INSERT INTO t VALUES (1, 1, 1, 1, 1, 'x', true, 1), (2, 2, 2, 2, 2, 'y', false, 2)"
    )
    wrong = []
    for query, state, *words in [
        ("SELECT * FROM t WHERE e < 2", "0A000", '"ord"'),
        ("SELECT * FROM t WHERE e BETWEEN 1 AND 2", "0A000", '"ord"'),
        ("SELECT * FROM t ORDER BY e", "0A000", '"ord"'),
        ("SELECT * FROM t ORDER BY s", "0A000", '"ord"'),
        ("SELECT max(e) FROM t", "0A000", '"ord"'),
        ("SELECT greatest(e, 1) FROM t", "0A000", '"ord"'),
        ("SELECT rank() OVER (ORDER BY e) FROM t", "0A000", '"ord"'),
        ("SELECT * FROM t WHERE (e, e) < (1, 2)", "0A000", '"ord"'),
        ("SELECT * FROM t WHERE a = 1", "0A000", '"eq"'),
        ("SELECT a, count(*) FROM t GROUP BY a", "0A000", '"eq"'),
        ("SELECT sum(e) FROM t", "0A000", '"add"'),
        ("SELECT avg(o) FROM t", "0A000", '"add"'),
        ("SELECT max(s) FROM t", "0A000", "keeper"),
        ("SELECT i + 1 FROM t", "0A000"),
        ("SELECT i * i FROM t", "0A000", "keeper"),
        ("SELECT upper(s) FROM t", "0A000", "keeper"),
        ("SELECT * FROM t WHERE s LIKE 'x%'", "0A000", "keeper"),
        ("SELECT s::text FROM t", "0A000"),
        ("SELECT s || 'z' FROM t", "0A000"),
        ("SELECT * FROM t WHERE i = e", "0A000", "key"),
        ("SELECT * FROM t x JOIN t y ON x.i = y.e", "0A000", "key"),
        ("SELECT * FROM t WHERE i IN (SELECT e FROM t)", "0A000", "key"),
        ("INSERT INTO t (e) SELECT i FROM t", "0A000", "another column"),
        ("UPDATE t SET i = e", "0A000", "another column"),
        ("SELECT * FROM t WHERE i = 3000000000", "0A000"),
        ("SELECT * FROM t WHERE i = 1.5", "0A000"),
        ("SELECT * FROM t WHERE n < 1.25", "0A000"),
        ("SELECT * FROM t WHERE i = 'Ann'", "22P02", "Ann"),
        ("SELECT * FROM t WHERE i = p", "0A000", "keeper"),
        ("INSERT INTO t (i) SELECT p FROM t", "42804"),
        ("SELECT * FROM t WHERE i = (SELECT 5)", "0A000"),
        ("SELECT 'Ann' FROM t WHERE s = 'Ann'", "0A000", "encoded in one place"),
        ("SELECT json_agg(i) FROM t", "0A000"),
        ("CREATE TABLE u (x soft_int4 DEFAULT 5)", "0A000"),
        ("CREATE TABLE u (x soft_text(ord))", "0A000", '"eq"'),
        ("CREATE TABLE u (x soft_text(eq, ord_33))", "22023", "ord_33"),
        ("CREATE TABLE u (x soft_text(eq, ord_0))", "22023", "ord_0"),
        ("CREATE TABLE u (x soft_int4(ord_8))", "22023", "ord_8"),
        ("CREATE TABLE u (x soft_numeric)", "22023"),
        ("CREATE TABLE u (x soft_int4(div))", "22023", "div"),
        ("CREATE TABLE u AS SELECT max(i) FROM t", "0A000", "key"),
    ]:
        found, text = refusal(app, query)
        if found != state or not all(word in text for word in words):
            wrong.append((query, found, text))
    assert wrong == [], "\n".join(map(str, wrong))
    assert app.execute("SELECT e FROM t WHERE o < 2").fetchall() == [(1,)]
    assert app.execute("SELECT sum(a) FROM t").fetchall() == [(3,)]
