// What the programs in Java share; as ../checks.py, which says how they are run.

import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

/** The checks of a program, each with a name and a function of the program's session. */
final class Checks<S> {
    /** Gives a value that must not depend on where it runs. */
    interface Body<S> {
        Object run(S session) throws Exception;
    }

    /** Runs one check in a session whose changes are taken back. */
    interface Within<S> {
        Object around(Body<S> body) throws Exception;
    }

    private record Named<S>(String name, Body<S> body) {}

    private final List<Named<S>> list = new ArrayList<>();
    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    void check(String name, Body<S> body) {
        list.add(new Named<>(name, body));
    }

    void runAll(String prefix, Within<S> within) {
        for (Named<S> one : list) {
            String result;
            try {
                result = "\"value\": " + json(within.around(one.body));
            } catch (Exception error) {
                result = "\"error\": " + json(error.getClass().getSimpleName())
                        + ", \"sqlstate\": " + json(sqlstate(error))
                        + ", \"message\": " + json(String.valueOf(error.getMessage()));
            }
            out.println("{\"name\": " + json(prefix + one.name) + ", " + result + "}");
        }
    }

    private static String sqlstate(Throwable error) {
        for (; error != null; error = error.getCause()) {
            if (error instanceof SQLException found && found.getSQLState() != null) {
                return found.getSQLState();
            }
        }
        return null;
    }

    /** The address of JDBC, user and password of one of libpq's. */
    static String[] address(String url) {
        URI uri = URI.create(url);
        String[] who = uri.getUserInfo().split(":", 2);
        return new String[] {
            "jdbc:postgresql://" + uri.getHost() + ":" + uri.getPort() + uri.getPath(), who[0], who[1]
        };
    }

    /** A value as JSON can have it, with the types that clients see. */
    private static String json(Object value) {
        if (value == null || value instanceof Boolean || value instanceof Integer) {
            return String.valueOf(value);
        }
        if (value instanceof String text) {
            return quoted(text);
        }
        if (value instanceof byte[] bytes) {
            return quoted("bytes " + HexFormat.of().formatHex(bytes));
        }
        if (value instanceof Object[] values) {
            return json(List.of(values));
        }
        if (value instanceof Collection<?> values) {
            List<String> all = new ArrayList<>();
            for (Object one : values) {
                all.add(json(one));
            }
            return "[" + String.join(", ", all) + "]";
        }
        if (value instanceof Map<?, ?> values) {
            List<String> all = new ArrayList<>();
            values.forEach((key, one) -> all.add(json(String.valueOf(key)) + ": " + json(one)));
            return "{" + String.join(", ", all) + "}";
        }
        return quoted(value.getClass().getSimpleName() + " " + value);
    }

    private static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            switch (c) {
                case '"' -> out.append("\\\"");
                case '\\' -> out.append("\\\\");
                default -> out.append(c < ' ' ? String.format("\\u%04x", (int) c) : String.valueOf(c));
            }
        }
        return out.append('"').toString();
    }
}
