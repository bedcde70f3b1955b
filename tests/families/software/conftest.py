"""The stack of these tests has no keeper."""

import os

import pytest
from stack import ROOT, Stack


@pytest.fixture(scope="session")
def stack(request):
    stack = Stack(ROOT / ".run" / f"software-{os.getpid()}")
    stack.environment["MODE"] = "software"
    stack.environment["CONFIDE_WAIT"] = "30"
    stack.fresh()
    yield stack
    # After a failure, data and logs stay until the next run.
    stack.down(*([] if request.session.testsfailed else ["--remove"]))
