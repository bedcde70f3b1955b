"""Maintenance templates: what an administrator without keys may do, and no more.

Mechanism: `confide fix apply` reads a list of actions, queries the database, checks all of them,
and carries them out with a role that may do nothing else. Right: the change, an entry in the log
before and after it, and a template that undoes it; unknown actions and parameters out of range are
refused by a rule before anything is done. Bug: a template does something that it does not name, or
only half of a template is carried out.
"""

import json
import threading

import psycopg
import pytest
from templates import fix
from waiting import until, until_waits

STARTED = """SELECT to_char(backend_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')
             FROM pg_stat_activity WHERE pid = %s"""


@pytest.fixture
def t(app, schema):
    """The name of a table with a plain and a protected column."""
    app.execute("CREATE TABLE t (id int PRIMARY KEY, kind int, name enc_text)")
    app.execute("CREATE INDEX t_name ON t (name)")
    app.execute("CREATE INDEX t_kind ON t (kind)")
    with app.cursor().copy("COPY t FROM STDIN") as copy:
        for i in range(2000):
            copy.write_row((i, i % 7, f"s3cret {i}"))
    return f"{schema}.t"


def setting(dba, name):
    return dba.execute("SELECT current_setting(%s)", [name]).fetchone()[0]


def reloaded(dba, name, value):
    until(lambda: setting(dba, name) == value, f"{name} is {value}")


def test_setting(fixes, dba):
    """A wrong setting is found and fixed, the fix is undone, and both are in the log."""
    before = setting(dba, "lock_timeout")
    assert before != "7s"
    text = fix("set", parameter="deadlock_timeout", value="7s")
    said = fixes.applied(text, "--dry-run")
    assert "deadlock_timeout" in said
    assert "nothing was changed" in said
    assert setting(dba, "deadlock_timeout") == "1s"
    assert not fixes.log.exists()
    said = fixes.applied(text)
    assert "1000ms -> 7s" in said
    reloaded(dba, "deadlock_timeout", "7s")
    fixes.undo()
    reloaded(dba, "deadlock_timeout", "1s")
    entries = [json.loads(line) for line in fixes.log.read_text().splitlines()]
    assert [e["outcome"] for e in entries] == ["begun", "done", "begun", "done"]
    assert [e["action"]["action"] for e in entries] == ["set", "set", "reset", "reset"]


def test_needs_a_restart(fixes, dba):
    """It says so; until then the old value holds."""
    before = setting(dba, "max_connections")
    said = fixes.applied(fix("set", parameter="max_connections", value=50))
    assert "takes effect when the server is restarted" in said
    assert setting(dba, "max_connections") == before
    fixes.undo()


REFUSED = [
    (fix("set", parameter="shared_preload_libraries", value="x"), "setting-listed"),
    (fix("set", parameter="archive_command", value="sh"), "setting-listed"),
    (fix("set", parameter="work_mem", value="1TB"), "setting-range"),
    (fix("set", parameter="work_mem", value="1MB'; SELECT 1; --"), "setting-range"),
    (fix("reindex", relation="pg_catalog.pg_class"), "user-relation"),
    (fix("reindex", relation="nowhere.t"), "exists"),
    (fix("sql", statement="SELECT 1"), "template"),
    (fix("rotate-log", path="/etc/passwd"), "template"),
    (fix("cancel", pid=1, started="x"), "exists"),
    ("[[fix", "template"),
]


@pytest.mark.parametrize(("text", "rule"), REFUSED)
def test_refused(fixes, text, rule):
    """With the rule's name; nothing is done and nothing logged."""
    fixes.refused(text, rule)
    assert not fixes.log.exists()


def test_refused_before_anything_is_done(fixes, dba):
    """The second action is refused: the first was not begun."""
    first = fix("set", parameter="deadlock_timeout", value="9s")
    fixes.refused(first + fix("reindex", relation="nowhere.t"), "exists")
    assert not fixes.log.exists()
    auto = fixes.stack.data / "postgresql.auto.conf"
    assert "deadlock_timeout" not in auto.read_text()


def test_bloated_index(fixes, t, app, dba, schema):
    """An index on a protected column is built anew, without a key, and shrinks; the rows that
    it finds are the same."""
    for _ in range(3):
        app.execute("UPDATE t SET name = name || 'x'")
    size = f"SELECT pg_relation_size('{schema}.t_name')"
    before = dba.execute(size).fetchone()[0]
    fixes.applied(fix("vacuum", relation=t) + fix("reindex", relation=f"{schema}.t_name"))
    assert dba.execute(size).fetchone()[0] < before
    app.execute("SET enable_seqscan = off")
    found = app.execute("SELECT id FROM t WHERE name = 's3cret 77xxx'").fetchall()
    assert found == [(77,)]


def test_storage_and_statistics(fixes, t, dba, schema):
    """Fillfactor and statistics target are changed and go back to what they were."""
    options = f"SELECT reloptions::text FROM pg_class WHERE oid = '{t}'::regclass"
    target = f"""SELECT attstattarget FROM pg_attribute
                 WHERE attrelid = '{t}'::regclass AND attname = 'kind'"""
    fixes.applied(
        fix("fillfactor", relation=t, value=70)
        + fix("statistics", relation=t, column="kind", target=500)
        + fix("analyze", relation=t)
    )
    assert dba.execute(options).fetchone() == ("{fillfactor=70}",)
    assert dba.execute(target).fetchone() == (500,)
    fixes.undo()
    assert dba.execute(options).fetchone() == (None,)
    assert dba.execute(target).fetchone() == (-1,)


def test_indexes(fixes, t, dba, schema):
    """Indexes on plain columns come and go; one on a protected column tells its order, so no
    template makes it; one that keeps rows unique stays."""
    there = f"SELECT indexdef FROM pg_indexes WHERE schemaname = '{schema}' ORDER BY indexname"
    before = dba.execute(there).fetchall()
    new = fix("create-index", index="t_both", relation=t, columns=["kind", "id"])
    fixes.applied(new)
    assert len(dba.execute(there).fetchall()) == len(before) + 1
    fixes.refused(new, "new-name")
    fixes.undo()
    assert dba.execute(there).fetchall() == before
    said = fixes.refused(
        fix("create-index", index="spy", relation=t, columns=["kind", "name"]), "plain-columns"
    )
    assert "name" in said
    fixes.refused(fix("create-index", index="spy", relation=t, columns=["no"]), "exists")
    fixes.refused(fix("drop-index", relation=f"{schema}.t_pkey"), "index-needed")
    fixes.applied(fix("drop-index", relation=f"{schema}.t_kind"), name="drop.toml")
    fixes.undo("drop")
    assert dba.execute(there).fetchall() == before
    said = fixes.applied(fix("drop-index", relation=f"{schema}.t_name"), name="name.toml")
    assert "cannot be undone" in said


def test_hung_statement(fixes, t, app, second, dba, stack):
    """A statement that waits for a lock is cancelled; the session goes on. A process that is
    another session's by now is left alone."""
    app.execute("BEGIN")
    app.execute("UPDATE t SET kind = 0 WHERE id = 1")
    pid = second.info.backend_pid
    (started,) = dba.execute(STARTED, [pid]).fetchone()
    failed = []

    def waits():
        try:
            second.execute("UPDATE t SET kind = 1 WHERE id = 1")
        except psycopg.Error as error:
            failed.append(error.sqlstate)

    thread = threading.Thread(target=waits)
    thread.start()
    until_waits(stack, second, "Lock")
    fixes.refused(fix("cancel", pid=pid, started="2000-01-01 00:00:00.000000"), "same-session")
    assert thread.is_alive()
    said = fixes.applied(fix("cancel", pid=pid, started=started))
    assert "cannot be undone" in said
    thread.join()
    assert failed == ["57014"]
    app.execute("ROLLBACK")
    assert second.execute("SELECT count(*) FROM t").fetchone() == (2000,)
    fixes.refused(fix("terminate", pid=dba.info.backend_pid, started=started), "client-session")


def test_rights(fixes, role, t, dba, schema):
    """The role that executes templates may do what they name and no more: it reads no table,
    not even a plain column, is no superuser, changes no other setting, runs no program."""
    with psycopg.connect(role.url, autocommit=True) as agent:
        for statement in [
            f"SELECT kind FROM {t}",
            f"SELECT name FROM {t}",
            f"UPDATE {t} SET kind = 1",
            "ALTER SYSTEM SET archive_command = 'sh'",
            "ALTER SYSTEM SET shared_preload_libraries = 'x'",
            "ALTER SYSTEM SET fsync = off",
            "COPY (SELECT 1) TO PROGRAM 'sh'",
            "SELECT pg_read_file('/etc/passwd')",
            "CREATE ROLE other",
            "ALTER ROLE confide_fix SUPERUSER",
            "SET ROLE postgres",
            "CREATE EXTENSION file_fdw",
        ]:
            with pytest.raises(psycopg.Error) as error:
                agent.execute(statement)
            assert error.value.sqlstate == "42501", statement


def test_failure_in_the_middle(fixes, t, app, dba, schema):
    """The first action is done, the second fails: the log says so, and what was done can be
    undone."""
    app.execute(f"CREATE VIEW {schema}.v AS SELECT 1 AS x")
    before = setting(dba, "checkpoint_timeout")
    app.execute("BEGIN")
    app.execute("LOCK TABLE t")
    file = fixes.folder / "fix.toml"
    file.write_text(
        fix("set", parameter="checkpoint_timeout", value="11min")
        + fix("fillfactor", relation=t, value=50)
    )
    url = psycopg.conninfo.make_conninfo(fixes.url, options="-c lock_timeout=300ms")
    fixes.url = url
    done = fixes.apply(file.read_text())
    app.execute("ROLLBACK")
    assert done.returncode == 1
    assert "action 2 failed" in done.stderr
    assert "to undo it" in done.stderr
    entries = [json.loads(line) for line in fixes.log.read_text().splitlines()]
    outcomes = [e["outcome"].split(":")[0] for e in entries]
    assert outcomes == ["begun", "done", "begun", "failed"]
    fixes.undo()
    reloaded(dba, "checkpoint_timeout", before)


def test_log(fixes):
    """The log's end is printed; a line taken out is found, and nothing is applied beside a log
    that was altered."""
    text = fix("rotate-log")
    fixes.applied(text)
    fixes.applied(text)
    said = fixes.confide("verify", fixes.log)
    assert said.stdout.startswith("4 entries, end ")
    lines = fixes.log.read_text().splitlines(keepends=True)
    fixes.log.write_text("".join(lines[:1] + lines[2:]))
    assert fixes.confide("verify", fixes.log).returncode == 1
    done = fixes.apply(text)
    assert done.returncode == 1
    assert "altered" in done.stderr
