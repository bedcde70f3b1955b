//! What is remembered of analyses. That it is right is looked at for every statement of
//! the other tests (`common::remembered`); here: that it is used, and forgotten.

mod common;
use common::{relation, schema, show};
use rewrite::{ColumnType, Memo, Prepared, RoutineBody, Schema, UserFunction};
use std::sync::Arc;

/// A function of a text in SQL, `public.name(a text) RETURNS text`.
fn function(schema: &mut Schema, name: &str, body: &str) {
    let text = || ColumnType::Plain(25, "text".into());
    schema.add_function(UserFunction {
        schema: "public".into(),
        name: name.into(),
        args: vec![text()],
        arg_names: vec!["a".into()],
        variadic: None,
        defaults: 0,
        ret: text(),
        out: Vec::new(),
        ret_relation: None,
        source: Some(RoutineBody {
            language: "sql".into(),
            text: body.into(),
        }),
    });
}

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

/// While nothing is protected, an analysis outlives changes of what its text does not name. A bug would
/// use it for a text that means another table by now, or that has become one about something protected.
#[test]
fn outlives_changes_elsewhere() {
    let prepared = Prepared::default();
    let plain = |tables: &[&str]| {
        let mut schema = Schema::default();
        schema.set_search_path(["pg_catalog", "public"]);
        tables.iter().for_each(|table| relation(&mut schema, table));
        schema
    };
    let first = "public.t: id int4, c text";
    let text = |n: u32| format!("SELECT c FROM t WHERE id = {n}");
    let known = |schema: Schema, asked: &str| {
        let memo = Memo::default();
        let before = Arc::new(plain(&[first]));
        memo.analyze(asked, &before, &prepared).expect("select");
        let schema = Arc::new(schema);
        let (found, known) = memo.look(asked, &schema, &prepared);
        assert_eq!(found, rewrite::analyze(asked, &schema));
        known
    };
    assert!(known(plain(&[first]), &text(1)));
    assert!(known(plain(&[first, "public.u: id int4"]), &text(2)));
    assert!(known(plain(&[first, "public.ids: id int4"]), &text(3)));
    let differ = [
        plain(&["public.t: id int4, c text, d text"]),
        plain(&["public.u: id int4"]),
        plain(&[first, "elsewhere.t: id int4"]),
        plain(&["public.t: id int4, c enc_text"]),
        plain(&[first, "public.u: id enc_int4"]),
    ];
    for schema in differ {
        assert!(!known(schema, &text(4)));
    }
    let mut elsewhere = plain(&[first]);
    elsewhere.set_search_path(["pg_catalog", "elsewhere", "public"]);
    let mut temporary = plain(&[first]);
    temporary.set_temp(Some("pg_temp_3".into()));
    for schema in [elsewhere, temporary] {
        assert!(!known(schema, &text(5)));
    }
    for odd in ["SELECT c, 'x'::enc_text FROM t", "SELECT \"c\"\"d\" FROM t"] {
        assert!(!known(plain(&[first, "public.u: id int4"]), odd), "{odd}");
    }
}

/// What a routine does with its argument depends on one that the text does not name. A bug would send
/// the constant in the clear.
#[test]
fn routines_are_followed_anew() {
    let (memo, prepared) = (Memo::default(), Prepared::default());
    let schema = |body: &str| {
        let mut schema = Schema::default();
        schema.set_search_path(["pg_catalog", "public"]);
        for (name, body) in [("f", "SELECT g(a)"), ("g", body)] {
            function(&mut schema, name, body);
        }
        Arc::new(schema)
    };
    let sql = "SELECT f('x')";
    let (before, after) = (schema("SELECT a"), schema("SELECT a::enc_text"));
    let found = memo.analyze(sql, &before, &prepared).expect("plain");
    assert!(found[0].edits.is_empty());
    let (found, known) = memo.look(sql, &after, &prepared);
    assert!(!known && found != memo.analyze(sql, &before, &prepared));
    assert_eq!(found, rewrite::analyze(sql, &after));
}
