"""The demo's data, loaded as `make demo` does, and its queries with the rows they give."""

import pytest
from demo_data import SCHEMA, TABLES, queries, rows_of
from results import plain, run


@pytest.fixture(scope="module")
def payroll(stack):
    """The demo's protected tables, and a plain twin in the schema `payroll_plain`."""
    for schema, ddl in (
        ("payroll", SCHEMA),
        ("payroll_plain", plain(SCHEMA).replace("payroll", "payroll_plain")),
    ):
        with stack.connect_app() as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
            connection.execute(ddl)
            for table in TABLES:
                copy = f"COPY {schema}.{table} FROM STDIN WITH (FORMAT csv)"
                with connection.cursor().copy(copy) as rows:
                    rows.write(rows_of(table))


@pytest.fixture(scope="module")
def expected(stack, payroll):
    """Each query of the demo with what plain PostgreSQL gives for it."""
    with stack.connect_dba() as connection:
        outcomes = [
            (q, run(connection, q.replace("payroll.", "payroll_plain."))) for q in queries()
        ]
    assert all(o.rows for _, o in outcomes)
    return outcomes
