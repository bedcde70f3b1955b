//! Questions about the catalogs, asked of the views with plain types.
//!
//! Mechanism: texts are analysed and edited; the text that goes out is compared. Bug: a name that
//! is not a catalog is replaced, or a statement that writes.

use rewrite::{Schema, analyze, apply_edits, show_plain};

fn shown(sql: &str) -> String {
    let schema = Schema::default();
    let mut statements = analyze(sql, &schema).expect("plain");
    show_plain(sql, &mut statements);
    let edits: Vec<_> = statements.into_iter().flat_map(|s| s.edits).collect();
    let (text, _) = apply_edits(sql, &edits, |_| Err::<String, ()>(())).expect("no secrets");
    text
}

#[test]
fn names_of_catalogs() {
    for (sql, expected) in [
        (
            "SELECT attname FROM pg_attribute",
            "SELECT attname FROM confide.pg_attribute",
        ),
        (
            "SELECT pg_catalog.pg_attribute.attname FROM pg_catalog.pg_attribute",
            "SELECT confide.pg_attribute.attname FROM confide.pg_attribute",
        ),
        (
            "SELECT PG_Attribute.attname FROM \"pg_attribute\" JOIN pg_attribute b USING (attnum)",
            "SELECT PG_Attribute.attname FROM confide.pg_attribute JOIN confide.pg_attribute b USING (attnum)",
        ),
        (
            "SELECT c.* FROM Information_Schema.columns AS c",
            "SELECT c.* FROM confide.columns AS c",
        ),
        (
            "EXPLAIN SELECT pg_typeof((1 + 2)), pg_catalog.pg_typeof('a)')",
            "EXPLAIN SELECT confide.pg_typeof(pg_typeof((1 + 2))), confide.pg_typeof(pg_catalog.pg_typeof('a)'))",
        ),
        (
            "BEGIN; SELECT 1 FROM pg_attribute; COMMIT",
            "BEGIN; SELECT 1 FROM confide.pg_attribute; COMMIT",
        ),
    ] {
        assert_eq!(shown(sql), expected);
    }
}

#[test]
fn what_stays() {
    for sql in [
        "SELECT 'pg_attribute', 'information_schema.columns'",
        "SELECT x.pg_attribute, y AS pg_attribute FROM s.pg_attribute x",
        "SELECT columns FROM columns, information_schema.tables",
        "CREATE VIEW v AS SELECT * FROM pg_attribute",
        "UPDATE pg_attribute SET attstattarget = 0",
        "SELECT pg_typeof FROM t",
        "SELECT 1 -- pg_attribute",
    ] {
        assert_eq!(shown(sql), sql);
    }
}
