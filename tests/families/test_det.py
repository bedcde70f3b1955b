"""Columns rnd_…(det): cells with tokens, which PostgreSQL compares without the keeper.

Mechanism: a cell has, beside its ciphertext, a token that equal values have in common. Right
answer: PostgreSQL's own on the plain twin; no answer of the keeper for comparisons of stored
cells, one for each literal. With a bug rows are lost or too many (a literal that is hashed
otherwise than a cell), comparisons ask, or tokens sort.
"""

import base64

import psycopg
import pytest
from principals import three  # noqa: F401
from results import run

CUSTOMERS = [(n, f"name {n % 5}", f"{n % 4}.{'0' * (n % 3 + 1)}") for n in range(1, 41)]
ORDERS = [(n, n % 40 + 1, None if n % 9 == 0 else f"name {n % 7}") for n in range(1, 201)]


def make(connection, det: bool) -> None:
    def column(type_: str, modifier: str = "") -> str:
        words = [m for m in (modifier, "det" if det else "") if m]
        return ("rnd_" if det else "") + type_ + (f"({','.join(words)})" if words else "")

    connection.execute(
        f"CREATE TABLE customer (id {column('int4')} PRIMARY KEY, name {column('text')},"
        f" rate {column('numeric')}, price {column('numeric', '10,2')} DEFAULT 7)"
    )
    connection.execute(
        f"CREATE TABLE sale (id int PRIMARY KEY, customer {column('int8')},"
        f" name {column('varchar', '20')})"
    )
    for row in CUSTOMERS:
        connection.execute("INSERT INTO customer VALUES (%s, %s, %s)", row)
    with connection.cursor().copy("COPY sale FROM STDIN") as copy:
        for row in ORDERS:
            copy.write_row(row)
    connection.execute("CREATE INDEX ON customer (name)")
    connection.execute("CREATE INDEX ON sale USING hash (name)")
    connection.execute("CREATE INDEX ON sale (customer)")
    connection.execute("ANALYZE customer, sale")


@pytest.fixture
def both(app, plain_twin, dba):
    dba.execute("GRANT pg_monitor TO app")
    make(app, True)
    make(plain_twin, False)
    yield app, plain_twin
    dba.execute("REVOKE pg_monitor FROM app")


def answered(connection) -> int:
    query = "SELECT value FROM confide.confide_stat_keeper WHERE name = 'channel.answered_total'"
    return int(connection.execute(query).fetchone()[0])


QUERIES = [
    "SELECT id FROM customer WHERE name = 'name 3'",
    "SELECT name, rate, price FROM customer WHERE id = 7",
    "SELECT id FROM customer WHERE rate = 2",
    "SELECT id FROM customer WHERE name <> 'name 3' AND rate <> 1.0",
    "SELECT id FROM customer WHERE name IN ('name 1', 'name 4', 'none')",
    "SELECT count(*) FROM customer WHERE id IN (1, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 77)",
    "SELECT count(*) FROM customer WHERE id NOT IN (1, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31)",
    "SELECT id FROM sale WHERE name = 'name 6'",
    "SELECT id FROM sale WHERE name IS DISTINCT FROM 'name 6'",
    "SELECT s.id FROM sale s JOIN customer c ON s.customer = c.id WHERE c.name = 'name 2'",
    "SELECT count(*) FROM sale s JOIN customer c ON s.name = c.name",
    "SELECT count(*) FROM customer c WHERE NOT EXISTS (SELECT FROM sale s WHERE s.name = c.name)",
    "SELECT count(*) FROM customer WHERE name IN (SELECT name FROM sale)",
    "SELECT name, count(*) FROM sale GROUP BY name",
    "SELECT DISTINCT rate = 1, name FROM customer",
    "SELECT count(DISTINCT name::enc_text) FROM sale",
    "SELECT name FROM customer EXCEPT SELECT name FROM customer WHERE name = 'name 1'",
    # What tokens cannot do is done with values.
    "SELECT id FROM customer WHERE name LIKE '%3' AND rate < 2",
    "SELECT id + 1, name || '!', upper(name), -rate FROM customer",
    "SELECT sum(id), min(name), max(rate), avg(price) FROM customer",
    "SELECT a.id FROM customer a JOIN sale b ON a.id > b.customer AND b.id = 17",
    "SELECT price FROM customer WHERE price = 7.0 AND id = 3",
]


def rows(connection, query: str) -> list:
    return sorted(connection.execute(query).fetchall(), key=repr)


@pytest.mark.parametrize("query", QUERIES)
def test_as_plain(both, query):
    app, plain = both
    assert rows(app, query) == rows(plain, query.replace("::enc_", "::"))


FREE = [
    ("SELECT count(*) FROM customer WHERE id = 7", "Index"),
    ("SELECT count(*) FROM customer WHERE name = 'name 3'", ""),
    ("SELECT count(*) FROM sale WHERE name = 'name 6'", ""),
    ("SELECT count(*) FROM sale s JOIN customer c ON s.name = c.name", ""),
    ("SELECT count(*) FROM sale s JOIN customer c ON s.customer = c.id", "Hash Join"),
    ("SELECT count(*) FROM (SELECT DISTINCT name FROM sale) d", "HashAggregate"),
    ("SELECT count(*) FROM (SELECT name FROM sale GROUP BY name HAVING count(*) > 3) d", "Hash"),
]


@pytest.mark.parametrize(("query", "node"), FREE)
def test_without_round_trips(both, query, node):
    """Stored cells are compared and hashed without the keeper; a literal costs one answer."""
    app, plain = both
    app.execute("SET enable_seqscan = off")
    assert rows(app, query) == rows(plain, query)
    before = answered(app)
    none = answered(app) - before
    before = answered(app)
    app.execute(query).fetchall()
    taken = answered(app) - before - none
    plan = "\n".join(row[0] for row in app.execute(f"EXPLAIN {query}").fetchall())
    assert node in plan, plan
    assert taken <= query.count("'") // 2 + query.count("= 7"), (taken, plan)


def test_keys(both):
    """Primary and foreign keys hold, and cost no answer but those that seal the new values."""
    app, _ = both
    app.execute("CREATE TABLE part (id int, customer rnd_int4(det) REFERENCES customer)")
    with pytest.raises(psycopg.errors.UniqueViolation):
        app.execute("INSERT INTO customer VALUES (7, 'twice')")
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        app.execute("INSERT INTO part VALUES (1, 99)")
    app.execute("INSERT INTO part VALUES (1, 7)")
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        app.execute("DELETE FROM customer WHERE id = 7")
    app.execute(
        "INSERT INTO customer VALUES (7, 'new') ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name"
    )
    assert app.execute("SELECT name FROM customer WHERE id = 7").fetchall() == [("new",)]
    app.execute("ALTER TABLE part ADD UNIQUE (customer)")
    app.execute("INSERT INTO part VALUES (2, 8)")
    before = answered(app)
    none = answered(app) - before
    before = answered(app)
    app.execute("INSERT INTO part VALUES (3, 9)")
    assert answered(app) - before - none <= 1
    # However many rows there are.
    before = answered(app)
    app.execute("REINDEX TABLE customer")
    assert answered(app) - before < 10


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM sale ORDER BY name",
        "SELECT count(DISTINCT name) FROM sale",
        "SELECT id, rank() OVER (ORDER BY name) FROM sale",
    ],
)
def test_tokens_are_no_order(both, query):
    """Nothing sorts by tokens: it is refused, and by values it goes with a cast."""
    app, plain = both
    with pytest.raises(psycopg.errors.UndefinedFunction, match="ordering operator"):
        app.execute(query)
    assert rows(app, query.replace("name", "name::enc_text")) == rows(plain, query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT greatest(name, 'name 3') FROM sale",
        "SELECT id FROM sale WHERE least(name, 'a') = 'a'",
        "SELECT id FROM sale ORDER BY (name, id)",
        "SELECT id FROM sale s ORDER BY s",
        "SELECT id, rank() OVER (ORDER BY (id, name)) FROM sale",
        "SELECT array_agg(id ORDER BY ROW(name)) FROM sale",
        "SELECT count(*) FROM sale a JOIN sale b ON a < b",
    ],
)
def test_no_order_of_tokens_by_the_type(both, query):
    """What takes a type's comparison function would take that of tokens, and give wrong rows."""
    app, _ = both
    with pytest.raises(psycopg.errors.UndefinedFunction, match="ordering operator"):
        app.execute(query)


def encoded(cell: bytes) -> str:
    return "cell1." + base64.urlsafe_b64encode(cell).rstrip(b"=").decode()


def decoded(cell: str) -> bytes:
    text = cell.removeprefix("cell1.")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def put(dba, table: str, *rows: tuple) -> None:
    with dba.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def test_definitions(both, dba):
    """The column's type is shown, the family can be changed, and a cell that came in without a
    token is compared by its value."""
    app, plain = both
    shown = (
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = 'customer'::regclass AND attnum > 0"
    )
    types = [row[0] for row in dba.execute(shown).fetchall()]
    assert types == ["rnd_det_int4", "rnd_det_text", "rnd_det_numeric", "rnd_det_numeric(10,2)"]
    app.execute("CREATE TABLE other (id rnd_int4, name rnd_text)")
    app.execute("INSERT INTO other SELECT id, name FROM customer")
    without = dba.execute("SELECT id, name FROM other LIMIT 3").fetchall()
    app.execute("ALTER TABLE other ALTER name TYPE rnd_text(det), ALTER id TYPE rnd_int4(det)")
    count = "SELECT count(*) FROM other JOIN sale ON other.name = sale.name"
    wanted = rows(plain, "SELECT count(*) FROM customer c JOIN sale s ON c.name = s.name")
    before = answered(app)
    assert rows(app, count) == wanted
    assert answered(app) - before < 10
    with_tokens = dba.execute("SELECT id, name FROM other LIMIT 4").fetchall()
    app.execute("CREATE TABLE third (id rnd_int4(det), name rnd_text(det))")
    put(dba, "third", *without, *with_tokens)
    grouped = "SELECT name, count(*) FROM third GROUP BY name"
    assert sum(row[1] for row in rows(app, grouped)) == 7
    assert len(rows(app, grouped)) == 4


def test_what_a_superuser_sees(both, dba):
    """What docs/security.md says of tokens, tried: frequencies, equality between columns, and, with
    an account of his own, which rows have a value of his choice. Not: values, order, nor the token
    of anything without a client."""
    app, plain = both
    by_name = "SELECT count(*) FROM sale WHERE name IS NOT NULL GROUP BY name"
    assert rows(dba, by_name) == rows(plain, by_name)
    joined = "SELECT count(*) FROM sale s JOIN customer c ON s.name = c.name"
    assert rows(dba, joined) == rows(plain, joined)
    app.execute("CREATE TABLE mine (guess rnd_text(det))")
    app.execute("INSERT INTO mine VALUES ('name 3')")
    guessed = "SELECT count(*) FROM sale JOIN mine ON name = guess"
    assert rows(dba, guessed) == rows(plain, "SELECT count(*) FROM sale WHERE name = 'name 3'")
    for refused in ["name < name", "name LIKE name", "name = enc_text(name)"]:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            dba.execute(f"SELECT count(*) FROM customer WHERE {refused}")
    cells = dba.execute("SELECT name FROM customer").fetchall()
    assert len({row[0] for row in cells}) == len(cells)
    app.execute("CREATE TABLE plain (name rnd_text)")
    app.execute("INSERT INTO plain SELECT name FROM customer")
    app.execute("DELETE FROM mine")
    put(dba, "mine", *dba.execute("SELECT name FROM plain").fetchall())
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        dba.execute("SELECT count(*) FROM mine JOIN customer ON guess = name")


def test_altered_tokens(both, dba):
    """A token is authenticated: a cell that got another one is not opened."""
    app, _ = both
    cells = dba.execute("SELECT name FROM customer").fetchall()
    one, other = decoded(cells[0][0]), decoded(cells[1][0])
    app.execute("CREATE TABLE mine (guess rnd_text(det))")
    put(dba, "mine", (encoded(one),))
    assert app.execute("SELECT guess LIKE 'name _' FROM mine").fetchall() == [(True,)]
    app.execute("DELETE FROM mine")
    mixed = one[:34] + other[34:50] + one[50:]
    assert mixed != one
    put(dba, "mine", (encoded(mixed),))
    with pytest.raises(psycopg.errors.DataCorrupted):
        app.execute("SELECT guess FROM mine").fetchall()


def test_a_client_who_is_no_viewer(three):  # noqa: F811
    """Equality needs no viewer: he finds the rows that have a value, and a superuser does with whom
    he works. He is shown masks, and anything else is refused."""
    with three.stack.connect_app() as app:
        app.execute("DROP TABLE IF EXISTS emp, guess")
        app.execute("CREATE TABLE emp (id int, pay rnd_det_int4)")
        app.execute("INSERT INTO emp VALUES (1, 5200), (2, 100)")
        app.execute("CREATE TABLE guess (pay rnd_det_int4)")
    assert three.psql("boss", "GRANT OWNER public.emp.pay TO ann") == ""
    with three.connect("eve") as eve, three.stack.connect_dba() as dba:
        assert run(eve, "SELECT pay FROM emp ORDER BY id").rows == [("0",), ("0",)]
        assert run(eve, "SELECT id FROM emp WHERE pay = 5200").rows == [("1",)]
        for other in ["pay > 100", "pay + 0 = 100", "pay = (SELECT max(pay) FROM emp)"]:
            assert run(eve, f"SELECT id FROM emp WHERE {other}").sqlstate == "42501", other
        eve.execute("INSERT INTO guess VALUES (5200)")
        found = dba.execute("SELECT id FROM emp JOIN guess USING (pay)").fetchall()
        assert found == [(1,)]
