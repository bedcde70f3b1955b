"""The image of a confidential guest (packaging/image), built from this build's packages, started.

Mechanism: QEMU starts it without hardware for confidential guests, with swtpm as its TPM; a broker
on this side gives keys out against simulated evidence, for the keeper's measurement that the
image's list names. Right: the first start makes the encrypted disk, later ones open it, keeper and
PostgreSQL come up without anybody; a changed root file system, or a broker that does not know the
keeper, starts neither. Bug: the guest runs what was not measured.

Takes minutes and root, so only with CONFIDE_IMAGE=1 (`make test-image`). CONFIDE_IMAGE_BASE: a tree
of Debian's packages that is there already. CONFIDE_IMAGE_ACCEL=kvm: not emulated.
"""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import time

import pytest
from stack import ROOT, free_port

WANTED = bool(os.environ.get("CONFIDE_IMAGE"))
pytestmark = [
    pytest.mark.skipif(not WANTED, reason="takes minutes: make test-image"),
    pytest.mark.timeout(3600),
]

BUILT = ROOT / "target/release"
UNITS = ("confide-disk", "confide-keeper", "confide-postgresql")
# Of its lines the console shows the beginnings.
STARTS = ("Finished confide-disk", "Started confide-keeper", "Started confide-postgresql")
STARTED = 1800
KEEPER = """
socket = "/run/confide-keeper/keeper.sock"
socket_mode = "0666"
users = ["postgres"]
key_file = "/var/lib/confide/keeper/keeper.key"
data_dir = "/var/lib/confide/keeper/data"
root_key_file = "/var/lib/confide/keeper/root.key"
clients_file = "/etc/confide/clients"
evidence = "simulated"
"""


def run(*command, **options) -> str:
    command = [str(word) for word in command]
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


class Guest:
    """A start of the image: what it says on its console."""

    def __init__(self, site, root, more=""):
        self.log = site.folder / f"console-{len(site.guests)}.log"
        site.guests.append(self)
        control = self.log.with_suffix(".tpm")
        state = site.folder / "tpm"
        state.mkdir(exist_ok=True)
        tpm = ["swtpm", "socket", "--tpm2", "--tpmstate", f"dir={state}"]
        self.tpm = subprocess.Popen([*tpm, "--ctrl", f"type=unixio,path={control}", "--terminate"])
        while not control.exists():
            time.sleep(0.05)
        cmdline = (site.image / "cmdline").read_text()
        words = [
            "qemu-system-x86_64",
            "-nodefaults",
            "-display",
            "none",
            "-no-reboot",
            "-m",
            "1024",
        ]
        words += ["-accel", os.environ.get("CONFIDE_IMAGE_ACCEL", "tcg"), "-cpu", "max"]
        words += ["-kernel", site.image / "vmlinuz", "-initrd", site.image / "initrd.img"]
        words += ["-append", cmdline + more, "-serial", f"file:{self.log}"]
        words += ["-drive", f"file={root},format=raw,if=virtio,snapshot=on"]
        words += ["-drive", f"file={site.disk},format=raw,if=virtio"]
        words += ["-nic", "user,model=virtio-net-pci", "-device", "virtio-rng-pci"]
        words += [
            "-chardev",
            f"socket,id=tpm,path={control}",
            "-tpmdev",
            "emulator,id=t,chardev=tpm",
        ]
        words += ["-device", "tpm-tis,tpmdev=t", "-qmp", f"unix:{self.log}.qmp,server=on,wait=off"]
        self.process = subprocess.Popen([str(word) for word in words])

    def said(self) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)

    def wait(self, *words) -> str:
        """Until it has said all of them, or has ended."""
        until = time.monotonic() + STARTED
        while not all(word in self.said() for word in words):
            assert time.monotonic() < until, self.said()[-4000:]
            if self.process.poll() is not None:
                break
            time.sleep(0.5)
        return self.said()

    def started(self) -> None:
        said = self.wait(*STARTS)
        assert all(start in said for start in STARTS), said[-6000:]

    def end(self) -> None:
        """As by the button; then without it."""
        if self.process.poll() is None:
            with socket.socket(socket.AF_UNIX) as monitor:
                monitor.connect(f"{self.log}.qmp")
                for command in ("qmp_capabilities", "system_powerdown"):
                    monitor.sendall(json.dumps({"execute": command}).encode())
                    monitor.recv(4096)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(120)
        self.kill()

    def kill(self) -> None:
        for process in (self.process, self.tpm):
            process.kill()
            process.wait()


class Site:
    """A broker, the image made for it, and the disk of its guest."""

    def __init__(self, folder):
        self.folder, self.guests = folder, []
        self.image, self.disk = folder / "image", folder / "disk"
        self.port = free_port()
        confide = BUILT / "confide"
        key = run(confide, "keygen", "broker", "--out", folder / "broker.key").split()[-1]
        run(confide, "keygen", "broker", "--out", folder / "broker.secret")
        configuration = folder / "configuration"
        configuration.mkdir()
        source = f"broker://10.0.2.2:{self.port}?key={key}&name=orders"
        (configuration / "keeper.toml").write_text(f'{KEEPER}root_key_source = "{source}"\n')
        (configuration / "clients").touch()
        packages = folder / "packages"
        run(ROOT / "scripts/package", packages, env={**os.environ, "COMPRESSION": "none"})
        environment = {**os.environ, "PACKAGES": str(packages)}
        if base := os.environ.get("CONFIDE_IMAGE_BASE"):
            environment["BASE"] = base
        run(ROOT / "packaging/image/build", self.image, configuration, env=environment)
        lines = (self.image / "measurements").read_text().splitlines()
        self.measurements = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in lines)
        with self.disk.open("wb") as disk:
            disk.truncate(256 << 20)
        run("sfdisk", "--quiet", self.disk, input='label: gpt\nname="confide-data"\n')
        self.broker = self.start_broker(self.measurements["confide-keeper"])

    def start_broker(self, measurement):
        policy = self.folder / "policy.toml"
        policy.write_text(f"[simulated]\nmeasurements = {json.dumps([measurement])}\n")
        command = [BUILT / "confide", "broker", "--simulated", "--policy", policy]
        command += ["--listen", f"127.0.0.1:{self.port}", "--key", self.folder / "broker.key"]
        command += ["--secret", self.folder / "broker.secret", "--audit", self.folder / "audit"]
        command += ["--name", "orders", "--name", "disk-data"]
        log = (self.folder / "broker.log").open("a")
        return subprocess.Popen([str(word) for word in command], stdout=log, stderr=log)

    def released(self) -> list[str]:
        lines = (self.folder / "audit").read_text().splitlines()
        entries = [json.loads(line) for line in lines]
        return [entry["name"] for entry in entries if entry["outcome"] == "released"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    site = Site(tmp_path_factory.mktemp("image"))
    yield site
    site.broker.kill()
    site.broker.wait()
    for guest in site.guests:
        guest.kill()


@pytest.fixture(scope="module")
def tree(site):
    """The root file system, as it is in the image."""
    place = site.folder / "tree"
    place.mkdir()
    run("debugfs", "-R", f"rdump / {place}", site.image / "root.img")
    return place


def test_measurements(site):
    """Each is what anybody computes from the files, and the command line has the root hash."""
    for name in ("vmlinuz", "initrd.img", "cmdline"):
        assert run("sha384sum", site.image / name).split()[0] == site.measurements[name]
    cmdline = (site.image / "cmdline").read_text()
    offset = re.search(r"hash_offset=(\d+)", cmdline)[1]
    root = site.image / "root.img"
    at = ("--hash-offset", offset, root, root)
    run("veritysetup", "verify", *at, site.measurements["root hash"])
    assert f"confide.root_hash={site.measurements['root hash']}" in cmdline


def test_keeper(site, tree):
    """The keeper in the image is the one that the list names."""
    keeper = run(BUILT / "confide", "measure", tree / "usr/bin/confide-keeper")
    assert keeper.strip() == site.measurements["confide-keeper"]


def test_units(tree):
    """systemd takes them, and starts them; nobody can log in."""
    for unit in (*UNITS, "confide-format"):
        run("systemd-analyze", "verify", "--man=no", f"--root={tree}", f"{unit}.service")
    wanted = tree / "etc/systemd/system/multi-user.target.wants"
    assert {f"{unit}.service" for unit in UNITS[1:]} <= {path.name for path in wanted.iterdir()}
    shadow = (tree / "etc/shadow").read_text().splitlines()
    assert all(line.split(":")[1].startswith(("!", "*")) for line in shadow)


def test_first_start_and_later_ones(site):
    """The disk is made only by the command line that says so; without that word an empty disk
    starts nothing, later starts find what the first has written."""
    root = site.image / "root.img"
    guest = Guest(site, root, " confide.format")
    guest.started()
    assert set(site.released()) == {"orders", "disk-data"}
    guest.end()
    before = len(site.released())
    guest = Guest(site, root)
    guest.started()
    assert len(site.released()) > before
    guest.end()
    assert b"LUKS" in site.disk.read_bytes()[: 4 << 20]


def test_another_root_file_system(site):
    """A block of a program is another one, its hash is not: the guest ends before it runs."""
    changed = site.folder / "changed.img"
    shutil.copy(site.image / "root.img", changed)
    blocks = run("debugfs", "-R", "blocks /usr/lib/systemd/systemd", changed).split()
    with changed.open("r+b") as image:
        image.seek(int(blocks[0]) * 4096)
        image.write(bytes(64))
    guest = Guest(site, changed)
    said = guest.wait(*STARTS)
    assert guest.process.poll() is not None
    assert "Started" not in said
    guest.kill()


def test_another_keeper(site):
    """The broker's policy is for another keeper: the disk stays closed, and nothing starts."""
    site.broker.kill()
    site.broker.wait()
    before = len(site.released())
    site.broker = site.start_broker("00" * 48)
    guest = Guest(site, site.image / "root.img")
    said = guest.wait("Failed to start confide-disk")
    assert "Failed to start confide-disk" in said
    guest.kill()
    assert not any(start in guest.said() for start in STARTS)
    assert len(site.released()) == before
