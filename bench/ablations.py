"""`make bench-ablations`: what each part of the design is worth: the same queries and
transactions with it taken out, beside plaintext.

- messages: one-way messages awaited (confide.one_way), batches off (row at a time), both;
- batch sizes: the most rows of a batch (confide.batch_rows), with as many of results;
- read-ahead: the first run of each query after a restart of the keeper, which then has no value in
  memory, with the keeper's read_ahead on and off;
- secret: the keeper with its values in hidden memory (secret_values) and not; its processor time,
  which a busy machine moves less than the queries' own;
- caches: statements over cells of the family rnd_, with the keeper's caches and without
  (cell_caches.py);
- memory: the keeper's memory_budget at shares of the data set (the bytes of all values in
  memory), and around the keeper a limit of cgroup v1 at its own size when it has started, that
  share, and ROOM_MB for what sessions and its allocator need beside values. Locked memory counts
  there and cannot be reclaimed: a keeper beyond the limit is killed, which is reported. Where
  there is no cgroup v1, or we may not use it, the budget stands alone, which is said.

Plaintext and every variant run in alternation, TPC-H's queries through the proxy, transactions
(the statements of sysbench) by the client library beside the driver without it.

Parameters: SF, QUERIES, ROUNDS (one of variants without batches), LIMIT in seconds for a query;
ROWS, WORKLOADS, SECONDS of transactions; BATCHES, SHARES in percent, ROOM_MB; PARTS.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator

import cell_caches
import cgroup
import plots
import processor
import psycopg
import servers
import tpch_data
from driver import driver
from report import Report, geometric_mean, median, parameter, parameters, progress, ratio, table
from results import run

SCALE = parameter("SF", 0.1)
QUERIES = [int(n) for n in parameters("QUERIES", "1,3,6,12,13,18")]
ROUNDS = parameter("ROUNDS", 3)
LIMIT = parameter("LIMIT", 30)
ROWS = parameter("ROWS", 20_000)
WORKLOADS = parameters("WORKLOADS", "point-select,read-write")
SECONDS = parameter("SECONDS", 1.0)
BATCHES = [int(n) for n in parameters("BATCHES", "64,256,1024")]
SHARES = [int(n) for n in parameters("SHARES", "100,50,25,10")]
ROOM_MB = parameter("ROOM_MB", 48)
PARTS = parameters("PARTS", "messages,batches,ahead,secret,caches,memory")
TPCH = {"plain": "tpch_plain", "protected": "tpch_protected"}
SYSBENCH = {"plain": "sb_plain", "protected": "sb_protected"}
MALLOC = {"MALLOC_MMAP_THRESHOLD_": "1048576"}  # as scripts/up has it


class Variant:
    """The protected side with something taken out."""

    def __init__(self, name: str, settings: dict[str, str], slow: bool = False):
        self.name, self.settings, self.rounds = name, settings, 1 if slow else ROUNDS

    def apply(self, connection: psycopg.Connection) -> None:
        connection.execute("RESET ALL")
        connection.execute(f"SET search_path = {TPCH['protected']}")
        connection.execute(f"SET statement_timeout = '{LIMIT}s'")
        for name, value in self.settings.items():
            connection.execute(f"SET {name} = {value}")

    @contextlib.contextmanager
    def of_new_sessions(self, stack) -> Iterator[None]:
        """The driver has no settings of its own: they are its role's."""
        with stack.connect_dba() as dba:
            for name, value in self.settings.items():
                dba.execute(f"ALTER ROLE app SET {name} = {value}")
            yield
            dba.execute("ALTER ROLE app RESET ALL")


def variants(connection: psycopg.Connection) -> list[Variant]:
    """The first one has everything."""
    awaited = {"confide.one_way": "off"}
    rows = {name: "off" for name in servers.batch_settings(connection)}
    rows["confide.result_batch"] = "0"
    found = [Variant("all on", {})]
    if "messages" in PARTS:
        found.append(Variant("one-way off", awaited))
        found.append(Variant("delivery off", {"confide.delivery": "off"}))
        found.append(Variant("batches off", rows, slow=True))
        found.append(Variant("both off", rows | awaited, slow=True))
    if "batches" in PARTS:
        for size in BATCHES:
            limits = {"confide.batch_rows": str(size), "confide.result_batch": str(size)}
            found.append(Variant(f"batch {size}", limits))
    return found


# ---------- the work ----------


def md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def load(stack, sides) -> None:
    directory = tpch_data.generate(SCALE)
    for name, connection in sides.items():
        connection.execute(f"CREATE SCHEMA {TPCH[name]}")
        connection.execute(f"SET search_path = {TPCH[name]}")
        connection.execute(tpch_data.ddl(name == "protected"))
        for relation in tpch_data.TABLES:
            tpch_data.copy(connection, relation, directory)
        tpch_data.finish(connection)
        enc = "enc_" if name == "protected" else ""
        connection.execute(f"CREATE SCHEMA {SYSBENCH[name]}")
        connection.execute(f"SET search_path = {SYSBENCH[name]}")
        connection.execute(
            f"CREATE TABLE sbtest1 (id int PRIMARY KEY, k {enc}int4 NOT NULL,"
            f" c {enc}bpchar(120) NOT NULL, pad {enc}bpchar(60) NOT NULL)"
        )
        with connection.cursor() as cursor, cursor.copy("COPY sbtest1 FROM STDIN") as copy:
            for i in range(1, ROWS + 1):
                copy.write_row((i, i * 7919 % ROWS, md5(str(i)) * 3, md5(str(-i))))
        connection.execute("CREATE INDEX ON sbtest1 (k)")
        connection.execute("VACUUM ANALYZE sbtest1")
        connection.execute(f"SET search_path = {TPCH[name]}")
        progress(f"loaded {name}")


def query(connection: psycopg.Connection, number: int) -> float | None:
    """Seconds; None when it fails, which is said."""
    start = time.monotonic()
    for statement in tpch_data.query(number, SCALE):
        done = run(connection, statement)
        if done.sqlstate:
            progress(f"Q{number}: {done.sqlstate} {done.message}")
            return None
    return time.monotonic() - start


def transactions(stack, path: str, side: str, workload: str, turn: int) -> float:
    """A second, by one client."""
    return driver(
        *(stack, path, SYSBENCH[side], "sysbench", "--workload", workload),
        *("--distribution", "uniform", "--rows", ROWS, "--clients", 1),
        *("--seconds", SECONDS, "--seed", turn + 1),
    )["per_second"]


class Cell:
    """What was measured of one variant: runs of queries and of transactions."""

    def __init__(self):
        self.queries: dict[str, list[float]] = {f"Q{n}": [] for n in QUERIES}
        self.transactions: dict[str, list[float]] = {w: [] for w in WORKLOADS}
        self.failed: set[str] = set()

    def run_queries(self, connection: psycopg.Connection) -> None:
        for number in QUERIES:
            if f"Q{number}" not in self.failed:
                seconds = query(connection, number)
                if seconds is None:
                    self.failed.add(f"Q{number}")
                else:
                    self.queries[f"Q{number}"].append(seconds)

    def content(self) -> dict:
        return {
            "seconds": {name: median(runs) for name, runs in self.queries.items()},
            "per_second": {name: median(runs) for name, runs in self.transactions.items()},
            "runs": {**self.queries, **self.transactions},
        }


def compare(plain: dict, cell: dict) -> dict:
    """Adds how many times plaintext's time everything took."""
    seconds, rates = cell["seconds"], cell["per_second"]
    cell["times"] = {q: ratio(seconds[q], plain["seconds"][q]) for q in seconds}
    cell["times"] |= {w: ratio(plain["per_second"][w], rates[w]) for w in rates}
    cell["mean"] = geometric_mean(cell["times"][q] for q in seconds)
    return cell


# ---------- parts ----------


def switches(stack, sides, report: Report) -> None:
    """Messages and batch sizes: settings of the session."""
    wanted = variants(sides["protected"])
    cells = {"plain": Cell(), **{v.name: Cell() for v in wanted}}
    for turn in range(ROUNDS):
        cells["plain"].run_queries(sides["plain"])
        for variant in wanted:
            if turn < variant.rounds:
                variant.apply(sides["protected"])
                cells[variant.name].run_queries(sides["protected"])
        progress(f"queries: round {turn + 1}")
    for workload in WORKLOADS:
        rate = transactions(stack, "direct", "plain", workload, 0)
        cells["plain"].transactions[workload].append(rate)
        for variant in wanted:
            with variant.of_new_sessions(stack):
                rate = transactions(stack, "library", "protected", workload, 0)
            cells[variant.name].transactions[workload].append(rate)
        progress(f"transactions: {workload}")
    wanted[0].apply(sides["protected"])
    plain = report.results["plain"] = cells.pop("plain").content()
    report.results["switches"] = {n: compare(plain, c.content()) for n, c in cells.items()}


def restart(stack, group: cgroup.Group | None, **settings: str) -> psycopg.Connection:
    """A keeper with no value in memory, and none of its files in the system's; connects."""
    stack.kill_keeper()
    for path in (stack.data.parent / "keeper" / "data").iterdir():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    environment = {f"CONFIDE_KEEPER_{key.upper()}": value for key, value in settings.items()}
    with group.joined() if group else contextlib.nullcontext():
        stack.start_keeper(**MALLOC, **environment)
    until = time.monotonic() + 60
    while True:
        try:
            connection = servers.connect(stack.app_url, TPCH["protected"])
            connection.execute("SELECT n_name FROM nation LIMIT 1").fetchone()
            connection.execute(f"SET statement_timeout = '{LIMIT}s'")
            return connection
        except psycopg.Error:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def ahead(stack, sides, report: Report) -> None:
    """The first run after a restart, reading ahead and not."""
    cells = {"on": Cell(), "off": Cell()}
    counters: dict[str, dict] = {}
    for _ in range(ROUNDS):
        for switch, cell in cells.items():
            setting = "true" if switch == "on" else "false"
            with restart(stack, None, read_ahead=setting) as connection:
                cell.run_queries(connection)
                counters[switch] = paging(stack)
    plain = report.results["plain"]
    found = {switch: compare(plain, cell.content()) for switch, cell in cells.items()}
    report.results["ahead"] = {s: cell | counters[s] for s, cell in found.items()}
    progress("read-ahead")


def secret(stack, sides, report: Report) -> None:
    """Queries with values in hidden memory and not, all of them in memory before."""
    cells, seconds = {"off": Cell(), "on": Cell()}, {"off": [], "on": []}
    for _ in range(ROUNDS):
        for switch, cell in cells.items():
            setting = "true" if switch == "on" else "false"
            with restart(stack, None, secret_values=setting) as connection:
                Cell().run_queries(connection)
                before = processor.of_process(stack.keeper_pid())
                cell.run_queries(connection)
                spent = processor.of_process(stack.keeper_pid()) - before
                seconds[switch].append(spent)
    plain = report.results["plain"]
    found = {switch: compare(plain, cell.content()) for switch, cell in cells.items()}
    spent_by = {switch: {"processor": median(spent)} for switch, spent in seconds.items()}
    report.results["secret"] = {s: cell | spent_by[s] for s, cell in found.items()}
    progress("values in hidden memory")


def caches(stack, sides, report: Report) -> None:
    """The caches for cells of the family rnd_."""
    with servers.connect(stack.app_url) as connection:
        for name, side in (("plain", sides["plain"]), ("protected", connection)):
            cell_caches.load(side, name, ROWS, lambda i: md5(str(i)))
    found = cell_caches.measure(stack, sides["plain"], restart, keeper_seconds, ROUNDS)
    sides["plain"].execute(f"SET search_path = {TPCH['plain']}")
    report.results["caches"] = found


def keeper_seconds(stack) -> float:
    """Processor time of the keeper since its start."""
    return processor.of_process(stack.keeper_pid())


def paging(stack) -> dict[str, int]:
    """What the keeper has read back, and let go, since its start."""
    names = {
        "segment_faults_total": "faults",
        "segments_ahead_total": "read_ahead",
        "segments_ahead_used_total": "used_of_it",
        "segment_evictions_total": "evictions",
    }
    with stack.connect_dba() as dba:
        found = servers.stat_keeper(dba)
    return {name: int(found[key]) for key, name in names.items()}


def memory(stack, sides, report: Report, values: int) -> None:
    """Shares of the data set: a run to warm up, then runs beside plaintext."""
    found = report.results["memory"] = {"values_mb": values / 1e6, "shares": {}}
    with cgroup.make(f"confide-bench-{os.getpid()}") as (group, reason):
        found["cgroup"] = reason or "v1"
        progress(f"memory: {values / 1e6:.0f} MB of values, cgroup: {found['cgroup']}")
        for share in SHARES:
            budget = values * share // 100
            entry = found["shares"][str(share)] = {"budget_mb": budget / 1e6}
            try:
                entry |= share_of(stack, sides, group, budget)
            except psycopg.Error as error:
                killed = group is not None and group.kills() > 0
                entry["failed"] = "killed by the limit" if killed else str(error).split("\n")[0]
            if group:
                entry |= {"limit_mb": group.limit() / 1e6, "peak_mb": group.peak() / 1e6}
                group.unlimit()
            progress(f"memory {share} %: {entry.get('failed', 'measured')}")


def share_of(stack, sides, group, budget: int) -> dict:
    plain, cell = Cell(), Cell()
    with restart(stack, group, memory_budget=str(budget)) as connection:
        if group:
            group.set_limit(group.anonymous() + budget + ROOM_MB * 2**20)
        Cell().run_queries(connection)
        before = paging(stack)
        for turn in range(ROUNDS):
            plain.run_queries(sides["plain"])
            cell.run_queries(connection)
            for workload in WORKLOADS if turn == 0 else []:
                rate = transactions(stack, "direct", "plain", workload, 1)
                plain.transactions[workload].append(rate)
                rate = transactions(stack, "library", "protected", workload, 1)
                cell.transactions[workload].append(rate)
        after = paging(stack)
    counters = {name: after[name] - before[name] for name in after}
    return compare(plain.content(), cell.content()) | counters


# ---------- the report ----------


def print_tables(report: Report) -> None:
    names = [*(f"Q{n}" for n in QUERIES), *WORKLOADS]
    head = ["times plaintext's time", "mean of Q", *names]

    def line(name, cell):
        return [name, cell["mean"], *(cell["times"][n] for n in names)]

    results = report.results
    plain = results["plain"]
    print()
    table(
        ["plaintext", *names],
        [["s, per s", *plain["seconds"].values(), *plain["per_second"].values()]],
    )
    table(head, [line(name, cell) for name, cell in results["switches"].items()])
    if "ahead" in results:
        counters = ["faults", "read_ahead", "used_of_it"]
        rows = [
            [f"cold, read-ahead {s}", *(c["seconds"].values()), *(c[n] for n in counters)]
            for s, c in results["ahead"].items()
        ]
        table(["seconds", *(f"Q{n}" for n in QUERIES), *counters], rows)
    if "secret" in results:
        rows = [
            [f"secret_values {s}", *(c["seconds"].values()), c["processor"]]
            for s, c in results["secret"].items()
        ]
        table(["seconds", *(f"Q{n}" for n in QUERIES), "keeper's processor"], rows)
    if "caches" in results:
        table(*cell_caches.grid(results["caches"]))
    if "memory" in results:
        counters = ["faults", "read_ahead", "evictions"]
        shares = results["memory"]["shares"].items()
        rows = [
            [*line(f"{s} %", c), *(c[n] for n in counters), c.get("limit_mb"), c.get("peak_mb")]
            for s, c in shares
            if "times" in c
        ]
        table([*head, *counters, "limit MB", "peak MB"], rows)
        for share, cell in shares:
            if "failed" in cell:
                print(f"  {share} %: {cell['failed']}")
        print(f"  memory limit: cgroup {results['memory']['cgroup']}")


def plot(report: Report) -> None:
    """Means of queries, and the first workload, over plaintext."""
    results = report.results
    cells = {name.replace(" ", "\n"): cell for name, cell in results["switches"].items()}
    for switch, cell in results.get("ahead", {}).items():
        cells[f"cold,\nahead\n{switch}"] = cell
    for share, cell in results.get("memory", {}).get("shares", {}).items():
        if "times" in cell:
            cells[f"memory\n{share} %"] = cell
    series = {"TPC-H queries": [cell["mean"] for cell in cells.values()]}
    for workload in WORKLOADS:
        series[workload] = [cell["times"].get(workload) for cell in cells.values()]
    title = f"Ablations, TPC-H at scale {SCALE:g} and transactions: time over plaintext"
    plots.bars(report.plot(), title, list(cells), series, "times plaintext", goal=1, log=True)


def main() -> None:
    given = {"SF": SCALE, "QUERIES": ",".join(map(str, QUERIES)), "ROUNDS": ROUNDS}
    given |= {"ROWS": ROWS, "SECONDS": SECONDS, "LIMIT": LIMIT, "PARTS": ",".join(PARTS)}
    given |= {"ROOM_MB": ROOM_MB, **servers.SETTINGS}
    report = Report("ablations", given)
    with servers.running() as stack, servers.connect(servers.direct_url(stack)) as plain:
        sides = {"plain": plain}
        with servers.connect(stack.app_url) as protected:
            sides["protected"] = protected
            load(stack, sides)
            with stack.connect_dba() as dba:
                values = int(servers.stat_keeper(dba)["memory_bytes"])
            servers.keeper_files(stack)  # so that all is at rest
            switches(stack, sides, report)
        if "ahead" in PARTS:
            ahead(stack, sides, report)
        if "secret" in PARTS:
            secret(stack, sides, report)
        if "caches" in PARTS:
            caches(stack, sides, report)
        if "memory" in PARTS:
            memory(stack, sides, report, values)
        print_tables(report)
    plot(report)
    report.write()


if __name__ == "__main__":
    main()
