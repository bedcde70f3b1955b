"""The role that executes templates, made for each file, and the command with a log of each
test's own."""

import pytest
from templates import Fixes


@pytest.fixture(scope="module")
def role(stack, tmp_path_factory):
    stack.up()
    made = Fixes(stack, tmp_path_factory.mktemp("role"))
    yield made
    made.drop()


@pytest.fixture
def fixes(role, stack, tmp_path):
    """The command, with a log and files of the test's own."""
    made = object.__new__(Fixes)
    made.stack, made.url = stack, role.url
    made.folder, made.log = tmp_path, tmp_path / "fix.log"
    return made
