"""Aggregates, grouping, sorting and set operations over protected columns return the same as over
plain ones: value, type, or SQLSTATE.
"""

import pytest
from cases import TYPES, aggregates, quoted
from results import run
from values import EDGES, LITERALS

ROWS = 5  # of each edge value, spread over groups


@pytest.fixture(scope="module")
def tables(stack):
    with stack.connect_app() as plain, stack.connect_app() as protected:
        for connection, schema, prefix in (
            (plain, "groups_plain", ""),
            (protected, "groups_protected", "enc_"),
        ):
            connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
            connection.execute(f"CREATE SCHEMA {schema}")
            connection.execute(f"SET search_path = {schema}")
            connection.execute("SET TimeZone = 'Europe/Berlin'")
            for type_ in TYPES:
                # t: groups of edge values; s: ordinary values; e: nothing.
                for name in "tse":
                    connection.execute(
                        f"CREATE TABLE {name}_{type_} (i integer PRIMARY KEY, g integer, "
                        f"v {prefix}{type_})"
                    )
                write(connection, f"t_{type_}", EDGES[type_] * ROWS)
                write(connection, f"s_{type_}", (LITERALS[type_] + [None]) * 7)
        yield plain, protected


def write(connection, table, values):
    with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        for number, value in enumerate(values):
            copy.write_row((number, number % 7, value))


def queries(type_):
    literals = LITERALS[type_]
    low, high = quoted(literals[0]), quoted(literals[-1])
    for table in (f"t_{type_}", f"s_{type_}", f"e_{type_}"):
        for name in [*aggregates(type_), "count"]:
            for argument in ("v", "DISTINCT v"):
                call = f"{name}({argument})"
                yield f"SELECT {call} FROM {table}"
                yield f"SELECT g, {call} FROM {table} GROUP BY g ORDER BY g"
                yield f"SELECT g, {call} FROM {table} WHERE v > {low} GROUP BY g ORDER BY g"
            yield f"SELECT {name}(v) FILTER (WHERE v < {high}) FROM {table}"
            yield f"SELECT {name}(v) FROM {table} WHERE v IS NULL"
            yield f"SELECT {name}(v) FROM {table} WHERE i = 1"
            yield f"SELECT {name}(CASE WHEN v = {low} THEN v END) FROM {table}"
        if "max" in aggregates(type_):
            yield f"SELECT g FROM {table} GROUP BY g HAVING max(v) >= {low} ORDER BY g"
            yield f"SELECT max(v), min(v), count(*) FROM {table} GROUP BY v ORDER BY v"
            yield f"SELECT i, max(v) OVER (PARTITION BY g ORDER BY i) FROM {table} ORDER BY i"
        # PostgreSQL compares abbreviations of sorted values here.
        for order in ("", " ORDER BY v::text DESC"):
            yield f"SELECT string_agg(DISTINCT v::text, ','{order}) FROM {table}"
        yield f"SELECT g, string_agg(DISTINCT v::text, ',') FROM {table} GROUP BY g ORDER BY g"
        yield f"SELECT dense_rank({high}) WITHIN GROUP (ORDER BY v) FROM {table}"
        yield f"SELECT dense_rank({high}, 3) WITHIN GROUP (ORDER BY v, g) FROM {table}"
        yield f"SELECT v, count(*) FROM {table} GROUP BY v ORDER BY v"
        yield f"SELECT v, count(*) FROM {table} GROUP BY v HAVING count(*) > 1 ORDER BY v DESC"
        yield f"SELECT DISTINCT v FROM {table} ORDER BY v"
        yield f"SELECT DISTINCT ON (v) v, i FROM {table} ORDER BY v, i"
        yield f"SELECT v, i FROM {table} ORDER BY v NULLS FIRST, i DESC"
        yield f"SELECT v, i FROM {table} ORDER BY v DESC, i LIMIT 5 OFFSET 2"
        yield (
            f"SELECT i, rank() OVER (ORDER BY v), lag(v) OVER (ORDER BY i) FROM {table} ORDER BY i"
        )
        yield f"SELECT a.i, b.i FROM {table} a JOIN {table} b USING (v) ORDER BY 1, 2"
        yield f"SELECT count(*) FROM {table} a LEFT JOIN {table} b ON a.v < b.v AND a.g = b.g"
        yield f"SELECT v FROM {table} UNION SELECT v FROM s_{type_} ORDER BY 1"
        yield f"SELECT v FROM {table} INTERSECT SELECT v FROM s_{type_} ORDER BY 1"
        yield f"SELECT v FROM {table} EXCEPT ALL SELECT v FROM s_{type_} ORDER BY 1"
        yield f"SELECT i FROM {table} WHERE v = ANY (SELECT v FROM s_{type_}) ORDER BY i"
        yield (
            f"SELECT i FROM {table} WHERE v >= ALL (SELECT v FROM s_{type_} WHERE v IS NOT NULL) "
            "ORDER BY i"
        )


@pytest.mark.parametrize("type_", TYPES)
def test_aggregates(tables, type_):
    plain, protected = tables
    wrong, compared = [], 0
    for query in queries(type_):
        expected, got = run(plain, query), run(protected, query)
        compared += max(1, len(expected.rows))
        if not got.same(expected):
            wrong.append(f"{query}\n    expected {short(expected)}\n    got      {short(got)}")
    assert not wrong, f"{len(wrong)} queries differ:\n" + "\n".join(wrong[:20])
    assert compared >= (60 if type_ == "json" else 300)  # json has neither order nor equality


def short(outcome):
    if outcome.sqlstate:
        return f"{outcome.sqlstate} {outcome.message}"
    return f"{outcome.types} {outcome.rows[:6]}"
