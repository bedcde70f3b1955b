"""Django's ORM with psycopg: migrations by its schema editor, lookups, expressions, aggregates,
relations, bulk changes, introspection. See checks.py."""

import contextlib
import datetime as dt
import decimal
import io
import sys
import types
import uuid
from pathlib import Path

import django
from checks import check, main
from django.conf import settings

D = decimal.Decimal
UTC = dt.UTC


def configure(url):
    from psycopg.conninfo import conninfo_to_dict

    parts = conninfo_to_dict(url)
    shop = types.ModuleType("shop")
    shop.__path__ = [str(Path(__file__).parent / "nowhere")]
    sys.modules["shop"] = shop
    settings.configure(
        INSTALLED_APPS=["shop"],
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": parts["dbname"],
                "USER": parts["user"],
                "PASSWORD": parts["password"],
                "HOST": parts["host"],
                "PORT": parts["port"],
            }
        },
        USE_TZ=True,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    )
    django.setup()


configure(sys.argv[1])

from django.db import connection, models, transaction  # noqa: E402
from django.db.models import (  # noqa: E402
    Avg,
    Case,
    Count,
    Exists,
    ExpressionWrapper,
    F,
    Max,
    Min,
    OuterRef,
    Prefetch,
    Q,
    StdDev,
    Subquery,
    Sum,
    Value,
    When,
    Window,
)
from django.db.models import functions as fn  # noqa: E402


class Author(models.Model):
    name = models.CharField(max_length=60, db_index=True)
    alias = models.CharField(max_length=50, null=True)
    age = models.IntegerField(null=True)
    born = models.DateField(null=True)

    class Meta:
        app_label = "shop"
        db_table = "author"
        ordering = ("id",)


class Publisher(models.Model):
    name = models.CharField(max_length=60, unique=True)

    class Meta:
        app_label = "shop"
        db_table = "publisher"


class Book(models.Model):
    title = models.TextField()
    isbn = models.CharField(max_length=13, unique=True)
    price = models.DecimalField(max_digits=8, decimal_places=2, null=True)
    pages = models.IntegerField(default=0)
    sold = models.BigIntegerField(default=0)
    rating = models.FloatField(null=True)
    published = models.DateField(null=True)
    opens = models.TimeField(null=True)
    stamp = models.DateTimeField(null=True)
    took = models.DurationField(null=True)
    available = models.BooleanField(default=True)
    cover = models.BinaryField(null=True)
    code = models.UUIDField(null=True)
    contact = models.EmailField(null=True)
    publisher = models.ForeignKey(Publisher, models.CASCADE, null=True, related_name="books")
    authors = models.ManyToManyField(Author, related_name="books")

    class Meta:
        app_label = "shop"
        db_table = "book"


MODELS = (Author, Publisher, Book)


def create(url):
    with connection.schema_editor() as editor:
        for model in MODELS:
            editor.create_model(model)


def load():
    names = ["Ann Miller", "Bob 100%", "Carl_Under", "Dora\\Slash", "Änne Öz", "o'Hara"]
    authors = [
        Author(
            id=n,
            name=name,
            alias=None if n % 2 else name[:3],
            age=20 + n * 5,
            born=dt.date(1950 + n * 6, n, n),
        )
        for n, name in enumerate(names, 1)
    ]
    Author.objects.bulk_create(authors)
    Publisher.objects.bulk_create([Publisher(id=1, name="Alpha"), Publisher(id=2, name="Beta")])
    books = [
        Book(
            id=n,
            title=f"Book {chr(64 + n)} of {names[n % 6]}",
            isbn=f"978-{n:09}",
            price=None if n == 8 else D(n * 10) + D("0.99"),
            pages=100 * n,
            sold=n * 10**9,
            rating=n / 3,
            published=dt.date(2000 + n, (n * 5) % 12 + 1, n),
            opens=dt.time(n, 15, 30),
            stamp=dt.datetime(2023, n, n, 23, 30, 1, 500, UTC),
            took=dt.timedelta(days=n, hours=2, microseconds=5),
            available=n % 2 == 0,
            cover=bytes([n, 255]),
            code=uuid.UUID(int=n),
            contact=f"b{n}@example.org",
            publisher_id=n % 3 or None,
        )
        for n in range(1, 9)
    ]
    Book.objects.bulk_create(books)
    for book in books:
        book.authors.set([book.id % 6 + 1, (book.id + 1) % 6 + 1])
    with connection.cursor() as c:
        for table in ("author", "publisher", "book"):
            c.execute(f"SELECT setval('{table}_id_seq', 1000)")


@contextlib.contextmanager
def session(url):
    load()

    @contextlib.contextmanager
    def fresh():
        with transaction.atomic():
            yield None
            transaction.set_rollback(True)

    yield fresh
    connection.close()


TEXT = models.TextField()
B, A = Book.objects, Author.objects


def ids(query):
    return list(query.order_by("id").values_list("id", flat=True))


def lookup(name, **filters):
    """A check that a filter finds the same books."""

    def found(_):
        return ids(B.filter(**filters))

    found.__name__ = f"lookup_{name}"
    return check(found)


lookup("exact", title="Book A of Bob 100%")
lookup("iexact", title__iexact="book a of BOB 100%")
lookup("contains", title__contains="Hara")
lookup("contains_percent", title__contains="100%")
lookup("contains_underscore", title__contains="l_U")
lookup("contains_backslash", title__contains="a\\S")
lookup("icontains", title__icontains="MILLER")
lookup("startswith", title__startswith="Book C")
lookup("istartswith", title__istartswith="BOOK c")
lookup("endswith", title__endswith="Öz")
lookup("iendswith", title__iendswith="HARA")
lookup("regex", title__regex="Book [A-C]")
lookup("iregex", title__iregex="BOOK [a-c]")
lookup("in", isbn__in=["978-000000001", "978-000000003", "x"])
lookup("in_dates", published__in=[dt.date(2001, 6, 1)])
lookup("gt_decimal", price__gt=D("40"))
lookup("lte_integer", pages__lte=300)
lookup("range_dates", published__range=(dt.date(2002, 1, 1), dt.date(2005, 1, 1)))
lookup("isnull", price__isnull=True)
lookup("year", published__year=2003)
lookup("year_gte", published__year__gte=2004)
lookup("month", published__month=6)
lookup("day", published__day=2)
lookup("week_day", published__week_day=3)
lookup("quarter", published__quarter=2)
lookup("hour", stamp__hour=23)
lookup("date", stamp__date=dt.date(2023, 4, 4))
lookup("time", opens__gte=dt.time(4, 0))
lookup("datetime", stamp__lt=dt.datetime(2023, 5, 1, tzinfo=UTC))
lookup("boolean", available=True)
lookup("uuid", code=uuid.UUID(int=4))
lookup("binary", cover=bytes([3, 255]))
lookup("duration", took__gt=dt.timedelta(days=4))
lookup("float", rating__gte=1.5)
lookup("bigint", sold=5 * 10**9)
lookup("join_exact", publisher__name="Alpha")
lookup("join_many", authors__name__startswith="Ann")
lookup("f_other_column", sold__gt=F("pages"))
lookup("f_arithmetic", pages__gt=F("price") * 10 - 10)
lookup("email", contact__endswith="example.org")


@check
def values_of_all_fields(_):
    fields = [f.attname for f in Book._meta.concrete_fields]
    return list(B.order_by("id").values_list(*fields))


@check
def instances(_):
    b = B.get(isbn="978-000000005")
    return [b.title, b.price, b.stamp, b.took, b.opens, bytes(b.cover), b.code, b.rating]


@check
def q_or_not(_):
    return ids(B.filter(Q(title__startswith="Book A") | ~Q(price__lt=60)))


@check
def exclude(_):
    return ids(B.exclude(title__contains="Hara"))


@check
def exclude_join(_):
    return ids(B.exclude(authors__name="Ann Miller"))


@check
def order_by_columns(_):
    return list(B.order_by("-available", "title").values_list("id", flat=True))


@check
def order_by_expression(_):
    return list(B.order_by(fn.Lower("title").desc(), "id").values_list("id", flat=True))


@check
def order_nulls_last(_):
    return list(B.order_by(F("price").desc(nulls_last=True)).values_list("id", flat=True))


@check
def slices(_):
    return [b.title for b in B.order_by("title")[2:5]]


@check
def first_and_last(_):
    return [B.order_by("price").first().id, B.order_by("pages").last().id]


@check
def latest(_):
    return [B.latest("published").id, B.earliest("stamp").id]


@check
def distinct(_):
    return list(B.order_by("available").values_list("available", flat=True).distinct())


@check
def distinct_on(_):
    return list(
        B.order_by("available", "-price").distinct("available").values_list("id", flat=True)
    )


@check
def dates(_):
    return list(B.dates("published", "year"))


@check
def datetimes(_):
    return list(B.datetimes("stamp", "month"))


@check
def exists(_):
    return [B.filter(price__gt=50).exists(), B.filter(title="no").exists()]


@check
def count(_):
    return [B.filter(price__gt=50).count(), B.values("available").distinct().count()]


@check
def aggregate(_):
    return B.aggregate(Sum("price"), Avg("price"), Min("published"), Max("title"), Count("isbn"))


@check
def aggregate_of_integers(_):
    return B.aggregate(Sum("pages"), Avg("pages"), Max("sold"), Sum("sold"))


@check
def aggregate_durations(_):
    return B.aggregate(Sum("took"), Max("took"), Avg("took"))


@check
def aggregate_stddev(_):
    return B.aggregate(StdDev("rating"))


@check
def aggregate_filter(_):
    return B.aggregate(
        n=Count("id", filter=Q(price__gt=30)), s=Sum("pages", filter=Q(available=True))
    )


@check
def aggregate_default(_):
    return B.filter(title="none").aggregate(s=Sum("price", default=D(0)))


@check
def aggregate_expression(_):
    return B.aggregate(total=Sum(F("price") * F("pages")))


@check
def annotate_arithmetic(_):
    q = B.annotate(twice=F("price") * 2 + 1, half=F("pages") / 2, rest=F("pages") % 7)
    return list(q.order_by("id").values_list("twice", "half", "rest"))


@check
def annotate_count_of_related(_):
    q = A.annotate(n=Count("books"), top=Max("books__price")).order_by("id")
    return list(q.values_list("name", "n", "top"))


@check
def annotate_group_by_column(_):
    q = B.values("available").annotate(n=Count("id"), s=Sum("price")).order_by("available")
    return list(q)


@check
def group_by_having(_):
    q = Publisher.objects.annotate(s=Sum("books__price")).filter(s__gt=50).order_by("id")
    return list(q.values_list("name", "s"))


@check
def group_by_year(_):
    q = B.annotate(y=fn.ExtractYear("published")).values("y").annotate(n=Count("id")).order_by("y")
    return list(q)


@check
def case_when(_):
    size = Case(
        When(pages__lt=300, then=Value("thin")),
        When(pages__lt=600, then=Value("fair")),
        default=Value("fat"),
    )
    return list(B.annotate(size=size).order_by("id").values_list("size", flat=True))


@check
def case_when_column(_):
    shown = Case(When(available=True, then=F("title")), default=F("isbn"), output_field=TEXT)
    return list(B.annotate(x=shown).order_by("id").values_list("x", flat=True))


@check
def case_text_default(_):
    shown = Case(
        When(available=True, then=F("title")), default=Value("sold out"), output_field=TEXT
    )
    return list(B.annotate(x=shown).order_by("id").values_list("x", flat=True))


def function(name, expression, of=B):
    def value(_):
        return list(of.annotate(x=expression).order_by("id").values_list("x", flat=True))

    value.__name__ = f"function_{name}"
    return check(value)


function("lower", fn.Lower("title"))
function("upper", fn.Upper("title"))
function("length", fn.Length("title"))
function("substr", fn.Substr("title", 2, 4))
function("left", fn.Left("title", 6))
function("right", fn.Right("title", 3))
function("trim", fn.Trim("title"))
function("replace", fn.Replace("title", Value("Book"), Value("Buch"), output_field=TEXT))
function("concat", fn.Concat("title", Value(" / "), "isbn", output_field=TEXT))
function("concat_integer", fn.Concat("title", Value(" "), "pages", output_field=TEXT))
function("coalesce", fn.Coalesce("price", Value(D(0))))
function("coalesce_text", fn.Coalesce("alias", "name"), A)
function("coalesce_value", fn.Coalesce("alias", Value("-")), A)
function("greatest", fn.Greatest("pages", Value(350)))
function("least", fn.Least("price", Value(D(25))))
function("nullif", fn.NullIf("pages", Value(300)))
function("abs", fn.Abs(F("pages") - 450))
function("ceil", fn.Ceil("price"))
function("floor", fn.Floor("rating"))
function("round", fn.Round("price", 1))
function("round_integer", fn.Round("rating"))
function("mod", fn.Mod("pages", 70))
function("sqrt", fn.Sqrt("rating"))
function("cast_integer", fn.Cast("price", models.IntegerField()))
function("cast_text", fn.Cast("pages", models.TextField()))
function("cast_char", fn.Cast("title", models.CharField(max_length=4)))
function("cast_date", fn.Cast("stamp", models.DateField()))
function("extract_week", fn.ExtractWeek("published"))
function("extract_hour", fn.ExtractHour("stamp"))
function("trunc_month", fn.TruncMonth("published"))
function("trunc_date", fn.TruncDate("stamp"))
function("trunc_hour", fn.TruncHour("stamp"))
function("strpos", fn.StrIndex("title", Value("of")))
function("lpad", fn.LPad("isbn", 20, Value("*")))
function("repeat", fn.Repeat("isbn", 2))
function("reverse", fn.Reverse("title"))
function("chr_ord", fn.Ord("title"))
function("md5", fn.MD5("title"))
function("date_plus", ExpressionWrapper(F("stamp") + F("took"), models.DateTimeField()))
function("date_minus", ExpressionWrapper(F("stamp") - dt.timedelta(days=2), models.DateTimeField()))
function("window_rank", Window(fn.Rank(), order_by="-price"))
function("window_lag", Window(fn.Lag("title"), order_by="published"))
function("window_sum", Window(Sum("price"), partition_by=F("available"), order_by="id"))
function("comparison", Case(When(Q(price__gt=F("rating")), then=1), default=0))
function("subquery", Subquery(A.filter(books=OuterRef("pk")).order_by("name").values("name")[:1]))
function("exists_subquery", Exists(A.filter(books=OuterRef("pk"), age__gt=40)))


@check
def union(_):
    q = A.filter(id__lt=3).values_list("name").union(Publisher.objects.values_list("name"))
    return list(q.order_by("name"))


@check
def intersection(_):
    return list(
        B.filter(id__lt=5).intersection(B.filter(price__gt=20)).order_by("id").values_list("id")
    )


@check
def select_related(_):
    return [
        (b.title, b.publisher and b.publisher.name)
        for b in B.select_related("publisher").order_by("id")
    ]


@check
def prefetch_related(_):
    q = B.prefetch_related(Prefetch("authors", A.filter(age__gt=30))).order_by("id")
    return [[a.name for a in b.authors.all()] for b in q]


@check
def only_and_defer(_):
    return [B.only("title").get(id=2).price, B.defer("title").get(id=3).title]


@check
def iterator(_):
    return [b.title for b in B.order_by("id").iterator(chunk_size=2)]


@check
def in_bulk(_):
    return sorted((k, b.title) for k, b in B.in_bulk(["978-000000002"], field_name="isbn").items())


@check
def raw_query(_):
    return [b.title for b in B.raw("SELECT * FROM book WHERE price > %s ORDER BY id", [D(50)])]


@check
def cursor_query(_):
    with connection.cursor() as c:
        c.execute("SELECT title, price FROM book WHERE title LIKE %s ORDER BY id", ["%Hara%"])
        return c.fetchall()


# Changes
@check
def create_object(_):
    b = B.create(title="New", isbn="1", price=D("3.50"), stamp=dt.datetime(2024, 1, 1, tzinfo=UTC))
    b.refresh_from_db()
    return [b.title, b.price, b.stamp, b.pages, b.available]


@check
def save_object(_):
    b = B.get(id=1)
    b.title, b.price, b.took = "Changed", D("1.5"), dt.timedelta(seconds=5)
    b.save()
    b.refresh_from_db()
    return [b.title, b.price, b.took]


@check
def save_some_fields(_):
    b = B.get(id=1)
    b.title, b.price = "Changed", D(9)
    b.save(update_fields=["title"])
    b.refresh_from_db()
    return [b.title, b.price]


@check
def update_values(_):
    return [B.filter(price__gt=30).update(title="x", available=False), ids(B.filter(title="x"))]


@check
def update_f(_):
    B.update(price=F("price") + D("1.25"), pages=F("pages") * 2)
    return list(B.order_by("id").values_list("price", "pages"))


@check
def update_concat(_):
    B.update(title=fn.Concat(Value("The "), "title", output_field=TEXT))
    return list(B.order_by("id").values_list("title", flat=True))


@check
def update_case(_):
    B.update(title=Case(When(pages__gt=400, then=Value("long")), default=Value("short")))
    return list(B.order_by("id").values_list("title", flat=True))


@check
def update_subquery(_):
    B.update(title=Subquery(A.filter(books=OuterRef("pk")).order_by("id").values("name")[:1]))
    return list(B.order_by("id").values_list("title", flat=True))


@check
def bulk_update(_):
    books = list(B.order_by("id"))
    for b in books:
        b.title, b.price, b.published = f"t{b.id}", D(b.id), dt.date(1999, 1, b.id)
    B.bulk_update(books, ["title", "price", "published"])
    return list(B.order_by("id").values_list("title", "price", "published"))


@check
def bulk_create_many(_):
    made = B.bulk_create(
        [Book(title=f"n{n}", isbn=f"b{n}", pages=n) for n in range(500)], batch_size=120
    )
    return [len(made), B.filter(isbn__startswith="b").aggregate(Sum("pages"))]


@check
def bulk_create_ignore(_):
    B.bulk_create([Book(title="x", isbn="978-000000001")], ignore_conflicts=True)
    return B.get(isbn="978-000000001").title


@check
def bulk_create_update(_):
    B.bulk_create(
        [Book(title="x", isbn="978-000000001", pages=1)],
        update_conflicts=True,
        unique_fields=["isbn"],
        update_fields=["title", "pages"],
    )
    b = B.get(isbn="978-000000001")
    return [b.title, b.pages, b.id]


@check
def get_or_create(_):
    _b, made = B.get_or_create(isbn="978-000000001", defaults={"title": "x"})
    _c, other = B.get_or_create(isbn="new", defaults={"title": "x"})
    return [made, other]


@check
def update_or_create(_):
    b, made = B.update_or_create(isbn="978-000000001", defaults={"title": "changed"})
    return [b.title, made]


@check
def delete_objects(_):
    return B.filter(title__contains="Hara").delete()


@check
def delete_cascade(_):
    Publisher.objects.get(name="Alpha").delete()
    return ids(B.all())


@check
def select_for_update(_):
    return [b.title for b in B.select_for_update().filter(price__gt=60).order_by("id")]


@check
def many_to_many_add(_):
    b = B.get(id=1)
    b.authors.add(A.get(name="o'Hara"))
    return sorted(b.authors.values_list("name", flat=True))


@check
def savepoint_after(_):
    try:
        with transaction.atomic():
            B.create(title="x", isbn="978-000000001")
    except django.db.IntegrityError:
        return B.count()


@check
def unique_error(_):
    B.create(title="x", isbn="978-000000001")


@check
def too_long_error(_):
    B.create(title="x", isbn="1" * 14)


@check
def null_error(_):
    B.create(title=None, isbn="1")


@check
def overflow_error(_):
    B.filter(id=1).update(price=D(10) ** 7)


# Introspection and migrations
@check
def introspect_columns(_):
    with connection.cursor() as c:
        found = connection.introspection.get_table_description(c, "book")
        return [
            (
                f.name,
                connection.introspection.get_field_type(f.type_code, f),
                f.null_ok,
                f.display_size,
            )
            for f in found
        ]


@check
def introspect_constraints(_):
    with connection.cursor() as c:
        found = connection.introspection.get_constraints(c, "book")
    return sorted((v["columns"], v["unique"], v["index"], v["primary_key"]) for v in found.values())


@check
def inspectdb(_):
    from django.core.management import call_command

    out = io.StringIO()
    call_command("inspectdb", "book", "author", stdout=out)
    return out.getvalue()


def edited(action):
    with connection.schema_editor(atomic=False) as editor:
        action(editor)


@check
def migration_add_field(_):
    field = models.CharField(max_length=20, default="none")
    field.set_attributes_from_name("note")
    edited(lambda e: e.add_field(Book, field))
    with connection.cursor() as c:
        c.execute("SELECT note, title FROM book WHERE id = 1")
        return c.fetchall()


@check
def migration_remove_field(_):
    edited(lambda e: e.remove_field(Author, Author._meta.get_field("alias")))
    with connection.cursor() as c:
        c.execute("SELECT * FROM author ORDER BY id")
        return c.fetchall()


@check
def migration_rename_field(_):
    new = models.TextField()
    new.set_attributes_from_name("heading")
    edited(lambda e: e.alter_field(Book, Book._meta.get_field("title"), new))
    with connection.cursor() as c:
        c.execute("SELECT heading FROM book WHERE heading LIKE 'Book A%%'")
        return c.fetchall()


@check
def migration_null(_):
    new = models.IntegerField(null=True)
    new.set_attributes_from_name("pages")
    edited(lambda e: e.alter_field(Book, Book._meta.get_field("pages"), new))
    B.filter(id=1).update(pages=None)
    return ids(B.filter(pages=None))


@check
def migration_add_index(_):
    edited(lambda e: e.add_index(Book, models.Index(fields=["price", "-title"], name="by_price")))
    return ids(B.filter(price__gt=30))


@check
def migration_partial_unique_error(_):
    c = models.UniqueConstraint(fields=["title"], condition=Q(price__gt=30), name="one_title")
    edited(lambda e: e.add_constraint(Book, c))
    B.create(title=B.get(id=7).title, isbn="x", price=D(99))


@check
def migration_check_error(_):
    c = models.CheckConstraint(condition=Q(pages__gte=0), name="some_pages")
    edited(lambda e: e.add_constraint(Book, c))
    B.filter(id=1).update(pages=-1)


@check
def migration_rename_table(_):
    edited(lambda e: e.alter_db_table(Author, "author", "writer"))
    with connection.cursor() as c:
        c.execute("SELECT name FROM writer WHERE name LIKE 'Ann%%'")
        return c.fetchall()


if __name__ == "__main__":
    main(create, session)
