"""`make demo-ledger`: pages of a table and of its history are edited as root. Right: the command
that verified the table before names the three versions afterwards, with exit code 1."""

import re


def test_demo(stack):
    try:
        said = stack.script("../demo/ledger")
        # The demo has stopped and started the stack.
        stack.up()
        before, after = said.split("Root edits a page of the history")
        assert "\nverified\n" in before
        assert "exit code" not in before
        assert "the table is not as it was written" in after
        assert after.rstrip().endswith("exit code 1")
        assert len(re.findall(r"^version \d+: altered$", after, re.MULTILINE)) == 3
    finally:
        with stack.connect_app() as app:
            app.execute("DROP SCHEMA IF EXISTS ledger_demo CASCADE")
