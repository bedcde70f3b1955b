"""Common parts of the tests of ledger tables: a superuser who switches the ledger off."""


class Off:
    """The ledger switched off in the catalogs, as a superuser can."""

    def __init__(self, dba):
        self.dba = dba
        self.types = {"deed": "ledger_sn", "deed_history": "ledger_past_sn"}

    def type_of(self, table, name):
        self.dba.execute(
            f"UPDATE pg_attribute SET atttypid = '{name}'::regtype, attgenerated = ''"
            f" WHERE attrelid = '{table}'::regclass AND attname IN ('sn')"
        )
        self.dba.execute(
            "UPDATE pg_attribute SET attgenerated = '' WHERE attname IN ('valid_from', 'by')"
            f" AND attrelid = '{table}'::regclass"
        )

    def __enter__(self):
        # What a client would be refused, too, nobody looks at any more.
        for table in self.types:
            self.type_of(table, "int8")
        return self.dba

    def __exit__(self, *_):
        for table, name in self.types.items():
            self.type_of(table, name)


def make_bond(app) -> None:
    """A ledger table with protected columns and forty rows."""
    app.execute(
        "CREATE TABLE bond (id int, what enc_text, price enc_numeric(9,2), note text)"
        " WITH (confide.ledger = on)"
    )
    app.execute("INSERT INTO bond SELECT n, 'bond ' || n, n FROM generate_series(1, 40) n")


def change(connection, number: int) -> None:
    """Gives a bond another version; no protected value changes."""
    connection.execute("UPDATE bond SET note = 'changed' WHERE id = %s", (number,))


def unresolved(connection) -> int:
    """How many identifiers of the bonds' history have no value."""
    sql = "SELECT sum(unresolved) FROM confide.verify('bond_history')"
    return connection.execute(sql).fetchone()[0]
