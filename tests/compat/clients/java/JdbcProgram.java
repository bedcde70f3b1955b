// PostgreSQL's JDBC driver in its ways of executing statements: setters of all kinds, untyped
// parameters, batches, generated keys, cursors, pages, escapes, metadata, COPY.

import java.io.ByteArrayInputStream;
import java.io.StringReader;
import java.math.BigDecimal;
import java.sql.Array;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import org.postgresql.PGConnection;
import org.postgresql.jdbc.PreferQueryMode;
import org.postgresql.util.PGInterval;
import org.postgresql.util.PSQLException;

public class JdbcProgram {
    private static final String TABLE =
            "CREATE TABLE person (id serial PRIMARY KEY, name varchar(60) NOT NULL, email varchar(60) UNIQUE, "
                    + "note text, mood text, fixed char(6), salary numeric(12, 2), visits bigint, age int, "
                    + "level smallint, score float8, weight float4, active boolean, born date, opens time, "
                    + "made timestamp, seen timestamptz, span interval, photo bytea, token uuid)";
    private static final String INSERT =
            "INSERT INTO person (name, email, note, mood, fixed, salary, visits, age, level, score, weight, active, "
                    + "born, opens, made, seen, span, photo, token) "
                    + "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    private static final String[] NAMES = {
        "Ann Miller", "Bob 100%", "Carl_Under", "Dora\\Slash", "Änne Öz", "o'Hara", "bob jones", "ann lee"
    };

    enum Mood { HAPPY, SAD }

    /** Of each way its name and the properties of its connection. */
    private static final Map<String, Map<String, String>> WAYS = new LinkedHashMap<>();

    static {
        WAYS.put("", Map.of());
        WAYS.put("binary_", Map.of("prepareThreshold", "-1"));
        WAYS.put("simple_", Map.of("preferQueryMode", "simple"));
        WAYS.put("untyped_", Map.of("stringtype", "unspecified"));
        WAYS.put("rewritten_", Map.of("reWriteBatchedInserts", "true", "autosave", "always"));
        WAYS.put("fetched_", Map.of("defaultRowFetchSize", "3", "adaptiveFetch", "false"));
    }

    public static void main(String[] args) throws Exception {
        if (args[1].equals("create")) {
            try (Connection c = connect(args[0], Map.of()); Statement s = c.createStatement()) {
                s.execute(TABLE);
            }
            return;
        }
        Checks<Connection> checks = new Checks<>();
        setters(checks);
        conditions(checks);
        writes(checks);
        results(checks);
        errors(checks);
        try (Connection c = connect(args[0], Map.of())) {
            load(c);
        }
        for (Map.Entry<String, Map<String, String>> way : WAYS.entrySet()) {
            try (Connection c = connect(args[0], way.getValue())) {
                c.setAutoCommit(false);
                checks.runAll(way.getKey(), body -> {
                    try {
                        return body.run(c);
                    } finally {
                        c.rollback();
                    }
                });
            }
        }
    }

    private static Connection connect(String url, Map<String, String> more) throws SQLException {
        String[] address = Checks.address(url);
        Properties properties = new Properties();
        properties.setProperty("user", address[1]);
        properties.setProperty("password", address[2]);
        properties.putAll(more);
        return DriverManager.getConnection(address[0], properties);
    }

    private static Object[] person(int n) {
        return new Object[] {
            NAMES[n % 8], "p" + n + "@example.org", n % 3 == 0 ? null : "note " + n,
            (n % 2 == 0 ? Mood.HAPPY : Mood.SAD).name(), "f" + n, new BigDecimal(n * 1000 + ".25"),
            n * 10_000_000_000L, 20 + n, (short) n, n / 7.0, n / 4f, n % 2 == 0, LocalDate.of(1990 + n, n, 2 * n),
            LocalTime.of(n, 30), LocalDateTime.of(2020, 2, 29, n, 0, 1, 5000),
            OffsetDateTime.of(2024, n, 1, 12, 30, 5, 250_000_000, ZoneOffset.ofHours(n)),
            new PGInterval(0, n, n, 1, 2, 3.5), new byte[] {(byte) n, 0, -1}, new UUID(0, n)
        };
    }

    private static void load(Connection c) throws SQLException {
        try (PreparedStatement s = c.prepareStatement(INSERT)) {
            for (int n = 1; n <= 8; n++) {
                set(s, person(n));
                s.addBatch();
            }
            s.executeBatch();
        }
    }

    private static PreparedStatement set(PreparedStatement s, Object... values) throws SQLException {
        for (int n = 0; n < values.length; n++) {
            s.setObject(n + 1, values[n]);
        }
        return s;
    }

    /** The rows of a result with the types that the client sees. */
    private static List<Object> told(ResultSet rows) throws SQLException {
        ResultSetMetaData about = rows.getMetaData();
        List<Object> all = new ArrayList<>();
        for (int n = 1; n <= about.getColumnCount(); n++) {
            all.add(about.getColumnLabel(n) + " " + about.getColumnTypeName(n) + " " + about.getPrecision(n));
        }
        while (rows.next()) {
            List<Object> row = new ArrayList<>();
            for (int n = 1; n <= about.getColumnCount(); n++) {
                Object value = rows.getObject(n);
                row.add(value instanceof Array array ? Arrays.asList((Object[]) array.getArray()) : value);
            }
            all.add(row);
        }
        return all;
    }

    /** Executed six times, so that the driver prepares it on the server in between. */
    private static Object query(Connection c, String sql, Object... values) throws SQLException {
        Object first = null;
        try (PreparedStatement s = c.prepareStatement(sql)) {
            for (int n = 0; n < 6; n++) {
                try (ResultSet rows = set(s, values).executeQuery()) {
                    Object now = told(rows);
                    first = first == null ? now : first.equals(now) ? first : List.of("differs", first, now);
                }
            }
        }
        return first;
    }

    private static Object people(Connection c, String where, Object... values) throws SQLException {
        return query(c, "SELECT id FROM person WHERE " + where + " ORDER BY id", values);
    }

    private static void setters(Checks<Connection> checks) {
        String[] columns = INSERT.substring(INSERT.indexOf('(') + 1, INSERT.indexOf(')')).split(", ");
        for (int n = 0; n < columns.length; n++) {
            String column = columns[n];
            Object value = person(4)[n];
            checks.check("equal_" + column, c -> people(c, column + " = ?", value));
            checks.check("optional_" + column, c -> people(c, "CAST(? AS text) IS NULL OR " + column + " = ?", "x", value));
            checks.check("select_" + column, c -> query(c, "SELECT " + column + " FROM person ORDER BY id"));
        }
        checks.check("set_string", c -> typed(c, "name = ?", s -> s.setString(1, "o'Hara")));
        checks.check("set_null", c -> typed(c, "note = ?", s -> s.setNull(1, Types.VARCHAR)));
        checks.check("set_null_untyped", c -> typed(c, "note = ?", s -> s.setNull(1, Types.NULL)));
        checks.check("set_other", c -> typed(c, "mood = ?", s -> s.setObject(1, "SAD", Types.OTHER)));
        checks.check("set_enum", c -> typed(c, "mood = ?", s -> s.setObject(1, Mood.HAPPY.name(), Types.VARCHAR)));
        checks.check("set_number_as_text", c -> typed(c, "age > CAST(? AS int)", s -> s.setString(1, "24")));
        checks.check("set_long", c -> typed(c, "age > ?", s -> s.setLong(1, 24)));
        checks.check("set_int_for_bigint", c -> typed(c, "visits > ?", s -> s.setInt(1, 5)));
        checks.check("set_short", c -> typed(c, "level = ?", s -> s.setShort(1, (short) 3)));
        checks.check("set_double_for_numeric", c -> typed(c, "salary > ?", s -> s.setDouble(1, 4000.5)));
        checks.check("set_decimal_for_int", c -> typed(c, "age < ?", s -> s.setBigDecimal(1, new BigDecimal("23.5"))));
        checks.check("set_float", c -> typed(c, "weight = ?", s -> s.setFloat(1, 0.5f)));
        checks.check("set_date", c -> typed(c, "born = ?", s -> s.setDate(1, java.sql.Date.valueOf("1993-03-06"))));
        checks.check("set_time", c -> typed(c, "opens > ?", s -> s.setTime(1, java.sql.Time.valueOf("05:00:00"))));
        checks.check("set_timestamp", c -> typed(c, "made > ?",
                s -> s.setTimestamp(1, java.sql.Timestamp.valueOf("2020-02-29 04:00:00"))));
        checks.check("set_timestamp_for_zone", c -> typed(c, "seen > ?",
                s -> s.setTimestamp(1, java.sql.Timestamp.valueOf("2024-04-01 00:00:00"))));
        checks.check("set_bytes", c -> typed(c, "photo = ?", s -> s.setBytes(1, new byte[] {3, 0, -1})));
        checks.check("set_binary_stream", c -> typed(c, "photo = ?",
                s -> s.setBinaryStream(1, new ByteArrayInputStream(new byte[] {5, 0, -1}), 3)));
        checks.check("set_character_stream", c -> typed(c, "name = ?",
                s -> s.setCharacterStream(1, new StringReader("Änne Öz"), 7)));
        checks.check("set_array_of_text", c -> typed(c, "name = ANY (?)",
                s -> s.setArray(1, c.createArrayOf("text", new String[] {"o'Hara", "none"}))));
        checks.check("set_array_of_varchar", c -> typed(c, "name = ANY (?)",
                s -> s.setArray(1, c.createArrayOf("varchar", new String[] {"ann lee", null}))));
        checks.check("set_array_of_int", c -> typed(c, "age = ANY (?)",
                s -> s.setArray(1, c.createArrayOf("int4", new Integer[] {22, 25}))));
        checks.check("set_array_of_numeric", c -> typed(c, "salary = ANY (?)",
                s -> s.setArray(1, c.createArrayOf("numeric", new BigDecimal[] {new BigDecimal("2000.25")}))));
        checks.check("set_array_of_uuid", c -> typed(c, "token = ANY (?)",
                s -> s.setArray(1, c.createArrayOf("uuid", new UUID[] {new UUID(0, 6)}))));
    }

    private interface Setter {
        void set(PreparedStatement statement) throws SQLException;
    }

    private static Object typed(Connection c, String where, Setter setter) throws SQLException {
        try (PreparedStatement s = c.prepareStatement("SELECT id FROM person WHERE " + where + " ORDER BY id")) {
            setter.set(s);
            return told(s.executeQuery());
        }
    }

    private static void conditions(Checks<Connection> checks) {
        checks.check("optional_given", c -> people(c, "(CAST(? AS varchar) IS NULL OR name = ?)", "o'Hara", "o'Hara"));
        checks.check("optional_missing", c -> people(c, "(CAST(? AS varchar) IS NULL OR name = ?)", null, null));
        checks.check("optional_by_coalesce", c -> people(c, "name = coalesce(?, name)", new Object[] {null}));
        checks.check("null_safe", c -> people(c, "note IS NOT DISTINCT FROM ?", "note 4"));
        checks.check("like", c -> people(c, "name LIKE ?", "%ann%"));
        checks.check("like_escape", c -> people(c, "name LIKE ? ESCAPE '!'", "%!%%"));
        checks.check("like_escape_parameter", c -> people(c, "name LIKE ? ESCAPE ?", "%#_%", "#"));
        checks.check("like_escaped_syntax", c -> people(c, "name LIKE ? {escape '|'}", "%|_%"));
        checks.check("like_backslash", c -> people(c, "name LIKE ?", "%\\\\%"));
        checks.check("like_lower", c -> people(c, "lower(name) LIKE lower(?)", "ANN%"));
        checks.check("like_joined", c -> people(c, "name LIKE '%' || ? || '%'", "o"));
        checks.check("like_concat", c -> people(c, "name LIKE concat('%', CAST(? AS text), '%')", "b"));
        checks.check("not_like", c -> people(c, "name NOT LIKE ?", "%a%"));
        checks.check("ilike", c -> people(c, "name ILIKE ?", "BOB%"));
        checks.check("starts_with", c -> people(c, "starts_with(name, ?)", "Ann"));
        checks.check("in", c -> people(c, "name IN (?, ?, ?)", "o'Hara", "Ann Miller", "none"));
        checks.check("between_dates", c -> people(c, "born BETWEEN ? AND ?", LocalDate.of(1992, 1, 1), LocalDate.of(1995, 1, 1)));
        checks.check("date_escape", c -> people(c, "born > {d '1994-01-01'}"));
        checks.check("timestamp_escape", c -> people(c, "made > {ts '2020-02-29 05:00:00'}"));
        checks.check("function_escape", c -> query(c, "SELECT {fn ucase(name)}, {fn length(name)}, {fn concat(name, note)}, "
                + "{fn year(born)}, {fn left(name, 3)} FROM person ORDER BY id"));
        checks.check("or_and", c -> people(c, "(age = ? OR name = ?) AND active", 22, "o'Hara"));
        checks.check("row_compare", c -> people(c, "(age, name) > (?, ?)", 23, "a"));
        checks.check("subquery", c -> people(c, "salary > (SELECT avg(salary) FROM person WHERE age > ?)", 21));
        checks.check("exists", c -> people(c,
                "EXISTS (SELECT FROM person p WHERE p.name = person.name AND p.salary > ?)", new BigDecimal("3000")));
        checks.check("interval", c -> people(c, "made + CAST(? AS interval) > ?", "3 days", LocalDateTime.of(2020, 3, 3, 4, 0)));
        checks.check("case", c -> query(c, "SELECT CASE WHEN age > ? THEN 'old' ELSE 'young' END FROM person ORDER BY id", 24));
        checks.check("case_of_value", c -> query(c, "SELECT CASE mood WHEN 'SAD' THEN 1 ELSE 0 END FROM person ORDER BY id"));
        checks.check("arithmetic", c -> query(c, "SELECT salary * ?, age + ?, score / 2 FROM person ORDER BY id", new BigDecimal("1.1"), 1));
        checks.check("strings", c -> query(c, "SELECT upper(name), trim(fixed), substring(name from 2 for 3), "
                + "position('o' in name), name || ' <' || email || '>' FROM person ORDER BY id"));
        checks.check("dates", c -> query(c, "SELECT extract(year from born), date_trunc('month', made), born + 1, "
                + "age(made, timestamp '2019-01-01'), seen at time zone 'UTC' FROM person ORDER BY id"));
        checks.check("aggregates", c -> query(c, "SELECT count(note), sum(salary), avg(age), min(name), max(seen), "
                + "sum(visits), stddev(score), string_agg(name, ', ' ORDER BY name), bool_or(active) FROM person"));
        checks.check("percentiles", c -> query(c, "SELECT percentile_cont(?) WITHIN GROUP (ORDER BY score), "
                + "percentile_disc(0.5) WITHIN GROUP (ORDER BY name) FROM person", 0.25));
        checks.check("group_by", c -> query(c, "SELECT mood, count(*), sum(salary) FROM person GROUP BY mood HAVING sum(age) > ? ORDER BY mood", 10));
        checks.check("window", c -> query(c, "SELECT name, rank() OVER (PARTITION BY mood ORDER BY salary DESC), "
                + "lag(salary) OVER (ORDER BY id) FROM person ORDER BY id"));
        checks.check("page", c -> query(c, "SELECT name FROM person ORDER BY name LIMIT ? OFFSET ?", 3, 2));
        checks.check("page_fetch_first", c -> query(c, "SELECT name FROM person ORDER BY salary DESC OFFSET ? ROWS FETCH FIRST ? ROWS ONLY", 1, 2));
        checks.check("page_by_key", c -> query(c, "SELECT name, id FROM person WHERE (name, id) > (?, ?) ORDER BY name, id LIMIT 3", "Bob 100%", 0));
        checks.check("page_by_row_number", c -> query(c, "SELECT * FROM (SELECT name, row_number() OVER (ORDER BY born) n FROM person) p WHERE n BETWEEN ? AND ?", 2, 4));
        checks.check("distinct", c -> query(c, "SELECT DISTINCT mood FROM person ORDER BY mood"));
        checks.check("union", c -> query(c, "SELECT name FROM person WHERE age = ? UNION ALL SELECT note FROM person WHERE age = ?", 22, 22));
        checks.check("with", c -> query(c, "WITH p AS (SELECT * FROM person WHERE age > ?) SELECT name FROM p WHERE salary < ? ORDER BY id", 22, new BigDecimal("7000")));
        checks.check("for_update", c -> query(c, "SELECT id FROM person WHERE name = ? FOR UPDATE", "o'Hara"));
        checks.check("values", c -> query(c, "SELECT p.id FROM person p JOIN (VALUES (?, ?), (?, ?)) v (n, a) ON p.name = v.n AND p.age = v.a ORDER BY 1",
                "o'Hara", 25, "Ann Miller", 28));
    }

    private static void writes(Checks<Connection> checks) {
        checks.check("returned_keys", c -> {
            try (PreparedStatement s = c.prepareStatement("INSERT INTO person (name) VALUES (?)", Statement.RETURN_GENERATED_KEYS)) {
                s.setString(1, "new");
                int count = s.executeUpdate();
                return List.of(count, told(s.getGeneratedKeys()).size());
            }
        });
        checks.check("returned_columns", c -> {
            String[] names = {"name", "salary", "seen"};
            try (PreparedStatement s = c.prepareStatement("INSERT INTO person (name, salary, seen) VALUES (?, ?, ?)", names)) {
                set(s, "new", new BigDecimal("7.5"), OffsetDateTime.of(2024, 2, 29, 1, 2, 3, 0, ZoneOffset.UTC)).executeUpdate();
                return told(s.getGeneratedKeys());
            }
        });
        checks.check("returning", c -> query(c, "UPDATE person SET note = ? || name WHERE age > ? RETURNING name, note, salary", "of ", 25));
        checks.check("delete_returning", c -> query(c, "WITH gone AS (DELETE FROM person WHERE name LIKE ? RETURNING id, name) SELECT * FROM gone ORDER BY 1", "Ann%"));
        checks.check("batch", c -> {
            try (PreparedStatement s = c.prepareStatement(INSERT)) {
                for (int n = 1; n <= 9; n++) {
                    Object[] row = person(n);
                    row[1] = "batch" + n;
                    set(s, row).addBatch();
                }
                int rows = s.executeBatch().length;
                return List.of(rows, query(c, "SELECT count(*), sum(salary) FROM person"));
            }
        });
        checks.check("batch_returning_keys", c -> {
            String insert = "INSERT INTO person (name, mood) VALUES (?, ?)";
            try (PreparedStatement s = c.prepareStatement(insert, new String[] {"name", "mood"})) {
                for (int n = 1; n <= 130; n++) {
                    set(s, "batched " + n, "SAD").addBatch();
                }
                s.executeBatch();
                return told(s.getGeneratedKeys());
            }
        });
        checks.check("batch_of_updates", c -> {
            try (PreparedStatement s = c.prepareStatement("UPDATE person SET salary = salary + ?, note = ? WHERE name = ?")) {
                for (String name : NAMES) {
                    set(s, new BigDecimal("0.5"), "n " + name, name).addBatch();
                }
                List<Object> counts = new ArrayList<>();
                for (int count : s.executeBatch()) {
                    counts.add(count);
                }
                return List.of(counts, query(c, "SELECT salary, note FROM person ORDER BY id"));
            }
        });
        checks.check("batch_of_texts", c -> {
            try (Statement s = c.createStatement()) {
                s.addBatch("UPDATE person SET name = 'x' WHERE age = 22");
                s.addBatch("DELETE FROM person WHERE name = 'x'");
                s.executeBatch();
                return query(c, "SELECT count(*) FROM person");
            }
        });
        checks.check("several_statements", c -> {
            try (Statement s = c.createStatement()) {
                s.execute("UPDATE person SET note = 'n'; SELECT name FROM person WHERE note = 'n' AND age < 23 ORDER BY id");
                int count = s.getUpdateCount();
                s.getMoreResults();
                return List.of(count, told(s.getResultSet()));
            }
        });
        checks.check("upsert", c -> query(c, "INSERT INTO person (name, email, age) VALUES (?, ?, ?) ON CONFLICT (email) DO UPDATE "
                + "SET name = excluded.name, age = person.age + excluded.age RETURNING name, age", "again", "p3@example.org", 1));
        checks.check("upsert_nothing", c -> {
            try (PreparedStatement s = c.prepareStatement("INSERT INTO person (name, email) VALUES (?, ?) ON CONFLICT DO NOTHING")) {
                return set(s, "again", "p3@example.org").executeUpdate();
            }
        });
        checks.check("merge", c -> {
            String merge = "MERGE INTO person p USING (VALUES (CAST(? AS varchar), CAST(? AS int))) v (e, a) ON p.email = v.e "
                    + "WHEN MATCHED THEN UPDATE SET age = v.a WHEN NOT MATCHED THEN INSERT (name, email) VALUES ('m', v.e)";
            try (PreparedStatement s = c.prepareStatement(merge)) {
                return List.of(set(s, "p3@example.org", 99).executeUpdate(), query(c, "SELECT age FROM person ORDER BY id"));
            }
        });
        checks.check("update_of_nulls", c -> {
            try (PreparedStatement s = c.prepareStatement("UPDATE person SET note = ?, salary = ?, born = ?, photo = ? WHERE age = ?")) {
                s.setNull(1, Types.VARCHAR);
                s.setNull(2, Types.NUMERIC);
                s.setNull(3, Types.DATE);
                s.setNull(4, Types.BINARY);
                s.setInt(5, 22);
                return List.of(s.executeUpdate(), query(c, "SELECT note, salary, born, photo FROM person WHERE age = 22"));
            }
        });
        checks.check("copy_in", c -> {
            var copy = c.unwrap(PGConnection.class).getCopyAPI();
            long rows = copy.copyIn("COPY person (name, age, salary) FROM STDIN", new StringReader("copied\t70\t1.5\ntoo\t71\t\\N\n"));
            return List.of((int) rows, query(c, "SELECT name, age, salary FROM person WHERE age >= 70 ORDER BY age"));
        });
        checks.check("copy_out", c -> {
            var copy = c.unwrap(PGConnection.class).getCopyAPI();
            var out = new java.io.StringWriter();
            copy.copyOut("COPY (SELECT name, salary, born FROM person ORDER BY id) TO STDOUT (FORMAT csv)", out);
            return out.toString();
        });
    }

    private static void results(Checks<Connection> checks) {
        checks.check("all", c -> query(c, "SELECT name, email, note, mood, fixed, salary, visits, age, level, score, weight, active, "
                + "born, opens, made, seen, span, photo, token FROM person ORDER BY id"));
        checks.check("classes_of_time", c -> {
            try (Statement s = c.createStatement(); ResultSet rows = s.executeQuery("SELECT born, opens, made, seen, token FROM person ORDER BY id")) {
                List<Object> all = new ArrayList<>();
                while (rows.next()) {
                    all.add(List.of(rows.getObject(1, LocalDate.class), rows.getObject(2, LocalTime.class),
                            rows.getObject(3, LocalDateTime.class), rows.getObject(4, OffsetDateTime.class),
                            rows.getObject(5, UUID.class)));
                }
                return all;
            }
        });
        checks.check("getters", c -> {
            try (Statement s = c.createStatement(); ResultSet rows = s.executeQuery("SELECT * FROM person ORDER BY id LIMIT 2")) {
                List<Object> all = new ArrayList<>();
                while (rows.next()) {
                    all.add(Arrays.asList(rows.getString("name"), rows.getInt("age"), rows.getLong("visits"), rows.getBigDecimal("salary"),
                            rows.getDouble("score"), rows.getFloat("weight"), rows.getBoolean("active"), rows.getDate("born"),
                            rows.getTimestamp("seen"), rows.getBytes("photo"), rows.getString("salary"), rows.getString("seen"),
                            rows.getString("span"), rows.getString("token"), rows.getInt("level"), rows.getString("active")));
                }
                return all;
            }
        });
        checks.check("fetched_in_parts", c -> {
            try (PreparedStatement s = c.prepareStatement("SELECT name, salary FROM person WHERE age > ? ORDER BY id")) {
                s.setFetchSize(2);
                return told(set(s, 20).executeQuery());
            }
        });
        checks.check("max_rows", c -> {
            try (PreparedStatement s = c.prepareStatement("SELECT name FROM person ORDER BY name")) {
                s.setMaxRows(3);
                return told(s.executeQuery());
            }
        });
        checks.check("scrolled", c -> {
            try (Statement s = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_READ_ONLY)) {
                ResultSet rows = s.executeQuery("SELECT name FROM person ORDER BY id");
                rows.last();
                String last = rows.getString(1);
                rows.absolute(3);
                return List.of(last, rows.getString(1));
            }
        });
        checks.check("updated_in_place", c -> {
            try (Statement s = c.createStatement(ResultSet.TYPE_SCROLL_SENSITIVE, ResultSet.CONCUR_UPDATABLE)) {
                ResultSet rows = s.executeQuery("SELECT id, name, salary, note FROM person ORDER BY id");
                rows.next();
                rows.updateString("name", "changed");
                rows.updateBigDecimal("salary", new BigDecimal("1.5"));
                rows.updateNull("note");
                rows.updateRow();
                return query(c, "SELECT name, salary, note FROM person ORDER BY id");
            }
        });
        checks.check("arrays", c -> query(c, "SELECT array_agg(name ORDER BY id), array_agg(age ORDER BY id) FROM person"));
        checks.check("parameters_described", c -> {
            try (PreparedStatement s = c.prepareStatement("SELECT id FROM person WHERE name = ? AND salary > ? AND born = ?")) {
                if (c.unwrap(PGConnection.class).getPreferQueryMode() == PreferQueryMode.SIMPLE) {
                    return "not without the extended protocol";
                }
                var about = s.getParameterMetaData();
                return List.of(about.getParameterTypeName(1), about.getParameterTypeName(2), about.getParameterTypeName(3));
            }
        });
        checks.check("columns_described", c -> {
            DatabaseMetaData about = c.getMetaData();
            List<Object> all = new ArrayList<>();
            try (ResultSet rows = about.getColumns(null, "public", "person", "%")) {
                while (rows.next()) {
                    all.add(rows.getString("COLUMN_NAME") + " " + rows.getString("TYPE_NAME") + " " + rows.getInt("DATA_TYPE")
                            + " " + rows.getInt("COLUMN_SIZE") + " " + rows.getInt("DECIMAL_DIGITS") + " " + rows.getString("IS_NULLABLE"));
                }
            }
            return all;
        });
        checks.check("indexes_described", c -> {
            List<Object> all = new ArrayList<>();
            try (ResultSet rows = c.getMetaData().getIndexInfo(null, "public", "person", false, false)) {
                while (rows.next()) {
                    all.add(rows.getString("INDEX_NAME") + " " + rows.getString("COLUMN_NAME") + " " + rows.getBoolean("NON_UNIQUE"));
                }
            }
            return all;
        });
        checks.check("savepoint", c -> {
            Savepoint point = c.setSavepoint();
            try (Statement s = c.createStatement()) {
                s.executeUpdate("UPDATE person SET name = 'x'");
                c.rollback(point);
            }
            return people(c, "name = ?", "x");
        });
    }

    private static void errors(Checks<Connection> checks) {
        String insert = "INSERT INTO person (name, email, salary) VALUES (?, ?, ?)";
        checks.check("constraint_named", c -> {
            try (PreparedStatement s = c.prepareStatement(insert)) {
                set(s, "x", "p3@example.org", null).executeUpdate();
                return "no error";
            } catch (PSQLException error) {
                var about = error.getServerErrorMessage();
                return List.of(error.getSQLState(), about.getConstraint(), about.getTable(), about.getSchema());
            }
        });
        String[][] wrong = {
            {"unique", "UPDATE person SET email = ?", "same"}, {"not_null", "UPDATE person SET name = ?", null},
            {"too_long", "UPDATE person SET name = ?", "x".repeat(61)},
            {"no_number", "UPDATE person SET age = CAST(? AS int)", "x"}, {"no_date", "UPDATE person SET born = CAST(? AS date)", "2001-02-30"},
            {"no_column", "SELECT nosuch FROM person WHERE name = ?", "x"},
            {"division", "SELECT age / (age - age) FROM person WHERE name LIKE ?", "%"},
        };
        for (String[] one : wrong) {
            checks.check(one[0] + "_error", c -> {
                try (PreparedStatement s = c.prepareStatement(one[1])) {
                    return set(s, one[2]).execute();
                }
            });
        }
        checks.check("overflow_error", c -> {
            try (PreparedStatement s = c.prepareStatement("UPDATE person SET salary = ?")) {
                return set(s, new BigDecimal("1e12")).executeUpdate();
            }
        });
        checks.check("batch_error", c -> {
            try (PreparedStatement s = c.prepareStatement(insert)) {
                set(s, "x", "new1", BigDecimal.ONE).addBatch();
                set(s, "y", "p3@example.org", BigDecimal.ONE).addBatch();
                return s.executeBatch().length;
            }
        });
    }
}
