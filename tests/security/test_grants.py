"""How often grants are sent.

Mechanism: the proxy sends a grant after the text of the first statement of its shape in a session,
and the keeper keeps it as long as the session lasts. Right: one grant for a shape and a session,
whatever the constants, in simple and extended queries, and no message of its own. Bug: each
statement pays for one.
"""

import re

import pytest
from delivered import counted, in_some_turn

SHAPES = [
    ("SELECT id FROM emp WHERE pay = {0}", "SELECT id FROM emp WHERE pay = %s"),
    ("SELECT name FROM emp WHERE id = {0}", "SELECT name FROM emp WHERE id = %s"),
    ("UPDATE emp SET pay = {0} WHERE id = 3", "UPDATE emp SET pay = %s WHERE id = 3"),
    ("INSERT INTO emp VALUES ({0}, {0})", "INSERT INTO emp VALUES (%s, 7)"),
    ("SELECT count(*) FROM emp WHERE pay > {0}", "SELECT count(*) FROM emp WHERE pay > %s"),
]


@pytest.fixture
def emp(app):
    app.execute("CREATE TABLE emp (id int, pay enc_int4, name enc_text)")
    app.execute("INSERT INTO emp SELECT g, g, 'n' || g FROM generate_series(1, 20) g")
    return app


def sent(stack, sizes):
    """Grants that the server was sent. Each is sealed anew, so no two are equal."""
    return set(re.findall(r"/\*confide:cfd1\.[\w-]+\*/", stack.logged_since(sizes)))


@pytest.mark.parametrize("extended", [False, True])
def test_once_for_a_shape(stack, emp, schema, extended):
    for _ in range(2):
        with stack.connect_app(options=f"-c search_path={schema}") as session:
            sizes = stack.log_sizes()
            for simple, parameters in SHAPES:
                for i in range(100, 110):
                    if extended:
                        session.execute(parameters, [i])
                    else:
                        session.execute(simple.format(i))
            session.execute("SELECT 'the end of it'")
            # Shapes that need the same have one grant.
            assert 0 < len(sent(stack, sizes)) <= len(SHAPES)


def test_no_wait(stack, emp, dba):
    """The first statement of a shape waits as often as the next ones."""
    dba.execute("GRANT pg_monitor TO app")
    in_some_turn(lambda _: counted(emp, "SELECT name FROM emp WHERE id = 4")[1])
    # Another shape over the same value.
    assert counted(emp, "SELECT name FROM emp WHERE id = 4 AND id > 2")[1] == 0
    dba.execute("REVOKE pg_monitor FROM app")
