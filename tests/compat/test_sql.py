"""Which SQL works on protected columns: each outcome must be as recorded.

Mechanism: the lists of sql_source.py run on plain and on protected columns. Bug: something that
worked differs or is refused, or docs/sql.md is out of date. CONFIDE_UPDATE=1 rewrites the list made
from PostgreSQL's catalogs, the outcomes and docs/sql.md.
"""

import os

import psycopg
import pytest
from results import run
from sql_outcomes import compare, document, line, prepare, summary
from sql_source import CATALOG, OUTCOMES, WRITTEN, Entry, entries, from_catalog
from stack import ROOT

UPDATE = bool(os.environ.get("CONFIDE_UPDATE"))
DOCS = ROOT / "docs" / "sql.md"


@pytest.fixture(scope="module")
def sides(stack):
    with stack.connect_app() as plain, stack.connect_app() as protected:
        prepare(plain, "sql_plain", "")
        prepare(protected, "sql_protected", "enc_")
        if UPDATE:
            write_catalog(stack, plain)
        yield plain, protected


def write_catalog(stack, plain):
    with stack.connect_dba() as connection:
        found = from_catalog(connection)
    lines = ["# Made from PostgreSQL's catalogs by test_sql.py (CONFIDE_UPDATE=1)."]
    heading = None
    for group, text in found:
        entry = Entry(group, text)
        if any(run_plain(plain, s) for s in entry.statements):
            continue
        if group != heading:
            lines.append(f"## {group}")
            heading = group
        lines.append(text)
    CATALOG.write_text("\n".join(lines) + "\n")


def run_plain(plain, statement):
    return run(plain, statement).sqlstate


def known() -> list[tuple[str, str, str]]:
    rows = [row.split("\t") for row in OUTCOMES.read_text().splitlines()]
    return [(heading, text, result) for heading, text, result in rows]


def test_outcomes(sides, report):
    plain, protected = sides
    now, dropped = [], []
    for entry in [*entries(CATALOG), *entries(WRITTEN)]:
        result = compare(plain, protected, entry)
        if result.startswith("fails"):
            dropped.append(f"{entry.heading}: {entry.text}: {result}")
        else:
            now.append((entry.heading, entry.text, result))
    assert not dropped, "these do not work on plain columns:\n" + "\n".join(dropped)
    report(f"SQL on protected columns: {summary(now)}")
    if UPDATE:
        OUTCOMES.write_text("".join(line(Entry(h, t), r) + "\n" for h, t, r in now))
        DOCS.write_text(document(now))
    before = {(heading, text): result for heading, text, result in known()}
    changed = [
        f"{heading}: {text}\n  was {before.get((heading, text))}\n  is  {result}"
        for heading, text, result in now
        if before.get((heading, text)) != result
    ]
    assert not changed, "\n".join(changed)


def test_document_is_fresh():
    assert DOCS.read_text() == document(known()), "run test_sql.py with CONFIDE_UPDATE=1"


@pytest.mark.parametrize("expression", ["cbrt(f8)", "hashtext(s)", "s @@ s2", "normalize(s)"])
def test_what_is_missing_is_named(sides, expression):
    """PostgreSQL would advise casts, which there are none of; the proxy says what there is."""
    with pytest.raises(psycopg.errors.UndefinedFunction) as caught:
        sides[1].execute(f"SELECT {expression} FROM t")
    assert "enc_" in caught.value.diag.message_primary
    assert "docs/sql.md" in caught.value.diag.message_hint
