"""`make bench-grants`: what authorised statements cost: TPC-H's queries, sysbench's transactions
and TPC-C with a keeper that asks for grants (`require_grants`) beside one that does not. Goal:
1.03.

Three turns in each round: on, off, and off once more, which is the control: what it differs by
from off is what this machine moves figures by. The keeper is started anew for each turn, and the
order of turns rotates; the first run after a start does not count. In each turn a query runs REPEAT
times, of which the median counts.

Processor time of keeper and backend is what is compared with the goal. Grants add no round
trip (`tests/security/test_grants.py`), so what they cost is instructions, and those are in it; a
clock on the wall shows whatever else runs on the machine, too, and is here beside it. A ratio is
that of the medians; its spread is the quartiles of the rounds' own ratios.

Parameters: SF, QUERIES, ROUNDS, REPEAT, ROWS, WORKLOADS, SECONDS, W and POLICIES of TPC-C.
"""

from collections.abc import Iterator
from types import SimpleNamespace

import ablations
import processor
import servers
import tpcc
from ablations import SYSBENCH, load, restart
from document import ratios
from driver import driver
from report import Report, geometric_mean, median, parameter, parameters, progress, quartiles, table

QUERIES = [int(n) for n in parameters("QUERIES", ",".join(map(str, range(1, 23))))]
ROUNDS = parameter("ROUNDS", 8)
REPEAT = parameter("REPEAT", 3)
SECONDS = parameter("SECONDS", 2.0)
TURNS = {"on": "true", "off": "false", "control": "false"}
CLOCKS = ("processor", "wall")
# By clock, name and turn: one figure for each round.
Figures = dict[str, dict[str, dict[str, list[float]]]]


def statements(stack, setting: str) -> Iterator[tuple[str, float, float]]:
    """Queries: name, processor and wall seconds."""
    with restart(stack, None, require_grants=setting) as connection:
        clock = processor.Statements(stack, connection)
        for number in QUERIES:
            ablations.query(connection, number)
        for number in QUERIES:
            used, walls = [], []
            for _ in range(REPEAT):
                before = clock.seconds()
                wall = ablations.query(connection, number)
                if wall is None:
                    raise SystemExit(f"Q{number} has failed")
                used.append(clock.seconds() - before)
                walls.append(wall)
            yield f"Q{number}", median(used), median(walls)


def transactions(stack, turn: int) -> Iterator[tuple[str, float, float]]:
    """Transactions by one client of the client library: the same of each."""
    common = ["--clients", 1, "--seed", turn + 1, "--seconds"]
    rows = ("--distribution", "uniform", "--rows", ablations.ROWS)
    asked = {
        workload: (SYSBENCH["protected"], "sysbench", "--workload", workload, *rows)
        for workload in ablations.WORKLOADS
    }
    asked |= {
        f"TPC-C {policy}": (f"tpcc_{policy}", "tpcc", "--warehouses", tpcc.WAREHOUSES)
        for policy in tpcc.POLICIES
    }
    for name, arguments in asked.items():
        asks = (stack, "library", *arguments, *common)
        driver(*asks, SECONDS / 4)  # the keeper has just started: this one does not count
        run = processor.of_run(stack, lambda a=asks: driver(*a, SECONDS))
        yield name, run["processor"], 1 / run["per_second"]


def rounds(stack) -> Figures:
    figures: Figures = {clock: {} for clock in CLOCKS}
    for turn in range(ROUNDS):
        names = list(TURNS)
        order = names[turn % len(names) :] + names[: turn % len(names)]
        for name in order if turn % 2 == 0 else order[::-1]:
            found = [*statements(stack, TURNS[name]), *transactions(stack, turn)]
            for work, *figure in found:
                for clock, seconds in zip(CLOCKS, figure, strict=True):
                    by_turn = figures[clock].setdefault(work, {n: [] for n in names})
                    by_turn[name].append(seconds)
        progress(f"round {turn + 1}")
    return figures


def compared(by_turn: dict[str, list[float]], one: str) -> dict:
    """A turn's figures over those of `off`."""
    pairs = zip(by_turn[one], by_turn["off"], strict=True)
    each = [a / b for a, b in pairs]
    over = median(by_turn[one]) / median(by_turn["off"])
    return {"ratio": over, "quartiles": quartiles(each), "each": each}


def row(by_turn: dict[str, list[float]]) -> dict:
    return {
        "off_ms": 1e3 * median(by_turn["off"]),
        "on": compared(by_turn, "on"),
        "control": compared(by_turn, "control"),
    }


def mean(rows: dict[str, dict], turn: str, queries: bool) -> dict:
    """Geometric mean over queries, or over transactions, and its quartiles over rounds."""
    chosen = [r[turn] for name, r in rows.items() if name.startswith("Q") == queries]
    each = [geometric_mean(of_round) for of_round in zip(*(c["each"] for c in chosen), strict=True)]
    return {"ratio": geometric_mean(c["ratio"] for c in chosen), "quartiles": quartiles(each)}


def means(rows: dict[str, dict]) -> dict:
    return {
        name: {turn: mean(rows, turn, queries) for turn in ("on", "control")}
        for name, queries in (("queries", True), ("transactions", False))
    }


def main() -> None:
    given = {"SF": ablations.SCALE, "QUERIES": ",".join(map(str, QUERIES)), "ROUNDS": ROUNDS}
    given |= {"REPEAT": REPEAT, "ROWS": ablations.ROWS, "SECONDS": SECONDS}
    given |= {"W": tpcc.WAREHOUSES, "POLICIES": tpcc.POLICIES}
    report = Report("grants", given | servers.SETTINGS)
    with servers.running() as stack:
        with servers.connect(stack.app_url) as protected:
            load(stack, {"protected": protected})
        tpcc.load(stack, SimpleNamespace(results={}))
        figures = rounds(stack)
    for clock in CLOCKS:
        rows = {name: row(by_turn) for name, by_turn in figures[clock].items()}
        report.results[clock] = {"rows": rows, "means": means(rows)}
        print(f"  {clock} time:")
        lines = [[name, found["off_ms"], *ratios(found)] for name, found in rows.items()]
        means_of = report.results[clock]["means"].items()
        lines += [[f"{name}, mean", None, *ratios(found)] for name, found in means_of]
        table(["", "off ms", "on / off", "first quartile", "third", "control"], lines)
    report.write()


if __name__ == "__main__":
    main()
