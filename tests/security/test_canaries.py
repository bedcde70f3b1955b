"""Every form of statement that brings a value to a protected column: the value is in no log.

Mechanism: each form has distinct values, a text and a number; the server logs all statements,
parameters and errors in full (`log_statement = all`), and keeper and proxy log as usual. Right: the
form works, or is refused before it is sent, and no log has either value as plaintext, in
hexadecimal or in base64. Bug: a proxy that overlooks a form sends it unchanged. Bugs found earlier
are in this list, too (test_repeated_values.py has them in full). Each form is tried on columns of
each family; what a family does not have is refused for one of the REASONS.

Files and memory of the server: test_planted_values.py.
"""

import base64
import itertools
import re
from pathlib import Path

import psycopg
import pytest

COUNTER = itertools.count(1)
FORMS = Path(__file__).parent / "canaries"


FAMILIES = ["enc", "rnd", "rnd_det", "soft"]
# What an error of something that works with enc_ says (docs/families.md).
RND = [
    # A parameter of a function takes no literals, a recursive query no arithmetic.
    r"(function|procedure) (same|either|add)\(.*\) does not exist",
    r'recursive query "\w+" column 1 has type rnd_',
    # Not implemented.
    r"generation expression is not immutable",
    r"functions in index expression must be marked IMMUTABLE",
    r"function to_char\(rnd_\w*date, unknown\) does not exist",
    # CREATE TABLE AS, domains.
    r"cannot have type rnd_",
    r"a domain over this protected type is not supported",
    r"RANGE with offset PRECEDING/FOLLOWING is not supported for column type rnd_",
]
SOFT = [
    # Beyond equality, order and sums; the keeper was not given the keys.
    r"the keeper has no key for the encodings of this column",
    r"is not available for protected values",
    r"(operator|function) .*soft_.* does not exist|operator does not exist: .*soft_",
    r"cannot be cast to text",
    r"(string_agg|json_agg|to_char|concat|jsonb?_\w+) does not work on protected values",
    # What was opened is none of the column's encodings.
    r"is of type soft_\w+ but expression is of type enc_",
    r"has type soft_\w+\(.*\) in non-recursive term but type enc_",
    r"cannot cast type enc_\w+ to soft_",
    r"cannot cast type soft_int8 to enc_numeric",
    r"cannot tell whether an expression of type soft_text has the encoding",
    r"of type enc_\w+ cannot be coerced to the expected type soft_",
    r"generation expression is not immutable",
    r"functions in index expression must be marked IMMUTABLE",
    r"cannot change to this family",
    r"meets both protected and plain values",
    r"encoded texts have the order of their first bytes only",
    r"collations are not supported by type soft_text",
    r"RANGE with an offset does not work over these values",
    # Encodings are of one column; a value in the clear tells what others are.
    r"cannot tell whether a literal meets a protected value",
    r"encodings with different keys",
    r"a domain over this protected type is not supported",
    r"is encoded in one place and stands in the clear in another",
    r"confide: a value of type \w+ meets a column of type soft_",
    r"the body of this routine names something protected and has constants in it",
]
REASONS = {
    "enc": [],
    "rnd": RND,
    "rnd_det": [
        *RND,
        r"operator does not exist: rnd_det_",
        r"ordering operator for type rnd_det_",
        r"cannot cast type rnd_det_",
    ],
    "soft": SOFT,
}


def forms(name):
    """Those of a file, one a line."""
    lines = (FORMS / f"{name}.sql").read_text().splitlines()
    return [line for line in lines if not line.startswith("--")]


def of_family(sql, family):
    """With the family's types; documents and columns of arrays have none but enc_."""
    if family != "soft":
        return re.sub(r"\benc_(?!json|\w+\[)", f"{family}_", sql)
    sql = sql.replace("enc_varchar(40)", "soft_text")
    return re.sub(r"\benc_(text|int8|date)\b", r"soft_\1", sql)


class Canary:
    """A text and a number that occur nowhere else."""

    def __init__(self, family="enc"):
        self.family = family
        self.number = 731_000_000_017 + 1_000_003 * next(COUNTER)
        self.text = f"Canary{self.number}Qz"

    def sql(self, form):
        return of_family(form % {"v": self.text, "n": self.number}, self.family)

    def found(self, logged):
        """How it is in the logs."""
        ways = {"text": self.text, "number": str(self.number), "hex": self.text.encode().hex()}
        for shift in range(3):
            encoded = base64.b64encode(b"\0" * shift + self.text.encode()).rstrip(b"=").decode()
            ways[f"base64+{shift}"] = encoded[(0, 2, 3)[shift] : -2]
        return [how for how, text in ways.items() if text.lower() in logged.lower()]


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture(scope="module")
def tables(stack, family):
    with stack.connect_app() as connection:
        connection.execute("DROP SCHEMA IF EXISTS canaries CASCADE")
        connection.execute("CREATE SCHEMA canaries")
        connection.execute("SET search_path = canaries")
        made = (FORMS / ("soft.sql" if family == "soft" else "tables.sql")).read_text()
        connection.execute(made if family == "soft" else of_family(made, family))
        yield connection
        connection.execute("DROP SCHEMA canaries CASCADE")


@pytest.fixture
def canary(family):
    return Canary(family)


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


def works(error, family):
    """Or the family is known not to have this."""
    return error is None or any(re.search(r, str(error)) for r in REASONS[family])


@pytest.mark.parametrize("form", forms("works"))
def test_simple(sent, canary, form):
    error = sent(canary, lambda c: c.execute(canary.sql(form)))
    assert works(error, canary.family), error


@pytest.mark.parametrize("form", [form for form in forms("works") if ";" not in form])
def test_extended(sent, canary, form):
    """The same in a message of the extended protocol, as drivers prepare it."""
    error = sent(canary, lambda c: c.execute(canary.sql(form), prepare=True))
    assert works(error, canary.family), error


@pytest.mark.parametrize("form", forms("parameters"))
@pytest.mark.parametrize("kind", ["s", "t", "b", "prepared"])
def test_parameters(sent, canary, form, kind):
    """As drivers send them: of no type or their own, as text or binary, prepared."""
    mark = "s" if kind == "prepared" else kind
    sql = form.format(v=f"%(v){mark}", n=f"%(n){mark}")
    given = {"v": canary.text, "n": canary.number}
    error = sent(canary, lambda c: c.execute(sql, given, prepare=kind == "prepared"))
    assert works(error, canary.family), error


@pytest.mark.parametrize("form", forms("fails"))
def test_errors(sent, canary, form):
    if canary.family == "soft" and "INTO p (id, vc)" in form:
        pytest.skip("a soft_text has no length")
    error = sent(canary, lambda c: c.execute(canary.sql(form)))
    assert error is not None


@pytest.mark.parametrize("form", forms("refused"))
@pytest.mark.parametrize("prepare", [False, True])
def test_refused(sent, canary, form, prepare):
    error = sent(canary, lambda c: c.execute(canary.sql(form), prepare=prepare))
    assert error is not None
    assert error.sqlstate == "0A000" or canary.family != "enc", error


@pytest.mark.parametrize("form", forms("json"))
def test_json(sent, canary, form):
    document = f'[{{"a": 1, "b": "{canary.text}", "name": "{canary.text}", "n": {canary.number}}}]'
    error = sent(canary, lambda c: c.execute(form, [document]))
    assert error is not None
    assert error.sqlstate == "0A000" or canary.family != "enc", error


def test_arrays(sent, canary):
    """Lists as one parameter, and as several statements that are sent together."""

    def act(c):
        c.execute("SELECT id FROM p WHERE name = ANY (%s)", [[canary.text, "b"]])
        c.execute("SELECT id FROM p WHERE n = ANY (%s)", [[canary.number, 1]])
        with c.cursor() as cursor:
            rows = [(n, canary.text, canary.number + n) for n in range(2, 5)]
            cursor.executemany("INSERT INTO p (id, name, n) VALUES (%s, %s, %s)", rows)
        with c.pipeline():
            c.execute("UPDATE p SET name = %s WHERE n = %s", [canary.text, canary.number])
            c.execute("UPDATE p SET name = name || %s", [canary.text])

    assert works(sent(canary, act), canary.family)


@pytest.mark.parametrize("options", ["", "WITH (FORMAT csv)", "WITH (FORMAT binary)"])
@pytest.mark.parametrize("wrong", [False, True])
def test_copy(sent, canary, options, wrong):
    """Rows in, also such that fail at the keeper, and out again."""

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

    error = sent(canary, act)
    assert error is not None if wrong else works(error, canary.family)


def test_copy_of_a_query(sent, canary):

    def act(c):
        query = "SELECT name || '%(v)s' FROM p WHERE name <> '%(v)s' AND n <> %(n)s"
        with c.cursor().copy(f"COPY ({canary.sql(query)}) TO STDOUT") as copy:
            assert canary.text.encode() in b"".join(bytes(part) for part in copy)

    assert works(sent(canary, act), canary.family)


def test_a_plain_value_is_found(stack, tables):
    """The search can find: a plain column's value is in the log."""
    canary = Canary()
    before = stack.log_sizes()
    with tables.transaction(force_rollback=True):
        tables.execute(f"UPDATE p SET note = '{canary.text}'")
        tables.execute("SELECT id FROM p WHERE id <> %s", [canary.number])
    assert {"text", "number"} <= set(canary.found(stack.logged_since(before)))
