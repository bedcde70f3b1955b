//! SQL that only PostgreSQL 16 to 18 understand. Right answer: its literals are sealed where they meet
//! something protected, or the statement is refused. The bug: a construct that the binder takes for
//! another one leaves a literal in the text.

mod common;
use common::{check, refused, schema, unchanged};

#[test]
fn merge() {
    check(
        &schema(),
        &[
            (
                "MERGE INTO emp e USING plain p ON e.id = p.id WHEN NOT MATCHED BY SOURCE AND e.salary > 77 \
                 THEN UPDATE SET name = 's3cret' RETURNING merge_action(), merge_action() = 'UPDATE', e.salary + 79",
                "MERGE INTO emp e USING plain p ON e.id = p.id WHEN NOT MATCHED BY SOURCE AND e.salary > \
                 '<<int4:77>>'::enc_int4 THEN UPDATE SET name = '<<s3cret>>' RETURNING merge_action(), \
                 merge_action() = 'UPDATE', e.salary + '<<int4:79>>'::enc_int4",
            ),
            (
                "WITH m AS (MERGE INTO emp e USING plain p ON e.id = p.id WHEN MATCHED THEN DELETE \
                 RETURNING old.salary) SELECT salary = 79 FROM m",
                "WITH m AS (MERGE INTO emp e USING plain p ON e.id = p.id WHEN MATCHED THEN DELETE \
                 RETURNING old.salary) SELECT salary = '<<int4:79>>'::enc_int4 FROM m",
            ),
            // The source's columns come first.
            (
                "WITH m (x) AS (MERGE INTO plain p USING (SELECT salary FROM emp) e ON e.salary IS NULL \
                 WHEN MATCHED THEN DELETE RETURNING *) SELECT FROM m WHERE x = 77",
                "WITH m (x) AS (MERGE INTO plain p USING (SELECT salary FROM emp) e ON e.salary IS NULL \
                 WHEN MATCHED THEN DELETE RETURNING *) SELECT FROM m WHERE x = '<<int4:77>>'::enc_int4",
            ),
        ],
    );
}

#[test]
fn rows_before_and_after() {
    check(
        &schema(),
        &[
            (
                "UPDATE emp SET salary = 5 RETURNING old.salary = 77, new.name || 's3cret'",
                "UPDATE emp SET salary = '<<int4:5>>'::enc_int4 RETURNING old.salary = '<<int4:77>>'::enc_int4, \
                 new.name || '<<s3cret>>'",
            ),
            (
                "DELETE FROM emp RETURNING WITH (OLD AS o, NEW AS n) o.salary = 77, n.name || 's3cret', o.*",
                "DELETE FROM emp RETURNING WITH (OLD AS o, NEW AS n) o.salary = '<<int4:77>>'::enc_int4, \
                 n.name || '<<s3cret>>', o.*",
            ),
        ],
    );
    unchanged(
        &schema(),
        &["UPDATE plain SET salary = 5 RETURNING WITH (OLD AS o) o.salary = 77"],
    );
}

#[test]
fn expressions() {
    check(
        &schema(),
        &[
            (
                "SELECT any_value(salary) + 77 FROM emp HAVING any_value(name) = 's3cret'",
                "SELECT any_value(salary) + '<<int4:77>>'::enc_int4 FROM emp HAVING any_value(name) = '<<s3cret>>'",
            ),
            (
                "SELECT FROM (SELECT salary FROM emp) WHERE salary = 77",
                "SELECT FROM (SELECT salary FROM emp) WHERE salary = '<<int4:77>>'::enc_int4",
            ),
            (
                "ALTER TABLE upd ALTER COLUMN a SET EXPRESSION AS (c + 77)",
                "ALTER TABLE upd ALTER COLUMN a SET EXPRESSION AS (c + '<<int4:77>>'::enc_int4)",
            ),
            (
                "CREATE TABLE g (a enc_int4, b enc_int4 GENERATED ALWAYS AS (a + 77) VIRTUAL)",
                "CREATE TABLE g (a enc_int4, b enc_int4 GENERATED ALWAYS AS (a + '<<int4:77>>'::enc_int4) VIRTUAL)",
            ),
            (
                "ALTER TABLE upd ADD CONSTRAINT x CHECK (a > 77) NOT ENFORCED",
                "ALTER TABLE upd ADD CONSTRAINT x CHECK (a > '<<int4:77>>'::enc_int4) NOT ENFORCED",
            ),
        ],
    );
    refused(
        &schema(),
        &[
            "SELECT JSON_OBJECT('a': name, 'b': 's3cret') FROM emp",
            "SELECT JSON_ARRAY(name, 's3cret') FROM emp",
            "SELECT JSON_ARRAYAGG(name || 's3cret') FROM emp",
            "SELECT JSON_OBJECTAGG('s3cret': salary) FROM emp",
            "SELECT JSON_SCALAR(name || 's3cret') FROM emp",
            "SELECT JSON(name || 's3cret') FROM emp",
            "SELECT JSON_SERIALIZE(name || 's3cret') FROM emp",
            "SELECT JSON_VALUE(name, '$.s3cret') FROM emp",
            "SELECT JSON_QUERY(name::jsonb, '$.s3cret') FROM emp",
            "SELECT JSON_EXISTS(name::jsonb, '$.s3cret') FROM emp",
            "SELECT FROM emp, JSON_TABLE(emp.name::jsonb, '$[*]' COLUMNS (a int PATH '$.s3cret')) t",
            "SELECT FROM JSON_TABLE(jsonb '[1]', '$' COLUMNS (a int PATH '$.s3cret')) t JOIN emp ON salary = a",
            "SELECT FROM emp WHERE salary = 0x4D",
            "SELECT FROM emp WHERE salary = 1_000",
            "SELECT array_sample(ARRAY[name, 's3cret'], 1) FROM emp",
            "SELECT casefold(name) = 's3cret' FROM emp",
            "SELECT random(salary, 77) FROM emp",
            "SELECT date_add(seen, interval 's3cret') FROM emp",
        ],
    );
}
