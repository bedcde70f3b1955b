"""Every operator, function and cast of the catalog returns the same on protected columns as on
plain ones: value, type, or SQLSTATE. Expressions are generated over edge values.

All rows for which PostgreSQL returns a value are compared in one query; some of those for which it
fails are tried one at a time.
"""

import random
from itertools import groupby

import pytest
from cases import ALIASES, TYPES, Case, composites, contexts, direct, signatures, with_literals
from results import Outcome, run
from values import EDGES

SEED = 2
ERRORS_EACH = 3  # tried for each expression and SQLSTATE
SMALL = 6  # values of the third table
WITH_OPERATORS = [t for t in TYPES if t != "varchar"]  # it uses those of text

# What the catalog's entries give in PostgreSQL.
RESULTS = """
SELECT 'operator', oprname, array_remove(ARRAY[l.typname, r.typname], NULL), t.typname
FROM pg_operator o LEFT JOIN pg_type l ON l.oid = oprleft
JOIN pg_type r ON r.oid = oprright JOIN pg_type t ON t.oid = oprresult
UNION ALL
SELECT 'function', proname, ARRAY(SELECT y.typname FROM unnest(proargtypes) WITH ORDINALITY u(o, n)
    JOIN pg_type y ON y.oid = u.o ORDER BY u.n), t.typname
FROM pg_proc JOIN pg_type t ON t.oid = prorettype
WHERE pronamespace = 'pg_catalog'::regnamespace
"""


@pytest.fixture(scope="module")
def known(stack):
    with stack.connect_dba() as connection:
        rows = connection.execute(RESULTS).fetchall()
    results = {(kind, name, *args): result for kind, name, args, result in rows}
    for (kind, name, *args), result in list(results.items()):
        if args[:1] == ["text"] and name in ("extract", "date_part", "date_trunc"):
            results[kind, name, "unit", *args[1:]] = result
    for source in TYPES:
        for target in TYPES:
            results["cast", target, source] = target
    return signatures(results)


def fill(connection, schema: str, prefix: str, edges: dict[str, list], **modifiers: str) -> None:
    """A table of edge values for each type, with the family's prefix and perhaps a modifier."""
    connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    connection.execute(f"CREATE SCHEMA {schema}")
    connection.execute(f"SET search_path = {schema}")
    connection.execute("SET TimeZone = 'Europe/Berlin'")
    for type_, values in edges.items():
        declared = f"{prefix}{type_}{modifiers.get(type_, '')}"
        connection.execute(f"CREATE TABLE t_{type_} (i integer PRIMARY KEY, v {declared})")
        with connection.cursor().copy(f"COPY t_{type_} FROM STDIN") as copy:
            for row in enumerate(values):
                copy.write_row(row)


@pytest.fixture(scope="module")
def tables(stack):
    """Connections whose search path finds the plain and the protected tables."""
    with stack.connect_app() as plain, stack.connect_app() as protected:
        fill(plain, "values_plain", "", EDGES)
        fill(protected, "values_protected", "enc_", EDGES)
        yield plain, protected


def unlike(got: Outcome) -> bool:
    """Regular expressions that the keeper does not have are refused."""
    return got.sqlstate == "0A000" and "regular expressions" in got.message


class Comparison:
    """Compares cases and keeps what differs."""

    def __init__(self, plain, protected):
        self.plain = plain
        self.protected = protected
        self.compared = 0
        self.differences: list[str] = []

    def refused(self, got: Outcome) -> bool:
        """What may be refused where PostgreSQL gives a value or another error."""
        return unlike(got)

    def differs(self, case: Case, where: str, expected: str, got: str):
        self.differences.append(f"{case.expression}  [{where}]  expected {expected}, got {got}")

    def compare(self, case: Case):
        keys = ", ".join(f"{a}.i" for a in ALIASES[: len(case.types)])
        source = ", ".join(f"t_{t} {a}" for t, a in zip(case.types, ALIASES, strict=False))
        limit = f"z.i < {SMALL} AND y.i < {SMALL}" if len(case.types) == 3 else "true"
        query = f"SELECT {keys}, {case.expression} FROM {source} WHERE {limit}"
        order = f" ORDER BY {keys}"
        expected = run(self.plain, query + order)
        errors: dict[tuple, str] = {}
        if expected.sqlstate:
            if expected.sqlstate.startswith("42"):  # does not parse: nothing to run
                return self.compare_error(case, query, expected.sqlstate, "all")
            errors = self.errors(case, keys, source, limit)
            failing = ", ".join("(" + ", ".join(key) + ")" for key in errors)
            query += f" AND ({keys}) NOT IN ({failing})"
            if run(self.plain, query + " AND false").sqlstate:
                return None  # constants alone give the error; which of two comes first is open
            expected = run(self.plain, query + order)
            assert expected.sqlstate is None, (case, expected)
        if expected.rows:
            self.compare_values(case, query, order, expected)
        by_state = sorted(errors.items(), key=lambda item: (item[1], item[0]))
        for state, failed in groupby(by_state, key=lambda item: item[1]):
            for key, _ in list(failed)[:ERRORS_EACH]:
                one = f"SELECT {case.expression} FROM {source} WHERE ({keys}) = ({', '.join(key)})"
                self.compare_error(case, one, state, self.named(case, key))
        return None

    def errors(self, case: Case, keys: str, source: str, limit: str) -> dict[tuple, str]:
        """For which rows PostgreSQL gives an error, and its SQLSTATE."""
        found = {}
        rows = run(self.plain, f"SELECT {keys} FROM {source} WHERE {limit}").rows
        for key in rows:
            one = f"SELECT {case.expression} FROM {source} WHERE ({keys}) = ({', '.join(key)})"
            if state := run(self.plain, one).sqlstate:
                found[key] = state
        return found

    def compare_values(self, case: Case, query: str, order: str, expected: Outcome):
        got = run(self.protected, query + order)
        self.compared += len(expected.rows)
        assert got.sqlstate != "none", (query, got)  # the connection broke
        if self.refused(got):
            return
        if got.sqlstate:
            self.find_failing(case, query, expected, got)
            return
        if got.types != expected.types:
            self.differs(case, "type", str(expected.types[-1]), str(got.types[-1]))
        width = len(case.types)
        for before, after in zip(expected.rows, got.rows, strict=True):
            if before != after:
                where = self.named(case, before[:width])
                self.differs(case, where, repr(before[-1]), repr(after[-1]))

    def find_failing(self, case: Case, query: str, expected: Outcome, failed: Outcome):
        """Names the rows for which there is an error where PostgreSQL gives a value."""
        width = len(case.types)
        columns = ", ".join(f"{a}.i" for a in ALIASES[:width])
        before = len(self.differences)
        for row in expected.rows:
            one = run(self.protected, f"{query} AND ({columns}) = ({', '.join(row[:width])})")
            if one.sqlstate and len(self.differences) - before < 3:
                where = self.named(case, row[:width])
                self.differs(case, where, repr(row[-1]), f"{one.sqlstate} {one.message}")
        if len(self.differences) == before:
            self.differs(
                case, "all rows at once", "no error", f"{failed.sqlstate} {failed.message}"
            )

    def compare_error(self, case: Case, query: str, state: str, where: str):
        got = run(self.protected, query)
        self.compared += 1
        if got.sqlstate != state and not self.refused(got):
            value = f"{got.sqlstate} {got.message}" if got.sqlstate else repr(got.rows[:1])
            self.differs(case, where, state, value)

    @staticmethod
    def named(case: Case, key: tuple) -> str:
        edges = (EDGES[t][int(i)] for t, i in zip(case.types, key, strict=True))
        return ", ".join(f"{a}={e!r}" for a, e in zip(ALIASES, edges, strict=False))


def check(comparison: Comparison, cases: list[Case], least: int):
    for case in cases:
        comparison.compare(case)
    wrong = comparison.differences
    shown = "\n".join(wrong[:40])
    assert not wrong, f"{len(wrong)} of {comparison.compared} cases differ:\n{shown}"
    assert comparison.compared >= least


@pytest.mark.parametrize("type_", TYPES)
def test_signatures(known, tables, type_):
    """Columns with columns."""
    check(Comparison(*tables), direct(type_, known), 50)


@pytest.mark.parametrize("type_", WITH_OPERATORS)
def test_literals(known, tables, type_):
    """Columns with constants, in each way to write one."""
    check(Comparison(*tables), with_literals(type_, known, random.Random(SEED)), 30)


@pytest.mark.parametrize("type_", TYPES)
def test_contexts(tables, type_):
    """CASE, IN, BETWEEN, COALESCE, subqueries and so on."""
    check(Comparison(*tables), contexts(type_, random.Random(SEED)), 200)


@pytest.mark.parametrize("type_", TYPES)
def test_composites(known, tables, type_):
    """Random expressions of several operators."""
    check(Comparison(*tables), composites(type_, known, random.Random(SEED)), 100)


# Documents in json have no operators that take two of them.
@pytest.mark.parametrize("type_", [t for t in WITH_OPERATORS if t != "json"])
def test_mixed(known, tables, type_):
    """A plain column that meets a protected one."""
    cases = [
        Case(s.text("p.v", "x.v"), (type_,))
        for s in known
        if s.kind == "operator" and s.args == (type_, type_)
    ]
    comparison = Comparison(*tables)
    for case in cases:
        mixed = f"(SELECT {case.expression} FROM values_plain.t_{type_} p WHERE p.i = {{}})"
        for row in (0, 1):
            comparison.compare(Case(mixed.format(row), (type_,)))
    check(comparison, [], 12)
