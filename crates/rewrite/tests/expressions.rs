//! Literals meet protected values through operators, functions and special
//! syntax. A bug here leaves a literal in the clear.

mod common;
use common::{check, refused, schema, unchanged};

#[test]
fn operators() {
    check(
        &schema(),
        &[
            (
                "SELECT salary * 2 + 1 FROM emp",
                "SELECT salary * '<<int4:2>>'::enc_int4 + '<<int4:1>>'::enc_int4 FROM emp",
            ),
            (
                "SELECT 2 * (1 + 3) * salary FROM emp",
                "SELECT '<<int4:2>>'::enc_int4 * ('<<int4:1>>'::enc_int4 + '<<int4:3>>'::enc_int4) * salary FROM emp",
            ),
            (
                "SELECT name || 'x' FROM emp",
                "SELECT name || '<<x>>' FROM emp",
            ),
            (
                "SELECT 'a' || 'b' || name FROM emp",
                "SELECT '<<~text:a>>'::enc_text || '<<~text:b>>'::enc_text || name FROM emp",
            ),
            (
                "SELECT * FROM emp WHERE name LIKE 'a%' OR name NOT ILIKE '%b'",
                "SELECT * FROM emp WHERE name LIKE '<<a%>>' OR name NOT ILIKE '<<%b>>'",
            ),
            (
                "SELECT * FROM emp WHERE name LIKE 'a!%%' ESCAPE '!' AND id=1",
                "SELECT * FROM emp WHERE name LIKE '<<a\\%%>>' AND id=1",
            ),
            (
                "SELECT * FROM emp WHERE name IN ('a', 'b')",
                "SELECT * FROM emp WHERE name IN ('<<a>>', '<<b>>')",
            ),
            (
                "SELECT * FROM emp WHERE salary NOT IN (1, 2)",
                "SELECT * FROM emp WHERE salary NOT IN ('<<int4:1>>'::enc_int4, '<<int4:2>>'::enc_int4)",
            ),
            (
                "SELECT * FROM emp WHERE salary BETWEEN 1 AND 2",
                "SELECT * FROM emp WHERE salary BETWEEN '<<int4:1>>'::enc_int4 AND '<<int4:2>>'::enc_int4",
            ),
            (
                "SELECT * FROM emp WHERE 5 BETWEEN 1 AND salary",
                "SELECT * FROM emp WHERE '<<int4:5>>'::enc_int4 BETWEEN '<<int4:1>>'::enc_int4 AND salary",
            ),
            (
                "SELECT * FROM emp WHERE (id, name) = (1, 'a')",
                "SELECT * FROM emp WHERE (id, name) = (1, '<<a>>')",
            ),
            (
                "SELECT * FROM emp WHERE (id, name) IN ((1, 'a'), (2, 'b'))",
                "SELECT * FROM emp WHERE (id, name) IN ((1, '<<a>>'), (2, '<<b>>'))",
            ),
            (
                "SELECT * FROM emp WHERE name IS DISTINCT FROM 'a'",
                "SELECT * FROM emp WHERE name IS DISTINCT FROM '<<a>>'",
            ),
            (
                "SELECT CASE WHEN id = 1 THEN salary ELSE 0 END FROM emp",
                "SELECT CASE WHEN id = 1 THEN salary ELSE '<<int4:0>>'::enc_int4 END FROM emp",
            ),
            (
                "SELECT CASE name WHEN 'a' THEN 'x' ELSE 'y' END FROM emp",
                "SELECT CASE name WHEN '<<a>>' THEN 'x' ELSE 'y' END FROM emp",
            ),
            (
                "SELECT CASE WHEN salary > 5 THEN 1 ELSE 0 END FROM emp",
                "SELECT CASE WHEN salary > '<<int4:5>>'::enc_int4 THEN 1 ELSE 0 END FROM emp",
            ),
            (
                "SELECT CASE WHEN id=1 THEN 'p' ELSE 'q' END || name FROM emp",
                "SELECT CASE WHEN id=1 THEN '<<~text:p>>'::enc_text ELSE '<<~text:q>>'::enc_text END || name FROM emp",
            ),
            (
                "SELECT COALESCE(name, 'none'), NULLIF(salary, 0) FROM emp",
                "SELECT COALESCE(name, '<<none>>'), NULLIF(salary, '<<int4:0>>'::enc_int4) FROM emp",
            ),
            (
                "SELECT GREATEST(salary, 10, id) FROM emp",
                "SELECT GREATEST(salary, '<<int4:10>>'::enc_int4, (id)::enc_int4) FROM emp",
            ),
            (
                "SELECT * FROM emp WHERE salary = ANY (ARRAY[1, 2])",
                "SELECT * FROM emp WHERE salary = ANY (ARRAY['<<int4:1>>'::enc_int4, '<<int4:2>>'::enc_int4])",
            ),
            (
                "SELECT * FROM emp WHERE name = ANY (ARRAY['a'])",
                "SELECT * FROM emp WHERE name = ANY (ARRAY['<<~text:a>>'::enc_text])",
            ),
            (
                "SELECT * FROM emp WHERE hired = ANY (ARRAY['2020-01-01']::date[])",
                "SELECT * FROM emp WHERE hired = ANY (ARRAY['<<~date:2020-01-01>>'::enc_date]::enc_date[])",
            ),
            (
                "SELECT * FROM emp WHERE salary = ANY ('{1,2}')",
                "SELECT * FROM emp WHERE salary = ANY (ARRAY['<<~int4:1>>'::enc_int4,'<<~int4:2>>'::enc_int4]::enc_int4[])",
            ),
            (
                "SELECT * FROM emp WHERE name <> ALL ('{\"a,b\",NULL}'::text[])",
                "SELECT * FROM emp WHERE name <> ALL (ARRAY['<<~text:a,b>>'::enc_text,NULL]::enc_text[]::enc_text[])",
            ),
            (
                "SELECT name COLLATE \"C\" FROM emp WHERE name LIKE 'a' COLLATE pg_catalog.\"C\"",
                "SELECT name  FROM emp WHERE name LIKE '<<~text:a>>'::enc_text ",
            ),
            (
                "SELECT * FROM emp WHERE salary = ANY ('{{1,2}}')",
                "SELECT * FROM emp WHERE salary = ANY (ARRAY[['<<~int4:1>>'::enc_int4,'<<~int4:2>>'::enc_int4]]::enc_int4[])",
            ),
            (
                "SELECT * FROM emp WHERE 'a' = ANY (tags)",
                "SELECT * FROM emp WHERE '<<a>>' = ANY (tags)",
            ),
            (
                "SELECT * FROM emp WHERE salary > dept * 100",
                "SELECT * FROM emp WHERE salary > dept * '<<int4:100>>'::enc_int4",
            ),
            (
                "SELECT * FROM emp WHERE -salary < 5",
                "SELECT * FROM emp WHERE -salary < '<<int4:5>>'::enc_int4",
            ),
        ],
    );
    refused(
        &schema(),
        &[
            "SELECT * FROM emp WHERE hired > date '2020-01-01' + opened_at",
            "SELECT * FROM emp WHERE name COLLATE \"de_DE\" = 's3cret'",
            "SELECT * FROM emp WHERE salary = ANY ('[2:3]={1,2}')",
            "SELECT * FROM emp WHERE (emp) = ROW(1, 's3cret')",
        ],
    );
}

#[test]
fn functions() {
    check(
        &schema(),
        &[
            (
                "SELECT extract(year from hired) FROM emp",
                "SELECT extract(year from hired) FROM emp",
            ),
            (
                "SELECT * FROM emp WHERE extract(year from hired) = 1995",
                "SELECT * FROM emp WHERE extract(year from hired) = '<<int4:1995>>'::enc_int4",
            ),
            (
                "SELECT date_trunc('month', seen) FROM emp",
                "SELECT date_trunc('month', seen) FROM emp",
            ),
            (
                "SELECT * FROM emp WHERE date_part('dow', hired) = 1",
                "SELECT * FROM emp WHERE date_part('dow', hired) = '<<int4:1>>'::enc_int4",
            ),
            (
                "SELECT substring(name from 1 for 2) FROM emp",
                "SELECT substring(name from '<<int4:1>>'::enc_int4 for '<<int4:2>>'::enc_int4) FROM emp",
            ),
            (
                "SELECT substr(name, 1, 2), count(*) FROM emp GROUP BY substr(name, 1, 2)",
                "SELECT substr(name, '<<int4:1>>'::enc_int4, '<<int4:2>>'::enc_int4), count(*) FROM emp GROUP BY substr(name, '<<int4:1>>'::enc_int4, '<<int4:2>>'::enc_int4)",
            ),
            (
                "SELECT * FROM emp WHERE upper('abc') = name",
                "SELECT * FROM emp WHERE upper('<<~text:abc>>'::enc_text) = name",
            ),
            (
                "SELECT * FROM emp WHERE position('a' in name) > 0",
                "SELECT * FROM emp WHERE position('<<a>>' in name) > '<<int4:0>>'::enc_int4",
            ),
            (
                "SELECT trim(both 'x' from name), btrim(name) FROM emp",
                "SELECT trim(both '<<x>>' from name), btrim(name) FROM emp",
            ),
            (
                "SELECT replace(name, 'a', 'b') FROM emp",
                "SELECT replace(name, '<<a>>', '<<b>>') FROM emp",
            ),
            (
                "SELECT round(bonus, 2) FROM emp",
                "SELECT round(bonus, '<<int4:2>>'::enc_int4) FROM emp",
            ),
            (
                "SELECT count(name), count(*) FROM emp HAVING count(name) > 5",
                "SELECT count(name), count(*) FROM emp HAVING count(name) > 5",
            ),
            (
                "SELECT sum(salary) FROM emp HAVING sum(salary) > 5",
                "SELECT sum(salary) FROM emp HAVING sum(salary) > '<<int4:5>>'::enc_int4",
            ),
            (
                "SELECT sum(salary) FILTER (WHERE salary > 5) FROM emp",
                "SELECT sum(salary) FILTER (WHERE salary > '<<int4:5>>'::enc_int4) FROM emp",
            ),
            (
                "SELECT sum(CASE WHEN name = 'a' THEN 1 ELSE 0 END) > 5 FROM emp",
                "SELECT sum(CASE WHEN name = '<<a>>' THEN 1 ELSE 0 END) > 5 FROM emp",
            ),
            (
                "SELECT lag(salary, 1, 0) OVER (PARTITION BY dept ORDER BY id ROWS 3 PRECEDING) FROM emp",
                "SELECT lag(salary, 1, '<<int4:0>>'::enc_int4) OVER (PARTITION BY dept ORDER BY id ROWS 3 PRECEDING) FROM emp",
            ),
            (
                "SELECT sum(salary) OVER (ORDER BY salary RANGE BETWEEN 5 PRECEDING AND 7 FOLLOWING) FROM emp",
                "SELECT sum(salary) OVER (ORDER BY salary RANGE BETWEEN '<<int4:5>>'::enc_int4 PRECEDING AND '<<int4:7>>'::enc_int4 FOLLOWING) FROM emp",
            ),
            (
                "SELECT x FROM emp, generate_series(1, salary) AS x",
                "SELECT x FROM emp, enc_generate_series('<<int4:1>>'::enc_int4, salary) AS x",
            ),
            (
                "SELECT generate_series(1.5, salary) FROM emp",
                "SELECT enc_generate_series('<<numeric:1.5>>'::enc_numeric, salary) AS \"generate_series\" FROM emp",
            ),
            (
                "SELECT * FROM emp, generate_series(1, salary) WITH /* x */ ORDINALITY",
                "SELECT * FROM emp, enc_generate_series('<<int4:1>>'::enc_int4, salary) WITH   ORDINALITY AS generate_series",
            ),
            (
                "SELECT key, value || 'x' FROM emp, jsonb_each_text(to_jsonb(name))",
                "SELECT key, value || '<<x>>' FROM emp, enc_jsonb_each_text(enc_tojsonb(enc_jsonitem((name)::enc_text))) AS jsonb_each_text",
            ),
            (
                "SELECT id FROM emp, regexp_split_to_table(name, 'b+') AS r (x) WHERE x = 'y'",
                "SELECT id FROM emp, enc_regexp_split_to_table(name, '<<b+>>') AS r (x) WHERE x = '<<y>>'",
            ),
            (
                "SELECT id FROM emp, string_to_table(name, ',')",
                "SELECT id FROM emp, enc_string_to_table(name, '<<,>>') AS string_to_table",
            ),
            (
                "SELECT raise_pay(5, 6)",
                "SELECT raise_pay('<<int4:5>>'::enc_int4, 6)",
            ),
            (
                "SELECT * FROM emp WHERE raise_pay(salary, 6) > 7",
                "SELECT * FROM emp WHERE raise_pay(salary, 6) > '<<int4:7>>'::enc_int4",
            ),
            (
                "SELECT twofold(salary) FROM emp",
                "SELECT twofold(salary) FROM emp",
            ),
            (
                "SELECT age(at) FROM plain WHERE to_char(at, 'YYYY') = '2020'",
                "SELECT age(at) FROM plain WHERE to_char(at, 'YYYY') = '2020'",
            ),
            (
                "SELECT abs(salary) > 3, mod(salary, 2) FROM emp",
                "SELECT abs(salary) > '<<int4:3>>'::enc_int4, mod(salary, '<<int4:2>>'::enc_int4) FROM emp",
            ),
        ],
    );
    check(
        &schema(),
        &[
            (
                "SELECT concat_ws(', ', name, id, 5, $1) FROM emp",
                "SELECT enc_concatws(('<<, >>')::enc_text, (coalesce(enc_item(( name)::enc_text), '<<text:->>'::enc_text) || coalesce(enc_item(( id)::enc_int4), '<<text:->>'::enc_text) || coalesce(enc_item(( '<<int4:5>>'::enc_int4)::enc_int4), '<<text:->>'::enc_text) || coalesce(enc_item(( $1)::enc_text), '<<text:->>'::enc_text))) AS \"concat_ws\" FROM emp",
            ),
            (
                "SELECT format('%s!', active) AS x FROM emp",
                "SELECT enc_format(('<<%s!>>')::enc_text, (coalesce(enc_item(( active)::enc_bool), '<<text:->>'::enc_text))) AS x FROM emp",
            ),
            (
                "SELECT quote_nullable(id) = name FROM emp",
                "SELECT coalesce(pg_catalog.quote_literal((id)::pg_catalog.text::enc_text), '<<text:NULL>>'::enc_text) = name FROM emp",
            ),
            (
                "SELECT pi() * bonus, pi() FROM emp",
                "SELECT '<<float8:3.141592653589793>>'::enc_float8 * bonus, pi() FROM emp",
            ),
            (
                "SELECT make_interval(salary, days => 2, secs => 1.5) FROM emp",
                "SELECT enc_makeinterval(salary, '<<int4:0>>'::enc_int4, '<<int4:0>>'::enc_int4,  '<<int4:2>>'::enc_int4, '<<int4:0>>'::enc_int4, '<<int4:0>>'::enc_int4,  '<<numeric:1.5>>'::enc_numeric) AS \"make_interval\" FROM emp",
            ),
            (
                "SELECT id FROM dept UNION SELECT salary FROM emp",
                "SELECT (id)::enc_int4 FROM dept UNION SELECT salary FROM emp",
            ),
            (
                "SELECT array_to_string(array_agg(name ORDER BY id), ', ') FROM emp",
                "SELECT enc_array_to_string(array_agg(name ORDER BY id), '<<~text:, >>'::enc_text) AS \"array_to_string\" FROM emp",
            ),
            (
                "SELECT jsonb_object_agg('a', name ORDER BY id) FILTER (WHERE id > 1) FROM emp",
                "SELECT enc_jsonbpairs(pg_catalog.string_agg(coalesce(enc_jsonitem(('<<a>>')::enc_text), '<<text:->>'::enc_text) || coalesce(enc_jsonitem(( name )::enc_text), '<<text:->>'::enc_text), NULL::enc_text ORDER BY id) FILTER (WHERE id > 1)) AS \"jsonb_object_agg\" FROM emp",
            ),
        ],
    );
    unchanged(
        &schema(),
        &[
            "SELECT concat_ws(',', 'a', id), format('%s', 'x'), pi(), quote_nullable('x'), make_interval(days => 5) FROM plain",
            "SELECT * FROM dept UNION SELECT * FROM dept",
        ],
    );
    refused(
        &schema(),
        &[
            "SELECT twofold(5)",
            "SELECT lag(name, salary) OVER () FROM emp",
            "SELECT make_interval(secs => 1.5, days => salary) FROM emp",
            "SELECT row_to_json(emp) FROM emp",
            "SELECT json_agg(DISTINCT name) FROM emp",
            "SELECT generate_series(1.5::float8, salary) FROM emp",
            "SELECT * FROM emp, ROWS FROM (generate_series(1, salary)) WITH ORDINALITY",
            "SELECT regexp_split_to_table(name, 'a', VARIADIC ARRAY['s3cret']) FROM emp",
        ],
    );
}

#[test]
fn conditions_on_booleans() {
    check(
        &schema(),
        &[
            (
                "SELECT * FROM emp WHERE active",
                "SELECT * FROM emp WHERE confide.is_true(active)",
            ),
            (
                "SELECT * FROM emp e WHERE NOT e.active AND id = 1",
                "SELECT * FROM emp e WHERE NOT confide.is_true(e.active) AND id = 1",
            ),
            (
                "SELECT * FROM emp WHERE active IS NOT TRUE",
                "SELECT * FROM emp WHERE confide.is_true(active) IS NOT TRUE",
            ),
            (
                "SELECT CASE WHEN active THEN 1 END FROM emp",
                "SELECT CASE WHEN confide.is_true(active) THEN 1 END FROM emp",
            ),
            (
                "SELECT count(*) FILTER (WHERE active) FROM emp",
                "SELECT count(*) FILTER (WHERE confide.is_true(active)) FROM emp",
            ),
            (
                "SELECT * FROM emp WHERE coalesce(active, false)",
                "SELECT * FROM emp WHERE confide.is_true(coalesce(active, '<<bool:false>>'::enc_bool))",
            ),
            (
                "SELECT * FROM emp a JOIN emp b ON a.active",
                "SELECT * FROM emp a JOIN emp b ON confide.is_true(a.active)",
            ),
            (
                "SELECT * FROM emp WHERE active IS NULL",
                "SELECT * FROM emp WHERE active IS NULL",
            ),
        ],
    );
    unchanged(
        &schema(),
        &["SELECT * FROM dept WHERE flag AND NOT flag AND true"],
    );
}

/// A string beside a plain operand that is not text, on its way to a protected
/// column, as in data made by `generate_series`.
#[test]
fn concatenation_with_plain_operands() {
    check(
        &schema(),
        &[
            (
                "INSERT INTO emp(name) SELECT 'row ' || g FROM generate_series(1, 9) g",
                "INSERT INTO emp(name) SELECT '<<~text:row >>'::enc_text || g::pg_catalog.text::enc_text FROM generate_series(1, 9) g",
            ),
            (
                "INSERT INTO emp(name) SELECT g || ' row ' || (g % 5) FROM generate_series(1, 9) g",
                "INSERT INTO emp(name) SELECT g::pg_catalog.text::enc_text || '<<~text: row >>'::enc_text || (g % '<<int4:5>>'::enc_int4) FROM generate_series(1, 9) g",
            ),
            // As arguments beside plain ones: the protected function of the name takes both.
            (
                "INSERT INTO emp(name) SELECT repeat('x', g) FROM generate_series(1, 9) g",
                "INSERT INTO emp(name) SELECT repeat('<<~text:x>>'::enc_text, g) FROM generate_series(1, 9) g",
            ),
            (
                "UPDATE emp SET name = lpad('ab', emp.id, '*')",
                "UPDATE emp SET name = lpad('<<~text:ab>>'::enc_text, emp.id, '<<~text:*>>'::enc_text)",
            ),
            (
                "UPDATE emp SET name = 'n' || emp.id",
                "UPDATE emp SET name = '<<~text:n>>'::enc_text || emp.id::pg_catalog.text::enc_text",
            ),
            (
                "SELECT name || id || 'x', id || name FROM emp",
                "SELECT name || id::pg_catalog.text::enc_text || '<<x>>', id::pg_catalog.text::enc_text || name FROM emp",
            ),
        ],
    );
    unchanged(
        &schema(),
        &[
            "SELECT 'row ' || id, id || 'x' FROM emp",
            "SELECT repeat('x', id), left('abc', id) FROM emp WHERE repeat('x', id) = 'xx'",
        ],
    );
}

/// With a string, `substring(s, p)` is a regular expression, as in PostgreSQL: of several types
/// an untyped literal is text.
#[test]
fn substring_with_a_pattern() {
    check(
        &schema(),
        &[
            (
                "SELECT substring(name, '7') FROM emp",
                "SELECT substring(name, '<<~text:7>>'::enc_text) FROM emp",
            ),
            (
                "SELECT substring(name from 'a.*') FROM emp",
                "SELECT substring(name from '<<~text:a.*>>'::enc_text) FROM emp",
            ),
            (
                "SELECT seen AT TIME ZONE 'UTC' FROM emp",
                "SELECT seen AT TIME ZONE '<<~text:UTC>>'::enc_text FROM emp",
            ),
        ],
    );
}

/// Patterns, formats and fillings are sealed with the values that they are for.
#[test]
fn patterns_and_formats() {
    check(
        &schema(),
        &[
            (
                "SELECT * FROM emp WHERE name ~ 'a'",
                "SELECT * FROM emp WHERE name ~ '<<a>>'",
            ),
            (
                "SELECT * FROM emp WHERE name SIMILAR TO 'a'",
                "SELECT * FROM emp WHERE name SIMILAR TO '<<~text:a>>'::enc_text",
            ),
            (
                "SELECT * FROM emp WHERE name = md5('a')",
                "SELECT * FROM emp WHERE name = md5('<<~text:a>>'::enc_text)",
            ),
            (
                "SELECT regexp_replace(name, 'a', 'b'), lpad(name, 5, 'c'), md5(name) FROM emp",
                "SELECT regexp_replace(name, '<<a>>', '<<b>>'), lpad(name, '<<int4:5>>'::enc_int4, '<<c>>'), md5(name) FROM emp",
            ),
            (
                "SELECT string_agg(name, ','), percentile_disc(0.5) WITHIN GROUP (ORDER BY salary) FROM emp",
                "SELECT string_agg(name, '<<,>>'), percentile_disc(0.5) WITHIN GROUP (ORDER BY salary) FROM emp",
            ),
            (
                "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY salary) AS half, percentile_cont($1) WITHIN GROUP (ORDER BY salary DESC) FROM emp",
                "SELECT enc_percentile_cont(0.5) WITHIN GROUP (ORDER BY (salary)::enc_float8) AS half, enc_percentile_cont_desc($1::pg_catalog.float8) WITHIN GROUP (ORDER BY (salary)::enc_float8 DESC) AS \"percentile_cont\" FROM emp",
            ),
            (
                "SELECT percentile_disc('0.5') WITHIN GROUP (ORDER BY name), percentile_cont('0.5') WITHIN GROUP (ORDER BY id) FROM emp",
                "SELECT percentile_disc('0.5'::pg_catalog.float8) WITHIN GROUP (ORDER BY name), percentile_cont('0.5') WITHIN GROUP (ORDER BY id) FROM emp",
            ),
            (
                "SELECT corr(salary, id), regr_count(id, salary) FROM emp",
                "SELECT corr((salary)::enc_float8,( id)::enc_float8), regr_count((id)::enc_float8,( salary)::enc_float8) FROM emp",
            ),
            (
                "SELECT corr(DISTINCT salary, id), corr(ALL salary, id ORDER BY id, salary) FROM emp",
                "SELECT corr(DISTINCT( salary)::enc_float8,( id)::enc_float8), corr(ALL( salary)::enc_float8,( id )::enc_float8 ORDER BY id, salary) FROM emp",
            ),
            (
                "SELECT regr_count(5, salary - 3), num_nulls(name, 'a', 7), num_nulls('a') FROM emp",
                "SELECT regr_count(('<<int4:5>>'::enc_int4)::enc_float8,( salary - '<<int4:3>>'::enc_int4)::enc_float8), num_nulls(name, '<<~text:a>>'::enc_text, '<<int4:7>>'::enc_int4), num_nulls('a') FROM emp",
            ),
            (
                "SELECT rank(5) WITHIN GROUP (ORDER BY salary) FROM emp",
                "SELECT rank('<<int4:5>>'::enc_int4) WITHIN GROUP (ORDER BY salary) FROM emp",
            ),
            (
                "SELECT to_char(seen, 'YYYY') FROM emp",
                "SELECT to_char(seen, '<<YYYY>>') FROM emp",
            ),
            (
                "SELECT coalesce(salary, id), CASE WHEN id = 1 THEN id ELSE salary END FROM emp",
                "SELECT coalesce(salary, (id)::enc_int4), CASE WHEN id = 1 THEN (id)::enc_int4 ELSE salary END FROM emp",
            ),
        ],
    );
}

/// Functions without protected overloads of their own names are called by the names behind them,
/// also where only literals say so; the output column keeps its name. With a bug the server finds no
/// function, or a literal stays in the clear.
#[test]
fn names_that_are_postgresqls_alone() {
    check(
        &schema(),
        &[
            (
                "SELECT id FROM emp WHERE power(salary, 2) > 9",
                "SELECT id FROM emp WHERE enc_power(salary, '<<int4:2>>'::enc_int4) > '<<int4:9>>'::enc_int4",
            ),
            (
                "SELECT id FROM emp WHERE salary = pg_catalog.power(2, 3)",
                "SELECT id FROM emp WHERE salary = enc_power('<<int4:2>>'::enc_int4, '<<int4:3>>'::enc_int4)",
            ),
            (
                "SELECT x.chr FROM (SELECT chr(salary) FROM emp) x",
                "SELECT x.chr FROM (SELECT enc_chr(salary) AS \"chr\" FROM emp) x",
            ),
            (
                "SELECT salary ^ 2, salary ^ id FROM emp",
                "SELECT salary ^ '<<int4:2>>'::enc_int4, salary ^ (id)::enc_int4 FROM emp",
            ),
        ],
    );
    unchanged(
        &schema(),
        &["SELECT power(id, 2), chr(65), sha256('a') FROM emp"],
    );
    refused(
        &schema(),
        &["SELECT make_interval(hours => 5, days => salary) FROM emp"],
    );
}

/// What is plain beside something protected, or beside a literal that becomes protected, is cast, so
/// that PostgreSQL finds an operator or a common type. With a bug the statement is refused, by the
/// proxy or by the server.
#[test]
fn plain_operands_are_cast() {
    check(
        &schema(),
        &[
            (
                "SELECT * FROM emp WHERE name = coalesce(note, 's3cret')",
                "SELECT * FROM emp WHERE name = coalesce((note)::enc_text, '<<s3cret>>')",
            ),
            (
                "SELECT salary * greatest(5, id) FROM emp",
                "SELECT salary * greatest('<<int4:5>>'::enc_int4, (id)::enc_int4) FROM emp",
            ),
            (
                "SELECT salary + CASE WHEN id > 2 THEN 1 ELSE (id - dept) END FROM emp",
                "SELECT salary + CASE WHEN id > 2 THEN '<<int4:1>>'::enc_int4 ELSE ((id - dept)::enc_int4) END FROM emp",
            ),
            (
                "SELECT coalesce(id - dept, salary), coalesce(((id) - (dept)), salary) FROM emp",
                "SELECT coalesce((id - dept)::enc_int4, salary), coalesce((((id) - (dept))::enc_int4), salary) FROM emp",
            ),
            (
                "SELECT nullif(id, salary), nullif(salary, id) FROM emp",
                "SELECT nullif((id)::enc_int4, salary), nullif(salary, (id)::enc_int4) FROM emp",
            ),
            (
                "SELECT salary + coalesce(id % 9, 7 - id) FROM emp",
                "SELECT salary + coalesce(id % '<<int4:9>>'::enc_int4, '<<int4:7>>'::enc_int4 - id) FROM emp",
            ),
            (
                "SELECT coalesce(nullif(id, dept), salary), greatest(bonus, 0) FROM emp",
                "SELECT coalesce((nullif(id, dept))::enc_int4, salary), greatest((bonus)::enc_numeric, '<<int4:0>>'::enc_int4) FROM emp",
            ),
            // Numbers of different types, one of which becomes protected with its literal.
            (
                "SELECT budget + (id % 9000000000) FROM dept",
                "SELECT budget + ((id)::enc_int4 % '<<int8:9000000000>>'::enc_int8) FROM dept",
            ),
            (
                "SELECT bonus * (id), 1.5 * bonus FROM emp",
                "SELECT bonus * ((id)::enc_int4), '<<numeric:1.5>>'::enc_numeric * bonus FROM emp",
            ),
            // Of one family, so that the first string decides.
            (
                "SELECT coalesce(code, name), greatest(name, code) FROM emp",
                "SELECT coalesce((code)::enc_varchar, (name)::enc_text), greatest((name)::enc_text, (code)::enc_varchar) FROM emp",
            ),
            (
                "SELECT CASE WHEN id > 1 THEN name ELSE code END, nullif(code, code) FROM emp",
                "SELECT CASE WHEN id > 1 THEN (name)::enc_text ELSE (code)::enc_varchar END, nullif(code, code) FROM emp",
            ),
            (
                "SELECT * FROM emp e FULL JOIN dept d ON e.salary = d.id",
                "SELECT * FROM emp e FULL JOIN dept d ON (e.salary)::enc_int4 = (d.id)::enc_int4",
            ),
            (
                "SELECT salary - -(5), salary + (- ( 7 )) FROM emp",
                "SELECT salary - '<<int4:-5>>'::enc_int4, salary + ('<<int4:-7>>'::enc_int4) FROM emp",
            ),
        ],
    );
    unchanged(
        &schema(),
        &[
            "SELECT coalesce(id, 5), nullif(id, dept), coalesce(note, 'x') FROM emp",
            "SELECT * FROM emp e FULL JOIN dept d ON e.id = d.id FULL JOIN emp f ON e.salary = f.salary",
            "SELECT id % 9000000000, -(5) FROM emp",
        ],
    );
}
