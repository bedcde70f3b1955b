"""Random queries over the tables of tables.py, as trees.

They avoid what PostgreSQL leaves undefined: rows under LIMIT have a total order, the errors in a
query are of one kind, sorted and grouped expressions have the same text for equal values.
"""

import random
from dataclasses import dataclass

from tables import Column, Table
from tree import Node, listing

NUMBERS = ("int4", "int8", "numeric", "float8")
STRINGS = ("text", "varchar", "bpchar")
DATES = ("date", "timestamp")
COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]
PAIRS = 30_000
UNITS = ["year", "month", "day", "quarter", "dow"]


@dataclass
class Query:
    """A tree, how its result is compared, and how it is run."""

    tree: Node
    ordered: bool
    how: str  # simple, cursor, prepared, rollback


@dataclass(frozen=True)
class Source:
    """A column in scope."""

    alias: str
    column: Column

    @property
    def type(self) -> str:
        return self.column.type

    def node(self) -> Node:
        return Node(f"{self.alias}.{self.column.name}", (), self.type)


def quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


class Generator:
    """Makes one query."""

    def __init__(self, tables: list[Table], rng: random.Random):
        self.tables = tables
        self.rng = rng
        self.scope: list[Source] = []
        self.ids: list[str] = []
        self.aliases = 0
        self.pairs = 1
        # One query raises errors of one kind at most.
        self.risk = rng.choice([None, None, None, "division", "overflow"])
        # Plain and protected columns in one expression: not in most.
        self.mixed = rng.random() < 0.1

    def choose(self, *makers):
        return self.rng.choice(makers)()

    # Names.
    def table(self) -> tuple[Table, str]:
        """A table, small enough that all pairs with those before can be compared."""
        self.aliases += 1
        fitting = [t for t in self.tables if self.pairs * len(t.rows) <= PAIRS]
        table = self.rng.choice(fitting or [min(self.tables, key=lambda t: len(t.rows))])
        self.pairs *= max(1, len(table.rows))
        return table, f"a{self.aliases}"

    def enter(self, table: Table, alias: str) -> list[Source]:
        """All columns for joins; in scope for expressions are protected ones mostly."""
        sources = [Source(alias, column) for column in table.columns]
        self.scope += self.visible(sources)
        self.ids.append(f"{alias}.id")
        return sources

    def visible(self, sources: list[Source]) -> list[Source]:
        secret = [s for s in sources if s.column.declared.startswith("enc_")]
        return sources if self.mixed or not secret else secret

    def columns(self, kinds) -> list[Source]:
        return [source for source in self.scope if source.type in kinds]

    # Expressions.
    def constant(self, type_: str) -> Node:
        """Often a value that is in a table."""
        used = [c.values for t in self.tables for c in t.columns if c.type == type_ and c.values]
        value = self.rng.choice(self.rng.choice(used)) if used else DEFAULTS[type_]
        if type_ in ("int4", "numeric") and value not in ("NaN",):
            text = f"({value})" if value.startswith("-") else value
        else:
            text = f"{type_} {quoted(value)}"
        # Beside a column, which has blanks at its end, it is an equal value of another text.
        return Node(text, (), type_, stable=type_ != "bpchar")

    def leaf(self, type_: str) -> Node:
        found = self.columns([type_])
        if found and self.rng.random() < 0.8:
            return self.rng.choice(found).node()
        return self.constant(type_)

    def expression(self, type_: str, depth: int = 2) -> Node:
        rng = self.rng
        if depth == 0 or rng.random() < 0.45:
            return self.leaf(type_)
        makers = [self.conditional]
        if type_ in NUMBERS:
            makers += [self.arithmetic, self.arithmetic, self.number]
        if type_ == "text":
            makers += [self.string, self.string]
        if type_ in DATES:
            makers += [self.moved]
        node = rng.choice(makers)(type_, depth - 1)
        return Node(
            node.template,
            node.parts,
            node.kind,
            node.stable and all(part.stable for part in node.parts),
            simpler=("NULL", *(s.node().template for s in self.columns([type_])[:2])),
        )

    def arithmetic(self, type_: str, depth: int) -> Node:
        left, right = self.expression(type_, depth), self.expression(type_, depth)
        if self.risk == "division" and type_ != "float8":
            small = self.leaf(type_)
            return Node("({0} / {1})", (self.leaf(type_), small), type_, stable=False)
        if self.risk == "overflow" and type_ in ("int4", "int8"):
            operator = self.rng.choice("+-*")
            return Node(f"({{0}} {operator} {{1}})", (left, right), type_)
        if type_ in ("int4", "int8"):
            # Never an overflow: both sides are brought near to zero.
            operator = self.rng.choice("+-*")
            return Node(f"(({{0}} % 1000) {operator} ({{1}} % 1000))", (left, right), type_)
        if type_ == "numeric":
            return Node(f"({{0}} {self.rng.choice('+-*')} {{1}})", (left, right), type_)
        return Node(f"({{0}} {self.rng.choice('+-')} {{1}})", (left, right), type_)

    def number(self, type_: str, depth: int) -> Node:
        if type_ == "int4" and self.columns(STRINGS):
            return Node("length({0})", (self.leaf("text"),), type_)
        if type_ == "numeric" and self.columns(DATES) and self.rng.random() < 0.6:
            unit = self.rng.choice(UNITS)
            date = self.rng.choice(self.columns(DATES)).node()
            return Node(f"extract({unit} FROM {{0}})", (date,), type_)
        if type_ in ("int4", "int8"):  # abs and minus overflow at the edge only
            return Node("abs({0} % 100)", (self.expression(type_, depth),), type_)
        name = self.rng.choice(["abs", "-", "floor", "sign"])
        return Node(f"{name}({{0}})", (self.expression(type_, depth),), type_, type_ == "numeric")

    def string(self, type_: str, depth: int) -> Node:
        text = self.expression("text", depth)
        low, length = self.rng.randrange(1, 4), self.rng.randrange(0, 4)
        return self.choose(
            lambda: Node("upper({0})", (text,), type_),
            lambda: Node(f"substring({{0}} FROM {low} FOR {length})", (text,), type_),
            lambda: Node("({0} || {1})", (text, self.expression("text", depth)), type_),
            lambda: Node("replace({0}, 'a', 'bb')", (text,), type_),
            lambda: Node("left({0}, 2)", (text,), type_),
            lambda: Node("btrim({0})", (text,), type_),
        )

    def moved(self, type_: str, depth: int) -> Node:
        inner = self.expression(type_, depth)
        if type_ == "date":
            return Node(f"({{0}} + {self.rng.randrange(-40, 400)})", (inner,), type_)
        interval = self.rng.choice(["3 month", "1 year", "-5 day", "36 hour"])
        return Node(f"({{0}} + interval '{interval}')", (inner,), type_)

    def conditional(self, type_: str, depth: int) -> Node:
        one, other = self.expression(type_, depth), self.expression(type_, depth)
        return self.choose(
            lambda: Node(
                "CASE WHEN {0} THEN {1} ELSE {2} END", (self.predicate(depth), one, other), type_
            ),
            lambda: Node("CASE WHEN {0} THEN {1} END", (self.predicate(depth), one), type_),
            lambda: Node("coalesce({0}, {1})", (one, other), type_),
            lambda: Node("nullif({0}, {1})", (one, other), type_),
            lambda: Node("greatest({0}, {1})", (one, other), type_),
        )

    def predicate(self, depth: int = 2) -> Node:
        rng = self.rng
        if depth > 0 and rng.random() < 0.45:
            parts = (self.predicate(depth - 1), self.predicate(depth - 1))
            # PostgreSQL sorts what is joined by AND by cost, and protected operators cost more.
            forms = ["({0} AND {1})", "({0} AND {1})", "NOT ({0})"] if self.risk is None else []
            form = rng.choice([*forms, "({0} OR {1})"])
            return Node(form, parts if "{1}" in form else parts[:1], "bool", simpler=("true",))
        type_ = rng.choice([s.type for s in self.scope])
        node = self.choose(
            lambda: self.comparison(type_, depth),
            lambda: self.comparison(type_, depth),
            lambda: self.comparison(type_, depth),
            lambda: self.membership(type_),
            lambda: self.between(type_),
            lambda: self.pattern(),
            lambda: Node(f"{{0}} IS {rng.choice(['', 'NOT '])}NULL", (self.leaf(type_),), "bool"),
            lambda: self.guarded(),
            lambda: self.key(),
        )
        return Node(node.template, node.parts, "bool", simpler=("true", "false"))

    def comparison(self, type_: str, depth: int) -> Node:
        operator = self.rng.choice([*COMPARISONS, *COMPARISONS, "IS DISTINCT FROM"])
        sides = (self.expression(type_, depth), self.expression(type_, max(0, depth - 1)))
        return Node(f"{{0}} {operator} {{1}}", sides, "bool")

    def membership(self, type_: str) -> Node:
        items = [self.constant(type_) for _ in range(self.rng.choice([1, 2, 3, 4, 40]))]
        negated = self.rng.choice(["", "NOT "])
        return Node(f"{{0}} {negated}IN ({{1}})", (self.leaf(type_), listing(items)), "bool")

    def between(self, type_: str) -> Node:
        parts = (self.leaf(type_), self.constant(type_), self.constant(type_))
        return Node("{0} BETWEEN {1} AND {2}", parts, "bool")

    def pattern(self) -> Node:
        pattern = self.rng.choice(["a%", "%b%", "_b%", "%", "", "w1%", "%c", "a\\%c"])
        form = self.rng.choice(["LIKE", "NOT LIKE", "LIKE"])
        column = self.rng.choice(self.columns(STRINGS) or [None])
        text = column.node() if column else self.constant("text")
        return Node(f"{{0}} {form} '{pattern}'", (text,), "bool")

    def key(self) -> Node:
        """About a plain column."""
        column = self.rng.choice(self.ids or ["1"])
        form = self.rng.choice(["{0} % 7 = 3", "{0} < 40", "{0} = 5", "{0} > 2"])
        return Node(form.replace("{0}", column), (), "bool")

    def guarded(self) -> Node:
        """Raises nothing, because of what stands before it."""
        found = self.columns(["int4"])
        if not found:
            return self.key()
        below, above = self.rng.choice(found).node(), self.rng.choice(found).node()
        return self.choose(
            lambda: Node("({0} <> 0 AND {1} / {0} > 1)", (below, above), "bool"),
            lambda: Node("CASE WHEN {0} = 0 THEN false ELSE {1} / {0} > 1 END", (below, above)),
            lambda: Node("({0} = 0 OR {1} / {0} < 2)", (below, above), "bool"),
        )

    def any_expression(self, stable: bool = False) -> Node:
        for _ in range(10):
            type_ = self.rng.choice([s.type for s in self.scope])
            node = self.expression(type_)
            if node.stable or not stable:
                return node
        return self.rng.choice(self.scope).node()

    # Clauses.
    def where(self, chance: float = 0.8, word: str = "WHERE") -> Node:
        if self.rng.random() > chance:
            return Node("")
        count = 1 if self.risk else self.rng.choice([1, 1, 2, 3])
        wheres = [self.predicate() for _ in range(count)]
        if self.risk is None and self.rng.random() < 0.2:
            wheres.append(self.subquery())
        return Node(f" {word} {{0}}", (listing(wheres, " AND "),), "", optional=True)

    def source(self) -> Node:
        """FROM: one table mostly, or joins over protected keys."""
        table, alias = self.table()
        self.joined = self.enter(table, alias)
        text = Node(f"{table.name} {alias}")
        while self.rng.random() < 0.3 and self.may_join():
            text = self.join(text)
        return text

    def may_join(self) -> bool:
        """Errors beside a join depend on the plan."""
        return self.risk is None and self.aliases < 4 and self.pairs < PAIRS

    def join(self, left: Node) -> Node:
        before, joined = list(self.scope), list(self.joined)
        table, alias = self.table()
        sources = self.enter(table, alias)
        self.joined += sources
        key = self.rng.choice(["k", "k", "k", "id", None])
        if key is None:
            candidates = [(a, b) for a in before for b in sources if a.type == b.type]
            one, other = self.rng.choice(candidates or [(joined[0], sources[0])])
        else:
            one = self.rng.choice([s for s in joined if s.column.name in ("k", "id")])
            other = next(s for s in sources if s.column.name == key)
        condition = Node("{0} = {1}", (one.node(), other.node()))
        if key is not None and self.rng.random() < 0.6:
            return self.lookup_join(left, table, alias, before)
        kind = self.rng.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        extra = Node("")
        if kind != "FULL JOIN" and self.rng.random() < 0.25:
            extra = Node(" AND {0}", (self.predicate(1),), optional=True)
        text = f"{{0}} {kind} {table.name} {alias} ON {{1}}{{2}}"
        return Node(text, (left, condition, extra), "from")

    def lookup_join(self, left: Node, table: Table, alias: str, before: list[Source]) -> Node:
        """By plain keys, with a condition on the pairs; perhaps a query for each row."""
        others, key = self.ids[:-1], f"{alias}.id"
        kind = self.rng.choice(["JOIN", "JOIN", "JOIN", "LEFT JOIN"])
        if self.rng.random() < 0.4:
            inner, scope, ids = f"i{alias}", self.scope, self.ids
            self.scope = before + self.visible([Source(inner, c) for c in table.columns])
            self.ids = [*others, f"{inner}.id"]
            condition = self.predicate(1)
            self.scope, self.ids = scope, ids
            end = self.rng.choice(["", " OFFSET 0", " ORDER BY id LIMIT 2"])
            found = self.found(f"{inner}.id", others)
            text = (
                f"{{0}} {kind} LATERAL (SELECT {inner}.* FROM {table.name} {inner}"
                f" WHERE {found} AND {{1}}{end}) {alias} ON true"
            )
            return Node(text, (left, condition), "from")
        text = f"{{0}} {kind} {table.name} {alias} ON {self.found(key, others)} AND {{1}}"
        return Node(text, (left, self.predicate(1)), "from")

    def found(self, key: str, others: list[str]) -> str:
        """A condition by which rows are looked up in an index of plain keys."""
        by = self.rng.choice(others or ["3"])
        forms = [f"{key} = {by}", f"{key} BETWEEN {by} - 2 AND {by} + 5", f"{key} > {by}"]
        return self.rng.choice([*forms, f"{key} > {by} AND {key} < {by} + 90"])

    def subquery(self) -> Node:
        outer = list(self.scope)
        table, alias = self.table()
        inner = self.visible([Source(alias, column) for column in table.columns])
        pairs = [(a, b) for a in outer for b in inner if a.type == b.type]
        if not pairs or self.risk is not None:
            return self.predicate()
        one, other = self.rng.choice(pairs)
        ids = self.ids
        self.scope, self.ids = inner, [f"{alias}.id"]
        where = self.where(0.6)
        self.scope, self.ids = outer + inner, [*ids, f"{alias}.id"]
        of_pairs = self.predicate(1)
        self.scope, self.ids = outer, ids
        head = f"FROM {table.name} {alias}"
        a, b = one.node(), other.node()
        aggregate = self.rng.choice(["max", "min"])
        return self.choose(
            lambda: Node(f"{{0}} IN (SELECT {{1}} {head}{{2}})", (a, b, where), "bool"),
            lambda: Node(f"{{0}} NOT IN (SELECT {{1}} {head}{{2}})", (a, b, where), "bool"),
            lambda: Node(f"{{0}} NOT IN (SELECT {{1}} {head}{{2}})", (a, b, where), "bool"),
            lambda: Node(f"EXISTS (SELECT 1 {head} WHERE {{0}} = {{1}})", (a, b), "bool"),
            lambda: self.looked_up(head, f"{alias}.id", of_pairs),
            lambda: self.looked_up(head, f"{alias}.id", of_pairs),
            lambda: Node(f"NOT EXISTS (SELECT 1 {head} WHERE {{0}} = {{1}})", (a, b), "bool"),
            lambda: Node(
                f"{{0}} >= (SELECT {aggregate}({{1}}) {head}{{2}})", (a, b, where), "bool"
            ),
            lambda: Node(f"{{0}} > ALL (SELECT {{1}} {head}{{2}})", (a, b, where), "bool"),
            *[lambda: self.correlated(a, b, one.type, head, f"{alias}.id", of_pairs)] * 6,
        )

    def correlated(self, a: Node, b: Node, type_: str, head: str, key: str, of_pairs: Node) -> Node:
        """A comparison with what a subquery finds for each row."""
        aggregates = ["max", "min"] + (["sum", "avg"] if type_ == "numeric" else [])
        aggregate = self.rng.choice(aggregates)
        operator = self.rng.choice([*COMPARISONS, "IS DISTINCT FROM"])
        by = self.rng.choice(self.ids or ["1"])
        found = self.rng.choice(["true", f"{key} % 9 = {by} % 9"])
        value = f"(SELECT {aggregate}({{1}}) {head} WHERE {found} AND {{2}})"
        form = self.rng.choice(["{}", "{}", "{}", "NOT ({})", "({}) IS NULL"])
        return Node(form.format(f"{{0}} {operator} {value}"), (a, b, of_pairs), "bool")

    def looked_among(self) -> Node:
        """Whether there are rows with a column's value, in a target list."""
        outer, ids = self.scope, self.ids
        table, alias = self.table()
        inner = self.visible([Source(alias, column) for column in table.columns])
        pairs = [(a, b) for a in outer for b in inner if a.type == b.type]
        if not pairs:
            return self.predicate(1)
        one, other = self.rng.choice(pairs)
        self.scope, self.ids = inner, [f"{alias}.id"]
        where = self.where(0.7)
        self.scope, self.ids = outer, ids
        form = self.rng.choice(["{0} IN ", "{0} NOT IN ", "{0} = ANY "])
        text = f"({form}(SELECT {{1}} FROM {table.name} {alias}{{2}}))"
        return Node(text, (one.node(), other.node(), where), "bool", simpler=("true",))

    def looked_up(self, head: str, key: str, condition: Node) -> Node:
        """By a plain key, with a condition on what is found."""
        no = self.rng.choice(["", "NOT "])
        if self.ids and self.rng.random() < 0.2:
            by = self.rng.choice(self.ids)
            return Node(f"{by} IN (SELECT {key} {head} WHERE {{0}})", (condition,), "bool")
        found = self.found(key, self.ids)
        return Node(f"{no}EXISTS (SELECT 1 {head} WHERE {found} AND {{0}})", (condition,), "bool")

    # Queries.
    def rows(self) -> Query:
        source = self.source()
        unique = self.rng.random() < 0.15
        items = [self.any_expression(unique) for _ in range(self.rng.randrange(1, 5))]
        if unique and self.rng.random() < 0.3:
            items.append(self.predicate(1))
        if self.risk is None and self.rng.random() < 0.1:
            items.append(self.looked_among())
        where = self.where()
        order, ordered = Node(""), False
        if self.rng.random() < 0.45 and all(item.stable for item in items):
            order, ordered = self.order(len(items)), True
        distinct = "DISTINCT " if unique else ""
        tree = Node(
            f"SELECT {distinct}{{0}} FROM {{1}}{{2}}{{3}}", (listing(items), source, where, order)
        )
        how = self.rng.choice(["simple", "simple", "cursor", "prepared"])
        return Query(tree, ordered, how)

    def matched(self) -> Query:
        """Rows for which there are others, or are not, looked up by a plain key."""
        table, alias = self.table()
        self.enter(table, alias)
        items = [self.any_expression() for _ in range(self.rng.randrange(1, 4))]
        tests = [self.lookup() for _ in range(self.rng.choice([1, 1, 2]))]
        if self.rng.random() < 0.3:
            tests.append(self.predicate(1))
        where = Node(" WHERE {0}", (listing(tests, " AND "),), "", optional=True)
        limit = Node(self.rng.choice(["", "", " ORDER BY {0}.id LIMIT 3"]).format(alias))
        tree = Node(
            f"SELECT {{0}} FROM {table.name} {alias}{{1}}{{2}}", (listing(items), where, limit)
        )
        return Query(tree, "ORDER" in limit.template, self.rng.choice(["simple", "prepared"]))

    def lookup(self) -> Node:
        scope = self.scope
        table, alias = self.table()
        self.scope = scope + self.visible([Source(alias, column) for column in table.columns])
        condition = self.predicate(1)
        self.scope = scope
        return self.looked_up(f"FROM {table.name} {alias}", f"{alias}.id", condition)

    def order(self, count: int) -> Node:
        """By all columns, so that ties are the same rows; so a limit may follow."""
        places = list(range(1, count + 1))
        self.rng.shuffle(places)
        ways = ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]
        by = ", ".join(f"{place}{self.rng.choice(ways)}" for place in places)
        limit = Node("")
        if self.rng.random() < 0.6:
            text = f" LIMIT {self.rng.choice([0, 1, 3, 20])}"
            if self.rng.random() < 0.3:
                text += f" OFFSET {self.rng.randrange(4)}"
            limit = Node(text, (), "", optional=True)
        return Node(f" ORDER BY {by}{{0}}", (limit,), "", optional=True)

    def aggregate(self, windowed: bool = False) -> Node:
        rng = self.rng
        name = rng.choice(["count", "count", "sum", "sum", "avg", "min", "max"])
        if name == "count" and rng.random() < 0.5:
            return Node("count(*)", (), "int8")
        if name in ("sum", "avg"):
            kinds = ["int4", "int8", "numeric", "float8"]
            argument = self.expression(rng.choice(kinds), 1)
            if argument.kind == "float8" and not argument.stable:
                argument = self.leaf("float8")
        else:
            argument = self.any_expression(stable=True)
            if name == "count" and self.rng.random() < 0.2:
                argument = self.predicate(1)
        distinct = "DISTINCT " if not windowed and argument.stable and rng.random() < 0.15 else ""
        if windowed or rng.random() > 0.2:
            return Node(f"{name}({distinct}{{0}})", (argument,), "aggregate")
        template = f"{name}({distinct}{{0}}){{1}}"
        filter_ = Node(" FILTER (WHERE {0})", (self.predicate(1),), optional=True)
        return Node(template, (argument, filter_), "aggregate", simpler=("count(*)",))

    def group_key(self) -> Node:
        """An expression, or a condition: what it is true for, false, and neither."""
        return self.predicate(1) if self.rng.random() < 0.3 else self.any_expression(True)

    def groups(self) -> Query:
        source = self.source()
        keys = [self.group_key() for _ in range(self.rng.randrange(0, 3))]
        keys = [k for k in keys if "." in k.text()]  # a constant would be a position
        sums = [self.aggregate() for _ in range(self.rng.randrange(1, 4))]
        where = self.where(0.6)
        by = ", ".join(str(place + 1) for place in range(len(keys)))
        group = Node(f" GROUP BY {by}" if keys else "")
        having = Node("")
        if self.rng.random() < 0.2:
            form = self.rng.choice(["count(*) > 1", "count(*) < 3", "max({0}) > {1}"])
            type_ = self.rng.choice([s.type for s in self.scope])
            parts = (self.rng.choice(self.columns([type_])).node(), self.constant(type_))
            having = Node(f" HAVING {form}", parts, optional=True)
        ordered = bool(keys) and self.rng.random() < 0.5
        order = Node(f" ORDER BY {by}" if ordered else "", (), "", optional=True)
        tree = Node(
            "SELECT {0} FROM {1}{2}{3}{4}{5}",
            (listing([*keys, *sums]), source, where, group, having, order),
        )
        return Query(tree, ordered, self.rng.choice(["simple", "simple", "prepared"]))

    def windows(self) -> Query:
        source = self.source()
        partition, order = self.any_expression(True), self.any_expression(True)
        over = "OVER (PARTITION BY {0} ORDER BY {1})"
        function = self.choose(
            lambda: Node(f"rank() {over}", (partition, order)),
            lambda: Node(f"dense_rank() {over}", (partition, order)),
            lambda: Node(f"{{2}} {over}", (partition, order, self.aggregate(windowed=True))),
            lambda: Node("{1} OVER (PARTITION BY {0})", (partition, self.aggregate(True))),
        )
        items = listing([self.any_expression(), function])
        tree = Node("SELECT {0} FROM {1}{2}", (items, source, self.where(0.5)))
        return Query(tree, False, "simple")

    def united(self) -> Query:
        table, alias = self.table()
        columns = self.enter(table, alias)
        first = self.rng.choice(columns)
        one = Node(f"SELECT {{0}} FROM {table.name} {alias}{{1}}", (first.node(), self.where(0.5)))
        self.scope, self.ids = [], []
        others = [
            (t, c) for t in self.tables for c in t.columns if c.declared == first.column.declared
        ]
        table, column = self.rng.choice(others)
        self.aliases += 1
        alias = f"a{self.aliases}"
        self.enter(table, alias)
        other = Node(
            f"SELECT {{0}} FROM {table.name} {alias}{{1}}",
            (Source(alias, column).node(), self.where(0.5)),
        )
        word = self.rng.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL"])
        return Query(Node(f"{{0}} {word} {{1}}", (one, other)), False, "simple")

    def derived(self) -> Query:
        """A query over a query."""
        source = self.source()
        items = [self.any_expression() for _ in range(3)]
        limit = self.rng.choice(["", "", " LIMIT 5", " OFFSET 2"])
        form = self.rng.choice(
            ["SELECT count(*), count(x) FROM ({0}) d(x, y, z)", "WITH d(x, y, z) AS ({0}) TABLE d"]
        )
        if "TABLE" in form:
            limit = ""
        elif limit:  # of any rows
            form = form.replace("count(x)", "count(*)")
        inner = Node(f"SELECT {{0}} FROM {{1}}{{2}}{limit}", (listing(items), source, self.where()))
        return Query(Node(form, (inner,)), False, "simple")

    def change(self) -> Query:
        """A change that is rolled back; what it returns counts."""
        table, alias = self.table()
        columns = self.enter(table, alias)
        target = self.rng.choice([c for c in columns if c.column.name != "id"])
        value = self.expression(target.type)
        where = self.where(0.9)
        returned = f"RETURNING {alias}.*"
        if self.rng.random() < 0.3:
            tree = Node(f"DELETE FROM {table.name} {alias}{{0}} {returned}", (where,))
        else:
            text = f"UPDATE {table.name} {alias} SET {target.column.name} = {{0}}{{1}} {returned}"
            tree = Node(text, (value, where))
        return Query(tree, False, "rollback")

    def make(self) -> Query:
        kinds = [self.rows] * 5 + [self.groups] * 5 + [self.windows, self.united, self.derived]
        kinds += [self.matched] * 2 if self.risk is None else []
        return self.rng.choice([*kinds, self.change])()


DEFAULTS = {
    "int4": "3",
    "int8": "4",
    "numeric": "1.50",
    "float8": "0.25",
    "text": "ab",
    "varchar": "ab",
    "bpchar": "ab",
    "date": "1995-06-17",
    "timestamp": "1995-06-17 12:00",
}
