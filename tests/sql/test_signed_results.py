"""SELECT … WITH SIGNATURE: the keeper signs the result, and `confide verify result` checks it
without keeper or database."""

import json
import subprocess

import psycopg
import pytest


@pytest.fixture
def signer(stack, tmp_path):
    """Runs `confide verify result` on a text with the stack's key; gives its exit code and what
    it says."""
    binary = stack.data.parent / "bin" / "confide"
    key_file = stack.data.parent / "keeper" / "keeper.key"
    line = subprocess.run(
        [binary, "pubkey", "--signing", key_file], capture_output=True, text=True, check=True
    ).stdout.strip()

    def verify(text: str, *arguments: str) -> tuple[int, str]:
        file = tmp_path / "result.json"
        file.write_text(text)
        command = [binary, "verify", "result", file, "--key", line, *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    return verify


@pytest.fixture
def employees(app):
    app.execute("CREATE TABLE emp (id int PRIMARY KEY, pay enc_int4, name enc_text, born enc_date)")
    app.execute(
        "INSERT INTO emp VALUES (1, 5200, 'Ann', '1980-02-29'), (2, NULL, 'Zoë', NULL),"
        " (3, 7300, '', '1999-12-31')"
    )
    return app


def signed(app, statement: str) -> str:
    return app.execute(statement).fetchone()[0]


def test_first_statement_of_a_session(stack, employees, schema):
    """It is authorised by itself, also without a constant and without anything protected. A bug
    would have worked only after another statement with a constant."""
    for query in (f'SELECT pay FROM "{schema}".emp', f'SELECT id FROM "{schema}".emp', "SELECT 1"):
        with stack.connect_app() as connection:
            file = json.loads(signed(connection, f"{query} WITH SIGNATURE 'n'"))
            plain = connection.execute(query).fetchall()
            assert [row[0] for row in file["rows"]] == [
                None if row[0] is None else str(row[0]) for row in plain
            ]


def test_what_is_signed(employees, signer):
    """Rows, names and types are those that the statement gives without a signature; the keeper
    vouches for stored values only, not for plain columns and what the database may have made up.
    Bug: a computed value, which the database can choose, would count as a client's."""
    query = (
        "SELECT id, pay, name, born, pay + 1 AS more FROM emp WHERE pay > 5 OR id = 2 ORDER BY id"
    )
    text = signed(employees, f"{query} WITH SIGNATURE 'my nonce'")
    assert signer(text, "--nonce", "bXkgbm9uY2U=")[0] == 0
    file = json.loads(text)
    plain = employees.execute(query.replace("pay,", "pay::text,")).fetchall()
    assert [row[0] for row in file["rows"]] == [str(row[0]) for row in plain]
    assert file["rows"][0] == ["1", "5200", "Ann", "1980-02-29", "5201"]
    assert file["rows"][1] == ["2", None, "Zoë", None, None]
    columns = file["result"]["columns"]
    assert [(c["name"], c["type"], c["vouched"]) for c in columns] == [
        ("id", "integer", False),
        ("pay", "int4", True),
        ("name", "text", True),
        ("born", "date", True),
        ("more", "int4", False),
    ]
    assert columns[1]["origin"][1:] == ["emp", "pay"]
    assert columns[4]["origin"] is None
    assert "pay > $2" in file["result"]["statement"]


def test_changes_are_noticed(employees, signer):
    """A cell, a name, a row, the nonce: none can be another one."""
    text = signed(employees, "SELECT id, pay FROM emp ORDER BY id WITH SIGNATURE 'n'")
    assert signer(text)[0] == 0
    assert signer(text.replace('"5200"', '"5300"'))[0] == 1
    assert signer(text.replace('"pay"', '"fee"'))[0] == 1
    code, said = signer(text, "--nonce", "b3RoZXI=")
    assert code == 1
    assert "another request" in said
    file = json.loads(text)
    file["rows"].pop()
    file["result"]["rows"] -= 1
    assert signer(json.dumps(file))[0] == 1


def test_one_cell(employees, signer):
    """A cell can be shown alone, and tells nothing of the others."""
    text = signed(employees, "SELECT pay, name FROM emp ORDER BY id WITH SIGNATURE")
    code, cell = signer(text, "--cell", "0,0")
    assert code == 0
    assert "Ann" not in cell
    code, said = signer(cell)
    assert code == 0
    assert "row 0, column 0: 5200" in said


def test_without_the_words(employees):
    """What cannot be signed is refused before it runs."""
    for statement in [
        "DELETE FROM emp WITH SIGNATURE",
        "SELECT 1; SELECT 2 WITH SIGNATURE",
    ]:
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            employees.execute(statement)
    assert employees.execute("SELECT count(*) FROM emp").fetchone() == (3,)


def test_without_a_client(app, dba):
    """A superuser gets nothing signed: the statement and the nonce are a client's. Bug: the keeper
    would sign in nobody's name."""
    app.execute("CREATE TABLE said (statement enc_text, nonce enc_bytea)")
    app.execute("INSERT INTO said VALUES ('SELECT 1', 'n')")
    with pytest.raises(psycopg.Error) as refused:
        dba.execute("SELECT confide.signed_result('SELECT 1', statement, nonce) FROM said")
    assert refused.value.sqlstate == "42501"


def test_many_rows(app, signer):
    """A result of more rows than are sent at a time."""
    app.execute("CREATE TABLE many (id int, v enc_int8)")
    app.execute("INSERT INTO many SELECT g, g * 10 FROM generate_series(1, 1000) g")
    text = signed(app, "SELECT v FROM many ORDER BY id WITH SIGNATURE")
    assert json.loads(text)["rows"] == [[str(10 * g)] for g in range(1, 1001)]
    assert signer(text)[0] == 0


def test_too_long(app):
    """A result has a limit, so that nobody fills the keeper's memory; the session goes on."""
    query = "SELECT repeat('x', 1000000) AS v FROM generate_series(1, {}) WITH SIGNATURE"
    with pytest.raises(psycopg.errors.ProgramLimitExceeded):
        app.execute(query.format(70))
    assert len(signed(app, query.format(1))) > 1000000


def test_nothing_to_show(app, signer):
    """SELECT without columns is about all of them; a table without any has nothing to sign. Bug: a
    signed result that says there are no rows."""
    app.execute("CREATE TABLE few (id int)")
    app.execute("INSERT INTO few VALUES (1), (2)")
    text = signed(app, "SELECT FROM few WITH SIGNATURE")
    assert json.loads(text)["rows"] == [["1"], ["2"]]
    assert signer(text)[0] == 0
    app.execute("CREATE TABLE bare ()")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        app.execute("SELECT FROM bare WITH SIGNATURE")
