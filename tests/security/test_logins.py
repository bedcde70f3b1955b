"""The proxy's own users: passwords by SCRAM, certificates, peers on the Unix socket; and what a
proxy requires before it starts.

Mechanism: users in `users_file` are authenticated by the proxy, which then logs in to the server
with the role's own password. Right: without authentication there is no access, and the server sees
nothing of the connection; setting a role's password as superuser gives no access. Bug: the database
decides who an application is.
"""

import getpass
import os
import shutil
import subprocess

import psycopg
import pytest
from certificates import authority, certificate
from copies import owned, run_as
from stack import PG_BIN, alive, as_user, free_port
from waiting import until

USER = "confide-proxy" if os.geteuid() == 0 else getpass.getuser()
ROLES = {"carol": "carols role", "dave": "daves role", "erin": "erins role"}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    directory = tmp_path_factory.mktemp("certificates")
    for name in ("authority", "stranger"):
        authority(directory, name)
    certificate(directory, "authority", "proxy", "localhost", "subjectAltName=DNS:localhost")
    client = "extendedKeyUsage=clientAuth"
    certificate(directory, "authority", "dave", "dave the client", client)
    certificate(directory, "authority", "other", "somebody else", client)
    certificate(directory, "stranger", "forged", "dave the client", client)
    return directory


class Door:
    """A second proxy, with users of its own."""

    def __init__(self, stack, certificates):
        self.stack, self.certificates, self.port = stack, certificates, free_port()
        self.state = stack.data.parent
        self.home = self.state / "door"
        self.home.mkdir(mode=0o755)
        for name in ("proxy.crt", "proxy.key", "authority.crt"):
            shutil.copy(certificates / name, self.home)
        owned("confide-proxy", self.home)
        self.users = self.home / "users.toml"
        self.add("carol", "--password-file", "-", "--server-password-file", "-", say="at the door")
        self.add("dave", "--certificate", "dave the client", "--server-password-file", "-")
        self.add("erin", "--peer", getpass.getuser(), "--server-password-file", "-")
        self.add("frank", "--peer", "nobody")
        with stack.connect_dba() as dba:
            for role, password in ROLES.items():
                dba.execute(f"CREATE ROLE {role} LOGIN IN ROLE app PASSWORD '{password}'")
        self.start()

    def add(self, name, *options, say=None):
        lines = [say, ROLES.get(name)] if say else [ROLES.get(name, "")]
        command = [self.state / "bin" / "confide", "user", "add", self.users, name, *options]
        done = subprocess.run(
            as_user(USER, command),
            input="".join(f"{line}\n" for line in lines),
            cwd="/",
            text=True,
            capture_output=True,
        )
        assert done.returncode == 0, done.stderr

    def start(self, **more):
        self.log = self.stack.logs / "door.log"
        settings = {
            "LISTEN": f"127.0.0.1:{self.port}",
            "USERS_FILE": str(self.users),
            "UNIX_SOCKET_DIR": str(self.home),
            "TLS_CERT": str(self.home / "proxy.crt"),
            "TLS_KEY": str(self.home / "proxy.key"),
            "TLS_CA": str(self.home / "authority.crt"),
            "TLS_REQUIRED": "true",
            **more,
        }
        environment = {f"CONFIDE_PROXY_{name}": value for name, value in settings.items()}
        command = [self.state / "bin" / "confide-proxy", "--config"]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                as_user(USER, [*command, self.state / "proxy" / "proxy.toml"]),
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
            )
        socket = self.home / f".s.PGSQL.{self.port}"
        until(lambda: socket.exists() or not alive(self.process.pid), "the proxy listens")

    def address(self, user, **more):
        given = {
            "host": "localhost",
            "hostaddr": "127.0.0.1",
            "port": self.port,
            "user": user,
            "dbname": "app",
            "sslmode": "verify-full",
            "sslrootcert": self.certificates / "authority.crt",
            **more,
        }
        return psycopg.conninfo.make_conninfo(**{k: v for k, v in given.items() if v})

    def shows(self, name):
        files = {"sslcert": f"{name}.crt", "sslkey": f"{name}.key"}
        return {option: self.certificates / file for option, file in files.items()}


@pytest.fixture(scope="module")
def door(stack, certificates):
    made = Door(stack, certificates)
    yield made
    made.process.terminate()
    made.process.wait()
    with stack.connect_dba() as dba:
        for role in ROLES:
            dba.execute(f"DROP ROLE IF EXISTS {role}")
    shutil.rmtree(made.home)


def who(address):
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE TEMP TABLE t (v enc_text)")
        connection.execute("INSERT INTO t VALUES ('protected')")
        row = connection.execute("SELECT current_user, v FROM t").fetchone()
        # A result of some size comes through TLS as a whole.
        rows = connection.execute("SELECT repeat('x', 1000) FROM generate_series(1, 2000)")
        assert len(rows.fetchall()) == 2000
        return row


def refused(address):
    with pytest.raises(psycopg.OperationalError) as raised:
        psycopg.connect(address)
    return str(raised.value)


def test_password(door):
    right = {"password": "at the door"}
    assert who(door.address("carol", **right)) == ("carol", "protected")
    bound = door.address("carol", channel_binding="require", **right)
    assert who(bound) == ("carol", "protected")
    unbound = door.address("carol", channel_binding="disable", **right)
    assert who(unbound) == ("carol", "protected")
    for wrong in ("at the Door", ROLES["carol"]):
        failed = refused(door.address("carol", password=wrong))
        assert "password authentication failed" in failed
    psql = [PG_BIN / "psql", "-X", "-A", "-t", "-d", bound, "-c", "SELECT current_user"]
    done = subprocess.run(psql, capture_output=True, text=True, check=True)
    assert done.stdout == "carol\n"


def test_the_servers_password_is_the_proxys(door, stack):
    """Who may write the catalogs gives a role the password that he likes."""
    with stack.connect_dba() as dba:
        dba.execute("ALTER ROLE carol PASSWORD 'known to the superuser'")
        try:
            failed = refused(door.address("carol", password="known to the superuser"))
            assert "password authentication failed" in failed
        finally:
            dba.execute(f"ALTER ROLE carol PASSWORD '{ROLES['carol']}'")
    assert who(door.address("carol", password="at the door"))


def test_certificate(door):
    assert who(door.address("dave", **door.shows("dave"))) == ("dave", "protected")
    # Somebody else's certificate, one of another authority, none.
    assert "authentication failed" in refused(door.address("dave", **door.shows("other")))
    assert refused(door.address("dave", **door.shows("forged")))
    assert "authentication failed" in refused(door.address("dave", password=ROLES["dave"]))
    # A certificate is for the user that it is of.
    shown = door.shows("dave")
    assert "password" in refused(door.address("carol", password="x", **shown))


def test_peer(door):
    local = {"host": door.home, "hostaddr": None, "sslmode": None, "sslrootcert": None}
    assert who(door.address("erin", **local)) == ("erin", "protected")
    assert "authentication failed" in refused(door.address("frank", **local))
    # By TCP nobody is a user of the operating system.
    assert "authentication failed" in refused(door.address("erin", password=ROLES["erin"]))


def test_plain_connections(door):
    plain = door.address("carol", password="at the door", sslmode="disable", sslrootcert=None)
    assert "encrypted connections only" in refused(plain)
    elsewhere = door.address(
        "carol", password="at the door", sslrootcert=door.certificates / "stranger.crt"
    )
    assert "certificate verify failed" in refused(elsewhere)


def test_list_counts_at_once(door):
    door.add("gone", "--password-file", "-", say="x")
    # It is who it says; the server would not know it.
    assert "the server wants a password" in refused(door.address("gone", password="x"))
    command = [door.state / "bin" / "confide", "user"]
    assert "gone: password" in run_as(USER, *command, "list", door.users)
    run_as(USER, *command, "remove", door.users, "gone")
    assert "does not serve the role" in refused(door.address("gone", password="x"))
    door.users.chmod(0o644)
    assert "cannot be read" in refused(door.address("carol", password="at the door"))
    door.users.chmod(0o600)
    assert who(door.address("carol", password="at the door"))


@pytest.mark.parametrize("missing", ["keeper_key", "pin_file"])
def test_what_a_proxy_wants_to_know(stack, tmp_path, missing):
    """Without the keeper's key, or without a pin, it starts only if it is told to."""
    state = stack.data.parent
    pin = state / "log" / "empty.pin"
    pin.write_text("")
    pin.chmod(0o644)
    environment = {
        **os.environ,
        "CONFIDE_PROXY_LISTEN": "192.0.2.1:1",  # nobody's: it ends when it would listen
        "CONFIDE_PROXY_INSECURE": "false",
        "CONFIDE_PROXY_PIN_FILE": str(pin),
        f"CONFIDE_PROXY_{missing.upper()}": "",
    }
    command = [state / "bin" / "confide-proxy", "--config", state / "proxy" / "proxy.toml"]

    def started(*more):
        done = subprocess.run(
            as_user(USER, [*command, *more]),
            env=environment,
            cwd="/",
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stderr

    code, message = started()
    assert code == 2
    assert f"{missing} is not set" in message
    code, message = started("--insecure")
    assert code == 1
    assert "cannot listen" in message
