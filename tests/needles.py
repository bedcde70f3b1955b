"""A value of each type to plant, and the forms in which its bytes could be anywhere: as text in the
encodings that are used, and in binary in both byte orders, as PostgreSQL and the keeper store it.

Values of two bytes and less are everywhere: of these a whole row is planted, several times, so that
its values stand beside each other by the row and by the column.
"""

import base64
import datetime as dt
import struct
import uuid
from dataclasses import dataclass
from decimal import Decimal

EPOCH = dt.datetime(2000, 1, 1)
# How often the row is there, so that a column has as many bytes beside each other.
ROWS = 8
SMALL = [-31973, 29867, -27431, 30983, 28289, -32003, 31019, -29347]
FLAGS = [c == "1" for c in "11010010111000110100111010001011"]
MICROSECOND = dt.timedelta(microseconds=1)


def texts(value):
    data = value.encode()
    yield "text", data
    yield "UTF-16", value.encode("utf-16-le")
    yield "hex", data.hex().encode()
    yield "HEX", data.hex().upper().encode()
    # Base64 of the text at each of three offsets, without the edges that neighbours change.
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + data).rstrip(b"=")
        yield f"base64+{shift}", encoded[(0, 2, 3)[shift] : -1][:-1]
        urlsafe = base64.urlsafe_b64encode(b"\0" * shift + data).rstrip(b"=")
        yield f"base64url+{shift}", urlsafe[(0, 2, 3)[shift] : -1][:-1]


def integers(value):
    yield "int8 little-endian", struct.pack("<q", value)
    yield "int8 big-endian", struct.pack(">q", value)
    digits = []
    while value:
        value, digit = divmod(value, 10000)
        digits.insert(0, digit)
    yield "numeric little-endian", struct.pack(f"<{len(digits)}h", *digits)
    yield "numeric big-endian", struct.pack(f">{len(digits)}h", *digits)


def series(values, *codes):
    """Values beside each other: one row's, and one column's."""
    for code in codes:
        for order, name in (("<", "little-endian"), (">", "big-endian")):
            yield f"{code} by the row, {name}", struct.pack(f"{order}{len(values)}{code}", *values)
            column = [values[0]] * ROWS
            yield f"{code} by the column, {name}", struct.pack(f"{order}{ROWS}{code}", *column)


@dataclass(frozen=True)
class Planted:
    """Columns of a type: what is planted there, and the forms in which to look for it."""

    type: str
    values: list
    forms: list

    @property
    def name(self):
        return self.type.split("(")[0]

    @property
    def columns(self):
        return [f"{self.name}_{n}" for n in range(len(self.values))]


def spelt(*values):
    """The texts of values, but those that are too short to be anybody's."""
    return [form for value in values for form in texts(value) if len(value) > 7]


def words(way):
    """Types that hold a text, each with its own."""
    for number, kind in enumerate(["text", "varchar(60)", "bpchar(40)", "bytea", "json", "jsonb"]):
        word = f"{way}Zx7Qv9{number}Wm"
        value = {"bytea": word.encode(), "json": f'{{"k": "{word}"}}', "jsonb": f'["{word}"]'}
        yield Planted(kind, [value.get(kind, word)], list(texts(word)))


def numbers(seed):
    big = 8_100_200_300_400_000_000 + seed * 1_000_003
    medium = [1_590_421_337 + seed * 1_000_003, 1_487_330_219 + seed * 999_983]
    small = [value + seed for value in SMALL]
    # As text neither has more digits than the type gives back.
    double, single = 1234567.8125 + seed * 1024.0625, [93847.25 + seed, 61283.75 + seed]
    decimal = Decimal(f"{big}.{734_591 + seed}")
    unscaled = int(decimal.scaleb(6))
    flags = FLAGS if seed % 2 else [not flag for flag in FLAGS]
    yield Planted("bool", flags, [("bytes", bytes(flags)), ("text", shown(flags, "tf"))])
    yield Planted("int2", small, [*series(small, "h", "i", "q"), ("text", shown(small))])
    yield Planted("int4", medium, [*series(medium, "i", "q"), *spelt(*map(str, medium))])
    yield Planted("int8", [big], [*integers(big), *spelt(str(big))])
    yield Planted("float4", single, [*series(single, "f", "d"), ("text", shown(single))])
    floats = [(f"float8 {order}", struct.pack(f"{order}d", double)) for order in "<>"]
    yield Planted("float8", [double], [*floats, *spelt(repr(double))])
    bytes_ = (unscaled.bit_length() + 7) // 8
    wide = [(f"unscaled, {o} end first", unscaled.to_bytes(bytes_, o)) for o in ("little", "big")]
    yield Planted("numeric", [decimal], [*[*integers(big)][2:], *wide, *spelt(str(decimal))])


def shown(values, letters=None):
    """A row of short values as text, separated as COPY and documents separate them."""
    if letters:
        return "\t".join(letters[not value] for value in values).encode()
    return "\t".join(map(str, values)).encode()


def micros(value):
    return (value - EPOCH) // MICROSECOND


def times(seed):
    moment = dt.datetime(1693, 4, 17, 5, 43, 21, 987_001) + dt.timedelta(days=seed)
    days = [dt.date(1587, 3, 19) + dt.timedelta(days=seed + 97 * n) for n in range(4)]
    counts = [(day - EPOCH.date()).days for day in days]
    clock = (moment + dt.timedelta(hours=7, microseconds=seed * 7)).time()
    span = dt.timedelta(days=1_237 + seed, hours=4, microseconds=6_789_012 + seed)
    within = dt.timedelta(seconds=span.seconds, microseconds=span.microseconds) // MICROSECOND
    zoned = moment.replace(tzinfo=dt.UTC) + dt.timedelta(hours=3)
    long = {
        "time": (clock, micros(dt.datetime.combine(EPOCH, clock)), str(clock)),
        "timestamp": (moment, micros(moment), str(moment)),
        "timestamptz": (zoned, micros(zoned.replace(tzinfo=None)), str(zoned)[:26]),
    }
    texts_ = spelt(*map(str, days))
    yield Planted("date", days, [*series(counts, "i", "q"), *texts_])
    for kind, (value, count, text) in long.items():
        yield Planted(kind, [value], [*integers_of(count), *spelt(text)])
    forms = [
        (f"16 bytes {order}", struct.pack(f"{order}qii", within, span.days, 0)) for order in "<>"
    ]
    text = f"{span.days} days 0{dt.timedelta(microseconds=within)!s}"
    yield Planted("interval", [span], [*forms, *spelt(text)])


def integers_of(value):
    yield "int8 little-endian", struct.pack("<q", value)
    yield "int8 big-endian", struct.pack(">q", value)


def uuids(seed):
    value = uuid.UUID(f"5ec4e700-{seed:04x}-4a6b-9c8d-7f6e5d4c3b2a")
    yield Planted("uuid", [value], [("bytes", value.bytes), *texts(str(value)), *spelt(value.hex)])


def all_types(way, seed):
    """Of each type what is planted under this name."""
    return [*words(way), *numbers(seed), *times(seed), *uuids(seed)]
