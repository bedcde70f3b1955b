"""What is disclosed of a value that was computed from a column, so that the column's account does
not show it: the database asks about `pay + 0` instead of `pay`.

Mechanism: a computed value has the labels of what it was computed from, and the keeper counts what
it discloses for each of these columns, row by row and in batches. Right: `confide_stat_leakage` has
at least as many disclosures as there are rows (or groups). Bug: a statement about `pay + 0` leaves
no trace, and no budget ends it.
"""

import pytest
from accounts import accounts

pytestmark = pytest.mark.ten(9)

ROWS, GROUPS = 100, 7

# Each with the least number of disclosures about pay.
WAYS = {
    "a condition": ("SELECT id FROM emp WHERE pay + 0 > 3", ROWS),
    "a condition with another column": ("SELECT id FROM emp WHERE pay + bonus > 3", ROWS),
    "a list": ("SELECT id FROM emp WHERE pay + 0 IN (1, 2)", ROWS),
    "CASE": ("SELECT CASE WHEN pay + 0 > 3 THEN 1 END FROM emp", ROWS),
    "a subquery": (
        "SELECT id FROM (SELECT id, pay + 0 AS p FROM emp OFFSET 0) x WHERE p > 3",
        ROWS,
    ),
    "a cast": ("SELECT id FROM emp WHERE pay::enc_int8 > 3", ROWS),
    "text": ("SELECT id FROM emp WHERE (pay + 0)::enc_text LIKE '3%'", ROWS),
    "an order": ("SELECT id FROM emp ORDER BY pay + 0", ROWS - 1),
    "groups": ("SELECT count(*) FROM emp GROUP BY pay + 0", GROUPS),
    "DISTINCT": ("SELECT count(*) FROM (SELECT DISTINCT pay + 0 FROM emp) x", GROUPS),
    "a join": ("SELECT count(*) FROM emp a JOIN emp b ON a.pay + 0 = b.bonus + 0", ROWS),
    "a result": ("SELECT pay + 0 FROM emp", ROWS),
    "an aggregate": ("SELECT sum(pay + 0) FROM emp", 1),
}
BY_ROW = [
    "confide.enable_batch_scan = off",
    "confide.enable_hash_tokens = off",
    "confide.enable_bulk_sort = off",
    "confide.enable_batch_aggregate = off",
]


@pytest.fixture
def emp(app):
    app.execute("CREATE TABLE emp (id int, pay enc_int4, bonus enc_int4)")
    app.execute(f"INSERT INTO emp SELECT g, g % {GROUPS}, g % 3 FROM generate_series(1, {ROWS}) g")
    app.execute("ANALYZE emp")
    return app


@pytest.mark.parametrize("settings", [[], BY_ROW], ids=["batch", "row"])
def test_temporaries(emp, dba, schema, attack, settings):
    for setting in settings:
        emp.execute(f"SET {setting}")

    def counted():
        return sum(accounts(dba, schema).get("pay", {}).values())

    for name, (sql, least) in WAYS.items():
        before = counted()
        emp.execute(sql).fetchall()
        told = counted() - before
        attack.attempt(f"{name} of pay + 0, uncounted ({told} of {least})", told < least)
