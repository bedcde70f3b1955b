//! Literals of every form, where they meet a protected column: the replacement
//! covers exactly the literal and has the type that PostgreSQL gives it. A bug
//! here sends a value in the clear or changes its type.

mod common;
use common::{check, refused, schema, unchanged};

#[test]
fn forms_of_literals() {
    check(
        &schema(),
        &[
            (
                "SELECT * FROM emp WHERE name = 'a'",
                "SELECT * FROM emp WHERE name = '<<a>>'",
            ),
            (
                "SELECT * FROM emp WHERE name = 'it''s'",
                "SELECT * FROM emp WHERE name = '<<it''s>>'",
            ),
            (
                "SELECT * FROM emp WHERE name = E'a\\nb'",
                "SELECT * FROM emp WHERE name = '<<a\nb>>'",
            ),
            (
                "SELECT * FROM emp WHERE name = U&'\\0041'",
                "SELECT * FROM emp WHERE name = '<<A>>'",
            ),
            (
                "SELECT * FROM emp WHERE name = U&'!0041' UESCAPE '!'",
                "SELECT * FROM emp WHERE name = '<<A>>'",
            ),
            (
                "SELECT * FROM emp WHERE name = $$a'b$$",
                "SELECT * FROM emp WHERE name = '<<a''b>>'",
            ),
            (
                "SELECT * FROM emp WHERE name = $x$a$x$",
                "SELECT * FROM emp WHERE name = '<<a>>'",
            ),
            (
                "SELECT * FROM emp WHERE name = 'a'\n 'b'",
                "SELECT * FROM emp WHERE name = '<<ab>>'",
            ),
            (
                "SELECT * FROM emp WHERE name = 'ä€' AND salary=5",
                "SELECT * FROM emp WHERE name = '<<ä€>>' AND salary='<<int4:5>>'::enc_int4",
            ),
            (
                "SELECT * FROM emp WHERE salary = 5",
                "SELECT * FROM emp WHERE salary = '<<int4:5>>'::enc_int4",
            ),
            (
                "SELECT * FROM emp WHERE salary = -5",
                "SELECT * FROM emp WHERE salary = '<<int4:-5>>'::enc_int4",
            ),
            (
                "SELECT * FROM emp WHERE salary = - 5",
                "SELECT * FROM emp WHERE salary = '<<int4:-5>>'::enc_int4",
            ),
            (
                "SELECT * FROM emp WHERE salary = -2147483648",
                "SELECT * FROM emp WHERE salary = '<<int4:-2147483648>>'::enc_int4",
            ),
            (
                "SELECT * FROM emp WHERE salary = 2147483648",
                "SELECT * FROM emp WHERE salary = '<<int8:2147483648>>'::enc_int8",
            ),
            (
                "SELECT * FROM emp WHERE bonus = 9223372036854775808",
                "SELECT * FROM emp WHERE bonus = '<<numeric:9223372036854775808>>'::enc_numeric",
            ),
            (
                "SELECT * FROM emp WHERE bonus > 1.50",
                "SELECT * FROM emp WHERE bonus > '<<numeric:1.50>>'::enc_numeric",
            ),
            (
                "SELECT * FROM emp WHERE bonus > 1e3",
                "SELECT * FROM emp WHERE bonus > '<<numeric:1e3>>'::enc_numeric",
            ),
            (
                "SELECT * FROM emp WHERE active = true",
                "SELECT * FROM emp WHERE active = '<<bool:true>>'::enc_bool",
            ),
            (
                "SELECT * FROM emp WHERE active = FALSE",
                "SELECT * FROM emp WHERE active = '<<bool:false>>'::enc_bool",
            ),
            (
                "SELECT * FROM emp WHERE name = NULL",
                "SELECT * FROM emp WHERE name = NULL",
            ),
            (
                "SELECT * FROM emp WHERE salary-5 > 0",
                "SELECT * FROM emp WHERE salary-'<<int4:5>>'::enc_int4 > '<<int4:0>>'::enc_int4",
            ),
            (
                "SELECT /* 5 */ * FROM emp -- 5\nWHERE salary = 5",
                "SELECT   * FROM emp  \nWHERE salary = '<<int4:5>>'::enc_int4",
            ),
        ],
    );
    refused(
        &schema(),
        &[
            "SELECT * FROM emp WHERE salary = 0x1F",
            "SELECT * FROM emp WHERE salary = 1_000",
            "SELECT * FROM emp WHERE name = B'101'",
            "SELECT * FROM emp WHERE name = X'1F'",
        ],
    );
}

#[test]
fn typed_literals() {
    check(
        &schema(),
        &[
            (
                "SELECT * FROM emp WHERE hired < date '1998-12-01'",
                "SELECT * FROM emp WHERE hired < enc_date '<<~date:1998-12-01>>'",
            ),
            (
                "SELECT * FROM emp WHERE hired < '1998-12-01'::date",
                "SELECT * FROM emp WHERE hired < '<<~date:1998-12-01>>'::enc_date",
            ),
            (
                "SELECT * FROM emp WHERE hired < CAST('1998-12-01' AS date)",
                "SELECT * FROM emp WHERE hired < CAST('<<~date:1998-12-01>>' AS enc_date)",
            ),
            (
                "SELECT * FROM emp WHERE hired < date '1998-12-01' - interval '90' day",
                "SELECT * FROM emp WHERE hired < enc_date '<<~date:1998-12-01>>' - '<<interval(0x8ffff):90>>'::enc_interval",
            ),
            (
                "SELECT * FROM emp WHERE hired < date '1998-12-01' - interval '90 days'",
                "SELECT * FROM emp WHERE hired < enc_date '<<~date:1998-12-01>>' - enc_interval '<<~interval:90 days>>'",
            ),
            (
                "SELECT * FROM emp WHERE hired + interval(3) '1' > seen",
                "SELECT * FROM emp WHERE hired + '<<interval(0x7fff0003):1>>'::enc_interval > seen",
            ),
            (
                "SELECT * FROM emp WHERE hired + '1'::interval day to second(3) > seen",
                "SELECT * FROM emp WHERE hired + '<<interval(0x1c080003):1>>'::enc_interval > seen",
            ),
            (
                "SELECT * FROM emp WHERE hired + CAST('1' AS interval month) > seen",
                "SELECT * FROM emp WHERE hired + '<<interval(0x2ffff):1>>'::enc_interval > seen",
            ),
            (
                "SELECT * FROM emp WHERE seen < timestamp with time zone '2020-01-01' AND id = 1",
                "SELECT * FROM emp WHERE seen < enc_timestamptz '<<~timestamptz:2020-01-01>>' AND id = 1",
            ),
            (
                "SELECT * FROM emp WHERE seen < '2020-01-01'::timestamp(3) with time zone AND id = 1",
                "SELECT * FROM emp WHERE seen < '<<~timestamptz:2020-01-01>>'::enc_timestamptz(3) AND id = 1",
            ),
            (
                "SELECT * FROM emp WHERE code = 'x'::character varying(25)",
                "SELECT * FROM emp WHERE code = '<<~varchar:x>>'::enc_varchar(25)",
            ),
            (
                "SELECT * FROM emp WHERE bonus = '1.5'::pg_catalog.numeric(10, 2)",
                "SELECT * FROM emp WHERE bonus = '<<~numeric:1.5>>'::enc_numeric(10,2)",
            ),
            (
                "SELECT * FROM emp WHERE bonus = 5::numeric",
                "SELECT * FROM emp WHERE bonus = '<<int4:5>>'::enc_int4::enc_numeric",
            ),
            (
                "SELECT * FROM emp WHERE bonus = -5::numeric",
                "SELECT * FROM emp WHERE bonus = -'<<int4:5>>'::enc_int4::enc_numeric",
            ),
            (
                "SELECT * FROM emp WHERE salary::text = '5'",
                "SELECT * FROM emp WHERE salary::enc_text = '<<5>>'",
            ),
            (
                "SELECT CAST(salary AS double precision) FROM emp",
                "SELECT CAST(salary AS enc_float8) FROM emp",
            ),
            (
                "SELECT name::varchar(10) FROM emp",
                "SELECT name::enc_varchar(10) FROM emp",
            ),
            ("SELECT '5'::enc_int4", "SELECT '<<~int4:5>>'::enc_int4"),
            (
                "SELECT 5::pg_catalog.enc_int4 + 6",
                "SELECT '<<int4:5>>'::enc_int4::pg_catalog.enc_int4 + '<<int4:6>>'::enc_int4"
                    .replace("::pg_catalog.", "::")
                    .leak(),
            ),
            (
                "SELECT enc_date '2020-01-01'",
                "SELECT enc_date '<<~date:2020-01-01>>'",
            ),
        ],
    );
    unchanged(
        &schema(),
        &["SELECT date '1998-12-01' - interval '90' day, 5::numeric, '{1}'::int[]"],
    );
    refused(
        &schema(),
        &[
            "SELECT name::xml FROM emp",
            "SELECT salary::money FROM emp",
            "SELECT * FROM emp WHERE name = 's3cret'::xml",
            "SELECT * FROM comp WHERE addr = '(1,s3cret)'::address",
            "SELECT '(1,s3cret)'::address",
        ],
    );
}

#[test]
fn nothing_protected() {
    unchanged(
        &schema(),
        &[
            "SELECT 1, 'a', $1",
            "SELECT * FROM plain WHERE name = 'a' AND salary > 5 AND doc->>'x' = 'y' AND arr = '{1,2}'",
            "SELECT id, dept, 5 FROM emp WHERE id = 7 AND note LIKE 'x%' AND dept IN (1,2,3)",
            "SELECT * FROM emp WHERE name IS NOT NULL AND dept = 3 ORDER BY 1 LIMIT 10 OFFSET 5",
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relpages > 5",
            "SELECT * FROM other.emp WHERE salary = 5",
            "SELECT now() - interval '1 day', to_char(now(), 'YYYY')",
            "VALUES (1, 'a'), (2, 'b')",
            "SELECT json_path_query('{}', '$.a')",
        ],
    );
}
