// Hibernate: its schema, its sessions, HQL, criteria, native queries, batches, generated keys,
// pages, optimistic and pessimistic locks, and whether it finds its schema again.

import jakarta.persistence.LockModeType;
import jakarta.persistence.Tuple;
import jakarta.persistence.criteria.CriteriaBuilder;
import jakarta.persistence.criteria.CriteriaQuery;
import jakarta.persistence.criteria.Predicate;
import jakarta.persistence.criteria.Root;
import java.math.BigDecimal;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.BiFunction;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.hibernate.Hibernate;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;
import org.hibernate.query.Query;

public class HibernateProgram {
    private static final String[] NAMES = {"Ann Miller", "Bob 100%", "Carl_Under", "Dora\\Slash", "Änne Öz", "o'Hara"};

    // What it says of errors is compared by the checks.
    private static final Logger LOGGER = Logger.getLogger("org.hibernate");

    public static void main(String[] args) {
        LOGGER.setLevel(Level.OFF);
        if (args[1].equals("create")) {
            factory(args[0], "create").close();
            return;
        }
        Checks<Session> checks = new Checks<>();
        conditions(checks);
        expressions(checks);
        queries(checks);
        writes(checks);
        errors(checks);
        checks.check("schema_is_as_mapped", s -> {
            factory(args[0], "validate").close();
            return "valid";
        });
        try (SessionFactory factory = factory(args[0], "none")) {
            factory.inTransaction(HibernateProgram::load);
            checks.runAll("", body -> {
                try (Session session = factory.openSession()) {
                    session.beginTransaction();
                    try {
                        return body.run(session);
                    } finally {
                        session.getTransaction().rollback();
                    }
                }
            });
        }
    }

    private static SessionFactory factory(String url, String schema) {
        String[] address = Checks.address(url);
        return new Configuration()
                .addAnnotatedClass(Library.Author.class)
                .addAnnotatedClass(Library.Book.class)
                .addAnnotatedClass(Library.Review.class)
                .setProperty("hibernate.connection.url", address[0])
                .setProperty("hibernate.connection.username", address[1])
                .setProperty("hibernate.connection.password", address[2])
                .setProperty("hibernate.hbm2ddl.auto", schema)
                .setProperty("hibernate.jdbc.batch_size", "20")
                .setProperty("hibernate.jdbc.time_zone", "UTC")
                .buildSessionFactory();
    }

    private static Library.Book book(int n) {
        Library.Book book = new Library.Book();
        book.title = "Book " + n + " of " + NAMES[n % 6];
        book.genre = Library.Genre.values()[n % 3];
        book.kept = Library.Genre.values()[(n + 1) % 3];
        book.price = n == 7 ? null : new BigDecimal(n * 10 + ".99");
        book.pages = n * 100;
        book.sold = n * 1_000_000_000L;
        book.shelf = (short) n;
        book.rating = n / 3.0;
        book.weight = n / 4f;
        book.available = n % 2 == 0;
        book.published = LocalDate.of(2000 + n, n, n);
        book.opens = LocalTime.of(n, 15, 30);
        book.made = LocalDateTime.of(2020, 2, 29, n, 0, 0, 123_456_000);
        book.seen = OffsetDateTime.of(2023, n, n, 23, 30, 1, 5000, ZoneOffset.ofHours(n));
        book.cover = new byte[] {(byte) n, 0, -1};
        book.code = new UUID(0, n);
        book.mark = (char) ('a' + n);
        return book;
    }

    private static void load(Session s) {
        List<Library.Author> authors = new ArrayList<>();
        for (int n = 0; n < NAMES.length; n++) {
            Library.Author author = new Library.Author();
            author.name = NAMES[n];
            author.bio = n % 2 == 0 ? "bio of " + NAMES[n] : null;
            author.born = LocalDate.of(1950 + n, 1, 2);
            author.address = n == 3 ? null : new Library.Address("Street " + n, n < 3 ? "Here" : "There");
            s.persist(author);
            authors.add(author);
        }
        for (int n = 1; n <= 8; n++) {
            Library.Book book = book(n);
            book.author = n == 8 ? null : authors.get(n % 6);
            s.persist(book);
            Library.Review review = new Library.Review();
            review.book = book;
            review.words = "Words about " + n;
            review.stars = n % 5;
            s.persist(review);
        }
    }

    /** What is seen of an entity. */
    private static Object told(Object value) {
        if (value instanceof Library.Book b) {
            return Arrays.asList(b.title, b.genre, b.kept, b.price, b.pages, b.sold, b.shelf, b.rating, b.weight, b.available,
                    b.published, b.opens, b.made, b.seen, b.cover, b.code, b.mark);
        }
        if (value instanceof Library.Author a) {
            return Arrays.asList(a.name, a.bio, a.born, a.address == null ? null : a.address.street + ", " + a.address.city, a.version);
        }
        if (value instanceof Library.Review r) {
            return Arrays.asList(r.words, r.stars);
        }
        if (value instanceof Tuple tuple) {
            return told(tuple.toArray());
        }
        if (value instanceof Object[] values) {
            return Arrays.stream(values).map(HibernateProgram::told).toList().toString();
        }
        return value;
    }

    private static Object list(Query<?> query, Object... parameters) {
        for (int n = 0; n < parameters.length; n++) {
            query.setParameter(n + 1, parameters[n]);
        }
        List<Object> all = new ArrayList<>();
        query.list().forEach(one -> all.add(told(one)));
        return all;
    }

    private static Object hql(Session s, String text, Object... parameters) {
        return list(s.createQuery(text, Object.class), parameters);
    }

    private static void found(Checks<Session> checks, String name, String where, Object... parameters) {
        checks.check("find_" + name, s -> hql(s, "select b.title from Book b where " + where + " order by b.id", parameters));
    }

    private static void conditions(Checks<Session> checks) {
        Library.Book four = book(4);
        found(checks, "text", "b.title = ?1", four.title);
        found(checks, "enum_as_text", "b.genre = ?1", Library.Genre.POETRY);
        found(checks, "enum_literal", "b.genre = Library$Genre.NOVEL");
        found(checks, "enum_as_number", "b.kept = ?1", Library.Genre.SCIENCE);
        found(checks, "enum_in", "b.genre in (?1)", List.of(Library.Genre.POETRY, Library.Genre.NOVEL));
        found(checks, "decimal", "b.price = ?1", four.price);
        found(checks, "decimal_more", "b.price > ?1", new BigDecimal("40"));
        found(checks, "integer", "b.pages <= ?1", 300);
        found(checks, "long", "b.sold = ?1", four.sold);
        found(checks, "short", "b.shelf > ?1", four.shelf);
        found(checks, "double", "b.rating > ?1", 1.5);
        found(checks, "float", "b.weight = ?1", 1.25f);
        found(checks, "boolean", "b.available = ?1", true);
        found(checks, "boolean_itself", "not b.available");
        found(checks, "date", "b.published >= ?1", four.published);
        found(checks, "dates_between", "b.published between ?1 and ?2", LocalDate.of(2002, 1, 1), LocalDate.of(2005, 12, 31));
        found(checks, "time", "b.opens > ?1", four.opens);
        found(checks, "timestamp", "b.made < ?1", four.made);
        found(checks, "timestamp_with_zone", "b.seen < ?1", four.seen);
        found(checks, "bytes", "b.cover = ?1", (Object) four.cover);
        found(checks, "uuid", "b.code = ?1", four.code);
        found(checks, "character", "b.mark = ?1", 'd');
        found(checks, "like", "b.title like ?1", "%Carl%");
        found(checks, "like_escape", "b.title like ?1 escape '!'", "%!%%");
        found(checks, "like_escape_parameter", "b.title like ?1 escape ?2", "%#_%", '#');
        found(checks, "like_concat", "b.title like concat('%', ?1, '%')", "Miller");
        found(checks, "like_lower", "lower(b.title) like lower(?1)", "%MILLER");
        found(checks, "ilike", "b.title ilike ?1", "%MILLER");
        found(checks, "not_like", "b.title not like ?1", "%o%");
        found(checks, "in", "b.title in (?1)", List.of(four.title, book(2).title, "none"));
        found(checks, "not_in", "b.pages not in (100, 200)");
        found(checks, "is_null", "b.price is null");
        found(checks, "optional_given", "(?1 is null or b.title = ?1)", four.title);
        found(checks, "optional_missing", "(?1 is null or b.title = ?1)", new Object[] {null});
        found(checks, "optional_number", "(?1 is null or b.price < ?1)", new BigDecimal("50"));
        found(checks, "optional_date", "(cast(?1 as LocalDate) is null or b.published > ?1)", LocalDate.of(2004, 1, 1));
        found(checks, "coalesced", "coalesce(?1, b.title) = b.title", new Object[] {null});
        found(checks, "distinct_from", "b.price is distinct from ?1", four.price);
        found(checks, "arithmetic", "b.price * 2 + b.pages > ?1", new BigDecimal("500"));
        found(checks, "by_relation", "b.author.name = ?1", "Ann Miller");
        found(checks, "by_embedded", "b.author.address.city = ?1", "Here");
        found(checks, "by_relation_like", "b.author.name like ?1", "%o%");
        found(checks, "by_subquery", "b.price > (select avg(c.price) from Book c)");
        found(checks, "by_exists", "exists (select 1 from Review r where r.book = b and r.stars > ?1)", 3);
        found(checks, "by_all", "b.price >= all (select c.price from Book c where c.price is not null)");
        found(checks, "by_size", "size(b.author.books) > 1");
        found(checks, "by_tuple", "(b.pages, b.shelf) in ((100, 1s), (300, 3s))".replace("s)", ")"));
    }

    private static void select(Checks<Session> checks, String name, String what, Object... parameters) {
        checks.check("select_" + name, s -> hql(s, "select " + what + " from Book b order by b.id", parameters));
    }

    private static void expressions(Checks<Session> checks) {
        select(checks, "strings", "upper(b.title), lower(b.title), length(b.title), substring(b.title, 2, 3), locate('o', b.title), trim(b.title)");
        select(checks, "more_strings", "left(b.title, 3), right(b.title, 2), replace(b.title, 'Book', ?1), lpad(b.title, 30, '*'), repeat('x', b.shelf)", "B");
        select(checks, "joined", "b.title || ' - ' || b.genre, concat(b.title, ?1, b.pages)", ": ");
        select(checks, "numbers", "b.price * ?1, b.pages / 3, mod(b.pages, 7), abs(b.pages - 400), round(b.price, 1), floor(b.rating), sign(b.shelf)", 2);
        select(checks, "reals", "sqrt(b.rating), power(b.rating, 2), exp(b.rating), ln(b.rating + 1)");
        select(checks, "dates", "year(b.published), month(b.made), extract(day from b.published), hour(b.opens), b.published + 3 day");
        select(checks, "truncated", "truncate(b.made, month), b.made + 90 minute");
        select(checks, "durations", "(b.made - local datetime) by second > 0");
        select(checks, "formatted", "format(b.published as 'yyyy-MM-dd')");
        select(checks, "case", "case when b.pages > ?1 then 'long' else 'short' end", 400);
        select(checks, "case_of_enum", "case b.genre when Library$Genre.NOVEL then 'n' else 'other' end");
        select(checks, "coalesced", "coalesce(b.price, 0), nullif(b.pages, 100), ifnull(b.price, 1)");
        select(checks, "extremes", "greatest(b.pages, b.shelf * 150), least(b.rating, 1.5)");
        select(checks, "casts", "cast(b.pages as String), cast(b.price as Integer), cast(b.title as String), str(b.published)");
        select(checks, "literals", "b.title = 'it''s', b.published > date 2003-01-01, b.price > 1.5bd");
        select(checks, "ranked", "b.title, rank() over (partition by b.genre order by b.price desc nulls last)");
        select(checks, "summed", "sum(b.pages) over (order by b.id), lag(b.title) over (order by b.id)");
    }

    private static void queries(Checks<Session> checks) {
        checks.check("all", s -> hql(s, "from Book order by id"));
        checks.check("fetched", s -> {
            List<Object> all = new ArrayList<>();
            for (Library.Author a : s.createQuery("select distinct a from Author a left join fetch a.books order by a.name", Library.Author.class).list()) {
                all.add(List.of(told(a), a.books.stream().map(b -> b.title).toList()));
            }
            return all;
        });
        checks.check("lazy", s -> {
            Library.Book b = s.createQuery("from Book where title like 'Book 3%'", Library.Book.class).getSingleResult();
            Library.Author author = (Library.Author) Hibernate.unproxy(b.author);
            return List.of(author.name, author.books.stream().map(o -> told(o)).toList());
        });
        checks.check("get", s -> told(s.find(Library.Book.class, 2L)));
        checks.check("get_many", s -> s.byMultipleIds(Library.Book.class).multiLoad(1L, 3L).stream().map(HibernateProgram::told).toList());
        checks.check("by_natural_key", s -> told(s.createQuery("from Author where name = :n", Library.Author.class).setParameter("n", "o'Hara").getSingleResult()));
        checks.check("join", s -> hql(s, "select b.title, a.name from Book b join b.author a where a.name <> ?1 order by a.name, b.title", "Ann Miller"));
        checks.check("join_on", s -> hql(s, "select b.title, c.title from Book b join Book c on b.pages = c.pages + 100 and c.title like ?1 order by b.id", "Book%"));
        checks.check("aggregates", s -> hql(s, "select count(b), count(b.price), sum(b.price), avg(b.pages), min(b.title), max(b.seen), sum(b.sold), avg(b.rating) from Book b"));
        checks.check("group", s -> hql(s, "select b.genre, count(*), sum(b.price) from Book b group by b.genre having sum(b.pages) > ?1 order by b.genre", 500));
        checks.check("group_by_relation", s -> hql(s, "select a.name, count(b), max(b.price) from Book b join b.author a group by a.name order by a.name"));
        checks.check("group_by_expression", s -> hql(s, "select year(b.published) / 3, listagg(b.title, ', ') within group (order by b.title) from Book b group by year(b.published) / 3 order by 1"));
        checks.check("percentile", s -> hql(s, "select percentile_cont(0.5) within group (order by b.rating), percentile_disc(0.5) within group (order by b.pages) from Book b"));
        checks.check("distinct", s -> hql(s, "select distinct b.genre from Book b order by b.genre"));
        checks.check("order", s -> hql(s, "select b.title from Book b order by b.available desc, b.price asc nulls first, lower(b.title)"));
        checks.check("page", s -> list(s.createQuery("select b.title from Book b order by b.title", Object.class).setFirstResult(2).setMaxResults(3)));
        checks.check("page_of_entities", s -> list(s.createQuery("from Book b where b.pages > 100 order by b.price desc nulls last", Object.class).setFirstResult(1).setMaxResults(2)));
        checks.check("page_in_query", s -> hql(s, "select b.title from Book b order by b.title limit 2 offset ?1", 3));
        checks.check("scrolled", s -> {
            List<Object> all = new ArrayList<>();
            try (var rows = s.createQuery("select b.title from Book b order by b.pages desc", Object.class).setFetchSize(2).scroll()) {
                while (rows.next()) {
                    all.add(rows.get());
                }
            }
            return all;
        });
        checks.check("streamed", s -> s.createQuery("select b.price from Book b order by b.id", Object.class).setFetchSize(3).stream().map(String::valueOf).toList());
        checks.check("union", s -> hql(s, "select a.name from Author a where a.born > ?1 union select b.title from Book b where b.pages = 100", LocalDate.of(1954, 1, 1)).toString().length());
        checks.check("with", s -> hql(s, "with long as (select b.title as t, b.price as p from Book b where b.pages > ?1) select l.t, l.p from long l order by l.t", 500));
        checks.check("tuple", s -> list(s.createQuery("select b.title as t, b.price as p from Book b order by b.id", Tuple.class)));
        criteria(checks, "and", (c, b) -> c.and(c.like(b.get("title"), "Book%"), c.lt(b.get("price"), new BigDecimal(50))));
        criteria(checks, "or", (c, b) -> c.or(c.equal(b.get("pages"), 500), c.isNull(b.get("price"))));
        criteria(checks, "in", (c, b) -> b.get("genre").in(Library.Genre.NOVEL, Library.Genre.SCIENCE));
        criteria(checks, "between", (c, b) -> c.between(b.get("published"), LocalDate.of(2003, 1, 1), LocalDate.of(2006, 1, 1)));
        criteria(checks, "like_escape", (c, b) -> c.like(b.get("title"), "%!_%", '!'));
        criteria(checks, "joined", (c, b) -> c.equal(c.lower(b.join("author").get("name")), "ann miller"));
        checks.check("native", s -> list(s.createNativeQuery("SELECT title, price, published, seen, code FROM book WHERE price > ?1 ORDER BY id", Object.class), new BigDecimal(50)));
        checks.check("native_entity", s -> list(s.createNativeQuery("SELECT * FROM book WHERE title LIKE :t ORDER BY id", Library.Book.class).setParameter("t", "%Miller")));
        checks.check("native_optional", s -> list(s.createNativeQuery("SELECT title FROM book WHERE (CAST(?1 AS text) IS NULL OR title = ?1) ORDER BY id", Object.class), book(2).title));
        checks.check("locked", s -> list(s.createQuery("from Book b where b.pages > 600 order by b.id", Object.class).setLockMode(LockModeType.PESSIMISTIC_WRITE)));
    }

    private static void criteria(Checks<Session> checks, String name, BiFunction<CriteriaBuilder, Root<Library.Book>, Predicate> where) {
        checks.check("criteria_" + name, s -> {
            CriteriaBuilder c = s.getCriteriaBuilder();
            CriteriaQuery<Library.Book> query = c.createQuery(Library.Book.class);
            Root<Library.Book> book = query.from(Library.Book.class);
            return list(s.createQuery(query.select(book).where(where.apply(c, book)).orderBy(c.asc(book.get("id")))));
        });
    }

    private static Object after(Session s) {
        s.flush();
        s.clear();
        return hql(s, "from Book order by pages, title");
    }

    private static void writes(Checks<Session> checks) {
        checks.check("persist", s -> {
            Library.Book book = book(9);
            s.persist(book);
            return List.of(book.id != null, after(s));
        });
        checks.check("persist_nulls", s -> {
            Library.Book book = new Library.Book();
            book.title = "nothing else";
            s.persist(book);
            return after(s);
        });
        checks.check("persist_batch", s -> {
            for (int n = 0; n < 50; n++) {
                Library.Author author = new Library.Author();
                author.name = "author " + n;
                author.born = LocalDate.of(1900 + n, 5, 5);
                s.persist(author);
            }
            s.flush();
            return hql(s, "select count(a), min(a.born), max(a.name) from Author a where a.name like 'author %'");
        });
        checks.check("persist_with_uuid", s -> {
            Library.Review review = new Library.Review();
            review.book = s.getReference(Library.Book.class, 1L);
            review.words = "again";
            s.persist(review);
            s.flush();
            return hql(s, "select r.words from Review r where r.book.id = 1 order by r.words");
        });
        checks.check("change", s -> {
            Library.Book book = s.find(Library.Book.class, 2L);
            book.title = "changed";
            book.price = new BigDecimal("1.5");
            book.rating = null;
            book.genre = Library.Genre.NOVEL;
            book.cover = new byte[0];
            return after(s);
        });
        checks.check("change_version", s -> {
            Library.Author author = s.createQuery("from Author where name = 'o''Hara'", Library.Author.class).getSingleResult();
            author.bio = "new";
            author.address.city = "Elsewhere";
            s.flush();
            s.refresh(author);
            return told(author);
        });
        checks.check("merge", s -> {
            Library.Book book = s.find(Library.Book.class, 3L);
            s.detach(book);
            book.title = "merged";
            s.merge(book);
            return after(s);
        });
        checks.check("remove", s -> {
            s.createMutationQuery("delete from Review r where r.book.id in (1, 7)").executeUpdate();
            s.remove(s.createQuery("from Author where name = 'Bob 100%'", Library.Author.class).getSingleResult());
            return after(s);
        });
        checks.check("update_query", s -> List.of(s.createMutationQuery("update Book set price = price * ?1, title = concat('The ', title) where pages < ?2")
                .setParameter(1, new BigDecimal("1.1")).setParameter(2, 300).executeUpdate(), after(s)));
        checks.check("update_enum", s -> List.of(s.createMutationQuery("update Book b set b.genre = ?1 where b.genre is distinct from ?1")
                .setParameter(1, Library.Genre.SCIENCE).executeUpdate(), after(s)));
        checks.check("delete_query", s -> s.createMutationQuery("delete from Review r where r.words like ?1").setParameter(1, "%3").executeUpdate());
        checks.check("insert_query", s -> List.of(s.createMutationQuery("insert into Book (title, pages, price) select b.title || ' II', b.pages, b.price from Book b where b.pages > 600")
                .executeUpdate(), after(s)));
        checks.check("insert_values", s -> List.of(s.createMutationQuery("insert into Book (title, genre, price) values (?1, ?2, ?3), ('b', null, 2.5bd)")
                .setParameter(1, "a").setParameter(2, Library.Genre.POETRY).setParameter(3, new BigDecimal("7")).executeUpdate(), after(s)));
        checks.check("upsert", s -> List.of(s.createMutationQuery("insert into Author (id, name, version) values (77, ?1, 0) on conflict (name) do update set bio = excluded.name")
                .setParameter(1, "o'Hara").executeUpdate(), hql(s, "select a.name, a.bio from Author a order by a.name")));
        checks.check("stateless", s -> {
            Library.Book book = book(9);
            s.doWork(c -> {
                try (var stateless = s.getSessionFactory().openStatelessSession(c)) {
                    stateless.insert(book);
                    book.title = "stateless";
                    stateless.update(book);
                }
            });
            return hql(s, "select b.title, b.price from Book b where b.title = 'stateless'");
        });
    }

    private static void errors(Checks<Session> checks) {
        checks.check("unique_error", s -> {
            Library.Author author = new Library.Author();
            author.name = "Ann Miller";
            s.persist(author);
            s.flush();
            return null;
        });
        checks.check("too_long_error", s -> {
            s.find(Library.Book.class, 1L).title = "x".repeat(256);
            s.flush();
            return null;
        });
        checks.check("enum_that_is_none_error", s -> s.createNativeMutationQuery("UPDATE book SET genre = 'DRAMA' WHERE pages = 100").executeUpdate());
        checks.check("not_null_error", s -> s.createMutationQuery("update Book set title = null").executeUpdate());
        checks.check("stale_error", s -> {
            Library.Author author = s.createQuery("from Author where name = 'o''Hara'", Library.Author.class).getSingleResult();
            s.createNativeMutationQuery("UPDATE author SET version = 9").executeUpdate();
            author.bio = "too late";
            s.flush();
            return null;
        });
        checks.check("overflow_error", s -> s.createMutationQuery("update Book set price = ?1").setParameter(1, new BigDecimal("1e12")).executeUpdate());
        checks.check("constraint_named", s -> {
            try {
                s.createNativeMutationQuery("UPDATE author SET name = 'o''Hara'").executeUpdate();
                return "no error";
            } catch (org.hibernate.exception.ConstraintViolationException error) {
                return error.getKind().name() + " " + (error.getConstraintName() != null);
            }
        });
    }
}
