//! Calls of routines that somebody else has made, whose bodies bring a plain argument to something protected. A
//! wrong proxy sends the constant in the clear: it never saw the body.

mod common;
use common::{refused, schema, ty, unchanged};
use rewrite::{RoutineBody, Schema, UserFunction, analyze};

/// `f(name int4, name text)` with a body.
fn routine(schema: &mut Schema, line: &str, language: &str, text: &str) {
    let (name, rest) = line.split_once('(').expect("arguments");
    let list = rest.trim_end_matches(')').split(',');
    let arguments: Vec<Vec<&str>> = list.map(|a| a.split_whitespace().collect()).collect();
    fn name_of<'a>(words: &[&'a str]) -> &'a str {
        if words.len() > 1 { words[0] } else { "" }
    }
    schema.add_function(UserFunction {
        schema: "public".into(),
        name: name.into(),
        args: arguments.iter().map(|a| ty(a[a.len() - 1])).collect(),
        arg_names: arguments.iter().map(|a| name_of(a).into()).collect(),
        variadic: None,
        defaults: 0,
        ret: ty("int4"),
        out: Vec::new(),
        ret_relation: None,
        source: Some(RoutineBody {
            language: language.into(),
            text: text.into(),
        }),
    });
}

fn with(routines: &[(&str, &str, &str)]) -> Schema {
    let mut s = schema();
    for (line, language, text) in routines {
        routine(&mut s, line, language, text);
    }
    s
}

#[test]
fn what_meets_is_refused() {
    let query = "SELECT count(*) FROM emp WHERE name = $1::enc_text AND id > $2";
    let block = "DECLARE copy text := who; found int;
        BEGIN SELECT count(*) INTO found FROM emp e WHERE e.name = copy::enc_text AND e.id > lowest; RETURN found; END";
    let s = with(&[
        ("numbered(text, int4)", "sql", query),
        ("named(who text, lowest int4)", "plpgsql", block),
        (
            "writes(who text, lowest int4)",
            "plpgsql",
            "BEGIN INSERT INTO emp (id, name) VALUES (lowest, who); END",
        ),
        (
            "several(who text, lowest int4)",
            "plpgsql",
            "BEGIN RETURN QUERY SELECT id FROM emp WHERE name = who; END",
        ),
    ]);
    for name in ["numbered", "named", "writes", "several"] {
        let call = |first: &str, second: &str| format!("SELECT {name}({first}, {second})");
        refused(
            &s,
            &[
                &call("'s3cret'", "1"),
                &call("$1", "1"),
                &call("upper('s3cret')", "1"),
            ],
        );
        refused(&s, &[&format!("SELECT * FROM {name}('s3cret', 1)")]);
        refused(&s, &[&format!("CALL {name}('s3cret', 1)")]);
        // What meets nothing protected goes as it is, and what the database has itself.
        unchanged(
            &s,
            &[
                &format!("SELECT {name}(p.name, 7) FROM plain p"),
                &call("NULL", "7"),
            ],
        );
    }
    refused(&s, &["SELECT named(lowest => 1, who => 's3cret')"]);
    let why = analyze("SELECT named('s3cret', 1)", &s).expect_err("refused");
    assert_eq!(why.sqlstate, "0A000");
    assert!(
        why.message.contains("argument \"who\" of function named"),
        "{}",
        why.message
    );
}

/// One that calls another, that calls the first.
#[test]
fn routines_that_call_routines() {
    let s = with(&[
        ("outer(a text, b text)", "sql", "SELECT inner(b, 1)"),
        (
            "inner(who text, n int4)",
            "plpgsql",
            "BEGIN IF n > 5 THEN RETURN outer(who, who); END IF; RETURN count(*) FROM emp WHERE name = who::enc_text; END",
        ),
    ]);
    refused(
        &s,
        &[
            "SELECT outer('open', 's3cret')",
            "SELECT inner('s3cret', 1)",
        ],
    );
    unchanged(&s, &["SELECT outer('open', NULL)"]);
}

/// Of what cannot be followed every argument counts: other languages, strings that are executed.
#[test]
fn what_cannot_be_followed() {
    let s = with(&[
        (
            "other(a text)",
            "plpython3u",
            "plpy.execute('SELECT * FROM emp')",
        ),
        (
            "executes(a text)",
            "plpgsql",
            "BEGIN EXECUTE 'SELECT count(*) FROM emp WHERE name = $1' USING a; RETURN 1; END",
        ),
        (
            "broken(a text)",
            "plpgsql",
            "BEGIN SELECT FROM emp WHERE; END",
        ),
    ]);
    refused(
        &s,
        &[
            "SELECT other('s3cret')",
            "SELECT executes('s3cret')",
            "SELECT broken('s3cret')",
        ],
    );
}

/// Bodies that name nothing protected are nobody's business.
#[test]
fn plain_bodies() {
    let s = with(&[
        (
            "query(a text)",
            "sql",
            "SELECT count(*)::int FROM plain WHERE name = a",
        ),
        ("other(a text)", "plpython3u", "return a"),
        (
            "beside(a int4)",
            "plpgsql",
            "BEGIN RETURN count(*) FROM emp WHERE id = a AND name IS NOT NULL; END",
        ),
        ("itself(a text)", "sql", "SELECT itself(a)"),
    ]);
    unchanged(
        &s,
        &[
            "SELECT query('open')",
            "SELECT other('open')",
            "SELECT beside(7)",
            "SELECT itself('open')",
        ],
    );
}
