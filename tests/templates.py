"""Maintenance templates in tests: the role that applies them, and the command."""

import subprocess

import psycopg
from stack import PG_BIN

OWNER = "app"


class Fixes:
    """Templates applied as the role that `confide fix rights` makes."""

    def __init__(self, stack, folder):
        self.stack = stack
        self.folder = folder
        self.log = folder / "fix.log"
        script = self.confide("rights", "--owner", OWNER).stdout
        with stack.connect_dba() as dba:
            dba.execute(script)
            dba.execute("ALTER ROLE confide_fix PASSWORD 'fix'")
        port = psycopg.conninfo.conninfo_to_dict(stack.dba_url)["port"]
        self.url = psycopg.conninfo.make_conninfo(
            host="127.0.0.1", port=port, dbname="app", user="confide_fix", password="fix"
        )

    def drop(self):
        roles = "confide_fix, confide_fix_owners"
        with self.stack.connect_dba() as dba:
            dba.execute(f"DROP OWNED BY {roles}")
            dba.execute(f"DROP ROLE {roles}")

    def confide(self, *arguments):
        return self.run("fix", *arguments)

    def run(self, *arguments):
        command = [self.stack.data.parent / "bin" / "confide", *arguments]
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )

    def apply(self, text, *more, name="fix.toml"):
        file = self.folder / name
        file.write_text(text)
        where = ["--dbname", self.url, "--bindir", PG_BIN, "--log", self.log]
        return self.confide("apply", file, *where, *more)

    def applied(self, text, *more, **options):
        """What the command says of a template that is applied."""
        done = self.apply(text, *more, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refused(self, text, rule):
        """The template is refused by a rule, and nothing of it was done."""
        done = self.apply(text)
        assert done.returncode == 1, done.stdout
        assert f'refused by rule "{rule}"' in done.stderr, done.stderr
        return done.stderr

    def undo(self, name="fix"):
        where = ["--dbname", self.url, "--bindir", PG_BIN, "--log", self.log]
        done = self.confide("apply", self.folder / f"{name}.undo.toml", *where)
        assert done.returncode == 0, done.stderr


def fix(action, **parameters):
    """An action of a template."""
    lines = [f'action = "{action}"']
    for name, value in parameters.items():
        lines.append(f"{name} = {str(value).lower() if isinstance(value, bool) else repr(value)}")
    return "[[fix]]\n" + "\n".join(lines) + "\n"
