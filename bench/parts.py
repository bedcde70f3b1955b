"""`make bench-parts`: who uses the processor in short transactions, and how often tasks switch.

Plaintext and protected (by the client library) run in alternation. Of each, while it runs: time of
the processor and switches of tasks of a transaction, by process (backends, keeper, driver), from
/proc; and the round trips. A busy machine moves these less than a clock on the wall, and a ratio of
times says what a transaction costs, not how fast it is where processors are free.

CASES: `tpcc-` and a policy, or `sysbench-` and a workload. Parameters: CASES, CLIENTS, SECONDS,
ROUNDS; W warehouses; ROWS and DISTRIBUTIONS of sysbench.
"""

import contextlib
import threading
import time
from pathlib import Path

import servers
import sysbench
import tpcc
from driver import BINARY, driver
from report import Report, median, parameter, parameters, progress, ratio, table
from stack import children

CASES = parameters("CASES", "tpcc-customer,sysbench-range,sysbench-read-only")
CLIENTS = [int(n) for n in parameters("CLIENTS", "4")]
SECONDS = parameter("SECONDS", 5.0)
ROUNDS = parameter("ROUNDS", 3)
PARTS = ("backends", "keeper", "driver")
# The part of a run that is looked at: from when on, and how long.
FROM, FOR = 0.35, 0.6
PAUSE = 0.01


def used(pid: int) -> dict[str, tuple[int, int]]:
    """Nanoseconds and switches of a process's tasks so far."""
    found = {}
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            time_used = int((task / "schedstat").read_text().split()[0])
            lines = (task / "status").read_text().splitlines()
            switches = sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)
            found[task.name] = (time_used, switches)
    return found


def drivers() -> list[int]:
    pids = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if (entry / "exe").readlink() == BINARY.resolve():
                pids.append(int(entry.name))
    return pids


class Look:
    """What the parts have used between two moments of a run."""

    def __init__(self, stack, before: set[int]):
        self.stack = stack
        self.before = before
        self.figures = {}
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def read(self) -> dict[str, dict]:
        backends = [p for p in children(self.stack.postmaster_pid()) if p not in self.before]
        parts = {"backends": backends, "keeper": [self.stack.keeper_pid()], "driver": drivers()}
        return {
            name: {task: spent for pid in pids for task, spent in used(pid).items()}
            for name, pids in parts.items()
        }

    def run(self) -> None:
        while not drivers():
            time.sleep(PAUSE)
        time.sleep(SECONDS * FROM)
        began, first = time.monotonic(), self.read()
        time.sleep(SECONDS * FOR)
        self.seconds, last = time.monotonic() - began, self.read()
        for part in PARTS:
            sums = [0, 0]
            for task, spent in last[part].items():
                earlier = first[part].get(task, (0, 0))
                sums = [s + now - then for s, now, then in zip(sums, spent, earlier, strict=True)]
            self.figures[part] = sums

    def of_a_transaction(self, per_second: float) -> dict[str, dict[str, float]]:
        self.thread.join()
        done = per_second * self.seconds
        return {
            part: {"us": spent / 1e3 / done, "switches": switches / done}
            for part, (spent, switches) in self.figures.items()
        }


def run(stack, case: str, distribution: str, clients: int, side: str, turn: int) -> dict:
    kind, _, name = case.partition("-")
    path = "direct" if side == "plain" else "library"
    with stack.connect_dba() as dba:
        servers.stat_keeper(dba)
        channels = int(servers.stat_keeper(dba)["channels"])
        before = servers.answered(dba, channels)
        look = Look(stack, set(children(stack.postmaster_pid())))
        load = ["--clients", clients, "--seconds", SECONDS, "--seed", turn * 1000 + clients]
        if kind == "tpcc":
            schema = f"tpcc_{'plain' if side == 'plain' else name}"
            arguments = ["tpcc", "--warehouses", tpcc.WAREHOUSES, *load]
        else:
            schema = sysbench.SCHEMAS[side]
            arguments = ["sysbench", "--workload", name, "--distribution", distribution]
            arguments += ["--rows", sysbench.ROWS, *load]
        found = driver(stack, path, schema, *arguments)
        parts = look.of_a_transaction(found["per_second"])
        waits = (servers.answered(dba, channels) - before) / max(1, found["done"])
    return {**parts, "per_second": found["per_second"], "waits": waits}


def cell(stack, case: str, distribution: str, clients: int) -> dict:
    runs = {"plain": [], "protected": []}
    for turn in range(ROUNDS):
        for side, found in runs.items():
            # Rows that inserts of another run have made must not be in the way.
            number = turn * 2 + (side == "protected")
            found.append(run(stack, case, distribution, clients, side, number))
    entry = {"case": case, "distribution": distribution, "clients": clients, "runs": runs}
    for side, found in runs.items():
        entry[side] = {
            part: {unit: median([r[part][unit] for r in found]) for unit in ("us", "switches")}
            for part in PARTS
        }
        entry[side]["waits"] = median([r["waits"] for r in found])
        entry[side]["us"] = median([sum(r[part]["us"] for part in PARTS) for r in found])
        entry[side]["per_second"] = median([r["per_second"] for r in found])
    entry["ratio"] = ratio(entry["plain"]["us"], entry["protected"]["us"])
    progress(
        f"{case}, {distribution}, {clients} clients: {entry['ratio']:.2f} by processor time,"
        f" {ratio(entry['protected']['per_second'], entry['plain']['per_second']):.2f} by clock,"
        f" {entry['protected']['waits']:.2f} waits"
    )
    return entry


def show(cells: list[dict]) -> None:
    head = ["case", "distribution", "clients", "side", "waits"]
    head += [f"{part} {unit}" for part in PARTS for unit in ("us", "switches")] + ["all us"]
    rows = [
        [c["case"], c["distribution"], c["clients"], side, c[side]["waits"]]
        + [c[side][part][unit] for part in PARTS for unit in ("us", "switches")]
        + [c[side]["us"]]
        for c in cells
        for side in ("plain", "protected")
    ]
    table(head, rows)


def main() -> None:
    given = {"CASES": CASES, "CLIENTS": CLIENTS, "SECONDS": SECONDS, "ROUNDS": ROUNDS}
    given |= {"DISTRIBUTIONS": sysbench.DISTRIBUTIONS, "ROWS": sysbench.ROWS}
    given |= {"W": tpcc.WAREHOUSES, **servers.SETTINGS}
    report = Report(f"parts{servers.SUFFIX}", given)
    policies = [c.removeprefix("tpcc-") for c in CASES if c.startswith("tpcc-")]
    with servers.running() as stack:
        if policies:
            tpcc.POLICIES[:] = policies
            tpcc.load(stack, report)
        if any(c.startswith("sysbench-") for c in CASES):
            sysbench.make_tables(stack)
        cells = [
            cell(stack, case, distribution, clients)
            for case in CASES
            for distribution in (sysbench.DISTRIBUTIONS if case.startswith("sysbench") else ["-"])
            for clients in CLIENTS
        ]
    report.results["cells"] = cells
    show(cells)
    report.write()


if __name__ == "__main__":
    main()
