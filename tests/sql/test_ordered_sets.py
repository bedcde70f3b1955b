"""Percentiles of protected values: many rows, parameters, and what fails, as on plain ones.

Each form of the clause is in tests/compat/sql/written.txt. Bug: another value than PostgreSQL's, an
error that names something else, or one that only the server finds.
"""

import random

import psycopg
import pytest
from results import run

KINDS = {"n": "numeric", "f": "float8", "v": "interval"}


@pytest.fixture
def sides(app):
    """The same rows in a plain and a protected table, some of them NULL."""
    for table, prefix in (("p", ""), ("e", "enc_")):
        columns = ", ".join(f"{c} {prefix}{t}" for c, t in KINDS.items())
        app.execute(f"CREATE TABLE {table} (g int, {columns})")
    rng = random.Random(7)
    with app.cursor().copy("COPY p FROM STDIN") as copy:
        for row in range(700):
            value = None if row % 11 == 0 else rng.randrange(-(10**6), 10**6) / 8
            copy.write_row((row % 7, value, value, None if value is None else f"{value} hours"))
    app.execute("INSERT INTO e SELECT * FROM p")
    return app


def both(connection, query, *parameters):
    plain, protected = (run(connection, query.format(t), *parameters) for t in "pe")
    assert (protected.sqlstate, protected.rows) == (plain.sqlstate, plain.rows)
    return plain


@pytest.mark.parametrize("column", KINDS)
@pytest.mark.parametrize("order", ["", "DESC", "DESC NULLS LAST"])
def test_groups(sides, column, order):
    clause = f"WITHIN GROUP (ORDER BY {column} {order})"
    query = f"SELECT g, percentile_cont(0.3) {clause}, percentile_cont(ARRAY[0, 0.77, 1]) {clause}"
    assert len(both(sides, query + " FROM {} GROUP BY g ORDER BY g").rows) == 7


@pytest.mark.parametrize("fraction", ["0.4", "'0.4'", "g / 7.0", "CAST(%s AS float8)", "%s"])
def test_fractions(sides, fraction):
    clause = "WITHIN GROUP (ORDER BY f) FROM {} GROUP BY g ORDER BY g"
    parameters = [[0.4]] if "%" in fraction else []
    for name in ("percentile_cont", "percentile_disc"):
        both(sides, f"SELECT {name}({fraction}) {clause}", *parameters)


@pytest.mark.parametrize("fraction", ["1.5", "-0.1", "'NaN'", "ARRAY[0.5, 2]"])
@pytest.mark.parametrize("rows", ["true", "g < 0"])
def test_no_fractions(sides, fraction, rows):
    clause = f"WITHIN GROUP (ORDER BY n) FROM {{}} WHERE {rows}"
    outcome = both(sides, f"SELECT percentile_cont({fraction}) {clause}")
    none = rows != "true" and "ARRAY" in fraction
    assert outcome.sqlstate == (None if none else "22003")


REFUSED = {
    "percentile_cont(f) WITHIN GROUP (ORDER BY n)": "plain column",
    "percentile_disc(f) WITHIN GROUP (ORDER BY n)": "plain column",
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY f USING >)": "ASC or DESC",
}


@pytest.mark.parametrize("call", REFUSED)
def test_refused(sides, call):
    with pytest.raises(psycopg.errors.FeatureNotSupported) as caught:
        sides.execute(f"SELECT {call} FROM e GROUP BY f")
    assert REFUSED[call] in caught.value.diag.message_hint
