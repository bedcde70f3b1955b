//! Scopes: subqueries, joins, WITH, set operations, VALUES, whole rows. A bug
//! here loses track of what a name means, and a literal goes in the clear.

mod common;
use common::{check, one, refused, schema, unchanged};

#[test]
fn subqueries() {
    check(
        &schema(),
        &[
            (
                "SELECT * FROM (SELECT salary AS s FROM emp) x WHERE x.s = 5",
                "SELECT * FROM (SELECT salary AS s FROM emp) x WHERE x.s = '<<int4:5>>'::enc_int4",
            ),
            (
                "SELECT * FROM (SELECT salary FROM emp) x(q) WHERE q = 5",
                "SELECT * FROM (SELECT salary FROM emp) x(q) WHERE q = '<<int4:5>>'::enc_int4",
            ),
            (
                "SELECT * FROM emp WHERE 5 IN (SELECT salary FROM emp)",
                "SELECT * FROM emp WHERE '<<int4:5>>'::enc_int4 IN (SELECT salary FROM emp)",
            ),
            (
                "SELECT * FROM emp WHERE salary IN (SELECT 5)",
                "SELECT * FROM emp WHERE salary IN (SELECT '<<int4:5>>'::enc_int4)",
            ),
            (
                "SELECT * FROM emp WHERE name = (SELECT 'a')",
                "SELECT * FROM emp WHERE name = (SELECT '<<~text:a>>'::enc_text)",
            ),
            (
                "SELECT * FROM emp WHERE salary > (SELECT avg(salary) FROM emp) * 0.5",
                "SELECT * FROM emp WHERE salary > (SELECT avg(salary) FROM emp) * '<<numeric:0.5>>'::enc_numeric",
            ),
            (
                "SELECT * FROM emp e WHERE EXISTS (SELECT 1 FROM plain p WHERE p.id = 3 AND e.salary = 4)",
                "SELECT * FROM emp e WHERE EXISTS (SELECT 1 FROM plain p WHERE p.id = 3 AND e.salary = '<<int4:4>>'::enc_int4)",
            ),
            (
                "SELECT * FROM plain p, LATERAL (SELECT salary + 1 AS s FROM emp e WHERE e.id = p.id) q WHERE q.s = 3",
                "SELECT * FROM plain p, LATERAL (SELECT salary + '<<int4:1>>'::enc_int4 AS s FROM emp e WHERE e.id = p.id) q WHERE q.s = '<<int4:3>>'::enc_int4",
            ),
            (
                "SELECT (SELECT name FROM emp LIMIT 1) = 'a'",
                "SELECT (SELECT name FROM emp LIMIT 1) = '<<a>>'",
            ),
            (
                "SELECT * FROM emp WHERE (name, salary) IN (SELECT 'a', 5)",
                "SELECT * FROM emp WHERE (name, salary) IN (SELECT '<<~text:a>>'::enc_text, '<<int4:5>>'::enc_int4)",
            ),
            (
                "SELECT * FROM emp WHERE salary = ANY (ARRAY(SELECT 5))",
                "SELECT * FROM emp WHERE salary = ANY (ARRAY(SELECT '<<int4:5>>'::enc_int4))",
            ),
            (
                "SELECT * FROM (SELECT 'a' AS c) s, emp WHERE s.c = 'b' AND s.c = emp.name",
                "SELECT * FROM (SELECT '<<~text:a>>'::enc_text AS c) s, emp WHERE s.c = '<<b>>' AND s.c = emp.name",
            ),
        ],
    );
}

#[test]
fn joins_and_aliases() {
    check(
        &schema(),
        &[
            (
                "SELECT * FROM plain emp WHERE salary = 5 AND emp.name = 'a'",
                "SELECT * FROM plain emp WHERE salary = 5 AND emp.name = 'a'",
            ),
            (
                "SELECT * FROM emp plain WHERE plain.salary = 5",
                "SELECT * FROM emp plain WHERE plain.salary = '<<int4:5>>'::enc_int4",
            ),
            (
                "SELECT * FROM public.emp WHERE public.emp.salary = 5",
                "SELECT * FROM public.emp WHERE public.emp.salary = '<<int4:5>>'::enc_int4",
            ),
            (
                "SELECT * FROM EMP e WHERE E.SALARY = 5",
                "SELECT * FROM EMP e WHERE E.SALARY = '<<int4:5>>'::enc_int4",
            ),
            (
                "SELECT * FROM \"Odd Name\" o WHERE o.\"Sal Ary\" = 5",
                "SELECT * FROM \"Odd Name\" o WHERE o.\"Sal Ary\" = '<<int4:5>>'::enc_int4",
            ),
            (
                "SELECT * FROM plain JOIN emp USING (salary) WHERE salary = 5",
                "SELECT * FROM plain JOIN emp USING (salary) WHERE salary = '<<int4:5>>'::enc_int4",
            ),
            (
                "SELECT * FROM plain NATURAL JOIN emp WHERE name = 'a'",
                "SELECT * FROM plain NATURAL JOIN emp WHERE name = '<<a>>'",
            ),
            (
                "SELECT * FROM (plain p JOIN emp e ON p.id = e.id) AS j(a,b,c,d,f,g,h,salary2) WHERE j.salary2 = 'x'",
                "SELECT * FROM (plain p JOIN emp e ON p.id = e.id) AS j(a,b,c,d,f,g,h,salary2) WHERE j.salary2 = '<<x>>'",
            ),
            (
                "SELECT * FROM plain p LEFT JOIN emp e ON e.salary = 5 AND p.salary = 5 WHERE p.id = 3",
                "SELECT * FROM plain p LEFT JOIN emp e ON e.salary = '<<int4:5>>'::enc_int4 AND p.salary = 5 WHERE p.id = 3",
            ),
            (
                "SELECT e.*, 5 FROM emp e ORDER BY e.salary + 5, 1",
                "SELECT e.*, 5 FROM emp e ORDER BY e.salary + '<<int4:5>>'::enc_int4, 1",
            ),
            (
                "SELECT (e).salary + 1 FROM emp e",
                "SELECT (e).salary + '<<int4:1>>'::enc_int4 FROM emp e",
            ),
            (
                "SELECT x.salary + 1 FROM (SELECT (e).* FROM emp e) x",
                "SELECT x.salary + '<<int4:1>>'::enc_int4 FROM (SELECT (e).* FROM emp e) x",
            ),
            (
                "SELECT * FROM emp WHERE emp IS NULL",
                "SELECT * FROM emp WHERE emp IS NULL",
            ),
            (
                "SELECT i, salary + i FROM generate_series(1, 10) i, emp WHERE i < 5",
                "SELECT i, salary + i FROM generate_series(1, 10) i, emp WHERE i < 5",
            ),
            (
                "SELECT * FROM emp JOIN unnest(ARRAY['a','b']) u ON u = name",
                "SELECT * FROM emp JOIN unnest(ARRAY['<<~text:a>>'::enc_text,'<<~text:b>>'::enc_text]) u ON u = name",
            ),
            (
                "SELECT * FROM emp TABLESAMPLE system (10) WHERE salary = 5",
                "SELECT * FROM emp TABLESAMPLE system (10) WHERE salary = '<<int4:5>>'::enc_int4",
            ),
            (
                "SELECT tags[1] = 'x', tags[2:3] FROM emp",
                "SELECT tags[1] = '<<x>>', tags[2:3] FROM emp",
            ),
        ],
    );
    refused(
        &schema(),
        &[
            "SELECT * FROM emp, nowhere WHERE x = 's3cret'",
            "SELECT nocolumn FROM emp",
            "SELECT * FROM emp WHERE emp = ROW(1,'s3cret')",
            "SELECT * FROM comp WHERE (addr).street = 's3cret'",
            "SELECT * FROM emp, json_to_recordset('[{\"a\":\"s3cret\"}]') AS j(a text) WHERE j.a = name",
            "SELECT * FROM emp, jsonb_each('{\"a\":1}') j WHERE j.value = salary",
        ],
    );
}

#[test]
fn with_and_sets() {
    check(
        &schema(),
        &[
            (
                "WITH c AS (SELECT salary AS s FROM emp) SELECT * FROM c WHERE s = 5",
                "WITH c AS (SELECT salary AS s FROM emp) SELECT * FROM c WHERE s = '<<int4:5>>'::enc_int4",
            ),
            (
                "WITH c(x) AS (SELECT salary FROM emp) SELECT * FROM c a, c b WHERE a.x = 5",
                "WITH c(x) AS (SELECT salary FROM emp) SELECT * FROM c a, c b WHERE a.x = '<<int4:5>>'::enc_int4",
            ),
            (
                "WITH c AS (SELECT 'a' AS v) SELECT * FROM c JOIN emp ON c.v = emp.name",
                "WITH c AS (SELECT '<<~text:a>>'::enc_text AS v) SELECT * FROM c JOIN emp ON c.v = emp.name",
            ),
            (
                "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 10) SELECT * FROM r",
                "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 10) SELECT * FROM r",
            ),
            (
                "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 10) SELECT * FROM r, emp WHERE n = salary",
                "WITH RECURSIVE r(n) AS (SELECT '<<int4:1>>'::enc_int4 AS \"?column?\" UNION ALL SELECT n + '<<int4:1>>'::enc_int4 FROM r WHERE n < '<<int4:10>>'::enc_int4) SELECT * FROM r, emp WHERE n = salary",
            ),
            (
                "WITH RECURSIVE r AS (SELECT id, salary FROM emp WHERE id = 1 UNION ALL SELECT e.id, r.salary + 1 FROM r JOIN emp e ON e.id = r.id WHERE r.salary < 9) SELECT * FROM r",
                "WITH RECURSIVE r AS (SELECT id, (salary)::enc_int4 FROM emp WHERE id = 1 UNION ALL SELECT e.id, r.salary + '<<int4:1>>'::enc_int4 FROM r JOIN emp e ON e.id = r.id WHERE r.salary < '<<int4:9>>'::enc_int4) SELECT * FROM r",
            ),
            // VALUES takes a string for text by itself.
            (
                "VALUES (1, 'x') UNION SELECT salary, name FROM emp",
                "VALUES ('<<int4:1>>'::enc_int4, '<<~text:x>>'::enc_text) UNION SELECT salary, name FROM emp",
            ),
            // Of the family `rnd_`, types of two arms meet as those of the family `enc_`.
            (
                "SELECT salary FROM emp UNION SELECT salary * 1.5 FROM emp UNION SELECT salary FROM emp",
                "SELECT (salary)::enc_int4 FROM emp UNION SELECT (salary * '<<numeric:1.5>>'::enc_numeric)::enc_numeric AS \"?column?\" FROM emp UNION SELECT (salary)::enc_int4 FROM emp",
            ),
            (
                "SELECT (dept * dept) FROM emp UNION SELECT salary FROM emp",
                "SELECT ((dept * dept)::enc_int4) AS \"?column?\" FROM emp UNION SELECT salary FROM emp",
            ),
            (
                "WITH RECURSIVE r (s) AS (SELECT salary FROM emp UNION SELECT e.salary FROM r JOIN emp e ON r.s = e.salary) TABLE r",
                "WITH RECURSIVE r (s) AS (SELECT salary FROM emp UNION SELECT e.salary FROM r JOIN emp e ON r.s = e.salary) TABLE r",
            ),
            (
                "SELECT name FROM emp UNION SELECT 'x' ORDER BY 1",
                "SELECT name FROM emp UNION SELECT '<<x>>' ORDER BY 1",
            ),
            (
                "SELECT 5 UNION ALL SELECT 6 EXCEPT SELECT salary FROM emp",
                "SELECT '<<int4:5>>'::enc_int4 AS \"?column?\" UNION ALL SELECT '<<int4:6>>'::enc_int4 AS \"?column?\" EXCEPT SELECT salary FROM emp",
            ),
            (
                "SELECT * FROM (VALUES (1,'a'),(2,'b')) v(i,n) JOIN emp ON n = name AND i = id",
                "SELECT * FROM (VALUES (1,'<<~text:a>>'::enc_text),(2,'<<~text:b>>'::enc_text)) v(i,n) JOIN emp ON n = name AND i = id",
            ),
            (
                "SELECT DISTINCT ON (salary % 2) * FROM emp",
                "SELECT DISTINCT ON (salary % '<<int4:2>>'::enc_int4) * FROM emp",
            ),
            (
                "SELECT dept, salary / 10 AS b, count(*) FROM emp GROUP BY GROUPING SETS ((dept), (b), (salary / 10), ()) HAVING max(salary) > 5",
                "SELECT dept, salary / '<<int4:10>>'::enc_int4 AS b, count(*) FROM emp GROUP BY GROUPING SETS ((dept), (b), (salary / '<<int4:10>>'::enc_int4), ()) HAVING max(salary) > '<<int4:5>>'::enc_int4",
            ),
            (
                "SELECT rank() OVER w FROM emp WINDOW w AS (PARTITION BY salary / 10 ORDER BY name || 'x') ORDER BY 1 FETCH FIRST 5 ROWS ONLY",
                "SELECT rank() OVER w FROM emp WINDOW w AS (PARTITION BY salary / '<<int4:10>>'::enc_int4 ORDER BY name || '<<x>>') ORDER BY 1 FETCH FIRST 5 ROWS ONLY",
            ),
            ("TABLE emp", "TABLE emp"),
            (
                "WITH emp AS (SELECT 5 AS salary) SELECT * FROM emp WHERE salary = 5",
                "WITH emp AS (SELECT 5 AS salary) SELECT * FROM emp WHERE salary = 5",
            ),
            (
                "WITH d AS (DELETE FROM emp WHERE salary = 5 RETURNING name) SELECT * FROM d WHERE name = 'a'",
                "WITH d AS (DELETE FROM emp WHERE salary = '<<int4:5>>'::enc_int4 RETURNING name) SELECT * FROM d WHERE name = '<<a>>'",
            ),
        ],
    );
    unchanged(
        &schema(),
        &["SELECT * FROM plain UNION SELECT id, name, 5, at, doc, arr FROM plain"],
    );
}

#[test]
fn plain_beside_protected() {
    check(
        &schema(),
        &[
            // The literal is part of what becomes protected.
            (
                "SELECT * FROM emp WHERE name = note || 'x'",
                "SELECT * FROM emp WHERE name = note::pg_catalog.text::enc_text || '<<~text:x>>'::enc_text",
            ),
            // The format is not.
            (
                "SELECT * FROM emp, plain p WHERE emp.name = to_char(p.at, 'YYYY')",
                "SELECT * FROM emp, plain p WHERE emp.name = to_char(p.at, 'YYYY')",
            ),
            (
                "SELECT * FROM emp WHERE hired > current_date - 30",
                "SELECT * FROM emp WHERE hired > current_date - '<<int4:30>>'::enc_int4",
            ),
            (
                "SELECT * FROM emp WHERE seen > now() - interval '1 day'",
                "SELECT * FROM emp WHERE seen > now() - enc_interval '<<~interval:1 day>>'",
            ),
        ],
    );
}

/// A literal is used as a plain value first, and meets something protected later.
#[test]
fn late_meetings() {
    refused(
        &schema(),
        &[
            "WITH c AS (SELECT 's3cret' AS v) SELECT v::xml FROM c, emp WHERE v = name",
            "SELECT raise_pay(1, 2, 73313)",
            "INSERT INTO upd VALUES (1, 'x', 2, 's3cret')",
        ],
    );
    check(
        &schema(),
        &[(
            "WITH c AS (SELECT 'a' AS v) SELECT upper(v) || 'q', coalesce(v, 'z') = 'y' FROM c, emp WHERE v = name",
            "WITH c AS (SELECT '<<~text:a>>'::enc_text AS v) SELECT upper(v) || '<<q>>', coalesce(v, '<<z>>') = '<<y>>' FROM c, emp WHERE v = name",
        )],
    );
}

/// The edits do not change the names of columns.
#[test]
fn column_names() {
    check(
        &schema(),
        &[
            (
                "SELECT salary::text, (salary + 1)::text, id FROM emp",
                "SELECT salary::enc_text, (salary + '<<int4:1>>'::enc_int4)::enc_text AS \"text\", id FROM emp",
            ),
            (
                "SELECT 5, 'x' FROM plain UNION SELECT salary, name FROM emp",
                "SELECT '<<int4:5>>'::enc_int4 AS \"?column?\", '<<x>>' FROM plain UNION SELECT salary, name FROM emp",
            ),
            (
                "SELECT date '2020-01-01' UNION SELECT hired FROM emp",
                "SELECT enc_date '<<~date:2020-01-01>>' AS \"date\" UNION SELECT hired FROM emp",
            ),
            (
                "SELECT (CASE WHEN id = 1 THEN salary END)::text AS t FROM emp",
                "SELECT (CASE WHEN id = 1 THEN salary END)::enc_text AS t FROM emp",
            ),
            (
                "SELECT -salary::int8 IS DISTINCT FROM 5, CAST(salary || 'x' AS varchar(3)) FROM emp",
                "SELECT -salary::enc_int8 IS DISTINCT FROM '<<int4:5>>'::enc_int4, CAST(salary || '<<x>>' AS enc_varchar(3)) AS \"varchar\" FROM emp",
            ),
            (
                "UPDATE upd SET a = a RETURNING (a + 1)::int8",
                "UPDATE upd SET a = a RETURNING (a + '<<int4:1>>'::enc_int4)::enc_int8 AS \"int8\"",
            ),
        ],
    );
}

/// Constants that the grammar puts in stand nowhere in the text.
#[test]
fn constants_of_the_grammar() {
    check(
        &schema(),
        &[
            (
                "SELECT id FROM emp WHERE salary > 5 ORDER BY id FETCH FIRST ROW ONLY",
                "SELECT id FROM emp WHERE salary > '<<int4:5>>'::enc_int4 ORDER BY id FETCH FIRST ROW ONLY",
            ),
            (
                "WITH RECURSIVE t(id) AS (SELECT id FROM emp UNION ALL SELECT e.id FROM emp e, t WHERE e.salary = 7 AND e.dept = t.id) CYCLE id SET looped USING way SELECT id FROM t WHERE NOT looped",
                "WITH RECURSIVE t(id) AS (SELECT id FROM emp UNION ALL SELECT e.id FROM emp e, t WHERE e.salary = '<<int4:7>>'::enc_int4 AND e.dept = t.id) CYCLE id SET looped USING way SELECT id FROM t WHERE NOT looped",
            ),
        ],
    );
}

/// `WITH RECURSIVE` names what comes later; a table of the same name is another thing.
/// A wrong proxy takes `plain` for the table, whose names are not protected.
#[test]
fn later_queries_of_with() {
    check(
        &schema(),
        &[
            (
                "WITH RECURSIVE a AS (SELECT id FROM plain WHERE name = 's3cret'), plain AS (SELECT id, name FROM emp) SELECT id FROM a",
                "WITH RECURSIVE a AS (SELECT id FROM plain WHERE name = '<<s3cret>>'), plain AS (SELECT id, name FROM emp) SELECT id FROM a",
            ),
            (
                "WITH RECURSIVE a(x) AS (SELECT n FROM b UNION ALL SELECT x FROM a, emp WHERE x = 'p'), b(n) AS MATERIALIZED (SELECT name FROM emp) SELECT count(*) FROM a WHERE x = 'q'",
                "WITH RECURSIVE a(x) AS (SELECT (n)::enc_text FROM b UNION ALL SELECT x FROM a, emp WHERE x = '<<p>>'), b(n) AS MATERIALIZED (SELECT name FROM emp) SELECT count(*) FROM a WHERE x = '<<q>>'",
            ),
        ],
    );
    unchanged(
        &schema(),
        &[
            "WITH a AS (SELECT id FROM plain WHERE name = 'open'), plain AS (SELECT id, name FROM emp) SELECT id FROM a",
        ],
    );
    let mutual = "WITH RECURSIVE a AS (SELECT * FROM b WHERE name = 's3cret'), b AS (SELECT name FROM a, emp) SELECT 1";
    let refusal = one(mutual, &schema()).unwrap_err();
    assert_eq!(
        refusal.message,
        "mutual recursion between WITH items is not implemented"
    );
}

/// What is missing has PostgreSQL's SQLSTATE.
#[test]
fn what_does_not_exist() {
    for (sql, sqlstate, message) in [
        (
            "SELECT nobody FROM emp",
            "42703",
            "column \"nobody\" does not exist",
        ),
        (
            "SELECT e.nobody FROM emp e",
            "42703",
            "column e.nobody does not exist",
        ),
        (
            "SELECT emp.id FROM emp e",
            "42P01",
            "missing FROM-clause entry for table \"emp\"",
        ),
        (
            "SELECT x.* FROM emp",
            "42P01",
            "missing FROM-clause entry for table \"x\"",
        ),
    ] {
        let refusal = one(sql, &schema()).unwrap_err();
        assert_eq!(
            (refusal.sqlstate, refusal.message.as_str()),
            (sqlstate, message)
        );
    }
}

/// Literals that turn out to meet something protected after a plain context has taken them. A wrong
/// proxy sends them in the clear, or lets the server report the error in words of types.
#[test]
fn literals_that_meet_late() {
    refused(
        &schema(),
        &[
            "SELECT FROM json_to_recordset('[{\"a\":\"s3cret\"}]') AS j(a enc_text)",
            "SELECT FROM (SELECT name, 's3cret' AS v FROM emp) e WHERE v::xid IS NOT NULL AND v = name",
            "SELECT FROM (SELECT name, upper(note) AS v FROM emp UNION SELECT name, 's3cret' FROM emp) e \
             WHERE v = name",
        ],
    );
}
