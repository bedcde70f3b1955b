"""Clients that change their own tables at random, and remember what they must contain. Some changes
are not of rows: two-phase commits, rewrites, TRUNCATE, VACUUM, a table that is created and dropped.

Each transaction also writes its number to a plain table, so that after a crash during its commit
the database itself tells whether it committed.
"""

import random
import threading
from decimal import Decimal

import psycopg
from psycopg.types.numeric import Int4
from waiting import until

TABLES = """
CREATE TABLE t{c} (id int PRIMARY KEY, v enc_int4, n enc_numeric(14, 2), s enc_text);
CREATE TABLE done{c} (x int PRIMARY KEY);
"""
# Of all clients but one: rows without indexed values may be adopted (batches/test_adopt.py).
INDEX = "CREATE INDEX t{c}_v ON t{c} (v)"
BALANCE = 1000


# More rows than this are not kept, so that looking at all of them stays quick.
ROWS_MAX = 300


class Rollback(Exception):
    """The transaction is to be given up."""


class Rows(dict):
    """What must be there: rows of the table by id, and those of a second table, which is made
    and dropped; None while there is none."""

    side: dict[int, int] | None = None

    def copy(self) -> "Rows":
        made = Rows(self)
        made.side = None if self.side is None else dict(self.side)
        return made

    def become(self, other: "Rows") -> None:
        self.clear()
        self.update(other)
        self.side = other.side


class Client(threading.Thread):
    """One client: a model of its table, and the transactions that it runs."""

    def __init__(self, stack, schema: str, number: int, seed: str):
        super().__init__(daemon=True)
        self.stack = stack
        self.schema = schema
        self.number = number
        self.random = random.Random(f"{seed}/{number}")
        self.rows = Rows()
        self.next_id = 1
        self.transaction = 0
        self.uncertain: Rows | None = None
        self.prepares = False
        self.checks = 0
        self.stopping = threading.Event()
        self.commits = 0
        self.errors: dict[str, int] = {}

    # What a row holds. Texts of all sizes: in the locator, in a cell, beyond.
    def row(self) -> tuple:
        r = self.random
        text = r.choice(["", "ab", "x" * r.randrange(40), "long " * r.randrange(1000)])
        text += str(r.randrange(1000))
        cents = Decimal(r.randrange(-(10**9), 10**9)) / 100
        # Of the column's own type: otherwise psycopg takes the smallest.
        return (Int4(r.randrange(-1000, 1000)), r.choice([cents, None]), text)

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                with self.stack.connect_app() as connection:
                    connection.execute("SET statement_timeout = '300s'")
                    connection.execute(f"SET search_path = {self.schema}")
                    while not self.stopping.is_set():
                        if self.random.random() < 0.06:
                            self.maintain(connection)
                        self.one(connection)
            except psycopg.Error as error:
                state = error.sqlstate or "connection"
                self.errors[state] = self.errors.get(state, 0) + 1
                if self.uncertain is not None:
                    return  # the database will say
                self.stopping.wait(0.05)

    def one(self, connection) -> None:
        self.transaction += 1
        rows = self.rows.copy()
        connection.execute("BEGIN")
        connection.execute(f"INSERT INTO done{self.number} VALUES ({self.transaction})")
        try:
            for _ in range(self.random.randrange(1, 6)):
                self.step(connection, rows)
            if self.random.random() < 0.15:
                raise Rollback
        except Rollback:
            connection.execute("ROLLBACK")
            return
        self.uncertain = rows
        if self.prepares and self.random.random() < 0.15:
            self.in_two_phases(connection, rows)
            return
        connection.execute("COMMIT")
        self.rows, self.uncertain = rows, None
        self.commits += 1

    @property
    def gid(self) -> str:
        return f"{self.schema} {self.number} {self.transaction}"

    def in_two_phases(self, connection, rows: Rows) -> None:
        connection.execute(f"PREPARE TRANSACTION '{self.gid}'")
        if self.random.random() < 0.3:
            connection.execute(f"ROLLBACK PREPARED '{self.gid}'")
        else:
            connection.execute(f"COMMIT PREPARED '{self.gid}'")
            self.rows = rows
            self.commits += 1
        self.uncertain = None

    def maintain(self, connection) -> None:
        """What changes no row."""
        table = f"t{self.number}"
        statements = [f"VACUUM {table}", f"ANALYZE {table}", f"VACUUM (FULL) {table}"]
        statements += [f"CLUSTER {table} USING {table}_pkey", f"REINDEX TABLE {table}"]
        statements += [f"VACUUM (ANALYZE) {table}"]
        connection.execute(self.random.choice(statements))

    def step(self, connection, rows: Rows) -> None:
        if len(rows) > ROWS_MAX:
            self.prune(connection, rows)
        steps = [self.insert, self.update, self.delete, self.transfer, self.savepoint] * 2
        steps += [self.copy, self.index, self.insert, self.update, self.side]
        if self.random.random() < 0.1:
            steps = [self.truncate, self.rewrite]
        self.random.choice(steps)(connection, rows)

    def insert(self, connection, rows) -> None:
        key, row = self.next_id, self.row()
        self.next_id += 1
        connection.execute(f"INSERT INTO t{self.number} VALUES (%s, %s, %s, %s)", (key, *row))
        rows[key] = row

    def update(self, connection, rows) -> None:
        if not rows:
            return
        key, row = self.random.choice(sorted(rows)), self.row()
        sql = f"UPDATE t{self.number} SET v = %s, n = %s, s = %s WHERE id = {key}"
        connection.execute(sql, row)
        rows[key] = row

    def delete(self, connection, rows) -> None:
        if not rows:
            return
        key = self.random.choice(sorted(rows))
        connection.execute(f"DELETE FROM t{self.number} WHERE id = {key}")
        del rows[key]

    def transfer(self, connection, rows) -> None:
        """Moves an amount between rows, computed by the keeper: the total stays."""
        if len(rows) < 2:
            return
        a, b = self.random.sample(sorted(rows), 2)
        amount = self.random.randrange(100)
        for key, change in ((a, -amount), (b, amount)):
            sql = f"UPDATE t{self.number} SET v = v + %s WHERE id = {key}"
            connection.execute(sql, (change,))
            rows[key] = (rows[key][0] + change, *rows[key][1:])

    def savepoint(self, connection, rows) -> None:
        inner = rows.copy()
        connection.execute("SAVEPOINT s")
        self.insert(connection, inner)
        self.update(connection, inner)
        if self.random.random() < 0.5:
            connection.execute("ROLLBACK TO s")
            return
        connection.execute("RELEASE s")
        rows.become(inner)

    def copy(self, connection, rows) -> None:
        count = self.random.randrange(1, 50)
        with connection.cursor().copy(f"COPY t{self.number} FROM STDIN") as copy:
            for _ in range(count):
                key, row = self.next_id, self.row()
                self.next_id += 1
                copy.write_row((key, *row))
                rows[key] = row

    def index(self, connection, rows) -> None:
        if self.random.random() < 0.2:
            column = self.random.choice(["v", "n", "s"])
            # A text of 5000 bytes is 8 bytes in the index.
            connection.execute(f"DROP INDEX IF EXISTS extra{self.number}")
            connection.execute(f"CREATE INDEX extra{self.number} ON t{self.number} ({column})")

    def prune(self, connection, rows: Rows) -> None:
        last = sorted(rows)[-ROWS_MAX // 2]
        connection.execute(f"DELETE FROM t{self.number} WHERE id < {last}")
        for key in [k for k in rows if k < last]:
            del rows[key]

    def truncate(self, connection, rows: Rows) -> None:
        connection.execute(f"TRUNCATE t{self.number}")
        rows.clear()

    def rewrite(self, connection, rows: Rows) -> None:
        """Another scale, or back: all rows are written anew."""
        scale = self.random.choice([2, 4])
        sql = f"ALTER TABLE t{self.number} ALTER n TYPE enc_numeric(14, {scale})"
        connection.execute(sql)

    def side(self, connection, rows: Rows) -> None:
        """A second table is made, filled, or dropped."""
        table = f"side{self.number}"
        if rows.side is None:
            connection.execute(f"CREATE TABLE {table} (id int, v enc_int8)")
            rows.side = {}
        elif len(rows.side) > 20:
            connection.execute(f"DROP TABLE {table}")
            rows.side = None
            return
        for _ in range(self.random.randrange(1, 8)):
            key, value = self.next_id, self.random.randrange(10**12)
            self.next_id += 1
            connection.execute(f"INSERT INTO {table} VALUES (%s, %s)", (key, value))
            rows.side[key] = value

    # Afterwards.
    def settle(self, connection) -> None:
        """Finds out about the transaction whose commit was not answered."""
        sql = "SELECT gid FROM pg_prepared_xacts WHERE gid LIKE %s"
        mine = f"{self.schema} {self.number} %"
        for (gid,) in connection.execute(sql, (mine,)).fetchall():
            end = self.random.choice(["COMMIT", "ROLLBACK"])
            connection.execute(f"{end} PREPARED '{gid}'")
        if self.uncertain is None:
            return
        sql = f"SELECT count(*) FROM done{self.number} WHERE x = {self.transaction}"
        if connection.execute(sql).fetchone()[0] == 1:
            self.rows = self.uncertain
        self.uncertain = None

    def verify(self, connection, dba) -> None:
        name = f"t{self.number}"
        found = {}
        for key, *row in connection.execute(f"SELECT * FROM {name}"):
            found[key] = tuple(row)
        assert found == self.rows, difference(found, self.rows)
        count, total = connection.execute(f"SELECT count(*), sum(v) FROM {name}").fetchone()
        assert count == len(self.rows)
        assert (total or 0) == sum(row[0] for row in self.rows.values())
        self.checks += 3
        self.verify_index(connection)
        sql = "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = %s::regclass"
        for (index,) in dba.execute(sql, (f"{self.schema}.{name}",)).fetchall():
            dba.execute("SELECT public.bt_index_check(%s::regclass, true)", (index,))
            self.checks += 1
        self.verify_side(connection)
        self.verify_identifiers(dba, name)

    def verify_side(self, connection) -> None:
        sql = "SELECT to_regclass(%s) IS NOT NULL"
        there = connection.execute(sql, (f"side{self.number}",)).fetchone()[0]
        assert there == (self.rows.side is not None), "the second table"
        if there:
            found = connection.execute(f"SELECT id, v FROM side{self.number}").fetchall()
            assert dict(found) == self.rows.side, "rows of the second table"
        self.checks += 1

    def verify_identifiers(self, dba, name: str) -> None:
        """Each identifier in heap, indexes and statistics names a value, also after a
        collection of garbage, and a second one finds nothing more."""
        sql = "SELECT place, name, unresolved FROM confide.verify(%s) WHERE unresolved > 0"
        assert dba.execute(sql, (name,)).fetchall() == []
        self.checks += 1
        if self.random.random() < 0.2:
            # Autovacuum's work between two collections would be garbage for the second.
            dba.execute(f"ALTER TABLE {name} SET (autovacuum_enabled = off)")
            dba.execute(f"VACUUM {name}")
            for wanted in (None, 0):
                swept = dba.execute("SELECT sum(swept) FROM confide.gc(%s)", (name,)).fetchone()[0]
                assert wanted is None or (swept or 0) == wanted, f"{swept} orphans were left"
            dba.execute(f"ALTER TABLE {name} RESET (autovacuum_enabled)")
            assert dba.execute(sql, (name,)).fetchall() == []
            self.checks += 2

    def verify_index(self, connection) -> None:
        low = self.random.randrange(-1000, 500)
        query = f"SELECT id FROM t{self.number} WHERE v BETWEEN %s AND %s ORDER BY id"
        wanted = sorted(k for k, row in self.rows.items() if low <= row[0] <= low + 300)
        for seqscan, others in (("on", "off"), ("off", "on")):
            connection.execute(f"SET enable_seqscan = {seqscan}")
            connection.execute(f"SET enable_indexscan = {others}")
            connection.execute(f"SET enable_bitmapscan = {others}")
            got = [row[0] for row in connection.execute(query, (low, low + 300))]
            assert got == wanted, f"seqscan {seqscan}"
            self.checks += 1
        for setting in ("seqscan", "indexscan", "bitmapscan"):
            connection.execute(f"RESET enable_{setting}")


def difference(found: dict, wanted: dict) -> str:
    lost = sorted(set(wanted) - set(found))[:5]
    extra = sorted(set(found) - set(wanted))[:5]
    other = [k for k in wanted if k in found and found[k] != wanted[k]][:5]
    values = [(k, found[k][:2], wanted[k][:2]) for k in other]
    return f"lost {lost}, not committed {extra}, other values {values}"


class Load:
    """Some clients, run between crashes."""

    def __init__(self, stack, schema: str, seed: str, count: int = 3):
        self.stack, self.schema, self.seed = stack, schema, seed
        self.clients = [Client(stack, schema, c, seed) for c in range(count)]
        with stack.connect_app() as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
            connection.execute(f"CREATE SCHEMA {schema}")
            connection.execute(f"SET search_path = {schema}")
            for client in self.clients:
                for statement in TABLES.format(c=client.number).strip().split(";\n"):
                    connection.execute(statement.rstrip(";"))
                if client.number > 0:
                    connection.execute(INDEX.format(c=client.number))
        with stack.connect_dba() as dba:
            dba.execute("CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA public")

    def start(self) -> None:
        for client in self.clients:
            client.start()

    def ask_to_stop(self) -> None:
        """Clients end after what they do now. One whose session the proxy carries over a restart
        of PostgreSQL waits for a server until then."""
        for client in self.clients:
            client.stopping.set()

    def stop(self) -> None:
        self.ask_to_stop()
        for client in self.clients:
            client.join()
            assert not client.is_alive(), "a client hangs"
        self.clients = [renewed(client) for client in self.clients]

    def goes_on(self, commits: int) -> None:
        """Until there are so many commits more, or no client is left that could commit."""
        wanted = self.counts()[0] + commits

        def done() -> bool:
            return self.counts()[0] >= wanted or not any(c.is_alive() for c in self.clients)

        until(done, f"{commits} commits")

    def verify(self) -> None:
        with self.stack.connect_app() as connection, self.stack.connect_dba() as dba:
            connection.execute(f"SET search_path = {self.schema}")
            dba.execute(f"SET search_path = {self.schema}, public")
            for client in self.clients:
                client.settle(connection)
                client.verify(connection, dba)

    def checks(self) -> int:
        return sum(client.checks for client in self.clients)

    def counts(self) -> tuple[int, int]:
        commits = sum(client.commits for client in self.clients)
        return commits, sum(len(client.rows) for client in self.clients)


def renewed(old: Client) -> Client:
    """A thread runs once; the next one goes on with the same model."""
    client = Client(old.stack, old.schema, old.number, "")
    kept = ["random", "rows", "next_id", "transaction", "uncertain", "commits", "errors"]
    for name in [*kept, "prepares", "checks"]:
        setattr(client, name, getattr(old, name))
    return client
