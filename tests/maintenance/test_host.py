"""Templates with actions on the database's host: HEDB's table 4, operating system and connectivity.

Mechanism: `confide fix apply` as PostgreSQL's operating system user looks at the host, shows what
will change, does it, and writes what undoes it; what only root does is done by `confide fix host`,
after the same checks. Right: the change and nothing else. Bug: a template reaches a file outside of
the cluster, or an administrator has a program run that no template names.
"""

import os
import subprocess
from pathlib import Path

import pytest
from copies import owned
from stack import POSTGRES, ROOT, Stack, as_user
from templates import Fixes, fix
from waiting import until


class Host(Fixes):
    """Templates applied by PostgreSQL's user."""

    def run(self, *arguments):
        command = [self.stack.data.parent / "bin" / "confide", *arguments]
        return subprocess.run(
            as_user("postgres", command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd="/",
            check=False,
        )


@pytest.fixture(scope="module")
def host_stack(stack):
    made = Stack(ROOT / ".run" / f"{stack.run.name}-host", POSTGRES)
    made.up()
    yield made
    made.down("--remove")


@pytest.fixture
def host(host_stack):
    folder = host_stack.data.parent / "fixes"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    owned("postgres", folder)
    return Host(host_stack, folder)


def test_on_the_host(host, host_stack):
    """A directory's mode is changed and goes back; cores are removed, and nothing beside them."""
    base = host_stack.data / "base"
    before = base.stat().st_mode & 0o777
    assert before == 0o700
    change = fix("directory-mode", path="base", mode="0750")
    said = host.applied(change, "--dry-run")
    assert "0700 -> 0750" in said
    assert base.stat().st_mode & 0o777 == before
    host.applied(change)
    assert base.stat().st_mode & 0o777 == 0o750
    host.undo()
    assert base.stat().st_mode & 0o777 == before
    core, other = host_stack.data / "core.77", host_stack.data / "score"
    for file in (core, other):
        file.write_bytes(b"x" * 100)
        owned("postgres", file)
    said = host.applied(fix("remove-cores"))
    assert "remove 1 core files, 100 bytes" in said
    assert (core.exists(), other.exists()) == (False, True)
    other.unlink()


REFUSED = [
    (fix("directory-mode", path="../keeper", mode="0750"), "path-below"),
    (fix("directory-mode", path="/etc", mode="0750"), "path-below"),
    (fix("directory-mode", path="base", mode="0777"), "host-range"),
    (fix("huge-pages", pages=7), "host-range"),
    (fix("mtu", interface="lo", mtu=9000), "host-range"),
    (fix("mtu", interface="nosuch0", mtu=1500), "exists"),
    (fix("process-limit", limit=9000), "host-range"),
    (fix("restart", unit="sshd"), "template"),
]


@pytest.mark.parametrize(("text", "rule"), REFUSED)
def test_refused(host, text, rule):
    host.refused(text, rule)
    assert not host.log.exists()


def limits(stack):
    lines = Path(f"/proc/{stack.postmaster_pid()}/limits").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("Max processes")]
    return line.split()[2]


def test_what_root_does(host, host_stack):
    """One action of these three, and no other. Bug: whoever may run this one command as root has
    something else done."""
    command = [host_stack.data.parent / "bin" / "confide", "fix"]
    line = subprocess.run(
        [*command, "rights", "--host", "postgres"], capture_output=True, text=True
    )
    assert line.stdout.startswith("postgres ALL=(root) NOPASSWD: /")
    assert line.stdout.endswith("confide fix host *\n")

    def as_root(text):
        arguments = ["host", text, "--data", host_stack.data]
        return subprocess.run([*command, *arguments], capture_output=True, text=True)

    for text, said in [
        (fix("directory-mode", path="base", mode="0750"), "needs no root"),
        (fix("set", parameter="jit", value=False), "not one action"),
        (fix("process-limit", limit=500) * 2, "not one action"),
        (fix("process-limit", limit=63), 'rule "host-range"'),
    ]:
        done = as_root(text)
        assert (done.returncode, said in done.stderr) == (1, True), (text, done.stderr)
    if os.geteuid() != 0:
        pytest.skip("only root changes limits of others' processes")
    done = as_root(fix("process-limit", limit=7777))
    if "Operation not permitted" in done.stderr:
        pytest.skip("root of this container changes no limits")
    assert done.returncode == 0, done.stderr
    assert limits(host_stack) == "7777"


def test_restart(host, host_stack):
    """The server is another process; applications go on, and the log says who did it."""
    before = host_stack.postmaster_pid()
    host.applied(fix("restart"))
    assert host_stack.postmaster_pid() != before
    until(lambda: works(host_stack), "the application is served")
    assert [line.count('"action":"restart"') for line in host.log.read_text().splitlines()] == [
        1,
        1,
    ]


def works(stack):
    try:
        with stack.connect_app() as app:
            return app.execute("SELECT 1").fetchone() == (1,)
    except Exception:
        return False
