"""Rows of ledger tables in signed results: the keeper vouches for cells that are in a row version,
each row has the proof that the log contains its version, and a single cell can be shown with it.
Bug: something that a superuser has edited or invented is signed as if it were in the log."""

import json

import pytest
from ledgers import Off


@pytest.fixture
def kinds(app):
    app.execute(
        "CREATE TABLE kinds (id int PRIMARY KEY, a smallint, b bigint, c numeric(12,2), d float8,"
        " e real, f bool, g date, h timestamptz, i uuid, j varchar(9), k char(4), l text,"
        " m enc_numeric(12,2), n enc_text, o time, p timestamp, q jsonb) WITH (confide.ledger = on)"
    )
    app.execute(
        "INSERT INTO kinds SELECT n, -n, n * 10000000000, n * -1234.5, n / 3.0, n / 7.0::real,"
        " n % 2 = 0, DATE '2024-02-29' + n, '2024-02-29 12:34:56.789+02', gen_random_uuid(),"
        " 'j' || n, 'k', repeat('long ', n * 100), n * 1.5, 'name ' || n, '12:34', 'infinity', '{}'"
        " FROM generate_series(1, 3) n"
    )
    app.execute("INSERT INTO kinds (id, c, l) VALUES (4, 'NaN', '')")
    return app


def signed(app, query) -> str:
    return app.execute(f"{query} WITH SIGNATURE 'n'").fetchone()[0]


def columns(text) -> dict[str, bool]:
    """Whether a column is vouched for by a ledger."""
    return {c["name"]: "ledger" in c for c in json.loads(text)["result"]["columns"]}


@pytest.fixture
def verify(auditor, tmp_path):
    def verify(text, *arguments):
        file = tmp_path / "result.json"
        file.write_text(text)
        done = auditor.run("verify", "result", file, "--key", auditor.key, *arguments)
        return done.returncode, done.stdout + done.stderr

    return verify


def test_every_kind_of_value(kinds, verify):
    """All but the type whose text the keeper does not know, under other settings, too."""
    query = "SELECT *, sn, valid_from, by FROM kinds ORDER BY id"
    for setting in "", "SET DateStyle = 'German'; SET TimeZone = 'Asia/Kolkata'":
        kinds.execute(setting or "SELECT 1")
        text = signed(kinds, query)
        assert [name for name, vouched in columns(text).items() if not vouched] == ["q"]
        code, said = verify(text)
        assert code == 0, said
        assert "column q jsonb" in said
        assert said.count("from row versions of") == 20
    file = json.loads(text)
    assert len(file["versions"]) == 4
    assert {version["ended"] for version in file["versions"]} == {False}


def test_one_cell(kinds, verify):
    """A cell alone has its row's version; another version's does not fit."""
    text = signed(kinds, "SELECT id, l, q FROM kinds WHERE id < 3 ORDER BY id")
    code, cell = verify(text, "--cell", "1,0")
    assert code == 0, cell
    code, said = verify(cell)
    assert code == 0
    assert "row 1, column 0: 2" in said
    assert "written by app, current then" in said
    code, other = verify(text, "--cell", "0,0")
    changed = json.loads(cell)
    changed["version"] = json.loads(other)["version"]
    assert verify(json.dumps(changed))[0] == 1
    changed = json.loads(cell)
    del changed["version"]
    assert verify(json.dumps(changed))[0] == 1
    code, cell = verify(text, "--cell", "0,2")
    assert "version" not in json.loads(cell)
    assert verify(cell)[0] == 0


def test_each_part_is_signed(kinds, verify):
    text = signed(kinds, "SELECT id, l FROM kinds WHERE id < 3 ORDER BY id")

    def changed(change) -> int:
        file = json.loads(text)
        change(file)
        return verify(json.dumps(file))[0]

    def swap(file):
        file["versions"].reverse()

    assert changed(lambda file: None) == 0
    assert changed(swap) == 1
    assert changed(lambda file: file["versions"][0].update(ended=True)) == 1
    assert changed(lambda file: file["versions"][0]["path"].pop()) == 1
    assert changed(lambda file: file["result"]["ledgers"][0].update(size=99)) == 1
    assert changed(lambda file: file["result"]["ledgers"][0].update(origin="another")) == 1
    assert changed(lambda file: file["result"]["columns"][0].pop("ledger")) == 1
    assert changed(lambda file: file.pop("versions")) == 1


def test_which_rows_are_versions(kinds, verify):
    """Joins, histories, partitions are; what is computed, grouped or from elsewhere is not."""
    kinds.execute("CREATE TABLE other (id int, w text) WITH (confide.ledger = on)")
    kinds.execute("INSERT INTO other VALUES (1, 'x'), (2, 'y')")
    kinds.execute("CREATE TABLE plain (id int, v text)")
    kinds.execute("INSERT INTO plain VALUES (1, 'p'), (2, 'q')")
    kinds.execute("CREATE TABLE parts (id int) PARTITION BY LIST (id) WITH (confide.ledger = on)")
    kinds.execute("CREATE TABLE part PARTITION OF parts FOR VALUES IN (1)")
    kinds.execute("INSERT INTO parts VALUES (1)")
    kinds.execute("UPDATE other SET w = 'z' WHERE id = 2")
    for query, vouched in [
        (
            "SELECT k.id, o.w, p.v FROM kinds k JOIN other o USING (id) JOIN plain p USING (id)",
            "110",
        ),
        ("SELECT a.w, b.w AS x FROM other a, other b ORDER BY a.sn, b.sn", "11"),
        ("SELECT id, w FROM other_history", "11"),
        ("SELECT id FROM parts", "1"),
        ("SELECT w, w || 'a' AS x, 1 AS one FROM other", "100"),
        ("SELECT w AS n FROM (SELECT w FROM other) x", "0"),
        ("SELECT id, w FROM confide.as_of(other, now())", "00"),
        ("SELECT w FROM other GROUP BY w", "0"),
        ("SELECT DISTINCT w FROM other", "0"),
        ("SELECT w FROM other UNION ALL SELECT w FROM other", "0"),
        ("SELECT k.id, o.w FROM kinds k LEFT JOIN other o USING (id)", "10"),
        ("SELECT w FROM other WHERE false", "0"),
    ]:
        text = signed(kinds, query)
        found = "".join(str(int(v)) for v in columns(text).values())
        assert found == vouched, query
        assert verify(text)[0] == 0, query
    kinds.execute("DELETE FROM other WHERE id = 1")
    history = json.loads(signed(kinds, "SELECT w FROM other_history ORDER BY sn"))
    assert [version["ended"] for version in history["versions"]] == [True, True]


def test_rows_of_the_own_transaction(kinds):
    """They are in no log yet."""
    with kinds.transaction():
        kinds.execute("UPDATE kinds SET a = 0 WHERE id = 1")
        query = "SELECT a FROM kinds WHERE id {} 1 ORDER BY id"
        assert columns(signed(kinds, query.format("="))) == {"a": False}
        assert columns(signed(kinds, query.format(">"))) == {"a": True}


def test_what_was_edited(app, dba, verify):
    """A superuser writes into rows with the ledger switched off, exchanges values, makes rows up:
    none of it is vouched for, the other rows are."""
    app.execute("CREATE TABLE deed (id int, what text, who text) WITH (confide.ledger = on)")
    app.execute("INSERT INTO deed SELECT n, 'w' || n, 'who ' || n FROM generate_series(1, 5) n")
    app.execute("DELETE FROM deed WHERE id = 5")
    with Off(dba) as off:
        off.execute("UPDATE deed SET what = 'forged' WHERE id = 1")
        off.execute(
            "INSERT INTO deed SELECT 6, 'made up', who, 999, valid_from, by FROM deed LIMIT 1"
        )
        off.execute("UPDATE deed SET who = (SELECT who FROM deed WHERE id = 4) WHERE id = 3")
        off.execute("INSERT INTO deed SELECT id, what, who, sn, valid_from, by FROM deed_history")
    for row, vouched in [(1, False), (2, True), (3, False), (4, True), (6, False)]:
        text = signed(app, f"SELECT id, what FROM deed WHERE id = {row}")
        assert columns(text) == {"id": vouched, "what": vouched}, row
        assert verify(text)[0] == 0
    # An old version put back is a version; that it was ended is under the signature.
    again = json.loads(signed(app, "SELECT what FROM deed WHERE id = 5"))
    assert [version["ended"] for version in again["versions"]] == [True]
