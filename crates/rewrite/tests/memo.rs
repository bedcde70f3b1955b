//! What is remembered of analyses. That it is right is looked at for every statement of
//! the other tests (`common::remembered`); here: that it is used, and forgotten.

mod common;
use common::{relation, schema, show};
use rewrite::{Memo, Prepared};
use std::sync::Arc;
use std::time::Instant;

/// Another value in the same text is analysed under the schema that is given, not under
/// the one before.
#[test]
fn schemas_are_apart() {
    let (mut memo, prepared) = (Memo::default(), Prepared::default());
    let before = Arc::new(schema());
    let mut after = schema();
    relation(
        &mut after,
        "public.plain: id int4, name enc_text, salary int4",
    );
    let after = Arc::new(after);
    let mut shown = |schema, value: &str| {
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

/// A statement is parsed once: the second time takes a small part of the time. The quickest of
/// many counts, since other work only adds to the time.
#[test]
fn the_second_time_is_quick() {
    let (mut memo, prepared, schema) = (Memo::default(), Prepared::default(), Arc::new(schema()));
    let text = |n: u32| format!("INSERT INTO emp (id, name, salary) VALUES ({n}, 'x{n}', {n})");
    let mut quickest = |numbers: std::ops::Range<u32>, forget: bool| {
        let times = numbers.map(|n| {
            if forget {
                memo = Memo::default();
            }
            let begin = Instant::now();
            let known = memo.analyze(&text(n), &schema, &prepared).expect("insert");
            let took = begin.elapsed();
            assert!(show(&text(n), &known[0]).contains(&format!("<<x{n}>>")));
            took
        });
        times.min().expect("some")
    };
    let (anew, known) = (quickest(0..200, true), quickest(1000..1200, false));
    assert!(known * 2 < anew, "{known:?} beside {anew:?}");
}
