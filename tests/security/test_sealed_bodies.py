"""Constants in bodies of routines that are strings: the catalog has them sealed.

Mechanism: the proxy seals a constant that meets something protected in a body; the server keeps it
as an envelope of a constant of the catalog, as one of a default is printed. Right: routines do what
they do on plain tables, in every client's session, also later and elsewhere; no catalog, log or
dump has the value; the envelope is no better in another place than that of a default. Bug: the
constant in `pg_proc.prosrc`, an envelope that only one session opens, or one that tells its value
to a superuser.
"""

import psycopg
import pytest
from dumps import another_database, tool
from results import run

SECRETS = ("Nonesuch7c1", "Openly7c2", "4471129", "Written7c3")
TABLES = """
CREATE TABLE ticket (id int PRIMARY KEY, note enc_text, status enc_text, cost enc_numeric(9, 2),
    kind text);
CREATE FUNCTION filled() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    new.note := coalesce(new.note, 'Nonesuch7c1');
    if new.status = 'Openly7c2' then
        new.kind := 'fresh';
    end if;
    IF NEW.cost > 4471129 THEN
        RAISE EXCEPTION 'too much' USING ERRCODE = '23514';
    END IF;
    RETURN new;
END $$;
CREATE TRIGGER filled BEFORE INSERT OR UPDATE ON ticket FOR EACH ROW EXECUTE FUNCTION filled();
CREATE FUNCTION more(who int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ticket (id, note) VALUES (who, 'Written7c3');
END $$;
CREATE FUNCTION written() RETURNS bigint LANGUAGE sql AS $$
    SELECT count(*) FROM ticket WHERE note = 'Written7c3' $$
"""
OTHERS = [
    ("enc_", ""),
    ("ticket", "slip"),
    ("filled", "complete"),
    ("written", "wrote"),
    ("more(", "again("),
    ("7c", "7p"),
    ("44711", "55711"),
    # A field of NEW with the name of any protected column counts as protected.
    ("note", "remark"),
    ("status", "state"),
    ("cost", "price"),
]
USED = [
    "INSERT INTO ticket VALUES (1, NULL, 'Openly7c2', 5), (2, 'a', 'closed', 6), (3, NULL, '', 7)",
    "INSERT INTO ticket VALUES (4, 'b', 'c', 4471130)",
    "SELECT more(5)",
    "UPDATE ticket SET status = 'Openly7c2' WHERE id = 2",
    "SELECT id, note, status, cost, kind FROM ticket ORDER BY id",
    "SELECT written()",
    "TRUNCATE ticket",
]


def plain(sql):
    """Of plain types, other names and other constants."""
    for word, other in OTHERS:
        sql = sql.replace(word, other)
    return sql


def made(connection, sql):
    for statement in sql.strip().split(";\nCREATE "):
        connection.execute("CREATE " + statement.removeprefix("CREATE "))


def as_on_plain_tables(one, other):
    for sql in USED:
        ours, theirs = run(one, sql), run(other, plain(sql))
        rows = [tuple(f and f.replace("7p", "7c") for f in row) for row in theirs.rows]
        assert (ours.sqlstate, ours.rows) == (theirs.sqlstate, rows), (sql, ours.message)


@pytest.fixture
def twins(app, plain_twin):
    made(app, TABLES)
    made(plain_twin, plain(TABLES))
    return app, plain_twin


def bodies(connection):
    rows = connection.execute(
        "SELECT prosrc FROM pg_proc WHERE proname IN ('filled', 'more', 'written')"
    )
    return [body for (body,) in rows]


def test_in_every_session(stack, schema, twins, dba):
    before = stack.log_sizes()
    as_on_plain_tables(*twins)
    for body in bodies(dba):
        assert "cfd1." in body
        assert not any(secret in body for secret in SECRETS), body
    # Again in the session, whose plans are kept, and in another one.
    as_on_plain_tables(*twins)
    with stack.connect_app() as other:
        other.execute(f'SET search_path = "{schema}"')
        as_on_plain_tables(other, twins[1])
        # As it is shown it can be made again.
        for (definition,) in other.execute(
            "SELECT pg_get_functiondef(oid) FROM pg_proc "
            "WHERE proname IN ('filled', 'more', 'written')"
        ).fetchall():
            assert not any(secret in definition for secret in SECRETS)
            other.execute(definition)
        as_on_plain_tables(other, twins[1])
    assert all("cfd1." in body for body in bodies(dba))
    seen = stack.logged_since(before)
    assert not [secret for secret in SECRETS if secret in seen]


def test_envelope_in_other_places(stack, schema, twins, dba):
    """Whoever copies it gets what he gets with that of a default."""
    app = twins[0]
    app.execute("CREATE TABLE shelf (id int, name enc_text DEFAULT 'Nonesuch7c1')")
    app.execute("CREATE TABLE apart (a enc_text)")
    app.execute("INSERT INTO apart VALUES ('Nonesuch7c1')")
    app.execute("INSERT INTO shelf VALUES (1, 'Nonesuch7c1'), (2, 'other')")
    body = next(body for body in bodies(dba) if "coalesce" in body)
    ours = body[body.index("'cfd1.") + 1 :].split("'")[0]
    default = (
        run(
            dba,
            "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'shelf'::regclass",
        )
        .rows[0][0]
        .split("'")[1]
    )
    for sql in (
        "SELECT id FROM shelf WHERE name = '%s'::enc_text",
        "SELECT '%s'::enc_text < 'x'::enc_text",
        "INSERT INTO shelf VALUES (3, '%s')",
        "UPDATE shelf SET name = '%s'::enc_text",
        "SELECT length('%s'::enc_text)::text",
        "SELECT name = ANY (ARRAY['%s'::enc_text]) FROM shelf",
    ):
        mine, usual = run(dba, sql % ours), run(dba, sql % default)
        assert mine.sqlstate is not None, sql
        assert (mine.sqlstate, mine.message) == (usual.sqlstate, usual.message), sql
    # Planted by a superuser in a client's session it may do what that default may, which the
    # superuser plants as a view; not what no statement and no definition of a client allows.
    dba.execute(f"CREATE VIEW shown AS SELECT '{default}'::enc_text AS it")
    dba.execute("GRANT SELECT ON shown TO PUBLIC")
    tried = [
        (f"'{ours}'::pg_catalog.enc_text", "ours"),
        (f"'{default}'::pg_catalog.enc_text", "default"),
        ("(SELECT it FROM shown)", "view"),
    ]
    allowed = {}
    for table in ("shelf WHERE name", "apart WHERE a"):
        for constant, name in tried:
            dba.execute(
                "CREATE OR REPLACE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                f"IF EXISTS (SELECT FROM {table} = {constant}) "
                "THEN new.kind := 'found'; END IF; RETURN new; END $$"
            )
            dba.execute(
                "CREATE OR REPLACE TRIGGER planted BEFORE INSERT ON ticket "
                "FOR EACH ROW EXECUTE FUNCTION planted()"
            )
            with stack.connect_app() as other:
                other.execute(f'SET search_path = "{schema}"')
                outcome = run(other, "INSERT INTO ticket (id, kind) VALUES (90, 'z')")
                allowed[table, name] = outcome.sqlstate
                assert outcome.sqlstate in (None, "42501"), outcome
                run(other, "TRUNCATE ticket")
    dba.execute("DROP FUNCTION planted() CASCADE")
    for table in ("shelf WHERE name", "apart WHERE a"):
        assert len({allowed[table, name] for _, name in tried}) == 1, allowed
    assert allowed["apart WHERE a", "ours"] == "42501"


def test_constants_that_stay_refused(twins):
    for body in (
        # Said in the clear elsewhere.
        "RAISE NOTICE 'Secret7c9'; NEW.note := 'Secret7c9'; RETURN NEW;",
        # Of two types.
        "IF NEW.cost > 7719911 AND NEW.id = 7719911 THEN RETURN NULL; END IF; RETURN NEW;",
        "EXECUTE 'SELECT $1' USING NEW.note, 'Secret7c9'; RETURN NEW;",
    ):
        outcome = run(
            twins[0],
            f"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$",
        )
        assert outcome.sqlstate == "0A000", body
        assert "7c9" not in outcome.message, body


def test_blocks(twins):
    app = twins[0]
    app.execute(
        "DO $$ BEGIN INSERT INTO ticket (id, note) VALUES (1, 'Written7c3'); "
        "IF NOT EXISTS (SELECT FROM ticket WHERE note = 'Written7c3') "
        "THEN RAISE EXCEPTION 'lost'; END IF; END $$"
    )
    assert run(app, "SELECT note FROM ticket").rows == [("Written7c3",)]


def test_without_a_client(stack, twins, dba):
    with pytest.raises(psycopg.errors.Error):
        dba.execute("INSERT INTO ticket (id) VALUES (70)")


def test_after_the_keeper(stack, twins):
    """Plans that a session keeps have constants of the keeper before."""
    app = twins[0]
    for _ in range(8):
        app.execute("INSERT INTO ticket (id) VALUES (1)")
        app.execute("TRUNCATE ticket")
    stack.kill_keeper()
    stack.up()
    # The first statements tell that the values before are gone.
    for n in range(2):
        run(app, f"INSERT INTO ticket (id) VALUES ({n})")
    app.execute("TRUNCATE ticket")
    as_on_plain_tables(*twins)


@pytest.mark.parametrize("source", ["straight", "proxy"])
def test_dump(stack, schema, twins, source):
    """Into another database: with a ticket, as defaults."""
    address = stack.dba_url if source == "straight" else stack.app_url
    dump = tool("pg_dump", "-d", address, "-n", schema)
    assert not [secret for secret in SECRETS if secret.encode() in dump]
    with another_database(stack) as addresses:
        env = stack.restoring("restored", "--uses", "0")
        tool(
            "psql",
            "-X",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            addresses[source],
            stdin=dump,
            env=env,
        )
        with psycopg.connect(addresses["proxy"], autocommit=True) as other:
            other.execute(f'SET search_path = "{schema}"')
            as_on_plain_tables(other, twins[1])
