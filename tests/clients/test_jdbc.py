"""JDBC through the proxy: simple and prepared statements, text and binary transfer, batches."""

import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from demo_data import queries
from results import run
from stack import ROOT

HERE = Path(__file__).parent
VERSION = "42.7.8"
JAR = ROOT / "target" / "jdbc" / f"postgresql-{VERSION}.jar"


@pytest.fixture(scope="module")
def jar():
    if not JAR.exists():
        subprocess.run(
            [
                *("mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:copy"),
                *(
                    f"-Dartifact=org.postgresql:postgresql:{VERSION}",
                    f"-DoutputDirectory={JAR.parent}",
                ),
            ],
            check=True,
            stdin=subprocess.DEVNULL,
            cwd=HERE,
        )
    return JAR


def java(jar, url, mode, *statements):
    parts = urlsplit(url)
    address = f"jdbc:postgresql://{parts.hostname}:{parts.port}{parts.path}"
    done = subprocess.run(
        ["java", "-cp", jar, HERE / "Client.java", address, parts.username, parts.password, mode],
        input="\0".join(statements),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared", "binary"])
def test_demo_queries(stack, jar, expected, mode):
    output = java(jar, stack.app_url, mode, *queries())
    blocks = [block.splitlines() for block in output.split("\0")[:-1]]
    assert len(blocks) == len(expected)
    for lines, (_, outcome) in zip(blocks, expected, strict=True):
        assert [line.split("\t") for line in lines] == [
            ["NULL" if v is None else v for v in row] for row in outcome.rows
        ]


def test_values(stack, jar, app, schema):
    """Typed setters and getters, batches, generated keys, an error, and life after it."""
    app.execute(
        "CREATE TABLE j (i serial PRIMARY KEY, te enc_text, i4 enc_int4, i8 enc_int8, "
        "nu enc_numeric(10, 2), da enc_date, ts enc_timestamp, f8 enc_float8, bo enc_bool, "
        "vc enc_varchar(10))"
    )
    output = java(jar, stack.app_url, "values", schema)
    assert output == "ok\n"
    assert run(app, "SELECT count(*), sum(i4) FROM j").rows == [("21", "217")]
