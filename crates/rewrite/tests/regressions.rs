//! What users of other rewriting proxies got burnt by, and limits of our own:
//! each case says what a wrong proxy does.

mod common;
use common::{check, one, relation, schema, unchanged};
use rewrite::{Piece, Schema, analyze, apply_edits, character_position};
use std::convert::Infallible;

/// A table of the same name in another schema: the wrong one is looked up, and
/// the value is stored in the clear (or a plain one is broken).
#[test]
fn same_name_in_other_schemas() {
    let mut s = schema();
    check(
        &s,
        &[(
            "INSERT INTO emp (salary) VALUES (5)",
            "INSERT INTO emp (salary) VALUES ('<<int4:5>>'::enc_int4)",
        )],
    );
    unchanged(&s, &["INSERT INTO other.emp (salary) VALUES (5)"]);
    s.set_search_path(["other", "public"]);
    unchanged(&s, &["INSERT INTO emp (salary) VALUES (5)"]);
    assert!(
        one("INSERT INTO emp (salary) VALUES (5)", &s)
            .expect("insert")
            .depends_on_search_path
    );
    check(
        &s,
        &[(
            "INSERT INTO public.emp (salary) VALUES (5)",
            "INSERT INTO public.emp (salary) VALUES ('<<int4:5>>'::enc_int4)",
        )],
    );
    // A temporary table hides all others.
    relation(&mut s, "pg_temp_3.secret: a int4");
    s.set_temp(Some("pg_temp_3".into()));
    unchanged(
        &s,
        &[
            "INSERT INTO secret VALUES (5)",
            "INSERT INTO pg_temp.secret VALUES (5)",
        ],
    );
    check(
        &s,
        &[(
            "INSERT INTO other.secret VALUES (5)",
            "INSERT INTO other.secret VALUES ('<<int4:5>>'::enc_int4)",
        )],
    );
    // Outside the search path it does not exist.
    s.set_search_path(["public"]);
    s.set_temp(None);
    let refusal = analyze("INSERT INTO secret VALUES (5)", &s).expect_err("unknown");
    assert!(refusal.needs_schema_refresh && refusal.sqlstate == "42P01");
}

/// A function with the name of a protected table, in whatever schema: PostgreSQL never casts to a
/// row type by a call. The call is refused.
#[test]
fn functions_named_like_tables() {
    let mut s = schema();
    s.add_opaque_type("public", "emp");
    s.add_opaque_type("public", "pairs");
    unchanged(&s, &["SELECT emp(5)", "SELECT public.emp('x')"]);
    // Another type that holds protected values may be meant.
    let refusal = analyze("SELECT pairs('x')", &s).expect_err("a cast");
    assert_eq!(refusal.sqlstate, "0A000");
}

/// Quoted and folded names: "EMP" is not emp.
#[test]
fn identifiers() {
    let mut s = schema();
    relation(&mut s, "public.EMP: salary int4");
    unchanged(&s, &["SELECT * FROM \"EMP\" WHERE salary = 5"]);
    check(
        &s,
        &[
            (
                "SELECT * FROM eMp WHERE Salary = 5",
                "SELECT * FROM eMp WHERE Salary = '<<int4:5>>'::enc_int4",
            ),
            (
                "SELECT * FROM \"emp\" WHERE \"salary\" = 5",
                "SELECT * FROM \"emp\" WHERE \"salary\" = '<<int4:5>>'::enc_int4",
            ),
            (
                "SELECT * FROM U&\"\\0065mp\" WHERE salary = 5",
                "SELECT * FROM U&\"\\0065mp\" WHERE salary = '<<int4:5>>'::enc_int4",
            ),
            (
                "SELECT emp.* FROM emp plain, plain emp WHERE plain.salary = 5 AND emp.salary = 6",
                "SELECT emp.* FROM emp plain, plain emp WHERE plain.salary = '<<int4:5>>'::enc_int4 AND emp.salary = 6",
            ),
        ],
    );
}

/// JSON paths and field names of plain documents are left alone, beside
/// protected columns, too.
#[test]
fn json_beside_protected() {
    unchanged(
        &schema(),
        &[
            "SELECT salary FROM emp, plain WHERE doc->'a'->>'b' = 'c' AND doc @> '{\"k\": 5}' AND doc #>> '{a,b}' = 'x'",
            "SELECT salary FROM emp, plain WHERE jsonb_path_exists(doc, '$.a ? (@ > 5)')",
        ],
    );
    check(
        &schema(),
        &[(
            "SELECT * FROM emp, plain WHERE emp.name = doc->>'b'",
            "SELECT * FROM emp, plain WHERE emp.name = doc->>'b'",
        )],
    );
}

/// NULL comparands stay NULL and do not make a literal beside them plain.
#[test]
fn null_comparands() {
    check(
        &schema(),
        &[
            (
                "SELECT * FROM emp WHERE name IN (NULL, 'a')",
                "SELECT * FROM emp WHERE name IN (NULL, '<<a>>')",
            ),
            (
                "SELECT * FROM emp WHERE name = NULL::varchar(10)",
                "SELECT * FROM emp WHERE name = NULL::enc_varchar(10)",
            ),
            (
                "SELECT * FROM emp WHERE coalesce(NULL, name) = 'a'",
                "SELECT * FROM emp WHERE coalesce(NULL, name) = '<<a>>'",
            ),
            (
                "SELECT * FROM emp WHERE salary = NULL OR salary = 5",
                "SELECT * FROM emp WHERE salary = NULL OR salary = '<<int4:5>>'::enc_int4",
            ),
            (
                "UPDATE upd SET a = NULL, b = 'x'",
                "UPDATE upd SET a = NULL, b = '<<x>>'",
            ),
            (
                "INSERT INTO upd VALUES (NULL, NULL, 5)",
                "INSERT INTO upd VALUES (NULL, NULL, 5)",
            ),
        ],
    );
}

/// Nothing that is refused, and no debug output, shows a value.
#[test]
fn values_do_not_show() {
    let s = schema();
    let statement = one(
        "SELECT * FROM emp WHERE name = 's3cret' AND salary = 73313",
        &s,
    )
    .expect("select");
    let text = format!("{statement:?}");
    assert!(
        !text.contains("s3cret") && !text.contains("73313"),
        "{text}"
    );
    for sql in [
        "SELECT * FROM emp WHERE name = 's3cret' 's3cret'",
        "SELECT * FROM emp WHERE name == 's3cret'",
        "SELECT 's3cret' FROM FROM emp",
        "INSERT INTO emp VALUES ('s3cret' x",
        "SELECT name FROM emp WHERE name = 's3cret",
        "SELECT E's3cret\\x' FROM emp WHERE 's3cret' y",
    ] {
        let text = format!("{:?}", analyze(sql, &s).expect_err(sql));
        assert!(!text.contains("s3cret"), "{text}");
    }
}

#[test]
fn syntax_errors() {
    let s = schema();
    let refusal = analyze("SELECT a FROM emp WHERE FROM emp", &s).expect_err("syntax");
    assert_eq!((refusal.sqlstate, refusal.position), ("42601", Some(24)));
    assert_eq!(refusal.message, "syntax error at or near \"FROM\"");
    let refusal = analyze("SELECT * FROM emp WHERE", &s).expect_err("syntax");
    assert_eq!(refusal.message, "syntax error at end of input");
    assert!(analyze("SELECT 1\0", &s).is_err());
}

/// Positions of the server's errors are mapped back to the original, in
/// characters.
#[test]
fn positions() {
    let s = schema();
    let sql = "SELECT 'ä' FROM emp WHERE name = 'ö' AND salary = 5 AND nosuch(id)";
    let statement = one(sql, &s).expect("select");
    let seal = |_: &_| -> Result<String, Infallible> { Ok("cfd1.0123456789".into()) };
    let (text, map) = apply_edits(sql, &statement.edits, seal).expect("applied");
    for word in ["SELECT", "emp", "name", "salary", "AND salary", "nosuch"] {
        let at = |text: &str| character_position(text, text.find(word).expect("found"));
        assert_eq!(map.original(at(&text)), at(sql), "{word}");
    }
    let inside = character_position(&text, text.find("::pg_catalog").expect("a cast") + 4);
    assert_eq!(
        map.original(inside),
        character_position(sql, sql.find('5').expect("five"))
    );
}

/// Depth: a long chain is no reason to crash, nor is it refused for no reason.
#[test]
fn depth() {
    let s = schema();
    let chain = |n: usize| vec!["salary + 1"; n].join(" + ");
    assert_eq!(
        one(&format!("SELECT {} FROM emp", chain(1000)), &s)
            .expect("long")
            .edits
            .len(),
        1000
    );
    assert_eq!(
        analyze(&format!("SELECT {} FROM emp", chain(50_000)), &s)
            .expect_err("too long")
            .sqlstate,
        "54001"
    );
    let many = vec!["salary = 1"; 20_000].join(" OR ");
    assert_eq!(
        one(&format!("SELECT * FROM emp WHERE {many}"), &s)
            .expect("flat")
            .edits
            .len(),
        20_000
    );
    let rows = vec!["(1, 'x', 2)"; 5_000].join(",");
    assert_eq!(
        one(&format!("INSERT INTO upd VALUES {rows}"), &s)
            .expect("rows")
            .edits
            .len(),
        10_000
    );
    let nested = format!(
        "SELECT {}5{} = salary FROM emp",
        "(".repeat(1500),
        ")".repeat(1500)
    );
    assert_eq!(one(&nested, &s).expect("nested").edits.len(), 1);
    let _ = analyze(&"(".repeat(100_000), &s);
    let _ = analyze(&format!("SELECT {}", "NOT ".repeat(100_000)), &s);
    let cases = format!(
        "SELECT {} 1 {} FROM emp",
        "CASE WHEN salary = 5 THEN ".repeat(500),
        "END ".repeat(500)
    );
    assert_eq!(one(&cases, &s).expect("cases").edits.len(), 500);
}

/// The same literal, seen twice by the analysis, is replaced once.
#[test]
fn edits_are_ordered() {
    let s = schema();
    for sql in [
        "UPDATE upd SET (a, b) = (SELECT 5, 'x') WHERE a = 6",
        "WITH RECURSIVE r AS (SELECT salary FROM emp UNION ALL SELECT salary + 1 FROM r WHERE salary < 5) SELECT * FROM r",
        "SELECT * FROM emp WHERE coalesce(active, true) AND name LIKE 'a#%' ESCAPE '#'",
    ] {
        let edits = one(sql, &s).expect(sql).edits;
        for pair in edits.windows(2) {
            assert!(pair[0].range.end <= pair[1].range.start, "{sql}: {edits:?}");
        }
        assert!(
            edits
                .iter()
                .any(|e| e.pieces.iter().any(|p| matches!(p, Piece::Envelope(_))))
        );
    }
}

/// A snapshot without anything: every relation asks for a newer one.
#[test]
fn stale_snapshot() {
    let empty = Schema::default();
    assert!(
        one("SELECT * FROM emp WHERE salary = 5", &empty)
            .expect("unknown")
            .unresolved
    );
    assert!(
        analyze("SELECT nosuch FROM emp", &schema())
            .expect_err("unknown")
            .needs_schema_refresh
    );
    unchanged(&empty, &["SELECT 1", "BEGIN", "SHOW ALL"]);
}
