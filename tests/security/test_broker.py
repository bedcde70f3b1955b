"""The broker of root keys: keepers with the right program start unattended, others do not.

Mechanism: with `root_key_source = "broker://…"` the keeper sends a request to `confide broker`,
which requires evidence bound to its own message, and logs the keys that it releases. Right: a
keeper whose evidence satisfies the policy starts unattended, even with a root key file copied from
another keeper. Without the broker, with another broker, or under a policy for another program it
exits with code 3. Bug: it starts anyway, so a stolen disk is enough."""

import contextlib
import json
import os
import re
import subprocess

import pytest
from stack import ROOT, alive, free_port, kill
from waiting import until

NO_ROOT_KEY = 3


class Site:
    """A broker, keepers without a database, and their files."""

    def __init__(self, stack, directory):
        self.bin = stack.data.parent / "bin"
        self.directory = directory
        self.processes = []
        self.key = self.confide("keygen", "broker", "--out", directory / "broker.key").split()[-1]
        self.confide("keygen", "broker", "--out", directory / "broker.secret")
        self.measurement = self.confide("measure", self.bin / "confide-keeper").strip()
        self.port = free_port()
        self.broker_process = None

    def confide(self, *arguments) -> str:
        command = [self.bin / "confide", *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, name, command, environment):
        """A process that says when it is ready; its exit code if it is not."""
        log = self.directory / f"{name}.log"
        with log.open("w") as out:
            process = subprocess.Popen(
                command,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd="/",
            )
        self.processes.append(process)
        until(lambda: " ready on " in log.read_text() or process.poll() is not None, name)
        return process, log.read_text()

    def broker(self, *measurements, names=("orders",), key="broker.key"):
        """Starts a broker in the place of the one before."""
        if self.broker_process:
            stop(self.broker_process)
        policy = self.directory / "policy.toml"
        policy.write_text(f"[simulated]\nmeasurements = {json.dumps(measurements)}\n")
        command = [self.bin / "confide", "broker", "--simulated", "--policy", policy]
        command += ["--listen", f"127.0.0.1:{self.port}", "--key", self.directory / key]
        command += ["--secret", self.directory / "broker.secret"]
        command += ["--audit", self.directory / "audit"]
        for name in names:
            command += ["--name", name]
        self.broker_process, said = self.start("broker", command, {})
        assert self.broker_process.poll() is None, said

    def keeper(self, name, root="root.key", wanted="orders"):
        """Starts a keeper; its process and what it has said."""
        folder = self.directory / name
        folder.mkdir(exist_ok=True)
        settings = {
            "socket": folder / "keeper.sock",
            "key_file": folder / "keeper.key",
            "root_key_file": self.directory / root,
            "root_key_source": f"broker://127.0.0.1:{self.port}?key={self.key}&name={wanted}",
            "clients_file": folder / "clients",
            "users": "",
        }
        (folder / "clients").touch()
        environment = {f"CONFIDE_KEEPER_{k.upper()}": str(v) for k, v in settings.items()}
        empty = folder / "keeper.toml"
        empty.touch()
        return self.start(name, [self.bin / "confide-keeper", "--config", empty], environment)

    def starts(self, *arguments, **options):
        process, said = self.keeper(*arguments, **options)
        assert process.poll() is None, said
        stop(process)

    def ends(self, word, *arguments, **options):
        process, said = self.keeper(*arguments, **options)
        assert (process.poll(), word in said) == (NO_ROOT_KEY, True), said

    def audit(self) -> list[dict]:
        return [json.loads(line) for line in (self.directory / "audit").read_text().splitlines()]


def stop(process):
    with contextlib.suppress(ProcessLookupError):
        if alive(process.pid):
            kill(process.pid)
    process.wait()


@pytest.fixture
def site(stack, tmp_path):
    site = Site(stack, tmp_path)
    yield site
    for process in site.processes:
        stop(process)


def test_unattended_restarts(site):
    """Made, killed, started anew: nobody types anything. A standby has the same file."""
    site.broker(site.measurement)
    process, said = site.keeper("first")
    assert process.poll() is None, said
    stop(process)  # with SIGKILL
    site.starts("first")
    site.starts("standby")
    shown = site.confide("root-key", "show", "--file", site.directory / "root.key")
    assert "wrapped by broker" in shown
    released = [entry for entry in site.audit() if entry["outcome"] == "released"]
    assert {entry["name"] for entry in released} == {"orders"}
    assert len({entry["keeper"] for entry in released}) == 2
    assert all(site.measurement in entry["detail"] for entry in released)


def test_stolen_disk(site):
    """Everything of the keeper's disk, and no broker that knows it."""
    site.broker(site.measurement)
    site.starts("first")
    site.broker("00" * 48)
    site.ends("evidence refused (measurement)", "first")
    site.broker(site.measurement, names=("others",))
    site.ends("is not for keepers of this policy", "first")
    assert [entry["outcome"] for entry in site.audit()][-2:] == ["refused"] * 2
    # Another broker at the address, with another key; then with the same key and another secret.
    site.confide("keygen", "broker", "--out", site.directory / "other.key")
    site.broker(site.measurement, key="other.key")
    site.ends("another broker answers", "first")
    (site.directory / "broker.secret").unlink()
    site.confide("keygen", "broker", "--out", site.directory / "broker.secret")
    site.broker(site.measurement)
    site.ends("does not open root key file", "first")
    stop(site.broker_process)
    site.ends("Connection refused", "first")


def test_the_way_out(site):
    """Who has the broker's secret can wrap the root key otherwise, and bring one to the broker."""
    site.broker(site.measurement)
    site.starts("first")
    file = site.directory / "root.key"
    secret = f"broker-secret:{site.directory / 'broker.secret'}?name=orders"
    wrap = f"file:{site.directory / 'wrap'}"
    site.confide("root-key", "rotate", "--file", file, "--from", secret, "--to", wrap)
    site.ends('wrapped by "file"', "first")
    site.confide("root-key", "rotate", "--file", file, "--from", wrap, "--to", secret)
    site.starts("first")


def test_broken_log(site):
    """A broker does not go on from a log that somebody has changed."""
    site.broker(site.measurement)
    site.starts("first")
    stop(site.broker_process)
    log = site.directory / "audit"
    log.write_text(log.read_text() + '{"before":"","time":0}\n')
    with pytest.raises(AssertionError, match="does not go on from the one before"):
        site.broker(site.measurement)


def disk_key(site, name="disk-data") -> tuple[int, str, str]:
    """Exit code, the key, what is said beside it."""
    source = f"broker://127.0.0.1:{site.port}?key={site.key}&name=orders"
    empty = site.directory / "empty.toml"
    empty.touch()
    done = subprocess.run(
        [site.bin / "confide-keeper", "--config", empty, "--disk-key", name],
        env={**os.environ, "CONFIDE_KEEPER_ROOT_KEY_SOURCE": source},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout, done.stderr


def test_key_of_a_disk(site):
    """The guest's disk opens with a key that the broker gives to the right program only, the same
    at each boot; a stolen disk boots nowhere else. Bug: a key, or a part of one, for somebody else;
    or the key that wraps the root key."""
    site.broker(site.measurement, names=("orders", "disk-data", "disk-logs"))
    code, key, said = disk_key(site)
    assert (code, len(bytes.fromhex(key))) == (0, 32), said
    assert disk_key(site)[:2] == (0, key)
    assert disk_key(site, "disk-logs")[1] not in ("", key)
    assert disk_key(site, "disk-others")[:2] == (NO_ROOT_KEY, "")
    assert disk_key(site, "orders")[:2] == (NO_ROOT_KEY, "")
    released = [entry["name"] for entry in site.audit() if entry["outcome"] == "released"]
    assert released == ["disk-data", "disk-data", "disk-logs"]
    process, said = site.keeper("first", wanted="disk-data")
    assert process.poll() == NO_ROOT_KEY, said
    site.broker("00" * 48, names=("disk-data",))
    code, key, said = disk_key(site)
    assert (code, key, "evidence refused (measurement)" in said) == (NO_ROOT_KEY, "", True)
    stop(site.broker_process)
    assert disk_key(site)[:2] == (NO_ROOT_KEY, "")


def test_disk(site):
    """What the unit and its recipe say, on a file instead of a device, without the kernel's part:
    cryptsetup makes the disk with the broker's key, and opens it with that and no other. Bug: a
    key that cryptsetup reads otherwise at the next boot, or an empty one that opens."""
    site.broker(site.measurement, names=("disk-data", "disk-logs"))
    disk = site.directory / "disk"
    disk.write_bytes(bytes(32 << 20))

    def cryptsetup(key, *words) -> int:
        command = ["cryptsetup", *words, "--batch-mode", "--key-file", "-", disk]
        return subprocess.run(command, input=key, capture_output=True, text=True).returncode

    weak = ("--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000")  # a key, not a password
    opens = ("open", "--type", "luks2", "--test-passphrase")
    assert cryptsetup(disk_key(site)[1], "luksFormat", "--type", "luks2", *weak) == 0
    assert cryptsetup(disk_key(site)[1], *opens) == 0
    assert cryptsetup(disk_key(site, "disk-logs")[1], *opens) != 0
    site.broker("00" * 48, names=("disk-data",))
    code, key, _ = disk_key(site)
    assert (code, key) == (NO_ROOT_KEY, "")
    assert cryptsetup(key, *opens) != 0


def test_units(site):
    """The options in the units are those of the programs, and the broker's unit starts one. Bug: a
    recipe that nobody can follow."""
    for name in "confide-broker", "confide-disk":
        unit = (ROOT / "packaging" / f"{name}.service").read_text()
        for line in re.findall(r"^ExecStart=(.*confide.*)$", unit, re.M):
            for program, rest in re.findall(r"/usr/bin/(confide(?:-keeper)?) ([^|']*)", line):
                words = rest.split()
                command = [site.bin / program, *(w for w in words[:1] if not w.startswith("-"))]
                shown = subprocess.run([*command, "--help"], capture_output=True, text=True)
                options = [word for word in words if word.startswith("--")]
                assert options
                assert all(f"{option} " in shown.stdout for option in options), line
