"""`scripts/reproduce` notices what differs by place: a program that has the folder it was built
in.

Mechanism: it builds in two folders by two users, and looks for its folders in what came out.
Right: the keeper's builds are the same, which takes two whole builds (`make reproduce`); here a
small program that does know its folder (the generator, which writes into its sources) is refused,
and left nowhere. Bug: two builds are called the same though nobody else could make them.
"""

import os
import subprocess

from stack import ROOT


def test_paths_are_noticed(tmp_path):
    done = subprocess.run(
        [ROOT / "scripts/reproduce", "catalog", "generate"],
        env={**os.environ, "CARGO_TARGET_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "a path is in the program: /" in done.stderr
    assert not (tmp_path / "reproduced").exists()
