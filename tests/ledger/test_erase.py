"""DELETE FROM t WHERE sn = n, and sn <= n: versions of the history are erased, their hashes remain,
and the audit records it. Only the history's owner, and roles to which he grants DELETE on it, may
do this.

Bug: somebody else erases, or a statement erases without a row in the audit, or deletes rows of the
table."""

import psycopg
import pytest
from garbage import collect, slots


def rows(connection, query, *values):
    return connection.execute(query, values or None).fetchall()


def numbers(connection, table="account_history"):
    return [row[0] for row in rows(connection, f"SELECT sn FROM {table} ORDER BY sn")]


def audit(connection):
    return rows(connection, "SELECT operation, number, rows, by FROM account_audit ORDER BY sn")


def test_erased(account, auditor):
    """Constants, parameters, prepared statements, functions; the audit has what was erased only."""
    first, second, third = numbers(account)
    assert account.execute("DELETE FROM account WHERE sn <= %s", (first,)).rowcount == 1
    assert account.execute("DELETE FROM account WHERE sn <= %s", (first,)).rowcount == 0
    account.execute("PREPARE erase (int8) AS DELETE FROM account WHERE sn = $1")
    account.execute(f"EXECUTE erase ({second})")
    assert numbers(account) == [third]
    assert rows(account, f"SELECT confide.ledger_erase('account', {third})") == [(1,)]
    assert audit(account) == [
        ("erase through", first, 1, "app"),
        ("erase", second, 1, "app"),
        ("erase", third, 1, "app"),
    ]
    assert rows(account, "SELECT count(*) FROM account") == [(2,)]
    for table in "account", "account_audit":
        assert auditor.findings(table) == []
    assert "erased 3" in auditor.note("account", "n")


def test_what_is_left(account, dba, auditor, tmp_path):
    """Values and identifiers go, from the keeper with the next collection; the hash stays: the
    version's proof, made before or after, verifies below the new root, and the log goes on from a
    checkpoint of before. Bug: the value can still be read, or the version cannot be proven."""
    number = rows(account, "SELECT sn FROM account_history WHERE id = 3")[0][0]
    digest, file = tmp_path / "digest", tmp_path / "proof"
    digest.write_text(rows(account, "SELECT confide.ledger_checkpoint('account')")[0][0])
    origin, size = digest.read_text().splitlines()[:2]

    def verify(proof, *arguments) -> str:
        file.write_text(rows(account, f"SELECT confide.ledger_{proof}")[0][0])
        command = ["verify", "checkpoint", file, "--key", auditor.key, "--origin", origin]
        done = auditor.run(*command, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    before = verify(f"inclusion('account', {number})").splitlines()[1]
    assert f"version {number} was written by app; hash " in before
    held = slots(dba, "account_history")
    account.execute(f"DELETE FROM account WHERE sn = {number}")
    assert rows(account, f"SELECT * FROM account_ledger WHERE sn = {number}") == []
    assert verify(f"inclusion('account', {number})").splitlines()[1] == before
    assert "goes on" in verify(f"consistency('account', {size})", "--digest", digest)
    account.execute("VACUUM account_history")
    # Its owner and its balance. VACUUM alone leaves so few for later.
    assert collect(account, "account_history") <= 2
    assert slots(dba, "account_history") == held - 2


def test_other_conditions_end_rows(account, auditor):
    """Those of the table, as ever. What is rolled back is not erased."""
    current = numbers(account, "account")
    past = numbers(account)
    assert account.execute(f"DELETE FROM account WHERE sn < {past[0]}").rowcount == 0
    with pytest.raises(psycopg.errors.DivisionByZero), account.transaction():
        account.execute(f"DELETE FROM account WHERE sn <= {past[2]}")
        account.execute("SELECT 1 / 0")
    assert numbers(account) == past
    assert rows(account, "SELECT to_regclass('account_audit')") == [(None,)]
    done = account.execute(f"DELETE FROM account WHERE sn = {current[0]} AND id > 0")
    assert (done.rowcount, len(numbers(account))) == (1, 4)
    assert auditor.findings("account") == []


def test_refused(account, dba):
    """Current rows, what cannot be audited as one act, and the history itself."""
    (current, *_) = numbers(account, "account")
    (past, *_) = numbers(account)
    for statement, state in [
        (f"DELETE FROM account WHERE sn = {current}", "55000"),
        (f"DELETE FROM account WHERE sn = {past} RETURNING note", "0A000"),
        ("DELETE FROM account WHERE sn = (SELECT max(sn) FROM account_history)", "0A000"),
        ("DELETE FROM account WHERE sn <= id", "0A000"),
        (f"DELETE FROM account_history WHERE sn = {past}", "42501"),
        ("SELECT confide.ledger_erasing('pg_class', 1, false)", "42809"),
    ]:
        with pytest.raises(psycopg.Error) as refused:
            account.execute(statement)
        assert refused.value.sqlstate == state, statement
    for statement in [
        f"DELETE FROM account WHERE sn = {past}",
        f"SELECT confide.ledger_erase('account', {past})",
    ]:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            dba.execute(statement)
    assert len(numbers(account)) == 3


def test_who_may(account, dba, schema, auditor):
    """DELETE on the table is not enough; on the history it is, also after another GRANT."""
    dba.execute("DROP ROLE IF EXISTS ledger_eraser")
    dba.execute("CREATE ROLE ledger_eraser")
    dba.execute("GRANT ledger_eraser TO app")
    first, second, _ = numbers(account)
    try:
        account.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO ledger_eraser')
        account.execute("GRANT SELECT, DELETE ON account TO ledger_eraser")
        account.execute("SET ROLE ledger_eraser")
        for call in [
            f"DELETE FROM account WHERE sn = {first}",
            f"SELECT confide.ledger_erase('account', {first})",
            f"SELECT confide.ledger_erasing('account_history', {first}, false)",
        ]:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                account.execute(call)
        account.execute("RESET ROLE")
        account.execute("GRANT DELETE ON account_history TO ledger_eraser")
        account.execute("GRANT SELECT ON account TO ledger_eraser")
        account.execute("SET ROLE ledger_eraser")
        assert account.execute(f"DELETE FROM account WHERE sn <= {second}").rowcount == 2
        account.execute("RESET ROLE")
        assert audit(account) == [("erase through", second, 2, "app")]
        assert auditor.findings("account") == []
    finally:
        account.execute("RESET ROLE")
        dba.execute(f'REVOKE ALL ON ALL TABLES IN SCHEMA "{schema}" FROM ledger_eraser')
        dba.execute(f'REVOKE ALL ON SCHEMA "{schema}" FROM ledger_eraser')
        dba.execute("DROP ROLE ledger_eraser")


def test_a_trigger_hides_no_audit(account, dba, auditor):
    """A trigger on the history that fails in a block of its own: what goes is in the audit. With
    the bug the failed block took the count away."""
    (first, second, third) = numbers(account)
    account.execute("CREATE TABLE other (id int)")
    dba.execute(
        "CREATE FUNCTION noise() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN NULL; END;"
        " PERFORM count(*) FROM other; RETURN NULL; END $$"
    )
    dba.execute(
        "CREATE TRIGGER noise AFTER DELETE ON account_history FOR EACH ROW EXECUTE FUNCTION noise()"
    )
    assert account.execute(f"DELETE FROM account WHERE sn <= {second}").rowcount == 2
    assert audit(account) == [("erase through", second, 2, "app")]
    assert numbers(account) == [third]
    assert auditor.findings("account") == []
    assert first
