"""SQL for the types that have protected twins: expressions and statements over one table.

There are two sources: a list generated from PostgreSQL's catalogs (each function, operator,
aggregate and window function with columns as arguments, `sql/catalog.txt`), and a handwritten one
(`sql/written.txt`) for formats, units, patterns and clauses. Only what works on plain columns is
kept. Nothing is run on protected columns here: see test_sql.py.
"""

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent / "sql"
CATALOG = HERE / "catalog.txt"
WRITTEN = HERE / "written.txt"
OUTCOMES = HERE / "outcomes.txt"

# Types, their columns in the table, and values that most functions take.
COLUMNS: dict[str, tuple[str, list[str | None]]] = {
    "bool": ("b", ["t", "f", "t", "f", None]),
    "int2": ("i2", ["1", "2", "3", "7", None]),
    "int4": ("i4", ["2", "3", "5", "1", None]),
    "int8": ("i8", ["3", "5", "7", "2", None]),
    "float4": ("f4", ["0.5", "0.25", "0.125", "1", None]),
    "float8": ("f8", ["0.25", "0.5", "0.1", "0.75", None]),
    "numeric": ("n", ["2.5", "3.14159", "0.125", "12.00", None]),
    "text": ("s", ["Grüße an Anna", "foo bar baz", "a1b22c333", "x,y;z", None]),
    "varchar": ("vc", ["Hallo", "ab cd", "ÄÖ", "it's", None]),
    "bpchar": ("ch", ["abc", "b", "Äb c", "12", None]),
    "bytea": ("by", ["\\x616263", "\\x00ff10", "\\xdeadbeef", "\\x61", None]),
    "date": ("d", ["2024-02-29", "1999-12-31", "2001-05-07", "2010-10-10", None]),
    "time": ("tm", ["12:34:56.789", "00:00", "23:59:59", "06:30", None]),
    "timestamp": (
        "ts",
        [
            "2024-02-29 12:30:15.5",
            "1999-12-31 23:59:59",
            "2001-05-07 00:00",
            "2010-10-10 10:10",
            None,
        ],
    ),
    "timestamptz": (
        "tz",
        [
            "2024-03-31 01:30+00",
            "1999-12-31 23:59:59+00",
            "2001-05-07 12:00+02",
            "2010-10-10 10:10+00",
            None,
        ],
    ),
    "interval": (
        "iv",
        ["1 year 2 mons", "3 days 04:05:06.5", "-1 days +30:00", "45 days", None],
    ),
    "uuid": (
        "u",
        [
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "00000000-0000-0000-0000-000000000001",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "6ecd8c99-4036-403d-bf84-cf8400f67836",
            None,
        ],
    ),
    "json": ("js", ['{"a": 1.50, "b": [1]}', "[1, 2]", '{"a": null}', "[]", None]),
    "jsonb": ("jb", ['{"a": 1.50, "b": [1]}', "[1, 2]", '{"a": null}', "[]", None]),
}
# A second column of each type has the values in another order, a third in one more.
TURNS = {"": 0, "2": 1, "3": 3}


def table(prefix: str) -> list[str]:
    """Statements that make and fill the table, with protected types or plain ones."""
    names = [(t, column + turn) for turn in TURNS for t, (column, _) in COLUMNS.items()]
    columns = ", ".join(f"{column} {prefix}{t}" for t, column in names)
    rows = []
    for row in range(5):
        values = [str(row), str(row % 2)]
        for turn in TURNS.values():
            for _, (_, edges) in COLUMNS.items():
                # The row of NULLs stays one.
                value = edges[4] if row == 4 else edges[(row + turn) % 4]
                values.append("NULL" if value is None else quoted(value))
        rows.append(f"INSERT INTO t VALUES ({', '.join(values)})")
    small = [
        f"CREATE TABLE k (id int PRIMARY KEY, s {prefix}text, n {prefix}numeric, d {prefix}date)",
        "INSERT INTO k VALUES (1, 'foo bar baz', 3.14159, '1999-12-31'), "
        "(2, 'other', 1, '2020-01-01')",
    ]
    return [f"CREATE TABLE t (id int PRIMARY KEY, g int, {columns})", *rows, *small]


def quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


@dataclass(frozen=True)
class Entry:
    """A line of a list: under which heading, what it is called, and what is run."""

    heading: str
    text: str

    @property
    def statements(self) -> list[str]:
        """Statements, the last of which gives rows."""
        if self.text.startswith(("SELECT", "WITH", "VALUES")):
            return [self.text]
        if self.text.startswith("!"):
            # A semicolon within a statement is written as a paragraph sign.
            return [s.strip().replace("§", ";") for s in self.text[1:].split(";") if s.strip()]
        if self.heading.startswith("Aggregates"):
            return [
                f"SELECT {self.text} FROM t",
                f"SELECT g, {self.text} FROM t GROUP BY g ORDER BY g",
            ]
        if self.heading.startswith("Window"):
            return [f"SELECT id, {self.text} FROM t ORDER BY id"]
        if self.heading.startswith("Conditions"):
            return [f"SELECT id FROM t WHERE {self.text} ORDER BY id"]
        return [f"SELECT id, {self.text} FROM t ORDER BY t.id"]


def entries(path: Path) -> list[Entry]:
    heading, found = "", []
    for line in path.read_text().splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif line and not line.startswith("#"):
            found.append(Entry(heading, line))
    return found


# Functions of administration, of types without a twin, and behind other things.
NOT_ABOUT_VALUES = (
    r"^(pg_|has_|txid_|lo_|lo|ts_|set|current_|query_to|table_to|schema_to|database_to|cursor_to|xml|"
    r"obj_|shobj_|col_desc|format_type|amvalidate|brin|gin|gist|spg|binary_upgrade|row_security|"
    r"getdatabase|get_|nextval|currval|to_reg|makeacl|acl|inet|convert|length_|unique_key|in_range|"
    r"be_|like_escape|similar_|not_like|text_|texticlike|regex|name|char|bpchar|varchar|"
    r"textanycat|anytextcat|"
    r"generate_|information|satisfies|hash|bt|timestamp_|date_pl|date_mi|random|setseed|broadcast|"
    r"network|macaddr|ri_|suppress|phraseto|plainto|websearch|to_ts|numnode|querytree|jsonb?_to_|"
    r"jsonb?_populate|parse_ident|to_json|string_to_table|unistr|void|any_|array|elem_|range_|scalar|"
    r"d(exp|log|round|trunc|sqrt|cbrt|pow)|int[248]|float[48]|numeric_|like|notlike|textlen|\w+_subdiff)"
)
SUPPORT = (
    "^(implementation|internal|I/O|hash|less-equal|sort support|aggregate|join|restriction|combine|"
    "(de)?serialize|larger of|smaller of|planner support|window function support|encoding|"
    "equal image|latest)"
)
FUNCTIONS = """
SELECT p.prokind::text, p.proname, ARRAY(
    SELECT y.typname::text FROM unnest(proargtypes) WITH ORDINALITY u(o, n)
    JOIN pg_type y ON y.oid = u.o ORDER BY u.n)
FROM pg_proc p JOIN pg_description e ON e.objoid = p.oid AND e.classoid = 'pg_proc'::regclass
WHERE pronamespace = 'pg_catalog'::regnamespace AND p.oid < 16384 AND pronargs > 0 AND NOT proretset
  AND prorettype::regtype::text
    NOT IN ('internal', 'trigger', 'cstring', 'void', 'regclass', 'event_trigger')
  AND e.description !~* %(support)s
  AND p.proname !~ %(other)s AND p.proname NOT IN (SELECT typname FROM pg_type)
  AND NOT EXISTS (SELECT FROM pg_aggregate a WHERE p.oid IN (a.aggtransfn, a.aggfinalfn))
ORDER BY 1, 2, 3
"""
OPERATORS = """
SELECT oprname, l.typname::text, r.typname::text FROM pg_operator o
LEFT JOIN pg_type l ON l.oid = oprleft JOIN pg_type r ON r.oid = oprright
WHERE o.oid < 16384 AND oprname !~ '^(~[<>]=?~|\\*[=<>]+)$' ORDER BY 1, 2, 3
"""
ANY = {"any", "anyelement", "anynonarray", "anycompatible", "anycompatiblenonarray"}


def arguments(types: list[str]) -> str | None:
    """Columns of these types, each time another one."""
    used: dict[str, int] = {}
    found = []
    for type_ in types:
        type_ = "text" if type_ in ANY else type_
        if type_ not in COLUMNS:
            return None
        number = used[type_] = used.get(type_, -1) + 1
        if number >= len(TURNS):
            return None
        found.append(COLUMNS[type_][0] + list(TURNS)[number])
    return ", ".join(found)


# Their arguments are not columns alone.
ORDERED_SETS = {
    *("percentile_cont", "percentile_disc", "mode"),
    *("rank", "dense_rank", "cume_dist", "percent_rank"),
}


def from_catalog(connection) -> list[tuple[str, str]]:
    """Headings and expressions of all functions and operators, whether they work or not."""
    found = []
    given = {"other": NOT_ABOUT_VALUES, "support": SUPPORT}
    for kind, name, types in connection.execute(FUNCTIONS, given):
        heading = {"f": "Functions", "a": "Aggregates", "w": "Window functions"}[kind]
        columns = arguments(types)
        if columns is None or (kind == "a" and name in ORDERED_SETS):
            continue
        over = " OVER (ORDER BY id)" if kind == "w" else ""
        found.append((heading, f"{name}({columns}){over}"))
    for name, left, right in connection.execute(OPERATORS):
        columns = arguments([t for t in (left, right) if t])
        if columns is None:
            continue
        both = columns.split(", ")
        text = f"{name} {both[0]}" if len(both) == 1 else f"{both[0]} {name} {both[1]}"
        found.append(("Operators", text))
    return found
