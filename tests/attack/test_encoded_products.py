"""A superuser works on cells of the family soft_ that have the encoding mul: he exchanges and
multiplies encodings, puts others in place of a client's by a trigger or a view, and computes with
what he sees.

Mechanism: an encoding is the value multiplied by a mask of its own, which only clients can
compute; it is not authenticated (docs/security.md, "Encodings at rest"). Right: he can make a
product another one of the client's values, or a multiple, and tells zero from the rest; he learns
no ratio of values, and a number of his own choice does not come out. Bug: two cells with one mask,
or a client that takes any number for a product.
"""

import base64
import itertools

import psycopg
import pytest

PRIME = (1 << 127) - 1
MASKED = 16
PRICE, AMOUNT, OTHER = 21, 3, 7
CHOSEN = 4242

OTHERS = "a server can return the product of other rows, or a multiple of it"
ZERO = "the encoding says whether a value is zero"


@pytest.fixture
def sold(app):
    app.execute(
        "CREATE TABLE sold (id int PRIMARY KEY, price soft_int4(mul), amount soft_int4(mul))"
    )
    app.execute(f"INSERT INTO sold VALUES (1, {OTHER}, 100), (2, {PRICE}, {AMOUNT}), (3, 0, 5)")
    return app


def decoded(cell: str) -> bytes:
    text = cell.removeprefix("soft1.")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def masked(cell: str) -> int:
    return int.from_bytes(decoded(cell)[-MASKED:], "little")


def cell_of(dba, id, column="price"):
    return dba.execute(f"SELECT {column} FROM sold WHERE id = {id}").fetchone()[0]


def edit(dba, number: int) -> None:
    """Another number in place of the masked price of row 2."""
    bytes_ = decoded(cell_of(dba, 2))[:-MASKED] + number.to_bytes(MASKED, "little")
    text = base64.urlsafe_b64encode(bytes_).decode().rstrip("=")
    dba.execute(f"UPDATE sold SET price = 'soft1.{text}' WHERE id = 2")


def product(client):
    return client.execute("SELECT price * amount FROM sold WHERE id = 2").fetchone()[0]


def trigger(dba, body: str) -> None:
    dba.execute(
        "CREATE FUNCTION take() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$BEGIN {body}; RETURN NEW; END$$"
    )
    dba.execute(
        "CREATE TRIGGER take BEFORE UPDATE ON sold FOR EACH ROW "
        "WHEN (NEW.id = 2) EXECUTE FUNCTION take()"
    )


def by_row(client, dba):
    dba.execute("UPDATE sold SET price = (SELECT price FROM sold WHERE id = 1) WHERE id = 2")


def by_trigger(client, dba):
    trigger(dba, "SELECT price INTO NEW.price FROM sold WHERE id = 1")
    client.execute(f"UPDATE sold SET price = {PRICE} WHERE id = 2")


def by_view(client, dba):
    dba.execute("ALTER TABLE sold RENAME TO hidden")
    dba.execute(
        "CREATE VIEW sold AS SELECT h.id, o.price, h.amount FROM hidden h, hidden o WHERE o.id = 1"
    )
    dba.execute("ALTER VIEW sold OWNER TO app")


@pytest.mark.parametrize("way", [by_row, by_trigger, by_view])
def test_another_row(sold, dba, attack, way):
    """The price of row 1, in row 2's product."""
    assert product(sold) == PRICE * AMOUNT
    way(sold, dba)
    seen = product(sold)
    assert seen == OTHER * AMOUNT
    attack.attempt(f"another row's factor ({way.__name__})", seen != PRICE * AMOUNT, OTHERS)


@pytest.mark.parametrize("times", [0, 1000])
def test_a_multiple(sold, dba, attack, times):
    """He multiplies the encoding. The value itself stays what it was."""
    edit(dba, masked(cell_of(dba, 2)) * times % PRIME)
    assert sold.execute("SELECT price FROM sold WHERE id = 2").fetchone() == (PRICE,)
    attack.attempt(f"{times} times the product", product(sold) == times * PRICE * AMOUNT, OTHERS)


@pytest.mark.parametrize("number", [CHOSEN, CHOSEN * 12345, PRIME - 1])
def test_a_number_of_his_choice(sold, dba, stack, schema, attack, number):
    """Unmasked, a number that is no product of masked ones is beyond any product of its types."""
    edit(dba, number)
    seen = None
    with (
        stack.connect_app(options=f"-c search_path={schema}") as client,
        pytest.raises(psycopg.Error) as error,
    ):
        seen = product(client)
    attack.attempt("a number of his choice in place of a product", seen is not None)
    assert error.value.sqlstate in ("22003", "XX001")


def test_ratios(sold, dba, stack, schema, attack):
    """Known values tell nothing of others: not of other rows, of older cells of a row, of what
    another proxy has sealed, of cells that were sealed in one statement."""
    cells = [(value, cell_of(dba, id)) for id, value in ((1, OTHER), (2, PRICE))]
    cells.append((AMOUNT, cell_of(dba, 2, "amount")))
    for price in (5, 15, PRICE):
        sold.execute(f"UPDATE sold SET price = {price} WHERE id = 2")
        cells.append((price, cell_of(dba, 2)))
    with stack.another_proxy() as (_, url), psycopg.connect(url, autocommit=True) as other:
        other.execute(f"SET search_path = {schema}")
        other.execute("INSERT INTO sold SELECT id + 10, 35, 35 FROM sold")
        other.execute("INSERT INTO sold VALUES (21, 35, 35), (22, 35, 35)")
        cells += [(35, cell_of(dba, id)) for id in (21, 22)]
    learned = [
        (a, b)
        for (a, one), (b, two) in itertools.combinations(cells, 2)
        if one != two and masked(two) * a % PRIME == masked(one) * b % PRIME
    ]
    attack.attempt("the ratio of two values from their encodings", bool(learned))
    attack.attempt("which value is zero", masked(cell_of(dba, 3)) == 0, ZERO)
    assert all(masked(cell) for _, cell in cells)


def test_products_in_a_clients_session(sold, dba, attack):
    """A trigger multiplies for him, and keeps what comes out: no value, and nothing compares it."""
    dba.execute("CREATE TABLE loot (what text)")
    dba.execute("GRANT ALL ON loot TO app")
    trigger(
        dba,
        "BEGIN INSERT INTO loot SELECT 'equal' "
        f"WHERE NEW.price @* NEW.amount = '{PRICE * AMOUNT}'; "
        "EXCEPTION WHEN OTHERS THEN INSERT INTO loot VALUES (SQLSTATE); END; "
        "BEGIN INSERT INTO loot VALUES ((NEW.price @* '2')::text); "
        "EXCEPTION WHEN OTHERS THEN INSERT INTO loot VALUES (SQLSTATE); END; "
        "INSERT INTO loot VALUES ((NEW.price @* NEW.amount)::text)",
    )
    sold.execute("UPDATE sold SET id = id WHERE id = 2")
    loot = [what for (what,) in dba.execute("SELECT what FROM loot").fetchall()]
    assert len(loot) == 3
    values = {"equal", str(PRICE), str(AMOUNT), str(PRICE * AMOUNT), str(2 * PRICE)}
    attack.attempt("a product, in a client's session", bool(values & set(loot)))
    assert decoded(loot[2])[0] == 0x54
