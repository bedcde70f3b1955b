"""`make bench-keys`: what orders, joins and finds rows by a protected key, beside its plain twin.

A table of ROWS rows in random order, once plain and once protected but for two columns: building
indexes, sorting the whole table by one or two columns (the last row only is fetched, so that
envelopes of results do not count), joining it with itself by a column, DISTINCT, NOT IN, a list of
LIST keys, and lookups of single rows by the protected primary key with the client library, one
client.

Parameters: ROWS, ROUNDS, SECONDS (of lookups).
"""

import random
import time

import plots
import servers
from driver import driver
from report import Report, median, parameter, progress, ratio, table

ROWS = parameter("ROWS", 1_000_000)
ROUNDS = parameter("ROUNDS", 3)
SECONDS = parameter("SECONDS", 2.0)
SIDES = {"plain": "", "protected": "enc_"}
PATHS = {"plain": "direct", "protected": "library"}
LIST = 1000


def listed() -> str:
    """Keys in random order, half of them in the table."""
    chance = random.Random(2)
    return ", ".join(str(chance.randrange(1, 2 * ROWS)) for _ in range(LIST))


# Title: statement, and what makes room for it to run again.
STATEMENTS = {
    "CREATE INDEX, one column": ("CREATE INDEX made ON sbtest1 (k)", "DROP INDEX made"),
    "CREATE INDEX, two columns": ("CREATE INDEX made ON sbtest1 (pad, k)", "DROP INDEX made"),
    "CREATE INDEX, behind a plain int": ("CREATE INDEX made ON sbtest1 (i, k)", "DROP INDEX made"),
    "CREATE INDEX, behind a plain text": ("CREATE INDEX made ON sbtest1 (t, k)", "DROP INDEX made"),
    "CREATE INDEX, before a plain int": (
        "CREATE INDEX made ON sbtest1 (pad, i)",
        "DROP INDEX made",
    ),
    "ORDER BY": (f"SELECT id FROM sbtest1 ORDER BY k OFFSET {ROWS - 1}", "SELECT 1"),
    "ORDER BY, a plain text first": (
        f"SELECT id FROM sbtest1 ORDER BY t, k OFFSET {ROWS - 1}",
        "SELECT 1",
    ),
    "JOIN, integers": ("SELECT count(*) FROM sbtest1 a JOIN sbtest1 b ON a.k = b.k", "SELECT 1"),
    "JOIN, text": ("SELECT count(*) FROM sbtest1 a JOIN sbtest1 b ON a.c = b.c", "SELECT 1"),
    "NOT IN": (
        "SELECT count(*) FROM sbtest1 WHERE k NOT IN (SELECT id FROM sbtest1 WHERE i < 9)",
        "SELECT 1",
    ),
    "IN, a list": (f"SELECT count(i) FROM sbtest1 WHERE id IN ({listed()})", "SELECT 1"),
    "DISTINCT": ("SELECT count(*) FROM (SELECT DISTINCT c FROM sbtest1) x", "SELECT 1"),
}
LOOKUP = "lookups by key, a second"


def make_tables(stack) -> None:
    chance = random.Random(1)
    ids, keys = list(range(1, ROWS + 1)), list(range(1, ROWS + 1))
    chance.shuffle(ids)
    chance.shuffle(keys)
    lines = "".join(
        f"{i}\t{k}\tc{i}\tp{k % 100}\t{k % 97}\tt{k % 97}\n" for i, k in zip(ids, keys, strict=True)
    )
    for side, enc in SIDES.items():
        with servers.connect(stack.app_url) as app:
            app.execute(f"CREATE SCHEMA {side}")
            app.execute(f"SET search_path = {side}")
            app.execute(
                f"CREATE TABLE sbtest1 (id {enc}int4 PRIMARY KEY, k {enc}int4 NOT NULL,"
                f" c {enc}text NOT NULL, pad {enc}text NOT NULL, i int, t text)"
            )
            with app.cursor().copy("COPY sbtest1 FROM STDIN") as copy:
                copy.write(lines)
            app.execute("VACUUM ANALYZE sbtest1")
        progress(f"loaded {side}")


def timed(stack, side: str, statement: str, undo: str) -> float:
    url = stack.app_url if side == "protected" else servers.direct_url(stack)
    with servers.connect(url, side) as connection:
        begin = time.monotonic()
        connection.execute(statement)
        took = time.monotonic() - begin
        connection.execute(undo)
    return took


def lookups(stack, side: str, turn: int) -> float:
    figures = driver(
        *(stack, PATHS[side], side, "sysbench", "--workload", "point-select"),
        *("--distribution", "uniform", "--rows", ROWS, "--clients", 1),
        *("--seconds", SECONDS, "--seed", turn + 1),
    )
    return figures["per_second"]


def measure(name: str, once) -> dict:
    """Both sides in alternation; how many times plaintext's time."""
    runs = {side: [] for side in SIDES}
    for turn in range(ROUNDS):
        for side, found in runs.items():
            found.append(once(side, turn))
    entry = {side: median(found) for side, found in runs.items()} | {"runs": runs}
    more_is_better = name == LOOKUP
    sides = ("plain", "protected") if more_is_better else ("protected", "plain")
    entry["times"] = ratio(*(entry[side] for side in sides))
    progress(f"{name}: {entry['times']:.2f} times plaintext's time")
    return entry


def main() -> None:
    given = {"ROWS": ROWS, "ROUNDS": ROUNDS, "SECONDS": SECONDS, **servers.SETTINGS}
    report = Report("keys", given)
    with servers.running() as stack:
        make_tables(stack)
        cells = {
            name: measure(name, lambda side, _, s=statement, u=undo: timed(stack, side, s, u))
            for name, (statement, undo) in STATEMENTS.items()
        }
        cells[LOOKUP] = measure(LOOKUP, lambda side, turn: lookups(stack, side, turn))
    report.results["cells"] = cells
    head = ["seconds, or a second", *SIDES, "times plaintext's time"]
    print()
    table(head, [[name, *(c[s] for s in SIDES), c["times"]] for name, c in cells.items()])
    title = f"Keys, {ROWS:,} rows"
    series = {"protected": [c["times"] for c in cells.values()]}
    plots.bars(report.plot(), title, list(cells), series, "times plaintext's time", goal=1)
    report.write()


if __name__ == "__main__":
    main()
