"""The smuggle attack as published by HEDB (section 2.3): from values that he has not seen, the
attacker computes constants (zero by `x - x`, one by `x / x`, a letter by `substr`), from these all
others, and searches for the victim's value; for integers, decimals, text and time.

Mechanism: without a client the keeper computes nothing; in a client's session it computes what a
statement of the client authorises. Right: 42501, and nothing found, both for the superuser and for
a trigger that he plants in the victim's session. Bug: twenty comparisons find a value among a
million.
"""

import pytest
from results import run

COLUMNS = {
    "integers": ("n", "enc_int4", "5200"),
    "decimals": ("d", "enc_numeric(9,2)", "52.75"),
    "text": ("t", "enc_text", "'Kimberley'"),
    "time": ("s", "enc_timestamp", "'2001-02-03 04:05:06'"),
}

# Ways to a constant. All are tried on every type: what a type has not got is PostgreSQL's error.
MAKES = {
    "a zero": "{c} - {c}",
    "a one": "{c} / {c}",
    "a one by a quotient of sums": "({c} + {c}) / ({c} + {c})",
    "a sign": "sign({c})",
    "a length": "length({c})",
    "a letter": "substr({c}, length({c}))",
    "a part of a time": "date_part('year', {c})",
    "a time of no length": "{c} - {c}",
    "a rounded one": "round({c})",
    "an empty text": "left({c}, 0)",
    "a first letter": "{c}::enc_varchar(1)",
    "a rounded number": "{c}::enc_numeric(9,-1)",
    "a plain constant": "'5200'::enc_int4",
    "a plain value": "5200::enc_int4",
}
# Storing into a column allows casts of it (docs/security.md): prefixes and rounded values of rows
# can be compared with each other. They are no constants.
CASTS = {"a first letter", "a rounded number"}
ALLOWED = "a statement that stores into the column allows casts of it"

COMPARES = "SELECT id FROM emp WHERE ({made}) IS NOT NULL AND ({made}) = ({made})"


@pytest.fixture
def emp(app, dba):
    columns = ", ".join(f"{name} {kind}" for name, kind, _ in COLUMNS.values())
    values = ", ".join(value for _, _, value in COLUMNS.values())
    app.execute(f"CREATE TABLE emp (id int, {columns})")
    app.execute(f"INSERT INTO emp VALUES (1, {values})")
    dba.execute("CREATE TABLE loot (id int, way text)")
    dba.execute("GRANT ALL ON loot TO app")
    return app


@pytest.mark.parametrize("kind", COLUMNS)
def test_without_a_client(emp, dba, attack, kind):
    column = COLUMNS[kind][0]
    refused = 0
    for name, text in MAKES.items():
        made = text.format(c=column)
        for sql in (COMPARES.format(made=made), f"CREATE TABLE own AS SELECT {made} AS v FROM emp"):
            done = run(dba, sql)
            attack.attempt(f"{name} of {kind}, without a client", done.sqlstate is None)
            refused += done.sqlstate == "42501"
    assert refused > 0


TRIGGER = """
CREATE FUNCTION take() RETURNS trigger LANGUAGE plpgsql AS $attack$
DECLARE way text; got int;
BEGIN
  FOREACH way IN ARRAY %s LOOP
    BEGIN
      EXECUTE way INTO got;
      IF got IS NOT NULL THEN INSERT INTO loot VALUES (got, way); END IF;
    EXCEPTION WHEN OTHERS THEN
      IF SQLSTATE = '42501' THEN INSERT INTO loot VALUES (0, way); END IF;
    END;
  END LOOP;
  RETURN NEW;
END $attack$;
CREATE TRIGGER take BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION take();
"""


@pytest.mark.parametrize("kind", COLUMNS)
def test_in_a_clients_session(stack, emp, dba, schema, attack, kind):
    """The victim reads, compares and writes; none of its statements computes with the column, and
    its session has not defined the table."""
    column, _, value = COLUMNS[kind]
    # A value that is compared as it was stored is no constant: an index does the same.
    ways = [COMPARES.format(made=text.format(c=column)) for text in MAKES.values()]
    literal = "ARRAY[" + ", ".join("$way$" + way + "$way$" for way in ways) + "]"
    dba.execute(TRIGGER.replace("%s", literal))
    with stack.connect_app(options=f"-c search_path={schema}") as victim:
        victim.execute(f"SELECT id, {column} FROM emp WHERE {column} = {value}").fetchall()
        victim.execute(f"INSERT INTO emp (id, {column}) VALUES (2, {value})")
    loot = dba.execute("SELECT id, way FROM loot").fetchall()
    found = [way for got, way in loot if got != 0]
    for name, way in zip(MAKES, ways, strict=True):
        allowed = ALLOWED if name in CASTS else ""
        attack.attempt(f"{name} of {kind}, in a client's session", way in found, allowed)
    assert (0, ways[0]) in loot or kind == "text"
    assert any(got == 0 for got, _ in loot)
