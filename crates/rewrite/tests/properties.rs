//! Random statements. Mechanism: expressions are nested at random and then meet a
//! protected column. Right answer: every constant in them is in an envelope, or
//! the statement is refused. The bug: a constant is left in the text. And: no
//! text, however broken, makes the analysis panic.

mod common;
use common::{one, schema, show};
use proptest::prelude::*;
use rewrite::{Schema, analyze};
use std::sync::OnceLock;

fn shared() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(schema)
}

fn text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("name".to_owned()),
        Just("e.name".to_owned()),
        Just("code".to_owned()),
        "[a-z]{1,4}".prop_map(|s| format!("'{s}'")),
        "[a-z]{1,4}".prop_map(|s| format!("$q${s}$q$")),
        "[a-z]{1,4}".prop_map(|s| format!("'{s}'::text")),
        "[a-z]{1,4}".prop_map(|s| format!("text '{s}'")),
        Just("NULL".to_owned()),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let two = (inner.clone(), inner.clone());
        let number = prop_oneof![
            Just("salary".to_owned()),
            (0..99u32).prop_map(|n| n.to_string())
        ];
        prop_oneof![
            two.clone().prop_map(|(a, b)| format!("{a} || {b}")),
            two.clone().prop_map(|(a, b)| format!("coalesce({a}, {b})")),
            two.clone().prop_map(|(a, b)| format!("greatest({a}, {b})")),
            two.clone().prop_map(|(a, b)| format!("nullif({a}, {b})")),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("(CASE WHEN name = {a} THEN {b} ELSE {c} END)")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!(
                "(CASE {a} WHEN name THEN {b} WHEN {c} THEN name END)"
            )),
            two.clone()
                .prop_map(|(a, b)| format!("replace({a}, {b}, name)")),
            inner.clone().prop_map(|a| format!("upper({a})")),
            inner.clone().prop_map(|a| format!("trim({a})")),
            inner.clone().prop_map(|a| format!("({a})")),
            inner.clone().prop_map(|a| format!("(SELECT {a})")),
            inner
                .clone()
                .prop_map(|a| format!("(SELECT x FROM (SELECT {a} AS x) s)")),
            inner
                .clone()
                .prop_map(|a| format!("(WITH w(x) AS (SELECT {a}) SELECT max(x) FROM w)")),
            inner
                .clone()
                .prop_map(|a| format!("(SELECT y FROM (VALUES ({a})) v(y))")),
            two.clone()
                .prop_map(|(a, b)| format!("(SELECT {a} UNION ALL SELECT {b})")),
            (inner.clone(), number.clone()).prop_map(|(a, n)| format!("substr({a}, {n})")),
            (inner.clone(), number).prop_map(|(a, n)| format!("left({a}, {n})")),
            inner.clone().prop_map(|a| format!("({a})::varchar(10)")),
            inner.prop_map(|a| format!("CAST({a} AS text)")),
        ]
    })
}

fn condition() -> impl Strategy<Value = String> {
    (text(), text(), 0..12usize).prop_map(|(a, b, form)| match form {
        0 => format!("{a} = name"),
        1 => format!("name < {a}"),
        2 => format!("name BETWEEN {a} AND {b}"),
        3 => format!("name IN ({a}, {b})"),
        4 => format!("(name, code) = ({a}, {b})"),
        5 => format!("name IN (SELECT {a} UNION SELECT {b})"),
        6 => format!("name LIKE {a}"),
        7 => format!("name = ANY (ARRAY[{a}, {b}])"),
        8 => format!("name IS DISTINCT FROM {a} AND NOT (code >= {b})"),
        9 => format!("EXISTS (SELECT FROM emp i WHERE i.name = {a} AND e.name = {b})"),
        10 => format!("{a} || {b} = e.name"),
        _ => format!("({a}, {b}) IN (SELECT name, code FROM emp)"),
    })
}

/// Constants that are not in envelopes, but for those of typmods and subscripts.
fn left_over(text: &str) -> Vec<String> {
    let mut text = text.to_owned();
    while let (Some(begin), Some(end)) = (text.find("'<<"), text.find(">>'")) {
        text.replace_range(begin..end + 3, "");
    }
    let text = text.replace("enc_varchar(10)", "");
    let tokens = pg_query::scan_tokens(&text).expect("scanned");
    use pg_query::protobuf::Token;
    let constant = |t: &&pg_query::protobuf::ScanToken| {
        matches!(
            t.token(),
            Token::Iconst | Token::Fconst | Token::Sconst | Token::Usconst
        )
    };
    tokens
        .iter()
        .filter(constant)
        .map(|t| text[t.start as usize..t.end as usize].to_owned())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_left_in_conditions(c in condition()) {
        let sql = format!("SELECT * FROM emp e WHERE {c}");
        if let Ok(statement) = one(&sql, shared()) {
            let text = show(&sql, &statement);
            prop_assert!(left_over(&text).is_empty(), "{sql}\n{text}");
        }
    }

    #[test]
    fn nothing_is_left_in_writes(a in text(), b in text(), form in 0..6usize) {
        let sql = match form {
            0 => format!("INSERT INTO upd (b) SELECT {a} FROM emp e"),
            1 => format!("UPDATE upd SET b = {a} FROM emp e WHERE upd.b = {b}"),
            2 => format!("INSERT INTO upd (b) SELECT x FROM (SELECT {a} AS x, {b} AS y FROM emp e) s WHERE y = x"),
            3 => format!("WITH w AS (SELECT {a} AS x FROM emp e) INSERT INTO upd (b) SELECT x FROM w UNION SELECT {b} FROM emp e"),
            4 => format!("MERGE INTO upd u USING (SELECT {a} AS x FROM emp e) s ON u.b = s.x WHEN MATCHED THEN UPDATE SET b = s.x"),
            _ => format!("UPDATE upd SET (a, b) = (SELECT salary, {a} FROM emp e WHERE name = {b})"),
        };
        if let Ok(statement) = one(&sql, shared()) {
            let text = show(&sql, &statement);
            prop_assert!(left_over(&text).is_empty(), "{sql}\n{text}");
        }
    }

    /// On tables without protected columns nothing changes.
    #[test]
    fn plain_stays(c in condition()) {
        let sql = format!("SELECT * FROM plain e WHERE {c}")
            .replace("FROM emp", "FROM plain").replace("code", "name").replace("salary", "id");
        let statement = one(&sql, shared());
        match statement {
            Ok(statement) => prop_assert!(statement.edits.is_empty(), "{sql}"),
            Err(refusal) => prop_assert!(false, "{sql}\n{refusal:?}"),
        }
    }

    #[test]
    fn garbage_does_not_panic(text in "\\PC{0,80}") {
        let _ = analyze(&text, shared());
    }

    #[test]
    fn token_soup_does_not_panic(words in prop::collection::vec(prop::sample::select(WORDS), 0..40)) {
        let _ = analyze(&words.join(" "), shared());
    }

    /// Statements of which a piece is cut out, or doubled.
    #[test]
    fn cuts_do_not_panic(c in condition(), a in 0..200usize, b in 0..200usize) {
        let sql = format!("SELECT * FROM emp e WHERE {c}");
        let cut = |n: usize| sql.char_indices().map(|(i, _)| i).nth(n % sql.chars().count()).unwrap_or(0);
        let (low, high) = (cut(a).min(cut(b)), cut(a).max(cut(b)));
        let _ = analyze(&format!("{}{}", &sql[..low], &sql[high..]), shared());
        let _ = analyze(&format!("{}{}", &sql[..high], &sql[low..]), shared());
    }
}

const WORDS: &[&str] = &[
    "SELECT",
    "*",
    "FROM",
    "emp",
    "WHERE",
    "salary",
    "=",
    "5",
    "'x'",
    ",",
    "(",
    ")",
    "AND",
    "INSERT",
    "INTO",
    "VALUES",
    "upd",
    "UPDATE",
    "SET",
    "name",
    "||",
    "CASE",
    "WHEN",
    "THEN",
    "END",
    "WITH",
    "AS",
    "UNION",
    "::",
    "int",
    "interval",
    "day",
    "$1",
    "ARRAY",
    "[",
    "]",
    "IN",
    "ANY",
    "LIKE",
    "ESCAPE",
    ";",
    "CREATE",
    "TABLE",
    "enc_int4",
    "DEFAULT",
    "COPY",
    "TO",
    "STDOUT",
    "-",
    ".",
    "ROW",
    "NULL",
    "E'a'",
    "U&'a'",
    "UESCAPE",
    "'!'",
    "CAST",
    "timestamp",
    "(3)",
    "JOIN",
    "ON",
    "MERGE",
    "USING",
    "DO",
    "$$x$$",
    "RETURNING",
    "date",
];
