"""No value of a protected column is on the database's side: not in the data directory, the WAL, the
server's log (with full logging), or the logs of keeper and proxy; in no encoding that is used.

Each way for a value to reach the database has a distinct value, so a finding identifies the way. To
show that the search works, it must find the values of a plain column. All ways are tried on columns
of each family.
"""

import datetime as dt
import re
import struct
import uuid
from dataclasses import dataclass
from decimal import Decimal
from itertools import takewhile

import psycopg
import pytest
from needles import integers, texts
from results import run

EPOCH = dt.datetime(2000, 1, 1)


def text_of(way):
    """A text that occurs nowhere else; digits, so that it has a numeric form, too."""
    return f"Planted{way:03}Zx7Qv9"


def digits_of(way):
    return 810_020_030_040_000_000 + way * 1_000_003


def time_of(way):
    return dt.datetime(1993, 4, 17, 5, 43, 21, 987001) + dt.timedelta(days=way, microseconds=way)


def uuid_of(way):
    return f"5ec4e700-{way:04x}-4a6b-9c8d-7f6e5d4c3b2a"


def float_of(way):
    return 1234567.875 + way * 1024.0625


@dataclass(frozen=True)
class Needle:
    """Bytes to search for: how the value got in, which value, in which encoding."""

    way: str
    value: str
    encoding: str
    bytes: bytes


def needles(name, way):
    number, moment = digits_of(way), time_of(way)
    micros = (moment - EPOCH) // dt.timedelta(microseconds=1)
    for kind, value in (("text", text_of(way)), ("digits", str(number)), ("uuid", uuid_of(way))):
        for encoding, data in texts(value):
            yield Needle(name, kind, encoding, data)
    for encoding, data in integers(number):
        yield Needle(name, "number", encoding, data)
    for order in "<>":
        yield Needle(name, "time", f"int8 {order}", struct.pack(f"{order}q", micros))
        yield Needle(name, "float", f"float8 {order}", struct.pack(f"{order}d", float_of(way)))
    yield Needle(name, "time", "text", str(moment).encode())
    yield Needle(name, "time", "text to the minute", f"{moment:%Y-%m-%d %H:%M}".encode())
    yield Needle(name, "uuid", "bytes", bytes.fromhex(uuid_of(way).replace("-", "")))


def literals(way):
    """The planted values of one way as SQL constants, in the order of COLUMNS."""
    return (
        f"'{text_of(way)}', {digits_of(way)}, {digits_of(way)}, '{text_of(way)}', "
        f"timestamp '{time_of(way)}', '{uuid_of(way)}', {float_of(way)!r}, "
        f"decode('{text_of(way).encode().hex()}', 'hex')"
    )


def values(way):
    return (
        *(text_of(way), digits_of(way), Decimal(digits_of(way)), text_of(way), time_of(way)),
        *(uuid.UUID(uuid_of(way)), float_of(way), text_of(way).encode()),
    )


COLUMNS = "te, i8, nu, vc, ts, uu, f8, by"
DDL = """
CREATE TABLE t (i int PRIMARY KEY, te enc_text, i8 enc_int8, nu enc_numeric, vc enc_varchar(40),
                ts enc_timestamp, uu enc_uuid, f8 enc_float8, by enc_bytea)
"""
PLACES = ", ".join(["%s"] * 8)
# The number of each family's first way.
FIRST = {"enc": 2, "rnd": 102, "rnd_det": 202, "soft": 302}
# What it has not (docs/families.md).
NOT_THERE = {
    "enc": {"function_body"},
    "rnd": {"function_body", "copied_column"},
    # A varchar with tokens has no LIKE and no ||.
    "rnd_det": {"function_body", "copied_column", "patterns", "expressions"},
    "soft": {"function_body", "expressions", "patterns", "view", "conflict", "sort_spill", "cursor"}
    | {"copied_column", "sql_prepare", "conditions"},
}


def of_family(sql, family):
    """With the family's types; where soft_ has none, or none for such values, enc_."""
    if family != "soft":
        return sql.replace("enc_", f"{family}_")
    sql = sql.replace("enc_numeric", "enc_numeric(18,0,key_32)")
    sql = re.sub(r"enc_(varchar\(40\)|text)", "soft_text(eq, ord_32, key_31)", sql)
    sql = re.sub(r"\benc_(int8|timestamp)\b", r"enc_\1(key_33)", sql)
    return re.sub(r"\benc_(int8|timestamp|numeric)\b", r"soft_\1", sql)


class Typed:
    """A connection whose statements have the family's types."""

    def __init__(self, connection, family):
        self.connection, self.family = connection, family

    def execute(self, sql, *more, **options):
        return self.connection.execute(of_family(sql, self.family), *more, **options)

    def __getattr__(self, name):
        return getattr(self.connection, name)


class Ways:
    """Each method plants values in one way."""

    def __init__(self, connection, family):
        self.c = Typed(connection, family)

    def simple_insert(self, way):
        literals_ = literals(way).rsplit(", decode", 1)[0]
        self.c.execute(
            f"INSERT INTO t VALUES ({way}, {literals_}, '\\x{text_of(way).encode().hex()}')"
        )

    def text_parameters(self, way):
        places = PLACES.replace("%s", "%t")
        self.c.execute(f"INSERT INTO t VALUES ({way}, {places})", values(way))

    def binary_parameters(self, way):
        places = PLACES.replace("%s", "%b")
        self.c.execute(f"INSERT INTO t VALUES ({way}, {places})", values(way))

    def prepared(self, way):
        self.c.execute(f"INSERT INTO t VALUES (%s, {PLACES})", (way, *values(way)), prepare=True)

    def copy_text(self, way):
        with self.c.cursor().copy(f"COPY t (i, {COLUMNS}) FROM STDIN") as copy:
            copy.write_row((way, *values(way)))

    def copy_binary(self, way):
        copy_in = f"COPY t (i, {COLUMNS}) FROM STDIN WITH (FORMAT binary)"
        with self.c.cursor().copy(copy_in) as copy:
            copy.set_types("int4 text int8 numeric varchar timestamp uuid float8 bytea".split())
            copy.write_row((way, *values(way)))

    def update(self, way):
        self.c.execute(f"INSERT INTO t (i) VALUES ({way})")
        self.c.execute(
            f"UPDATE t SET te = '{text_of(way)}', i8 = {digits_of(way)}, nu = {digits_of(way)}.0, "
            f"ts = '{time_of(way)}', uu = uuid '{uuid_of(way)}', f8 = {float_of(way)!r} "
            f"WHERE i = {way}"
        )

    def conditions(self, way):
        self.c.execute(
            f"SELECT i FROM t WHERE te = '{text_of(way)}' OR i8 IN ({digits_of(way)}, 5) "
            f"OR nu BETWEEN {digits_of(way)} AND {digits_of(way)} + 1 "
            f"OR ts < timestamp '{time_of(way)}' OR uu = '{uuid_of(way)}' OR f8 = {float_of(way)!r}"
        )

    def patterns(self, way):
        self.c.execute(
            f"SELECT i FROM t WHERE te LIKE '%{text_of(way)}%' OR vc ~~ '{text_of(way)}'"
        )

    def expressions(self, way):
        self.c.execute(
            f"SELECT te || '{text_of(way)}', i8 - {digits_of(way)}, nu * {digits_of(way)}, "
            f"CASE WHEN te = '{text_of(way)}' THEN '{text_of(way)}' ELSE te END, "
            f"coalesce(vc, '{text_of(way)}'), vc || '{text_of(way)}' FROM t"
        )

    def sql_prepare(self, way):
        self.c.execute(
            f"PREPARE q{way} (text) AS SELECT i FROM t WHERE te = $1 OR nu = {digits_of(way)}"
        )
        self.c.execute(f"EXECUTE q{way} ('{text_of(way)}')")

    def view(self, way):
        self.c.execute(
            f"CREATE VIEW v{way} AS SELECT i, te || '{text_of(way)}' AS x FROM t "
            f"WHERE nu <> {digits_of(way)} AND ts > '{time_of(way)}'"
        )
        self.c.execute(f"SELECT * FROM v{way}")

    def default_and_check(self, way):
        self.c.execute(
            f"CREATE TABLE d{way} (i int, te enc_text DEFAULT '{text_of(way)}', "
            f"nu enc_numeric CHECK (nu <> {digits_of(way)}))"
        )
        self.c.execute(f"INSERT INTO d{way} VALUES (1)")
        self.c.execute(f"ALTER TABLE d{way} ADD COLUMN ts enc_timestamp DEFAULT '{time_of(way)}'")

    def conflict(self, way):
        self.c.execute("CREATE UNIQUE INDEX IF NOT EXISTS t_te ON t (te)")
        self.c.execute(f"INSERT INTO t (i, te) VALUES ({way}, '{text_of(way)}')")
        self.c.execute(
            f"INSERT INTO t (i, te, i8) VALUES ({way + 500}, '{text_of(way)}', {digits_of(way)}) "
            f"ON CONFLICT (te) DO UPDATE SET vc = '{text_of(way)}', nu = {digits_of(way)}"
        )

    def errors(self, way):
        for sql in (
            f"INSERT INTO t (i, te) VALUES (1, '{text_of(way)}')",
            f"INSERT INTO t (i, i8) VALUES ({way}, '{text_of(way)}')",
            f"INSERT INTO t (i, i8) VALUES ({way}, {digits_of(way)}000)",
            f"INSERT INTO t (i, vc) VALUES ({way}, '{text_of(way) * 5}')",
            f"INSERT INTO t (i, ts) VALUES ({way}, '{text_of(way)}')",
            f"SELECT te + {digits_of(way)} FROM t",
            f"SELECT i8 * {digits_of(way)} FROM t",
        ):
            if self.c.family == "soft" and "(i, vc)" in sql:
                continue  # a soft_text has no length
            with pytest.raises(psycopg.Error):
                self.c.execute(sql)
        with pytest.raises(psycopg.Error):
            self.c.execute("INSERT INTO t (i, i8) VALUES (%s, %s)", (way, text_of(way)))
        with pytest.raises(psycopg.Error):  # noqa: SIM117
            with self.c.cursor().copy("COPY t (i, i8) FROM STDIN") as copy:
                copy.write(f"{way}\t{text_of(way)}\n".encode())

    def unique_violation(self, way):
        self.c.execute(f"CREATE TABLE u{way} (te enc_text PRIMARY KEY, i8 enc_int8 UNIQUE)")
        insert = f"INSERT INTO u{way} VALUES ('{text_of(way)}', {digits_of(way)})"
        self.c.execute(insert)
        with pytest.raises(psycopg.errors.UniqueViolation):
            self.c.execute(insert)

    def temporary_table(self, way):
        self.c.execute(f"CREATE TEMP TABLE temp{way} (te enc_text, nu enc_numeric)")
        self.c.execute(f"INSERT INTO temp{way} VALUES ('{text_of(way)}', {digits_of(way)})")

    def sort_spill(self, way):
        self.c.execute("SET work_mem = '64kB'")
        self.c.execute(
            f"SELECT te || '{text_of(way)}' AS x FROM t, generate_series(1, 3000) "
            "ORDER BY x LIMIT 1"
        )
        self.c.execute("RESET work_mem")

    def cursor(self, way):
        with self.c.transaction():
            self.c.execute(f"DECLARE c CURSOR FOR SELECT te || '{text_of(way)}' FROM t")
            self.c.execute("FETCH ALL FROM c")

    def copied_column(self, way):
        self.c.execute(f"CREATE TABLE c{way} AS SELECT te || '{text_of(way)}' AS x, nu FROM t")
        self.c.execute(f"CREATE MATERIALIZED VIEW m{way} AS SELECT x FROM c{way}")

    def function_body(self, way):
        self.c.execute(
            f"CREATE FUNCTION f{way}() RETURNS bigint LANGUAGE sql AS "
            f"$$SELECT count(*) FROM t WHERE te = '{text_of(way)}'$$"
        )
        self.c.execute(f"SELECT f{way}()")


NAMES = [n for n in vars(Ways) if not n.startswith("_")]


def plant(connection, family, name, way):
    """Plants in one way. A way that the proxy refuses has not leaked, either."""
    try:
        getattr(Ways(connection, family), name)(way)
    except psycopg.Error as error:
        return f"{error.sqlstate} {error}"
    return None


def files(stack):
    for directory in (stack.data, stack.logs):
        for path in sorted(directory.rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield path, path.read_bytes()


def stem(alike):
    """What all of these have in common at the beginning or the end."""

    def beginning(parts):
        same = (len(set(column)) == 1 for column in zip(*parts, strict=False))
        return parts[0][: sum(takewhile(bool, same))]

    return max(beginning(alike), beginning([a[::-1] for a in alike])[::-1], key=len)


def search(stack, wanted):
    """Which needle is in which file. Needles of a kind have a stem: it is searched first."""
    kinds = {}
    for needle in wanted:
        kinds.setdefault((needle.value, needle.encoding), []).append(needle)
    stems = [(stem([n.bytes for n in alike]), alike) for alike in kinds.values()]
    return [
        (needle, path)
        for path, data in files(stack)
        for common, alike in stems
        if common in data
        for needle in alike
        if needle.bytes in data
    ]


@pytest.fixture(scope="module", params=FIRST)
def family(request):
    return request.param


@pytest.fixture(scope="module")
def planted(stack, family):
    """Plants in every way; gives what each was refused with."""
    with stack.connect_app() as connection, stack.connect_dba() as dba:
        connection.execute("DROP SCHEMA IF EXISTS planted CASCADE")
        connection.execute("CREATE SCHEMA planted")
        connection.execute("SET search_path = planted")
        connection.execute(of_family(DDL, family))
        connection.execute("INSERT INTO t (i) VALUES (1)")
        refused = {
            name: plant(connection, family, name, number)
            for number, name in enumerate(NAMES, start=FIRST[family])
        }
        connection.execute("CREATE INDEX ON t (i8)")
        connection.execute("ANALYZE t")
        connection.execute(
            "CREATE TABLE open (te text, i8 bigint, nu numeric, ts timestamp, f8 float8)"
        )
        connection.execute(
            "INSERT INTO open VALUES (%s, %s, %s, %s, %s)",
            (text_of(999), digits_of(999), digits_of(999), time_of(999), float_of(999)),
        )
        dba.execute("SELECT pg_switch_wal()")
        dba.execute("CHECKPOINT")
        yield refused


def test_the_search_finds(stack, planted):
    """A plain column's values are found as text, number and time in table, WAL and log."""
    found = {(n.value, n.encoding) for n, _ in search(stack, list(needles("open", 999)))}
    assert found >= {
        ("text", "text"),
        ("number", "int8 little-endian"),
        ("number", "numeric little-endian"),
        ("time", "int8 <"),
        ("float", "float8 <"),
    }


@pytest.mark.parametrize("name", NAMES)
def test_not_refused(planted, family, name):
    """All these ways are ordinary SQL, which a family has or refuses."""
    if name in NOT_THERE[family]:
        assert planted[name] is None or re.match("0A000|42883|42846", planted[name])
    else:
        assert planted[name] is None


def test_nothing_is_found(stack, planted, family):
    wanted = [
        n for number, name in enumerate(NAMES, start=FIRST[family]) for n in needles(name, number)
    ]
    found = search(stack, wanted)
    report = sorted({f"{n.way}: {n.value} as {n.encoding} in {path.name}" for n, path in found})
    assert not report, "\n".join(report[:30])


def test_values_are_there(stack, planted, family):
    """The application reads all of what was planted."""
    with stack.connect_app(options="-c search_path=planted") as connection:
        for number, name in enumerate(NAMES, start=FIRST[family]):
            if name in ("simple_insert", "text_parameters", "binary_parameters", "prepared"):
                rows = run(connection, f"SELECT te, i8, uu FROM t WHERE i = {number}").rows
                assert rows == [(text_of(number), str(digits_of(number)), uuid_of(number))]
            if name in ("copy_text", "copy_binary", "update"):
                rows = run(connection, f"SELECT i FROM t WHERE te = '{text_of(number)}'").rows
                assert rows == [(str(number),)]


def test_statistics(stack, planted, family):
    """What ANALYZE keeps, as the superuser sees it."""
    with stack.connect_dba() as dba:
        rows = dba.execute(
            "SELECT attname, most_common_vals::text, histogram_bounds::text FROM pg_stats "
            "WHERE schemaname = 'planted' AND attname IN ('te', 'i8', 'nu', 'ts', 'uu', 'f8')"
        ).fetchall()
    # Of cells there are none but widths and NULLs.
    assert rows or family.startswith("rnd")
    for _, common, bounds in rows:
        for values_ in (common, bounds):
            for value in (values_ or "{}").strip("{}").split(","):
                assert value == "" or value.startswith(("cfd1.", "soft1.")), value[:40]


def test_activity_and_statements(stack, planted, family):
    """What the superuser sees of running and past statements."""
    with stack.connect_app(options="-c search_path=planted") as connection:
        connection.execute(f"SELECT i FROM t WHERE te = '{text_of(700)}'")
        with stack.connect_dba() as dba:
            seen = dba.execute("SELECT string_agg(query, ' ') FROM pg_stat_activity").fetchone()[0]
    assert text_of(700) not in seen
    assert ("soft1." if family == "soft" else "cfd1.") in seen


def test_equal_values_of_an_insert(stack):
    """Rows of one INSERT with the same value: the server is not told that they are equal. Where it
    must recognise an expression, as in GROUP BY, equal literals are one envelope."""
    with stack.connect_app() as app, stack.connect_dba() as dba:
        app.execute("DROP TABLE IF EXISTS alike")
        app.execute("CREATE TABLE alike (i int, v enc_text)")
        app.execute("INSERT INTO alike VALUES (1, 'same'), (2, 'same'), (3, 'same')")
        (text,) = dba.execute(
            "SELECT query FROM pg_stat_activity WHERE query LIKE 'INSERT INTO alike%'"
        ).fetchone()
        # Not the grant in the comment behind the text.
        envelopes = re.findall(r"'(cfd1\.[\w-]+)'", text)
        assert len(set(envelopes)) == len(envelopes) == 3
        grouped = "SELECT v || 'x', count(*) FROM alike GROUP BY v || 'x'"
        assert app.execute(grouped).fetchall() == [("samex", 3)]


def test_schema_changed_by_a_function(stack):
    """A function swaps a plain and a protected table, or lets a temporary one hide it; only the
    server sees that. A proxy that is not told sends the next literals in the clear."""
    with stack.connect_app() as app, stack.connect_dba() as dba:
        app.execute("DROP SCHEMA IF EXISTS swapped CASCADE")
        app.execute("CREATE SCHEMA swapped")
        app.execute("SET search_path = swapped")
        app.execute("CREATE TABLE a (v text)")
        app.execute("CREATE TABLE b (v enc_text)")
        app.execute(
            "CREATE FUNCTION swap() RETURNS void LANGUAGE plpgsql AS $$BEGIN ALTER TABLE a RENAME"
            " TO c; ALTER TABLE b RENAME TO a; ALTER TABLE c RENAME TO b; END$$"
        )
        app.execute(
            "CREATE FUNCTION hide() RETURNS void LANGUAGE plpgsql AS"
            " $$BEGIN CREATE TEMP TABLE b (v text); END$$"
        )
        app.execute(
            "CREATE FUNCTION show() RETURNS void LANGUAGE plpgsql AS"
            " $$BEGIN DROP TABLE pg_temp.b; END$$"
        )
        for change in ("swap", "swap", "hide", "show"):
            app.execute("INSERT INTO a VALUES ('before')")
            app.execute("INSERT INTO b VALUES ('before')")
            app.execute(f"SELECT {change}()")
            app.execute("INSERT INTO a VALUES ('after')")
            app.execute("INSERT INTO b VALUES ('after')")
        with app.transaction(force_rollback=True):
            app.execute("SELECT swap()")
            app.execute("INSERT INTO a VALUES ('after')")
        app.execute("INSERT INTO b VALUES ('after')")
        stored = {v for (v,) in dba.execute("SELECT v FROM swapped.b")}
        assert len(stored) > 6
        assert all(v.startswith("cfd1.") for v in stored), stored


def test_search_path_changed_by_a_function(stack):
    """The same name is a plain table or a protected one; only the server sees the change."""
    with stack.connect_app() as app, stack.connect_dba() as dba:
        for schema, kind in (("path_open", "text"), ("path_shut", "enc_text")):
            app.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
            app.execute(f"CREATE SCHEMA {schema}")
            app.execute(f"CREATE TABLE {schema}.named (v {kind})")
        app.execute(
            "CREATE FUNCTION path_open.move(p text) RETURNS text LANGUAGE plpgsql AS"
            " $$BEGIN RETURN set_config('search_path', p, false); END$$"
        )
        app.execute("SET search_path = path_open")
        for number, schema in enumerate(["path_shut", "path_open", "path_shut"]):
            app.execute("INSERT INTO named VALUES ('before')")
            app.execute(f"SELECT path_open.move('{schema}')")
            app.execute(f"INSERT INTO named VALUES ('{schema}')")
            with app.transaction(force_rollback=number == 1):
                app.execute(f"SELECT path_open.move('{schema}')")
                app.execute(f"INSERT INTO named VALUES ('{schema}')")
        stored = {v for (v,) in dba.execute("SELECT v FROM path_shut.named")}
        assert all(v.startswith("cfd1.") for v in stored), stored
        for schema, expected in (
            ("path_shut", ["before", "path_shut", "path_shut", "path_shut", "path_shut"]),
            ("path_open", ["before", "before", "path_open"]),
        ):
            rows = app.execute(f"SELECT v FROM {schema}.named ORDER BY 1").fetchall()
            assert [v for (v,) in rows] == expected
