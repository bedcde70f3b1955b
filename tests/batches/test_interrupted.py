"""Interrupts each node that works in batches: timeout, cancel, a keeper that stops responding or
dies, too little memory. Right: an SQL error in time, and the session continues.
(test_scan_faults.py has more for scans.)

Bug: a backend waits forever, or uses the answer to an abandoned request for a later one; or the
keeper runs out of memory."""

import itertools
import re
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass

import psycopg
import pytest
from plans import above
from results import Outcome, run
from waiting import active, amid, limited, standing_still, until

ROWS = 6000


@dataclass(frozen=True)
class Row:
    """A statement that takes minutes, and how to tell that a node of ours is at work in it."""

    query: str
    # What its plan must show: nothing that PostgreSQL's own nodes show, too.
    plan: str = ""
    # Messages to the keeper that this work alone is made of; several must be sent each time.
    messages: tuple[str, ...] = ()
    settings: str = ""
    who: str = "app"


def off(*names: str) -> str:
    return ";".join(f"SET enable_{name} = off" for name in names)


# Each row of a has all of b scanned again, with two programs.
SCANS = """SELECT count(*) FROM big a, LATERAL (SELECT b.n * a.n AS m FROM big b
           WHERE {} AND b.n * a.n + b.n > 0 OFFSET 0) x WHERE x.m IS NULL"""
BATCH = ("DeclassifyBatch", "EvalBatch")
# About a millisecond for each row, and much memory.
SLOW = "reverse(replace(replace(replace(s, 't', '{t}'), 't', '{t}'), 't', '{t}')) < 'a'".format(
    t="t" * 20
)
FEW_ROWS = "SET confide.batch_rows = 16;"
PARALLEL = """SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
              SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2"""
# To read all candidates of a row costs nothing.
LOOKED_UP = ";".join(
    [
        off(*"hashjoin mergejoin seqscan bitmapscan material memoize hashagg sort".split()),
        *(f"SET {c}_cost = 0" for c in ("random_page", "seq_page", "cpu_tuple", "cpu_index_tuple")),
        "SET confide.round_trip_cost = 0.2; SET confide.batch_row_cost = 0",
    ]
)
EXISTS = """SELECT count(*) FROM big a WHERE {}EXISTS
            (SELECT FROM big b WHERE b.i > a.i - 9000 AND b.n * a.n + b.n < 0)"""
LOOKUPS = """SELECT count(*) FROM big a, generate_series(1, 1000) g,
             LATERAL (SELECT b.i FROM big b WHERE b.n = a.n AND b.i > g - 2000 OFFSET 0) x"""
AGAIN = """SELECT count(*) FROM generate_series(1, 100000) g, LATERAL ({} OFFSET 0) x
           WHERE x.m IS NULL"""

LONG = {
    "sequential": Row(SCANS.format("b.i > -1"), above("Seq Scan on big b"), BATCH),
    "index": Row(
        SCANS.format("b.i > -1"),
        above("Index Scan using big_pkey on big b"),
        BATCH,
        off("seqscan", "bitmapscan"),
    ),
    "bitmap": Row(
        SCANS.format("b.i > -1"),
        above("Bitmap Heap Scan on big b"),
        BATCH,
        off("seqscan", "indexscan"),
    ),
    "tid range": Row(
        SCANS.format("b.ctid > '(0,0)'"), above("Tid Range Scan on big b"), BATCH, off("seqscan")
    ),
    "parallel": Row(
        f"SELECT i FROM big WHERE {SLOW}",
        r"Gather.*" + above("Parallel Seq Scan on big"),
        ("DeclassifyBatch",),
        FEW_ROWS + PARALLEL,
    ),
    "above a nested loop": Row(
        "SELECT count(*) FROM big a JOIN big b ON b.i > a.i - 9000 AND b.n * a.n + b.n < 0",
        above(r"Nested Loop\n"),
        ("DeclassifyBatch",),
        LOOKED_UP,
    ),
    "above a hash join": Row(
        "SELECT count(*) FROM big a JOIN big b ON b.i % 2 = a.i % 2 AND b.n * a.n + b.n < 0",
        above(r"Hash Join\n"),
        ("DeclassifyBatch",),
        off("nestloop", "mergejoin"),
    ),
    "above a hash join in workers": Row(
        "SELECT a.i FROM big a JOIN big b ON b.i % 2 = a.i % 2 AND b.n * a.n + b.n < 0",
        "Gather.*" + above(r"(Parallel )?Hash Join\n"),
        ("DeclassifyBatch",),
        off("nestloop", "mergejoin") + ";" + PARALLEL,
    ),
    "semi join": Row(
        EXISTS.format(""), above(r"Nested Loop Semi Join\n"), ("DeclassifyGroups",), LOOKED_UP
    ),
    "anti join": Row(
        EXISTS.format("NOT "), above(r"Nested Loop Anti Join\n"), ("DeclassifyGroups",), LOOKED_UP
    ),
    "aggregate": Row(
        "SELECT sum(a.n * b.n), max(a.s || b.s) FROM big a, big b",
        r"\(ConfideAggregate\)",
        ("AggregateRows",),
    ),
    "aggregate with a filter": Row(
        AGAIN.format("SELECT sum(b.n) AS m FROM big b WHERE b.i > -g AND b.n + b.n > 5"),
        r"\(ConfideAggregate\)[^\n]*\n +Keeper Filter",
        ("AggregateRows", "AggregateFetch"),
        off("indexscan", "bitmapscan") + "; SET confide.enable_batch_scan = off",
    ),
    "groups": Row(
        "SELECT a.i % 7, sum(a.n * b.n), max(a.s || b.s) FROM big a, big b GROUP BY 1",
        r"\(ConfideAggregate\)[^\n]*\n +Group Key",
        ("AggregateRows",),
    ),
    "groups in passes": Row(
        AGAIN.format("SELECT count(*) AS m FROM big b GROUP BY b.s, b.n + g"),
        r"\(ConfideAggregate\)[^\n]*\n +Group Key",
        ("AggregateRows", "AggregateReturn"),
        "SET confide.batch_aggregate_memory = 64",
    ),
    "aggregate in workers": Row(
        "SELECT sum(a.n * b.n), max(a.s || b.s) FROM big a, big b",
        r"\(ConfideAggregate\).*Gather.*\(ConfidePartialAggregate\)",
        ("AggregateRows",),
        PARALLEL + "; RESET parallel_tuple_cost",
    ),
    "groups in workers": Row(
        "SELECT a.i % 7, sum(a.n * b.n), max(a.s || b.s) FROM big a, big b GROUP BY 1",
        r"\(ConfideAggregate\).*Group Key.*Gather.*\(ConfidePartialAggregate\)",
        ("AggregateRows",),
        PARALLEL + "; RESET parallel_tuple_cost",
    ),
    "merged again and again": Row(
        """SELECT count(x.m) FROM generate_series(1, 1000000) g LEFT JOIN
           (SELECT count(*) AS m FROM big b WHERE b.n + b.n > 5 OFFSET 0) x
           ON x.m <> g""",
        r"\(ConfideAggregate\).*Gather.*\(ConfidePartialAggregate\)",
        ("AggregateMerge", "AggregateHandOver"),
        PARALLEL + "; RESET parallel_tuple_cost;" + off("material", "hashjoin", "mergejoin"),
    ),
    "distinct aggregate": Row(
        "SELECT count(DISTINCT a.s || b.s) FROM big a, big b",
        r"\(ConfideAggregate\)",
        ("AggregateRows",),
    ),
    "sort": Row(
        "SELECT a.i FROM big a, big b ORDER BY a.n * b.n", r"\(ConfideSort\)", ("RankAdd",)
    ),
    "sorts": Row(
        AGAIN.format("SELECT b.i AS m FROM big b ORDER BY b.n * g, b.s"),
        r"\(ConfideSort\)",
        ("RankAdd", "Rank"),
    ),
    "sort on disk": Row(
        AGAIN.format("SELECT b.i AS m, b.s FROM big b ORDER BY b.n * g, b.s"),
        r"\(ConfideSort\)",
        ("RankAdd", "Rank"),
        "SET work_mem = '64kB'",
    ),
    "sorts by plain texts": Row(
        AGAIN.format(
            "SELECT b.i AS m FROM big b WHERE b.i < 1500 ORDER BY (b.i % 7)::text, b.n * g, b.s"
        ),
        r"\(ConfideSort\)",
        ("RankAdd", "Rank"),
    ),
    "sort by plain texts on disk": Row(
        AGAIN.format(
            "SELECT b.i AS m FROM big b WHERE b.i < 1500 ORDER BY b.n * g, (b.i % 7)::text"
        ),
        r"\(ConfideSort\)",
        ("RankAdd", "Rank"),
        "SET work_mem = '64kB'",
    ),
    "top n": Row(
        "SELECT a.i FROM big a, big b ORDER BY a.n * b.n LIMIT 5",
        r"Limit[^\n]*\n +->  Custom Scan \(ConfideSort\)",
        ("RankAdd", "Rank"),
    ),
    "hash join": Row(
        AGAIN.format("SELECT count(*) AS m FROM big a JOIN big b ON a.n = b.n WHERE b.i > -g"),
        r"Hash Join\n.*\(ConfideTokens\)",
        ("Tokens",),
        off("mergejoin", "indexscan", "bitmapscan"),
    ),
    "hash join on disk": Row(
        AGAIN.format("SELECT count(*) AS m FROM big a LEFT JOIN big b ON a.s = b.s AND b.i > -g"),
        r"Hash Left Join\n.*\(ConfideTokens\)",
        ("Tokens",),
        off("mergejoin", "indexscan", "bitmapscan") + "; SET work_mem = '64kB'",
    ),
    "hash aggregate": Row(
        AGAIN.format("SELECT max(b.i) AS m FROM big b WHERE b.i > -g GROUP BY b.s, b.n"),
        r"HashAggregate\n.*\(ConfideTokens\)",
        ("Tokens",),
        off("sort", "indexscan", "bitmapscan"),
    ),
    "hashed subplan": Row(
        AGAIN.format(
            """SELECT a.i AS m FROM big a WHERE a.n NOT IN (SELECT b.n FROM big b WHERE b.i > -g)"""
        ),
        r"\(ConfideTokens\)[^\n]*\n +Filter: \(NOT \((ANY \([^\n]*\()?hashed SubPlan",
        ("Tokens",),
        off("indexscan", "bitmapscan"),
    ),
    "hashed subplan of a target list": Row(
        AGAIN.format(
            """SELECT (a.n IN (SELECT b.n FROM big b WHERE b.i > -g)) IS NULL AS m FROM big a"""
        ),
        r"SubPlan \d\n +->  Custom Scan \(ConfideTokens\)",
        ("Tokens",),
        off("indexscan", "bitmapscan"),
    ),
    "set operation": Row(
        AGAIN.format(
            """SELECT nullif(count(*), 5991) AS m FROM (SELECT b.s FROM big b WHERE b.i > -g EXCEPT
               SELECT b.s FROM big b WHERE b.i < 9) y"""
        ),
        r"HashSetOp Except\n +->  Custom Scan \(ConfideTokens\)",
        ("Tokens",),
        off("sort", "indexscan", "bitmapscan"),
    ),
    "search": Row(
        LOOKUPS, "Index Scan using big_n", ("Descend",), off("seqscan", "bitmapscan", "memoize")
    ),
    "search by an array": Row(
        LOOKUPS.replace("b.n = a.n", "b.n = ANY (ARRAY[a.n, a.n + 900, a.n - 900, a.n + 7])"),
        r"Index Scan using big_n.*= ANY \(ARRAY",
        ("Descend", "Rank"),
        off("seqscan", "bitmapscan", "memoize"),
    ),
    "bitmap search by an array": Row(
        LOOKUPS.replace("b.n = a.n", "b.n = ANY (ARRAY[a.n, a.n + 900, a.n - 900, a.n + 7])"),
        r"Bitmap Index Scan on big_n.*= ANY \(ARRAY",
        ("SearchMany", "Rank"),
        off("seqscan", "indexscan", "memoize"),
    ),
    "bitmap search": Row(
        LOOKUPS,
        "Bitmap Index Scan on big_n",
        ("Descend",),
        off("seqscan", "indexscan", "memoize"),
    ),
    "results": Row("SELECT b.n, b.s FROM big a, big b", "", ("GetEnvelopes",)),
    "stored results": Row(
        # Stored in a moment, then put in envelopes for seconds.
        f"""WITH c AS (DELETE FROM big WHERE i < 0) SELECT b.n{", b.s" * 50}
            FROM big a, big b WHERE a.i < 8""",
        "",
        ("GetEnvelopes",),
    ),
    "promote": Row(
        "INSERT INTO copied SELECT a.i, a.n * b.n, b.s FROM big a, big b",
        r"\(ConfidePromote\)",
        ("PromoteRuns",),
        "SET confide.batch_rows = 64",
    ),
    "copy": Row("COPY copied FROM STDIN", "", ("PutBatch", "PromoteRuns")),
    "create index": Row(
        "DO $$BEGIN LOOP CREATE INDEX again ON big (s); DROP INDEX again; END LOOP; END$$",
        messages=("RankAdd", "Rank"),
        who="dba",
    ),
    "create index of several": Row(
        "DO $$BEGIN LOOP CREATE INDEX again ON big ((i % 7), s, (i::text), n); DROP INDEX again;"
        " END LOOP; END$$",
        messages=("RankAdd", "Rank"),
        who="dba",
    ),
    "analyze": Row(
        "DO $$BEGIN LOOP ANALYZE big; END LOOP; END$$", messages=("RankAdd", "Rank"), who="dba"
    ),
}


@pytest.fixture(scope="module")
def filled(stack):
    stack.up()
    with stack.connect_app() as app:
        app.execute("DROP SCHEMA IF EXISTS interrupted CASCADE")
        app.execute("CREATE SCHEMA interrupted")
        app.execute("SET search_path = interrupted")
        app.execute("CREATE TABLE big (i int PRIMARY KEY, n enc_numeric(12, 1), s enc_text)")
        with app.cursor().copy("COPY big FROM STDIN") as copy:
            for i in range(ROWS):
                copy.write_row((i, i + 0.5, f"{'text ' * 20}{i}"))
        app.execute("CREATE INDEX big_n ON big (n)")
        # The superuser may order what a client has built an index of.
        app.execute("CREATE INDEX noted ON big (s); DROP INDEX noted")
        app.execute("CREATE TABLE copied (i int, n enc_numeric(12, 1), s enc_text)")
        app.execute("ANALYZE big")
    with stack.connect_dba() as dba:
        dba.execute("GRANT pg_monitor TO app")
    yield stack
    stack.up()
    with stack.connect_dba() as dba:
        dba.execute("REVOKE pg_monitor FROM app")
    with stack.connect_app() as app:
        app.execute("DROP SCHEMA interrupted CASCADE")


class Session:
    def __init__(self, stack, name: str):
        self.stack, self.row = stack, LONG[name]
        connect = stack.connect_dba if self.row.who == "dba" else stack.connect_app
        self.connection = connect(options="-c search_path=interrupted")
        for setting in self.row.settings.split(";") if self.row.settings else ():
            self.connection.execute(setting)
        if self.row.plan:
            lines = self.connection.execute(f"EXPLAIN (COSTS off) {self.row.query}").fetchall()
            plan = "\n".join(line for (line,) in lines)
            assert re.search(self.row.plan, plan, re.DOTALL), plan

    def interrupted(self) -> str | None:
        """How the long statement ends."""
        if self.row.query.startswith("COPY"):
            return copied(self.stack, self.connection, self.row.query).sqlstate
        return run(self.connection, self.row.query).sqlstate

    def sent(self) -> Counter:
        """Messages of the session to the keeper, by kind."""
        rows = self.connection.execute(
            "SELECT replace(name, 'session.messages.', ''), value FROM confide.confide_stat_keeper"
            " WHERE name LIKE 'session.messages.%'"
        )
        return Counter({name: int(value) for name, value in rows})

    def usable(self) -> None:
        self.connection.execute("RESET ALL")
        self.connection.execute("SET search_path = interrupted")
        if self.row.who == "app":
            query = "SELECT i, n, s FROM big WHERE n * 2 > %s ORDER BY n DESC LIMIT 2"
            rows = self.connection.execute(query % (2 * ROWS - 10)).fetchall()
            assert [row[0] for row in rows] == [ROWS - 1, ROWS - 2]
            assert rows[0][2].endswith(f" {ROWS - 1}")
            total = "SELECT sum(n) FROM big"
            assert self.connection.execute(total).fetchone() == (ROWS * ROWS / 2,)
        self.connection.execute("ANALYZE big")


def copied(stack, connection, statement: str) -> Outcome:
    """Sends rows until the server does not take them any more: the client learns of an error when
    it ends."""
    block = "".join(f"{ROWS + i}\t{i}.5\ttext {i}\n" for i in range(1000))
    try:
        with stack.connect_dba() as dba, connection.cursor().copy(statement) as copy:
            while active(dba, connection.info.backend_pid):
                copy.write(block)
    except psycopg.Error as error:
        return Outcome(sqlstate=error.sqlstate or "none")
    return Outcome()


@pytest.fixture(params=LONG)
def session(filled, request):
    session = Session(filled, request.param)
    yield session
    session.connection.close()


def test_timeout_and_cancel(filled, session):
    """It is our node that is interrupted, in the middle of its work: it has sent its messages
    often. A slow machine takes more statements, and longer ones, to get there."""
    before = session.sent()
    timeouts = (120 * 1.5**n for n in itertools.count())

    def often():
        with limited(session.connection, f"{next(timeouts):.0f}ms"):
            assert session.interrupted() == "57014"
        # Workers' channels are counted when they have ended.
        sent = session.sent() - before
        return all(sent[kind] >= 3 * 3 for kind in session.row.messages)

    until(often, session.row.messages)
    with amid(filled, session.connection.cancel):
        assert session.interrupted() == "57014"
    session.usable()


def test_keeper_stands_still(filled, session):
    with ExitStack() as still:

        def stop_and_cancel():
            still.enter_context(standing_still(filled.keeper_pid()))
            session.connection.cancel()

        with amid(filled, stop_and_cancel):
            assert session.interrupted() == "57014"
    session.usable()


def test_keeper_dies(filled, session):
    try:
        with amid(filled, filled.kill_keeper):
            assert session.interrupted()[:2] in ("08", "57", "58")
    finally:
        filled.start_keeper()
    assert run(session.connection, "SELECT 1").rows == [("1",)]
    fresh = filled.connect_dba if session.row.who == "dba" else filled.connect_app
    session.connection.close()
    session.connection = fresh(options="-c search_path=interrupted")
    session.usable()


# More than a session may have, in each node.
LARGE = [
    "SELECT count(*) FROM wide WHERE s || s > s",
    "SELECT i, max(s || s) FROM wide GROUP BY i",
    "SELECT s || s, count(*) FROM wide GROUP BY 1",
    "SELECT i FROM wide ORDER BY s || s, i",
    "SELECT count(*) FROM wide a JOIN wide b ON a.s || a.s = b.s || b.s",
    "SELECT count(*) FROM (SELECT DISTINCT s || s FROM wide) x",
    "SELECT count(*) FROM wide WHERE s NOT IN (SELECT s || s FROM wide)",
    "SELECT s FROM wide EXCEPT SELECT s || s FROM wide",
    "SELECT s || s FROM wide",
    "CREATE INDEX ON wide (i, s)",
]


def test_memory(filled):
    filled.environment["CONFIDE_KEEPER_SESSION_MEMORY_LIMIT"] = "8MB"
    try:
        filled.up()
        session = Session(filled, "sequential")
        session.connection.execute("CREATE TABLE wide (i int, s enc_text)")
        with session.connection.cursor().copy("COPY wide FROM STDIN") as copy:
            for i in range(4000):
                copy.write_row((i, f"{i} " + "x" * 3000))
        session.connection.execute("SET statement_timeout = '1200s'")
        states = [run(session.connection, query).sqlstate for query in LARGE]
        assert set(states) <= {None, "53200"}, states
        assert "53200" in states
        session.usable()
        session.connection.close()
    finally:
        del filled.environment["CONFIDE_KEEPER_SESSION_MEMORY_LIMIT"]
        filled.up()
