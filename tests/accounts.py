"""Common parts of the tests of accounts: what the keeper has told of each column, and to whom."""

KINDS = ["booleans", "orders", "ranks", "tokens", "shown"]


def accounts(dba, schema, principal="app"):
    """By column, by kind."""
    found = dba.execute(
        f"""SELECT column_name, {", ".join(KINDS)} FROM confide.confide_stat_leakage
        WHERE schema_name = %s AND principal = %s""",
        [schema, principal],
    ).fetchall()
    return {column: dict(zip(KINDS, counts, strict=True)) for column, *counts in found}
