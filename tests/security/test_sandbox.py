"""The running keeper is in its sandbox, with all of its threads. crates/keeper/tests/sandbox.rs
tries what the sandbox refuses; without it the fields below are 0."""

from pathlib import Path

FILTERED = "2"


def status(thread):
    lines = (thread / "status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def test_every_thread(stack, app):
    # A connection's thread is younger than the sandbox.
    app.execute("SELECT 1::enc_int4")
    threads = list(Path(f"/proc/{stack.keeper_pid()}/task").iterdir())
    assert len(threads) > 2
    for thread in threads:
        found = status(thread)
        assert found["Seccomp"] == FILTERED, found["Name"]
        assert found["NoNewPrivs"] == "1", found["Name"]
