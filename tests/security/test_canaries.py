"""Every form of statement that brings a value to a protected column: the value is in no log.

Mechanism: each form has distinct values, a text and a number; the server logs all statements,
parameters and errors in full (`log_statement = all`), and keeper and proxy log as usual. Right: the
form works, or is refused before it is sent, and no log has either value as plaintext, in
hexadecimal or in base64. Bug: a proxy that overlooks a form sends it unchanged. Bugs found earlier
are in this list, too (test_repeated_values.py has them in full).

Files and memory of the server: test_planted_values.py.
"""

import base64
import itertools
from pathlib import Path

import psycopg
import pytest

COUNTER = itertools.count(1)
FORMS = Path(__file__).parent / "canaries"


def forms(name):
    """Those of a file, one a line."""
    lines = (FORMS / f"{name}.sql").read_text().splitlines()
    return [line for line in lines if not line.startswith("--")]


class Canary:
    """A text and a number that occur nowhere else."""

    def __init__(self):
        self.number = 731_000_000_017 + 1_000_003 * next(COUNTER)
        self.text = f"Canary{self.number}Qz"

    def sql(self, form):
        return form % {"v": self.text, "n": self.number}

    def found(self, logged):
        """How it is in the logs."""
        ways = {"text": self.text, "number": str(self.number), "hex": self.text.encode().hex()}
        for shift in range(3):
            encoded = base64.b64encode(b"\0" * shift + self.text.encode()).rstrip(b"=").decode()
            ways[f"base64+{shift}"] = encoded[(0, 2, 3)[shift] : -2]
        return [how for how, text in ways.items() if text.lower() in logged.lower()]


@pytest.fixture(scope="module")
def tables(stack):
    with stack.connect_app() as connection:
        connection.execute("DROP SCHEMA IF EXISTS canaries CASCADE")
        connection.execute("CREATE SCHEMA canaries")
        connection.execute("SET search_path = canaries")
        connection.execute((FORMS / "tables.sql").read_text())
        yield connection
        connection.execute("DROP SCHEMA canaries CASCADE")


@pytest.fixture
def sent(stack, tables):
    """Runs something in a transaction that is taken back; gives its error. No log may have the
    canary."""

    def send(canary, act):
        before = stack.log_sizes()
        error = None
        try:
            with tables.transaction(force_rollback=True):
                act(tables)
        except psycopg.Error as raised:
            error = raised
        assert canary.found(stack.logged_since(before)) == []
        return error

    return send


@pytest.mark.parametrize("form", forms("works"))
def test_simple(sent, form):
    canary = Canary()
    error = sent(canary, lambda c: c.execute(canary.sql(form)))
    assert error is None, error


@pytest.mark.parametrize("form", forms("parameters"))
@pytest.mark.parametrize("kind", ["s", "t", "b", "prepared"])
def test_parameters(sent, form, kind):
    """As drivers send them: of no type or their own, as text or binary, prepared."""
    canary = Canary()
    mark = "s" if kind == "prepared" else kind
    sql = form.format(v=f"%(v){mark}", n=f"%(n){mark}")
    given = {"v": canary.text, "n": canary.number}
    error = sent(canary, lambda c: c.execute(sql, given, prepare=kind == "prepared"))
    assert error is None, error


@pytest.mark.parametrize("form", forms("fails"))
def test_errors(sent, form):
    canary = Canary()
    error = sent(canary, lambda c: c.execute(canary.sql(form)))
    assert error is not None


@pytest.mark.parametrize("form", forms("refused"))
def test_refused(sent, form):
    canary = Canary()
    error = sent(canary, lambda c: c.execute(canary.sql(form)))
    assert error is not None
    assert error.sqlstate == "0A000", error


@pytest.mark.parametrize("form", forms("json"))
def test_json(sent, form):
    canary = Canary()
    document = f'[{{"a": 1, "b": "{canary.text}", "name": "{canary.text}", "n": {canary.number}}}]'
    error = sent(canary, lambda c: c.execute(form, [document]))
    assert error is not None
    assert error.sqlstate == "0A000", error


def test_arrays(sent):
    """Lists as one parameter, and as several statements that are sent together."""
    canary = Canary()

    def act(c):
        c.execute("SELECT id FROM p WHERE name = ANY (%s)", [[canary.text, "b"]])
        c.execute("SELECT id FROM p WHERE n = ANY (%s)", [[canary.number, 1]])
        with c.cursor() as cursor:
            rows = [(n, canary.text, canary.number + n) for n in range(2, 5)]
            cursor.executemany("INSERT INTO p (id, name, n) VALUES (%s, %s, %s)", rows)
        with c.pipeline():
            c.execute("UPDATE p SET name = %s WHERE n = %s", [canary.text, canary.number])
            c.execute("UPDATE p SET name = name || %s", [canary.text])

    assert sent(canary, act) is None


@pytest.mark.parametrize("options", ["", "WITH (FORMAT csv)", "WITH (FORMAT binary)"])
@pytest.mark.parametrize("wrong", [False, True])
def test_copy(sent, options, wrong):
    """Rows in, also such that fail at the keeper, and out again."""
    canary = Canary()

    def act(c):
        with c.cursor().copy(f"COPY p (id, name, n) FROM STDIN {options}") as copy:
            if "binary" in options:
                copy.set_types(["int4", "text", "int8"])
                copy.write_row((1 if wrong else 2, canary.text, canary.number))
            else:
                mark = "," if options else "\t"
                number = canary.text if wrong else canary.number
                copy.write(f"2{mark}{canary.text}{mark}{number}\n")
        with c.cursor().copy(f"COPY p (name) TO STDOUT {options}") as copy:
            assert canary.text.encode() in b"".join(bytes(part) for part in copy)

    assert (sent(canary, act) is not None) == wrong


def test_copy_of_a_query(sent):
    canary = Canary()

    def act(c):
        query = "SELECT name || '%(v)s' FROM p WHERE name <> '%(v)s' AND n <> %(n)s"
        with c.cursor().copy(f"COPY ({canary.sql(query)}) TO STDOUT") as copy:
            assert canary.text.encode() in b"".join(bytes(part) for part in copy)

    assert sent(canary, act) is None


def test_a_plain_value_is_found(stack, tables):
    """The search can find: a plain column's value is in the log."""
    canary = Canary()
    before = stack.log_sizes()
    with tables.transaction(force_rollback=True):
        tables.execute(f"UPDATE p SET note = '{canary.text}'")
        tables.execute("SELECT id FROM p WHERE id <> %s", [canary.number])
    assert {"text", "number"} <= set(canary.found(stack.logged_since(before)))
