"""TLS from the proxy to the server: upstream_sslmode, upstream_ca, upstream_cert.

Mechanism: the stack's server gets a certificate for 127.0.0.1; the test's own proxy connects by
TCP, and pg_stat_ssl shows the state of the connection. Right: `require` and `verify-full` never
continue without TLS, and `verify-full` only with the server that has a certificate of the
authority. Bug: what is not sealed, the schema and plain columns, can be intercepted, or somebody
impersonates the server.
"""

import shutil

import psycopg
import pytest
from certificates import authority, certificate
from copies import owned
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from waiting import until

ASKED = "SELECT ssl, version, client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    directory = tmp_path_factory.mktemp("certificates")
    for name in ("authority", "stranger"):
        authority(directory, name)
    certificate(directory, "authority", "server", "server", "subjectAltName=IP:127.0.0.1")
    certificate(directory, "authority", "proxy", "the proxy", "extendedKeyUsage=clientAuth")
    return directory


def server(stack, **settings):
    """Sets these at the server; None: as it was."""
    with stack.connect_dba() as dba:
        for name, value in settings.items():
            given = f"= '{value}'" if value else ""
            dba.execute(f"ALTER SYSTEM {'SET' if value else 'RESET'} {name} {given}")
        dba.execute("SELECT pg_reload_conf()")
    mode = "require" if settings["ssl"] else "disable"
    wanted = {"sslmode": mode, "gssencmode": "disable"}
    port = conninfo_to_dict(stack.dba_url)["port"]
    address = make_conninfo(stack.app_url, host="127.0.0.1", port=port, **wanted)

    def is_so():
        """New connections find the server so."""
        try:
            with psycopg.connect(address) as straight:
                if mode == "require":
                    return True
                return straight.execute("SHOW ssl").fetchone() == ("off",)
        except psycopg.OperationalError:
            return False

    until(is_so, f"the server has TLS: {settings['ssl']}")


@pytest.fixture(scope="class")
def encrypting(stack, certificates):
    home = stack.data / "tls"
    home.mkdir(mode=0o755)
    for name in ("server.crt", "server.key", "authority.crt"):
        shutil.copy(certificates / name, home)
    owned("postgres", home)
    files = {
        "ssl_cert_file": home / "server.crt",
        "ssl_key_file": home / "server.key",
        "ssl_ca_file": home / "authority.crt",
    }
    server(stack, ssl="on", **files)
    yield
    server(stack, ssl=None, **dict.fromkeys(files))
    shutil.rmtree(home)


@pytest.fixture(scope="module")
def files(stack, certificates):
    """Those that the proxy reads."""
    home = stack.data.parent / "upstream"
    home.mkdir(mode=0o755)
    for name in ("authority.crt", "stranger.crt", "proxy.crt", "proxy.key"):
        shutil.copy(certificates / name, home)
    owned("confide-proxy", home)
    yield home
    shutil.rmtree(home)


def proxy(stack, mode, host="127.0.0.1", **more):
    port = conninfo_to_dict(stack.dba_url)["port"]
    return stack.another_proxy(upstream=f"{host}:{port}", upstream_sslmode=mode, **more)


def refusal(stack, mode, **more):
    with proxy(stack, mode, serves=False, **more) as (_, url):
        with pytest.raises(psycopg.OperationalError) as caught:
            psycopg.connect(url)
        return str(caught.value)


@pytest.mark.usefixtures("encrypting")
class TestWithTls:
    @pytest.mark.parametrize(
        ("mode", "ssl"), [("disable", False), ("prefer", True), ("require", True)]
    )
    def test_modes(self, stack, mode, ssl):
        with proxy(stack, mode) as (_, url), psycopg.connect(url) as connection:
            assert connection.execute(ASKED).fetchone()[0] is ssl

    def test_verified(self, stack, files):
        ca = str(files / "authority.crt")
        with (
            proxy(stack, "verify-full", upstream_ca=ca) as (_, url),
            psycopg.connect(url) as connection,
        ):
            ssl, version, client = connection.execute(ASKED).fetchone()
            assert (ssl, version, client) == (True, "TLSv1.3", None)

    def test_another_name(self, stack, files):
        ca = str(files / "authority.crt")
        message = refusal(stack, "verify-full", host="localhost", upstream_ca=ca)
        assert "certificate not valid for name" in message

    def test_another_authority(self, stack, files):
        message = refusal(stack, "verify-full", upstream_ca=str(files / "stranger.crt"))
        assert "invalid peer certificate" in message

    def test_certificate_of_the_proxy(self, stack, files):
        shown = {
            "upstream_cert": str(files / "proxy.crt"),
            "upstream_key": str(files / "proxy.key"),
        }
        with proxy(stack, "require", **shown) as (_, url), psycopg.connect(url) as connection:
            assert connection.execute(ASKED).fetchone()[2] == "/CN=the proxy"

    def test_users_that_the_server_authenticates(self, stack):
        """It offers them a mechanism that binds to its channel; theirs is another."""
        itself = {"users_file": "", "users": "app"}
        with proxy(stack, "require", **itself) as (_, url), psycopg.connect(url) as connection:
            assert connection.execute(ASKED).fetchone()[0] is True

    def test_long_values_and_cancel(self, stack, schema):
        long = "ä1" * 1_500_000
        with proxy(stack, "require") as (_, url), psycopg.connect(url, autocommit=True) as app:
            app.execute(f'SET search_path = "{schema}"')
            app.execute("CREATE TABLE t (a enc_text, b text)")
            with app.pipeline():
                for _ in range(3):
                    app.execute("INSERT INTO t VALUES (%s, %s)", [long, long])
            assert app.execute("SELECT a, b FROM t").fetchall() == [(long, long)] * 3
            app.execute("SET statement_timeout = '60s'")
            pid = app.info.backend_pid
            with stack.connect_dba() as dba:
                sleeping = "SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = %s"
                app.pgconn.send_query(b"SELECT pg_sleep(600)")
                until(lambda: dba.execute(sleeping, [pid]).fetchone() == (True,), "it sleeps")
            app.cancel()
            result = app.pgconn.get_result()
            assert result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"57014"
            assert app.pgconn.get_result() is None


def test_server_without_tls(stack, files):
    with proxy(stack, "prefer") as (_, url), psycopg.connect(url) as connection:
        assert connection.execute(ASKED).fetchone()[0] is False
    assert "the server does not speak TLS" in refusal(stack, "require")
    ca = str(files / "authority.crt")
    assert "the server does not speak TLS" in refusal(stack, "verify-full", upstream_ca=ca)
