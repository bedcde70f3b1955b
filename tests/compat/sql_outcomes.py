"""Runs the lists of sql_source.py on plain and on protected columns, and reports the outcomes.

An outcome is `works`, `refused SQLSTATE message` or `differs what`; results are compared to the
last digit, with the types of their columns. Writes docs/sql.md from the outcomes. Errors on plain
columns do not occur, because what fails there is not in the lists.
"""

import re
from collections import Counter

import psycopg
from results import Outcome, run
from sql_source import COLUMNS, Entry, table

SETTINGS = ["SET TimeZone = 'Europe/Berlin'", "SET client_min_messages = error"]
TWINS = re.compile(r"\b(TEXT|INT4|NUMERIC)_\b")


def prepare(connection: psycopg.Connection, schema: str, prefix: str) -> None:
    connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    connection.execute(f"CREATE SCHEMA {schema}")
    for statement in [*SETTINGS, f"SET search_path = {schema}", *table(prefix)]:
        connection.execute(statement)


def last(connection: psycopg.Connection, entry: Entry, prefix: str) -> list[Outcome]:
    """What the entry's queries give; a statement's changes are taken back."""
    texts = [TWINS.sub(lambda m: prefix + m[1].lower(), s) for s in entry.statements]
    if not entry.text.startswith("!"):
        return [run(connection, text) for text in texts]
    outcomes = []
    if not texts[0].startswith("BEGIN"):
        texts.insert(0, "BEGIN")
    for text in texts:
        outcomes.append(run(connection, text))
        if outcomes[-1].sqlstate:
            break
    run(connection, "ROLLBACK")
    run(connection, "DEALLOCATE q")
    return outcomes[-1:]


def outcome(expected: list[Outcome], got: list[Outcome]) -> str:
    for want, have in zip(expected, got, strict=True):
        if have.sqlstate:
            message = re.sub(r"\s+", " ", have.message)
            return f"refused {have.sqlstate} {message}"
        if want.types != have.types:
            return f"differs in type: {have.types[-1:]} for {want.types[-1:]}"
        if want.rows != have.rows:
            pairs = zip(want.rows, have.rows, strict=False)
            first = next(((a, b) for a, b in pairs if a != b), (want.rows, have.rows))
            return f"differs: {first[1]} for {first[0]}"
    return "works"


def compare(plain: psycopg.Connection, protected: psycopg.Connection, entry: Entry) -> str:
    """What came of it; `fails` and why where plain columns give an error."""
    expected = last(plain, entry, "")
    for one in expected:
        if one.sqlstate:
            return f"fails {one.sqlstate} {one.message}"
    return outcome(expected, last(protected, entry, "enc_"))


def line(entry: Entry, result: str) -> str:
    return f"{entry.heading}\t{entry.text}\t{result}"


KINDS = ("works", "refused", "differs")
HEAD = """<!-- Made by tests/compat/test_sql.py (CONFIDE_UPDATE=1); do not edit. -->
# SQL on protected columns

Every function, operator and aggregate of PostgreSQL 15 on the types that have protected twins, and
what is written by hand beside them (formats, patterns, clauses, statements), run on plain columns
and on protected ones through the proxy; results are compared to the last digit, with their types.
The test fails when an outcome changes.

The columns are named by their types: """


def summary(outcomes: list[tuple[str, str, str]]) -> str:
    count = Counter(result.split()[0].rstrip(":") for _, _, result in outcomes)
    total = sum(count.values())
    parts = ", ".join(f"{count[k]} {k}" for k in KINDS)
    return f"{total} in all: {parts} ({100 * count['works'] / total:.1f} % work)."


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def document(outcomes: list[tuple[str, str, str]]) -> str:
    columns = ", ".join(f"`{column}` {type_}" for type_, (column, _) in COLUMNS.items())
    out = [
        HEAD + columns + "; `t2`, `t3` for a second and third of a type; `id` and `g` are plain.",
        "",
    ]
    out += [summary(outcomes), "", "A row that says nothing works."]
    heading = None
    for group, text, result in outcomes:
        if group != heading:
            heading = group
            mine = [o for o in outcomes if o[0] == group]
            out += ["", f"## {group}", summary(mine), "", "| | |", "|---|---|"]
        shown = "" if result == "works" else cell(result)
        out.append(f"| `{cell(text)}` | {shown} |")
    return "\n".join(out) + "\n"
