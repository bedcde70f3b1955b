//! Constants in bodies of routines that name something protected: those that meet nothing protected
//! stay, the others are refused. A wrong proxy refuses every trigger that an application has, or
//! sends a constant in the clear that is compared with a protected value.

mod common;
use common::{check, one, refused, relation, routine, schema, unchanged};

const TRIGGER: &str = "RETURNS trigger LANGUAGE plpgsql AS";

fn trigger(body: &str) -> String {
    format!("CREATE FUNCTION f() {TRIGGER} $$ {body} $$")
}

fn function(body: &str) -> String {
    format!("CREATE FUNCTION f(who int) RETURNS int LANGUAGE plpgsql AS $$ {body} $$")
}

fn block(body: &str) -> String {
    format!("DO $$ {body} $$")
}

#[test]
fn harmless_constants() {
    let made = [
        // What triggers of applications look like.
        trigger("BEGIN IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; NEW.name := lower(NEW.name); RETURN NEW; END"),
        trigger("BEGIN IF TG_OP IN ('INSERT', 'UPDATE') AND NEW.id > 100 THEN NEW.opened := now(); END IF; RETURN NEW; END"),
        trigger("BEGIN IF NEW.name IS NULL THEN RAISE EXCEPTION 'there is no name in %', TG_TABLE_NAME USING ERRCODE = '23514', HINT = 'Say one.'; END IF; RETURN NEW; END"),
        trigger("BEGIN UPDATE emp SET salary = salary + NEW.salary WHERE id = NEW.dept AND dept > 0; RETURN NULL; END"),
        trigger("BEGIN INSERT INTO plain (id, doc) VALUES (1, '{}'); PERFORM count(name) FROM emp; RETURN NEW; END"),
        trigger("BEGIN CASE TG_OP WHEN 'INSERT', 'UPDATE' THEN PERFORM NEW.name; ELSE NULL; END CASE; RETURN NEW; END"),
        trigger("BEGIN NEW.note := 'changed'; NEW.salary := OLD.salary; RETURN NEW; END"),
        // Others.
        function("DECLARE n int := 0; kind varchar(10) DEFAULT 'open'; BEGIN SELECT count(*) INTO n FROM emp WHERE id = who AND note = kind; RETURN n + 1; END"),
        function("DECLARE total enc_numeric(10,2); BEGIN SELECT sum(bonus)::enc_numeric(10,2) INTO total FROM emp WHERE dept = 3; RAISE NOTICE 'done'; RETURN 0; END"),
        function("BEGIN FOR n IN 1..10 LOOP UPDATE emp SET salary = salary WHERE id = n * 2; END LOOP; RETURN 5; END"),
        function("BEGIN UPDATE emp SET name = name; RETURN 1; EXCEPTION WHEN SQLSTATE '23505' THEN RETURN 2; WHEN division_by_zero THEN RETURN 3; END"),
        function("BEGIN RETURN (SELECT count(*) FROM emp WHERE name = code LIMIT 5); END"),
        function("DECLARE r record; BEGIN FOR r IN SELECT id, name FROM emp WHERE dept = 4 ORDER BY 1 LOOP UPDATE emp SET name = r.name WHERE id = r.id; END LOOP; RETURN 0; END"),
        function("BEGIN IF EXISTS (SELECT FROM emp WHERE id = 7) THEN RETURN 1; ELSIF who = 2 THEN RETURN 3; ELSE RETURN 4; END IF; END"),
        "CREATE FUNCTION f(who int) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM emp WHERE id = 5 AND salary > bonus'".to_owned(),
        "CREATE FUNCTION f() RETURNS enc_text LANGUAGE sql AS $$ SELECT name FROM emp WHERE note = 'x' LIMIT 1 $$".to_owned(),
        "CREATE PROCEDURE p(more enc_numeric, up_to int) LANGUAGE plpgsql AS $$ BEGIN FOR n IN 1..10 LOOP EXIT WHEN n > up_to; UPDATE emp SET bonus = bonus + more WHERE id = n * 1; END LOOP; END $$".to_owned(),
        block("BEGIN UPDATE emp SET salary = salary WHERE id = 5; RAISE NOTICE 'done'; END"),
        block("DECLARE n int; BEGIN SELECT count(*) INTO n FROM emp WHERE note LIKE 'a%'; END"),
    ];
    let made: Vec<&str> = made.iter().map(String::as_str).collect();
    unchanged(&schema(), &made);
}

/// Constants whose type is certain are sealed, with a cast to their protected type.
#[test]
fn sealed_constants() {
    check(
        &schema(),
        &[
            (
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.salary := 5200; RETURN NEW; END $$",
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.salary := '<<int4:5200>>'::enc_int4; RETURN NEW; END $$",
            ),
            (
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN new.name = 's3cret'; RETURN NEW; END $$",
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN new.name = '<<~text:s3cret>>'::enc_text; RETURN NEW; END $$",
            ),
            (
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.salary > 5200 THEN RETURN NULL; END IF; RETURN NEW; END $$",
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.salary > '<<int4:5200>>'::enc_int4 THEN RETURN NULL; END IF; RETURN NEW; END $$",
            ),
            (
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD.name = 's3cret' THEN RETURN NULL; END IF; RETURN NEW; END $$",
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD.name = '<<~text:s3cret>>'::enc_text THEN RETURN NULL; END IF; RETURN NEW; END $$",
            ),
            (
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.name := coalesce(NEW.name, 's3cret'); RETURN NEW; END $$",
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.name := coalesce(NEW.name, '<<~text:s3cret>>'::enc_text); RETURN NEW; END $$",
            ),
            (
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN CASE WHEN NEW.name = 's3cret' THEN OLD ELSE NEW END; END $$",
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN CASE WHEN NEW.name = '<<~text:s3cret>>'::enc_text THEN OLD ELSE NEW END; END $$",
            ),
            (
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE emp SET note = 'x' WHERE salary = 5200; RETURN NEW; END $$",
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE emp SET note = 'x' WHERE salary = '<<int4:5200>>'::enc_int4; RETURN NEW; END $$",
            ),
            (
                "CREATE FUNCTION f(who int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE v enc_text := 's3cret'; BEGIN RETURN 1; END $$",
                "CREATE FUNCTION f(who int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE v enc_text := '<<~text:s3cret>>'::enc_text; BEGIN RETURN 1; END $$",
            ),
            (
                "CREATE FUNCTION f(who int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE v enc_int4; BEGIN v := 5200; RETURN 1; END $$",
                "CREATE FUNCTION f(who int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE v enc_int4; BEGIN v := '<<int4:5200>>'::enc_int4; RETURN 1; END $$",
            ),
            (
                "CREATE FUNCTION f(who int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE v enc_int4; BEGIN v := (SELECT 5200); RETURN 1; END $$",
                "CREATE FUNCTION f(who int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE v enc_int4; BEGIN v := (SELECT '<<int4:5200>>'::enc_int4); RETURN 1; END $$",
            ),
            (
                "CREATE FUNCTION f(who int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE c CURSOR FOR SELECT id FROM emp WHERE name = 's3cret'; BEGIN OPEN c; RETURN 1; END $$",
                "CREATE FUNCTION f(who int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE c CURSOR FOR SELECT id FROM emp WHERE name = '<<~text:s3cret>>'::enc_text; BEGIN OPEN c; RETURN 1; END $$",
            ),
            (
                "CREATE FUNCTION f(who int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO emp (name) VALUES ('s3cret'); RETURN 1; END $$",
                "CREATE FUNCTION f(who int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO emp (name) VALUES ('<<~text:s3cret>>'::enc_text); RETURN 1; END $$",
            ),
            (
                "CREATE FUNCTION f(who int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO emp VALUES (1, 's3cret'); RETURN 1; END $$",
                "CREATE FUNCTION f(who int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO emp VALUES (1, '<<~text:s3cret>>'::enc_text); RETURN 1; END $$",
            ),
            (
                "CREATE FUNCTION f(who int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN MERGE INTO emp USING plain p ON emp.id = p.id WHEN MATCHED THEN UPDATE SET name = 's3cret'; RETURN 1; END $$",
                "CREATE FUNCTION f(who int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN MERGE INTO emp USING plain p ON emp.id = p.id WHEN MATCHED THEN UPDATE SET name = '<<~text:s3cret>>'::enc_text; RETURN 1; END $$",
            ),
            (
                "CREATE FUNCTION f(who int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM emp WHERE salary IN (1, 5200)); END $$",
                "CREATE FUNCTION f(who int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM emp WHERE salary IN ('<<int4:1>>'::enc_int4, '<<int4:5200>>'::enc_int4)); END $$",
            ),
            (
                "CREATE FUNCTION f(who int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM enc_text('s3cret') FROM emp; RETURN 1; END $$",
                "CREATE FUNCTION f(who int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM enc_text('<<~text:s3cret>>'::enc_text) FROM emp; RETURN 1; END $$",
            ),
            (
                "CREATE FUNCTION f() RETURNS enc_text LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT 's3cret'); END $$",
                "CREATE FUNCTION f() RETURNS enc_text LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT '<<~text:s3cret>>'::enc_text); END $$",
            ),
            (
                "CREATE FUNCTION f() RETURNS SETOF enc_text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT 's3cret'; END $$",
                "CREATE FUNCTION f() RETURNS SETOF enc_text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT '<<~text:s3cret>>'::enc_text; END $$",
            ),
            (
                "CREATE FUNCTION f() RETURNS emp.name%TYPE LANGUAGE plpgsql AS $$ BEGIN RETURN 's3cret'; END $$",
                "CREATE FUNCTION f() RETURNS emp.name%TYPE LANGUAGE plpgsql AS $$ BEGIN RETURN '<<~text:s3cret>>'::enc_text; END $$",
            ),
            (
                "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM emp WHERE name = 's3cret' $$",
                "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM emp WHERE name = '<<~text:s3cret>>'::enc_text $$",
            ),
            (
                "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS $$ INSERT INTO emp (name) VALUES ('s3cret'); SELECT 1::bigint $$",
                "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS $$ INSERT INTO emp (name) VALUES ('<<~text:s3cret>>'::enc_text); SELECT 1::bigint $$",
            ),
            (
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.name := NEW.name || 's3cret'; RETURN NEW; END $$",
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.name := NEW.name || '<<~text:s3cret>>'::enc_text; RETURN NEW; END $$",
            ),
            (
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN CASE NEW.name WHEN 's3cret', 'x' THEN RETURN NULL; WHEN 'y' THEN NEW.salary := 7; ELSE NEW.salary := 8; END CASE; RETURN NEW; END $$",
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN CASE NEW.name WHEN '<<~text:s3cret>>'::enc_text, '<<~text:x>>'::enc_text THEN RETURN NULL; WHEN '<<~text:y>>'::enc_text THEN NEW.salary := '<<int4:7>>'::enc_int4; ELSE NEW.salary := '<<int4:8>>'::enc_int4; END CASE; RETURN NEW; END $$",
            ),
            (
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.name := 's3cret'::text; NEW.code := 'x'::text || NEW.code; NEW.note := 'a'::text; RETURN NEW; END $$",
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.name := '<<~text:s3cret>>'::enc_text; NEW.code := '<<~text:x>>'::enc_text || NEW.code; NEW.note := 'a'::text; RETURN NEW; END $$",
            ),
            (
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN CASE NEW.dept WHEN 1, 2 THEN RETURN NULL; ELSE NEW.name := 'x'; END CASE; RETURN NEW; END $$",
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN CASE NEW.dept WHEN 1, 2 THEN RETURN NULL; ELSE NEW.name := '<<~text:x>>'::enc_text; END CASE; RETURN NEW; END $$",
            ),
            (
                "CREATE FUNCTION f(who int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE v emp.name%TYPE := 's3cret'; BEGIN UPDATE emp SET name = v; RETURN 1; END $$",
                "CREATE FUNCTION f(who int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE v emp.name%TYPE := '<<~text:s3cret>>'::enc_text; BEGIN UPDATE emp SET name = v; RETURN 1; END $$",
            ),
            (
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.salary := -5200; IF OLD.salary = - 5200 THEN RETURN NULL; END IF; RETURN NEW; END $$",
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.salary := '<<int4:-5200>>'::enc_int4; IF OLD.salary = '<<int4:-5200>>'::enc_int4 THEN RETURN NULL; END IF; RETURN NEW; END $$",
            ),
            (
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.name := ''it''''s''; NEW.note := ''a''; RETURN NEW; END'",
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $body0$BEGIN NEW.name := '<<~text:it''s>>'::enc_text; NEW.note := 'a'; RETURN NEW; END$body0$",
            ),
            (
                "DO $$ BEGIN UPDATE emp SET salary = 5200; END $$",
                "DO $$ BEGIN UPDATE emp SET salary = '<<int4:5200>>'::enc_int4; END $$",
            ),
        ],
    );
}

/// Each has one constant that meets something protected and cannot be sealed, or may meet it.
#[test]
fn refused_constants() {
    let made = [
        trigger("DECLARE row emp%ROWTYPE; BEGIN row := NEW; row.name := 's3cret'; RETURN row; END"),
        function("DECLARE v text := 's3cret'; BEGIN UPDATE emp SET name = v; RETURN 1; END"),
        function("DECLARE v text; BEGIN SELECT 's3cret' INTO v; UPDATE emp SET name = v; RETURN 1; END"),
        function("DECLARE v text; BEGIN FOREACH v IN ARRAY ARRAY['s3cret'] LOOP UPDATE emp SET name = v; END LOOP; RETURN 1; END"),
        function("BEGIN FOR n IN 1..5200 LOOP UPDATE emp SET salary = n; END LOOP; RETURN 1; END"),
        function("DECLARE r record; BEGIN SELECT 's3cret' AS v INTO r; UPDATE emp SET name = r.v; RETURN 1; END"),
        function("DECLARE r record; BEGIN FOR r IN VALUES ('s3cret') LOOP UPDATE emp SET name = r.column1; END LOOP; RETURN 1; END"),
        function("DECLARE v pg_catalog.enc_text := 's3cret'; BEGIN RETURN 1; END"),
        function("DECLARE c CURSOR (v enc_text) FOR SELECT id FROM emp WHERE name = v; BEGIN OPEN c('s3cret'); RETURN 1; END"),
        function("DECLARE c CURSOR (v enc_text) FOR SELECT id FROM emp WHERE name = v; BEGIN FOR r IN c('s3cret') LOOP RETURN 1; END LOOP; END"),
        function(
            "DECLARE a text[]; BEGIN a[1] := 's3cret'; UPDATE emp SET name = a[1]; RETURN 1; END",
        ),
        function("BEGIN EXECUTE 'UPDATE emp SET name = $1' USING 's3cret'; RETURN 1; END"),
        function("BEGIN EXECUTE 'UPDATE emp SET salary = ' || 5200; RETURN 1; END"),
        function("BEGIN PERFORM query_to_xml('SELECT id FROM emp WHERE name = ''s3cret''', true, false, ''); RETURN 1; END"),
        function("BEGIN CREATE TEMP TABLE t AS SELECT id FROM emp WHERE name = 's3cret'; RETURN 1; END"),
        function("BEGIN ALTER TABLE emp ALTER name SET DEFAULT 's3cret'; RETURN 1; END"),
        function("BEGIN CALL p(enc_text 's3cret'); RETURN 1; END"),
        "CREATE FUNCTION f(OUT a int, OUT b enc_text) LANGUAGE plpgsql AS $$ BEGIN a := 1; b := 's3cret'; END $$ ".to_owned(),
        "CREATE FUNCTION f() RETURNS TABLE (a int, b enc_text) LANGUAGE sql AS $$ SELECT id, 's3cret' FROM emp $$".to_owned(),
        function("DECLARE v enc_text; BEGIN SELECT 's3cret' INTO v FROM emp; RETURN 1; END"),
        function("DECLARE r record; v text := 's3cret'; BEGIN SELECT v AS a INTO r; UPDATE emp SET name = r.a; RETURN 1; END"),
        function("DECLARE r record; v text := 's3cret'; w text; BEGIN w := v; FOR r IN SELECT w AS a LOOP UPDATE emp SET name = r.a; END LOOP; RETURN 1; END"),
        function("DECLARE e enc_text; v text := 's3cret'; BEGIN SELECT v INTO e FROM emp; RETURN 1; END"),
        function("DECLARE e enc_int4; BEGIN FOR n IN 5200..5200 LOOP SELECT n INTO e FROM emp; END LOOP; RETURN 1; END"),
        function("BEGIN FOR n IN 1..2 BY 5200 LOOP UPDATE emp SET salary = n; END LOOP; RETURN 1; END"),
        function("DECLARE r record; v text := 's3cret'; BEGIN r := ROW(v); UPDATE emp SET name = r.f1; RETURN 1; END"),
        "CREATE FUNCTION f() RETURNS SETOF emp LANGUAGE sql AS $$ SELECT id, 's3cret', salary, bonus, hired, active, dept, note, seen, code, tags FROM emp $$".to_owned(),
        "CREATE FUNCTION f() RETURNS SETOF emp LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT id, 's3cret', salary, bonus, hired, active, dept, note, seen, code, tags FROM emp; END $$".to_owned(),
        trigger("BEGIN CASE NEW.name || 's3cret' WHEN NEW.note THEN RETURN NULL; ELSE RETURN NEW; END CASE; END"),
        trigger("BEGIN IF NEW.salary = -5200 OR NEW.salary = 5200 THEN RETURN NULL; END IF; RETURN NEW; END"),
        trigger("BEGIN IF NEW.salary = -5200 OR NEW.id - 5200 = 1 THEN RETURN NULL; END IF; RETURN NEW; END"),
        function("DECLARE v emp.tags%TYPE := 's3cret'; BEGIN RETURN 1; END"),
        "CREATE FUNCTION f(a text DEFAULT 's3cret') RETURNS void LANGUAGE sql AS 'UPDATE emp SET name = ''s3cret'''".to_owned(),
        // Sealed in one place, in the clear in another, or of two types.
        trigger("BEGIN RAISE NOTICE 's3cret'; NEW.name := 's3cret'; RETURN NEW; END"),
        trigger("BEGIN NEW.name := 's3cret'; NEW.note := 's3cret'; RETURN NEW; END"),
        trigger("BEGIN IF NEW.salary > 5200 AND NEW.id = 5200 THEN RETURN NULL; END IF; RETURN NEW; END"),
        trigger("BEGIN NEW.name := '5200'; NEW.salary := '5200'; RETURN NEW; END"),
        trigger("BEGIN NEW.name := 's3cret'::varchar(3); RETURN NEW; END"),
        trigger("BEGIN NEW.name := ('s3cret')::text; RETURN NEW; END"),
        trigger("BEGIN NEW.name := 's3cret'::text; NEW.note := 's3cret'::text; RETURN NEW; END"),
        "CREATE FUNCTION f(a text DEFAULT 's3cret') RETURNS void LANGUAGE plpgsql AS $$ BEGIN UPDATE emp SET name = 's3cret'; END $$".to_owned(),
        block("DECLARE v text := 's3cret'; BEGIN INSERT INTO emp (name) VALUES (v); END"),
        block("BEGIN EXECUTE 'UPDATE emp SET salary = 5200'; END"),
    ];
    let made: Vec<&str> = made.iter().map(String::as_str).collect();
    refused(&schema(), &made);
    for sql in made {
        let refusal = one(sql, &schema()).expect_err(sql);
        assert_eq!(refusal.sqlstate, "0A000", "{sql}: {}", refusal.message);
        assert!(refusal.hint.is_some(), "{sql}");
    }
}
/// As the catalog shows them: the server has them, or makes them anew.
#[test]
fn envelopes_of_constants() {
    let body = "BEGIN NEW.name := coalesce(NEW.name, 'cfd1.zwMIEBAAAA'::pg_catalog.enc_text); RETURN NEW; END";
    let before_tables =
        "BEGIN INSERT INTO later (a) VALUES ('cfd1.zwMIEBAAAA'::pg_catalog.enc_text); END";
    for made in [trigger(body), function(before_tables)] {
        let statement = one(&made, &schema()).expect("a statement");
        assert_eq!(statement.edits, [], "{made}");
    }
    // Whatever looks otherwise is a value.
    check(
        &schema(),
        &[(
            &trigger("BEGIN NEW.name := 'cfd1.zwMIEBAAAA'; RETURN NEW; END"),
            &trigger("BEGIN NEW.name := '<<~text:cfd1.zwMIEBAAAA>>'::enc_text; RETURN NEW; END"),
        )],
    );
}

/// A cast that is written as a call. With the bug the constant went in the clear.
#[test]
fn types_called_as_functions() {
    check(
        &schema(),
        &[
            (
                "SELECT enc_text('s3cret') FROM emp",
                "SELECT enc_text('<<~text:s3cret>>') FROM emp",
            ),
            ("SELECT enc_int4('5')", "SELECT enc_int4('<<~int4:5>>')"),
            (
                "SELECT enc_text(name) FROM emp",
                "SELECT enc_text(name) FROM emp",
            ),
        ],
    );
}

/// A string that a parsed body gives would be `text`.
#[test]
fn strings_of_parsed_bodies() {
    check(
        &schema(),
        &[
            (
                "CREATE FUNCTION f() RETURNS enc_text LANGUAGE sql RETURN 'x'",
                "CREATE FUNCTION f() RETURNS enc_text LANGUAGE sql RETURN '<<~text:x>>'::enc_text",
            ),
            (
                "CREATE FUNCTION f() RETURNS enc_text LANGUAGE sql BEGIN ATOMIC SELECT 'x'; END",
                "CREATE FUNCTION f() RETURNS enc_text LANGUAGE sql BEGIN ATOMIC SELECT '<<~text:x>>'::enc_text AS \"?column?\"; END",
            ),
        ],
    );
}

/// A field of NEW with the name of a protected column counts as protected; where it is plain, the
/// sealed constant would fail when the trigger runs, perhaps much later.
#[test]
fn triggers_on_other_tables() {
    let sealed = "'cfd1.zwMIEBAAAA'::pg_catalog.enc_text";
    let refusal = |body: String, table: &str| {
        let mut s = schema();
        routine(&mut s, "f", &body);
        relation(&mut s, "public.other_one: id int4, name text");
        let sql =
            format!("CREATE TRIGGER t BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION f()");
        one(&sql, &s).err()
    };
    let set = format!("BEGIN NEW.name := {sealed}; RETURN NEW; END");
    let asks = format!("BEGIN IF OLD.name = {sealed} THEN RETURN NULL; END IF; RETURN NEW; END");
    for body in [&set, &asks] {
        let refused = refusal(body.clone(), "other_one").expect(body);
        assert_eq!(refused.sqlstate, "0A000");
        assert!(refused.hint.is_some() && refused.message.contains("\"name\""));
        assert!(refusal(body.clone(), "emp").is_none());
    }
    for fits in [
        format!(
            "BEGIN IF TG_TABLE_NAME = 'emp' THEN NEW.name := {sealed}; END IF; RETURN NEW; END"
        ),
        format!("BEGIN UPDATE emp SET name = {sealed} WHERE name = NEW.name; RETURN NEW; END"),
        "BEGIN NEW.name := lower(NEW.name); RETURN NEW; END".to_owned(),
    ] {
        assert!(refusal(fits.clone(), "other_one").is_none(), "{fits}");
    }
}
