"""Stacks made from a backup of another one: standbys and restored clusters, each with its own
keeper with the same root key. Does what docs/operations.md tells an operator to do, with the
stack's names."""

import contextlib
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from stack import PG_BIN, POSTGRES, Stack, as_user


def place(run: Path) -> Path:
    """Where scripts/lib.sh puts the state of a stack."""
    if os.geteuid() != 0:
        return run
    name = hashlib.sha256(str(run).encode()).hexdigest()[:10]
    return Path(f"/var/lib/confide/dev-{name}")


def owned(user: str, *paths: Path) -> None:
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", f"{user}:", *paths], check=True)


def run_as(user: str, *command, **environment) -> str:
    done = subprocess.run(
        as_user(user, list(command)),
        env={**os.environ, **environment},
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def backup(stack: Stack, directory: Path, *more: str) -> str:
    """`confide backup`, as the operator of the primary."""
    confide = place(stack.run) / "bin" / "confide"
    done = subprocess.run(
        [confide, "backup", directory, "--dbname", stack.dba_url, "--bindir", PG_BIN, "--", *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@contextlib.contextmanager
def another_cluster(stack, name, same_key, pg_config=None):
    """With another keeper, and perhaps another version of PostgreSQL."""
    made = Stack(run=stack.run.with_name(f"{stack.run.name}-{name}"))
    if pg_config is not None:
        made.environment["PG_CONFIG"] = pg_config
        made.environment.pop("LD_LIBRARY_PATH", None)
    if same_key:
        home = place(made.run) / "keeper"
        home.mkdir(parents=True)
        for file in (place(stack.run) / "keeper").glob("root.key*"):
            shutil.copy(file, home)
        owned("confide-keeper", home)
    made.up()
    yield made
    made.down("--remove")


class Copy(Stack):
    """A stack whose cluster and store come from a backup."""

    def __init__(self, origin: Stack, name: str, directory: Path, settings: str = ""):
        super().__init__(origin.run.with_name(f"{origin.run.name}-{name}"), POSTGRES + settings)
        state, source = place(self.run), place(origin.run)
        for folder in (state, state / "keeper", self.run):
            folder.mkdir(parents=True, exist_ok=True)
        shutil.copytree(directory / "pgdata", state / "pgdata", symlinks=True)
        shutil.copytree(directory / "keeper" / "data", state / "keeper" / "data")
        shutil.copy(source / "app.password", state)
        for file in (source / "keeper").glob("root.key*"):
            shutil.copy(file, state / "keeper")
        os.chmod(state / "pgdata", 0o700)
        owned("postgres", state / "pgdata")
        owned("confide-keeper", state / "keeper")
        self.keeper_home = state / "keeper"
        self.keeper_socket = state / "ks" / "keeper.sock"
        self.data_home = state / "pgdata"
        self.binaries = source / "bin"

    def accept(self) -> str:
        """An operator says that the copy of the store is the newest."""
        return run_as(
            "confide-keeper",
            place(self.run.with_name("-".join(self.run.name.split("-")[:2])))
            / "bin/confide-keeper",
            "--accept-backup",
            CONFIDE_KEEPER_DATA_DIR=str(self.keeper_home / "data"),
            CONFIDE_KEEPER_ROOT_KEY_FILE=str(self.keeper_home / "root.key"),
            CONFIDE_KEEPER_KEY_FILE=str(self.keeper_home / "keeper.key"),
        )
