"""Evidence of the keeper's zone, simulated: who asks for it, who refuses it, what it is bound to.

Mechanism: a client asks in message 1 of the handshake; the keeper's document is bound to that
message and to its keys; `confide attest`, proxies and `confide verify result` check it by a policy.
Right answer: a session begins only with evidence that the policy takes, and before the client has
said who it is. A bug would let a session begin with simulated evidence that nobody asked for, with
another program's, or with none."""

import contextlib
import json
import os
import subprocess
import tomllib

import psycopg
import pytest
from stack import PG_BIN, alive, as_user, free_port, kill
from waiting import until


class Tools:
    """The commands of this stack, and policies."""

    def __init__(self, stack, directory):
        self.stack, self.directory = stack, directory
        self.state = stack.data.parent
        self.measurement = self.confide("measure", self.state / "bin" / "confide-keeper")[1].strip()

    def confide(self, *arguments) -> tuple[int, str]:
        command = [self.state / "bin" / "confide", *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def attest(self, *arguments, dbname=None) -> tuple[int, str]:
        where = ("--bindir", PG_BIN, "--dbname", dbname or self.stack.dba_url)
        return self.confide("attest", *where, *arguments)

    def policy(self, *measurements, name="policy.toml"):
        file = self.directory / name
        file.write_text(f"[simulated]\nmeasurements = {json.dumps(measurements)}\n")
        file.chmod(0o644)
        return file


@pytest.fixture
def tools(stack, open_path):
    return Tools(stack, open_path)


@contextlib.contextmanager
def proxy(stack, **settings):
    """Another proxy before the same server; the address of its database."""
    state = stack.data.parent
    port = free_port()
    environment = {f"CONFIDE_PROXY_{key.upper()}": str(value) for key, value in settings.items()}
    environment |= {"CONFIDE_PROXY_LISTEN": f"127.0.0.1:{port}"}
    command = [state / "bin" / "confide-proxy", "--config", state / "proxy" / "proxy.toml"]
    with (stack.logs / "attesting-proxy.log").open("a") as log:
        process = subprocess.Popen(
            as_user("confide-proxy", command),
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
        )
    info = psycopg.conninfo.conninfo_to_dict(stack.app_url)
    url = psycopg.conninfo.make_conninfo(**{**info, "host": "127.0.0.1", "port": str(port)})

    def listens():
        assert process.poll() is None, "the proxy does not start"
        with contextlib.suppress(psycopg.OperationalError):
            show(url)
            return True

    try:
        until(listens, "the proxy listens")
        yield url
    finally:
        if alive(process.pid):
            kill(process.pid)
        process.wait()


def show(url) -> dict[str, str]:
    """What the admin console knows of evidence."""
    console = psycopg.conninfo.make_conninfo(url, dbname="confide")
    done = subprocess.run(
        [PG_BIN / "psql", "-X", "-A", "-t", "-d", console, "-c", "SHOW ATTESTATION"],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise psycopg.OperationalError(done.stderr)
    return dict(line.split("|", 1) for line in done.stdout.splitlines())


def handshakes(dba) -> int:
    query = "SELECT value FROM confide.stat_keeper() WHERE name = 'handshakes_total'"
    return dba.execute(query).fetchone()[0]


def test_attest_says_what_it_saw(tools, stack):
    code, said = tools.attest("--simulated")
    assert code == 0, said
    assert "accepted: simulated" in said
    assert "SIMULATED: this proves nothing" in said
    assert tools.measurement in said
    assert stack.keeper_key().split()[-1] in said
    policy = tools.policy(tools.measurement)
    code, said = tools.attest("--simulated", "--policy", policy)
    assert code == 0, said


@pytest.mark.parametrize(
    ("word", "arguments"),
    [
        ("(simulated)", ()),  # nobody asked for simulated evidence
        ("(measurement)", ("--simulated",)),
    ],
)
def test_attest_refuses(tools, word, arguments):
    policy = tools.policy("00" * 48)
    code, said = tools.attest("--policy", policy, *arguments)
    assert (code, word in said) == (1, True), said


def test_attest_exit_codes(tools, stack):
    code, said = tools.attest()
    assert code == 2
    assert "--policy" in said
    wrong = tools.policy("not a measurement")
    code, said = tools.attest("--policy", wrong)
    assert code == 2
    assert "hexadecimal" in said
    nowhere = psycopg.conninfo.make_conninfo(stack.dba_url, port=str(free_port()))
    code, said = tools.attest("--simulated", dbname=nowhere)
    assert code == 4, said
    other = tools.confide("keygen", "keeper", "--out", tools.directory / "other.key")[1].strip()
    code, said = tools.attest("--simulated", "--keeper-key", other)
    assert code == 1
    assert "another keeper" in said


def test_proxy_attests_each_session(tools, stack, schema):
    """Also after the keeper was started anew: then an open session has a handshake of its own."""
    policy = tools.policy(tools.measurement)
    listening = proxy(stack, attest="simulated", attest_policy=policy)
    with listening as url, psycopg.connect(url, autocommit=True) as app:
        app.execute(f'SET search_path = "{schema}"')
        app.execute("CREATE TABLE t (v enc_int4)")
        app.execute("INSERT INTO t VALUES (41)")
        seen = show(url)
        assert (seen["attest"], seen["kind"], seen["refused"]) == (
            "simulated",
            "simulated",
            "0",
        )
        assert seen["measurement"] == tools.measurement
        before = int(seen["accepted"])
        assert before >= 1
        stack.kill_keeper()
        stack.start_keeper()

        def works():
            with contextlib.suppress(psycopg.Error):
                return app.execute("SELECT v + 1 FROM t").fetchone() == (42,)

        until(works, "the session works again")
        after = show(url)
        assert int(after["accepted"]) > before
        assert after["refused"] == "0"


@pytest.mark.parametrize(
    ("measurement", "attest", "word"),
    [("00" * 48, "simulated", "(measurement)"), (None, "require", "(simulated)")],
)
def test_proxy_refuses(tools, stack, dba, measurement, attest, word):
    """No session begins, and the keeper does not learn who the client is."""
    policy = tools.policy(measurement or tools.measurement)
    with proxy(stack, attest=attest, attest_policy=policy) as url:
        before = handshakes(dba)
        with pytest.raises(psycopg.OperationalError, match="evidence is refused"):
            psycopg.connect(url)
        assert handshakes(dba) == before
        seen = show(url)
        assert seen["accepted"] == "0"
        assert int(seen["refused"]) >= 1
        assert word in seen["last_refusal"]


def test_require_needs_a_policy(stack):
    """A proxy without one would take anybody's machine, or nothing."""
    state = stack.data.parent
    done = subprocess.run(
        as_user(
            "confide-proxy",
            [state / "bin" / "confide-proxy", "--config", state / "proxy" / "proxy.toml"],
        ),
        env={**os.environ, "CONFIDE_PROXY_ATTEST": "require"},
        capture_output=True,
        text=True,
        cwd="/",
    )
    assert done.returncode == 2
    assert "attest_policy" in done.stderr


def test_evidence_in_signed_results(tools, app):
    """It says whose signing key it is: no key need be known before. It cannot be exchanged."""
    app.execute("CREATE TABLE t (v enc_int4)")
    app.execute("INSERT INTO t VALUES (7)")
    text = app.execute("SELECT v FROM t WITH SIGNATURE 'n'").fetchone()[0]
    file = tools.directory / "result.json"
    file.write_text(text)
    policy = tools.policy(tools.measurement)
    asked = ("verify", "result", file, "--evidence", policy)
    code, said = tools.confide(*asked, "--simulated")
    assert (code, "evidence: simulated" in said) == (0, True), said
    # A policy alone does not take simulated evidence, nor that of another program.
    code, said = tools.confide(*asked)
    assert code == 1
    assert "(simulated)" in said
    other = tools.policy("00" * 48, name="other.toml")
    code, said = tools.confide("verify", "result", file, "--evidence", other, "--simulated")
    assert code == 1
    assert "(measurement)" in said
    wrong = tools.confide("keygen", "keeper", "--out", tools.directory / "wrong.key")[0]
    assert wrong == 0
    key = tools.confide("pubkey", "--signing", tools.directory / "wrong.key")[1].strip()
    code, said = tools.confide(*asked, "--simulated", "--key", key)
    assert code == 1
    assert "another signing key" in said
    # Taken out: the signature is over the evidence, too.
    bundle = json.loads(text)
    bundle["result"]["evidence"] = ""
    file.write_text(json.dumps(bundle))
    code, said = tools.confide(*asked, "--simulated")
    assert code == 1
    assert "the file has none" in said
    code, _ = tools.confide("verify", "result", file, "--key", signing_key(tools))
    assert code == 1


def test_query(tools, stack, app, schema):
    """Asked, verified and kept in one command; what does not verify is not written."""
    app.execute("CREATE TABLE q (v enc_int4)")
    app.execute("INSERT INTO q VALUES (7)")
    out = tools.directory / "answer.json"
    policy = tools.policy(tools.measurement)
    statement = f'SELECT v FROM "{schema}".q;'
    asked = ("query", statement, "--bindir", PG_BIN, "--dbname", stack.app_url, "--out", out)
    code, said = tools.confide(*asked, "--evidence", policy, "--simulated")
    assert (code, "verified: the whole result" in said) == (0, True), said
    assert json.loads(out.read_text())["rows"] == [["7"]]
    again = ("verify", "result", out, "--key", signing_key(tools))
    assert tools.confide(*again)[0] == 0
    # The compact form is the same result.
    long = len(out.read_bytes())
    more = ("--signed", "--compact", "--evidence", policy, "--simulated")
    assert tools.confide(*asked, *more)[0] == 0
    assert len(out.read_bytes()) < long
    code, said = tools.confide(*again)
    assert (code, "verified: the whole result" in said) == (0, True), said
    out.write_bytes(out.read_bytes()[:-1] + b"x")
    assert tools.confide(*again)[0] == 1
    out.unlink()
    other = tools.policy("00" * 48, name="other.toml")
    code, said = tools.confide(*asked, "--evidence", other, "--simulated")
    assert (code, "(measurement)" in said) == (1, True), said
    assert not out.exists()


def signing_key(tools) -> str:
    return tools.confide("pubkey", "--signing", tools.state / "keeper" / "keeper.key")[1].strip()


def test_keeper_without_its_provider(stack, tools):
    """A keeper that was told to run in a confidential guest does not start elsewhere."""
    command = [tools.state / "bin" / "confide-keeper", "--config"]
    command += [tools.state / "keeper" / "keeper.toml"]
    config = tomllib.loads((tools.state / "keeper" / "keeper.toml").read_text())
    keys = {"CONFIDE_KEEPER_EVIDENCE": "tsm:/nowhere", "CONFIDE_KEEPER_DATA_DIR": ""}
    keys["CONFIDE_KEEPER_SOCKET"] = config["socket"] + ".other"
    keys["CONFIDE_KEEPER_PID_FILE"] = ""
    done = subprocess.run(
        as_user("confide-keeper", command),
        env={**os.environ, **keys},
        capture_output=True,
        text=True,
        cwd="/",
    )
    assert done.returncode == 1
    assert "is this a confidential guest" in done.stderr
