"""Clients whose encoding has several bytes a character, on protected columns as on plain ones.

Mechanism: the proxy converts with tables made from the server's conversions (CONFIDE_UPDATE=1
writes them). In some of these encodings the second byte of a character can be a backslash or a
brace, so statements, parameters and COPY data are read after they are converted.

A bug would show other characters, end a literal within a character, or let a sequence through that
the server refuses."""

import os
from pathlib import Path

import psycopg
import pytest

WIDE = Path(__file__).parent.parent.parent / "crates/proxy/src/charset/wide"
NAMES = "EUC_JP SJIS BIG5 GBK UHC EUC_KR EUC_CN EUC_TW JOHAB GB18030".split()
# Those with characters of four bytes.
LONG = ("EUC_TW", "GB18030")
NONE = -1

# What the server makes of byte sequences: a text, or an error.
DECODE = """
CREATE FUNCTION pg_temp.decoded(codes bytea[], name text, OUT said text, OUT state text)
RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE code bytea;
BEGIN
  FOREACH code IN ARRAY codes LOOP
    BEGIN
      said := convert_from(code, name);
      state := NULL;
    EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
      said := sqlerrm;
      state := sqlstate;
    END;
    RETURN NEXT;
  END LOOP;
END $$"""

# The characters that the server converts, and into what. Only GB18030 has some beyond 65535.
ENCODE = """
CREATE FUNCTION pg_temp.encoded(name text, OUT ch int, OUT said bytea)
RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 128..CASE WHEN name = 'GB18030' THEN 1114111 ELSE 65535 END LOOP
    CONTINUE WHEN i BETWEEN 55296 AND 57343;
    BEGIN
      ch := i;
      said := convert_to(chr(i), name);
      RETURN NEXT;
    EXCEPTION WHEN untranslatable_character THEN
    END;
  END LOOP;
END $$"""


def length(name, code):
    """How many bytes the character has that begins so, as the server counts them."""
    first = code[0]
    if first < 0x80 or (name == "SJIS" and 0xA1 <= first <= 0xDF):
        return 1
    if name == "GB18030":
        return 4 if len(code) > 1 and 0x30 <= code[1] <= 0x39 else 2
    if (name.startswith("EUC_") or name == "JOHAB") and first == 0x8F:
        return 3
    if name == "EUC_CN" and first == 0x8E:
        return 3
    return 4 if name == "EUC_TW" and first == 0x8E else 2


def sequences(name):
    """All byte sequences that may be a character."""
    high, low = range(0x80, 0x100), range(0x30, 0x3A)
    yield from (bytes([a]) for a in high)
    yield from (bytes([a, b]) for a in high for b in range(1, 0x100))
    if name.startswith("EUC_") or name == "JOHAB":
        yield from (bytes([0x8F, a, b]) for a in high for b in high)
    if name == "EUC_TW":
        planes = range(0xA0, 0xB1)
        yield from (bytes([0x8E, p, a, b]) for p in planes for a in high for b in high)
    if name == "GB18030":
        yield from (bytes([a, b, c, d]) for a in high for b in low for c in high for d in low)


def number(code):
    """A character's code; those with four bytes of GB18030 are counted in their order."""
    if len(code) == 4 and code[0] != 0x8E:
        a, b, c, d = code
        return 0x10000 + (((a - 0x81) * 10 + b - 0x30) * 126 + c - 0x81) * 10 + d - 0x30
    return int.from_bytes(code)


def invalid(name, code):
    shown = " ".join(f"0x{b:02x}" for b in code[: length(name, code)])
    return f'invalid byte sequence for encoding "{name}": {shown}'


def decoded(dba, name):
    """The number of each valid sequence, and its character or NONE."""
    found = {}
    codes = list(sequences(name))
    for at in range(0, len(codes), 50000):
        some = codes[at : at + 50000]
        rows = dba.execute("SELECT * FROM pg_temp.decoded(%s, %s)", (some, name)).fetchall()
        for code, (said, state) in zip(some, rows, strict=True):
            if state == "22021":
                assert length(name, code) != len(code) or said == invalid(name, code)
            elif length(name, code) == len(code):
                assert state is not None or len(said) == 1
                found[number(code)] = NONE if state else ord(said)
    return found


def runs(pairs):
    """Ranges in which number and character grow alike: first of each, and length."""
    out = []
    for code, char in sorted(pairs):
        if out and (code, char) == (out[-1][0] + out[-1][2], out[-1][1] + out[-1][2]):
            out[-1][2] += 1
        else:
            out.append([code, char, 1])
    return out


def varint(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def packed(pairs):
    """The number of runs; then for each what lies between it and the one before."""
    found = runs(pairs)
    out = varint(len(found))
    code = char = 0
    for first, to, count in found:
        step = to - char
        out += varint((first - code) << 1 | (count > 1))
        out += varint(step << 1 if step >= 0 else (-step << 1) - 1)
        out += varint(count) if count > 1 else b""
        code, char = first + count, to + count
    return out


def tables(dba, name):
    """Characters that convert both ways, only from the encoding, only to it; codes without one."""
    reading = decoded(dba, name)
    written = dba.execute("SELECT * FROM pg_temp.encoded(%s)", (name,)).fetchall()
    writing = {char: number(code) for char, code in written}
    both = {(code, char) for code, char in reading.items() if writing.get(char) == code}
    none = {(code, code) for code, char in reading.items() if char == NONE}
    only_read = {(code, char) for code, char in reading.items() if char != NONE} - both
    only_written = {(code, char) for char, code in writing.items()} - both
    # What a client has sent goes on to the server in its encoding again.
    assert all(char in writing for _, char in only_read), name
    # Text in ASCII is the same in all of them.
    assert min(code for code, _ in both | only_read | none) >= 0x80
    by_char = sorted((char, code) for code, char in only_written)
    return packed(both) + packed(only_read) + packed(by_char) + packed(none)


@pytest.mark.parametrize("name", NAMES)
def test_tables(stack, name):
    """What the proxy converts is what the server does, for every sequence and every character."""
    if name in LONG and not os.environ.get("CONFIDE_COMPAT"):
        pytest.skip("has a million sequences: make compat runs it")
    with stack.connect_dba() as dba:
        dba.execute(DECODE)
        dba.execute(ENCODE)
        made = tables(dba, name)
    file = WIDE / f"{name}.runs"
    if os.environ.get("CONFIDE_UPDATE"):
        file.write_bytes(made)
    assert file.read_bytes() == made


def unpacked(name):
    """The codes and characters that convert both ways, as `packed` has written them."""
    packed = iter((WIDE / f"{name}.runs").read_bytes())

    def number():
        out = shift = 0
        while (byte := next(packed)) & 0x80:
            out |= (byte & 0x7F) << shift
            shift += 7
        return out | byte << shift

    code = char = 0
    for _ in range(number()):
        gap, step = number(), number()
        count = number() if gap & 1 else 1
        code += gap >> 1
        char += step >> 1 if step % 2 == 0 else -(step + 1 >> 1)
        yield from ((code + n, char + n) for n in range(count))
        code, char = code + count, char + count


def text_of(name):
    """All characters of the encoding in two bytes or three, in it and in UTF-8."""
    pairs = [(code, char) for code, char in unpacked(name) if code < 0x10000 or name != "GB18030"]
    assert len(pairs) > 5000
    local = b"".join(code.to_bytes(4).lstrip(b"\0") for code, _ in pairs)
    return local, "".join(chr(char) for _, char in pairs)


def cut(name, local):
    """The first characters of a text."""
    end = 0
    while end < 1000:
        end += length(name, local[end:])
    return local[:end]


class Client:
    """A connection that sends and gets bytes as they are: drivers have tables of their own."""

    def __init__(self, url, schema, name):
        self.pq = psycopg.pq.PGconn.connect(url.encode())
        assert self.pq.status == psycopg.pq.ConnStatus.OK, self.pq.error_message
        self.rows(f'SET search_path = "{schema}"'.encode())
        self.rows(f"SET client_encoding = '{name}'".encode())

    def run(self, sql, values=None, form=0):
        if values is None:
            return self.pq.exec_(sql)
        return self.pq.exec_params(sql, values, None, [form] * len(values), form)

    def rows(self, sql, values=None, form=0):
        got = self.run(sql, values, form)
        assert got.status in (psycopg.pq.ExecStatus.COMMAND_OK, psycopg.pq.ExecStatus.TUPLES_OK), (
            got.error_message
        )
        columns = range(got.nfields)
        return [tuple(got.get_value(r, c) for c in columns) for r in range(got.ntuples)]

    def error(self, sql, values=None):
        """SQLSTATE, message and detail."""
        got = self.run(sql, values)
        fields = psycopg.pq.DiagnosticField
        return [
            got.error_field(f)
            for f in (fields.SQLSTATE, fields.MESSAGE_PRIMARY, fields.MESSAGE_DETAIL)
        ]

    def copy_in(self, sql, data, chunk):
        assert self.run(sql).status == psycopg.pq.ExecStatus.COPY_IN
        for at in range(0, len(data), chunk):
            self.pq.put_copy_data(data[at : at + chunk])
        self.pq.put_copy_end()
        return self.pq.get_result()

    def copy_out(self, sql):
        assert self.run(sql).status == psycopg.pq.ExecStatus.COPY_OUT
        out = []
        while (got := self.pq.get_copy_data(0))[0] > 0:
            out.append(bytes(got[1]))
        while self.pq.get_result():
            pass
        return b"".join(out)


@pytest.fixture
def table(stack, schema):
    with psycopg.connect(stack.app_url, autocommit=True) as connection:
        connection.execute(f'SET search_path = "{schema}"')
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, p text, e enc_text) USING confide")
        yield connection


@pytest.fixture
def connect(stack, schema, table):
    """Connections of the application: through the proxy, or straight to the server."""
    made = []

    def connected(name, url=None):
        made.append(Client(url or stack.app_url, schema, name))
        return made[-1]

    yield connected
    for client in made:
        client.pq.finish()


@pytest.mark.parametrize("name", NAMES)
def test_values(connect, table, name):
    """All characters in literals, parameters of both formats and COPY both ways: the bytes that one
    client writes come back to it, and a client in UTF-8 reads the same characters."""
    local, text = text_of(name)
    client = connect(name)
    insert = b"INSERT INTO t VALUES (%d, '" + local + b"', '" + local + b"')"
    client.rows(insert % 1)
    client.rows(b"INSERT INTO t VALUES (2, $1, $2)", [local, local])
    client.rows(b"INSERT INTO t VALUES (3, $1, $2)", [local, local], 1)
    for n, chunk in ((4, 7), (5, 1 << 20)):
        short = local if chunk > 7 else cut(name, local)
        got = client.copy_in(b"COPY t FROM STDIN", b"%d\t%b\t%b\n" % (n, short, short), chunk)
        assert got.status == psycopg.pq.ExecStatus.COMMAND_OK, got.error_message
    short = cut(name, local)
    for form in (0, 1):
        rows = client.rows(b"SELECT p, e FROM t ORDER BY id", [], form)
        assert rows == [(local, local)] * 3 + [(short, short), (local, local)]
    out = client.copy_out(b"COPY (SELECT p, e FROM t ORDER BY id) TO STDOUT").split(b"\n")
    assert out == [b"\t".join(row) for row in rows] + [b""]
    read = table.execute("SELECT p, e FROM t WHERE id <> 4 ORDER BY id").fetchall()
    assert read == [(text, text)] * 4
    assert client.rows(b"SELECT count(*) FROM t WHERE e = $1", [local]) == [(b"4",)]
    assert client.rows(b"SELECT e FROM t WHERE id = 4") == [(short,)]


# Cut short, out of range, or a character that UTF-8 does not have, in most of the encodings.
WRONG = [
    b"\x80",
    b"\xff",
    b"\x95",
    b"a\x81 b",
    b"\xa1\xa1\xa1",
    b"\x8e\xe0",
    b"\x8e\xb0\xa1\xa1",
    b"\x8f\xa1",
    b"\x8f\xfe\xfe",
    b"\xfe\xfe",
    b"\xfc\xfc",
    b"\x85\x40",
    b"\xf0\x41",
    b"\xc9\xa1",
    b"\x81\x30\x81",
    b"\x81\x30\x81\x41",
    b"\xff\x30\x81\x30",
    b"\xfe\x39\xfe\x39",
]


@pytest.mark.parametrize("name", NAMES)
def test_errors(stack, connect, table, name):
    """What is no character is the error that the server has for a plain column; then the session
    goes on."""
    client, plain = connect(name), connect(name, stack.dba_url)
    refused = 0
    for wrong in WRONG:
        wanted = plain.error(b"SELECT id FROM t WHERE p = '" + wrong + b"'")
        refused += wanted[0] is not None
        assert wanted[0] in (None, b"22021", b"22P05")
        for column in (b"p", b"e"):
            head = b"SELECT id FROM t WHERE " + column + b" = "
            assert client.error(head + b"'" + wrong + b"'") == wanted, (wrong, column)
            bound = plain.error(b"SELECT id FROM t WHERE p = $1", [wrong])
            assert client.error(head + b"$1", [wrong])[:2] == bound[:2], (wrong, column)
        if bound[0]:
            got = client.copy_in(b"COPY t (id, e) FROM STDIN", b"1\t" + wrong, 1)
            assert got.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == bound[0], wrong
    assert refused > 5
    assert client.rows(b"SELECT count(*) FROM t") == [(b"0",)]


@pytest.mark.parametrize("name", NAMES)
def test_no_equivalents(stack, connect, table, name):
    """A value that the client's encoding does not have is PostgreSQL's error."""
    table.execute("INSERT INTO t VALUES (1, '\u20bf', '\u20bf')")
    client = connect(name)
    wanted = connect(name, stack.dba_url).error(b"SELECT p FROM t")
    assert client.error(b"SELECT p FROM t")[:2] == wanted[:2]
    assert (wanted[0] == b"22P05") == (name != "GB18030")
    # The proxy ends the session, too.
    client.pq.send_query(b"SELECT e FROM t")
    got = client.pq.get_result()
    assert (wanted[1] or b"") in got.error_message
    assert (got.status == psycopg.pq.ExecStatus.TUPLES_OK) == (name == "GB18030")


def test_bytes_of_ascii_within_characters(connect, table):
    """A second byte that is a backslash or a bar ends nothing: in names, in literals with escapes,
    in COPY data, in errors."""
    backslash, bar = "\u8868".encode("cp932"), "\u30dd".encode("cp932")
    assert (backslash[1:], bar[1:]) == (b"\\", b"|")
    client = connect("SJIS")
    client.rows(b'CREATE TABLE "' + backslash + b'" (k enc_text UNIQUE, n enc_int4) USING confide')
    insert = b'INSERT INTO "' + backslash + b'" VALUES '
    client.rows(insert + b"(E'" + backslash + b"\\t" + backslash + b"', 1)")
    client.rows(insert + b"('" + bar + b"', 2), ('" + backslash + b"', 3)")
    into = b'COPY "' + backslash + b"\" FROM STDIN DELIMITER '|'"
    client.copy_in(into, bar + backslash + b"|4\n", 1)
    rows = client.rows(b'SELECT k, n FROM "' + backslash + b'" ORDER BY n')
    tab = backslash + b"\t" + backslash
    assert rows == [(tab, b"1"), (bar, b"2"), (backslash, b"3"), (bar + backslash, b"4")]
    state, message, detail = client.error(insert + b"('" + backslash + b"', 5)")
    assert (state, detail) == (b"23505", b"Key (k)=(" + backslash + b") already exists.")
    state, message, _ = client.error(insert + b"(NULL, '" + bar + b"')")
    assert message == b'invalid input syntax for type integer: "' + bar + b'"'
