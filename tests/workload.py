"""Clients that change tables of their own at random, and remember what must be there.

Each transaction also writes its number into a plain table. So when a crash comes while
it commits, the database itself says afterwards whether it did.
"""

import random
import threading
from decimal import Decimal

import psycopg

TABLES = """
CREATE TABLE t{c} (id int PRIMARY KEY, v enc_int4, n enc_numeric(12, 2), s enc_text);
CREATE TABLE done{c} (x int PRIMARY KEY);
CREATE INDEX t{c}_v ON t{c} (v);
"""
BALANCE = 1000


class Rollback(Exception):
    """The transaction is to be given up."""


class Client(threading.Thread):
    """One client: a model of its table, and the transactions that it runs."""

    def __init__(self, stack, schema: str, number: int, seed: str):
        super().__init__(daemon=True)
        self.stack = stack
        self.schema = schema
        self.number = number
        self.random = random.Random(f"{seed}/{number}")
        self.rows: dict[int, tuple] = {}
        self.next_id = 1
        self.transaction = 0
        self.uncertain: dict[int, tuple] | None = None
        self.stopping = threading.Event()
        self.commits = 0
        self.errors: dict[str, int] = {}

    # What a row holds. Texts of all sizes: in the locator, in a cell, beyond.
    def row(self) -> tuple:
        r = self.random
        text = r.choice(["", "ab", "x" * r.randrange(40), "long " * r.randrange(1000)])
        text += str(r.randrange(1000))
        cents = Decimal(r.randrange(-(10**9), 10**9)) / 100
        return (r.randrange(-1000, 1000), r.choice([cents, None]), text)

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                with self.stack.connect_app() as connection:
                    connection.execute("SET statement_timeout = '20s'")
                    connection.execute(f"SET search_path = {self.schema}")
                    while not self.stopping.is_set():
                        self.one(connection)
            except psycopg.Error as error:
                state = error.sqlstate or "connection"
                self.errors[state] = self.errors.get(state, 0) + 1
                if self.uncertain is not None:
                    return  # the database will say
                self.stopping.wait(0.05)

    def one(self, connection) -> None:
        self.transaction += 1
        rows = dict(self.rows)
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
        connection.execute("COMMIT")
        self.rows, self.uncertain = rows, None
        self.commits += 1

    def step(self, connection, rows: dict[int, tuple]) -> None:
        steps = [self.insert, self.update, self.delete, self.transfer, self.savepoint]
        steps += [self.copy, self.index, self.insert, self.update]
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
        inner = dict(rows)
        connection.execute("SAVEPOINT s")
        self.insert(connection, inner)
        self.update(connection, inner)
        if self.random.random() < 0.5:
            connection.execute("ROLLBACK TO s")
            return
        connection.execute("RELEASE s")
        rows.clear()
        rows.update(inner)

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

    # Afterwards.
    def settle(self, connection) -> None:
        """Finds out about the transaction whose commit was not answered."""
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
        self.verify_index(connection)
        sql = "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = %s::regclass"
        for (index,) in dba.execute(sql, (f"{self.schema}.{name}",)).fetchall():
            dba.execute("SELECT bt_index_check(%s::regclass, true)", (index,))

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
        with stack.connect_dba() as dba:
            dba.execute("CREATE EXTENSION IF NOT EXISTS amcheck")

    def start(self) -> None:
        for client in self.clients:
            client.start()

    def stop(self) -> None:
        for client in self.clients:
            client.stopping.set()
        for client in self.clients:
            client.join(60)
            assert not client.is_alive(), "a client hangs"
        self.clients = [renewed(client) for client in self.clients]

    def verify(self) -> None:
        with self.stack.connect_app() as connection, self.stack.connect_dba() as dba:
            connection.execute("SET statement_timeout = '60s'")
            connection.execute(f"SET search_path = {self.schema}")
            dba.execute(f"SET search_path = {self.schema}, public")
            for client in self.clients:
                client.settle(connection)
                client.verify(connection, dba)

    def counts(self) -> tuple[int, int]:
        commits = sum(client.commits for client in self.clients)
        return commits, sum(len(client.rows) for client in self.clients)


def renewed(old: Client) -> Client:
    """A thread runs once; the next one goes on with the same model."""
    client = Client(old.stack, old.schema, old.number, "")
    for name in ("random", "rows", "next_id", "transaction", "uncertain", "commits", "errors"):
        setattr(client, name, getattr(old, name))
    return client
