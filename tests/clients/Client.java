// A JDBC client for the tests: `Client URL USER PASSWORD MODE`, statements on standard
// input, separated by NUL. Prints rows tab-separated, a NUL after each statement.

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.Properties;

public class Client {
    public static void main(String[] args) throws Exception {
        String mode = args[3];
        Properties properties = new Properties();
        properties.setProperty("user", args[1]);
        properties.setProperty("password", args[2]);
        properties.setProperty("preferQueryMode", mode.equals("simple") ? "simple" : "extended");
        // -1: binary transfer from the first execution on.
        properties.setProperty(
                "prepareThreshold",
                switch (mode) {
                    case "binary" -> "-1";
                    case "prepared" -> "1";
                    default -> "5";
                });
        String input = new String(System.in.readAllBytes(), StandardCharsets.UTF_8);
        try (Connection connection = DriverManager.getConnection(args[0], properties)) {
            if (mode.equals("values")) {
                values(connection, input);
            } else {
                for (String query : input.split("\0")) {
                    print(connection, query);
                }
            }
        }
    }

    static void print(Connection connection, String query) throws SQLException {
        StringBuilder out = new StringBuilder();
        try (PreparedStatement statement = connection.prepareStatement(query)) {
            for (int round = 0; round < 3; round++) {
                out.setLength(0);
                try (ResultSet rows = statement.executeQuery()) {
                    int columns = rows.getMetaData().getColumnCount();
                    while (rows.next()) {
                        for (int c = 1; c <= columns; c++) {
                            String value = rows.getString(c);
                            out.append(c > 1 ? "\t" : "").append(value == null ? "NULL" : value);
                        }
                        out.append('\n');
                    }
                }
            }
        }
        System.out.print(out + "\0");
    }

    static void values(Connection connection, String schema) throws SQLException {
        connection.setSchema(schema);
        LocalDate day = LocalDate.of(2024, 2, 29);
        LocalDateTime time = LocalDateTime.of(2024, 2, 29, 1, 2, 3, 456_000_000);
        String insert =
                "INSERT INTO j (te, i4, i8, nu, da, ts, f8, bo, vc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
        try (PreparedStatement s =
                connection.prepareStatement(insert, Statement.RETURN_GENERATED_KEYS)) {
            s.setString(1, "grüße");
            s.setInt(2, 7);
            s.setLong(3, 5_000_000_000L);
            s.setBigDecimal(4, new BigDecimal("12.34"));
            s.setObject(5, day);
            s.setObject(6, time);
            s.setDouble(7, 0.1);
            s.setBoolean(8, true);
            s.setString(9, null);
            s.executeUpdate();
            try (ResultSet keys = s.getGeneratedKeys()) {
                same(keys.next(), true);
                same(keys.getString("te"), "grüße");
            }
        }
        String select = "SELECT * FROM j WHERE te = ? AND i4 = ? AND nu >= ? AND da = ?";
        try (PreparedStatement s = connection.prepareStatement(select)) {
            for (int round = 0; round < 10; round++) {
                s.setString(1, "grüße");
                s.setInt(2, 7);
                s.setBigDecimal(3, new BigDecimal("12"));
                s.setObject(4, day);
                try (ResultSet r = s.executeQuery()) {
                    same(r.next(), true);
                    same(r.getInt("i4"), 7);
                    same(r.getLong("i8"), 5_000_000_000L);
                    same(r.getBigDecimal("nu"), new BigDecimal("12.34"));
                    same(r.getObject("da", LocalDate.class), day);
                    same(r.getObject("ts", LocalDateTime.class), time);
                    same(r.getDouble("f8"), 0.1);
                    same(r.getBoolean("bo"), true);
                    same(r.getString("vc"), null);
                    same(r.getMetaData().getColumnTypeName(4), "int8");
                    same(r.next(), false);
                }
            }
        }
        connection.setAutoCommit(false);
        try (PreparedStatement s = connection.prepareStatement("INSERT INTO j (i4) VALUES (?)")) {
            for (int n = 1; n <= 20; n++) {
                s.setInt(1, n);
                s.addBatch();
            }
            same(s.executeBatch().length, 20);
        }
        connection.commit();
        try (Statement s = connection.createStatement()) {
            s.executeQuery("SELECT 1 / (i4 - i4) FROM j");
            throw new AssertionError("no error");
        } catch (SQLException e) {
            same(e.getSQLState(), "22012");
        }
        connection.rollback();
        List<Integer> all = inParts(connection, "SELECT i4 FROM j");
        same(all.size(), 21);
        same(inParts(connection, "UPDATE j SET i4 = i4 RETURNING i4"), all);
        connection.commit();
        System.out.println("ok");
    }

    /** Values of a result that is fetched three rows at a time, in order. */
    static List<Integer> inParts(Connection connection, String query) throws SQLException {
        List<Integer> values = new ArrayList<>();
        try (PreparedStatement s = connection.prepareStatement(query)) {
            s.setFetchSize(3);
            try (ResultSet r = s.executeQuery()) {
                while (r.next()) {
                    values.add(r.getInt(1));
                }
            }
        }
        Collections.sort(values);
        return values;
    }

    static void same(Object got, Object wanted) {
        if (!Objects.equals(got, wanted)) {
            throw new AssertionError("expected " + wanted + ", got " + got);
        }
    }
}
