"""A column of the family soft_ gets a new key (`confide rotate-column`).

Mechanism: the proxy encodes all values anew, in one transaction. Right: the same rows, indexes and
encodings, no cell under the former key, and one that was read before is worth nothing. Bug: a row
is lost or stays under the former key, or the column reveals more than before.
"""

import base64
import subprocess

import psycopg
import pytest
from test_rotation import confide

ROWS = 6000


def rotated(stack, column):
    done = subprocess.run(confide(stack, column), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def filled(app, modifier="eq, ord, add"):
    app.execute(f"CREATE TABLE paid (id int PRIMARY KEY, n soft_int4({modifier}), other soft_text)")
    with app.cursor().copy("COPY paid FROM STDIN") as copy:
        for i in range(ROWS):
            copy.write_row((i, i * 7919 % 1000 if i % 11 else None, "x"))
    app.execute("CREATE INDEX by_n ON paid (n)")


def keys(dba, column="n"):
    """The numbers of keys in cells, and the encodings that they have, as a superuser sees them."""
    found = set()
    for (cell,) in dba.execute(f"SELECT {column} FROM paid WHERE {column} IS NOT NULL").fetchall():
        raw = base64.urlsafe_b64decode(cell.removeprefix("soft1.") + "===")
        found.add((int.from_bytes(raw[4:8], "little"), raw[2]))
    return found


def contents(app):
    queries = ["SELECT id, n FROM paid ORDER BY id", "SELECT sum(n) FROM paid WHERE id < 500"]
    return [app.execute(query).fetchall() for query in queries]


def test_all_rows(stack, app, dba, schema):
    filled(app)
    before, others, [(old, encodings)] = contents(app), keys(dba, "other"), keys(dba)
    done = rotated(stack, f"{schema}.paid.n")
    assert "5000" in done.stderr, "progress is told"
    [(new, same)] = keys(dba)
    assert new != old
    assert same == encodings
    assert f"key_{new}" in done.stdout
    assert keys(dba, "other") == others
    assert contents(app) == before
    app.execute("SET enable_seqscan = off")
    found = app.execute("SELECT count(*) FROM paid WHERE n BETWEEN 10 AND 19").fetchone()
    assert found == (sum(1 for i in range(ROWS) if i % 11 and 10 <= i * 7919 % 1000 <= 19),)
    app.execute("INSERT INTO paid VALUES (-1, 5, 'x')")
    assert {key for key, _ in keys(dba)} == {new}


def test_an_old_cell(stack, app, dba, schema):
    """It cannot be put back: its key is another one."""
    filled(app)
    (old,) = dba.execute("SELECT n FROM paid WHERE id = 5").fetchone()
    rotated(stack, f"{schema}.paid.n")
    copy = dba.cursor().copy("COPY paid (id, n) FROM STDIN")
    with pytest.raises(psycopg.errors.FeatureNotSupported), copy as rows:
        rows.write_row((-7, old))
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        dba.execute(f"UPDATE paid SET n = '{old}' WHERE id = 5")


def test_a_shared_key(stack, app, dba, schema):
    """Two columns that are compared are not torn apart."""
    filled(app, "eq, key_4711")
    app.execute("CREATE TABLE asked (n soft_int4(eq, key_4711))")
    done = subprocess.run(
        confide(stack, f"{schema}.paid.n"), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 1
    assert "asked.n" in done.stderr
    assert "key_4711" in done.stderr
    assert keys(dba) == {(4711, 1)}
    app.execute("SELECT count(*) FROM paid JOIN asked USING (n)")


def test_not_the_owner(stack, app, dba, schema):
    """What the server refuses leaves everything as it was."""
    filled(app)
    before = keys(dba)
    dba.execute("ALTER TABLE paid OWNER TO postgres")
    dba.execute("GRANT ALL ON paid TO app")
    done = subprocess.run(
        confide(stack, f"{schema}.paid.n"), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 1
    assert "42501" in done.stderr
    assert keys(dba) == before
