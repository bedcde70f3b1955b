"""Several principals with one proxy: their keys, a second proxy that knows them, and the fixture
`three` (ann, bob, eve, and the administrator boss), which test modules import.
"""

import shutil
import subprocess

import psycopg
import pytest
from copies import owned
from stack import PG_BIN, ROOT, Stack, as_user, free_port, listens
from waiting import until

PRINCIPALS = ["ann", "bob", "eve", "boss"]


def keys(stack):
    """A key for each principal; the proxy's configuration and the keeper's list of clients."""
    state = stack.data.parent
    lines, principals = [], []
    for name in PRINCIPALS:
        file = state / "proxy" / f"{name}.key"
        done = subprocess.run(
            as_user(
                "confide-proxy", [state / "bin" / "confide", "keygen", "client", "--out", file]
            ),
            capture_output=True,
            text=True,
            cwd="/",
            check=True,
        )
        lines.append(f"{done.stdout.strip()} {name}\n")
        principals.append(f'{name} = "{file}"\n')
    with (state / "keeper" / "clients").open("a") as clients:
        clients.writelines(lines)
    config = state / "proxy" / "proxy.toml"
    text = config.read_text().replace("users = []", f"users = {PRINCIPALS}")
    mine = state / "proxy" / "principals.toml"
    mine.write_text(text + "\n[principals]\n" + "".join(principals))
    shutil.copymode(config, mine)
    owned("confide-proxy", mine)
    return mine


@pytest.fixture(scope="module")
def three(stack):
    made = Stack(ROOT / ".run" / f"{stack.run.name}-viewers")
    made.environment["CONFIDE_KEEPER_REQUIRE_GRANTS"] = "true"
    made.environment["CONFIDE_KEEPER_ADMINISTRATORS"] = "boss"
    made.up()
    config = keys(made)
    with made.connect_dba() as dba:
        for name in PRINCIPALS:
            dba.execute(f"CREATE ROLE {name} LOGIN IN ROLE app PASSWORD 'x'")
    proxy = Proxy(made, config)
    yield proxy
    proxy.process.terminate()
    proxy.process.wait()
    made.down("--remove")


class Proxy:
    """A second proxy, with principals."""

    def __init__(self, stack, config):
        self.stack, self.port = stack, free_port()
        state = stack.data.parent
        self.process = subprocess.Popen(
            as_user("confide-proxy", [state / "bin" / "confide-proxy", "--config", config]),
            env={
                **stack.environment,
                "CONFIDE_PROXY_LISTEN": f"127.0.0.1:{self.port}",
                # Rows that are stored without waiting are told as the others are.
                "CONFIDE_PROXY_FIT_VALUES": "true",
                "CONFIDE_PROXY_USERS": ",".join(["app", *PRINCIPALS]),
            },
            stdin=subprocess.DEVNULL,
            stdout=(stack.logs / "principals.log").open("w"),
            stderr=subprocess.STDOUT,
            cwd="/",
        )

    def connect(self, name):
        until(lambda: listens(self.port), "the proxy listens")
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=name,
            password="x",
            dbname="app",
            autocommit=True,
            prepare_threshold=None,
        )

    def psql(self, name, sql):
        url = f"postgresql://{name}:x@127.0.0.1:{self.port}/app"
        done = subprocess.run(
            [PG_BIN / "psql", "-X", "-A", "-t", "-q", "-v", "VERBOSITY=sqlstate", "-d", url],
            input=sql,
            capture_output=True,
            text=True,
            check=False,
        )
        return (done.stdout + done.stderr).strip()
