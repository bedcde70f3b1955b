"""What the tests of a file leave at the stack would decide about the next file, which may be
another one in another run. Schemas and what stands in public are dropped; what else outlives a
connection and is not as it was is told at the end of the run.

It does not look into other databases, nor at what stacks of a test's own leave.
"""

import os
from collections import Counter

from stack import children

SCHEMAS = """SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_'
    AND nspname NOT IN ('public', 'information_schema', 'confide')"""
IN_PUBLIC = """SELECT FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass
    AND refobjid = 'public'::regnamespace"""
# As initdb makes it.
PUBLIC = """DROP SCHEMA public CASCADE; CREATE SCHEMA public AUTHORIZATION pg_database_owner;
    COMMENT ON SCHEMA public IS 'standard public schema'; GRANT USAGE ON SCHEMA public TO PUBLIC"""

# The rows of a kind's query are the things that there are of it.
KINDS = {
    "role": "SELECT rolname, rolsuper, rolbypassrls, rolconnlimit FROM pg_roles"
    " WHERE rolname !~ '^pg_'",
    "member": "SELECT roleid::regrole, member::regrole FROM pg_auth_members",
    "setting of a role or database": "SELECT setdatabase, setrole::regrole, unnest(setconfig)"
    " FROM pg_db_role_setting",
    "setting of the server": "SELECT name, setting FROM pg_file_settings"
    " WHERE sourcefile LIKE '%.auto.conf'",
    "database": "SELECT datname, datacl FROM pg_database",
    "tablespace": "SELECT spcname FROM pg_tablespace",
    "replication slot": "SELECT slot_name FROM pg_replication_slots WHERE NOT temporary",
    "prepared transaction": "SELECT gid FROM pg_prepared_xacts",
    "publication": "SELECT pubname FROM pg_publication",
    "subscription": "SELECT subname FROM pg_subscription",
    "event trigger": "SELECT evtname FROM pg_event_trigger",
    "extension": "SELECT extname FROM pg_extension",
    "language": "SELECT lanname, lanacl FROM pg_language",
    "foreign server": "SELECT srvname FROM pg_foreign_server",
    "default privilege": "SELECT defaclrole::regrole, defaclobjtype, defaclacl FROM pg_default_acl",
    "schema": "SELECT nspname, nspowner::regrole, nspacl FROM pg_namespace WHERE nspname IN"
    " ('public', 'confide')",
    "relation": "SELECT oid::regclass FROM pg_class WHERE relnamespace IN"
    " ('public'::regnamespace, 'confide'::regnamespace)",
    "routine": "SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
    "operator": "SELECT oid::regoperator FROM pg_operator"
    " WHERE oprnamespace = 'public'::regnamespace",
    "type": "SELECT oid::regtype FROM pg_type WHERE typnamespace = 'public'::regnamespace",
    "cast": "SELECT castsource::regtype, casttarget::regtype FROM pg_cast WHERE oid >= 16384",
    "large object": "SELECT oid FROM pg_largeobject_metadata",
}
THINGS = " UNION ALL ".join(f"SELECT '{kind}', t::text FROM ({q}) t" for kind, q in KINDS.items())

# The files that decide what keeper and proxy allow.
FILES = ("keeper/keeper.toml", "keeper/clients", "proxy/proxy.toml", "proxy/users.toml")


def state(stack) -> Counter:
    """Of each kind, each thing."""
    with stack.connect_dba() as dba:
        found = [tuple(row) for row in dba.execute(THINGS).fetchall()]
    for name in FILES:
        file = stack.data.parent / name
        found.append((name, file.read_text() if file.exists() else ""))
    # pytest sets PYTEST_CURRENT_TEST.
    found += [
        ("environment", f"{name}={value}")
        for name, value in os.environ.items()
        if name != "PYTEST_CURRENT_TEST"
    ]
    found += [("process", command(pid)) for pid in children(os.getpid())]
    return Counter(thing for thing in found if thing[1])


def command(pid: int) -> str:
    """Nothing for a process that has ended."""
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read().replace("\0", " ").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def reset(stack) -> None:
    """Takes back what tests leave by habit: schemas, what is in public, the right to statistics."""
    with stack.connect_dba() as dba:
        dba.execute("SET client_min_messages = error")
        dba.execute("SET lock_timeout = '300s'")
        for (name,) in dba.execute(SCHEMAS).fetchall():
            dba.execute(f'DROP SCHEMA "{name}" CASCADE')
        if dba.execute(IN_PUBLIC).fetchone() is not None:
            dba.execute(PUBLIC)
        dba.execute("REVOKE pg_monitor FROM app")


def differences(before: Counter, after: Counter) -> list[str]:
    added = [f"left: {kind} {what}" for kind, what in (after - before).elements()]
    return added + [f"gone: {kind} {what}" for kind, what in (before - after).elements()]
