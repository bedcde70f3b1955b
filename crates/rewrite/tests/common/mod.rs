//! Helpers: a schema from a short notation, and edits as readable text.
#![allow(dead_code)]

use contract::TypeCode;
use contract::soft::Purpose;
use rewrite::{
    Column, ColumnType, Form, Memo, Prepared, Refusal, Relation, Schema, Secret, Statement,
    UserFunction, analyze, apply_edits,
};
use std::convert::Infallible;
use std::sync::Arc;

/// A type by name: `enc_text`, `enc_text[]`, `int4`; `?x` is a type over a
/// protected one.
pub fn ty(name: &str) -> ColumnType {
    if let Some(name) = name.strip_prefix('?') {
        return ColumnType::Opaque(0, name.to_owned());
    }
    let (base, array) = match name.strip_suffix("[]") {
        Some(base) => (base, true),
        None => (name, false),
    };
    let enc = TypeCode::ALL.iter().copied().find(|t| t.enc_name() == base);
    match (enc, array) {
        (Some(code), false) => ColumnType::Enc(code),
        (Some(code), true) => ColumnType::EncArray(code),
        (None, false) => ColumnType::Plain(1, base.to_owned()),
        (None, true) => ColumnType::Plain(2, format!("_{base}")),
    }
}

/// `public.emp: id int4, name enc_text`
pub fn relation(schema: &mut Schema, line: &str) {
    let (name, columns) = line.split_once(':').expect("a colon");
    let (place, name) = name.trim().split_once('.').expect("a schema");
    let columns = columns
        .split(',')
        .filter(|c| !c.trim().is_empty())
        .enumerate()
        .map(|(at, column)| {
            let words: Vec<&str> = column.split_whitespace().collect();
            Column {
                name: words[0].to_owned(),
                attnum: at as i16 + 1,
                ty: ty(words[1]),
                typmod: -1,
                generated: words.get(2) == Some(&"generated"),
                identity: false,
                domain: None,
            }
        })
        .collect();
    let oid = 16384 + schema.protected_relations().count() as u32 * 7 + line.len() as u32 * 1000;
    schema.add_relation(Relation {
        oid,
        schema: place.to_owned(),
        name: name.to_owned(),
        kind: 'r',
        columns: Some(columns),
    });
}

/// `f(enc_int4, text) enc_int4` in `public`.
pub fn function(schema: &mut Schema, line: &str) {
    let (name, rest) = line.split_once('(').expect("arguments");
    let (args, ret) = rest.split_once(')').expect("a result");
    schema.add_function(UserFunction {
        schema: "public".into(),
        name: name.to_owned(),
        args: args
            .split(',')
            .map(str::trim)
            .filter(|a| !a.is_empty())
            .map(ty)
            .collect(),
        arg_names: Vec::new(),
        variadic: None,
        defaults: 0,
        ret: ty(ret.trim()),
        out: Vec::new(),
        ret_relation: None,
        source: None,
    });
}

/// A PL/pgSQL function without arguments.
pub fn routine(schema: &mut Schema, name: &str, text: &str) {
    schema.add_function(UserFunction {
        schema: "public".into(),
        name: name.to_owned(),
        args: Vec::new(),
        arg_names: Vec::new(),
        variadic: None,
        defaults: 0,
        ret: ty("int4"),
        out: Vec::new(),
        ret_relation: None,
        source: Some(rewrite::RoutineBody {
            language: "plpgsql".into(),
            text: text.to_owned(),
        }),
    });
}

/// The schema of most tests.
pub fn schema() -> Schema {
    let mut s = Schema::default();
    s.set_search_path(["public"]);
    for line in [
        "public.emp: id int4, name enc_text, salary enc_int4, bonus enc_numeric, hired enc_date, active enc_bool, dept int4, note text, seen enc_timestamptz, code enc_varchar, tags enc_text[]",
        "public.dept: id int4, title text, budget enc_int8, opened date, plan jsonb, flag bool",
        "public.plain: id int4, name text, salary int4, at timestamptz, doc jsonb, arr _int4",
        "other.emp: id int4, name text, salary int4",
        "other.secret: a enc_int4",
        "public.Odd Name: Sal Ary enc_int4",
        "public.comp: id int4, addr ?address",
        "public.upd: a enc_int4, b enc_text, c int4",
    ] {
        if line.starts_with("public.Odd") {
            s.add_relation(Relation {
                oid: 99,
                schema: "public".into(),
                name: "Odd Name".into(),
                kind: 'r',
                columns: Some(vec![Column {
                    name: "Sal Ary".into(),
                    attnum: 1,
                    ty: ColumnType::Enc(TypeCode::Int4),
                    typmod: -1,
                    generated: false,
                    identity: false,
                    domain: None,
                }]),
            });
            continue;
        }
        relation(&mut s, line);
    }
    s.add_relation(Relation {
        oid: 1259,
        schema: "pg_catalog".into(),
        name: "pg_class".into(),
        kind: 'r',
        columns: None,
    });
    s.add_opaque_type("public", "address");
    function(&mut s, "raise_pay(enc_int4, int4) enc_int4");
    function(&mut s, "twofold(enc_int4) enc_int4");
    function(&mut s, "twofold(int4) int4");
    s
}

/// The statement's text with envelopes shown.
pub fn show(sql: &str, statement: &Statement) -> String {
    let seal = |secret: &Secret| -> Result<String, Infallible> {
        Ok(match &secret.form {
            Form::Bytes(bytes) => format!("<<bytes:{}>>", String::from_utf8_lossy(bytes)),
            Form::Text(text, None) => format!("<<{}>>", String::from_utf8_lossy(text)),
            Form::Text(text, Some(code)) => format!(
                "<<~{}:{}>>",
                code.plain_name(),
                String::from_utf8_lossy(text)
            ),
            Form::Typed(code, -1, text) => format!(
                "<<{}:{}>>",
                code.plain_name(),
                String::from_utf8_lossy(text)
            ),
            Form::Wider(from, to, text) => format!(
                "<<{} to {}:{}>>",
                from.plain_name(),
                to.plain_name(),
                String::from_utf8_lossy(text)
            ),
            Form::Soft(column, purpose, text, said) => format!(
                "<<{}{} {}:{}>>",
                column.code.soft_name(),
                match purpose {
                    Purpose::Compare => "",
                    Purpose::Order => " ordered",
                    Purpose::Each => " each",
                    Purpose::Store => " stored",
                    Purpose::Multiply => " factor",
                },
                said.map_or("", TypeCode::plain_name),
                String::from_utf8_lossy(text)
            ),
            Form::Typed(code, typmod, text) => {
                format!(
                    "<<{}({typmod:#x}):{}>>",
                    code.plain_name(),
                    String::from_utf8_lossy(text)
                )
            }
        })
    };
    let (text, _) = apply_edits(sql, &statement.edits, seal).expect("infallible");
    text.replace("pg_catalog.enc_", "enc_")
        .replace("pg_catalog.soft_", "soft_")
}

pub fn one(sql: &str, schema: &Schema) -> Result<Statement, Refusal> {
    remembered(sql, schema);
    let mut list = analyze(sql, schema)?;
    assert_eq!(list.len(), 1, "{sql}");
    Ok(list.remove(0))
}

/// What is remembered of a text is right for texts with other literals.
pub fn remembered(sql: &str, schema: &Schema) {
    let schema = Arc::new(schema.clone());
    let (memo, prepared) = (Memo::default(), Prepared::default());
    for text in [sql.to_owned(), sql.to_owned()]
        .into_iter()
        .chain(variants(sql))
    {
        let (found, right) = (
            memo.analyze(&text, &schema, &prepared),
            analyze(&text, &schema),
        );
        assert_eq!(found, right, "{text}, after {sql}");
        let secrets =
            |all: Vec<Statement>| -> Vec<String> { all.iter().map(|s| show(&text, s)).collect() };
        assert_eq!(found.map(secrets).ok(), right.map(secrets).ok(), "{text}");
    }
}

/// The text with other literals in the place of its own.
fn variants(sql: &str) -> impl Iterator<Item = String> {
    let strings = [
        "",
        "{x,y}",
        "a%_\\b",
        "year",
        "-7",
        "longer than what was there",
        "ä",
    ];
    let numbers = ["1", "7", "2147483647", "2147483648", "0", "007", "32768"];
    let sql = sql.to_owned();
    strings
        .into_iter()
        .zip(numbers)
        .map(move |(string, number)| {
            let mut out = String::new();
            for (at, part) in sql.split('\'').enumerate() {
                match at % 2 {
                    0 => out.push_str(&other_numbers(part, number)),
                    _ => out.extend(["'", string, "'"]),
                }
            }
            out
        })
}

fn other_numbers(text: &str, number: &str) -> String {
    let mut out = String::new();
    for word in text.split_inclusive(|c: char| !(c.is_alphanumeric() || "_.$".contains(c))) {
        let digits = word.trim_end_matches(|c: char| !c.is_ascii_digit());
        let whole = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        match word.strip_prefix(digits).filter(|_| whole) {
            Some(rest) => out.extend([number, rest]),
            None => out.push_str(word),
        }
    }
    out
}

/// Each pair: a statement, and what it becomes.
pub fn check(schema: &Schema, cases: &[(&str, &str)]) {
    let mut failures = Vec::new();
    for (sql, expected) in cases {
        let got = match one(sql, schema) {
            Ok(statement) => show(sql, &statement),
            Err(refusal) => format!("REFUSED {refusal:?}"),
        };
        if got != *expected {
            failures.push(format!("  sql: {sql}\n want: {expected}\n  got: {got}\n"));
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// Statements that stay as they are.
pub fn unchanged(schema: &Schema, cases: &[&str]) {
    let pairs: Vec<(&str, &str)> = cases.iter().map(|sql| (*sql, *sql)).collect();
    check(schema, &pairs);
}

/// Statements that are refused.
pub fn refused(schema: &Schema, cases: &[&str]) {
    for sql in cases {
        match analyze(sql, schema) {
            Ok(list) => {
                let shown: Vec<String> = list.iter().map(|s| show(sql, s)).collect();
                panic!("not refused: {sql}\n became: {shown:?}");
            }
            Err(refusal) => {
                let text = format!("{refusal:?}");
                assert!(!text.contains("s3cret"), "{text}");
                assert!(refusal.position.is_some(), "no position: {sql}: {text}");
            }
        }
    }
}
