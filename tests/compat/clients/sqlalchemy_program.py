"""SQLAlchemy, Core and ORM, with psycopg: reflection, loading, inserts in bulk, RETURNING,
patterns, cursors, dialect forms. See checks.py."""

import contextlib
import datetime as dt
import decimal
import uuid

import sqlalchemy as sa
from checks import check, main
from sqlalchemy import orm
from sqlalchemy.dialects import postgresql as pg

D = decimal.Decimal


class Base(orm.DeclarativeBase):
    pass


class Department(Base):
    __tablename__ = "department"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(40), unique=True)
    budget: orm.Mapped[D | None] = orm.mapped_column(sa.Numeric(12, 2))
    people: orm.Mapped[list["Person"]] = orm.relationship(
        back_populates="department", order_by="Person.id", cascade="all, delete-orphan"
    )


class Person(Base):
    __tablename__ = "person"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    department_id: orm.Mapped[int | None] = orm.mapped_column(sa.ForeignKey("department.id"))
    name: orm.Mapped[str] = orm.mapped_column(sa.Text, index=True)
    email: orm.Mapped[str | None] = orm.mapped_column(sa.String(60), unique=True)
    born: orm.Mapped[dt.date | None]
    salary: orm.Mapped[D | None] = orm.mapped_column(sa.Numeric(10, 2))
    score: orm.Mapped[float | None] = orm.mapped_column(sa.Float)
    active: orm.Mapped[bool] = orm.mapped_column(default=True)
    seen: orm.Mapped[dt.datetime | None] = orm.mapped_column(sa.DateTime(timezone=True))
    made: orm.Mapped[dt.datetime | None]
    photo: orm.Mapped[bytes | None]
    token: orm.Mapped[uuid.UUID | None]
    visits: orm.Mapped[int] = orm.mapped_column(sa.BigInteger, default=0)
    alarm: orm.Mapped[dt.time | None]
    span: orm.Mapped[dt.timedelta | None]
    department: orm.Mapped[Department | None] = orm.relationship(back_populates="people")
    version: orm.Mapped[int] = orm.mapped_column(default=1)
    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012


P, T = Person.__table__, Department.__table__
UTC = dt.UTC
NAMES = ["Ann Miller", "Bob 100%", "Carl_Under", "Dora\\Slash", "Änne Öz", "o'Hara", "bob jones"]


def engine_of(url):
    return sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"))


def create(url):
    engine = engine_of(url)
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    engine.dispose()


def people():
    for n, name in enumerate(NAMES, 1):
        yield {
            "id": n,
            "department_id": n % 3 + 1 if n < 6 else None,
            "name": name,
            "email": f"p{n}@example.org",
            "born": dt.date(1960 + 7 * n, n, 2 * n),
            "salary": D(1000 * n) + D("0.25"),
            "score": n / 8,
            "active": n % 2 == 0,
            "seen": dt.datetime(2024, n, 1, 12, 30, 5, 250000, UTC),
            "made": dt.datetime(2020, 2, 29, n, 0, 1),
            "photo": bytes([n, 0, 255]),
            "token": uuid.UUID(int=n),
            "visits": n * 10**10,
            "alarm": dt.time(n, 30),
            "span": dt.timedelta(days=n, seconds=90),
            "version": 1,
        }


DEPARTMENTS = [("Research", D("99999.99")), ("Sales", D("5.00")), ("Legal", None)]


@contextlib.contextmanager
def session(url):
    engine = engine_of(url)
    with engine.begin() as c:
        rows = [{"id": n, "name": a, "budget": b} for n, (a, b) in enumerate(DEPARTMENTS, 1)]
        c.execute(sa.insert(T), rows)
        c.execute(sa.insert(P), list(people()))

    @contextlib.contextmanager
    def fresh():
        """A session whose changes are taken back."""
        with engine.connect() as connection:
            transaction = connection.begin()
            with orm.Session(connection, join_transaction_mode="create_savepoint") as s:
                yield s
            transaction.rollback()

    yield fresh
    engine.dispose()


def rows(s, statement, **parameters):
    return [tuple(r) for r in s.execute(statement, parameters)]


# Core: expressions and clauses
@check
def select_all(s):
    return rows(s, sa.select(P).order_by(P.c.id))


@check
def where_equal(s):
    return rows(s, sa.select(P.c.id).where(P.c.name == "o'Hara"))


@check
def where_in(s):
    return rows(s, sa.select(P.c.id).where(P.c.name.in_(NAMES[:3])).order_by(P.c.id))


@check
def where_in_empty(s):
    return rows(s, sa.select(P.c.id).where(P.c.name.in_([])))


@check
def where_not_in(s):
    return rows(s, sa.select(P.c.id).where(P.c.salary.not_in([D("1000.25"), D("2")])))


@check
def where_between(s):
    return rows(
        s, sa.select(P.c.id).where(P.c.born.between(dt.date(1970, 1, 1), dt.date(1990, 1, 1)))
    )


@check
def where_is_null(s):
    return rows(s, sa.select(T.c.id).where(T.c.budget.is_(None)))


@check
def is_distinct_from(s):
    return rows(s, sa.select(T.c.id).where(T.c.budget.is_distinct_from(D(5))).order_by(T.c.id))


@check
def bool_column(s):
    return rows(s, sa.select(P.c.id).where(P.c.active).order_by(P.c.id))


@check
def bool_not(s):
    return rows(s, sa.select(P.c.id).where(~P.c.active).order_by(P.c.id))


@check
def bool_is_true(s):
    return rows(s, sa.select(P.c.id).where(P.c.active.is_(True)).order_by(P.c.id))


@check
def like(s):
    return rows(s, sa.select(P.c.id).where(P.c.name.like("%o%")).order_by(P.c.id))


@check
def ilike(s):
    return rows(s, sa.select(P.c.id).where(P.c.name.ilike("BOB%")).order_by(P.c.id))


@check
def startswith(s):
    return rows(s, sa.select(P.c.id).where(P.c.name.startswith("Bob")))


@check
def startswith_autoescape(s):
    return rows(s, sa.select(P.c.id).where(P.c.name.startswith("Bob 100%", autoescape=True)))


@check
def contains_autoescape(s):
    return rows(s, sa.select(P.c.id).where(P.c.name.contains("_", autoescape=True)))


@check
def endswith_escape(s):
    return rows(s, sa.select(P.c.id).where(P.c.name.endswith("/%", escape="/")))


@check
def icontains(s):
    return rows(s, sa.select(P.c.id).where(P.c.name.icontains("MILL")))


@check
def not_like(s):
    return rows(s, sa.select(P.c.id).where(P.c.name.not_like("%o%")).order_by(P.c.id))


@check
def regexp_match(s):
    return rows(s, sa.select(P.c.id).where(P.c.name.regexp_match("^[A-C]")).order_by(P.c.id))


@check
def concat_operator(s):
    return rows(s, sa.select((P.c.name + " <" + P.c.email + ">").label("x")).order_by(P.c.id))


@check
def func_upper_lower(s):
    return rows(s, sa.select(sa.func.upper(P.c.name), sa.func.lower(P.c.name)).order_by(P.c.id))


@check
def func_length_substr(s):
    q = sa.select(sa.func.length(P.c.name), sa.func.substr(P.c.name, 2, 3)).order_by(P.c.id)
    return rows(s, q)


@check
def func_coalesce(s):
    return rows(s, sa.select(sa.func.coalesce(T.c.budget, 0)).order_by(T.c.id))


@check
def func_nullif(s):
    return rows(s, sa.select(sa.func.nullif(P.c.name, "Bob 100%")).order_by(P.c.id))


@check
def arithmetic(s):
    q = sa.select(P.c.salary * 2 + 1, P.c.salary / 3, -P.c.salary, P.c.visits % 7)
    return rows(s, q.order_by(P.c.id))


@check
def arithmetic_float(s):
    return rows(s, sa.select(P.c.score * 1.5 - 0.1).order_by(P.c.id))


@check
def case_expression(s):
    kind = sa.case((P.c.salary > 3000, "high"), (P.c.salary > 1500, "mid"), else_="low")
    return rows(s, sa.select(P.c.id, kind).order_by(P.c.id))


@check
def case_of_column(s):
    shown = sa.case((P.c.active, P.c.name), else_=P.c.email)
    return rows(s, sa.select(shown).order_by(P.c.id))


@check
def case_in_order(s):
    first = sa.case((P.c.name == "o'Hara", 0), else_=1)
    return rows(s, sa.select(P.c.id).order_by(first, P.c.name.desc()))


@check
def cast_to_integer(s):
    return rows(s, sa.select(sa.cast(P.c.salary, sa.Integer)).order_by(P.c.id))


@check
def cast_to_text(s):
    return rows(s, sa.select(sa.cast(P.c.visits, sa.Text)).order_by(P.c.id))


@check
def cast_date_of_timestamp(s):
    return rows(s, sa.select(sa.cast(P.c.made, sa.Date)).order_by(P.c.id))


@check
def extract(s):
    q = sa.select(sa.extract("year", P.c.born), sa.extract("month", P.c.made)).order_by(P.c.id)
    return rows(s, q)


@check
def date_trunc(s):
    return rows(s, sa.select(sa.func.date_trunc("month", P.c.made)).order_by(P.c.id))


@check
def interval_arithmetic(s):
    q = sa.select(P.c.made + dt.timedelta(days=3), P.c.seen - P.c.span).order_by(P.c.id)
    return rows(s, q)


@check
def order_nulls(s):
    return rows(s, sa.select(T.c.id).order_by(T.c.budget.desc().nulls_last()))


@check
def limit_offset(s):
    return rows(s, sa.select(P.c.name).order_by(P.c.name).limit(2).offset(1))


@check
def distinct(s):
    return rows(s, sa.select(P.c.active).distinct().order_by(P.c.active))


@check
def distinct_on(s):
    return rows(
        s, sa.select(P.c.active, P.c.name).distinct(P.c.active).order_by(P.c.active, P.c.name)
    )


@check
def aggregates(s):
    f = sa.func
    q = sa.select(
        f.count(P.c.name), f.sum(P.c.salary), f.avg(P.c.salary), f.min(P.c.born), f.max(P.c.name)
    )
    return rows(s, q)


@check
def aggregate_filter(s):
    return rows(s, sa.select(sa.func.count().filter(P.c.salary > 2500)))


@check
def count_distinct(s):
    return rows(s, sa.select(sa.func.count(sa.distinct(P.c.active))))


@check
def group_by_having(s):
    q = sa.select(P.c.active, sa.func.sum(P.c.salary)).group_by(P.c.active)
    return rows(s, q.having(sa.func.sum(P.c.salary) > 100).order_by(P.c.active))


@check
def string_agg(s):
    return rows(s, sa.select(sa.func.string_agg(P.c.name, ", ")))


@check
def array_agg(s):
    return rows(s, sa.select(sa.func.array_agg(P.c.id)).where(P.c.salary > 2000))


@check
def window_rank(s):
    rank = sa.func.rank().over(order_by=P.c.salary.desc())
    return rows(s, sa.select(P.c.id, rank).order_by(P.c.id))


@check
def window_sum(s):
    total = sa.func.sum(P.c.salary).over(partition_by=P.c.active, order_by=P.c.id)
    return rows(s, sa.select(P.c.id, total).order_by(P.c.id))


@check
def window_lag(s):
    before = sa.func.lag(P.c.name).over(order_by=P.c.born)
    return rows(s, sa.select(P.c.name, before).order_by(P.c.id))


@check
def join_tables(s):
    q = sa.select(P.c.name, T.c.name).join_from(P, T).order_by(P.c.id)
    return rows(s, q)


@check
def outer_join(s):
    q = sa.select(P.c.name, T.c.name).join_from(P, T, isouter=True).order_by(P.c.id)
    return rows(s, q)


@check
def self_join(s):
    other = P.alias("other")
    q = sa.select(P.c.id, other.c.id).join_from(P, other, P.c.salary < other.c.salary)
    return rows(s, q.where(P.c.id < 3).order_by(P.c.id, other.c.id))


@check
def exists(s):
    inner = sa.exists().where(P.c.department_id == T.c.id, P.c.salary > 3000)
    return rows(s, sa.select(T.c.name).where(inner).order_by(T.c.id))


@check
def scalar_subquery(s):
    average = sa.select(sa.func.avg(P.c.salary)).scalar_subquery()
    return rows(s, sa.select(P.c.name).where(P.c.salary > average).order_by(P.c.id))


@check
def cte(s):
    rich = sa.select(P.c.id, P.c.name).where(P.c.salary > 2000).cte("rich")
    return rows(s, sa.select(rich.c.name).order_by(rich.c.id))


@check
def cte_recursive(s):
    chain = sa.select(P.c.id, P.c.name).where(P.c.id == 1).cte("chain", recursive=True)
    more = sa.select(P.c.id, P.c.name).join(chain, P.c.id == chain.c.id + 1)
    chain = chain.union_all(more)
    return rows(s, sa.select(chain.c.name).order_by(chain.c.id))


@check
def union(s):
    q = sa.union(sa.select(P.c.name), sa.select(T.c.name)).order_by("name")
    return rows(s, q)


@check
def except_(s):
    a = sa.select(P.c.name)
    return rows(s, sa.except_(a, a.where(P.c.active)).order_by("name"))


@check
def lateral(s):
    sub = sa.select(P.c.name).where(P.c.department_id == T.c.id).order_by(P.c.salary.desc())
    sub = sub.limit(1).lateral("best")
    return rows(
        s, sa.select(T.c.name, sub.c.name).join(sub, sa.true(), isouter=True).order_by(T.c.id)
    )


@check
def values_construct(s):
    v = sa.values(sa.column("n", sa.Text), sa.column("k", sa.Integer), name="v")
    v = v.data([("o'Hara", 1), ("nobody", 2)])
    return rows(s, sa.select(P.c.id, v.c.k).join(v, v.c.n == P.c.name))


@check
def literal_parameter(s):
    return rows(s, sa.select(sa.literal("x"), P.c.name).order_by(P.c.id).limit(1))


@check
def tuple_in(s):
    q = sa.select(P.c.id).where(
        sa.tuple_(P.c.name, P.c.active).in_([("o'Hara", True), ("x", False)])
    )
    return rows(s, q)


@check
def any_array(s):
    names = sa.bindparam("names", NAMES[:2], type_=pg.ARRAY(sa.Text))
    return rows(s, sa.select(P.c.id).where(P.c.name == sa.any_(names)).order_by(P.c.id))


@check
def text_statement(s):
    q = sa.text("SELECT id, name FROM person WHERE name = :name OR salary > :least ORDER BY id")
    return rows(s, q, name="Änne Öz", least=5000)


@check
def text_with_types(s):
    q = sa.text("SELECT born, salary FROM person ORDER BY id").columns(
        born=sa.Date, salary=sa.Numeric
    )
    return rows(s, q)


@check
def column_types_of_result(s):
    result = s.execute(sa.select(P).limit(1))
    return [str(c.type_code) for c in result.cursor.description]


# Changes
@check
def insert_one(s):
    new = {"name": "New", "active": True, "visits": 1, "version": 1}
    s.execute(sa.insert(P).values(id=100, **new))
    return rows(s, sa.select(P).where(P.c.id == 100))


@check
def insert_returning(s):
    q = sa.insert(T).values(id=70, name="Fresh", budget=D("7.5")).returning(T.c.name, T.c.budget)
    return rows(s, q)


@check
def insert_many_values_returning(s):
    q = sa.insert(T).returning(T.c.name, sort_by_parameter_order=True)
    many = [{"id": 10 + n, "name": f"d{n}", "budget": n} for n in range(1500)]
    return [r[0] for r in s.execute(q, many)][::100]


@check
def insert_executemany(s):
    s.execute(sa.insert(T), [{"id": 10 + n, "name": f"d{n}", "budget": n} for n in range(50)])
    return rows(s, sa.select(sa.func.count(), sa.func.sum(T.c.budget)).where(T.c.id >= 10))


@check
def insert_from_select(s):
    source = sa.select(P.c.id + 50, P.c.name, P.c.salary).where(P.c.id < 4)
    s.execute(sa.insert(T).from_select(["id", "name", "budget"], source))
    return rows(s, sa.select(T.c.name, T.c.budget).where(T.c.id > 50).order_by(T.c.id))


@check
def upsert_update(s):
    q = pg.insert(T).values(id=99, name="Sales", budget=1)
    q = q.on_conflict_do_update(index_elements=[T.c.name], set_={"budget": q.excluded.budget})
    s.execute(q)
    return rows(s, sa.select(T).order_by(T.c.id))


@check
def upsert_update_where(s):
    q = pg.insert(T).values(id=99, name="Sales", budget=1)
    where = T.c.budget > q.excluded.budget
    q = q.on_conflict_do_update(index_elements=["name"], set_={"budget": 77}, where=where)
    return rows(s, q.returning(T.c.id, T.c.budget))


@check
def upsert_nothing(s):
    q = pg.insert(T).values(id=99, name="Sales").on_conflict_do_nothing()
    return rows(s, q.returning(T.c.id))


@check
def update_where(s):
    s.execute(
        sa.update(P).where(P.c.salary < 3000).values(salary=P.c.salary * 2, name="x" + P.c.name)
    )
    return rows(s, sa.select(P.c.name, P.c.salary).order_by(P.c.id))


@check
def update_returning(s):
    q = sa.update(P).where(P.c.id == 2).values(salary=D("1.23")).returning(P.c.salary, P.c.name)
    return rows(s, q)


@check
def update_from(s):
    q = sa.update(P).values(name=T.c.name).where(P.c.department_id == T.c.id)
    s.execute(q)
    return rows(s, sa.select(P.c.name).order_by(P.c.id))


@check
def update_case(s):
    q = sa.update(P).values(salary=sa.case((P.c.active, P.c.salary + 1), else_=P.c.salary))
    s.execute(q)
    return rows(s, sa.select(P.c.salary).order_by(P.c.id))


@check
def update_executemany(s):
    q = sa.update(P).where(P.c.id == sa.bindparam("b_id")).values(name=sa.bindparam("b_name"))
    s.connection().execute(q, [{"b_id": n, "b_name": f"n{n}"} for n in range(1, 5)])
    return rows(s, sa.select(P.c.name).order_by(P.c.id))


@check
def delete_where(s):
    s.execute(sa.delete(P).where(P.c.name.like("B%")))
    return rows(s, sa.select(P.c.id).order_by(P.c.id))


@check
def delete_returning(s):
    return rows(s, sa.delete(P).where(P.c.salary > 6000).returning(P.c.name, P.c.born))


@check
def delete_using(s):
    s.execute(sa.delete(P).where(P.c.department_id == T.c.id, T.c.name == "Sales"))
    return rows(s, sa.select(P.c.id).order_by(P.c.id))


# ORM
@check
def get_by_key(s):
    return s.get(Person, 3).name


@check
def filter_by(s):
    return s.scalars(sa.select(Person).filter_by(email="p4@example.org")).one().name


@check
def lazy_load(s):
    return [p.name for p in s.get(Department, 2).people]


@check
def joined_load(s):
    q = sa.select(Department).options(orm.joinedload(Department.people)).order_by(Department.id)
    return [(d.name, [p.name for p in d.people]) for d in s.scalars(q).unique()]


@check
def selectin_load(s):
    q = sa.select(Department).options(orm.selectinload(Department.people)).order_by(Department.id)
    return [(d.name, [p.name for p in d.people]) for d in s.scalars(q)]


@check
def subquery_load(s):
    q = sa.select(Department).options(orm.subqueryload(Department.people)).order_by(Department.id)
    return [(d.name, [p.name for p in d.people]) for d in s.scalars(q)]


@check
def relationship_any(s):
    q = sa.select(Department.name).where(Department.people.any(Person.salary > 3000))
    return rows(s, q.order_by(Department.id))


@check
def relationship_has(s):
    q = sa.select(Person.name).where(Person.department.has(name="Sales")).order_by(Person.id)
    return rows(s, q)


@check
def add_and_flush(s):
    d = Department(id=40, name="Arts", budget=D(3))
    d.people = [Person(id=200, name="Zoe", visits=0), Person(id=201, name="Yan", visits=5)]
    s.add(d)
    s.flush()
    s.expire_all()
    return [(p.name, p.visits, p.active, p.salary) for p in s.get(Department, 40).people]


@check
def add_without_key(s):
    s.execute(sa.text("SELECT setval('department_id_seq', 500)"))
    d = Department(name="Serial", budget=D(3))
    s.add(d)
    s.flush()
    return d.id


@check
def change_and_flush(s):
    p = s.get(Person, 1)
    p.name, p.salary, p.seen = "Ann B.", D("5.5"), dt.datetime(2000, 1, 1, tzinfo=UTC)
    s.flush()
    s.expire_all()
    return (p.name, p.salary, p.seen, p.version)


@check
def stale_version_error(s):
    p = s.get(Person, 1)
    s.execute(sa.update(P).where(P.c.id == 1).values(version=9))
    p.name = "late"
    s.flush()
    return "no error"


@check
def delete_cascade(s):
    s.delete(s.get(Department, 2))
    s.flush()
    return rows(s, sa.select(P.c.id).order_by(P.c.id))


@check
def bulk_save(s):
    s.add_all([Person(id=300 + n, name=f"bulk {n}", visits=n, salary=D(n)) for n in range(300)])
    s.flush()
    return rows(s, sa.select(sa.func.sum(P.c.salary)).where(P.c.id >= 300))


@check
def bulk_insert_mappings(s):
    s.bulk_insert_mappings(Department, [{"id": 60 + n, "name": f"m{n}"} for n in range(20)])
    return rows(s, sa.select(sa.func.count()).where(T.c.name.like("m%")))


@check
def bulk_update_by_key(s):
    s.execute(sa.update(Department), [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}])
    return rows(s, sa.select(T.c.name).order_by(T.c.id))


@check
def update_synchronized(s):
    p = s.get(Person, 2)
    q = sa.update(Person).where(Person.name == p.name).values(salary=Person.salary + 1)
    s.execute(q, execution_options={"synchronize_session": "fetch"})
    return p.salary


@check
def refresh_for_update(s):
    p = s.get(Person, 2, with_for_update=True)
    s.refresh(p, ["name"])
    return p.name


@check
def column_property(s):
    q = sa.select(Person, (Person.salary * 12).label("year")).order_by(Person.id).limit(2)
    return [(p.name, year) for p, year in s.execute(q)]


@check
def aggregate_over_relationship(s):
    q = sa.select(Department.name, sa.func.avg(Person.salary)).join(Department.people)
    return rows(s, q.group_by(Department.name).order_by(Department.name))


@check
def yield_per(s):
    return [
        p.name
        for p in s.scalars(sa.select(Person).order_by(Person.id).execution_options(yield_per=2))
    ]


@check
def server_side_cursor(s):
    options = {"stream_results": True, "max_row_buffer": 3}
    result = s.execute(sa.select(P.c.name).order_by(P.c.name), execution_options=options)
    return [result.fetchmany(2), result.fetchone(), result.fetchall()]


@check
def partitions(s):
    result = s.execute(sa.select(P.c.salary).order_by(P.c.id))
    return [[r[0] for r in part] for part in result.partitions(3)]


# Errors
@check
def unique_error(s):
    s.execute(sa.insert(T).values(id=77, name="Sales"))


@check
def not_null_error(s):
    s.execute(sa.insert(T).values(id=77, name=None))


@check
def too_long_error(s):
    s.execute(sa.insert(T).values(id=77, name="x" * 41))


@check
def numeric_overflow_error(s):
    s.execute(sa.update(P).values(salary=D(10) ** 9))


@check
def wrong_type_error(s):
    s.execute(sa.text("SELECT id FROM person WHERE born = 'never'"))


@check
def savepoint_after(s):
    try:
        with s.begin_nested():
            s.execute(sa.insert(T).values(id=77, name="Sales"))
    except sa.exc.IntegrityError:
        pass
    return rows(s, sa.select(sa.func.count()).select_from(T))


# Reflection and DDL
def reflected(s, name):
    for column in sa.inspect(s.connection()).get_columns(name):
        yield column["name"], str(column["type"]), column["nullable"], column["default"]


@check
def reflect_columns(s):
    return list(reflected(s, "person"))


@check
def reflect_department(s):
    return list(reflected(s, "department"))


@check
def reflect_indexes(s):
    return sorted(
        (i["name"], i["column_names"], i["unique"])
        for i in sa.inspect(s.connection()).get_indexes("person")
    )


@check
def reflect_constraints(s):
    i = sa.inspect(s.connection())
    keys = [(k["constrained_columns"], k["referred_table"]) for k in i.get_foreign_keys("person")]
    return [
        i.get_pk_constraint("person")["constrained_columns"],
        keys,
        [u["column_names"] for u in i.get_unique_constraints("department")],
    ]


@check
def reflect_table_and_select(s):
    table = sa.Table("person", sa.MetaData(), autoload_with=s.connection())
    q = sa.select(table).where(table.c.born > dt.date(1980, 1, 1)).order_by(table.c.id)
    return [type(c.type).__name__ for c in table.c] + rows(s, q)


@check
def automap(s):
    from sqlalchemy.ext.automap import automap_base

    base = automap_base()
    base.prepare(autoload_with=s.connection())
    person = base.classes.person
    found = s.scalars(sa.select(person).where(person.name == "o'Hara")).one()
    return found.salary


@check
def table_names(s):
    return sorted(sa.inspect(s.connection()).get_table_names())


@check
def add_column_with_default(s):
    s.execute(sa.text("ALTER TABLE department ADD note text DEFAULT 'none'"))
    return rows(s, sa.text("SELECT note FROM department WHERE name = 'Sales'"))


@check
def create_index(s):
    sa.Index("by_salary", P.c.salary.desc(), P.c.name).create(s.connection())
    P.indexes = {i for i in P.indexes if i.name != "by_salary"}
    return rows(s, sa.select(P.c.id).where(P.c.salary > 3000).order_by(P.c.salary.desc()))


@check
def create_partial_index(s):
    s.execute(sa.text("CREATE INDEX rich ON person (name) WHERE salary > 3000"))
    return rows(s, sa.select(P.c.id).where(P.c.salary > 3000, P.c.name > "C").order_by(P.c.id))


@check
def create_view(s):
    s.execute(
        sa.text("CREATE VIEW rich AS SELECT id, upper(name) AS n FROM person WHERE salary > 3000")
    )
    return rows(s, sa.text("SELECT n FROM rich ORDER BY id"))


@check
def temporary_table_as(s):
    s.execute(
        sa.text("CREATE TEMP TABLE best AS SELECT name, salary FROM person WHERE salary > 3000")
    )
    return rows(s, sa.text("SELECT * FROM best ORDER BY salary"))


@check
def add_check_error(s):
    s.execute(sa.text("ALTER TABLE person ADD CONSTRAINT positive CHECK (salary > 0)"))
    s.execute(sa.update(P).values(salary=-1))


@check
def explain(s):
    return len(rows(s, sa.text("EXPLAIN SELECT * FROM person WHERE name = 'x'"))) > 0


if __name__ == "__main__":
    main(create, session)
