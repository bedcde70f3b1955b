"""A superuser edits what PostgreSQL's rules do not guard: bytes of heap pages, and the catalogs'
entries for the file of a table and the type of a column.

Mechanism: an identifier names a value, and the keeper knows the value's column. The grant for that
column decides what a client's statement may do with the value, wherever the identifier is. Right:
an identifier of another column is refused (42501), whether or not the client may see that column;
one from another row of the same column shows that row's value, as docs/security.md says. Bug: eve
reads what only ann may see.
"""

import psycopg
import pytest
from garbage import collect, vacuum
from principals import three

__all__ = ["three"]

SECRET, OWN, OTHER = "5200", "100", "5300"
IDENTIFIER = slice(8, 16)  # of a row's bytes: behind id, on a multiple of 8


@pytest.fixture
def tables(three):
    """Ann's table, which nobody else may see, and eve's, which has a column of the same type."""
    with three.stack.connect_dba() as dba:
        dba.execute("CREATE EXTENSION IF NOT EXISTS pageinspect")
        dba.execute("DROP TABLE IF EXISTS pay_ann, pay_eve")
    with three.connect("ann") as ann:
        ann.execute("CREATE TABLE pay_ann (id int, pay enc_int4 SECRET)")
        ann.execute(f"INSERT INTO pay_ann VALUES (1, {SECRET}), (2, {OTHER})")
        ann.execute("GRANT ALL ON pay_ann TO app")
    with three.connect("eve") as eve:
        eve.execute("CREATE TABLE pay_eve (id int, pay enc_int4 SECRET)")
        eve.execute(f"INSERT INTO pay_eve VALUES (1, {OWN})")
        eve.execute("GRANT ALL ON pay_eve TO app")
    yield three
    with three.stack.connect_dba() as dba:
        dba.execute("DROP TABLE IF EXISTS pay_ann, pay_eve")


def identifiers(dba, table):
    items = f"heap_page_items(get_raw_page('{table}', 0))"
    rows = dba.execute(f"SELECT t_data FROM {items} ORDER BY lp").fetchall()
    return [bytes(data)[IDENTIFIER] for (data,) in rows]


def write_page(stack, table, changes):
    """Changes bytes in the table's file while PostgreSQL is down."""
    with stack.connect_dba() as dba:
        dba.execute("CHECKPOINT")
        path = dba.execute("SELECT pg_relation_filepath(%s)", (table,)).fetchone()[0]
    stack.kill_postgres()
    file = stack.data / path
    content = file.read_bytes()
    for was in changes:
        assert content.count(was) == 1
    at = {was: content.index(was) for was in changes}
    edited = bytearray(content)
    for was, becomes in changes.items():
        edited[at[was] : at[was] + len(was)] = becomes
    file.write_bytes(edited)
    stack.start_postgres()


def read(three, who, table):
    """Returns the result of a principal's statement, or the SQLSTATE of a refusal."""
    try:
        with three.connect(who) as connection:
            rows = connection.execute(f"SELECT pay::text FROM {table} ORDER BY id").fetchall()
            return [value for (value,) in rows]
    except psycopg.Error as error:
        return error.sqlstate


def test_rows_exchanged(tables, attack):
    with tables.stack.connect_dba() as dba:
        first, second = identifiers(dba, "pay_ann")
    write_page(tables.stack, "pay_ann", {first: second, second: first})
    assert read(tables, "ann", "pay_ann") == [OTHER, SECRET]
    attack.attempt(
        "rows of a page exchanged", True, "the other row's value shows there; a ledger finds it"
    )
    assert read(tables, "eve", "pay_ann") == "42501"


def test_column_of_another(tables, attack):
    """Eve's row has ann's identifier."""
    with tables.stack.connect_dba() as dba:
        victim, own = identifiers(dba, "pay_ann")[0], identifiers(dba, "pay_eve")[0]
    write_page(tables.stack, "pay_eve", {own: victim})
    for who in "eve", "ann":
        got = read(tables, who, "pay_eve")
        attack.attempt(f"another column's identifier in a page, read by {who}", SECRET in got)
        assert got == "42501"


def test_files_exchanged(tables, attack):
    """Eve's table has ann's file, and ann's has eve's: neither reads either of them."""
    files = "SELECT relname, oid, relfilenode FROM pg_class WHERE relname IN ('pay_ann', 'pay_eve')"
    with tables.stack.connect_dba() as dba:
        file = {name: node for name, _, node in dba.execute(files).fetchall()}
        change = "UPDATE pg_class SET relfilenode = %s WHERE relname = %s"
        dba.execute(change, (file["pay_ann"], "pay_eve"))
        dba.execute(change, (file["pay_eve"], "pay_ann"))
    try:
        for who in "eve", "ann":
            for table, foreign in ("pay_eve", SECRET), ("pay_ann", OWN):
                got = read(tables, who, table)
                attack.attempt(f"files of tables exchanged, {who} reads {table}", foreign in got)
                assert got == "42501"
    finally:
        with tables.stack.connect_dba() as dba:
            dba.execute(change, (file["pay_ann"], "pay_ann"))
            dba.execute(change, (file["pay_eve"], "pay_eve"))


def replaced(stack, table, content):
    """Puts a file of a table in the place of the present one."""
    with stack.connect_dba() as dba:
        dba.execute("CHECKPOINT")
        path = dba.execute("SELECT pg_relation_filepath(%s)", (table,)).fetchone()[0]
    stack.kill_postgres()
    file = stack.data / path
    newest = file.read_bytes()
    file.write_bytes(content or newest)
    stack.start_postgres()
    return newest


def test_older_file(tables, attack):
    """Ann's rows were deleted, their values collected, and their identifiers given to others. Then
    the older file is put back: the old values are gone, and the new ones are still ann's."""
    stack = tables.stack
    older = replaced(stack, "pay_ann", None)
    with tables.connect("ann") as ann, stack.connect_dba() as dba:
        before = identifiers(dba, "pay_ann")
        ann.execute("DELETE FROM pay_ann")
        vacuum(ann, "pay_ann")
        assert collect(dba, "pay_ann") == 2
        dba.execute("SELECT confide.checkpoint()")  # only now are they given out again
        ann.execute("INSERT INTO pay_ann VALUES (3, 7301), (4, 7302)")
        assert set(identifiers(dba, "pay_ann")[-2:]) == set(before)
    replaced(stack, "pay_ann", older)
    got = read(tables, "ann", "pay_ann")
    deleted = {SECRET, OTHER} & set(got)
    attack.attempt("a deleted value, by an older file of its table", bool(deleted))
    assert sorted(got) == ["7301", "7302"]
    got = read(tables, "eve", "pay_ann")
    attack.attempt("an older file of a table, read by eve", got != "42501")


@pytest.mark.parametrize("shown_as", ["int8", "bytea"])
def test_type_in_the_catalog(tables, attack, shown_as):
    """Ann's column has a plain type: eve sees identifiers, no values."""
    change = "UPDATE pg_attribute SET atttypid = %s::regtype WHERE attrelid = 'pay_ann'::regclass"
    change += " AND attname = 'pay'"
    with tables.stack.connect_dba() as dba:
        dba.execute(change, (shown_as,))
    try:
        got = read(tables, "eve", "pay_ann")
        attack.attempt(f"a column's type in the catalog: {shown_as}", SECRET in got)
    finally:
        with tables.stack.connect_dba() as dba:
            dba.execute(change, ("enc_int4",))
    assert read(tables, "ann", "pay_ann") == [SECRET, OTHER]
