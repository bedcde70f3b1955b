"""Common parts of the tests of garbage collection: verification, collections, counts of values, and
clients that change rows in all ways. (Set CONFIDE_SEED and CONFIDE_GC_SECONDS for longer runs.)"""

import os
import random
import re
import threading
from contextlib import contextmanager

from waiting import until

SEED = os.environ.get("CONFIDE_SEED", "1")
SECONDS = int(os.environ.get("CONFIDE_GC_SECONDS", "10"))


def verify(connection, table: str = "t") -> dict[str, tuple[int, int]]:
    """What is found by place and name: identifiers, and those that name nothing."""
    rows = connection.execute(
        "SELECT place, name, fids, unresolved FROM confide.verify(%s)", [table]
    )
    return {f"{place} {name}": (fids, bad) for place, name, fids, bad in rows}


def slots(dba, table: str = "t") -> int:
    """Values that the keeper holds for a table."""
    sql = """SELECT coalesce(sum(value::int8), 0) FROM confide.stat_keeper()
             WHERE name LIKE format('column.%%s.%%s.%%%%.live',
                 (SELECT oid FROM pg_database WHERE datname = current_database()),
                 %s::regclass::oid)"""
    return int(dba.execute(sql, [table]).fetchone()[0])


def collect(connection, table: str = "t") -> int:
    """Values freed. A collection that has waited for long is postponed, and comes again."""
    swept = 0

    def collected():
        nonlocal swept
        sql = "SELECT swept, postponed FROM confide.gc(%s)"
        rows = connection.execute(sql, [table]).fetchall()
        swept += sum(number for number, _ in rows)
        return not any(postponed for _, postponed in rows)

    until(collected, "the collection is not postponed")
    return swept


def vacuum(connection, table: str = "t", options: str = "VERBOSE") -> None:
    """Removes all dead rows: a snapshot elsewhere in the database (of an ANALYZE of autovacuum's)
    keeps them for a while."""
    told: list[str] = []

    def note(said):
        told.append(said.message_primary)

    def removed():
        told.clear()
        connection.execute(f"VACUUM ({options}) {table}")
        left = re.findall(r"(\d+) are dead but not yet removable", "\n".join(told))
        return left and not any(map(int, left))

    connection.add_notice_handler(note)
    until(removed, f"{table} has no dead rows")
    connection.remove_notice_handler(note)


def vacuumed(dba, table: str, values: int) -> int:
    """Values freed, at least so many: vacuums and collects until then, since a snapshot elsewhere
    (an ANALYZE of autovacuum's) keeps deleted rows for a while."""
    dba.execute("SET confide.gc = off")
    swept = 0

    def enough():
        nonlocal swept
        dba.execute(f"VACUUM {table}")
        swept += collect(dba, table)
        return swept >= values

    until(enough, f"{values} values of {table} are freed")
    return swept


def postponed(connection, table: str = "t") -> str | None:
    return connection.execute("SELECT postponed FROM confide.gc(%s)", [table]).fetchone()[0]


def sound(connection, table: str = "t") -> None:
    """No identifier is without a value. The keeper may not have read yet what was adopted by a
    transaction that was rolled back: nobody has waited for it (docs/durability.md)."""
    until(
        lambda: all(missing == 0 for _, missing in verify(connection, table).values()),
        f"each identifier in {table} has a value",
    )


@contextmanager
def slowly(connection, pages: int):
    """Collections of this connection sleep 0.1 s after every few pages."""
    connection.execute("SET vacuum_cost_delay = 100")
    connection.execute(f"SET vacuum_cost_limit = {pages}")
    connection.execute("SET vacuum_cost_page_hit = 1")
    yield
    for name in ("delay", "limit", "page_hit"):
        connection.execute(f"RESET vacuum_cost_{name}")


class Worker(threading.Thread):
    """Changes rows of its own in all ways; the plain column tells what the others must be."""

    def __init__(self, stack, schema: str, number: int, stop: threading.Event):
        super().__init__()
        self.connection = stack.connect_app(options=f"-c search_path={schema}")
        self.chance = random.Random(f"{SEED}/{number}")
        self.ids = range(number * 1000, number * 1000 + 200)
        self.stop = stop
        self.number = number
        self.steps = 0
        self.error: Exception | None = None

    def run(self):
        try:
            while not self.stop.is_set():
                self.step()
                self.steps += 1
        except Exception as error:
            self.error = error
        self.connection.close()

    def change(self):
        i, p = self.chance.choice(self.ids), self.chance.randrange(10**6)
        run = self.connection.execute
        kind = self.chance.randrange(6)
        if kind == 0:
            run("DELETE FROM t WHERE id = %s", [i])
        elif kind == 1:  # the identifiers move with the row
            run("UPDATE t SET filler = repeat('f', %s) WHERE id = %s", [p % 300, i])
        elif kind == 2:
            run("UPDATE t SET p = %s, v = %s, s = %s WHERE id = %s", [p, p, str(p), i])
        elif kind == 3:
            query = "SELECT p, v, s FROM t WHERE v BETWEEN %s AND %s"
            rows = run(query, [p, p + 50_000]).fetchall()
            assert all(v == p and s == str(p) for p, v, s in rows), rows
        else:
            row = [i, p, p, str(p), "x" * (p % 300)]
            run("INSERT INTO t VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING", row)

    def step(self):
        run = self.connection.execute
        end = self.chance.randrange(6)
        if end > 2:
            return self.change()
        run("BEGIN")
        self.change()
        run("SAVEPOINT s")
        self.change()
        if self.chance.random() < 0.5:
            run("ROLLBACK TO s")
        self.change()
        if end == 2:
            run(f"PREPARE TRANSACTION 'gc {self.number}'")
            done = self.chance.choice(["COMMIT", "ROLLBACK"])
            run(f"{done} PREPARED 'gc {self.number}'")
        else:
            run(["COMMIT", "ROLLBACK"][end])
