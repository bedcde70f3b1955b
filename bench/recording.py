"""`make bench-recording`: what recordings cost, how fast they replay and calls are anonymised.

Cost: TPC-H (all columns that are not keys are protected, through the proxy) and TPC-C (the client
library, one client) with a recording and without one, in alternation, first one, then the other.
Each turn has a ratio; medians and quartiles are of these. What a recording asks for once, when it
begins, is in the turns of TPC-H; before a turn of TPC-C transactions run for WARM seconds.
Replay: one recorded pass of the 22 queries, run again in a clone beside a replayer. Anonymised:
calls of several kinds, as the program does it (processes stay, paths are kept) and plainly (a new
solver and a new machine for each call).

Waits stand beside times: how often a session waited for an answer of the keeper. So does processor
time, which depends less on what else the machine does (`processor`): that of PostgreSQL and the
keeper without the thread that writes, and that of this thread. Each turn has a ratio of it, too.

Parameters: SF scale, ROUNDS of TPC-H, POLICIES, SECONDS, WARM and RUNS of TPC-C, CALLS to
anonymise; ONLY=tpch,tpcc,replay,anonymised (all).
"""

import os
import subprocess
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import plots
import processor
import servers
import tpcc
import tpch_data
from clones import Clone
from recordings import Recorder, statements
from report import (
    ROOT,
    Report,
    geometric_mean,
    median,
    parameter,
    parameters,
    progress,
    quartiles,
    ratio,
    shown,
    table,
)
from results import run

SCALE = parameter("SF", 0.1)
ROUNDS = parameter("ROUNDS", 16)
RUNS = parameter("RUNS", 9)
WARM = parameter("WARM", 1.0)
ONLY = parameters("ONLY", "tpch,replay,tpcc,anonymised")
CALLS = parameter("CALLS", 600)
SIDES = ("off", "on")
KINDS_OF_FIGURES = ("tpch", "replay", "tpcc", "anonymised")
tpcc.SECONDS = parameter("SECONDS", 2.0)


class Recordings:
    """Recordings of a stack, each with its own key."""

    def __init__(self, stack, folder: Path):
        self.stack, self.folder, self.count = stack, folder, 0

    def begin(self) -> Recorder:
        self.count += 1
        folder = self.folder / str(self.count)
        folder.mkdir()
        recorder = Recorder(self.stack, folder)
        recorder.start("--database", "app")
        return recorder


def told(shown: dict) -> dict:
    """What `confide record show` says of a recording, for a report."""
    events, bytes_ = int(shown["events"]), int(shown["bytes"])
    return {"events": events, "bytes": bytes_, "lost": int(shown["lost"])}


def passes(app) -> dict[int, tuple[float, int]]:
    """All queries once: seconds of each, and how often the session waited."""
    found = {}
    for number in tpch_data.QUERIES:
        before = int(servers.stat_keeper(app)["session.answered_total"])
        begun = time.monotonic()
        for part in tpch_data.query(number, SCALE):
            outcome = run(app, part)
            if outcome.sqlstate:
                raise RuntimeError(f"Q{number}: {outcome.message}")
        seconds = time.monotonic() - begun
        after = int(servers.stat_keeper(app)["session.answered_total"])
        found[number] = (seconds, after - before - 1)
    return found


def turns(count: int, run) -> tuple[dict[str, list], list[float]]:
    """Runs both sides in alternation. `run(side)` gives what it measured, first what took long; the
    ratios are of neighbours."""
    found = {side: [] for side in SIDES}
    for turn in range(count):
        for side in SIDES if turn % 2 else reversed(SIDES):
            found[side].append(run(side, turn))
    ratios = [on[0] / off[0] for on, off in zip(found["on"], found["off"], strict=True)]
    return found, ratios


def spent_of(runs: dict[str, list]) -> dict:
    """Processor time of both sides: medians, and the ratios of neighbours, for statements alone and
    together with the thread that writes."""
    found = {
        side: {name: median([r[name] for r in of]) for name in of[0]} for side, of in runs.items()
    }
    whole = {"statements": ("statements",), "all": ("statements", "writer")}
    for what, parts in whole.items():
        each = [
            sum(on[part] for part in parts) / sum(off[part] for part in parts)
            for on, off in zip(runs["on"], runs["off"], strict=True)
        ]
        found[what] = {"ratio": median(each), "quartiles": quartiles(each)}
    return found


def told_of(spent: dict) -> str:
    parts = [f"{w} {s['ratio']:.3f} {s['quartiles']}" for w, s in spent.items() if "ratio" in s]
    return ", ".join([*parts, f"{spent['off']} ms beside {spent['on']} ms"])


def tpch(stack, app, recordings: Recordings) -> dict:
    """Medians of each query with and without a recording; what a recording of a pass has."""
    passes(app)  # reads the tables
    spending, last = processor.Processor(stack), {}

    def one(side: str, _turn: int):
        recorder = recordings.begin() if side == "on" else None
        before = spending.read()
        timed = passes(app)
        if recorder:
            recorder.stop()
            last["recorder"] = recorder
        spent = spending.since(before)
        return sum(seconds for seconds, _ in timed.values()), timed, spent

    found, ratios = turns(ROUNDS, one)
    size = told(last["recorder"].shown())
    runs = {side: [timed for _, timed, _ in found[side]] for side in SIDES}
    queries = {}
    for number in tpch_data.QUERIES:
        entry = {side: median([r[number][0] for r in runs[side]]) for side in SIDES}
        each = [
            on[number][0] / off[number][0] for on, off in zip(runs["on"], runs["off"], strict=True)
        ]
        waits = {side: runs[side][-1][number][1] for side in SIDES}
        queries[f"Q{number}"] = {**entry, "ratio": median(each), "waits": waits}
    totals = {side: median([run[0] for run in found[side]]) for side in SIDES}
    spent = spent_of({side: [spent for _, _, spent in found[side]] for side in SIDES})
    count = sum(len(tpch_data.query(n, SCALE)) for n in tpch_data.QUERIES)
    means = geometric_mean([q["ratio"] for q in queries.values()])
    size |= {"statements": count, "bytes_per_statement": size["bytes"] / count}
    progress(
        f"TPC-H: {totals['off']:.3f} s without, {totals['on']:.3f} s with a recording,"
        f" ratio of a pass {median(ratios):.3f} {quartiles(ratios)},"
        f" mean of queries' ratios {means:.3f}, processor {told_of(spent)},"
        f" {size['bytes_per_statement']:.0f} bytes a statement"
    )
    return {
        **{"queries": queries, "totals": totals, "geometric_mean": means, "recording": size},
        **{"pass_ratio": median(ratios), "pass_quartiles": quartiles(ratios), "processor": spent},
    }


def tpcc_cost(stack, recordings: Recordings) -> dict:
    """Transactions a second of each policy, with and without a recording."""
    found = {}
    tpcc.load(stack, SimpleNamespace(results={}))
    for policy in tpcc.POLICIES:
        last, spending = {}, processor.Processor(stack)

        def one(side: str, turn: int, policy=policy, last=last, spending=spending):
            recorder = recordings.begin() if side == "on" else None
            seconds, tpcc.SECONDS = tpcc.SECONDS, WARM
            warm = tpcc.measure(stack, policy, "library", 1, 500 + turn)
            tpcc.SECONDS = seconds
            before = spending.read()
            timed = tpcc.with_waits(stack, policy, "library", 1, turn)
            done = max(1, timed["done"])
            spent = {name: ms / done for name, ms in spending.since(before).items()}
            if recorder:
                recorder.stop()
                last["size"] = told(recorder.shown()), warm["done"] + timed["done"]
            return 1 / timed["per_second"], timed, spent

        runs, ratios = turns(RUNS, one)
        size, done = last["size"]
        entry = {side: median([r["per_second"] for _, r, _ in runs[side]]) for side in SIDES}
        entry["waits"] = {side: median([r["waits"] for _, r, _ in runs[side]]) for side in SIDES}
        entry["processor"] = spent_of({side: [r[2] for r in runs[side]] for side in SIDES})
        # Transactions a second: less than 1 is slower.
        entry["ratio"] = 1 / median(ratios)
        entry["quartiles"] = quartiles([1 / r for r in ratios])
        entry["recording"] = {**size, "bytes_per_transaction": size["bytes"] / max(1, done)}
        found[policy] = entry
        progress(
            f"TPC-C {tpcc.TITLES[policy]}: {entry['off']:.0f}/s without, {entry['on']:.0f}/s with a"
            f" recording, ratio {entry['ratio']:.3f} {entry['quartiles']}, waits {entry['waits']},"
            f" processor {told_of(entry['processor'])}"
        )
    return found


def replay(stack, recordings: Recordings) -> dict:
    """A recorded pass, and the same statements in a clone: seconds of both."""
    with stack.connect_dba() as dba:
        dba.execute("ALTER ROLE app SET log_statement = 'all'")
        dba.execute("ALTER ROLE app SET log_duration = on")  # ends the text before
    original, texts, seconds = {}, {}, {}
    with servers.connect(stack.app_url, "tpch") as app:
        recorder = recordings.begin()
        for number in tpch_data.QUERIES:
            sizes = stack.log_sizes()
            begun = time.monotonic()
            for part in tpch_data.query(number, SCALE):
                run(app, part)
            original[number] = time.monotonic() - begun
            texts[number] = statements(stack.logged_since(sizes))
        recorder.stop()
    begun = time.monotonic()
    clone = Clone(stack, recorder)
    made = time.monotonic() - begun
    refused = []
    try:
        with clone.connect("search_path = tpch") as connection:
            for number in tpch_data.QUERIES:
                begun = time.monotonic()
                outcomes = [run(connection, text) for text in texts[number]]
                seconds[number] = time.monotonic() - begun
                if len(outcomes) != len(tpch_data.query(number, SCALE)):
                    progress(f"Q{number}: the server's log has not the statements: left out")
                    refused.append(f"Q{number}")
                elif any(outcome.sqlstate for outcome in outcomes):
                    refused.append(f"Q{number}")
    finally:
        clone.remove()
        with stack.connect_dba() as dba:
            dba.execute("ALTER ROLE app RESET log_statement")
            dba.execute("ALTER ROLE app RESET log_duration")
    same = [n for n in tpch_data.QUERIES if f"Q{n}" not in refused]
    totals = {"original": sum(original[n] for n in same), "replay": sum(seconds[n] for n in same)}
    mean = geometric_mean([seconds[n] / original[n] for n in same])
    progress(
        f"replay: {len(same)} queries, {totals['original']:.2f} s recorded,"
        f" {totals['replay']:.2f} s replayed, mean of ratios {shown(mean)}, clone in {made:.1f} s"
    )
    queries = {f"Q{n}": {"original": original[n], "replay": seconds[n]} for n in original}
    return {
        **{"queries": queries, "totals": totals, "geometric_mean": mean},
        **{"refused": refused, "clone_seconds": made},
    }


def calls(kind: str, count: int) -> list[str]:
    """Calls of a kind: operands differ, paths repeat as they do among rows of a statement."""
    name, pay, day = "text\ts.p.name", "int4\ts.p.pay", "date\ts.p.day"
    rows = {
        "integer, comparison": lambda n: f"Lt\t-\t0\ttrue\t{pay}\t{1000 + n}\tint4\t-\t90000",
        "integer, computation": lambda n: f"Mul\tint4\t0\tvalue\t{pay}\t{1000 + n}\tint4\t-\t12",
        "text, comparison": lambda n: f"Eq\t-\t0\tfalse\t{name}\tAnn {n:04}\ttext\t-\tBob Miller",
        "text, substring": lambda n: f"Left\ttext\t0\tvalue\t{name}\tAnn {n:04}\tint4\t-\t4",
        "text, concatenation": lambda n: (
            f"Concat\ttext\t0\tvalue\t{name}\tAnn {n:04}\ttext\t-\t, Mrs"
        ),
        "text, LIKE": lambda n: f"Like\t-\t0\ttrue\t{name}\tAnn {n:04}\ttext\t-\tAnn%",
        "date, comparison": lambda n: (
            f"Ge\t-\t0\ttrue\t{day}\t19{70 + n % 30}-02-11\tdate\t-\t1960-01-01"
        ),
        "numeric, computation": lambda n: (
            f"Mul\tnumeric\t0\tvalue\tnumeric\ts.p.tax\t{n}.25\tnumeric\t-\t0.07"
        ),
    }
    return [f"call\t{rows[kind](n)}" for n in range(count)]


KINDS = [
    *("integer, comparison", "integer, computation", "text, comparison", "text, substring"),
    *("text, concatenation", "text, LIKE", "date, comparison", "numeric, computation"),
]
RULES = '[default]\nmask = "scramble"\n[constant]\nmask = "keep"\n'


def masked(program: Path, folder: Path, log: list[str], *more: str) -> tuple[float, dict]:
    """Seconds in which a log is masked, and the program's counts."""
    true, rules, out = folder / "true.calls", folder / "rules.toml", folder / "masked.calls"
    true.write_text("\n".join(["confide-calls\t1", *log]) + "\n")
    rules.write_text(RULES)
    out.unlink(missing_ok=True)
    begun = time.monotonic()
    done = subprocess.run(
        [program, "log", true, "--rules", rules, "--out", out, *more],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    seconds = time.monotonic() - begun
    return seconds, dict(line.split() for line in done.stdout.splitlines())


def anonymised(folder: Path) -> dict:
    """Calls a second of each kind, as it is done and plainly."""
    subprocess.run([ROOT / "scripts" / "traced"], check=True)
    profile = os.environ.get("PROFILE", "release")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    program = target / "traced" / profile / "confide-anonymise"
    found = {}
    for kind in KINDS:
        few = max(1, CALLS // 20)
        seconds, counts = masked(program, folder, calls(kind, CALLS))
        plainly, _ = masked(program, folder, calls(kind, few), "--plain")
        entry = {"per_second": CALLS / seconds, "plain_per_second": few / plainly}
        entry["ratio"] = ratio(entry["per_second"], entry["plain_per_second"])
        found[kind] = {**entry, "cached": int(counts["cached"]) / CALLS}
        progress(
            f"{kind}: {entry['per_second']:.0f} calls a second,"
            f" plainly {entry['plain_per_second']:.1f}, {entry['ratio']:.0f} times"
        )
    return found


def show(results: dict) -> None:
    queries = results.get("tpch", {}).get("queries", {})
    head = ["TPC-H", "off s", "on s", "on / off", "off waits", "on waits"]
    rows = [
        [name, q["off"], q["on"], q["ratio"], *(q["waits"][s] for s in SIDES)]
        for name, q in queries.items()
    ]
    table(head, rows)
    head = ["TPC-C", "off/s", "on/s", "on / off", "off waits", "on waits", "bytes"]
    rows = [
        [
            *(tpcc.TITLES[policy], c["off"], c["on"], c["ratio"]),
            *(c["waits"][s] for s in SIDES),
            c["recording"]["bytes_per_transaction"],
        ]
        for policy, c in results.get("tpcc", {}).items()
    ]
    table(head, rows)


def main() -> None:
    given = {"SF": SCALE, "ROUNDS": ROUNDS, "POLICIES": tpcc.POLICIES, "W": tpcc.WAREHOUSES}
    given |= {
        "SECONDS": tpcc.SECONDS,
        "WARM": WARM,
        "RUNS": RUNS,
        "CALLS": CALLS,
        **servers.SETTINGS,
    }
    report = Report("recording", given)
    results = report.results
    os.environ["CONFIDE_KEEPER_ADMINISTRATORS"] = "app"
    with tempfile.TemporaryDirectory() as made, servers.running() as stack:
        recordings = Recordings(stack, Path(made))
        with stack.connect_dba() as dba:
            dba.execute("GRANT pg_monitor TO app")
        with servers.connect(stack.app_url) as app:
            app.execute("CREATE SCHEMA tpch")
            app.execute("SET search_path = tpch")
            tpch_data.load(app, SCALE, True)
            if "tpch" in ONLY:
                results["tpch"] = tpch(stack, app, recordings)
        if "replay" in ONLY:
            results["replay"] = replay(stack, recordings)
        if "tpcc" in ONLY:
            results["tpcc"] = tpcc_cost(stack, recordings)
        if "anonymised" in ONLY:
            results["anonymised"] = anonymised(Path(made))
    show(results)
    if len(results) < len(KINDS_OF_FIGURES):
        return  # not all figures: for a look, not for the documentation
    ratios = [q["ratio"] for q in results["tpch"]["queries"].values()]
    labels = list(results["tpch"]["queries"])
    title = f"TPC-H at scale {SCALE:g} while it is recorded"
    plots.bars(report.plot(), title, labels, {"on / off": ratios}, "times unrecorded", goal=1.03)
    report.write()


if __name__ == "__main__":
    main()
