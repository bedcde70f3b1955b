"""Protected text beside `name`, the type of `current_user` and of catalogs' columns.

Mechanism: casts from `name`, as PostgreSQL has them to `text`. Right: what plain columns give. Bug:
42883 for conditions and policies on `current_user`, 42804 for defaults.
"""

import pytest
from results import run

PREPARED = [
    "CREATE TABLE doc (id int, owner @text DEFAULT current_user, by @varchar(20), code @bpchar(4))",
    "INSERT INTO doc (id, by, code) VALUES (1, current_user, 'ab'), (2, session_user, 'cd')",
    "INSERT INTO doc VALUES (3, 'other', current_user::name, current_user)",
]
ASKED = [
    "SELECT * FROM doc ORDER BY id",
    "SELECT id FROM doc WHERE owner = current_user ORDER BY id",
    "SELECT id, session_user = by, owner < current_user FROM doc ORDER BY id",
    "SELECT id FROM doc WHERE owner IN (SELECT rolname FROM pg_roles) ORDER BY id",
    "SELECT d.id, r.rolsuper FROM doc d JOIN pg_roles r ON r.rolname = d.by ORDER BY 1",
    "UPDATE doc SET owner = current_user WHERE id = 3 RETURNING owner",
    "SELECT id FROM doc WHERE owner LIKE current_user || '%' ORDER BY id",
]
WITH_POLICY = [
    "UPDATE doc SET owner = 'other' WHERE id = 2",
    "CREATE POLICY own ON doc USING (owner = current_user)",
    "ALTER TABLE doc ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE doc FORCE ROW LEVEL SECURITY",
    "SELECT id, owner FROM doc ORDER BY id",
    "INSERT INTO doc (id, owner) VALUES (9, 'other')",
    "INSERT INTO doc (id) VALUES (9) RETURNING owner",
]


@pytest.mark.parametrize("family", ["enc_", "rnd_"])
def test_as_on_plain_tables(app, plain_twin, family):
    for sql in PREPARED + ASKED + (WITH_POLICY if family == "enc_" else []):
        sql = sql.replace("'wxyz'::name)", "'wxyz'::name)")
        ours = run(app, sql.replace("@", family))
        theirs = run(plain_twin, sql.replace("@", ""))
        assert (ours.sqlstate, ours.rows) == (theirs.sqlstate, theirs.rows), (sql, ours.message)
