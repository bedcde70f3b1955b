"""The switch of the family soft_: PostgreSQL evaluates comparisons on the encodings, or the keeper
opens the cells, as `confide.soft_mode` says (docs/families.md).

Mechanism: quals of a scan go through a node that gives batches to the keeper or passes rows on one
by one; adaptive, it decides by measured costs and the keeper's probe. Right: plaintext's results
in all modes. With a bug rows are lost or returned twice where the side changes, a refusal of the
keeper ends the statement, or the keeper is used without its key, or goes on being used when it is
slow.
"""

import pytest
from principals import three  # noqa: F401
from switching import MODES, QUERIES, ROWS, evaluated, fill, stat, transfer
from waiting import until

# So many comparisons that opening a cell once pays.
WIDE = "SELECT count(*) FROM item WHERE " + " OR ".join(f"n > {5000 + k}" for k in range(80))


@pytest.fixture(scope="module")
def tables(stack):
    """The table and its plain twin, made once."""
    with stack.connect_dba() as dba:
        for name in ("switched", "switched_plain"):
            dba.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
            dba.execute(f"CREATE SCHEMA {name} AUTHORIZATION app")
    with stack.connect_app() as app, stack.connect_app() as plain:
        app.execute("SET search_path = switched")
        plain.execute("SET search_path = switched_plain")
        fill(app, "soft_")
        fill(plain, "")
        # One key for both columns that share it: cells do not say of which they are.
        for column in ("n", "big", "price", "name", "born", "up"):
            transfer(stack, f"switched.item.{column}")
        yield stack
    with stack.connect_dba() as dba:
        dba.execute("DROP SCHEMA switched, switched_plain CASCADE")


def connect(stack, mode, schema="switched", **settings):
    connection = stack.connect_app()
    connection.execute(f"SET search_path = {schema}")
    connection.execute(f"SET confide.soft_mode = {mode}")
    for name, value in settings.items():
        connection.execute(f"SET confide.{name} = {value}")
    return connection


@pytest.mark.parametrize("mode", MODES)
def test_equal_results(tables, mode):
    with connect(tables, mode) as app, connect(tables, mode, "switched_plain") as plain:
        for query in QUERIES:
            wanted = plain.execute(query).fetchall()
            if not query.startswith("SELECT id") or "ORDER BY" not in query:
                wanted = sorted(wanted, key=str)
                assert sorted(app.execute(query).fetchall(), key=str) == wanted, query
            else:
                assert app.execute(query).fetchall() == wanted, query


def test_parameters(tables):
    """Prepared statements keep their plans; a change of the mode makes them anew."""
    query = "SELECT count(*) FROM item WHERE n > %s AND price <= %s"
    with connect(tables, "software") as app, connect(tables, "software", "switched_plain") as plain:
        for mode in (*MODES, *MODES):
            app.execute(f"SET confide.soft_mode = {mode}")
            for n in (0, 500, 995, 2000):
                wanted = plain.execute(query, (n, "40.50")).fetchall()
                assert app.execute(query, (n, "40.50"), prepare=True).fetchall() == wanted


def test_which_side(tables):
    query = "SELECT count(*) FROM item WHERE n > 500"
    with connect(tables, "software") as app:
        assert evaluated(app, query) == (0, 0)  # no switch in the plan
        assert float(stat(app)["software.order_ns"]) > 0
    with connect(tables, "keeper") as app:
        assert evaluated(app, query) == (0, ROWS)
        seen = stat(app)
        assert seen["mode"] == seen["evaluates"] == "keeper"
        assert int(seen["keeper.rows"]) == ROWS
        assert float(seen["keeper.open_ns"]) > 0
        assert int(seen["keeper.probes"]) > 0
        app.execute("SET confide.soft_mode = software")
        assert evaluated(app, query) == (0, 0)
        app.execute("SET confide.soft_mode = static")
        # One equality of encodings is cheaper than opening a cell.
        assert evaluated(app, "SELECT count(*) FROM item WHERE n = 31") == (0, 0)


def test_few_answers(tables):
    with connect(tables, "keeper") as app:
        app.execute("SELECT count(*) FROM item WHERE n > 500")
        before = int(stat(app)["keeper.batches"])
        app.execute("SELECT count(*) FROM item WHERE n > 501")
        assert int(stat(app)["keeper.batches"]) - before < 12


def test_without_the_key(tables):
    """All modes are software then, also for some columns of a qual only."""
    for mode in MODES:
        with connect(tables, mode) as app:
            app.execute("CREATE TEMP TABLE other (n soft_int4)")
            app.execute("INSERT INTO other VALUES (1), (5), (NULL), (9)")
            query = "SELECT count(*) FROM other WHERE n > 3"
            assert app.execute(query).fetchall() == [(2,)]
            assert evaluated(app, query) == (0, 0)
            assert int(stat(app)["keeper.rows"]) == 0


def test_without_a_client(tables):
    """A superuser has no session with the keeper, and learns what the encodings say."""
    with tables.connect_dba() as dba:
        dba.execute("SET search_path = switched")
        cell = dba.execute("SELECT n FROM item WHERE id = 1").fetchone()[0]
        counts = set()
        for mode in MODES:
            dba.execute(f"SET confide.soft_mode = {mode}")
            query = f"SELECT count(*) FROM item WHERE n > '{cell}'"
            counts.add(dba.execute(query).fetchone()[0])
            assert evaluated(dba, query) == (0, 0)
        assert len(counts) == 1


def test_key_taken_back(tables):
    """What the session still believes is refused by the keeper; then PostgreSQL evaluates."""
    query = "SELECT count(*) FROM item WHERE big > 10000000000"
    with connect(tables, "keeper", soft_probe_interval=60000) as app:
        wanted = app.execute(query).fetchall()
        assert evaluated(app, query) == (0, ROWS)
        transfer(tables, "switched.item.big", "--withdraw")
        try:
            assert app.execute(query).fetchall() == wanted
            assert evaluated(app, query)[1] == 0
        finally:
            transfer(tables, "switched.item.big")


def test_who_may_not_see_the_column(three):  # noqa: F811
    """The keeper refuses him; PostgreSQL compares the encodings, as without the switch."""
    queries = ["count(*) FROM pay WHERE a < b", "count(*) FROM pay WHERE a > 2"]
    with three.connect("ann") as ann, three.connect("bob") as bob, three.connect("boss") as boss:
        ann.execute("CREATE TABLE public.pay (a soft_int4(key_4713), b soft_int4(key_4713))")
        ann.execute("GRANT ALL ON public.pay TO bob")
        ann.execute("INSERT INTO public.pay VALUES (1, 2), (2, 1), (3, 4), (NULL, 1)")
        boss.execute("GRANT OWNER public.pay.a TO ann")
        url = f"postgresql://ann:x@127.0.0.1:{three.port}/app"
        transfer(three.stack, "public.pay.a", url=url)
        for mode in MODES:
            for client in (ann, bob):
                client.execute(f"SET confide.soft_mode = {mode}")
                found = [client.execute("SELECT " + q).fetchone()[0] for q in queries]
                assert found == [2, 1], (mode, client)
        assert int(stat(ann)["keeper.rows"]) > 0
        assert stat(bob)["keeper.rows"] == "0"


def throttled(stack, factor):
    with stack.connect_dba() as dba:
        dba.execute(f"ALTER SYSTEM SET confide.soft_throttle = {factor}")
        dba.execute("SELECT pg_reload_conf()")


# What the keeper is said to be (confide.soft_throttle): which side is the faster one on a machine
# is not for a test to know.
SLOW, FAST = "1000000", "0.000001"


def test_adaptive_moves_away_and_comes_back(tables):
    """The keeper is said to be slower: the switch leaves it, and returns when it is fast again."""
    with connect(tables, "adaptive", soft_probe_interval=1) as app:

        def all_in(keeper: bool) -> bool:
            software, opened = evaluated(app, WIDE)
            assert software + opened == ROWS
            return opened == ROWS if keeper else software == ROWS

        try:
            throttled(tables, FAST)
            until(lambda: all_in(keeper=True), "the keeper evaluates")
            throttled(tables, SLOW)
            until(lambda: all_in(keeper=False), "PostgreSQL evaluates")
            asked = int(stat(app)["keeper.asked"])
            throttled(tables, FAST)
            until(lambda: all_in(keeper=True), "the keeper evaluates")
            assert int(stat(app)["keeper.asked"]) > asked
        finally:
            throttled(tables, 1)


THROTTLE = f"""CREATE FUNCTION switched.throttle(id int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF id IN (300, 1700) THEN
        PERFORM set_config('confide.soft_throttle',
            CASE id WHEN 300 THEN '{SLOW}' ELSE '{FAST}' END, true);
        PERFORM pg_sleep(0.1);
    END IF;
    RETURN id;
END $$"""


def test_side_changes_within_a_scan(tables):
    """Each row is returned once, wherever the side changes. The statement itself throttles the
    keeper while it runs, which a superuser's function may do."""
    query = WIDE.replace("count(*)", "id, switched.throttle(id)")
    query = query.replace("WHERE ", "WHERE NOT (") + ")"
    with tables.connect_dba() as dba:
        dba.execute(THROTTLE)
    wanted = [(k, k) for k in range(ROWS) if k % 7 != 0]

    def changed(app) -> bool:
        got = app.execute(query).fetchall()
        assert sorted(got) == wanted
        return int(stat(app)["switches"]) >= 1

    with connect(tables, "adaptive", soft_probe_interval=1) as app:
        try:
            throttled(tables, FAST)
            until(lambda: evaluated(app, WIDE)[1] == ROWS, "the keeper evaluates")
            before = int(stat(app)["switches"])
            until(lambda: changed(app) and int(stat(app)["switches"]) > before, "the side changes")
            assert sorted(app.execute(query).fetchall()) == wanted
        finally:
            throttled(tables, 1)


def test_bounded_rate(tables):
    """However many batches are decided, the keeper is asked for its state rarely."""
    with connect(tables, "adaptive", soft_probe_interval=60000) as app:
        for _ in range(20):
            app.execute(WIDE).fetchall()
        seen = stat(app)
        assert int(seen["keeper.batches"]) + int(seen["software.batches"]) >= 20
        assert int(seen["keeper.asked"]) <= 1
