"""The Debian packages of `make package`, unpacked into a directory, are complete and work.

Mechanism: the packages are made from the build under test, unpacked, and a stack is started with
their programs. Right: it works like the build, units start programs that are in a package, and
configurations can be read. Bug: a package lacks a file, or its unit or configuration names one that
is missing.
"""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from stack import ROOT, RUN, Stack

ASKED = "SELECT setting FROM pg_config WHERE name = 'SHAREDIR'"
NAMES = ("confide-keeper", "confide-proxy", "postgresql-15-confide")
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


QUICKLY = {**os.environ, "COMPRESSION": "none"}


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    made = tmp_path_factory.mktemp("packages")
    run(ROOT / "scripts" / "package", made, env=QUICKLY)
    return {name: next(made.glob(f"{name}_*.deb")) for name in NAMES}


@pytest.fixture(scope="module")
def unpacked(packages, tmp_path_factory):
    directory = tmp_path_factory.mktemp("root")
    for package in packages.values():
        run("dpkg-deb", "-x", package, directory)
    return directory


def test_control(packages):
    for name, package in packages.items():
        control = run("dpkg-deb", "-f", package)
        assert f"Package: {name}\n" in control
        assert f"Version: {VERSION}\n" in control
        assert re.search(r"^Depends: libc6 \(>= 2\.\d+\), ", control, re.MULTILINE)
        listed = run("dpkg-deb", "-c", package)
        assert f"./usr/share/doc/{name}/changelog.gz" in listed
        assert not re.search(r"^-.{7}w", listed, re.MULTILINE), "files that everybody may write"
        assert " root/root " in listed


def test_same_bytes_again(packages, tmp_path):
    run(ROOT / "scripts" / "package", tmp_path, env=QUICKLY)
    for package in packages.values():
        assert (tmp_path / package.name).read_bytes() == package.read_bytes()


def test_measurement(packages, unpacked):
    """It stands beside the packages and in one, and is that of the program that is in it: what a
    policy may name. Bug: the measurement of a build that nobody gets."""
    beside = packages["confide-keeper"].with_suffix(".measurement").read_text()
    within = unpacked / "usr/share/doc/confide-keeper/measurement"
    measured = run(unpacked / "usr/bin/confide", "measure", unpacked / "usr/bin/confide-keeper")
    assert within.read_text() == beside == measured
    assert re.fullmatch(r"[0-9a-f]{96}\n", measured)


def test_systemd_takes_the_units(unpacked, tmp_path):
    """It knows each setting, and each program is there. (Nothing is started: it need not run.)"""
    root = tmp_path / "root"
    shutil.copytree(unpacked, root)
    units = root / "lib/systemd/system"
    names = sorted(path.name for path in units.glob("confide-*.service"))
    assert names == [f"confide-{name}.service" for name in ("broker", "disk", "keeper", "proxy")]
    for other in ("bin/sh", "bin/kill", "bin/mount", "bin/umount", "sbin/cryptsetup"):
        (root / other).parent.mkdir(exist_ok=True)
        shutil.copy("/bin/true", root / other)
    for target in ("sysinit", "basic", "shutdown", "multi-user", "network", "network-online"):
        (units / f"{target}.target").write_text("[Unit]\nDescription=of the distribution\n")
    (units / "postgresql.service").write_text("[Service]\nExecStart=/bin/sh\n")
    for name in names:
        command = ["systemd-analyze", "verify", "--man=no", f"--root={root}", name]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode, done.stdout + done.stderr) == (0, ""), name


def test_systemd_takes_the_units_of_guests(tmp_path):
    """The relays of a keeper in another guest (packaging/guests), with what they start."""
    units = tmp_path / "lib/systemd/system"
    units.mkdir(parents=True)
    shutil.copy("/bin/true", tmp_path / "lib/systemd/systemd-socket-proxyd")
    for target in ("sysinit", "basic", "shutdown", "sockets", "network"):
        (units / f"{target}.target").write_text("[Unit]\nDescription=of the distribution\n")
    names = [path.name for path in (ROOT / "packaging/guests").glob("confide-*")]
    assert len(names) == 4
    for name in names:
        shutil.copy(ROOT / "packaging/guests" / name, units)
    shutil.copy(ROOT / "packaging/confide-keeper.service", units)
    for name in names:
        command = ["systemd-analyze", "verify", "--man=no", f"--root={tmp_path}", name]
        done = subprocess.run(command, capture_output=True, text=True)
        complaints = [line for line in done.stderr.splitlines() if "confide-keeper" not in line]
        assert (done.stdout, complaints) == ("", []), name


def test_units_and_configurations(unpacked):
    for name, file in (("confide-keeper", "keeper.toml"), ("confide-proxy", "proxy.toml")):
        unit = (unpacked / "lib/systemd/system" / f"{name}.service").read_text()
        program, option, config = re.search(r"^ExecStart=/(\S+) (\S+) /(\S+)$", unit, re.M).groups()
        assert config == f"etc/confide/{file}"
        clean = {"PATH": os.environ["PATH"]}
        command = [unpacked / program, option, unpacked / config, "--print-config"]
        in_force = tomllib.loads(run(*command, env=clean))
        for setting, value in tomllib.loads((unpacked / config).read_text()).items():
            assert in_force[setting] == value
        for hardening in (
            "NoNewPrivileges=yes",
            "ProtectSystem=strict",
            "CapabilityBoundingSet=\n",
        ):
            assert hardening in unit


def test_they_run(unpacked, tmp_path_factory):
    """A stack of the packages' programs; the extension is the one that is installed."""
    target = tmp_path_factory.mktemp("target") / "release"
    target.mkdir()
    for program in (unpacked / "usr/bin").iterdir():
        shutil.copy(program, target)
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    shutil.copy(built / "release" / "confide-replayer", target)
    stack = Stack(RUN.parent / f"packaged-{os.getpid()}")
    stack.environment["CARGO_TARGET_DIR"] = str(target.parent)
    try:
        stack.up()
        with stack.connect_app() as app:
            app.execute("CREATE TABLE t (a enc_text)")
            app.execute("INSERT INTO t VALUES ('packaged')")
            assert app.execute("SELECT a FROM t WHERE a LIKE 'pack%'").fetchall() == [("packaged",)]
            version = app.execute("SELECT extversion FROM pg_extension WHERE extname = 'confide'")
            assert version.fetchone() == (VERSION,)
        with stack.connect_dba() as dba:
            share = dba.execute("SELECT setting FROM pg_config WHERE name = 'SHAREDIR'").fetchone()[
                0
            ]
        script = f"extension/confide--{VERSION}.sql"
        packaged = unpacked / "usr/share/postgresql/15" / script
        assert packaged.read_bytes() == (Path(share) / script).read_bytes()
        assert (unpacked / "usr/lib/postgresql/15/lib/confide.so").stat().st_size > 0
    finally:
        stack.down("--remove")
