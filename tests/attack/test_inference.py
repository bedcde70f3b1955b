"""An account that may not see a column infers its values: from predicates, errors, EXPLAIN's
estimates, statistics, row counts, and an index's order.

Mechanism: for such a session the keeper neither computes with a hidden column nor discloses
anything about it, whatever the statement. Right: 42501, and the same answer for every guess;
docs/security.md says what is allowed. Bug: a mask is worthless, since `WHERE salary BETWEEN …`
reveals each salary.
"""

import pytest
from results import run

SECRET = 5200
ORDER = "an index tells its order to any account that may select the column"

# {g} is a guess, right or wrong.
GUESSES = {
    "a range beside the mask": "SELECT id, pay FROM hidden WHERE pay BETWEEN {g} AND {g}",
    "a condition in the select list": "SELECT pay = {g} FROM hidden",
    "CASE": "SELECT CASE WHEN pay = {g} THEN 1 END FROM hidden",
    "nullif": "SELECT nullif(pay, {g}) FROM hidden",
    "a filter of an aggregate": "SELECT count(*) FILTER (WHERE pay = {g}) FROM hidden",
    "having": "SELECT id FROM hidden GROUP BY id HAVING max(pay) = {g}",
    "a division by zero": "SELECT 1 / (pay - {g}) FROM hidden",
    "an overflow": "SELECT pay + (2147483647 - {g}) FROM hidden",
    "a cast that fails": "SELECT (pay - {g} + 32767)::enc_int2 FROM hidden",
    "a pattern": "SELECT id FROM hidden WHERE pay::enc_text LIKE '{g}%'",
    "a join with guesses": "SELECT h.id FROM hidden h JOIN guesses g ON h.pay = g.pay "
    "AND g.id = {g}",
    "a key of a view": "SELECT id FROM hidden_view WHERE pay = {g}",
    "rows that are deleted": "DELETE FROM hidden WHERE pay = {g}",
    "rows that are updated": "UPDATE hidden SET id = id WHERE pay = {g}",
    "a limit": "SELECT id FROM hidden LIMIT (SELECT count(*) FROM hidden WHERE pay = {g})",
    "MERGE": "MERGE INTO hidden h USING guesses g ON h.pay = g.pay AND g.id = {g} "
    "WHEN MATCHED THEN DO NOTHING",
}


@pytest.fixture
def hidden(three):
    with three.stack.connect_dba() as dba:
        dba.execute("DROP TABLE IF EXISTS hidden, guesses CASCADE")
    made = "CREATE TABLE hidden (id int, pay INT SECRET); GRANT ALL ON hidden TO PUBLIC"
    assert three.psql("ann", made) == ""
    with three.connect("ann") as ann:
        ann.execute(f"INSERT INTO hidden VALUES (1, {SECRET}), (2, 100), (3, 7000)")
        ann.execute("CREATE VIEW hidden_view AS SELECT id, pay FROM hidden")
        ann.execute("GRANT SELECT ON hidden_view TO PUBLIC")
    with three.connect("eve") as eve:
        eve.execute("CREATE TABLE guesses (id int, pay enc_int4)")
        eve.execute(f"INSERT INTO guesses VALUES ({SECRET}, {SECRET}), (4711, 4711)")
        yield three, eve
    three.psql("ann", "DROP TABLE hidden CASCADE")


def test_guesses(hidden, attack):
    """Right and wrong guesses get the same answer, which is no row."""
    _, eve = hidden
    for name, sql in GUESSES.items():
        answers = [run(eve, sql.format(g=guess)) for guess in (SECRET, 4711)]
        right, wrong = [(a.sqlstate, a.rows) for a in answers]
        attack.attempt(f"infer by {name}", right != wrong or right[0] != "42501")


def test_estimates(hidden, attack):
    """EXPLAIN with the statistics of a hidden column."""
    three, eve = hidden
    with three.connect("ann") as ann:
        ann.execute("INSERT INTO hidden SELECT g, 5000 FROM generate_series(10, 200) g")
        ann.execute("ANALYZE hidden")
    for comparison in "=", "<", ">":
        sql = "EXPLAIN (COSTS on) SELECT id FROM hidden WHERE pay {} {}"
        answers = [run(eve, sql.format(comparison, guess)) for guess in (5000, 1, 9000)]
        rows = {str(a.sqlstate or a.rows[0][0].split("rows=")[-1]) for a in answers}
        attack.attempt(f"infer by estimates of {comparison}", len(rows) > 1)
    shown = "SELECT {} FROM pg_stats WHERE tablename = 'hidden' AND attname = 'pay'"
    for column in "most_common_vals", "histogram_bounds":
        done = run(eve, shown.format(column))
        attack.attempt(f"infer by {column}", "5000" in str(done.rows) or "7000" in str(done.rows))


def test_index(hidden, attack):
    """Only what an index reveals is allowed: the order of rows, but not the place of a constant."""
    three, eve = hidden
    with three.connect("ann") as ann:
        ann.execute("CREATE INDEX ON hidden (pay)")
    for setting in "enable_seqscan", "enable_sort", "enable_bitmapscan":
        eve.execute(f"SET {setting} = off")
    ordered = run(eve, "SELECT id FROM hidden ORDER BY pay")
    attack.attempt("infer by an index's order", ordered.sqlstate is None, ORDER)
    for name, sql in {
        "a search of an index": "SELECT id FROM hidden WHERE pay = {g}",
        "a list": "SELECT id FROM hidden WHERE pay IN ({g}, 1)",
        "the ends of a range": "SELECT id FROM hidden WHERE pay < {g} ORDER BY pay LIMIT 1",
    }.items():
        answers = [run(eve, sql.format(g=guess)) for guess in (SECRET, 4711)]
        right, wrong = [(a.sqlstate, a.rows) for a in answers]
        attack.attempt(f"infer by {name}", right != wrong or right[0] != "42501")
    lowest = run(eve, "SELECT min(pay) FROM hidden")
    attack.attempt("infer by the least value", "100" in str(lowest.rows))
