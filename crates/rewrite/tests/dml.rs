//! INSERT, UPDATE, DELETE, MERGE: literals that go into protected columns.

mod common;
use common::{check, refused, schema, unchanged};

#[test]
fn insert() {
    check(
        &schema(),
        &[
            (
                "INSERT INTO upd VALUES (1, 'b', 3)",
                "INSERT INTO upd VALUES ('<<int4:1>>'::enc_int4, '<<b>>', 3)",
            ),
            (
                "INSERT INTO upd VALUES (1, 'b', 3), (NULL, DEFAULT, 4)",
                "INSERT INTO upd VALUES ('<<int4:1>>'::enc_int4, '<<b>>', 3), (NULL, DEFAULT, 4)",
            ),
            (
                "INSERT INTO upd (c, b) VALUES (3, 'b')",
                "INSERT INTO upd (c, b) VALUES (3, '<<b>>')",
            ),
            (
                "INSERT INTO upd (b) VALUES (5)",
                "INSERT INTO upd (b) VALUES ('<<5>>')",
            ),
            (
                "INSERT INTO upd (a) VALUES ('5')",
                "INSERT INTO upd (a) VALUES ('<<5>>')",
            ),
            (
                "INSERT INTO upd (a) VALUES (1 + 2)",
                "INSERT INTO upd (a) VALUES ('<<int4:1>>'::enc_int4 + '<<int4:2>>'::enc_int4)",
            ),
            (
                "INSERT INTO upd (a) VALUES ((SELECT 5))",
                "INSERT INTO upd (a) VALUES ((SELECT '<<int4:5>>'::enc_int4))",
            ),
            (
                "INSERT INTO upd (b, c) SELECT 'x', 5",
                "INSERT INTO upd (b, c) SELECT '<<x>>', 5",
            ),
            (
                "INSERT INTO upd (b) SELECT 'x' UNION SELECT 'y'",
                "INSERT INTO upd (b) SELECT '<<~text:x>>'::enc_text UNION SELECT '<<~text:y>>'::enc_text",
            ),
            (
                "INSERT INTO upd (b) VALUES ('x'), ('y') ORDER BY 1 LIMIT 1",
                "INSERT INTO upd (b) VALUES ('<<~text:x>>'::enc_text), ('<<~text:y>>'::enc_text) ORDER BY 1 LIMIT 1",
            ),
            (
                "INSERT INTO upd (b) VALUES ('x') LIMIT 1",
                "INSERT INTO upd (b) VALUES ('<<~text:x>>'::enc_text) LIMIT 1",
            ),
            (
                "INSERT INTO upd (b, c) SELECT 'x' AS q, 5 ORDER BY q",
                "INSERT INTO upd (b, c) SELECT '<<~text:x>>'::enc_text AS q, 5 ORDER BY q",
            ),
            (
                "INSERT INTO upd (b) SELECT DISTINCT 'x' FROM plain",
                "INSERT INTO upd (b) SELECT DISTINCT '<<~text:x>>'::enc_text FROM plain",
            ),
            (
                "INSERT INTO upd (b) SELECT 'x' LIMIT 1",
                "INSERT INTO upd (b) SELECT '<<x>>' LIMIT 1",
            ),
            (
                "INSERT INTO upd (a, c) SELECT i * 10, i FROM generate_series(1, 5) i",
                "INSERT INTO upd (a, c) SELECT i * '<<int4:10>>'::enc_int4, i FROM generate_series(1, 5) i",
            ),
            (
                "INSERT INTO upd (c) SELECT salary FROM plain WHERE name = 'a'",
                "INSERT INTO upd (c) SELECT salary FROM plain WHERE name = 'a'",
            ),
            (
                "INSERT INTO upd SELECT * FROM (VALUES (1, 'x', 2)) v",
                "INSERT INTO upd SELECT * FROM (VALUES ('<<int4:1>>'::enc_int4, '<<~text:x>>'::enc_text, 2)) v",
            ),
            (
                "WITH s AS (SELECT 7 AS v) INSERT INTO upd (a) SELECT v FROM s",
                "WITH s AS (SELECT '<<int4:7>>'::enc_int4 AS v) INSERT INTO upd (a) SELECT v FROM s",
            ),
            (
                "INSERT INTO upd (a, c) VALUES (1, 2) RETURNING a + 5, c + 5",
                "INSERT INTO upd (a, c) VALUES ('<<int4:1>>'::enc_int4, 2) RETURNING a + '<<int4:5>>'::enc_int4, c + 5",
            ),
            (
                "INSERT INTO upd DEFAULT VALUES",
                "INSERT INTO upd DEFAULT VALUES",
            ),
            (
                "INSERT INTO emp (tags) VALUES ('{a,\"b c\"}')",
                "INSERT INTO emp (tags) VALUES ('{a,\"b c\"}')"
                    .replace(
                        "'{a,\"b c\"}'",
                        "ARRAY['<<~text:a>>'::enc_text,'<<~text:b c>>'::enc_text]::enc_text[]",
                    )
                    .leak(),
            ),
            (
                "INSERT INTO emp (tags) VALUES (ARRAY['a', 'b'])",
                "INSERT INTO emp (tags) VALUES (ARRAY['<<~text:a>>'::enc_text, '<<~text:b>>'::enc_text])",
            ),
            (
                "INSERT INTO emp (active, hired) VALUES (true, '2020-01-01'), ('t', date '2020-01-02')",
                "INSERT INTO emp (active, hired) VALUES ('<<bool:true>>'::enc_bool, '<<2020-01-01>>'), ('<<t>>', enc_date '<<~date:2020-01-02>>')",
            ),
            (
                "INSERT INTO upd (a) VALUES (nextval('s'))",
                "INSERT INTO upd (a) VALUES (nextval('s'))",
            ),
            (
                "INSERT INTO upd (b) VALUES (CASE WHEN 1 = 1 THEN 'a' ELSE 'b' END)",
                "INSERT INTO upd (b) VALUES (CASE WHEN 1 = 1 THEN '<<~text:a>>'::enc_text ELSE '<<~text:b>>'::enc_text END)",
            ),
            (
                "INSERT INTO upd (b) VALUES (md5('a'))",
                "INSERT INTO upd (b) VALUES (md5('<<~text:a>>'::enc_text))",
            ),
        ],
    );
    refused(
        &schema(),
        &[
            "INSERT INTO comp VALUES (1, '(s3cret)')",
            "INSERT INTO comp VALUES (1, ROW('s3cret'))",
            "INSERT INTO upd SELECT * FROM pg_class",
            "INSERT INTO upd (nosuch) VALUES (5)",
            "INSERT INTO upd (b) SELECT value FROM json_each_text('{\"k\":\"s3cret\"}')",
            "INSERT INTO upd (b) SELECT x.v FROM json_to_recordset('[{\"v\":\"s3cret\"}]') AS x(v text)",
        ],
    );
}

#[test]
fn on_conflict() {
    check(
        &schema(),
        &[
            (
                "INSERT INTO upd VALUES (1, 'b', 3) ON CONFLICT (c) DO UPDATE SET a = 5, b = excluded.b || 'x', c = 4 WHERE upd.a < 9 AND excluded.c = 3",
                "INSERT INTO upd VALUES ('<<int4:1>>'::enc_int4, '<<b>>', 3) ON CONFLICT (c) DO UPDATE SET a = '<<int4:5>>'::enc_int4, b = excluded.b || '<<x>>', c = 4 WHERE upd.a < '<<int4:9>>'::enc_int4 AND excluded.c = 3",
            ),
            (
                "INSERT INTO upd (a) VALUES (1) ON CONFLICT ((a + 1)) WHERE a > 5 DO NOTHING",
                "INSERT INTO upd (a) VALUES ('<<int4:1>>'::enc_int4) ON CONFLICT ((a + '<<int4:1>>'::enc_int4)) WHERE a > '<<int4:5>>'::enc_int4 DO NOTHING",
            ),
            (
                "INSERT INTO upd AS u (a) VALUES (1) ON CONFLICT (c) DO UPDATE SET (a, c) = (2, 3) WHERE u.b = 'q'",
                "INSERT INTO upd AS u (a) VALUES ('<<int4:1>>'::enc_int4) ON CONFLICT (c) DO UPDATE SET (a, c) = ('<<int4:2>>'::enc_int4, 3) WHERE u.b = '<<q>>'",
            ),
        ],
    );
}

#[test]
fn update_and_delete() {
    check(
        &schema(),
        &[
            (
                "UPDATE upd SET a = 5, c = 6 WHERE b = 'x' AND c = 7",
                "UPDATE upd SET a = '<<int4:5>>'::enc_int4, c = 6 WHERE b = '<<x>>' AND c = 7",
            ),
            (
                "UPDATE upd SET (a, b, c) = (1, 'x', 2)",
                "UPDATE upd SET (a, b, c) = ('<<int4:1>>'::enc_int4, '<<x>>', 2)",
            ),
            (
                "UPDATE upd SET (a, c) = (SELECT 5, 6)",
                "UPDATE upd SET (a, c) = (SELECT '<<int4:5>>'::enc_int4, 6)",
            ),
            (
                "UPDATE upd SET a = a + 1, b = NULL, c = DEFAULT",
                "UPDATE upd SET a = a + '<<int4:1>>'::enc_int4, b = NULL, c = DEFAULT",
            ),
            (
                "UPDATE upd u SET a = p.salary FROM plain p WHERE p.id = 1 AND u.a = 2",
                "UPDATE upd u SET a = p.salary FROM plain p WHERE p.id = 1 AND u.a = '<<int4:2>>'::enc_int4",
            ),
            (
                "UPDATE plain p SET salary = 5 FROM emp e WHERE e.id = p.id AND e.salary > 6",
                "UPDATE plain p SET salary = 5 FROM emp e WHERE e.id = p.id AND e.salary > '<<int4:6>>'::enc_int4",
            ),
            (
                "UPDATE emp SET tags[1] = 'x' RETURNING salary + 1",
                "UPDATE emp SET tags[1] = '<<x>>' RETURNING salary + '<<int4:1>>'::enc_int4",
            ),
            (
                "DELETE FROM upd USING plain p WHERE upd.a = 5 AND p.id = 6 RETURNING *",
                "DELETE FROM upd USING plain p WHERE upd.a = '<<int4:5>>'::enc_int4 AND p.id = 6 RETURNING *",
            ),
            (
                "DELETE FROM upd WHERE CURRENT OF c",
                "DELETE FROM upd WHERE CURRENT OF c",
            ),
        ],
    );
    unchanged(
        &schema(),
        &[
            "UPDATE plain SET salary = 5, doc = '{\"a\": 1}' WHERE name = 'x'",
            "DELETE FROM other.emp WHERE salary = 5",
        ],
    );
    refused(&schema(), &["UPDATE comp SET addr.street = 's3cret'"]);
}

#[test]
fn merge() {
    check(
        &schema(),
        &[(
            "MERGE INTO upd u USING (VALUES (1, 'x')) AS s(i, n) ON u.c = s.i AND u.a = 3 WHEN MATCHED AND u.b = 'q' THEN UPDATE SET b = s.n, a = 4 WHEN NOT MATCHED THEN INSERT (a, b, c) VALUES (5, s.n, 6)",
            "MERGE INTO upd u USING (VALUES (1, '<<~text:x>>'::enc_text)) AS s(i, n) ON u.c = s.i AND u.a = '<<int4:3>>'::enc_int4 WHEN MATCHED AND u.b = '<<q>>' THEN UPDATE SET b = s.n, a = '<<int4:4>>'::enc_int4 WHEN NOT MATCHED THEN INSERT (a, b, c) VALUES ('<<int4:5>>'::enc_int4, s.n, 6)",
        )],
    );
}
