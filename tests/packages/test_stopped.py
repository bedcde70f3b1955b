"""Stopping a process that nobody takes notice of, as in a container without an init.

Right: it counts as ended once it has exited. Bug: `make down` and `make up` wait for a minute, as
the process has an entry in /proc until its parent has read how it ended."""

import os
import subprocess

from stack import ROOT

STOP = '. "{root}/scripts/lib.sh" && stop_pid {pid} {seconds}'
# Much longer than the stop takes, and shorter than what it would wait for.
PATIENCE = 300


def test_not_taken_notice_of():
    # Its parent, which we are, looks only at the end.
    child = subprocess.Popen(["sleep", "infinity"])
    try:
        stop = STOP.format(root=ROOT, pid=child.pid, seconds=10 * PATIENCE)
        subprocess.run(["bash", "-c", stop], check=True, timeout=PATIENCE)
        ended = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG)
        assert ended is not None
        assert ended.si_status == 15
    finally:
        child.kill()
        child.wait()
