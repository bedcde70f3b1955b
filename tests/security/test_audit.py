"""The keeper's audit log: who was given what, what was refused, what left.

Mechanism: each line is hashed with all before it and signed by the keeper; the last checkpoint,
which the freshness counter guards, knows where the log was. Right: what is allowed and refused is
there under the principal's name and without values; a log that was altered, tidied, put back or
cut is named, and a keeper whose log lacks what its checkpoint knew does not start. With the bug
whoever has been at the keeper's files leaves no trace.
"""

import subprocess

import pytest
from results import run
from stack import ROOT, Stack, as_user
from waiting import until

SECRET = "Kimberley the secret"


@pytest.fixture(scope="module")
def audited(stack):
    made = Stack(ROOT / ".run" / f"{stack.run.name}-audit")
    made.up()
    yield made
    made.down("--remove")


def confide(stack, *arguments, check=True):
    command = [stack.data.parent / "bin" / "confide", *arguments]
    done = subprocess.run(
        as_user("confide-keeper", command), cwd="/", capture_output=True, text=True
    )
    assert done.returncode == 0 or not check, done.stderr
    return done.stdout.strip() if check else (done.returncode, done.stderr)


def signing_key(stack):
    key = stack.data.parent / "keeper" / "keeper.key"
    return confide(stack, "pubkey", key, "--signing").split()[-1]


def log(stack):
    return stack.data.parent / "keeper" / "data" / "audit"


def shown(stack, *options):
    return confide(stack, "audit", "show", log(stack), *options)


def verified(stack, *options, file=None, check=True):
    file = file or log(stack)
    key = signing_key(stack)
    return confide(stack, "audit", "verify", file, "--key", key, *options, check=check)


@pytest.fixture
def emp(audited):
    with audited.connect_app() as app, audited.connect_dba() as dba:
        app.execute("DROP TABLE IF EXISTS emp CASCADE")
        app.execute("CREATE TABLE emp (id int, name enc_text, pay enc_int4)")
        app.execute(f"INSERT INTO emp VALUES (1, '{SECRET}', 5200)")
        yield app, dba


def test_what_is_in_it(audited, emp):
    app, dba = emp
    assert run(app, "GRANT OWNER public.emp.name TO app").sqlstate is None
    assert run(app, "SELECT confide.mask('public.emp.name', 'constant(x)')").sqlstate is None
    app.execute("CREATE VIEW rich AS SELECT id FROM emp WHERE pay > 1000")
    assert run(dba, "SELECT name || name FROM emp").sqlstate == "42501"
    assert run(dba, "SELECT pay FROM emp").sqlstate is None
    dba.execute(
        "CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN PERFORM 1 FROM public.emp e JOIN generate_series(5000, 5300) g ON e.pay = g; "
        "RETURN NEW; END'"
    )
    dba.execute(
        "CREATE TRIGGER planted BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION planted()"
    )
    assert run(app, "INSERT INTO emp VALUES (2, 'x', 1)").sqlstate == "42501"
    dba.execute("DROP FUNCTION planted CASCADE")
    text = shown(audited)
    assert "started\t-" in text
    assert "GRANT OWNER public.emp.name TO app" in shown(audited, "--kind", "policy", "--by", "app")
    assert "mask of public.emp.name" in text
    assert "public.emp.pay" in shown(audited, "--kind", "standing-grant")
    assert "public.emp.pay" in shown(audited, "--kind", "export")
    assert "app" in shown(audited, "--kind", "key-used")
    refusals = shown(audited, "--kind", "refused")
    assert "\tapp\t42501 " in refusals
    assert "\t-\t42501 " in refusals
    assert SECRET not in text
    assert "5200" not in text
    assert verified(audited).split()[0] == str(len(text.splitlines()))


def test_tampered(audited, emp, open_path):
    """A copy of it, in all ways."""
    lines = log(audited).read_text().splitlines(keepends=True)
    assert len(lines) > 3
    head = open_path / "head"
    head.write_text(verified(audited))
    copy = open_path / "audit"

    def told(changed, *options):
        copy.write_text("".join(changed))
        copy.chmod(0o644)
        head.chmod(0o644)
        return verified(audited, *options, file=copy, check=False)

    assert told(lines, "--head", head)[0] == 0
    altered = [lines[0], lines[1].replace("\t-\t", "\tann\t").replace("app", "ann"), *lines[2:]]
    assert "line 2 was altered" in told(altered)[1]
    assert "records 2 to 2 are missing" in told([lines[0], *lines[2:]])[1]
    assert "records 1 to 1 are missing, or moved" in told([lines[1], lines[0], *lines[2:]])[1]
    assert "was cut" in told(lines[:-1], "--head", head)[1]
    assert told(lines[:-1])[0] == 0  # which is why heads are kept elsewhere


def test_put_back(audited, emp):
    """An older copy of the log, beside the newest store."""
    app, dba = emp
    old = log(audited).read_bytes()
    assert run(app, "GRANT OWNER public.emp.pay TO app").sqlstate is None
    dba.execute("SELECT confide.checkpoint()")
    audited.kill_keeper()
    log(audited).write_bytes(old)
    state = audited.data.parent
    keeper = [state / "bin" / "confide-keeper", "--config", state / "keeper" / "keeper.toml"]

    def started(*more):
        done = subprocess.run(
            as_user("confide-keeper", [*keeper, *more]),
            cwd="/",
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stderr

    code, message = started()
    assert code == 1
    assert "the log was cut" in message
    assert started("--accept-backup")[0] == 0
    audited.up()
    until(lambda: run(app, "SELECT name FROM emp").sqlstate is None, "the keeper serves")
    assert "goes on without record" in shown(audited, "--kind", "accepted")
    assert verified(audited)
