"""Attacks on clients' sessions: joining one with data from PostgreSQL's memory, using one after its
client has left, and keeping one busy without its client.

Mechanism: a session's leader makes a random pass for each statement that may have workers, and
nobody can join before or after it; a leaving client sends a message sealed with the session's key;
a session that its client does not renew ends. Right: nobody can join an idle session; code that
runs at a backend's end, or in a statement that never ends, has no operators. Bug: a look at the
memory, or a backend that is kept, gives the client's session forever.
"""

import contextlib
import os
import re
import socket
import threading

import psycopg
import pytest
from libraries import built
from plans import force_workers
from stack import ROOT, RUN, Stack
from waiting import until

pytestmark = pytest.mark.ten(7)

SOURCE = """
#include "postgres.h"
#include <sys/socket.h>
#include <sys/un.h>
#include "access/xact.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(spy_memory);
Datum spy_memory(PG_FUNCTION_ARGS)
{
    bool found;
    Size size = PG_GETARG_INT64(0);
    bytea *copy = palloc(size + VARHDRSZ);

    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    memcpy(VARDATA(copy), ShmemInitStruct("confide sessions", size, &found), size);
    LWLockRelease(AddinShmemInitLock);
    SET_VARSIZE(copy, size + VARHDRSZ);
    PG_RETURN_BYTEA_P(copy);
}

PG_FUNCTION_INFO_V1(spy_join);
Datum spy_join(PG_FUNCTION_ARGS)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    bytea *hello = PG_GETARG_BYTEA_PP(1);
    bytea *welcome = palloc0(64 + VARHDRSZ);
    int sock = socket(AF_UNIX, SOCK_STREAM, 0);

    strlcpy(address.sun_path, text_to_cstring(PG_GETARG_TEXT_PP(0)), sizeof(address.sun_path));
    if (connect(sock, (struct sockaddr *) &address, sizeof(address)) != 0 ||
        send(sock, VARDATA_ANY(hello), VARSIZE_ANY_EXHDR(hello), 0) < 0 ||
        recv(sock, VARDATA(welcome), 64, MSG_WAITALL) != 64)
        elog(ERROR, "cannot ask the keeper: %m");
    close(sock);
    SET_VARSIZE(welcome, 64 + VARHDRSZ);
    PG_RETURN_BYTEA_P(welcome);
}

static void
last_acts(int code, Datum arg)
{
    StartTransactionCommand();
    PushActiveSnapshot(GetTransactionSnapshot());
    SPI_connect();
    SPI_execute((char *) arg, false, 0);
    SPI_finish();
    PopActiveSnapshot();
    CommitTransactionCommand();
}

PG_FUNCTION_INFO_V1(spy_stay);
Datum spy_stay(PG_FUNCTION_ARGS)
{
    char *sql = text_to_cstring(PG_GETARG_TEXT_PP(0));

    before_shmem_exit(last_acts, (Datum) MemoryContextStrdup(TopMemoryContext, sql));
    PG_RETURN_VOID();
}
"""

FUNCTIONS = [
    "CREATE FUNCTION spy_memory(int8) RETURNS bytea AS '{file}', 'spy_memory' LANGUAGE C",
    "CREATE FUNCTION spy_join(text, bytea) RETURNS bytea AS '{file}', 'spy_join' LANGUAGE C STRICT",
    "CREATE FUNCTION spy_stay(text) RETURNS void AS '{file}', 'spy_stay' LANGUAGE C STRICT",
]

# An entry of the memory: number of a session, and its pass.
ENTRY = 24
ACCEPTED, NO_SUCH_SESSION = 0, 4


@pytest.fixture(scope="module")
def library(stack, tmp_path_factory):
    return built(stack, "stay", SOURCE, tmp_path_factory.mktemp("stay"))


@pytest.fixture
def emp(app, dba, library):
    app.execute("CREATE TABLE emp (id int PRIMARY KEY, pay enc_int4)")
    app.execute("INSERT INTO emp VALUES (1, 5200), (2, 100), (3, 7)")
    for function in FUNCTIONS:
        dba.execute(function.format(file=library))
    dba.execute("CREATE TABLE loot (id int, seen int)")
    dba.execute("GRANT ALL ON loot TO app")
    return app


def entries(dba):
    """The entries in PostgreSQL's memory for joining sessions."""
    asked = "SELECT spy_memory(size) FROM pg_shmem_allocations WHERE name = 'confide sessions'"
    memory = bytes(dba.execute(asked).fetchone()[0])
    each = (memory[at : at + ENTRY] for at in range(0, len(memory), ENTRY))
    return [entry for entry in each if any(entry)]


def joined(dba, entry):
    """The keeper's answer to an attempt to join with such an entry."""
    header = (ROOT / "extension" / "src" / "generated" / "contract.h").read_text()
    version = int(re.search(r"CFD_CONTRACT_VERSION\s+(\d+)", header).group(1))
    database = dba.execute("SELECT oid FROM pg_database WHERE datname = current_database()")
    numbers = (version, dba.info.backend_pid, database.fetchone()[0])
    hello = b"CFDH" + b"".join(n.to_bytes(4, "little") for n in numbers) + entry + bytes(8)
    path = dba.execute("SHOW confide.keeper_socket").fetchone()[0]
    welcome = bytes(dba.execute("SELECT spy_join(%s, %s)", [path, hello]).fetchone()[0])
    return int.from_bytes(welcome[8:12], "little")


def test_pass_of_an_idle_session(emp, dba, attack):
    assert emp.execute("SELECT id FROM emp WHERE pay > 50 ORDER BY id").fetchall() == [(1,), (2,)]
    found = entries(dba)
    attack.attempt("a session's pass read while it is idle", bool(found))


def test_pass_of_a_parallel_statement(stack, emp, dba, attack):
    """A pass is there only while a statement may have workers, and is invalid afterwards."""
    force_workers(emp, "on")

    def victim():
        with contextlib.suppress(psycopg.errors.QueryCanceled):
            emp.execute("SELECT id FROM emp WHERE pay > 50 AND pg_sleep(600) IS NOT NULL")

    running = threading.Thread(target=victim)
    running.start()
    try:
        (entry,) = until(lambda: entries(dba), "the statement has announced workers")
        # The leader announces before it publishes.
        status = joined(dba, entry)
        attack.attempt(
            "a pass of a running statement, read from memory",
            status == ACCEPTED,
            "whoever reads the leader's memory is the leader",
        )
    finally:
        emp.cancel()
        running.join()
    until(lambda: not entries(dba), "the statement has withdrawn its pass")
    # Another pass would take the place of this one.
    force_workers(emp, "off")
    emp.execute("SELECT id FROM emp WHERE pay > 50").fetchall()
    status = joined(dba, entry)
    attack.attempt("a pass kept until its statement is over", status == ACCEPTED)
    assert status == NO_SUCH_SESSION


RANKS = "INSERT INTO {}.loot SELECT id, rank() OVER (ORDER BY pay) FROM {}.emp"


def trigger(dba, body):
    dba.execute(
        "CREATE FUNCTION take() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS "
        f"$attack$ BEGIN {body}; RETURN NEW; END $attack$"
    )
    dba.execute("CREATE TRIGGER take BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION take()")


@pytest.mark.parametrize("ends", ["terminate", "vanish", "failed"])
def test_last_acts(stack, emp, dba, schema, attack, ends):
    """Code that a superuser lets a backend run after its client has left has no session."""
    ranks = RANKS.format(f'"{schema}"', f'"{schema}"')
    trigger(dba, f"PERFORM \"{schema}\".spy_stay('{ranks}')")
    with stack.connect_app() as victim:
        victim.execute(f'SET search_path = "{schema}"')
        pid = victim.execute("SELECT pg_backend_pid()").fetchone()[0]
        victim.execute("INSERT INTO emp VALUES (4, 1)")
        victim.execute("SELECT id FROM emp WHERE pay > 50").fetchall()
        if ends == "failed":
            victim.execute("BEGIN")
            with contextlib.suppress(psycopg.Error):
                victim.execute("SELECT 1 / 0")
        if ends == "vanish":
            # Without a word to the proxy.
            with socket.socket(fileno=os.dup(victim.fileno())) as wire:
                wire.shutdown(socket.SHUT_RDWR)
    gone = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s)"
    until(lambda: dba.execute(gone, [pid]).fetchone()[0], "the backend has gone")
    loot = dba.execute("SELECT * FROM loot").fetchall()
    attack.attempt(f"last acts in a client's backend ({ends})", bool(loot))


@pytest.fixture(scope="module")
def leased():
    made = Stack(RUN.with_name(f"{RUN.name}-leased"))
    made.environment["CONFIDE_KEEPER_SESSION_LEASE_SECONDS"] = "6"
    made.up()
    yield made
    made.down("--remove")


def count(dba, name):
    asked = "SELECT value FROM confide.stat_keeper() WHERE name = %s"
    return dba.execute(asked, [name]).fetchone()[0]


def test_statement_that_never_ends(leased, attack):
    """The database keeps a client's statement running, and works in the client's session."""
    with leased.connect_app() as victim, leased.connect_dba() as dba:
        victim.execute("CREATE TABLE emp (id int PRIMARY KEY, pay enc_int4)")
        victim.execute("INSERT INTO emp VALUES (1, 5200), (2, 100)")
        dba.execute("CREATE TABLE loot (state text)")
        ranks = "PERFORM rank() OVER (ORDER BY pay) FROM emp"
        trigger(
            dba,
            f"FOR i IN 1..3000 LOOP BEGIN {ranks}; EXCEPTION WHEN OTHERS THEN "
            "INSERT INTO loot VALUES (SQLSTATE); RETURN NULL; END; "
            "PERFORM pg_sleep(0.02); END LOOP",
        )
        before = count(dba, "leases_over_total")
        with contextlib.suppress(psycopg.Error):
            victim.execute("INSERT INTO emp VALUES (3, 5)")
        refused = dba.execute("SELECT state FROM loot").fetchall()
        attack.attempt("a statement that never ends", refused != [("42501",)])
        assert count(dba, "leases_over_total") > before
        # The client itself goes on: its next statement renews the session.
        dba.execute("DROP TRIGGER take ON emp")
        until(lambda: served(victim), "the client's session goes on")
        dba.execute("DROP TABLE emp, loot; DROP FUNCTION take")


def served(victim):
    """On a busy machine the lease may expire again, which is an error."""
    with contextlib.suppress(psycopg.Error):
        return victim.execute("SELECT id FROM emp WHERE pay > 50 ORDER BY id").fetchall()


@pytest.mark.parametrize("prepared", [False, True])
def test_clients_renew(leased, prepared):
    """A client that works renews its session, even with statements that it prepared before."""
    with leased.connect_app() as client, leased.connect_dba() as dba:
        client.execute("CREATE TABLE own (id int, pay enc_int4)")
        client.execute("INSERT INTO own VALUES (1, 5200)")
        client.prepare_threshold = 0 if prepared else None
        before = count(dba, "renewals_total")
        pays = []

        def renewed():
            with contextlib.suppress(psycopg.Error):
                pays.append(client.execute("SELECT pay FROM own WHERE id = %s", [1]).fetchone())
            return count(dba, "renewals_total") > before

        until(renewed, "the client renews its session")
        assert set(pays) == {(5200,)}
        client.execute("DROP TABLE own")
