"""The running keeper is in its sandbox, with all of its threads. crates/keeper/tests/sandbox.rs
tries what the sandbox refuses; without it the fields below are 0."""

from pathlib import Path

FILTERED = "2"


def status(thread):
    """Nothing of a thread that has ended: those of earlier connections may end now."""
    try:
        lines = (thread / "status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def test_every_thread(stack, app):
    # A connection's thread is younger than the sandbox.
    app.execute("SELECT 1::enc_int4")
    threads = Path(f"/proc/{stack.keeper_pid()}/task").iterdir()
    running = [found for found in map(status, threads) if found]
    assert len(running) > 2
    for found in running:
        assert found["Seccomp"] == FILTERED, found["Name"]
        assert found["NoNewPrivs"] == "1", found["Name"]
