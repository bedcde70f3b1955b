"""`make bench-ledger`: what ledger tables cost, beside plaintext and beside Confide without them.

One table of claims about works of art (2 kB of text in a row, as SecuDB's third workload has), as
four kinds: plain, a plain ledger, protected, a protected ledger. Rounds alternate between kinds:
INSERT, UPDATE and SELECT by key, each a transaction; SELECT of SIGNED rows without and with
signature. Then a log of each of SIZES versions: how long its table takes to be verified, whole and
from a checkpoint, and how many bytes a signed result of SIGNED rows, one cell of it and a version's
proof have.

Not measured: TPC-C with immutable tables, logs of more than the database holds.

Parameters: ROWS, ROUNDS, STATEMENTS (in a round), SIGNED, SIZES.
"""

import subprocess
import tempfile
import time
from pathlib import Path

import plots
import servers
from report import Report, median, parameter, parameters, progress, ratio, table

ROWS = parameter("ROWS", 20_000)
ROUNDS = parameter("ROUNDS", 5)
STATEMENTS = parameter("STATEMENTS", 500)
SIGNED = parameter("SIGNED", 100)
SIZES = [int(size) for size in parameters("SIZES", "1000,10000,100000")]
KINDS = {
    "plain": ("", ""),
    "plain ledger": ("", "WITH (confide.ledger = on)"),
    "protected": ("enc_", ""),
    "protected ledger": ("enc_", "WITH (confide.ledger = on)"),
}
# Which kind each is compared with.
BASES = {"plain ledger": "plain", "protected": "plain", "protected ledger": "protected"}
CLAIM = "On this day the owner claims the work, its frame and all rights to show it. " * 26


def name_of(kind: str) -> str:
    return kind.replace(" ", "_")


def make(app, name: str, enc: str, option: str, rows: int, claim: str) -> None:
    app.execute(
        f"CREATE TABLE {name} (id int PRIMARY KEY, artist {enc}text, price {enc}numeric(12,2),"
        f" claim {enc}text) {option}"
    )
    # By way of COPY the text goes in as a client's values do.
    with app.cursor().copy(f"COPY {name} (id, artist, price, claim) FROM STDIN") as copy:
        for n in range(1, rows + 1):
            copy.write_row((n, f"artist {n % 97}", n % 1000, claim))
    app.execute(f"VACUUM ANALYZE {name}")


def statements(name: str, turn: int) -> dict[str, list[tuple[str, tuple]]]:
    first = ROWS + turn * STATEMENTS + 1
    keys = [(n * 7919) % ROWS + 1 for n in range(turn, turn + STATEMENTS)]
    insert = f"INSERT INTO {name} (id, artist, price, claim) VALUES (%s, %s, %s, %s)"
    inserted = [(n, "artist", 5, CLAIM) for n in range(first, first + STATEMENTS)]
    return {
        "INSERT": [(insert, row) for row in inserted],
        "UPDATE": [(f"UPDATE {name} SET price = %s WHERE id = %s", (9, key)) for key in keys],
        "SELECT": [(f"SELECT artist, claim FROM {name} WHERE id = %s", (key,)) for key in keys],
    }


def selects(name: str, turn: int) -> dict[str, str]:
    first = (turn * 1013) % max(1, ROWS - SIGNED) + 1
    query = (
        f"SELECT id, artist, price FROM {name} WHERE id BETWEEN {first} AND {first + SIGNED - 1}"
    )
    return {f"SELECT {SIGNED} rows": query, "the same, signed": f"{query} WITH SIGNATURE 'bench'"}


def timed(connection, work: list[tuple[str, tuple]]) -> float:
    """Microseconds for one of them."""
    begin = time.perf_counter()
    for statement, values in work:
        connection.execute(statement, values or None)
    return (time.perf_counter() - begin) / len(work) * 1e6


def rounds(app, direct) -> dict:
    """Microseconds by operation and kind."""
    runs: dict = {}
    for turn in range(ROUNDS):
        for kind in KINDS:
            name = name_of(kind)
            connection = direct if kind == "plain" else app
            for what, work in statements(name, turn).items():
                runs.setdefault(what, {}).setdefault(kind, []).append(timed(connection, work))
            for what, query in selects(name, turn).items():
                if kind == "plain" and what.endswith("signed"):
                    continue
                took = timed(connection, [(query, ())] * max(1, STATEMENTS // SIGNED))
                runs.setdefault(what, {}).setdefault(kind, []).append(took)
        progress(f"round {turn + 1} of {ROUNDS}")
    return runs


class Verifier:
    """`confide verify`, on the stack's keeper."""

    def __init__(self, stack, folder: Path):
        self.stack, self.folder = stack, folder
        self.binary = stack.data.parent / "bin" / "confide"
        key = self.run("pubkey", "--signing", stack.data.parent / "keeper" / "keeper.key")
        self.key = key.strip()

    def run(self, *arguments) -> str:
        command = [self.binary, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def table(self, name: str, *more) -> float:
        """Seconds."""
        begin = time.monotonic()
        at = ("--dbname", self.stack.app_url, "--key", self.key)
        self.run("verify", "table", f"public.{name}", *at, *more)
        return time.monotonic() - begin

    def result(self, text: str, *more) -> str:
        file = self.folder / "result.json"
        file.write_text(text)
        return self.run("verify", "result", file, "--key", self.key, *more)


def sizes(app, verifier: Verifier, size: int) -> dict:
    name = f"log_{size}"
    make(app, name, "", KINDS["plain ledger"][1], size, "a short claim")
    digest = verifier.folder / f"{name}.digest"
    # The second one finds everything in memory, as the third one does.
    verifier.table(name)
    whole = verifier.table(name, "--digest", digest)
    app.execute(f"UPDATE {name} SET price = 1 WHERE id <= {SIGNED}")
    new = verifier.table(name, "--digest", digest, "--new")
    query = f"SELECT id, artist, price FROM {name} WHERE id BETWEEN 1 AND {SIGNED}"
    text = app.execute(f"{query} WITH SIGNATURE").fetchone()[0]
    begin = time.perf_counter()
    verifier.result(text)
    offline = time.perf_counter() - begin
    cell = verifier.result(text, "--cell", "0,1")
    number = app.execute(f"SELECT max(sn) FROM {name}").fetchone()[0]
    proof = app.execute(f"SELECT confide.ledger_inclusion('{name}', {number})").fetchone()[0]
    progress(f"{size} versions")
    return {
        "verify, s": whole,
        "from a checkpoint, s": new,
        "signed result, bytes": len(text),
        "verify it, s": offline,
        "one cell, bytes": len(cell),
        "a proof, bytes": len(proof),
    }


def compared(runs: dict) -> dict:
    cells = {}
    for what, kinds in runs.items():
        entry = {kind: median(found) for kind, found in kinds.items()}
        entry["times"] = {
            kind: ratio(entry.get(kind), entry.get(base)) for kind, base in BASES.items()
        }
        cells[what] = entry | {"runs": kinds}
    return cells


def measured(stack) -> tuple[dict, dict]:
    with servers.connect(stack.dba_url) as dba:
        dba.execute("GRANT ALL ON SCHEMA public TO app")
    with servers.connect(stack.app_url) as app, tempfile.TemporaryDirectory() as folder:
        for kind, (enc, option) in KINDS.items():
            make(app, name_of(kind), enc, option, ROWS, CLAIM)
            progress(f"loaded {kind}")
        with servers.connect(servers.direct_url(stack)) as direct:
            cells = compared(rounds(app, direct))
        verifier = Verifier(stack, Path(folder))
        return cells, {str(size): sizes(app, verifier, size) for size in SIZES}


def main() -> None:
    given = {"ROWS": ROWS, "ROUNDS": ROUNDS, "STATEMENTS": STATEMENTS, "SIGNED": SIGNED}
    report = Report("ledger", given | {"SIZES": SIZES, **servers.SETTINGS})
    with servers.running() as stack:
        cells, logs = measured(stack)
    report.results["cells"] = cells
    report.results["logs"] = logs
    print()
    head = ["microseconds", *KINDS, *(f"{kind} / {base}" for kind, base in BASES.items())]
    table(
        head,
        [
            [what, *(cell.get(kind) for kind in KINDS), *cell["times"].values()]
            for what, cell in cells.items()
        ],
    )
    print()
    table(
        ["versions", *next(iter(logs.values()))],
        [[size, *found.values()] for size, found in logs.items()],
    )
    series = {kind: [cell["times"][kind] or 0 for cell in cells.values()] for kind in BASES}
    title = f"Ledger tables, {ROWS:,} rows of 2 kB"
    plots.bars(report.plot(), title, list(cells), series, "times the kind without it", goal=1)
    report.write()


if __name__ == "__main__":
    main()
