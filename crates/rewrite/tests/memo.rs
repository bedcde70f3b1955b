//! What is remembered of analyses. That it is right is looked at for every statement of
//! the other tests (`common::remembered`); here: that it is used, and forgotten.

mod common;
use common::{relation, schema, show};
use rewrite::{Memo, Prepared};
use std::sync::Arc;

/// Another value in the same text is analysed under the schema that is given, not under
/// the one before.
#[test]
fn schemas_are_apart() {
    let (memo, prepared) = (Memo::default(), Prepared::default());
    let before = Arc::new(schema());
    let mut after = schema();
    relation(
        &mut after,
        "public.plain: id int4, name enc_text, salary int4",
    );
    let after = Arc::new(after);
    let shown = |schema, value: &str| {
        let sql = format!("INSERT INTO plain (id, name) VALUES (7, '{value}')");
        show(
            &sql,
            &memo.analyze(&sql, schema, &prepared).expect("insert")[0],
        )
    };
    for (schema, seen) in [(&before, "'b'"), (&after, "'<<b>>'"), (&before, "'b'")] {
        for value in ["a", "b"] {
            let text = shown(schema, value);
            assert!(value == "a" || text.contains(seen), "{text}");
        }
    }
}

/// A statement is parsed once, whoever sends it: a copy of the cache has what another was asked.
#[test]
fn the_second_time_is_known() {
    let (memo, prepared, schema) = (Memo::default(), Prepared::default(), Arc::new(schema()));
    let text = |n: u32| format!("INSERT INTO emp (id, name, salary) VALUES ({n}, 'x{n}', {n})");
    let look = |memo: &Memo, n: u32| {
        let (found, known) = memo.look(&text(n), &schema, &prepared);
        let found = found.expect("insert");
        assert!(show(&text(n), &found[0]).contains(&format!("<<x{n}>>")));
        known
    };
    assert_eq!([1, 2, 3].map(|n| look(&memo, n)), [false, true, true]);
    assert!(look(&memo.clone(), 4));
    assert!(!look(&Memo::default(), 5));
}
