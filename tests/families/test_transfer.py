"""The keeper opens values of the family soft_ for expressions that encodings do not allow, if it
has the column's key (`confide transfer-key`).

Mechanism: the proxy seals the key for the keeper; a cast to `enc_...` sends a cell to the keeper,
which opens it into a temporary value with the label of the column. Right: results as on plaintext,
for those who may see the column; without the key, and for others, a refusal. With a bug a value is
opened for somebody else, or the database sees the key.
"""

import subprocess

import psycopg
import pytest
from principals import three  # noqa: F401
from stack import PG_BIN

ROWS = [
    (1, "Anna", 10, "1.50", "2020-01-05"),
    (2, "Bert", -3, "0.25", "2021-06-30"),
    (3, None, None, None, None),
]
TYPES = [
    ("bool", "true", "n::enc_bool AND n::enc_bool"),
    ("int2", "7", "n::enc_int2 * 3"),
    ("int4", "-8", "abs(n::enc_int4) + 1"),
    ("int8", "5000000000", "n::enc_int8 % 7"),
    ("numeric(9,3)", "12.345", "round(n::enc_numeric, 1) / 2"),
    ("text", "its", "upper(n::enc_text) || '!'"),
    ("date", "2024-02-29", "n::enc_date + 1"),
    ("timestamp", "2024-02-29 12:30:00", "date_trunc('hour', n::enc_timestamp)"),
]


def keyed(stack, column, *more, url=None):
    program = stack.data.parent / "bin" / "confide"
    command = [
        program,
        "transfer-key",
        column,
        "--bindir",
        PG_BIN,
        "--dbname",
        url or stack.app_url,
    ]
    return subprocess.run([*command, *more], capture_output=True, text=True)


def given(stack, column, *more, url=None):
    done = keyed(stack, column, *more, url=url)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def people(app):
    app.execute(
        "CREATE TABLE people (id int, name soft_text, n soft_int4, rate soft_numeric(8,2),"
        " born soft_date)"
    )
    app.cursor().executemany("INSERT INTO people VALUES (%s, %s, %s, %s, %s)", ROWS)
    return app


@pytest.mark.parametrize(("name", "value", "expression"), TYPES)
def test_types(stack, app, plain_twin, schema, name, value, expression):
    for connection, prefix in ((app, "soft_"), (plain_twin, "")):
        connection.execute(f"CREATE TABLE one (n {prefix}{name})")
        connection.execute(f"INSERT INTO one VALUES ('{value}'), (NULL)")
    given(stack, f"{schema}.one.n")
    base = name.split("(")[0]
    plain = expression.replace(f"::enc_{base}", "")
    expected = plain_twin.execute(f"SELECT {plain} FROM one").fetchall()
    assert app.execute(f"SELECT {expression} FROM one").fetchall() == expected


def test_beyond_encodings(stack, people, schema):
    for column in ("name", "n", "rate"):
        given(stack, f"{schema}.people.{column}")
    for query, expected in (
        ("SELECT id FROM people WHERE name::enc_text LIKE 'A%'", [(1,)]),
        ("SELECT id FROM people WHERE n::enc_int4 + 1 = %s", [(2,)]),
        ("SELECT id FROM people WHERE n::enc_int4 < 0 AND name = 'Bert'", [(2,)]),
        (
            "SELECT id FROM people WHERE n > -9 ORDER BY length(name::enc_text), n::enc_int4",
            [(2,), (1,)],
        ),
        ("SELECT max(n::enc_int4 * 2), sum(n) FROM people", [(20, 7)]),
        (
            "SELECT n::enc_int4 / 2, count(*) FROM people GROUP BY 1 ORDER BY 1",
            [(-1, 1), (5, 1), (None, 1)],
        ),
    ):
        argument = [-2] if "%s" in query else None
        assert people.execute(query, argument).fetchall() == expected, query


def test_without_the_key(stack, people, schema, second):
    """Refused before it is given, and after it is taken back, also by who has a session already."""
    query = "SELECT n::enc_int4 + 1 FROM people WHERE id = 1"
    with pytest.raises(psycopg.errors.FeatureNotSupported) as error:
        people.execute(query).fetchall()
    assert "transfer-key" in error.value.diag.message_hint
    given(stack, f"{schema}.people.n")
    assert second.execute(query).fetchall() == [(11,)]
    # Of this column only.
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        people.execute("SELECT upper(name::enc_text) FROM people").fetchall()
    given(stack, f"{schema}.people.n", "--withdraw")
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        second.execute(query).fetchall()


IMPLICIT = [
    ("SELECT id FROM people WHERE n + 1 = 11", [(1,)]),
    ("SELECT id FROM people WHERE n * n > 50", [(1,)]),
    ("SELECT -n, abs(n), n / 2 FROM people WHERE id = 2", [(3, 3, -1)]),
    ("SELECT id FROM people WHERE name LIKE 'A%'", [(1,)]),
    (
        "SELECT upper(name) || '!', length(name) FROM people ORDER BY id",
        [("ANNA!", 4), ("BERT!", 4), (None, None)],
    ),
    ("SELECT max(n * 2), sum(n), stddev(n) IS NULL FROM people", [(20, 7, False)]),
    ("SELECT id FROM people WHERE n - 1 > %s", [(1,)]),
    ("SELECT id FROM people WHERE n > id", [(1,)]),
]


@pytest.mark.parametrize(("query", "expected"), IMPLICIT)
def test_without_a_cast(stack, people, schema, query, expected):
    """What no encoding allows is cast to enc_ by itself; without the key it is refused, saying how
    the key is given."""
    arguments = [3] if "%s" in query else None
    with pytest.raises(psycopg.errors.FeatureNotSupported) as error:
        people.execute(query, arguments).fetchall()
    assert "transfer-key" in error.value.diag.message_hint
    for column in ("name", "n"):
        given(stack, f"{schema}.people.{column}")
    assert people.execute(query, arguments).fetchall() == expected


def test_a_missing_order(stack, app, schema):
    """A column without the encoding of an operator: the keeper compares, or the refusal names the
    encoding and the command. A refusal goes by what the keeper has now, however long answers are
    remembered."""
    app.execute("SET confide.soft_probe_interval = 60000")
    app.execute("CREATE TABLE few (id int, n soft_int4(eq), price soft_numeric(8,2,eq))")
    app.execute("INSERT INTO few VALUES (1, 5, 2.50), (2, -7, 9.00), (3, NULL, NULL)")
    for query, column, expected in (
        ("SELECT id FROM few WHERE n < 0", "n", [(2,)]),
        ("SELECT id FROM few WHERE price BETWEEN 2.00 AND 3.00", "price", [(1,)]),
    ):
        with pytest.raises(psycopg.errors.FeatureNotSupported) as error:
            app.execute(query)
        assert '"ord"' in str(error.value)
        assert "transfer-key" in error.value.diag.message_hint
        given(stack, f"{schema}.few.{column}")
        assert app.execute(query).fetchall() == expected


def test_casts_in_batches(stack, app, dba, schema):
    """A cast in a scan's qual takes a few answers, not one for each row; so does an aggregate."""
    dba.execute("GRANT pg_monitor TO app")
    asked = "SELECT value FROM confide.confide_stat_keeper WHERE name = 'session.messages.CellOpen'"
    app.execute("CREATE TABLE many (id int, n soft_int4, name soft_text)")
    with app.cursor().copy("COPY many FROM STDIN") as copy:
        for number in range(2000):
            copy.write_row((number, number % 100, f"name {number % 10}"))
    for column in ("n", "name"):
        given(stack, f"{schema}.many.{column}")

    def opened():
        return int((app.execute(asked).fetchone() or ("0",))[0])

    for query, expected in (
        ("SELECT count(*) FROM many WHERE n::enc_int4 * 2 > 150", 480),
        ("SELECT count(*) FROM many WHERE n * 2 > 150", 480),
        ("SELECT count(*) FROM many WHERE name LIKE '%3' AND n % 2 = 1", 200),
        ("SELECT max(n * n) FROM many", 9801),
    ):
        before = opened()
        assert app.execute(query).fetchone() == (expected,), query
        assert opened() - before < 20, query
    dba.execute("REVOKE pg_monitor FROM app")


def test_it_is_kept(stack, people, schema):
    given(stack, f"{schema}.people.n")
    stack.kill_keeper()
    stack.up()
    with stack.connect_app(options=f"-c search_path={schema}") as again:
        assert again.execute("SELECT sum(n::enc_int4 * n::enc_int4) FROM people").fetchone() == (
            109,
        )


def test_not_for_a_superuser(stack, people, dba, schema):
    """The key passes the database sealed; cells are opened for clients only, in statements that may
    read their column."""
    sizes = stack.log_sizes()
    given(stack, f"{schema}.people.n")
    logged = stack.logged_since(sizes)
    assert "CALL confide.policy('cfd1." in logged
    for query in ("n::enc_int4 + n::enc_int4", "n::enc_int4"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            dba.execute(f"SELECT {query} FROM people").fetchall()


def test_only_the_owner(three):  # noqa: F811
    stack = three.stack
    with three.connect("ann") as ann, three.connect("bob") as bob, three.connect("boss") as boss:
        ann.execute("CREATE TABLE public.wages (id int, pay soft_int4)")
        ann.execute("GRANT ALL ON public.wages TO bob")
        ann.execute("INSERT INTO public.wages VALUES (1, 7)")
        boss.execute("GRANT OWNER public.wages.pay TO ann")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            bob.execute("SELECT confide.transfer_key('public.wages.pay')")
        url = f"postgresql://ann:x@127.0.0.1:{three.port}/app"
        given(stack, "public.wages.pay", url=url)
        query = "SELECT pay::enc_int4 + 1 FROM public.wages"
        assert ann.execute(query).fetchall() == [(8,)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            bob.execute(query).fetchall()
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            bob.execute("SELECT confide.withdraw_key('public.wages.pay')")


def test_a_shared_key(stack, app, schema):
    """Cells do not say of which of two columns they are."""
    app.execute("CREATE TABLE pair (a soft_int4(key_4711), b soft_int4(key_4711))")
    given(stack, f"{schema}.pair.a")
    done = keyed(stack, f"{schema}.pair.b")
    assert done.returncode == 1
    given(stack, f"{schema}.pair.a", "--withdraw")
    given(stack, f"{schema}.pair.b")
    given(stack, f"{schema}.pair.b", "--withdraw")
