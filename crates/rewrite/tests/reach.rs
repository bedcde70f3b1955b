//! What is not understood goes on if nothing protected can be reached by it, and only then. A proxy
//! that answers itself has other errors, positions and hints than PostgreSQL, and none of its
//! notices; one that looks at less than all words lets a literal pass.

mod common;
use common::{check, function, one, refused, relation, schema, show, unchanged};
use rewrite::{
    Pins, Prepared, PreparedInfo, Schema, analyze, analyze_escaped, analyze_with, undone,
};
use std::fmt::Write;

const UNKNOWN: [&str; 13] = [
    "SELECT U&\"real\\00A7_name\" FROM plain WHERE id = 5",
    "ALTER TABLE IF EXISTS nosuch ADD COLUMN f int DEFAULT 5",
    "SELECT nosuch FROM plain WHERE id = 5",
    "SELECT x.id FROM plain p WHERE id = 5",
    "INSERT INTO plain (nosuch) VALUES (5)",
    "SELECT 5 FROM FROM",
    "SELECT 123abc",
    "SELECT 'open",
    "SELECT E'wrong: \\xag'",
    "SELECT id FROM plain FETCH FIRST 5 ROWS WITH TIES",
    "DROP OPERATOR === (int4), 5",
    "CREATE RULE r AS ON INSERT TO plain WHERE nosuch = 5 DO NOTHING",
    "EXECUTE q (nosuch, 5)",
];

#[test]
fn what_is_unknown_goes_on() {
    let mut prepared = Prepared::default();
    prepared.insert("q", PreparedInfo::default());
    for sql in UNKNOWN {
        let all = analyze_with(sql, &schema(), &prepared).expect(sql);
        assert!(all.iter().all(|s| s.edits.is_empty()), "{sql}");
    }
    // It may be known to the next snapshot: that is loaded first.
    let unresolved = |sql: &str| one(sql, &schema()).expect(sql).unresolved;
    assert!(unresolved("SELECT nosuch FROM plain WHERE id = 5"));
    assert!(unresolved("INSERT INTO nosuch VALUES (5)"));
    assert!(!unresolved("SELECT 5 FROM FROM"));
    assert!(!unresolved("SELECT id FROM plain"));
}

#[test]
fn what_names_something_protected_does_not() {
    let s = schema();
    refused(
        &s,
        &[
            "SELECT nosuch FROM emp WHERE name = 's3cret'",
            "ALTER TABLE IF EXISTS nosuch ADD COLUMN f enc_text DEFAULT 's3cret'",
            "INSERT INTO \"Odd Name\" (nosuch) VALUES ('s3cret')",
            "SELECT nosuch FROM other.secret WHERE a = 's3cret'",
            "SELECT nosuch('s3cret'::address)",
            "SELECT 's3cret' FROM FROM emp",
            "EXPLAIN SELECT nosuch FROM plain, (SELECT 's3cret' FROM EMP) e",
            "SELECT nosuch, 's3cret', 'INSERT INTO emp'",
            "SELECT U&\"\\0065mp\", 's3cret'",
            "SELECT U&\"!0065mp\" UESCAPE '!', 's3cret'",
        ],
    );
    for sql in [
        "INSERT INTO emp VALUES ('s3cret",
        "UPDATE EMP SET name = 's3cret",
    ] {
        assert!(analyze(sql, &s).is_err(), "{sql}");
    }
}

/// A statement may be prepared where it is not seen; what it meets, nobody knows.
#[test]
fn prepared_elsewhere() {
    refused(
        &schema(),
        &[
            "EXECUTE p ('s3cret')",
            "EXPLAIN EXECUTE p (nosuch, 's3cret')",
        ],
    );
    let mut prepared = Prepared::default();
    let touches_protected = true;
    prepared.insert(
        "p",
        PreparedInfo {
            touches_protected,
            ..PreparedInfo::default()
        },
    );
    assert!(analyze_with("EXECUTE p (nosuch, 's3cret')", &schema(), &prepared).is_err());
    let mut bare = Schema::default();
    bare.set_search_path(["public"]);
    relation(&mut bare, "public.plain: id int4");
    unchanged(&bare, &["EXECUTE p ('open')"]);
}

#[test]
fn functions_and_pins() {
    let mut s = Schema::default();
    s.set_search_path(["public"]);
    function(&mut s, "raise(enc_int4) enc_int4");
    refused(&s, &["SELECT raise('s3cret', nosuch)"]);
    let pins = Pins::parse("db.public.pinned.a enc_int4 1\n").expect("pin");
    s.set_pin(pins.of("db"));
    refused(&s, &["INSERT INTO pinned (nosuch) VALUES ('s3cret')"]);
    unchanged(&s, &["INSERT INTO other (nosuch) VALUES ('open')"]);
}

/// What an earlier statement of the text drops or makes counts, too.
#[test]
fn texts() {
    refused(
        &schema(),
        &[
            "DROP TABLE emp; INSERT INTO emp VALUES ('s3cret')",
            "CREATE TABLE new (a enc_text); INSERT INTO new (nosuch) VALUES ('s3cret')",
        ],
    );
    let undoes = |sql: &str, before| {
        let all = analyze(sql, &schema()).expect(sql);
        undone(&all, before).is_some()
    };
    let sql = "BEGIN; DROP TABLE plain; ROLLBACK; SELECT * FROM plain WHERE id = 5";
    assert!(!undoes(sql, false));
    // Before the text `plain` was something else, perhaps.
    assert!(undoes(sql, true));
    let sql = "BEGIN; DROP TABLE upd; ROLLBACK; SELECT a FROM upd";
    let all = analyze(sql, &schema()).expect(sql);
    assert!(all[3].touches_protected);
}

/// What stands beside something protected is understood.
#[test]
fn beside_something_protected() {
    let s = schema();
    unchanged(
        &s,
        &[
            "SELECT name, lexeme, positions[1] FROM emp, unnest('base:7'::tsvector) AS u",
            "SELECT name, q.a, q.b FROM emp, unnest(ARRAY[ROW(1, ROW(2))]) AS q (a int, b record)",
            "SELECT e.name, p.price FROM emp e, plain p WHERE p.price > 5",
            "SELECT name, xmltable.* FROM emp, xmltable('/r' PASSING ('<r/>'::xml) COLUMNS a int)",
            "CREATE RULE r AS ON INSERT TO plain WHERE salary < 5 DO INSTEAD DELETE FROM emp",
        ],
    );
    check(
        &s,
        &[(
            "WITH RECURSIVE g (id) AS (SELECT id FROM emp WHERE name = 'x' UNION ALL SELECT 1 FROM g WHERE NOT c) \
             CYCLE id SET c USING p SELECT * FROM g WHERE c",
            "WITH RECURSIVE g (id) AS (SELECT id FROM emp WHERE name = '<<x>>' UNION ALL SELECT 1 FROM g WHERE NOT c) \
             CYCLE id SET c USING p SELECT * FROM g WHERE c",
        )],
    );
    assert!(
        one("SELECT e.name, p.price FROM emp e, plain p", &s)
            .expect("attribute")
            .unresolved
    );
    refused(
        &s,
        &[
            "SELECT e.price FROM emp e WHERE 's3cret' = id::text",
            "CREATE RULE r AS ON INSERT TO emp WHERE nosuch < 's3cret' DO INSTEAD NOTHING",
        ],
    );
}

/// The server finds the function by itself: protected numbers are no candidates of its category.
#[test]
fn an_untyped_literal_alone() {
    unchanged(
        &schema(),
        &[
            "SELECT abs('5'), @ '-5'",
            "SELECT name FROM emp WHERE dept > round('2.5')",
            "SELECT abs(5), abs('5'::int4), round('2.5', 1), length('x'), upper('x'), abs($1), - '5'",
        ],
    );
}

/// `standard_conforming_strings = off`: a proxy that reads such a text as if it were on takes part
/// of a literal for a name, and of a name for a literal.
#[test]
fn escapes_in_strings() {
    let s = schema();
    let mut failures = String::new();
    for (sql, expected) in [
        (
            r"SELECT id FROM emp WHERE name = 'a\'b' AND note = 'c\\d'",
            r"SELECT id FROM emp WHERE name = '<<a''b>>' AND note = 'c\\d'",
        ),
        (
            r"SELECT '\\', name FROM emp WHERE salary = '1\x32'",
            r"SELECT '\\', name FROM emp WHERE salary = '<<12>>'",
        ),
        (
            r"INSERT INTO emp (note, name) VALUES ('\', ''(', $$\$$)",
            r"INSERT INTO emp (note, name) VALUES ('\', ''(', '<<\>>')",
        ),
    ] {
        let all = analyze_escaped(sql, &s, &Prepared::default()).expect(sql);
        let got = show(sql, &all[0]);
        if got != expected {
            writeln!(failures, " sql: {sql}\nwant: {expected}\n got: {got}").expect("write");
        }
    }
    assert!(failures.is_empty(), "{failures}");
    let refusal = analyze_escaped(
        r"SELECT '\'' FROM emp WHERE nosuch = 1",
        &s,
        &Prepared::default(),
    );
    assert_eq!(refusal.expect_err("unknown").position, Some(27));
    assert!(analyze_escaped(r"SELECT N'\' FROM emp", &s, &Prepared::default()).is_err());
}
