"""Garbage collection: no identifier that anything can still name is ever swept, and what
nothing names is reclaimed."""

import pytest


def verify(connection, table: str = "t") -> dict[str, tuple[int, int]]:
    """What is found by place and name: identifiers, and those that name nothing."""
    rows = connection.execute(
        "SELECT place, name, fids, unresolved FROM confide.verify(%s)", [table]
    )
    return {f"{place} {name}": (fids, bad) for place, name, fids, bad in rows}


def test_verify_finds_all_places(stack, app):
    """Bug: a place that verification does not look at could dangle unseen."""
    app.execute("CREATE TABLE t (id int, v enc_int4, s enc_text, w enc_int4)")
    app.execute("INSERT INTO t SELECT g, g, NULL, g % 3 FROM generate_series(1, 1000) g")
    app.execute("CREATE INDEX t_v ON t (v) INCLUDE (w)")
    app.execute("CREATE INDEX t_hash ON t USING hash (v)")
    app.execute("CREATE STATISTICS t_stat (mcv) ON v, w FROM t")
    app.execute("ALTER TABLE t ALTER v SET STATISTICS 10")
    app.execute("ALTER TABLE t ALTER w SET STATISTICS 10")
    app.execute("ANALYZE t")
    found = verify(app)
    assert found["table t"] == (2000, 0)
    fids, unresolved = found["index t_v"]
    assert unresolved == 0
    assert 2000 < fids < 2050  # with the keys above the leaves
    assert found["index t_hash"] == (0, 0)
    fids, unresolved = found["statistics t"]
    # Histogram of v (11), values of w (3), combinations.
    assert unresolved == 0
    assert fids > 14
    app.execute("DELETE FROM t WHERE id > 500")
    assert verify(app)["table t"] == (2000, 0), "dead rows are still there"
    app.execute("VACUUM t")
    assert verify(app)["table t"] == (1000, 0)


def test_verify_is_for_owners(dba, app):
    app.execute("CREATE TABLE t (id int, v enc_int4)")
    app.execute("CREATE TABLE plain (id int)")
    with pytest.raises(Exception, match="not a table of access method confide"):
        verify(app, "plain")
    with pytest.raises(Exception, match="must be owner"):
        verify(app, "pg_class")
    assert verify(dba) == {"table t": (0, 0), "statistics t": (0, 0)}
