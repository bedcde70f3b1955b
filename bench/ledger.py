"""`make bench-ledger`: what ledger tables cost, beside plaintext and beside Confide without them.

One table of claims about works of art (2 kB of text in a row, as SecuDB's third workload has), as
five kinds: plain, the same through the proxy, a plain ledger, protected, a protected ledger. Rounds
alternate between kinds: INSERT, UPDATE and SELECT by key, each a transaction; INSERT within
transactions, and of several rows; SELECT of SIGNED rows without and with signature. Then TPC-C,
with all nine tables as ledger tables and without, plain and with protected personal columns: TURNS
alternations of the kinds, each in another order, and their medians. Turns are short, so that
whatever else slows the machine down meets all kinds alike, but long enough that little of them is
what comes first after another kind, or on new connections. Then a log of each of SIZES versions:
how long its table takes to be verified, whole and from a checkpoint, and how many bytes a signed
result of SIGNED rows, one cell of it and a version's proof have. Last, proofs of logs of up to a
hundred million leaves, which are simulated (all leaves are the same): bytes, and microseconds to
verify.

The server is one that has run for a while: all of its shared buffers have been used, and it uses
files of its WAL again. A claim's text is so long that a row is compressed with and without a
ledger's columns; with less of it only a ledger's were.

Processor: what PostgreSQL, keeper and proxy used for one of them, which depends less on what else
the machine does than the time. The keeper's checkpoint after a turn of TPC-C is counted by itself.
Waits: how many answers of the keeper a statement waited for. They do not depend on the machine.
What a ledger costs is compared with the same way to the server: the proxy or the client library.

Parameters: SETTINGS; ROWS, ROUNDS, STATEMENTS (in a round), SIGNED, SIZES; CLIENTS, TURNS, SECONDS,
W of TPC-C.
"""

import json
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import fmean

import plots
import processor
import servers
from driver import driver
from report import Report, median, parameter, parameters, progress, ratio, table

ROWS = parameter("ROWS", 20_000)
ROUNDS = parameter("ROUNDS", 30)
STATEMENTS = parameter("STATEMENTS", 200)
# INSERTs of a transaction, and rows of an INSERT, where they are several.
BLOCK = 50
TOGETHER = 10
SIGNED = parameter("SIGNED", 100)
CLIENTS = parameter("CLIENTS", 4)
TURNS = parameter("TURNS", 4)
SECONDS = parameter("SECONDS", 30.0)
WAREHOUSES = parameter("W", 1)
SIZES = [int(size) for size in parameters("SIZES", "1000,10000,100000")]
KINDS = {
    "plain": ("", ""),
    "plain by client": ("", ""),
    "plain ledger": ("", "WITH (confide.ledger = on)"),
    "protected": ("enc_", ""),
    "protected ledger": ("enc_", "WITH (confide.ledger = on)"),
}
# Which kind each is compared with.
BASES = {
    "plain ledger": "plain by client",
    "protected": "plain",
    "protected ledger": "protected",
}
CLAIM = "On this day the owner claims the work, its frame and all rights to show it. " * 27


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


def inserts(name: str, first: int, statements: int, rows: int = 1) -> list[tuple[str, tuple]]:
    """INSERTs of so many rows each, from this key on."""
    values = ", ".join(["(%s, %s, %s, %s)"] * rows)
    insert = f"INSERT INTO {name} (id, artist, price, claim) VALUES {values}"
    starts = range(first, first + statements * rows, rows)
    row = ("artist", 5, CLAIM)
    return [(insert, sum(((n, *row) for n in range(at, at + rows)), ())) for at in starts]


def statements(name: str, turn: int) -> dict[str, tuple[list[tuple[str, tuple]], int]]:
    """Statements by what they do, and of how many the time is."""
    keys_of_each = max(STATEMENTS, TOGETHER)
    first = ROWS + turn * 3 * keys_of_each + 1
    keys = [(n * 7919) % ROWS + 1 for n in range(turn, turn + STATEMENTS)]
    update = f"UPDATE {name} SET price = %s WHERE id = %s"
    select = f"SELECT artist, claim FROM {name} WHERE id = %s"
    single = inserts(name, first + keys_of_each, STATEMENTS)
    blocks = []
    for at in range(0, STATEMENTS, BLOCK):
        blocks += [("BEGIN", ()), *single[at : at + BLOCK], ("COMMIT", ())]
    many = inserts(name, first + 2 * keys_of_each, keys_of_each // TOGETHER, TOGETHER)
    return {
        "INSERT": (inserts(name, first, STATEMENTS), STATEMENTS),
        f"INSERT, {BLOCK} a transaction": (blocks, STATEMENTS),
        f"INSERT of {TOGETHER} rows, for a row": (many, len(many) * TOGETHER),
        "UPDATE": ([(update, (9, key)) for key in keys], STATEMENTS),
        "SELECT": ([(select, (key,)) for key in keys], STATEMENTS),
    }


def selects(name: str, turn: int) -> dict[str, str]:
    first = (turn * 1013) % max(1, ROWS - SIGNED) + 1
    query = (
        f"SELECT id, artist, price FROM {name} WHERE id BETWEEN {first} AND {first + SIGNED - 1}"
    )
    return {f"SELECT {SIGNED} rows": query, "the same, signed": f"{query} WITH SIGNATURE 'bench'"}


def timed(connection, work: list[tuple[str, tuple]], count: int) -> float:
    """Microseconds for one of so many."""
    begin = time.perf_counter()
    for statement, values in work:
        connection.execute(statement, values or None)
    return (time.perf_counter() - begin) / count * 1e6


class Runs:
    """Microseconds by operation and kind: of the clock, and of processors."""

    def __init__(self, stack):
        self.stack = stack
        self.clock: dict = {}
        self.processor: dict = {}

    def add(self, what: str, kind: str, connection, work: list, count: int) -> None:
        before = processor.of_stack(self.stack, self.stack.proxy_pid())
        took = timed(connection, work, count)
        spent = processor.of_stack(self.stack, self.stack.proxy_pid()) - before
        self.clock.setdefault(what, {}).setdefault(kind, []).append(took)
        self.processor.setdefault(what, {}).setdefault(kind, []).append(spent / count * 1e6)


def rounds(stack, app, direct) -> Runs:
    runs = Runs(stack)
    kinds = list(KINDS)
    for turn in range(ROUNDS):
        # The order changes, so that none is always behind the same one.
        for kind in kinds[turn % len(kinds) :] + kinds[: turn % len(kinds)]:
            name = name_of(kind)
            connection = direct if kind == "plain" else app
            for what, (work, count) in statements(name, turn).items():
                runs.add(what, kind, connection, work, count)
            for what, query in selects(name, turn).items():
                if kind == "plain" and what.endswith("signed"):
                    continue
                count = max(1, STATEMENTS // 5)
                runs.add(what, kind, connection, [(query, ())] * count, count)
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


def waits(stack) -> dict:
    """Answers that a statement of each kind waits for."""
    found: dict = {}
    with servers.connect(stack.dba_url) as dba:
        servers.stat_keeper(dba)  # opens this connection's own channel
        channels = int(servers.stat_keeper(dba)["channels"])
        for kind in KINDS:
            for what, (work, count) in statements(name_of(kind), ROUNDS).items():
                before = servers.answered(dba, channels)
                with servers.connect(stack.app_url) as app:
                    timed(app, work, count)
                after = servers.answered(dba, channels)
                found.setdefault(what, {})[kind] = (after - before) / count
    return found


class TpcC:
    """TPC-C on a schema of each kind."""

    def __init__(self, stack, dba):
        self.stack, self.dba = stack, dba

    def run(self, kind: str, *arguments) -> dict:
        path = "direct" if kind == "plain" else "library"
        schema = f"tpcc_{name_of(kind)}"
        return driver(self.stack, path, schema, *arguments, "--warehouses", WAREHOUSES)

    def load(self, kind: str) -> None:
        enc, option = KINDS[kind]
        policy = "customer" if enc else "plain"
        self.dba.execute(f"CREATE SCHEMA tpcc_{name_of(kind)} AUTHORIZATION app")
        self.run(kind, "tpcc-load", "--policy", policy, *(["--ledger"] if option else []))
        progress(f"loaded TPC-C, {kind}")

    def turn(self, kind: str, seed: int) -> tuple[float, float, float]:
        """Transactions a second; milliseconds of processors for one, and for the keeper's
        checkpoint of what it has changed."""
        before = processor.of_stack_alone(self.stack, self.dba)
        found = self.run(kind, "tpcc", "--clients", CLIENTS, "--seconds", SECONDS, "--seed", seed)
        spent = processor.of_stack_alone(self.stack, self.dba) - before
        self.dba.execute("SELECT confide.checkpoint()")
        kept = processor.of_stack_alone(self.stack, self.dba) - before - spent
        return found["per_second"], spent / found["done"] * 1e3, kept / found["done"] * 1e3


def tpcc(stack) -> dict:
    """Transactions per second and processor time by kind, kinds alternating."""
    runs: dict = {kind: [] for kind in KINDS}
    kinds = list(KINDS)
    with servers.connect(stack.dba_url) as dba:
        tables = TpcC(stack, dba)
        for kind in kinds:
            tables.load(kind)
        servers.recycle_wal(stack)
        for turn in range(TURNS):
            for kind in kinds[turn % len(kinds) :] + kinds[: turn % len(kinds)]:
                runs[kind].append(tables.turn(kind, turn + 1))
            progress(f"TPC-C, turn {turn + 1} of {TURNS}")
    entry, spent, kept = (
        {kind: median([run[n] for run in found]) for kind, found in runs.items()} for n in range(3)
    )
    entry["of"] = {kind: ratio(entry[kind], entry[base]) for kind, base in BASES.items()}
    spent["of"] = {kind: ratio(spent[base], spent[kind]) for kind, base in BASES.items()}
    progress(f"TPC-C: {entry['of']}, by processor time: {spent['of']}")
    return entry | {"processor": spent, "checkpoint": kept, "runs": runs}


def proofs() -> list[dict]:
    """Bytes of proofs, and microseconds to verify them, by the number of simulated leaves."""
    command = ["cargo", "run", "--release", "-q", "-p", "ledger", "--example", "proofs"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def compared(runs: Runs) -> dict:
    def middles(found: dict, middle) -> dict:
        entry = {kind: middle(times) for kind, times in found.items()}
        times = {kind: ratio(entry.get(kind), entry.get(base)) for kind, base in BASES.items()}
        return entry | {"times": times}

    # Processors are counted in steps as long as a round, which means even out.
    return {
        what: middles(kinds, median)
        | {"processor": middles(runs.processor[what], fmean), "runs": kinds}
        for what, kinds in runs.clock.items()
    }


def measured(stack, results: dict) -> None:
    with servers.connect(stack.dba_url) as dba:
        dba.execute("GRANT ALL ON SCHEMA public TO app")
    with servers.connect(stack.app_url) as app, tempfile.TemporaryDirectory() as folder:
        for kind, (enc, option) in KINDS.items():
            make(app, name_of(kind), enc, option, ROWS, CLAIM)
            progress(f"loaded {kind}")
        servers.recycle_wal(stack)
        with servers.connect(servers.direct_url(stack)) as direct:
            results["cells"] = compared(rounds(stack, app, direct))
        results["waits"] = waits(stack)
        verifier = Verifier(stack, Path(folder))
        results["logs"] = {str(size): sizes(app, verifier, size) for size in SIZES}
    # Other clients' connections are closed.
    results["tpcc"] = tpcc(stack)


def main() -> None:
    given = {"ROWS": ROWS, "ROUNDS": ROUNDS, "STATEMENTS": STATEMENTS, "SIGNED": SIGNED}
    given |= {"SIZES": SIZES, "CLIENTS": CLIENTS, "W": WAREHOUSES}
    given |= {"TURNS": TURNS, "SECONDS": SECONDS}
    given |= servers.SETTINGS | servers.RECYCLED
    report = Report(f"ledger{servers.SUFFIX}", given)
    with servers.running(**servers.RECYCLED) as stack:
        servers.touch_buffers(stack)
        measured(stack, report.results)
    report.results["proofs"] = proofs()
    show(report)
    report.write()


def show(report: Report) -> None:
    cells, logs = report.results["cells"], report.results["logs"]
    ratios = [f"{kind} / {base}" for kind, base in BASES.items()]
    print()
    lines = {"microseconds": cells.items()}
    lines["of processors"] = [(what, cell["processor"]) for what, cell in cells.items()]
    for head, found in lines.items():
        rows = [
            [what, *(cell.get(kind) for kind in KINDS), *cell["times"].values()]
            for what, cell in found
        ]
        table([head, *KINDS, *ratios], rows)
        print()
    table(
        ["versions", *next(iter(logs.values()))],
        [[size, *found.values()] for size, found in logs.items()],
    )
    print()
    found = report.results["tpcc"]
    spent = found["processor"]
    rows = [["per second", *(found[kind] for kind in KINDS), *found["of"].values()]]
    rows.append(["processor ms", *(spent[kind] for kind in KINDS), *spent["of"].values()])
    # Not in these: while statements are measured, neither PostgreSQL nor the keeper makes one.
    kept = [found["checkpoint"][kind] for kind in KINDS]
    rows.append(["and of its checkpoint", *kept, *[None] * len(BASES)])
    table([f"TPC-C, {CLIENTS} clients", *KINDS, *ratios], rows)
    print()
    answers = report.results["waits"]
    table(["waits", *KINDS], [[what, *kinds.values()] for what, kinds in answers.items()])
    print()
    simulated = report.results["proofs"]
    table(list(simulated[0]), [list(line.values()) for line in simulated])
    series = {kind: [cell["times"][kind] or 0 for cell in cells.values()] for kind in BASES}
    title = f"Ledger tables, {ROWS:,} rows of 2 kB"
    plots.bars(report.plot(), title, list(cells), series, "times the kind without it", goal=1)


if __name__ == "__main__":
    main()
