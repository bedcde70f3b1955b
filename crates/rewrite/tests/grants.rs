//! What the binder lets a statement do, as its grant says it.

mod common;

use common::relation;
use grant::{Column, Grant, family, origin};
use rewrite::{Schema, analyze};
use std::collections::BTreeSet;

fn schema() -> Schema {
    let mut schema = Schema::default();
    schema.set_search_path(["public"]);
    relation(
        &mut schema,
        "public.emp: id int4, pay enc_int4, name enc_text, plain int4, note text",
    );
    relation(
        &mut schema,
        "public.dept: id int4, boss enc_text, plain int4",
    );
    schema
}

fn grant(sql: &str) -> Grant {
    let all = analyze(sql, &schema()).unwrap_or_else(|r| panic!("{sql}: {r:?}"));
    let bytes = all[0]
        .grant
        .as_ref()
        .unwrap_or_else(|| panic!("{sql}: no grant"));
    Grant::decode(bytes).unwrap()
}

fn names(columns: &BTreeSet<Column>) -> String {
    let all: Vec<String> = columns
        .iter()
        .map(|c| format!("{}.{}", c.relation, c.column))
        .collect();
    all.join(" ")
}

/// Reads and writes of the statement's own entry, the last one, and whether plain values and constants of
/// the client take part.
fn said(sql: &str) -> (String, String, bool, bool) {
    let grant = grant(sql);
    let entry = grant.entries.iter().rfind(|e| !e.standing).unwrap();
    let has = |bit| entry.origins & bit != 0;
    (
        names(&entry.reads),
        names(&entry.writes),
        has(origin::PLAIN),
        has(origin::CLIENT),
    )
}

/// Columns that are not mentioned are not in a grant, and plain values only where the text
/// lets one meet something protected. With the bug a planted trigger computes with them.
#[test]
fn statements() {
    let cases = [
        ("SELECT id FROM emp WHERE id = 5", "", "", false, false),
        ("SELECT pay FROM emp", "emp.pay", "", false, false),
        (
            "SELECT pay FROM emp WHERE pay > 5",
            "emp.pay",
            "",
            false,
            true,
        ),
        (
            "SELECT id FROM emp WHERE name LIKE $1",
            "emp.name",
            "",
            false,
            true,
        ),
        ("SELECT * FROM emp", "emp.name emp.pay", "", false, false),
        (
            "SELECT count(e) FROM emp e WHERE e.pay > 1",
            "emp.name emp.pay",
            "",
            false,
            true,
        ),
        (
            "SELECT 1 FROM emp e, dept d WHERE e.name = d.boss",
            "dept.boss emp.name",
            "",
            false,
            false,
        ),
        (
            "SELECT 1 FROM emp WHERE pay = plain",
            "emp.pay",
            "",
            true,
            false,
        ),
        (
            "SELECT 1 FROM emp WHERE pay = plain::enc_int4",
            "emp.pay",
            "",
            true,
            false,
        ),
        ("SELECT 1 FROM emp WHERE plain = 7", "", "", false, false),
        (
            "INSERT INTO emp VALUES (1, 2, 'x')",
            "",
            "emp.name emp.pay",
            false,
            true,
        ),
        (
            "INSERT INTO emp SELECT id, plain FROM dept",
            "",
            "emp.name emp.pay",
            true,
            false,
        ),
        (
            "SELECT 1 FROM emp WHERE concat(plain, 'x') = name",
            "emp.name",
            "",
            true,
            true,
        ),
        (
            "SELECT concat(name, plain) FROM emp",
            "emp.name",
            "",
            true,
            true,
        ),
        (
            "SELECT 1 FROM emp WHERE note = 'Canary' OR name = 'Canary'",
            "emp.name",
            "",
            true,
            true,
        ),
        (
            "UPDATE emp SET pay = pay + 1 WHERE id = 3",
            "emp.pay",
            "emp.pay",
            false,
            true,
        ),
        (
            "DELETE FROM emp WHERE name = 'x'",
            "emp.name",
            "",
            false,
            true,
        ),
        ("COPY emp FROM STDIN", "", "emp.name emp.pay", false, true),
        ("COPY emp TO STDOUT", "emp.name emp.pay", "", false, false),
    ];
    for (sql, reads, writes, plain, client) in cases {
        let wanted = (reads.to_owned(), writes.to_owned(), plain, client);
        assert_eq!(said(sql), wanted, "{sql}");
    }
}

/// Computing is allowed where the statement computes.
#[test]
fn families() {
    let cases = [
        ("SELECT pay FROM emp WHERE pay > 5", 0),
        ("SELECT pay FROM emp WHERE pay > 5 + 1", family::COMPUTE),
        ("SELECT pay + id FROM emp WHERE id + 1 = 2", family::COMPUTE),
        ("SELECT pay FROM emp WHERE id + 1 = 2", 0),
        ("SELECT sum(pay) FROM emp", family::AGGREGATE),
        ("SELECT 1 FROM emp WHERE name LIKE 'a%'", family::PATTERN),
        ("SELECT upper(name) FROM emp", family::COMPUTE),
        ("SELECT concat(name, 'x') FROM emp", family::COMPUTE),
        (
            "SELECT 1 FROM emp WHERE name = 'x' || plain",
            family::COMPUTE,
        ),
    ];
    let some = family::COMPUTE | family::AGGREGATE | family::PATTERN;
    for (sql, families) in cases {
        let entry = grant(sql).entries.pop().unwrap();
        assert_eq!(entry.families & some, families, "{sql}");
        assert_eq!(
            entry.families & !some,
            family::COMPARE | family::CAST | family::SHOW,
            "{sql}"
        );
    }
}

/// What stands is what the definition says, not all that the client may do while it makes it.
#[test]
fn definitions() {
    let cases = [
        ("CREATE TABLE t (a enc_int4)", None),
        (
            "CREATE TABLE t (a enc_int4 CHECK (a > 5), b enc_text)",
            Some(("t.a", "")),
        ),
        ("CREATE TABLE t (a enc_int4 DEFAULT 5)", Some(("", "t.a"))),
        (
            "CREATE INDEX ON emp (pay) WHERE name > 'a'",
            Some(("emp.name", "")),
        ),
        (
            "CREATE VIEW v AS SELECT pay FROM emp WHERE name = 'x'",
            Some(("emp.name emp.pay", "")),
        ),
        (
            "CREATE TABLE t (n enc_text REFERENCES dept (boss))",
            Some(("dept.boss t.n", "t.n")),
        ),
        (
            "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.pay = OLD.pay; RETURN NEW; END'",
            Some(("emp.pay", "emp.pay")),
        ),
    ];
    for (sql, wanted) in cases {
        let grant = grant(sql);
        let mut standing = grant.entries.iter().filter(|e| e.standing);
        let found = standing.next().map(|e| (names(&e.reads), names(&e.writes)));
        let wanted = wanted.map(|(r, w): (&str, &str)| (r.to_owned(), w.to_owned()));
        assert_eq!(found, wanted, "{sql}");
        assert_eq!(standing.next(), None, "{sql}");
        assert!(
            grant.entries.iter().all(|e| e.origins & origin::PLAIN == 0),
            "{sql}"
        );
    }
}

/// Values keep the name that they were stored under; views and new names stand for it.
#[test]
fn aliases() {
    let of = |sql: &str| -> Vec<(String, String)> {
        let aliases = grant(sql).aliases;
        let text = |c: &Column| format!("{}.{}", c.relation, c.column);
        aliases.iter().map(|(c, of)| (text(c), names(of))).collect()
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(
        of("CREATE VIEW v AS SELECT pay AS p FROM emp"),
        [pair("v.p", "emp.pay")]
    );
    assert_eq!(
        of("ALTER TABLE emp RENAME TO staff"),
        [pair("staff.name", "emp.name"), pair("staff.pay", "emp.pay")]
    );
    assert_eq!(
        of("ALTER TABLE emp RENAME COLUMN pay TO salary"),
        [pair("emp.salary", "emp.pay")]
    );
}

/// What is authorised is what making it would let stand, also where the proxy would not let
/// it be made; its text is not sent.
#[test]
fn authorised() {
    let made = "CREATE VIEW v AS SELECT pay FROM emp WHERE name = 'x'";
    let sql = format!("SELECT confide.authorise($${made}$$);");
    let all = analyze(&sql, &schema()).unwrap();
    let (sent, _) = rewrite::apply_edits(&sql, &all[0].edits, |_| Err(())).unwrap();
    assert_eq!(sent, "SELECT confide.authorise(1);");
    let mut wanted = grant(made);
    wanted.entries.retain(|e| e.standing);
    assert_eq!(grant(&sql), wanted);
    let body = "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS \
                'BEGIN EXECUTE ''UPDATE emp SET pay = 5''; RETURN NEW; END'";
    assert!(analyze(body, &schema()).is_err());
    assert!(!grant(&format!("SELECT confide.authorise($${body}$$)")).is_empty());
    for text in [
        "SELECT pay FROM emp",
        "CREATE VIEW v AS SELECT x FROM emp",
        "?",
    ] {
        assert!(analyze(&format!("SELECT confide.authorise('{text}')"), &schema()).is_err());
    }
}
