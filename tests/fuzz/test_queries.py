"""Random queries return the same on plain tables, on protected ones row at a time, and on protected
ones in batches: the same rows, types, order if there is one, and SQLSTATE.

Bug: a batched node evaluates what PostgreSQL would not, loses a row, or rounds differently. Set
CONFIDE_SEED and CONFIDE_QUERIES for other and longer runs: `make fuzz-sql QUERIES=5000 SEED=7`;
CONFIDE_ONLY=SCHEMA/QUERY repeats one query of such a run, CONFIDE_ONLY=SCHEMA those of its tables.
CONFIDE_WORKERS=0 plans without workers, CONFIDE_WORKERS=4 forces up to four into each plan that can
have them. A failure prints the reduced query, and the statements that create its tables.
"""

import os
import random
import re
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace

import psycopg
import pytest
from plans import above, tokens
from queries import Generator, Query
from results import Outcome, plain, run
from tables import tables
from tree import Node, shrunk
from waiting import until

SEED = os.environ.get("CONFIDE_SEED", "1")
QUERIES = int(os.environ.get("CONFIDE_QUERIES", "0"))
ONLY = os.environ.get("CONFIDE_ONLY", "")
WORKERS = os.environ.get("CONFIDE_WORKERS", "")
FORCED = WORKERS not in ("", "0")
SHORT = 2000
PER_SCHEMA = 100
LIMIT = "600s"
# Plans of many kinds: each query switches some of these off, on both sides.
PLANNER = [
    *["enable_hashjoin", "enable_mergejoin", "enable_nestloop", "enable_seqscan"],
    *["enable_indexscan", "enable_bitmapscan", "enable_hashagg", "enable_sort"],
]
# For some queries: what decides between plans costs nothing, or workers do, or above a nested loop
# is the best place for a condition.
FREE = dict.fromkeys(
    ["random_page_cost", "seq_page_cost", "cpu_tuple_cost", "cpu_index_tuple_cost"], "0"
)
PARALLEL = ["parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size"]
COSTS = {
    "as they are": {},
    "free rows": FREE,
    "free workers": dict.fromkeys(PARALLEL, "0"),
    # What they give is not free: they shall aggregate.
    "few rows of workers": {**dict.fromkeys(PARALLEL, "0"), "parallel_tuple_cost": "10"},
    "pairs": {
        **FREE,
        **dict.fromkeys(["enable_material", "enable_memoize"], "off"),
        "confide.batch_row_cost": "0",
    },
}
WEIGHTS = [0, 0, 50, 50, 0] if FORCED else [60, 8, 4, 6, 22]
FOR_PAIRS = [name for name in PLANNER if name not in ("enable_nestloop", "enable_indexscan")]
COMPARISON = "(<|<=|=|<>|>=|>)"
# What the plans must have had, and how often in 1000 queries at least.
NODES = {
    "scan": (above("Seq Scan"), 20),
    "index scan": (above("Index Scan"), 5),
    "bitmap scan": (above("Bitmap Heap Scan"), 1),
    "parallel scan": (above("Parallel Seq Scan"), 2),
    "search by an array": (r"Index Cond: \([^\n]* = ANY \(", 1),
    "above a nested loop": (above(r"Nested Loop\n"), 3),
    "above a hash join": (above(r"Hash Join\n"), 2),
    "semi join by pairs": (above("Nested Loop Semi Join"), 2),
    "anti join by pairs": (above("Nested Loop Anti Join"), 2),
    "output program": ("Output Program:", 20),
    "aggregate": (r"\(ConfideAggregate\)", 20),
    "groups": (r"\(ConfideAggregate\)[^\n]*\n +Group Key", 20),
    "partial aggregate": (r"\(ConfidePartialAggregate\)", 1),
    "groups of workers": (r"Group Key[^\n]*\n +(Keeper[^\n]*\n +)*->  Gather", 1),
    "groups by conditions": (rf"\(ConfideAggregate\)[^\n]*\n +Group Key[^\n]* {COMPARISON} ", 2),
    "filter of an aggregate": ("Keeper Filter:", 5),
    "filter of groups": ("Keeper Group Filter:", 2),
    "sort": (r"\(ConfideSort\)", 20),
    "hash join by tokens": (tokens(r"Hash (\w+ )*Join"), 10),
    "hash aggregate by tokens": (tokens("HashAggregate"), 2),
    "set operation by tokens": (r"HashSetOp [^\n]*\n +->  Custom Scan \(ConfideTokens\)", 1),
    "hashed subplan by tokens": (r"SubPlan \d+\n +->  Custom Scan \(ConfideTokens\)", 5),
    "comparison with a subquery": (r"Protected Filter:[^\n]*SubPlan", 3),
    "result that is not told": ("Result: not told", 1),
    "top n": (r"Limit[^\n]*\n +->  Custom Scan \(ConfideSort\)", 5),
}
IN_WORKERS = {name: NODES[name] for name in ("parallel scan", "partial aggregate")}
# What mixes plain and protected columns may find no operator or common type: a clear error, and
# a known limit.
REFUSED = ("0A000", "42501", "42725", "42804", "42846", "42883")
# Under the same codes: what a batched node has asked the keeper for is wrong.
BROKEN = re.compile("no such program|no such aggregation|program does not fit")


class Side:
    """A connection with its tables, and switches to set before each query."""

    def __init__(self, name: str, connect, schema: str, switches: dict[str, str]):
        self.name, self.connect, self.schema, self.switches = name, connect, schema, switches
        self.connection = None
        self.open()

    def open(self) -> None:
        if self.connection is not None:
            self.connection.close()

        # After a crash PostgreSQL needs a while.
        def connected():
            with suppress(psycopg.OperationalError):
                return self.connect()

        self.connection = until(connected, "PostgreSQL serves")
        self.planned: tuple | None = None
        self.connection.execute(f"SET statement_timeout = '{LIMIT}'")
        self.connection.execute(f"SET search_path = {self.schema}")
        if WORKERS:
            self.connection.execute(f"SET max_parallel_workers_per_gather = {WORKERS}")
        if FORCED:
            self.connection.execute("SET force_parallel_mode = on")
        for switch, value in self.switches.items():
            self.connection.execute(f"SET {switch} = {value}")

    def planner(self, off: list[str], costs: str) -> None:
        if (off, costs) != self.planned:
            values = [f"SET {s} = {'off' if s in off else 'on'}" for s in PLANNER]
            values += [f"RESET {s}" for changed in COSTS.values() for s in changed]
            values += [f"SET {s} = {value}" for s, value in COSTS[costs].items()]
            self.connection.execute("; ".join(values))
            self.planned = off, costs

    def nodes(self, query: Query) -> set[str]:
        """Batched nodes in the query's plan. Cursors have none."""
        if query.how == "cursor":
            return set()
        plan = run(self.connection, f"EXPLAIN (COSTS off) {query.tree.text()}")
        text = "\n".join(line for (line,) in plan.rows)
        return {name for name, (shown, _) in NODES.items() if re.search(shown, text)}

    def outcome(self, query: Query, text: str) -> Outcome:
        try:
            return self.execute(query, text)
        except psycopg.OperationalError as error:
            self.open()
            return Outcome(sqlstate="lost", message=str(error))

    def execute(self, query: Query, text: str) -> Outcome:
        match query.how:
            case "prepared":
                try:
                    cursor = self.connection.execute(text, prepare=True)
                except psycopg.Error as error:
                    state = error.sqlstate or "lost"
                    return Outcome(sqlstate=state, message=str(error).splitlines()[0])
                result = cursor.pgresult
                columns = range(result.nfields)
                return Outcome(
                    [result.ftype(c) for c in columns],
                    [tuple(result.get_value(r, c) for c in columns) for r in range(result.ntuples)],
                )
            case "cursor":
                self.connection.execute("BEGIN")
                outcome = run(self.connection, f"DECLARE c CURSOR FOR {text}")
                if outcome.sqlstate is None:
                    outcome = run(self.connection, "FETCH 2 FROM c")
                if outcome.sqlstate is None:
                    rest = run(self.connection, "FETCH ALL FROM c")
                    outcome = Outcome(
                        outcome.types, outcome.rows + rest.rows, rest.sqlstate, rest.message
                    )
                self.connection.execute("ROLLBACK")
                return outcome
            case "rollback":
                self.connection.execute("BEGIN")
                outcome = run(self.connection, text)
                self.connection.execute("ROLLBACK")
                return outcome
        return run(self.connection, text)


# Which of equal rows stands for all of them is for the plan to choose.
MERGES = re.compile(r"GROUP BY|DISTINCT|UNION|INTERSECT|EXCEPT")
NUMERIC = 1700


def without_scale(outcome: Outcome) -> Outcome:
    """Equal numerics as one: 0.00 and 0.0000 are one group, which shows the one or the other."""

    def one(value: str | bytes | None, oid: int) -> str | bytes | None:
        if value is None or oid != NUMERIC:
            return value
        number = value if isinstance(value, str) else value.decode()
        return number.rstrip("0").removesuffix(".") if "." in number else number

    rows = [tuple(map(one, row, outcome.types)) for row in outcome.rows]
    return replace(outcome, rows=rows)


def refused(outcome: Outcome) -> bool:
    return outcome.sqlstate in REFUSED and not BROKEN.search(outcome.message)


def difference(one: Outcome, other: Outcome, ordered: bool) -> str | None:
    """What differs, in a line."""
    if refused(other):
        return None
    if one.sqlstate != other.sqlstate:
        return f"SQLSTATE {one.sqlstate} {one.message} / {other.sqlstate} {other.message}"
    if one.sqlstate is not None:
        return None
    if one.types != other.types:
        return f"types {one.types} / {other.types}"
    rows = (one.rows, other.rows)
    if not ordered:
        rows = tuple(sorted(r, key=str) for r in rows)
    if rows[0] != rows[1]:
        pairs = zip(rows[0], rows[1], strict=False)
        first = next((pair for pair in pairs if pair[0] != pair[1]), "more")
        return f"{len(rows[0])} rows / {len(rows[1])} rows, first difference {first}"
    return None


def compare(sides: list[Side], query: Query, way: tuple, tree: Node | None = None):
    """The first side that differs from the first one, or whether it was refused."""
    text = (tree or query.tree).text()
    for side in sides:
        side.planner(*way)
    expected = sides[0].outcome(query, text)
    for side in sides[1:]:
        found = side.outcome(query, text)
        ordered = query.ordered and "ORDER BY" in text
        shown = (expected, found)
        if MERGES.search(text):
            shown = tuple(map(without_scale, shown))
        if told := difference(*shown, ordered):
            return f"{side.name}: {told}", expected
        if refused(found):
            return None, found
    return None, expected


def make_tables(connection, schema: str, made, protected: bool) -> None:
    connection.execute(f"SET search_path = {schema}")
    for table in made:
        connection.execute(table.ddl() if protected else plain(table.ddl()))
        with connection.cursor().copy(f"COPY {table.name} FROM STDIN") as copy:
            for row in table.rows:
                copy.write_row(row)
        for column in table.indexes:
            connection.execute(f"CREATE INDEX ON {table.name} ({column})")
    connection.execute("SET default_statistics_target = 10")
    connection.execute("ANALYZE " + ", ".join(table.name for table in made))
    connection.execute("RESET default_statistics_target")


def failure(sides, query, way, told, place, made) -> str:
    kind = told.split(":")[0]

    def fails(tree: Node) -> bool:
        again, _ = compare(sides, query, way, tree)
        return again is not None and again.split(":")[0] == kind

    tree = shrunk(query.tree, fails)
    told, _ = compare(sides, query, way, tree)
    lines = [f"seed {SEED}, query {place} ({query.how}), off and costs {way}", f"  {told}"]
    text = tree.text()
    lines += [f"  {text}"]
    for table in made:
        if table.name + " " in text:
            lines.append(f"  {table.ddl()}; {len(table.rows)} rows, indexes {table.indexes}")
    return "\n".join(lines)


def batches(dba) -> list[str]:
    found = dba.execute("SELECT name FROM pg_settings WHERE name LIKE 'confide.enable\\_%'")
    return [name for (name,) in found]


@pytest.mark.timeout(24 * 3600)
def test_random_queries(stack, report):
    wanted = QUERIES or SHORT
    counts, nodes, failures = Counter(), Counter(), []
    began = time.monotonic()
    with stack.connect_dba() as dba:
        switches = batches(dba)
    for number in range(-(-wanted // PER_SCHEMA)):
        if ONLY and int(ONLY.split("/")[0]) != number:
            continue
        made = tables(random.Random(f"{SEED}/{number}"))
        schema = {"plain": f"fuzz_plain_{number}", "protected": f"fuzz_{number}"}
        with stack.connect_dba() as dba, stack.connect_app() as app:
            for name in schema.values():
                dba.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
                dba.execute(f"CREATE SCHEMA {name} AUTHORIZATION app")
            make_tables(app, schema["plain"], made, False)
            make_tables(app, schema["protected"], made, True)
        every = {
            "plain": (schema["plain"], {}),
            "row at a time": (schema["protected"], dict.fromkeys(switches, "off")),
        }
        if switches:
            every["batches"] = (schema["protected"], dict.fromkeys(switches, "on"))
        sides = [Side(name, stack.connect_app, s, v) for name, (s, v) in every.items()]
        for place in range(min(PER_SCHEMA, wanted - number * PER_SCHEMA)):
            if "/" in ONLY and int(ONLY.split("/")[1]) != place:
                continue
            rng = random.Random(f"{SEED}/{number}/{place}")
            query = Generator(made, rng).make()
            off = rng.sample(PLANNER, rng.choice([0, 0, 1, 2, 3]))
            costs = rng.choices(list(COSTS), weights=WEIGHTS)[0]
            off = FOR_PAIRS if costs == "pairs" else off
            told, expected = compare(sides, query, (off, costs))
            nodes.update(sides[-1].nodes(query))
            counts[expected.sqlstate or "rows"] += 1
            counts["not empty"] += len(expected.rows) > 0
            if told:
                print(f"seed {SEED}, query {number}/{place}: {told}\n  {query.tree.text()}")
                failures.append(
                    failure(sides, query, (off, costs), told, f"{number}/{place}", made)
                )
                print(failures[-1], flush=True)
        for side in sides:
            side.connection.close()
        with stack.connect_dba() as dba:
            dba.execute("SET client_min_messages = warning")
            for name in schema.values():
                dba.execute(f"DROP SCHEMA {name} CASCADE")
        if QUERIES:
            done = min(wanted, (number + 1) * PER_SCHEMA)
            seconds = time.monotonic() - began
            print(f"{done} queries, {seconds:.0f} s, {len(failures)} failures", flush=True)
        if len(failures) >= 20:
            break
    report(f"random queries: seed {SEED}, sides {list(every)}, {dict(counts)}")
    report(f"batched nodes in their plans: {dict(nodes)}")
    assert not failures, f"{len(failures)} queries differ\n" + "\n".join(failures)
    if not ONLY:
        untested = sum(counts[state] for state in REFUSED)
        assert untested < wanted * 0.05, "so much is refused that little is tested"
        assert counts["not empty"] > wanted * 0.3
        expected = {"": NODES, "0": {}}.get(WORKERS, IN_WORKERS)
        rare = {
            n: nodes[n] for n, (_, least) in expected.items() if nodes[n] < least * wanted // 1000
        }
        assert not rare, f"batched nodes that few queries reached: {rare}"
