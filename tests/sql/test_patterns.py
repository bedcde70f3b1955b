"""LIKE with ESCAPE and with patterns that are computed, as Hibernate (`LIKE $1 ESCAPE ''`),
SQLAlchemy (`LIKE 'x' || '%' ESCAPE '/'`) and JPA (`concat('%', $1, '%')`) write them: results and
SQLSTATEs are plaintext's. Refused (0A000), or sent with a plain escape that the database cannot
apply to a sealed pattern, by a proxy that merges literals only."""

import psycopg
import pytest
from results import run

TABLE = r"""CREATE TABLE p (id int, name enc_text, code enc_varchar(20), fixed enc_bpchar(6));
INSERT INTO p VALUES (1, 'Ann', 'a%b', 'abc'), (2, 'Bo_b', 'a\b', 'a%'), (3, 'x/%y', '', 'b'),
  (4, NULL, NULL, NULL), (5, 'äöü', 'aé%', 'ann'), (6, '%', '_', '%')"""

PATTERNS = ["Ann", "%n", "_nn", "Bo/_%", "x//%", "%/%%", "/%", "a\\%b", "\\%", "é%", "", "%", "n"]

FORMS = [
    "SELECT id FROM p WHERE name LIKE %(v)s ESCAPE '' ORDER BY id",
    "SELECT id FROM p WHERE name LIKE %(v)s ESCAPE '/' ORDER BY id",
    "SELECT id FROM p WHERE name NOT LIKE %(v)s ESCAPE '/' ORDER BY id",
    "SELECT id FROM p WHERE name ILIKE %(v)s ESCAPE '/' ORDER BY id",
    "SELECT id FROM p WHERE code LIKE %(v)s ESCAPE 'é' ORDER BY id",
    "SELECT id FROM p WHERE fixed LIKE %(v)s ESCAPE '/' ORDER BY id",
    "SELECT id FROM p WHERE name LIKE %(v)s ESCAPE '//' ORDER BY id",
    "SELECT id FROM p WHERE name LIKE %(v)s || '%%' ESCAPE '/' ORDER BY id",
    "SELECT id FROM p WHERE name LIKE '%%' || %(v)s || '%%' ESCAPE '/' ORDER BY id",
    "SELECT id FROM p WHERE name LIKE '%%' || %(v)s::text || '%%' ORDER BY id",
    "SELECT id FROM p WHERE name LIKE concat('%%', %(v)s::text, '%%') ORDER BY id",
    "SELECT id FROM p WHERE code LIKE concat(%(v)s::text, '%%') ESCAPE '/' ORDER BY id",
    "SELECT id FROM p WHERE name LIKE code || '%%' ESCAPE '/' AND name <> %(v)s ORDER BY id",
]


@pytest.fixture
def twins(app, plain_twin):
    app.execute(TABLE)
    plain_twin.execute(TABLE.replace("enc_", ""))
    return app, plain_twin


@pytest.mark.parametrize("sql", FORMS)
def test_patterns(twins, sql):
    for pattern in [*PATTERNS, None]:
        both = [run(c, sql, {"v": pattern}) for c in twins]
        assert both[0].same(both[1]), (pattern, both)
        if pattern is None:
            continue
        with psycopg.ClientCursor(twins[0]) as cursor:
            text = cursor.mogrify(sql, {"v": pattern})
        both = [run(c, text) for c in twins]
        assert both[0].same(both[1]), (text, both)


def test_an_escape_as_a_parameter(twins):
    sql = "SELECT id FROM p WHERE name LIKE %s ESCAPE %s ORDER BY id"
    for escape in ("/", "", "é", "ab"):
        both = [run(c, sql, ("x/%%", escape)) for c in twins]
        assert both[0].same(both[1]), (escape, both)
    assert run(twins[0], sql, ("x", "ab")).sqlstate == "22025"


def test_concat(twins):
    """NULL is nothing in it; numbers are their texts."""
    for sql in (
        "SELECT concat(name, '-', code), concat(name), concat(NULL, name, id) FROM p ORDER BY id",
        "SELECT concat(name, 5, 1.50) FROM p ORDER BY id",
    ):
        both = [run(c, sql) for c in twins]
        assert both[0].same(both[1]), (sql, both)


def test_substring_for(twins):
    """The grammar puts a 1 between, which the text does not have."""
    for sql in (
        "SELECT substring(name for 2), substring(name from 2 for 2) FROM p ORDER BY id",
        "SELECT id FROM p WHERE substring(name for 2) = 'An'",
        "SELECT substring(nspname for 3) = 'pg_' FROM pg_namespace WHERE nspname = 'pg_catalog'",
    ):
        both = [run(c, sql) for c in twins]
        assert both[0].same(both[1]), (sql, both)
        assert both[0].sqlstate is None
    both = [run(c, "SELECT substring(name for %s) FROM p ORDER BY id", (3,)) for c in twins]
    assert both[0].same(both[1]), both
