"""Lets the client authorise definitions that a test makes as superuser."""

import psycopg


def authorise(app: psycopg.Connection, schema: str) -> None:
    """All definitions of a schema, as they are shown."""
    shown = app.execute("SELECT definition FROM confide.definitions(%s)", (schema,)).fetchall()
    for (definition,) in shown:
        with psycopg.ClientCursor(app) as cursor:
            cursor.execute("SELECT confide.authorise(%s)", (definition,))
