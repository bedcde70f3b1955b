"""Runs SQL and returns the result as it was on the wire, or the SQLSTATE."""

from dataclasses import dataclass, field

import psycopg


@dataclass
class Outcome:
    """Rows as text and the OIDs of their columns, or an error."""

    types: list[int] = field(default_factory=list)
    rows: list[tuple] = field(default_factory=list)
    sqlstate: str | None = None
    message: str = ""

    def same(self, other: "Outcome") -> bool:
        return (self.types, self.rows, self.sqlstate) == (other.types, other.rows, other.sqlstate)


def raw(cursor: psycopg.Cursor) -> Outcome:
    result = cursor.pgresult
    columns = range(result.nfields)
    return Outcome(
        [result.ftype(c) for c in columns],
        [tuple(text(result.get_value(r, c)) for c in columns) for r in range(result.ntuples)],
    )


def text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def run(connection: psycopg.Connection, sql: str, params=None) -> Outcome:
    """The last result of the text, or its error. The connection must be in autocommit."""
    with connection.cursor() as cursor:
        try:
            cursor.execute(sql, params)
        except psycopg.Error as error:
            return Outcome(sqlstate=error.sqlstate or "none", message=str(error).splitlines()[0])
        while cursor.nextset():
            pass
        return raw(cursor) if cursor.description else Outcome()


def plain(sql: str) -> str:
    """The same SQL without protection."""
    return sql.replace("enc_", "")
