"""Generates expressions over edge values from the catalog of supported operations.

A case is an expression over the aliases x, y, z, each a table of values `t_TYPE(i, v)`. The text is
the same for plain and protected tables. The seed is fixed.
"""

import json
import random
import re
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from values import LITERALS, UNITS

CATALOG = json.loads((Path(__file__).parent.parent / "generated" / "catalog.json").read_text())
TYPES = list(LITERALS)
ALIASES = "xyz"


@dataclass(frozen=True)
class Case:
    """An expression, and the type of each alias."""

    expression: str
    types: tuple[str, ...]


@dataclass(frozen=True)
class Signature:
    """An operator, function or cast with the type of its result."""

    kind: str
    name: str
    args: tuple[str, ...]
    result: str

    def text(self, *args: str) -> str:
        match self.kind:
            case "operator" if len(args) == 1:
                return f"({self.name} {args[0]})"
            case "operator":
                return f"({args[0]} {self.name} {args[1]})"
            case "cast":
                return f"({args[0]})::{self.name}"
        match self.name:
            case "extract":
                return f"extract({args[0]} FROM {args[1]})"
            case "position":
                return f"position({args[0]} IN {args[1]})"
            case "substring" if len(args) == 3:
                return f"substring({args[0]} FROM {args[1]} FOR {args[2]})"
        return f"{self.name}({', '.join(args)})"


def signatures(results: dict[tuple, str]) -> list[Signature]:
    """The catalog without aggregates; `results` says what each gives in PostgreSQL."""
    return [
        Signature(e["kind"], e["name"], tuple(e["args"]), results[e["kind"], e["name"], *e["args"]])
        for e in CATALOG
        if e["kind"] != "aggregate" and (e["kind"], e["name"], *e["args"]) in results
    ]


def aggregates(type_: str) -> list[str]:
    return [e["name"] for e in CATALOG if e["kind"] == "aggregate" and e["args"] == [type_]]


def quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def literal(type_: str, rng: random.Random) -> str:
    """A constant of this type in one of the ways to write one."""
    value = rng.choice(LITERALS[type_])
    forms = [f"{type_} {quoted(value)}", f"{quoted(value)}::{type_}"]
    forms.append(f"CAST({quoted(value)} AS {type_})")
    if type_ in ("int4", "numeric", "int8") and "e" not in value:
        forms += [value if not value.startswith("-") else f"({value})"] * 3
    if type_ == "bool":
        forms += ["true", "false"]
    if type_ == "interval":
        forms.append("interval '90' day")
    return rng.choice(forms)


def direct(type_: str, known: list[Signature]) -> list[Case]:
    """Each signature that begins with the type, on columns."""
    cases = []
    for s in known:
        if s.args[0] == "unit":
            if s.args[1] != type_:
                continue
            for unit in UNITS[type_]:
                name = unit if s.name == "extract" else quoted(unit)
                cases.append(Case(s.text(name, "x.v"), (type_,)))
        elif s.args[0] == type_ and len(s.args) <= len(ALIASES):
            columns = [f"{a}.v" for a in ALIASES[: len(s.args)]]
            cases.append(Case(s.text(*columns), s.args))
    return cases


def with_literals(type_: str, known: list[Signature], rng: random.Random) -> list[Case]:
    """Each signature of two arguments with a constant at either side."""
    cases = []
    for s in known:
        if len(s.args) != 2 or "unit" in s.args:
            continue
        if s.args[0] == type_:
            cases.append(Case(s.text("x.v", literal(s.args[1], rng)), (type_,)))
            untyped = s.text("x.v", quoted(rng.choice(LITERALS[s.args[1]])))
            cases.append(Case(untyped, (type_,)))
        if s.args[1] == type_:
            cases.append(Case(s.text(literal(s.args[0], rng), "x.v"), (type_,)))
    return cases


def contexts(type_: str, rng: random.Random) -> list[Case]:
    """What SQL has around expressions, besides operators and functions."""

    def lit() -> str:
        return literal(type_, rng)

    def raw() -> str:
        return quoted(rng.choice(LITERALS[type_]))

    shapes = [
        lambda: f"x.v BETWEEN {lit()} AND {lit()}",
        lambda: f"x.v NOT BETWEEN {raw()} AND {lit()}",
        lambda: f"x.v BETWEEN SYMMETRIC {lit()} AND {lit()}",
        lambda: f"x.v IN ({lit()}, {lit()}, {lit()})",
        lambda: f"x.v IN ({raw()}, {raw()})",
        lambda: f"x.v NOT IN ({lit()}, {raw()})",
        lambda: f"x.v IN ({lit()}, NULL)",
        lambda: "x.v || ' and more'",
        lambda: "'before ' || x.v",
        lambda: "x.v || text ' typed' || x.v",
        lambda: "x.v IS NULL",
        lambda: "x.v IS NOT NULL",
        lambda: "x.v IS DISTINCT FROM y.v",
        lambda: f"x.v IS NOT DISTINCT FROM {lit()}",
        lambda: f"x.v IS DISTINCT FROM {raw()}",
        lambda: f"CASE WHEN x.v < {lit()} THEN x.v ELSE y.v END",
        lambda: f"CASE WHEN x.v > y.v THEN {lit()} ELSE x.v END",
        lambda: f"CASE WHEN x.v = {lit()} THEN 1 ELSE 0 END",
        lambda: f"CASE x.v WHEN {lit()} THEN 'one' WHEN {lit()} THEN 'two' END",
        lambda: f"CASE WHEN x.v IS NULL THEN {lit()} ELSE x.v END",
        lambda: f"COALESCE(x.v, {lit()})",
        lambda: f"COALESCE(x.v, {raw()})",
        lambda: "COALESCE(x.v, y.v)",
        lambda: f"NULLIF(x.v, {lit()})",
        lambda: f"GREATEST(x.v, y.v, {lit()})",
        lambda: f"LEAST(x.v, {raw()})",
        lambda: f"x.v = {lit()} OR x.v > {raw()}",
        lambda: f"NOT (x.v <> {lit()} AND x.v <= y.v)",
        lambda: f"(x.v < y.v) = (y.v > {lit()})",
        lambda: f"(x.v, y.v) = ({lit()}, {lit()})",
        lambda: f"(x.v, y.v) < (y.v, {lit()})",
        lambda: (
            "x.v = (SELECT max(t.v) FROM t_TYPE t)".replace("TYPE", type_)
            if type_ in SORTED
            else "x.v = x.v"
        ),
        lambda: f"x.v IN (SELECT t.v FROM t_{type_} t WHERE t.v <> {lit()})",
        lambda: f"EXISTS (SELECT FROM t_{type_} t WHERE t.v = x.v AND t.i <> x.i)",
    ]
    return [Case(shape(), (type_, type_)) for shape in shapes]


SORTED = {e["args"][0] for e in CATALOG if e["kind"] == "aggregate" and e["name"] == "max"}


# With a length from the edges of int4 a regular expression takes minutes to compile.
LONG_PATTERN = re.compile(r"~.*(pad|repeat)\(")


def composites(
    type_: str, known: list[Signature], rng: random.Random, number: int = 40
) -> list[Case]:
    """Random expressions, two or three deep, each with x of the type."""
    giving: dict[str, list[Signature]] = {}
    for s in known:
        if "unit" not in s.args and s.args[0] in TYPES and s.result in TYPES:
            giving.setdefault(s.result, []).append(s)
    taking = [s for s in known if type_ in s.args and "unit" not in s.args]
    strings = ("text", "varchar", "bpchar")

    def reads_text(s: Signature) -> bool:
        """Most constants would be errors, in an order that PostgreSQL leaves open."""
        return s.kind == "cast" and s.args[0] in strings and s.name not in strings

    def leaf(wanted: str, types: list[str]) -> str:
        for alias, has in zip(ALIASES, types, strict=False):
            if has == wanted and rng.random() < 0.6:
                return f"{alias}.v"
        if len(types) < 2 and rng.random() < 0.4:
            types.append(wanted)
            return f"{ALIASES[len(types) - 1]}.v"
        return literal(wanted, rng)

    def grow(wanted: str, types: list[str], depth: int) -> str:
        # Booleans of comparisons are plain: below, only columns and constants.
        makers = [s for s in giving.get(wanted, []) if "bool" not in s.args and not reads_text(s)]
        if depth == 0 or wanted == "bool" or not makers or rng.random() < 0.25:
            return leaf(wanted, types)
        maker = rng.choice(makers)
        return maker.text(*(grow(a, types, depth - 1) for a in maker.args))

    cases = {}
    for _ in count():
        if len(cases) == number:
            break
        top, types = rng.choice(taking), [type_]
        place = rng.choice([n for n, a in enumerate(top.args) if a == type_])
        args = [grow(a, types, 2) for a in top.args]
        if "x.v" not in "".join(args):
            args[place] = "x.v"
        case = Case(top.text(*args), tuple(types))
        if not LONG_PATTERN.search(case.expression):
            cases[case.expression] = case
    return list(cases.values())
