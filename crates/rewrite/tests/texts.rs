//! Texts of several statements: each is analysed under what those before it leave. A
//! wrong proxy analyses all under what held at first, and sends a literal in the clear
//! to what has become a protected column. And rows of a subquery, whose literals a wrong
//! proxy forgets when it cannot name their columns.

mod common;
use common::{check, one, refused, relation, schema, unchanged};
use rewrite::{Statement, analyze, undone};

#[test]
fn rows_of_subqueries() {
    let s = schema();
    check(
        &s,
        &[
            (
                "SELECT id FROM emp WHERE (name, id) = (SELECT 's3cret', 1)",
                "SELECT id FROM emp WHERE (name, id) = (SELECT '<<~text:s3cret>>'::enc_text, 1)",
            ),
            (
                "SELECT id FROM emp WHERE (SELECT 's3cret', 1) <> (name, id)",
                "SELECT id FROM emp WHERE (SELECT '<<~text:s3cret>>'::enc_text, 1) <> (name, id)",
            ),
        ],
    );
    unchanged(
        &s,
        &["SELECT id FROM plain WHERE (name, id) = (SELECT 'open', 1)"],
    );
    refused(
        &s,
        &[
            "SELECT id FROM emp WHERE (name, id) = (SELECT 's3cret', d.* FROM pg_class d)",
            "SELECT id FROM emp WHERE (name, id) IN (SELECT 's3cret', d.* FROM pg_class d)",
            "SELECT id FROM emp e WHERE (name, id) = ROW('s3cret', (SELECT d FROM pg_class d).*)",
            "UPDATE emp SET (name, note) = (SELECT 's3cret', d.* FROM pg_class d)",
        ],
    );
}

/// The client would get envelopes inside the row's text.
#[test]
fn rows_for_the_client() {
    let s = schema();
    refused(
        &s,
        &[
            "SELECT emp FROM emp",
            "SELECT row(id, name) FROM emp",
            "DELETE FROM emp RETURNING emp",
        ],
    );
    unchanged(
        &s,
        &[
            "SELECT plain, row(id, 1) FROM plain",
            "SELECT count(emp), emp IS NULL FROM emp GROUP BY emp.*",
            "SELECT id FROM emp e WHERE e = ANY (SELECT f FROM emp f)",
        ],
    );
}

#[test]
fn renamed_in_the_text() {
    let s = schema();
    let sealed = |sql: &str, at: usize| {
        let list = analyze(sql, &s).expect("analysis");
        assert!(!list[at].clear_values, "{sql}");
    };
    sealed(
        "ALTER TABLE emp RENAME TO e; INSERT INTO e (name) VALUES ('s3cret')",
        1,
    );
    sealed(
        "ALTER TABLE emp RENAME TO e; ALTER TABLE plain RENAME TO emp; \
         ALTER TABLE e RENAME TO plain; INSERT INTO plain (name) VALUES ('s3cret')",
        3,
    );
    sealed(
        "ALTER TABLE emp RENAME name TO x; ALTER TABLE emp RENAME note TO name; \
         UPDATE emp SET x = 's3cret'",
        2,
    );
    sealed(
        "DROP TABLE plain; ALTER TABLE emp SET SCHEMA other2; \
         INSERT INTO other2.emp (name) VALUES ('s3cret')",
        2,
    );
    refused(
        &s,
        &[
            "ALTER SCHEMA other RENAME TO o; INSERT INTO other.emp (name) VALUES ('s3cret')",
            "CREATE FUNCTION f(a enc_text) RETURNS int LANGUAGE sql RETURN 1; SELECT f('s3cret')",
        ],
    );
    unchanged(
        &s,
        &["CREATE FUNCTION f(a enc_text) RETURNS int LANGUAGE sql RETURN length(a)"],
    );
}

#[test]
fn another_path_in_the_text() {
    let mut s = schema();
    s.set_search_path(["other", "public"]);
    relation(&mut s, "public.twin: s enc_text");
    let open = one("INSERT INTO emp (name) VALUES ('open')", &s).expect("insert");
    assert!(open.clear_values && open.depends_on_search_path);
    for first in [
        "SET search_path = public",
        "SET LOCAL search_path = public",
        "SELECT set_config('search_path', 'public', false)",
        "RESET ALL",
        "COMMIT",
        "ROLLBACK TO a",
    ] {
        let text = format!("{first}; INSERT INTO emp (name) VALUES ('s3cret')");
        refused(&s, &[&text]);
        // Of these names there is but one.
        let text = format!("{first}; INSERT INTO twin VALUES ('s3cret'); SELECT 1 FROM dept");
        let list = analyze(&text, &s).expect("analysis");
        assert!(!list[1].clear_values);
    }
    // Where this table is made is not known: the protected one is still there.
    let text = "SET search_path = public; CREATE TABLE secret (a text); \
                INSERT INTO other.secret VALUES ('s3cret')";
    assert!(!analyze(text, &s).expect("analysis")[2].clear_values);
}

#[test]
fn taken_back_in_the_text() {
    let s = schema();
    let text = |sql: &str| -> Vec<Statement> { analyze(sql, &s).expect("analysis") };
    let insert = text("ROLLBACK; INSERT INTO plain (name) VALUES ('x')");
    assert!(undone(&insert, false).is_none());
    assert!(undone(&insert, true).is_some());
    let harmless = text("ROLLBACK; BEGIN; SELECT name FROM plain; SET a.b = 'c'");
    assert!(undone(&harmless, true).is_none());
    let sealed = text("ROLLBACK; INSERT INTO emp (name) VALUES ('x')");
    assert!(undone(&sealed, false).is_none());
    // It may be a plain one again: the envelope would be stored.
    assert!(undone(&sealed, true).is_some());
    let own = text(
        "BEGIN; DROP TABLE upd; CREATE TABLE upd (c int4, b text); ROLLBACK; \
         INSERT INTO upd (c, b) VALUES (5, 's3cret')",
    );
    assert!(undone(&own, false).is_some());
    let made = "DROP TABLE plain; CREATE TABLE plain (a enc_text)";
    let insert = "INSERT INTO plain VALUES ('x')";
    for unknown in [
        format!("{made}; ROLLBACK; {insert}"),
        format!("{made}; BEGIN; ROLLBACK; {insert}"),
        format!("BEGIN; SAVEPOINT s; {made}; ROLLBACK TO s; {insert}"),
        format!("BEGIN; ROLLBACK; {made}; ROLLBACK; {insert}"),
    ] {
        assert!(undone(&text(&unknown), false).is_some(), "{unknown}");
    }
    for known in [
        format!("{made}; {insert}"),
        format!("{made}; COMMIT; BEGIN; ROLLBACK; {insert}"),
        format!("ROLLBACK; {made}; {insert}"),
        "BEGIN; CREATE TABLE new (a int); ROLLBACK; INSERT INTO emp (name) VALUES ('x')".into(),
    ] {
        assert!(undone(&text(&known), false).is_none(), "{known}");
    }
    let kept = text("BEGIN; CREATE TABLE t (name text); COMMIT; INSERT INTO t VALUES ('x')");
    assert!(undone(&kept, false).is_none());
}
