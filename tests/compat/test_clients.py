"""Drivers and ORMs see the same on protected columns as on plain ones.

Mechanism: each program in the folder `clients` runs on plain tables directly with PostgreSQL, and
on protected ones through the proxy; all its output is compared. Right: equal, except for the checks
in `clients/differences`, with their reasons. Bug: a form that a driver sends is refused, or returns
another type or value. CONFIDE_UPDATE=1 rewrites docs/compatibility.md.
"""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from client_programs import HERE, compare, counts, document, known, python, write_counts
from psycopg.conninfo import conninfo_to_dict
from stack import ROOT

sys.path.append(str(HERE))
import drivers

UPDATE = bool(os.environ.get("CONFIDE_UPDATE"))
DOCS = ROOT / "docs" / "compatibility.md"

PROGRAMS = {
    "SQLAlchemy": ("sqlalchemy", "sqlalchemy_program.py"),
    "Django": ("django", "django_program.py"),
    "psycopg2": ("psycopg2-binary", "psycopg2_program.py"),
    "asyncpg": ("asyncpg", "asyncpg_program.py"),
    "pg8000": ("pg8000", "pg8000_program.py"),
}


# These need Node, Go, Java and packages that the tests do not: only `make compat` runs them.
NODE = {"node pg": ("pg", "pg_program.js"), "TypeORM": ("typeorm", "typeorm_program.js")}
MODULES = ROOT / "target" / "compat" / "node"
# The name, the package whose version it is, the program.
JAVA = {"JDBC": ("postgresql", "JdbcProgram"), "Hibernate": ("hibernate-core", "HibernateProgram")}
CLASSES = ROOT / "target" / "compat" / "java"


def judge(result, version, report):
    """Fails with what differs and is not known to, and with what is known to and does not."""
    report(f"Clients: {result.line()}")
    why = known()
    new = [
        f"{check}: {what}"
        for check, what in result.outcomes.items()
        if what and (result.program, check) not in why
    ]
    assert not new, "\n".join(new)
    mine = [check for program, check in why if program == result.program]
    gone = [check for check in mine if not result.outcomes.get(check)]
    assert not gone, f"equal now, so no longer in the list: {gone}"
    if UPDATE:
        write_counts(result, version)
    assert counts().get(result.program) == (version, len(result.outcomes), result.equal)


@pytest.fixture(scope="module")
def port(stack):
    """That of a proxy that shows clients' tools types that they know."""
    with stack.another_proxy(plain_catalogs="*") as (_, url):
        yield int(conninfo_to_dict(url)["port"])


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(stack, port, report, name):
    package, program = PROGRAMS[name]
    result = compare(stack, port, name, python(program))
    judge(result, importlib.metadata.version(package), report)


@pytest.fixture(scope="module")
def modules():
    MODULES.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / "node" / name, MODULES)
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    subprocess.run(command, cwd=MODULES, check=True, stdin=subprocess.DEVNULL)
    return MODULES / "node_modules"


@pytest.mark.skipif(not UPDATE, reason="make compat runs it")
@pytest.mark.parametrize("name", NODE)
def test_program_of_node(stack, port, modules, report, name):
    package, program = NODE[name]
    command = ["node", str(HERE / "node" / program)]
    environment = {"NODE_PATH": str(modules), "CONFIDE_DRIVERS": json.dumps(drivers.everything())}
    result = compare(stack, port, name, command, **environment)
    version = json.loads((modules / package / "package.json").read_text())["version"]
    judge(result, version, report)


@pytest.mark.skipif(not UPDATE, reason="make compat runs it")
def test_program_in_go(stack, port, report, tmp_path):
    program = tmp_path / "program"
    command = ["go", "build", "-o", program, "."]
    subprocess.run(command, cwd=HERE / "go", check=True)
    result = compare(
        stack, port, "pgx", [str(program)], CONFIDE_DRIVERS=json.dumps(drivers.everything())
    )
    version = re.search(r"pgx/v5 v(\S+)", (HERE / "go" / "go.mod").read_text())[1]
    judge(result, version, report)


@pytest.fixture(scope="module")
def classes():
    """Where the programs in Java and their packages are."""
    folder = HERE / "java"
    copy = "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:copy-dependencies"
    shutil.rmtree(CLASSES, ignore_errors=True)
    command = ["mvn", "-q", "-B", "-f", folder / "pom.xml", copy, f"-DoutputDirectory={CLASSES}"]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    path = f"{CLASSES}:{CLASSES}/*"
    command = ["javac", "-d", CLASSES, "-cp", path, *folder.glob("*.java")]
    subprocess.run(command, check=True)
    return path


@pytest.mark.skipif(not UPDATE, reason="make compat runs it")
@pytest.mark.parametrize("name", JAVA)
def test_program_in_java(stack, port, classes, report, name):
    package, program = JAVA[name]
    result = compare(stack, port, name, ["java", "-cp", classes, program])
    about = (HERE / "java" / "pom.xml").read_text()
    version = re.search(rf"<artifactId>{package}</artifactId>\s*<version>(\S+)</version>", about)[1]
    judge(result, version, report)


def test_document_is_fresh():
    if UPDATE:
        DOCS.write_text(document())
    assert DOCS.read_text() == document(), "run make compat"
