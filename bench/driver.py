"""Runs the Rust driver (bench/driver) against a stack in one of three ways, and reads its figures.

`direct` is plaintext straight to PostgreSQL, `library` protects in the driver's own process,
`proxy` goes through the proxy.
"""

import json
import os
import subprocess
from pathlib import Path

from stack import ROOT, Stack

BINARY = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/bench-driver"


def driver(stack: Stack, path: str, schema: str, *arguments) -> dict:
    host = "CONFIDE_APP_PORT" if path == "proxy" else "CONFIDE_PGPORT"
    command = [BINARY, "--host", f"127.0.0.1:{stack.environment[host]}", "--schema", schema]
    if path == "library":
        keys = stack.data.parent
        keeper = subprocess.run(
            [keys / "bin/confide", "pubkey", keys / "keeper/keeper.key"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()[-1]
        command += ["--client-key", keys / "proxy/client.key", "--keeper-key", keeper]
    password = stack.app_url.split(":")[2].rpartition("@")[0]
    done = subprocess.run(
        [*map(str, command), *map(str, arguments)],
        env={**os.environ, "PGPASSWORD": password},
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{path} {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return json.loads(done.stdout)
