//! Literals that meet columns of the family `soft_`. A binder that takes such a column for plain
//! sends the value in the clear; one that takes it for `enc_` asks for a keeper.

mod common;
use common::{check, refused, show};
use contract::TypeCode;
use contract::soft::{ADD, EQ, MUL, ORD};
use rewrite::{Column, ColumnType, Prepared, Refusal, Relation, Schema, analyze, analyze_with};

/// `t (i soft_int4 key 1, j soft_int4 key 2, s soft_text key 3, p int4, note text, e enc_text,
/// f soft_int4(mul) key 4, g soft_int8(mul) key 5)`.
fn schema() -> Schema {
    let mut schema = Schema::default();
    schema.set_search_path(["public"]);
    let soft = |code: TypeCode, encodings: u8, key: i32| {
        ColumnType::Soft(code, i32::from(encodings) << 27 | key)
    };
    let columns = [
        ("i", soft(TypeCode::Int4, EQ | ORD | ADD, 1)),
        ("j", soft(TypeCode::Int4, EQ, 2)),
        ("s", soft(TypeCode::Text, EQ, 3)),
        ("p", ColumnType::Plain(23, "int4".into())),
        ("note", ColumnType::Plain(25, "text".into())),
        ("e", ColumnType::Enc(TypeCode::Text)),
        ("f", soft(TypeCode::Int4, MUL, 4)),
        ("g", soft(TypeCode::Int8, MUL, 5)),
    ];
    let column = |(at, (name, ty)): (usize, (&str, ColumnType))| Column {
        name: name.into(),
        attnum: at as i16 + 1,
        ty,
        typmod: -1,
        generated: false,
        identity: false,
        domain: None,
    };
    schema.add_relation(Relation {
        oid: 20000,
        schema: "public".into(),
        name: "t".into(),
        kind: 'r',
        columns: Some(columns.into_iter().enumerate().map(column).collect()),
    });
    schema
}

#[test]
fn literals() {
    check(
        &schema(),
        &[
            (
                "SELECT p FROM t WHERE i = 5 AND p = 6",
                "SELECT p FROM t WHERE i = '<<soft_int4 int4:5>>'::soft_int4 AND p = 6",
            ),
            (
                "SELECT p FROM t WHERE i BETWEEN '1' AND $1",
                "SELECT p FROM t WHERE i BETWEEN '<<soft_int4 :1>>'::soft_int4 AND $1::soft_int4",
            ),
            (
                "INSERT INTO t (i, note) VALUES (5, 'x'), (NULL, 'y')",
                "INSERT INTO t (i, note) VALUES ('<<soft_int4 stored int4:5>>'::soft_int4, 'x'), (NULL, 'y')",
            ),
            (
                "UPDATE t SET s = 'x' WHERE j IN (1, 2)",
                "UPDATE t SET s = '<<soft_text stored :x>>'::soft_text WHERE j IN ('<<soft_int4 int4:1>>'::soft_int4, '<<soft_int4 int4:2>>'::soft_int4)",
            ),
            (
                "SELECT p FROM t WHERE i = ANY ($1) AND j <> ALL ('{1,2}')",
                "SELECT p FROM t WHERE i = ANY ($1::soft_int4[]) AND j <> ALL ('<<soft_int4 each :{1,2}>>'::soft_int4[])",
            ),
            (
                "SELECT p FROM t WHERE s = ANY ($1::text[]) OR s = ANY (ARRAY['a']::text[])",
                "SELECT p FROM t WHERE s = ANY ($1::soft_text[]::soft_text[]) OR s = ANY (ARRAY['<<soft_text :a>>'::soft_text]::soft_text[])",
            ),
            (
                "SELECT max(i) FROM t HAVING max(i) > 5",
                "SELECT max(i) FROM t HAVING max(i) > '<<soft_int4 int4:5>>'::soft_int4",
            ),
            (
                "SELECT 1 FROM (SELECT i AS x FROM t) v WHERE x = 5::int4",
                "SELECT 1 FROM (SELECT i AS x FROM t) v WHERE x = '<<soft_int4 int4:5>>'::soft_int4::soft_int4",
            ),
            (
                "INSERT INTO t (s, e) VALUES ($1, $2), ('same', 'same')",
                "INSERT INTO t (s, e) VALUES ($1::soft_text, $2), ('<<soft_text stored :same>>'::soft_text, '<<same>>')",
            ),
            (
                "SELECT p FROM t WHERE s = 'a' COLLATE \"C\"",
                "SELECT p FROM t WHERE s = '<<soft_text :a>>'::soft_text ",
            ),
            (
                "SELECT 1 FROM (SELECT 'a' AS x) v, t WHERE v.x = t.s",
                "SELECT 1 FROM (SELECT '<<soft_text :a>>'::soft_text AS x) v, t WHERE v.x = t.s",
            ),
        ],
    );
}

#[test]
fn refusals() {
    let all = [
        // Keys of two columns.
        "SELECT 1 FROM t WHERE i = j",
        "SELECT 1 FROM (SELECT 5 AS x) v, t WHERE v.x = i AND v.x = j",
        "SELECT p FROM t WHERE i = $1 OR j = $1",
        // The value stands in the clear elsewhere.
        "SELECT 1 FROM (SELECT 'a' AS x) v, t WHERE v.x = t.s AND v.x = 'b'",
        "SELECT 'Ann' FROM t WHERE s = 'Ann'",
        "SELECT p FROM t WHERE note = 'Ann' AND s = 'Ann'",
        "SELECT p FROM t WHERE i = $1 AND p = $1",
        "SELECT p FROM t WHERE s = $1 AND e = $1",
        // Nothing is known of what they meet.
        "SELECT p FROM t WHERE sum(i) > 5",
        "SELECT p FROM t WHERE i = p + 5",
        "SELECT p FROM t WHERE i = ANY ($1) OR i = $1",
        "SELECT p FROM t WHERE (t).i = 5 OR t = ROW(5)",
    ];
    refused(&schema(), &all);
}

/// A statement that is prepared, and its EXECUTE, as they leave.
fn executed(prepare: &str, execute: &str) -> Result<[String; 2], Refusal> {
    let first = analyze(prepare, &schema())?.remove(0);
    let mut prepared = Prepared::default();
    prepared.insert("a", first.prepare.clone().unwrap_or_default());
    let second = analyze_with(execute, &schema(), &prepared)?.remove(0);
    Ok([show(prepare, &first), show(execute, &second)])
}

/// Arguments of EXECUTE are encoded for the columns that the prepared statement's parameters meet. As
/// plain ones they would leave in the clear.
#[test]
fn prepared_statements() {
    let all = [
        [
            "PREPARE a AS SELECT p FROM t WHERE i < $1 AND p = $2",
            "EXECUTE a (5, 6)",
            "PREPARE a AS SELECT p FROM t WHERE i < $1::soft_int4 AND p = $2",
            "EXECUTE a ('<<soft_int4 int4:5>>'::soft_int4, 6)",
        ],
        [
            "PREPARE a (int4, text) AS INSERT INTO t (i, s) VALUES ($1, $2)",
            "EXPLAIN EXECUTE a ('5', 'x')",
            "PREPARE a (soft_int4, soft_text) AS INSERT INTO t (i, s) VALUES ($1::soft_int4, $2::soft_text)",
            "EXPLAIN EXECUTE a ('<<soft_int4 stored :5>>'::soft_int4, '<<soft_text stored :x>>'::soft_text)",
        ],
        [
            "PREPARE a (int4[]) AS SELECT p FROM t WHERE i = ANY ($1)",
            "EXECUTE a ('{5,6}')",
            "PREPARE a (soft_int4[]) AS SELECT p FROM t WHERE i = ANY ($1::soft_int4[])",
            "EXECUTE a ('<<soft_int4 each :{5,6}>>'::soft_int4[])",
        ],
    ];
    for [prepare, execute, first, second] in all {
        let left = executed(prepare, execute).expect(prepare);
        assert_eq!(left, [first, second]);
    }
    // What is computed of constants has encoded ones, which the server refuses.
    let one = "PREPARE a AS SELECT p FROM t WHERE i = $1";
    let [_, left] = executed(one, "EXECUTE a (5 + 1)").expect(one);
    assert!(!left.contains("5 +"), "{left}");
    let list = "PREPARE a AS SELECT p FROM t WHERE i = ANY ($1)";
    assert!(executed(list, "EXECUTE a (ARRAY[5, 6])").is_err());
}

/// Where a product is a result, its literals are factors; elsewhere the keeper opens the values.
#[test]
fn products() {
    check(
        &schema(),
        &[
            (
                "SELECT f * 5, g / $1, f * g * 2 FROM t",
                "SELECT f  OPERATOR(pg_catalog.@*)  '<<soft_int4 factor int4:5>>'::soft_int4, g  OPERATOR(pg_catalog.@/)  $1::soft_int8, f  OPERATOR(pg_catalog.@*)  g  OPERATOR(pg_catalog.@*)  '<<soft_int4 factor int4:2>>'::soft_int4 FROM t",
            ),
            (
                "SELECT x FROM (SELECT 1.5 * f AS x FROM t) v",
                "SELECT x FROM (SELECT '<<soft_numeric factor numeric:1.5>>'::soft_numeric  OPERATOR(pg_catalog.@*)  f AS x FROM t) v",
            ),
            (
                "SELECT p FROM t WHERE f * 5 > 7",
                "SELECT p FROM t WHERE f * '<<int4:5>>'::enc_int4 > '<<int4:7>>'::enc_int4",
            ),
            (
                "SELECT sum(f * 5), i * 3 FROM t",
                "SELECT sum(f * '<<int4:5>>'::enc_int4), i * '<<int4:3>>'::enc_int4 FROM t",
            ),
        ],
    );
    refused(
        &schema(),
        &[
            "SELECT f * f * g FROM t",
            "SELECT f / f * f FROM t",
            "SELECT f * f * p FROM t",
            "SELECT f * f * i FROM t",
            "SELECT g * g * 2 FROM t",
            "SELECT f * 77777, 77777 FROM t",
            "SELECT f * $1, g * $1 FROM t",
            "SELECT x FROM (SELECT f * f AS x FROM t) v WHERE x > 5",
            "SELECT p FROM t WHERE f @* 5 IS NULL",
        ],
    );
}

/// The first operand's type is the column's, as which it is compared. Bug: a result that nobody
/// expected, which ends the session.
#[test]
fn results_of_nullif() {
    for sql in [
        "SELECT nullif(int4 '2', i) FROM t",
        "SELECT nullif(2, i) FROM t",
        "SELECT nullif(i, 2) FROM t",
    ] {
        let statements = analyze(sql, &schema()).expect(sql);
        let results = statements.first().and_then(|s| s.results.clone());
        assert_eq!(results, Some(vec![true]), "{sql}");
    }
}
