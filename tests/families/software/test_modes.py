"""Without a keeper all values of `confide.soft_mode` are `software`, and the view says so.

Bug: a mode looks for a keeper that is not there, or a statement fails.
"""

import pytest
from switching import MODES, QUERIES, evaluated, fill, stat


@pytest.fixture(scope="module")
def results(stack):
    """What the queries return on plain columns; the encoded ones beside them."""
    with stack.connect_dba() as dba:
        for name in ("switched", "switched_plain"):
            dba.execute(f"CREATE SCHEMA {name} AUTHORIZATION app")
    with stack.connect_app() as app:
        app.execute("SET search_path = switched_plain")
        fill(app, "")
        plain = {query: sorted(app.execute(query).fetchall(), key=str) for query in QUERIES}
        app.execute("SET search_path = switched")
        fill(app, "soft_")
    yield plain
    with stack.connect_dba() as dba:
        dba.execute("DROP SCHEMA switched, switched_plain CASCADE")


@pytest.mark.parametrize("mode", MODES)
def test_all_modes_are_software(stack, results, mode):
    with stack.connect_app() as app:
        app.execute("SET search_path = switched")
        app.execute(f"SET confide.soft_mode = {mode}")
        for query, wanted in results.items():
            assert sorted(app.execute(query).fetchall(), key=str) == wanted, query
        assert evaluated(app, "SELECT count(*) FROM item WHERE n > 500") == (0, 0)
        seen = stat(app)
        assert seen["mode"] == mode
        assert seen["evaluates"] == "software"
        assert seen["keeper.asked"] == seen["keeper.rows"] == "0"
