"""Random tables: columns, which of them are protected, their values, and indexes.

The same seed generates the same tables. The plain twin of a table is its text without `enc_`.
"""

import random
from dataclasses import dataclass
from decimal import Decimal

# Type, how it is declared, and how many different values a small domain has.
TYPES = {
    "int4": ["enc_int4"],
    "int8": ["enc_int8"],
    "numeric": ["enc_numeric(12, 2)", "enc_numeric(20, 4)"],
    "float8": ["enc_float8"],
    "text": ["enc_text"],
    "varchar": ["enc_varchar(20)"],
    "bpchar": ["enc_bpchar(6)"],
    "date": ["enc_date"],
    "timestamp": ["enc_timestamp"],
}
WORDS = ["", "a", "b", "ab", "abc", "Abc", "a%c", "b_", "xyz", "ä€", "zz top", "abcabc", "12"]
SIZES = [0, 1, 7, 60, 300]
LARGE = 3000


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    declared: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str | None, ...], ...]
    indexes: tuple[str, ...]

    def ddl(self) -> str:
        columns = ", ".join(f"{c.name} {c.declared}" for c in self.columns)
        return f"CREATE TABLE {self.name} ({columns})"


def values(type_: str, rng: random.Random) -> tuple[str, ...]:
    """A domain: few values give duplicates, many do not."""
    count = rng.choice([2, 6, 400])
    match type_:
        case "int4" | "int8":
            wide = rng.choice([3, 100, 2**31 - 1])
            made = {str(rng.randrange(-wide, wide + 1)) for _ in range(count)} | {"0", "1"}
            if type_ == "int8" and rng.random() < 0.3:
                made.add("9223372036854775807")
        case "numeric":
            cents = rng.choice([10, 10**4, 10**9])
            made = {str(Decimal(rng.randrange(-cents, cents)) / 100) for _ in range(count)}
            made |= {"NaN"} if rng.random() < 0.2 else {"0"}
        case "float8":
            # Sums of these are exact, so their order does not matter.
            made = {str(rng.randrange(-4000, 4000) / 4) for _ in range(count)}
            if rng.random() < 0.2:
                made |= {"Infinity", "NaN"}
        case "text" | "varchar" | "bpchar":
            many = [f"w{rng.randrange(1000)}" for _ in range(count - 6)]
            made = {*rng.sample(WORDS, min(count, 8)), *many}
            if type_ == "bpchar":
                made = {w[:6] for w in made}
        case "date":
            made = {f"{rng.randrange(1992, 1999)}-{m:02}-{(m * 7) % 28 + 1:02}" for m in MONTHS}
            made |= {"infinity"} if rng.random() < 0.2 else set()
        case "timestamp":
            made = {f"{rng.randrange(1992, 1999)}-{m:02}-11 12:{m:02}:00.5" for m in MONTHS}
    return tuple(sorted(made))


MONTHS = range(1, 13)


def table(number: int, rows: int, rng: random.Random) -> Table:
    """`id` is a plain key, `k` of few values and protected: what joins meet."""
    links = tuple(str(n) for n in range(rng.choice([3, 20, max(3, rows)])))
    columns = [
        Column("id", "int4", "int4", ()),
        Column("k", "int4", rng.choice(["enc_int4", "enc_int4 NOT NULL", "int4"]), links),
    ]
    for i in range(rng.randrange(3, 7)):
        type_ = rng.choice(list(TYPES))
        declared = rng.choice(TYPES[type_])
        if rng.random() < 0.15:
            declared = declared.replace("enc_", "")  # a plain column among protected ones
        if rng.random() < 0.25:
            declared += " NOT NULL"
        columns.append(Column(f"c{i}", type_, declared, values(type_, rng)))
    share = {c.name: rng.choice([0.02, 0.3]) for c in columns}

    def cell(column: Column, row: int) -> str | None:
        if column.name == "id":
            return str(row)
        if "NOT NULL" not in column.declared and rng.random() < share[column.name]:
            return None
        return rng.choice(column.values)

    made = tuple(tuple(cell(c, row) for c in columns) for row in range(rows))
    indexes = tuple(c.name for c in columns if rng.random() < (0.7 if c.name == "id" else 0.3))
    return Table(f"t{number}", tuple(columns), made, indexes)


def tables(rng: random.Random) -> list[Table]:
    sizes = [rng.choice(SIZES), rng.choice(SIZES), rng.choice([*SIZES[3:], LARGE])]
    return [table(number, rows, rng) for number, rows in enumerate(sizes)]
