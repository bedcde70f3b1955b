"""Runs PostgreSQL's regression and isolation suites directly or through the proxy.

The results are not compared with those expected by PostgreSQL's source (plans and texts differ
between machines), but with those of the same server without Confide.
"""

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from postgres_source import source
from stack import PG_BIN, ROOT, Stack, as_user, free_port

PROGRAMS = Path(
    subprocess.run(
        [PG_BIN / "pg_config", "--pkglibdir"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip(),
    "pgxs/src/test",
)
PASSWORD = "compat"  # of the superuser, on servers that live as long as a test
# As the suites' own driver sets it for the databases that it creates.
SETTINGS = {
    **dict.fromkeys(["lc_messages", "lc_monetary", "lc_numeric", "lc_time"], "C"),
    "bytea_output": "hex",
    "timezone_abbreviations": "Default",
}
POSTGRES = "fsync = off\nmax_prepared_transactions = 10\n"
LIMIT = 3600
# Where scripts/up has its stacks: of root's own directories PostgreSQL can read nothing.
RUNS = Path("/var/lib/confide") if os.geteuid() == 0 else ROOT / ".run"
# Where whole suites have their servers, since their times are compared: whenever ext4 without a
# journal makes a file, it looks at each one that was removed there within the last minutes.
MEMORY = Path("/dev/shm", f"confide-compat-{os.geteuid()}")


@dataclass(frozen=True)
class Suite:
    name: str
    driver: str
    database: str

    def schedule(self) -> list[str]:
        """The tests, in their order."""
        (file,) = (source() / self.name).glob("*_schedule")
        lines = [line.split(":", 1) for line in file.read_text().splitlines()]
        return [test for head, *rest in lines if head == "test" for test in rest[0].split()]


REGRESS = Suite("regress", "pg_regress", "regression")
ISOLATION = Suite("isolation", "pg_isolation_regress", "isolation_regression")
SUITES = (REGRESS, ISOLATION)


@dataclass
class Server:
    """Where a suite runs. `administrator` is a connection string that does not pass the proxy."""

    port: int
    administrator: str
    folder: Path
    extension: bool = False


@dataclass
class Results:
    folder: Path
    seconds: float
    times: dict[str, int] = field(default_factory=dict)

    def lines(self, test: str) -> list[str]:
        return (self.folder / f"{test}.out").read_text(errors="surrogateescape").splitlines()


@contextmanager
def plain_server(runs: Path) -> Iterator[Server]:
    """A server without the extension, made as that of a stack is, and beside it. It asks for a
    password, too, which a suite of many connections takes seconds for."""
    runs.mkdir(parents=True, exist_ok=True)
    folder, port = Path(tempfile.mkdtemp(prefix="plain-", dir=runs)), free_port()
    data = folder / "data"
    give_to_server(folder)
    secret = folder / "password"
    secret.write_text(PASSWORD + "\n")
    prepare = ["-U", "postgres", "--locale=C", "--encoding=UTF8", "--no-sync"]
    authentication = ["-A", "scram-sha-256", f"--pwfile={secret}"]
    as_postgres([PG_BIN / "initdb", "-D", data, *prepare, *authentication])
    with (data / "postgresql.conf").open("a") as file:
        file.write(f"port = {port}\nunix_socket_directories = ''\njit = off\n{POSTGRES}")
    control = [PG_BIN / "pg_ctl", "-s", "-w", "-D", data]
    as_postgres([*control, "start", "-l", folder / "log"])
    try:
        yield Server(
            port, f"postgresql://postgres:{PASSWORD}@127.0.0.1:{port}/postgres", folder / "plain"
        )
    finally:
        as_postgres([*control, "stop", "-m", "immediate"])
        shutil.rmtree(folder)


def stack_server(stack: Stack, proxy: bool) -> Server:
    """A running stack, straight or through its proxy."""
    with stack.connect_dba() as dba:
        dba.execute(f"ALTER ROLE postgres PASSWORD '{PASSWORD}'")
    name = "CONFIDE_APP_PORT" if proxy else "CONFIDE_PGPORT"
    folder = stack.data.parent / ("through-proxy" if proxy else "straight")
    administrator = re.sub("/app$", "/postgres", stack.dba_url)
    return Server(int(stack.environment[name]), administrator, folder, True)


def run(suite: Suite, server: Server, tests: list[str] | None = None) -> Results:
    """Runs these tests, or all, in a new database, one after the other."""
    make_database(server, suite.database)
    ours = source()
    place = server.folder / suite.name
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(ours / suite.name, place / "input")
    shutil.copytree(ours / "lib", place / "lib")
    output = place / "output"
    output.mkdir()
    give_to_server(output)
    program = PROGRAMS / ("regress" if suite is REGRESS else "isolation") / suite.driver
    schedule = next((place / "input").glob("*_schedule"))
    command = [
        *[program, f"--bindir={PG_BIN}", f"--inputdir={place / 'input'}"],
        *[f"--outputdir={output}", f"--dlpath={place / 'lib'}", "--use-existing"],
        *["--host=127.0.0.1", f"--port={server.port}", "--user=postgres"],
        *[f"--dbname={suite.database}", "--max-connections=1"],
        *(tests if tests is not None else [f"--schedule={schedule}"]),
    ]
    start = time.monotonic()
    said = as_postgres(command, cwd=output, check=False).stdout
    seconds = time.monotonic() - start
    times = {test: int(ms) for test, ms in re.findall(r"(\S+)\s+\.\.\. .*?(\d+) ms", said)}
    drop_database(server, suite.database)
    return Results(output / "results", seconds, times)


def make_database(server: Server, name: str) -> None:
    drop_database(server, name)
    with psycopg.connect(server.administrator, autocommit=True) as dba:
        dba.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        for setting, value in SETTINGS.items():
            dba.execute(f"ALTER DATABASE {name} SET {setting} TO '{value}'")
    if server.extension:
        there = re.sub("/postgres$", f"/{name}", server.administrator)
        with psycopg.connect(there, password=PASSWORD, autocommit=True) as dba:
            dba.execute("CREATE EXTENSION confide")


def drop_database(server: Server, name: str) -> None:
    with psycopg.connect(server.administrator, autocommit=True) as dba:
        dba.execute(f"DROP DATABASE IF EXISTS {name} (FORCE)")


def give_to_server(folder: Path) -> None:
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")


def as_postgres(command: list, cwd: Path = Path("/"), check: bool = True):
    done = subprocess.run(
        as_user("postgres", command),
        env={**os.environ, "PGPASSWORD": PASSWORD},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        cwd=cwd,
    )
    assert not check or done.returncode == 0, f"{command[0]} failed:\n{done.stdout}"
    return done
