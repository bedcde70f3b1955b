"""C libraries that a superuser loads into the server."""

import os
import subprocess

from stack import PG_BIN


def built(stack, name, source, made):
    """Compiles a source in a directory; where the server can read the library."""
    (made / f"{name}.c").write_text(source)
    asked = [PG_BIN / "pg_config", "--includedir-server"]
    if "PG_CONFIG" in os.environ:
        asked[0] = os.environ["PG_CONFIG"]
    include = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    command = ["gcc", "-shared", "-fPIC", "-w", "-I", include, "-o", f"{name}.so", f"{name}.c"]
    subprocess.run(command, cwd=made, check=True)
    file = stack.data.parent / "log" / f"{name}.so"
    file.write_bytes((made / f"{name}.so").read_bytes())
    file.chmod(0o755)
    return file
