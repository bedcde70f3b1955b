"""A private stack (PostgreSQL, keeper, proxy) for tests, beside that of `make up`."""

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import tomllib
from pathlib import Path

import psycopg
from waiting import until

ROOT = Path(__file__).resolve().parent.parent
RUN = ROOT / ".run" / f"test-{os.getpid()}"
# As in scripts/lib.sh: another PostgreSQL can be named by its pg_config.
PG_BIN = Path(os.environ.get("PG_CONFIG", "/usr/lib/postgresql/15/bin/pg_config")).parent

# Everything that a server can log is logged, so that a leak into a log shows. On a busy machine a
# keeper that was started again may be longer than usual in coming up to date. Autovacuum comes
# where a test asks for it: in others, if they last long, it would change plans and keep dead rows.
POSTGRES = """
fsync = off
log_min_duration_statement = 0
log_parameter_max_length = -1
log_parameter_max_length_on_error = -1
log_error_verbosity = verbose
debug_print_parse = off
confide.connect_timeout = '30s'
max_prepared_transactions = 10
autovacuum_naptime = '1d'
"""


# A server that does not come up ends the test by pytest's own limit.
os.environ["PGCTLTIMEOUT"] = "3600"

# Below what Linux gives to outgoing connections, and above what servers have by default.
PORTS = range(10_240, 32_768)

# Each test process has its own of these, and begins somewhere in them: tests of another clone may
# run at the same time.
OWN_PORTS = PORTS[int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) :: 16]
picked = itertools.count(os.getpid())


def free_port() -> int:
    """A port that nobody else is given before it is used: neither another test process of this run
    nor a connection to some server."""
    while True:
        port = OWN_PORTS[next(picked) % len(OWN_PORTS)]
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port


class Stack:
    """Starts, stops and damages a stack; its addresses are those of `.run/env`."""

    def __init__(self, run: Path = RUN, postgres: str = POSTGRES, log_statement: str = "all"):
        self.run = run
        self.environment = dict(
            os.environ,
            CONFIDE_PGPORT=str(free_port()),
            CONFIDE_APP_PORT=str(free_port()),
            CONFIDE_KEEP_BINARIES="1",  # one run tests one build
            CONFIDE_LOG_STATEMENT=log_statement,
            CONFIDE_PGCONF=postgres,
            CONFIDE_PROXY_USERS="app,postgres",
        )
        self.env: dict[str, str] = {}

    def script(self, name: str, *args: str, run: Path | None = None) -> str:
        done = subprocess.run(
            [ROOT / "scripts" / name, *args],
            env={**self.environment, "CONFIDE_RUN": str(run or self.run)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, f"scripts/{name} failed:\n{done.stdout}"
        return done.stdout

    def up(self) -> str:
        try:
            return self.script("up")
        finally:  # PostgreSQL may have come up without what the script waits for
            env = self.run / "env"
            if env.exists():
                self.env = dict(line.split("=", 1) for line in env.read_text().splitlines())

    def down(self, *args: str) -> None:
        self.script("down", *args)

    def fresh(self) -> None:
        """Removes what earlier runs left and starts anew."""
        for old in self.run.parent.glob(self.run.name.split("-")[0] + "-*"):
            if not Path(f"/proc/{old.name.split('-')[1]}").exists():
                self.script("down", "--remove", run=old)
        self.up()

    # Addresses.
    @property
    def app_url(self) -> str:
        return self.env["APP_URL"]

    @property
    def dba_url(self) -> str:
        return self.env["DBA_URL"]

    @property
    def data(self) -> Path:
        return Path(self.env["PGDATA"])

    @property
    def logs(self) -> Path:
        return Path(self.env["LOG_DIR"])

    def log_sizes(self) -> dict[Path, int]:
        """Where each log ends now: those of all tests together are long."""
        return {log: log.stat().st_size for log in self.logs.iterdir()}

    def logged_since(self, sizes: dict[Path, int]) -> str:
        """What has come to the logs since."""
        text = []
        for log in self.logs.iterdir():
            with log.open("rb") as file:
                file.seek(sizes.get(log, 0))
                text.append(file.read().decode(errors="replace"))
        return "".join(text)

    def connect_app(self, **options) -> psycopg.Connection:
        return psycopg.connect(self.app_url, autocommit=True, **options)

    def connect_dba(self, **options) -> psycopg.Connection:
        return psycopg.connect(self.dba_url, autocommit=True, **options)

    def ticket(self, database: str, *more: str, key: Path | None = None) -> str:
        """A restore ticket of the application (or of another key) for a session at this stack."""
        state = self.data.parent
        command = [state / "bin" / "confide", "restore-ticket", "--key"]
        command += [key or state / "proxy" / "client.key", "--keeper-key", self.keeper_key()]
        done = subprocess.run(
            as_user("confide-proxy", [*command, "--database", database, *more]),
            capture_output=True,
            text=True,
            cwd="/",
            check=True,
        )
        return done.stdout.strip()

    @contextlib.contextmanager
    def another_proxy(self, serves: bool = True, **settings: str):
        """A proxy of a test's own beside that of the stack, with more settings of its
        environment; its process, and the application's URL at it. Without `serves` it need
        not serve anybody."""
        state = self.data.parent
        port = free_port()
        environment = {f"CONFIDE_PROXY_{name.upper()}": value for name, value in settings.items()}
        environment["CONFIDE_PROXY_LISTEN"] = f"127.0.0.1:{port}"
        command = [state / "bin" / "confide-proxy", "--config", state / "proxy" / "proxy.toml"]
        parts = psycopg.conninfo.conninfo_to_dict(self.app_url)
        url = psycopg.conninfo.make_conninfo(**{**parts, "port": port})
        with (self.logs / "another-proxy.log").open("a") as log:
            process = subprocess.Popen(
                as_user("confide-proxy", command),
                env={**os.environ, **environment},
                stderr=log,
                cwd="/",
            )
        try:

            def there() -> bool:
                assert alive(process.pid), "the proxy does not start"
                return accepts(url) if serves else listens(port)

            until(there, "the proxy serves")
            yield process, url
        finally:
            process.terminate()
            process.wait()

    def restoring(self, database: str, *more: str) -> dict[str, str]:
        """The environment of a client that restores with a ticket."""
        ticket = self.ticket(database, *more)
        return {**os.environ, "PGOPTIONS": f"-c confide.restore_ticket={ticket}"}

    def keeper_key(self) -> str:
        config = tomllib.loads((self.data.parent / "proxy" / "proxy.toml").read_text())
        return config["keeper_key"]

    # Damage.
    def keeper_pid(self) -> int:
        return int(Path(self.env["KEEPER_PID_FILE"]).read_text().split()[0])

    def proxy_pid(self) -> int:
        return int(Path(self.env["PROXY_PID_FILE"]).read_text().split()[0])

    def postmaster_pid(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def kill_keeper(self) -> None:
        kill(self.keeper_pid())

    def kill_postgres(self) -> None:
        """The postmaster first, then every process of it."""
        postmaster = self.postmaster_pid()
        os.kill(postmaster, signal.SIGSTOP)  # starts no other process
        processes = children(postmaster)
        kill(postmaster)
        for pid in processes:
            with contextlib.suppress(ProcessLookupError):
                kill(pid)

    # What scripts/up does, without looking at everything.
    def keeper_runs(self) -> bool:
        return self.runs(self.keeper_pid)

    def postgres_runs(self) -> bool:
        return self.runs(self.postmaster_pid)

    def runs(self, pid) -> bool:
        try:
            return alive(pid())
        except (FileNotFoundError, IndexError, ValueError):
            return False

    def start_keeper(self, **environment: str) -> None:
        state = self.data.parent
        sock = state / "ks" / "keeper.sock"
        sock.unlink(missing_ok=True)
        command = [state / "bin" / "confide-keeper", "--config", state / "keeper" / "keeper.toml"]
        with (self.logs / "keeper.log").open("a") as log:
            process = subprocess.Popen(
                as_user("confide-keeper", command),
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )
        Path(self.env["KEEPER_PID_FILE"]).write_text(f"{process.pid}\n")
        until(lambda: sock.exists() or process.poll() is not None, "the keeper starts")

    def start_postgres(self) -> None:
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        for left in (self.data.parent / "pg").glob(".s.PGSQL.*"):
            left.unlink()
        self.pg_ctl("start")

    def restart_postgres(self) -> None:
        self.pg_ctl("restart", "-m", "fast")

    def pg_ctl(self, *action: str) -> None:
        command = [PG_BIN / "pg_ctl", *action, "-s", "-w", "-D", self.data]
        subprocess.run(
            as_user("postgres", [*command, "-l", self.logs / "postgres.log"]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            check=True,
        )


def as_user(user: str, command: list) -> list:
    if os.geteuid() != 0:
        return command
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--", *command]


def accepts(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def alive(pid: int) -> bool:
    """Whether any thread of the process is: the first one may be gone while others still hold
    its files, and locks on these."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return False
    for task in tasks:
        try:
            stat = Path(f"/proc/{pid}/task/{task}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if stat.rsplit(")", 1)[1].split()[0] not in "ZX":
            return True
    return False


def children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def kill(pid: int) -> None:
    """Kills a process and waits until it is gone."""
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid), f"process {pid} ends")
