//! A value that is sealed anywhere in a statement is plain nowhere in it. A binder that looks
//! at each constant by itself sends `'x'::text IS NULL OR name = 'x'` with one `'x'` sealed and
//! the other in the clear.

mod common;
use common::{check, function, one, refused, schema, unchanged};
use rewrite::{ParamUse, hides_secrets};

#[test]
fn literals() {
    check(
        &schema(),
        &[
            (
                "SELECT id FROM emp WHERE 'x'::text IS NULL OR name = 'x'",
                "SELECT id FROM emp WHERE '<<~text:x>>'::enc_text IS NULL OR name = '<<x>>'",
            ),
            (
                "SELECT id FROM emp WHERE 'x' = '' OR name = 'x'",
                "SELECT id FROM emp WHERE '<<~text:x>>'::enc_text = '<<~text:>>'::enc_text OR name = '<<x>>'",
            ),
            (
                "SELECT id FROM emp WHERE 'x' IS NULL OR name LIKE '%x%'",
                "SELECT id FROM emp WHERE '<<~text:x>>'::enc_text IS NULL OR name LIKE '<<%x%>>'",
            ),
            (
                "SELECT id FROM emp WHERE length('x') = 0 OR name = lower('X')",
                "SELECT id FROM emp WHERE length('<<~text:x>>'::enc_text) = '<<int4:0>>'::enc_int4 OR name = lower('<<~text:X>>'::enc_text)",
            ),
            (
                "SELECT id FROM emp WHERE 5200 IS NULL OR salary > 5200",
                "SELECT id FROM emp WHERE '<<int4:5200>>'::enc_int4 IS NULL OR salary > '<<int4:5200>>'::enc_int4",
            ),
            (
                "SELECT id FROM emp WHERE 7 = 0 OR salary = 7",
                "SELECT id FROM emp WHERE '<<int4:7>>'::enc_int4 = '<<int4:0>>'::enc_int4 OR salary = '<<int4:7>>'::enc_int4",
            ),
            (
                "SELECT id FROM emp WHERE 5200::bigint IS NULL OR salary > 5200",
                "SELECT id FROM emp WHERE '<<int4:5200>>'::enc_int4::enc_int8 IS NULL OR salary > '<<int4:5200>>'::enc_int4",
            ),
            (
                "SELECT 'x' AS searched, id FROM emp WHERE name = 'x'",
                "SELECT '<<~text:x>>'::enc_text AS searched, id FROM emp WHERE name = '<<x>>'",
            ),
            (
                "SELECT id FROM emp WHERE note = 'x' OR name = 'x'",
                "SELECT id FROM emp WHERE note = '<<~text:x>>'::enc_text OR name = '<<x>>'",
            ),
            (
                "SELECT id FROM emp WHERE note IN ('x', 'y') OR name = 'x'",
                "SELECT id FROM emp WHERE note IN ('<<~text:x>>'::enc_text, 'y') OR name = '<<x>>'",
            ),
        ],
    );
}

/// What a plain column gets, the application has put there; small numbers say nothing.
#[test]
fn plain_is_plain() {
    check(
        &schema(),
        &[
            (
                "INSERT INTO emp (id, note, name, salary) VALUES (7, 'x', 'x', 7)",
                "INSERT INTO emp (id, note, name, salary) VALUES (7, 'x', '<<x>>', '<<int4:7>>'::enc_int4)",
            ),
            (
                "SELECT id FROM emp WHERE id = 7 AND salary = 7 LIMIT 7",
                "SELECT id FROM emp WHERE id = 7 AND salary = '<<int4:7>>'::enc_int4 LIMIT 7",
            ),
            (
                "SELECT dept, count(*) FROM emp WHERE salary = 1 GROUP BY 1 ORDER BY 1",
                "SELECT dept, count(*) FROM emp WHERE salary = '<<int4:1>>'::enc_int4 GROUP BY 1 ORDER BY 1",
            ),
            (
                "SELECT CASE WHEN salary = 1 THEN 1 ELSE 0 END FROM emp",
                "SELECT CASE WHEN salary = '<<int4:1>>'::enc_int4 THEN 1 ELSE 0 END FROM emp",
            ),
            (
                "SELECT repeat(note, 3) FROM emp WHERE salary = 3",
                "SELECT repeat(note, 3) FROM emp WHERE salary = '<<int4:3>>'::enc_int4",
            ),
            (
                "SELECT 'y' FROM emp WHERE name = 'x' AND true AND active = true",
                "SELECT 'y' FROM emp WHERE name = '<<x>>' AND true AND active = '<<bool:true>>'::enc_bool",
            ),
        ],
    );
    unchanged(
        &schema(),
        &["SELECT 'x' FROM plain WHERE name = 'x' AND 'x' <> '' AND $1 IS NULL"],
    );
}

#[test]
fn refusals() {
    refused(
        &schema(),
        &["SELECT id FROM emp WHERE 's3cret'::xml IS NULL OR name = 's3cret'"],
    );
}

#[test]
fn parameters() {
    let s = schema();
    check(
        &s,
        &[
            (
                "SELECT id FROM emp WHERE $1::text IS NULL OR name = $1",
                "SELECT id FROM emp WHERE $1::enc_text IS NULL OR name = $1",
            ),
            (
                "SELECT id FROM emp WHERE $1::text IS NULL OR name = $2",
                "SELECT id FROM emp WHERE $1::enc_text IS NULL OR name = $2",
            ),
            (
                "SELECT id FROM emp WHERE $1 IS NULL OR name = $2",
                "SELECT id FROM emp WHERE $1 IS NULL OR name = $2",
            ),
            (
                "SELECT id FROM emp WHERE $1::text = '' OR name LIKE '%' || $1 || '%'",
                "SELECT id FROM emp WHERE $1::enc_text = '<<>>' OR name LIKE '<<~text:%>>'::enc_text || $1::enc_text || '<<%>>'",
            ),
            (
                "SELECT id FROM emp WHERE note = $1 OR name = $1",
                "SELECT id FROM emp WHERE note = $1::enc_text OR name = $1",
            ),
            (
                "SELECT id FROM emp WHERE note LIKE $1 OR name LIKE $1",
                "SELECT id FROM emp WHERE note LIKE $1::enc_text OR name LIKE $1",
            ),
            (
                "SELECT id FROM emp WHERE id = $1 OR salary = $1",
                "SELECT id FROM emp WHERE id = $1::enc_int4 OR salary = $1",
            ),
            (
                "SELECT id FROM emp WHERE id = $1 AND name = $2",
                "SELECT id FROM emp WHERE id = $1 AND name = $2",
            ),
        ],
    );
    let uses = one(
        "SELECT id FROM emp WHERE id = $1 AND name = $2 AND $3 IS NULL LIMIT $4",
        &s,
    )
    .expect("analysis")
    .params;
    let protected = |n| matches!(uses.get(&n), Some(ParamUse::Protected { .. }));
    assert!(!protected(1) && protected(2) && protected(3) && !protected(4));
    for sql in [
        "UPDATE emp SET note = $1 WHERE name = $1",
        "SELECT id FROM emp WHERE note < $1 OR name = $1",
        "SELECT id FROM emp WHERE name = $1 LIMIT $1",
        "SELECT id FROM emp WHERE coalesce(note, $1) = 'a' OR name = $1",
    ] {
        let refusal = one(sql, &s).expect_err(sql);
        assert_eq!(refusal.sqlstate, "42P08", "{sql}");
        assert!(refusal.hint.is_some());
    }
}

/// Strings that are parsed later.
#[test]
fn sql_in_strings() {
    let s = schema();
    refused(
        &s,
        &[
            "SELECT query_to_xml($$VALUES ('s3cret'::enc_text)$$, true, false, '')",
            "SELECT query_to_xml('SELECT id FROM emp WHERE name = ''s3cret''', true, false, '')",
            "SELECT run('UPDATE emp SET salary = 77')",
            "SELECT run('DO $x$ BEGIN UPDATE emp SET salary = 77; END $x$')",
            "SELECT find('name = ''s3cret''')",
            "INSERT INTO plain (name) VALUES ('select * from emp where name = ''s3cret''')",
            "SELECT run(E'UPDATE emp SET name = \\'s3cret\\'')",
            "COMMENT ON TABLE plain IS 'SELECT id FROM emp WHERE name = ''s3cret'''",
        ],
    );
    unchanged(
        &s,
        &[
            "SELECT query_to_xml('SELECT id FROM emp WHERE dept = 5', true, false, '')",
            "SELECT query_to_xml('SELECT id FROM plain WHERE name = ''x''', true, false, '')",
            "INSERT INTO plain (name) VALUES ('Select the name ''x'' from the list'), ('O''Brien''s name'), ('do 5 things with emp')",
            "INSERT INTO plain (name) VALUES ('name=5'), ('values: 5, 7')",
        ],
    );
    assert!(hides_secrets("DELETE FROM emp WHERE name = 's3cret'", &s));
    assert!(!hides_secrets("Delete this, please: 5", &s));
}

/// Arguments of routines, and constants that meet them. A proxy that looks at names only lets
/// `f(a text) … WHERE name = a` be made, and `SELECT f('s3cret')` leaves in the clear.
#[test]
fn routines() {
    let s = schema();
    for (sql, word) in [
        (
            "CREATE FUNCTION f(a text) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM emp WHERE name = a'",
            "argument",
        ),
        (
            "CREATE FUNCTION f(text) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM emp WHERE name = $1'",
            "argument",
        ),
        (
            "CREATE FUNCTION f(a text) RETURNS bigint LANGUAGE sql RETURN (SELECT count(*) FROM emp WHERE name = a)",
            "argument",
        ),
        (
            "CREATE FUNCTION f(a text) RETURNS void LANGUAGE sql BEGIN ATOMIC INSERT INTO emp (name) VALUES (a); END",
            "argument",
        ),
        (
            "CREATE FUNCTION f(a text) RETURNS enc_text LANGUAGE sql AS 'SELECT a'",
            "argument",
        ),
        (
            "CREATE FUNCTION f(a text) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM emp WHERE name = a); END $$",
            "argument",
        ),
        (
            "CREATE FUNCTION f(a text) RETURNS void LANGUAGE plpgsql AS $$ DECLARE v text; BEGIN v := a; UPDATE emp SET name = v; END $$",
            "argument",
        ),
        (
            "CREATE FUNCTION f(a text) RETURNS void LANGUAGE plpgsql AS $$ DECLARE v enc_text := a; BEGIN PERFORM length(v); END $$",
            "argument",
        ),
    ] {
        let refusal = one(sql, &s).expect_err(sql);
        assert_eq!(refusal.sqlstate, "0A000", "{sql}");
        assert!(refusal.message.contains(word), "{sql}: {}", refusal.message);
        assert!(refusal.detail.is_some() && refusal.hint.is_some());
    }
    check(
        &s,
        &[
            (
                "CREATE FUNCTION f(zz enc_text) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RETURN zz = 's3cret'; END $$",
                "CREATE FUNCTION f(zz enc_text) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RETURN zz = '<<~text:s3cret>>'::enc_text; END $$",
            ),
            (
                "CREATE FUNCTION f(zz enc_text) RETURNS bool LANGUAGE sql AS $$ SELECT zz = 's3cret' $$",
                "CREATE FUNCTION f(zz enc_text) RETURNS bool LANGUAGE sql AS $$ SELECT zz = '<<~text:s3cret>>'::enc_text $$",
            ),
            (
                "CREATE FUNCTION f(enc_text) RETURNS bool LANGUAGE sql AS $$ SELECT $1 = 's3cret' $$",
                "CREATE FUNCTION f(enc_text) RETURNS bool LANGUAGE sql AS $$ SELECT $1 = '<<~text:s3cret>>'::enc_text $$",
            ),
            (
                "CREATE FUNCTION f() RETURNS enc_text LANGUAGE plpgsql AS $$ BEGIN RETURN 's3cret'; END $$",
                "CREATE FUNCTION f() RETURNS enc_text LANGUAGE plpgsql AS $$ BEGIN RETURN '<<~text:s3cret>>'::enc_text; END $$",
            ),
            (
                "CREATE FUNCTION f(zz enc_text) RETURNS bool LANGUAGE sql RETURN zz = 'x'",
                "CREATE FUNCTION f(zz enc_text) RETURNS bool LANGUAGE sql RETURN zz = '<<x>>'",
            ),
            (
                "CREATE FUNCTION f(enc_text) RETURNS bool LANGUAGE sql RETURN $1 = 'x'",
                "CREATE FUNCTION f(enc_text) RETURNS bool LANGUAGE sql RETURN $1 = '<<x>>'",
            ),
            (
                "CREATE FUNCTION f() RETURNS void LANGUAGE sql BEGIN ATOMIC INSERT INTO emp (id, salary) VALUES (7, 5200); END",
                "CREATE FUNCTION f() RETURNS void LANGUAGE sql BEGIN ATOMIC INSERT INTO emp (id, salary) VALUES (7, '<<int4:5200>>'::enc_int4); END",
            ),
        ],
    );
    unchanged(
        &s,
        &[
            "CREATE FUNCTION f(who int) RETURNS enc_text LANGUAGE sql AS 'SELECT name FROM emp WHERE id = who'",
            "CREATE FUNCTION f(a enc_text) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM emp WHERE name = a'",
            "CREATE FUNCTION f(part enc_numeric) RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE n bigint; BEGIN UPDATE emp SET bonus = bonus * part; GET DIAGNOSTICS n = ROW_COUNT; RETURN n; END $$",
            "CREATE FUNCTION f(first int, rounds int) RETURNS enc_numeric LANGUAGE plpgsql AS $$ DECLARE acc enc_numeric; r record; BEGIN SELECT bonus - bonus INTO acc FROM emp WHERE id = first; FOR n IN first..rounds LOOP FOR r IN SELECT bonus FROM emp LOOP acc := acc + r.bonus; END LOOP; END LOOP; RETURN acc; END $$",
            "CREATE FUNCTION f(a text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN IF a = 'x' THEN RETURN 1; END IF; RETURN 2; END $$",
        ],
    );
}

/// Patterns that are computed, and what the grammar puts between.
#[test]
fn patterns() {
    check(
        &schema(),
        &[
            (
                "SELECT id FROM emp WHERE name LIKE $1 ESCAPE ''",
                "SELECT id FROM emp WHERE name LIKE $1::enc_text ESCAPE '<<~text:>>'::enc_text",
            ),
            (
                "SELECT id FROM emp WHERE name LIKE 'x' || '%' ESCAPE '/'",
                "SELECT id FROM emp WHERE name LIKE '<<~text:x>>'::enc_text || '<<~text:%>>'::enc_text ESCAPE '<<~text:/>>'::enc_text",
            ),
            (
                "SELECT id FROM emp WHERE name LIKE '%' || $1 || '%' ESCAPE $2",
                "SELECT id FROM emp WHERE name LIKE '<<~text:%>>'::enc_text || $1::enc_text || '<<%>>' ESCAPE $2::enc_text",
            ),
            (
                "SELECT id FROM emp WHERE name LIKE 'a#%' ESCAPE '##'",
                "SELECT id FROM emp WHERE name LIKE '<<~text:a#%>>'::enc_text ESCAPE '<<~text:##>>'::enc_text",
            ),
            (
                "SELECT id FROM emp WHERE name LIKE concat('%', $1, '%')",
                "SELECT id FROM emp WHERE name LIKE (coalesce(('<<%>>')::enc_text, '<<text:>>'::enc_text) || coalesce(( $1)::enc_text, '<<text:>>'::enc_text) || coalesce(( '<<%>>')::enc_text, '<<text:>>'::enc_text))",
            ),
            (
                "SELECT concat(name, id) FROM emp",
                "SELECT (coalesce((name)::enc_text, '<<text:>>'::enc_text) || coalesce(( id)::pg_catalog.text::enc_text, '<<text:>>'::enc_text)) AS \"concat\" FROM emp",
            ),
            (
                "SELECT substring(name for 3), substring(name from 2 for 3) FROM emp",
                "SELECT substring(name , '<<int4:1>>'::enc_int4, '<<int4:3>>'::enc_int4), substring(name from '<<int4:2>>'::enc_int4 for '<<int4:3>>'::enc_int4) FROM emp",
            ),
        ],
    );
    unchanged(
        &schema(),
        &[
            "SELECT substring(name for 3), concat('a', id, true), name LIKE $1 ESCAPE '' FROM plain",
            "SELECT substring(relname for 3) FROM pg_class WHERE relname LIKE '%' || $1 ESCAPE '!'",
        ],
    );
}

/// At Bind it turns out that `$1` has the value of `$2`, which is sealed.
#[test]
fn parameters_of_one_value() {
    let s = schema();
    let none = rewrite::Prepared::default();
    let sql = "SELECT id FROM emp WHERE note = $1 OR name = $2 OR id = $3 OR length(note) > $4";
    assert_eq!(one(sql, &s).unwrap().compared, [1, 3, 4]);
    let again = rewrite::analyze_sealing(sql, &s, &none, &[1]).unwrap();
    let uses = &again[0].params;
    assert!(matches!(uses[&1], ParamUse::Protected { .. }), "{uses:?}");
    assert_eq!(again[0].compared, [3, 4]);
    // What a plain column gets is the application's.
    let sql = "UPDATE emp SET note = $1, name = $2 WHERE note = $1";
    assert_eq!(one(sql, &s).unwrap().compared, [0; 0]);
}

/// A tool that puts values into comments would show them to the server's log.
#[test]
fn comments() {
    let s = schema();
    check(
        &s,
        &[
            (
                "SELECT id /* 's3cret' */ FROM emp -- s3cret\nWHERE name = 's3cret'",
                "SELECT id   FROM emp  \nWHERE name = '<<s3cret>>'",
            ),
            (
                "/*+ SeqScan(emp) */ SELECT name FROM emp",
                "/*+ SeqScan(emp) */ SELECT name FROM emp",
            ),
        ],
    );
    unchanged(&s, &["SELECT id /* 's3cret' */ FROM plain -- x"]);
    let all = "/* a */ SELECT 1; /* b */ SELECT name FROM emp /* c */; -- d";
    let list = rewrite::analyze(all, &s).unwrap();
    let gone: usize = list.iter().map(|s| s.edits.len()).sum();
    assert_eq!(gone, 4, "{list:?}");
}

/// What a function of plain values gets beside a plain operand may be what it gives back.
#[test]
fn arguments_of_plain_functions() {
    let s = schema();
    refused(
        &s,
        &[
            "SELECT id FROM emp WHERE name = f(id, 's3cret')",
            "SELECT id FROM emp WHERE name = f(id, $1)",
            "UPDATE emp SET name = f(id, 's3cret')",
            // A number is a value, too.
            "SELECT id FROM emp WHERE salary = f(id, 5200)",
            "SELECT id FROM emp WHERE salary IN (f(id, 5200), f(id))",
            "UPDATE emp SET salary = f(id, 5200)",
            "INSERT INTO emp (id, salary) SELECT id, f(id, 5200) FROM plain",
            "SELECT e.id FROM emp e JOIN (SELECT f(id, 5200) AS s FROM plain) p ON e.salary = p.s",
            "SELECT id FROM emp, f(dept, 5200) AS g WHERE salary = g",
        ],
    );
    for sql in [
        "SELECT id FROM emp WHERE name = lpad(note, 20)",
        "SELECT id FROM emp WHERE name = regexp_substr(note, note, 1, 2)",
        "SELECT id FROM emp WHERE id = f(id, 5200) AND salary = 7",
        "SELECT id FROM emp WHERE name = to_char(id, '0009')",
        "SELECT id FROM emp WHERE name = note || current_setting('app.tenant')",
        "SELECT id FROM emp WHERE note = f(id, 'x') AND name = 'y'",
    ] {
        one(sql, &s).unwrap();
    }
}

/// As above, of a name that has overloads with protected arguments.
#[test]
fn arguments_of_overloads() {
    let mut s = schema();
    function(&mut s, "g(int4, int4) int4");
    function(&mut s, "g(enc_int4) enc_int4");
    function(&mut s, "h(enc_text, int4) int4");
    refused(
        &s,
        &[
            "SELECT id FROM emp WHERE salary = g(id, 5200)",
            "UPDATE emp SET salary = g(id, 5200)",
            "SELECT id FROM emp WHERE salary = h(name, 5200)",
            "SELECT id FROM emp WHERE salary = h('x', $1)",
        ],
    );
    check(
        &s,
        &[
            (
                "SELECT id FROM emp WHERE salary = g(5200)",
                "SELECT id FROM emp WHERE salary = g('<<int4:5200>>'::enc_int4)",
            ),
            (
                "SELECT id FROM emp WHERE id = h('x', 5)",
                "SELECT id FROM emp WHERE id = h('<<x>>', 5)",
            ),
        ],
    );
}

#[test]
fn comments_in_bodies() {
    let s = schema();
    check(
        &s,
        &[
            (
                "CREATE FUNCTION f() RETURNS enc_text LANGUAGE sql AS $b$ SELECT name -- s3cret\n FROM emp /* s3cret */ $b$",
                "CREATE FUNCTION f() RETURNS enc_text LANGUAGE sql AS $b$ SELECT name  \n FROM emp   $b$",
            ),
            (
                "DO $$ BEGIN /* s3cret */ DELETE FROM emp; END $$",
                "DO $$ BEGIN   DELETE FROM emp; END $$",
            ),
        ],
    );
    refused(
        &s,
        &[
            "CREATE FUNCTION f() RETURNS enc_text LANGUAGE sql AS 'SELECT name FROM emp -- it''s s3cret'",
        ],
    );
    unchanged(
        &s,
        &[
            "CREATE FUNCTION f() RETURNS text LANGUAGE sql AS $$ SELECT name FROM plain -- open\n $$",
        ],
    );
}

/// SQL that is put together from several strings, and run by whoever gets it.
#[test]
fn strings_put_together() {
    let s = schema();
    refused(
        &s,
        &[
            "SELECT query_to_xml('SELECT * FROM emp WHERE name = ' || '''s3cret''', true, true, '')",
            "SELECT query_to_xml('SELECT * FROM emp WHERE name = ''' || 's3cret' || '''', true, true, '')",
            "SELECT f('SELECT * FROM emp WHERE name = ''' || $1 || '''')",
            "SELECT f('DELETE FROM emp WHERE id = ' || 5 || ' OR name = ''' || note || '''') FROM plain",
            "SELECT f(concat('SELECT * FROM emp WHERE name = ''', 's3cret', ''''))",
            "SELECT f(concat('SELECT * FROM emp WHERE name = ''', 's3cret', ''''), true, '')",
            "SELECT f(format('SELECT * FROM emp WHERE name = %L', 's3cret'))",
            "SELECT f(array_to_string(ARRAY['SELECT * FROM emp WHERE name = ''', 's3cret', ''''], ''))",
            "SELECT f(replace('SELECT * FROM emp WHERE name = ?', '?', quote_literal('s3cret')))",
            "SELECT f(regexp_replace('SELECT * FROM emp WHERE name = :v', ':v', '''s3cret'''))",
            "SELECT f('SELECT * FROM emp WHERE name = ' || quote_literal('s3cret'))",
            "SELECT f('SELECT * FROM emp WHERE name = ' || quote_nullable($1) || ' AND id = 5')",
            "SELECT f(concat('SELECT * FROM emp WHERE name = ', quote_literal('s3cret')))",
            "SELECT f('SELECT * FROM emp WHERE ' || 'name = ' || quote_literal('s3cret'))",
            "SELECT f(format('SELECT * FROM emp WHERE name = %s', quote_literal('s3cret')))",
            "SELECT f(format('SELECT * FROM emp WHERE name = %1$L', 's3cret'))",
            "SELECT f(format('SELECT * FROM emp WHERE name = %-10L', 's3cret'))",
            "SELECT f(overlay('SELECT * FROM emp WHERE name = ?' placing '''s3cret''' from 32))",
            "SELECT f(overlay('SELECT * FROM emp WHERE name = :v' placing quote_literal($1) from 32))",
            "SELECT f(translate('SELECT * FROM emp WHERE name = #s3cret#', '#', ''''''))",
            "SELECT f(string_agg(x, '')) FROM (VALUES ('SELECT * FROM emp WHERE name = '), ('''s3cret''')) v (x)",
            "SELECT f(lpad('''s3cret''', 40, 'SELECT * FROM emp WHERE name = '))",
            "SELECT f(rpad('SELECT * FROM emp WHERE name = ', 40, '''s3cret'''))",
            "SELECT f('SELECT * FROM emp WHERE name = ' || repeat('''s3cret''', 1))",
            "SELECT f('INSERT INTO emp (name) VALUES (', 's3cret', ')')",
            "SELECT f('SELECT * FROM emp WHERE salary > ', 5200)",
            "SELECT f('SELECT * FROM emp WHERE name LIKE', 's3cret')",
        ],
    );
    unchanged(
        &s,
        &[
            "SELECT replace('SELECT * FROM plain WHERE note = ?', '?', quote_literal('x'))",
            "SELECT replace('Select the emp of the month', 'month', 'year')",
            "SELECT array_to_string(ARRAY['with', 'emp', '5'], ' ')",
            "SELECT f('SELECT * FROM plain WHERE name = ''' || 'x' || '''')",
            "SELECT f('SELECT id FROM emp WHERE id = ' || 'x', 'y')",
            "SELECT 'The name of ' || note || ' is ''' || name || '''' FROM plain",
        ],
    );
}
