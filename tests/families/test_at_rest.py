"""What a row of the families rnd_ and soft_ tells whoever reads it: what docs/security.md and
docs/families.md say, and no more.

Mechanism: a superuser reads cells as text and takes them apart; he stores cells that he has. Right:
each sentence's attack succeeds as far as the sentence goes. Bug: a page that promises too much, or
cells that tell more.
"""

import base64
import itertools
import re
import struct
from dataclasses import dataclass

import psycopg
import pytest
from dumps import another_database, tool

NUMBERS = [5, -5, 5, 4, 0, 2147483647, -2147483648, 5200, 5201, 6000]


def decoded(cell: str) -> bytes:
    text = cell.split(".", 1)[1]
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def encoded(prefix: str, cell: bytes) -> str:
    return prefix + "." + base64.urlsafe_b64encode(cell).rstrip(b"=").decode()


def cells(dba, column: str, table: str = "t") -> list[bytes]:
    rows = dba.execute(f"SELECT {column} FROM {table} ORDER BY id").fetchall()
    return [decoded(row[0]) for row in rows]


# ---------- rnd_ ----------


@dataclass(frozen=True)
class Sealed:
    """A cell without a key."""

    kind: int
    type: int
    column: bytes
    epoch: bytes
    number: int
    body: bytes

    @staticmethod
    def of(cell: bytes) -> "Sealed":
        number = struct.unpack("<Q", cell[26:34])[0]
        return Sealed(cell[0], cell[1], cell[2:18], cell[18:26], number, cell[34:])


def test_a_sealed_cell(app, dba):
    """It tells its type, column and length, which run of the keeper sealed it, and when among
    others. Equal values have nothing in common."""
    app.execute("CREATE TABLE t (id int PRIMARY KEY, n rnd_int4, m rnd_int4, s rnd_text)")
    for number in range(8):
        app.execute("INSERT INTO t VALUES (%s, 5, 5, %s)", (number, "x" * number))
    n, m, s = ([Sealed.of(cell) for cell in cells(dba, column)] for column in "nms")
    everything = [*n, *m, *s]
    assert {c.kind for c in everything} == {2}
    for alike in (n, m, s):
        assert len({(c.type, c.column, c.epoch) for c in alike}) == 1
        assert [c.number for c in alike] == sorted({c.number for c in alike})
    assert len({c.column for c in everything}) == 3
    assert n[0].type == m[0].type != s[0].type
    assert [len(c.body) for c in s] == [16 + number for number in range(8)]
    assert {len(c.body) for c in n} == {20}
    # Ciphertexts and tags: nothing that two of them have in the same place, but by chance.
    assert len({c.body[:4] for c in (*n, *m)}) == len({c.body[4:] for c in (*n, *m)}) == 16


def test_a_copied_cell(app, dba):
    """A value that is copied within a column remains the same cell; elsewhere it is another."""
    app.execute("CREATE TABLE t (id int PRIMARY KEY, n rnd_int4, m rnd_int4)")
    app.execute("INSERT INTO t VALUES (1, 5)")
    app.execute("UPDATE t SET id = 2")
    before = cells(dba, "n")
    app.execute("INSERT INTO t SELECT 3, n FROM t")
    app.execute("UPDATE t SET m = n")
    assert cells(dba, "n") == before * 2
    assert not set(cells(dba, "m")) & set(before)


def test_a_cell_put_back(app, dba):
    """Without a client: an older cell of the column, or another row's, is taken."""
    app.execute("CREATE TABLE t (id int PRIMARY KEY, n rnd_int4)")
    app.execute("INSERT INTO t VALUES (1, 5), (2, 70)")
    (old,) = dba.execute("SELECT n FROM t WHERE id = 1").fetchone()
    app.execute("UPDATE t SET n = 6 WHERE id = 1")
    dba.execute("UPDATE t SET n = (SELECT n FROM t b WHERE b.id = 1) WHERE id = 2")
    dba.execute("DELETE FROM t WHERE id = 1")
    with dba.cursor().copy("COPY t FROM STDIN") as copy:
        copy.write_row((1, old))
    assert app.execute("SELECT n FROM t ORDER BY id").fetchall() == [(5,), (6,)]


def test_the_same_column_elsewhere(app, dba, stack, schema):
    """In another database with the same root key a cell is shown, in a column with the same names;
    tokens are the same in any column."""
    app.execute("CREATE TABLE t (id int PRIMARY KEY, n rnd_int4, d rnd_det_text)")
    app.execute("INSERT INTO t VALUES (1, 5, 'Ann'), (2, 70, 'Bob')")
    taken = dba.execute("SELECT id, n, d FROM t").fetchall()
    with another_database(stack) as addresses:
        made = f"CREATE SCHEMA {schema} AUTHORIZATION app"
        tool("psql", "-X", "-q", "-d", addresses["straight"], "-c", made)
        options = f"-c search_path={schema}"
        with psycopg.connect(addresses["proxy"], autocommit=True, options=options) as there:
            there.execute("CREATE TABLE t (id int PRIMARY KEY, n rnd_int4, d rnd_det_text)")
            there.execute("CREATE TABLE guess (id int, word rnd_det_text)")
            there.execute("INSERT INTO guess VALUES (1, 'Bob')")
            straight = psycopg.connect(addresses["straight"], autocommit=True, options=options)
            with straight as other:
                with other.cursor().copy("COPY t FROM STDIN") as copy:
                    for row in taken:
                        copy.write_row(row)
                found = other.execute("SELECT t.id FROM t, guess WHERE d = word").fetchall()
                assert found == [(2,)]
                assert cells(other, "word", "guess")[0][34:50] == cells(dba, "d")[1][34:50]
            shown = there.execute("SELECT id, n, d FROM t ORDER BY id").fetchall()
            assert shown == [(1, 5, "Ann"), (2, 70, "Bob")]


# ---------- soft_ ----------


@dataclass(frozen=True)
class Encoded:
    """A cell's parts without a key."""

    type: int
    encodings: int
    shape: int
    key: int
    sealed: bytes
    left: tuple[bytes, ...]
    right: bytes
    identifier: int | None
    masked: int | None

    @staticmethod
    def of(cell: bytes, digits: int = 0) -> "Encoded":
        kind, code, encodings, shape, key, length = struct.unpack("<BBBBII", cell[:12])
        assert kind == 0x51
        sealed, rest = cell[12 : 12 + length], cell[12 + length :]
        left = right = b""
        if encodings & 2:
            left, rest = rest[: 17 * digits], rest[17 * digits :]
            right, rest = rest[: 16 + 4 * digits], rest[16 + 4 * digits :]
        identifier = masked = None
        if encodings & 4:
            identifier = struct.unpack("<Q", rest[:8])[0]
            masked = int.from_bytes(rest[8:], "little")
            rest = b""
        assert rest == b""
        halves = tuple(left[at : at + 17] for at in range(0, len(left), 17))
        return Encoded(code, encodings, shape, key, sealed, halves, right, identifier, masked)


def test_an_encoded_cell(app, dba):
    """Any encoding: number of the key, encodings, length of a text. Without eq and ord, nothing of
    which rows are equal."""
    app.execute(
        "CREATE TABLE t (id int, s soft_text(key_5), a soft_int4(add), o soft_int4(ord, key_6))"
    )
    for number, word in enumerate(["", "Ann", "Ann", "Barbara"]):
        app.execute("INSERT INTO t VALUES (%s, %s, 5, 5)", (number, word))
    s, a = ([Encoded.of(cell) for cell in cells(dba, column)] for column in "sa")
    o = [Encoded.of(cell, 8) for cell in cells(dba, "o")]
    assert {(c.key, c.encodings) for c in s} == {(5, 1)}
    assert {c.encodings for c in a} == {4}
    assert {(c.key, c.encodings) for c in o} == {(6, 2)}
    assert [len(c.sealed) for c in s] == [16, 19, 19, 23]
    assert s[1].sealed == s[2].sealed
    for alike in (a, o):
        assert len({c.sealed for c in alike}) == 4
    assert len({c.masked for c in a}) == 4
    assert len({c.right for c in o}) == 4
    assert len({c.left for c in o}) == 1


def test_literals_of_the_log(app, dba, stack):
    """What the log has of a statement finds the rows that it found; where the column has no eq
    but order, those that it compared with."""
    app.execute("CREATE TABLE t (id int, s soft_text, n soft_int4(ord))")
    app.execute("INSERT INTO t VALUES (1, 'Ann', 5), (2, 'Bob', 7), (3, 'Ann', 9)")
    before = stack.log_sizes()
    app.execute("SELECT id FROM t WHERE s = 'Ann' AND n < 8")
    said = re.findall(r"'(soft1\.[\w-]+)'", stack.logged_since(before))
    word, number = next((a, b) for a, b in itertools.pairwise(said) if a != b)
    taken = "SELECT id FROM t WHERE s = %s::soft_text ORDER BY id"
    assert dba.execute(taken, (word,)).fetchall() == [(1,), (3,)]
    taken = "SELECT id FROM t WHERE n < %s::soft_int4 ORDER BY id"
    assert dba.execute(taken, (number,)).fetchall() == [(1,), (2,)]


def digits_of(number: int) -> str:
    """The digits of four bits that order has, of an int4."""
    return f"{number + (1 << 31):08x}"


def agree(one, other) -> int:
    """In how many parts from the first one on two agree."""
    parts = zip(one, other, strict=True)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], parts))


def test_order(app, dba):
    """All rows' order, and of two the first digit in which they differ; nothing behind it."""
    app.execute("CREATE TABLE t (id int, n soft_int4(ord))")
    for row in enumerate(NUMBERS):
        app.execute("INSERT INTO t VALUES (%s, %s)", row)
    ordered = dba.execute("SELECT id FROM t ORDER BY n, id").fetchall()
    assert [id_ for (id_,) in ordered] == sorted(range(len(NUMBERS)), key=lambda i: NUMBERS[i])
    halves = [Encoded.of(cell, 8).left for cell in cells(dba, "n")]
    for (a, left), (b, other) in itertools.combinations(zip(NUMBERS, halves, strict=True), 2):
        same = agree(digits_of(a), digits_of(b))
        assert agree(left, other) == same
        assert not set(left[same:]) & set(other[same:])


def test_order_of_texts(app, dba):
    """In how many bytes, or halves of bytes, two texts agree; of what comes later, nothing."""
    words = ["", "Ann", "Anna", "Annabel", "Bob", "Annapurna", "Annapolis"]
    app.execute("CREATE TABLE t (id int, s soft_text(eq, ord_4))")
    for row in enumerate(words):
        app.execute("INSERT INTO t VALUES (%s, %s)", row)
    halves = [Encoded.of(cell, 8).left for cell in cells(dba, "s")]
    assert {len(left) for left in halves} == {8}
    first = [word.encode()[:4].ljust(4, b"\0").hex() for word in words]
    for (a, left), (b, other) in itertools.combinations(zip(first, halves, strict=True), 2):
        assert agree(left, other) == agree(a, b)
    assert halves[2] == halves[3] == halves[5] == halves[6]


def test_addition(app, dba):
    """Which rows were encoded one after the other; and sums are not authenticated: the server can
    add what it likes."""
    app.execute("CREATE TABLE t (id int, n soft_int4(add))")
    for number in range(5):
        app.execute("INSERT INTO t VALUES (%s, 100)", (number,))
    found = [Encoded.of(cell) for cell in cells(dba, "n")]
    first = found[0].identifier
    assert [c.identifier for c in found] == list(range(first, first + 5))
    cell = cells(dba, "n")[2]
    more = (found[2].masked + 23) % (1 << 128)
    changed = encoded("soft1", cell[:-16] + more.to_bytes(16, "little"))
    dba.execute("DELETE FROM t WHERE id IN (2, 4)")
    with dba.cursor().copy("COPY t FROM STDIN") as copy:
        copy.write_row((2, changed))
    assert app.execute("SELECT sum(n), avg(n) FROM t").fetchall() == [(423, 105.75)]
    # The value itself is sealed.
    assert app.execute("SELECT n FROM t").fetchall() == [(100,)] * 4


def test_encodings_put_back(app, dba):
    """Cells of one column that are exchanged, or put back, are not noticed."""
    app.execute("CREATE TABLE t (id int PRIMARY KEY, n soft_int4)")
    app.execute("INSERT INTO t VALUES (1, 5), (2, 70)")
    (old,) = dba.execute("SELECT n FROM t WHERE id = 1").fetchone()
    app.execute("UPDATE t SET n = 6 WHERE id = 1")
    dba.execute("UPDATE t SET n = (SELECT n FROM t b WHERE b.id = 1) WHERE id = 2")
    dba.execute("DELETE FROM t WHERE id = 1")
    with dba.cursor().copy("COPY t FROM STDIN") as copy:
        copy.write_row((1, old))
    assert app.execute("SELECT n FROM t ORDER BY id").fetchall() == [(5,), (6,)]
    assert app.execute("SELECT sum(n) FROM t WHERE n < 6").fetchall() == [(5,)]


@pytest.mark.parametrize("change", ["encodings", "key"])
def test_a_modifier_that_was_edited(app, dba, stack, schema, change):
    """Without a pin, once the schema is read again, values are encoded as the catalogs say: with
    more encodings, or with another column's key, so that they can be compared with that one's."""
    app.execute("CREATE TABLE t (id int, n soft_int4(eq, key_7), m soft_int4(eq, ord, key_8))")
    app.execute("INSERT INTO t VALUES (1, 5, 5)")
    other = "atttypmod | (2 << 27)" if change == "encodings" else "atttypmod # 7 # 8"
    dba.execute(
        f"UPDATE pg_attribute SET atttypmod = {other}"
        " WHERE attrelid = 't'::regclass AND attname = 'n'"
    )
    dba.execute("ALTER TABLE t ALTER id SET STATISTICS 7")  # any change that is told to clients
    with stack.connect_app(options=f"-c search_path={schema}") as later:
        later.execute("INSERT INTO t VALUES (2, 6, 6)")
    late = cells(dba, "n")[1]
    found = Encoded.of(late, 8)
    assert (found.encodings, found.key) == ((3, 7) if change == "encodings" else (1, 8))
    if change == "key":
        assert found.sealed == Encoded.of(cells(dba, "m")[1], 8).sealed
