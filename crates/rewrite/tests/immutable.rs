//! `IMMUTABLE YES WITH TYPE TEE`. A bug here would make an ordinary table, whose versions nobody
//! keeps.

mod common;
use common::{check, remembered, schema};

#[test]
fn becomes_the_option() {
    check(
        &schema(),
        &[
            (
                "CREATE TABLE t (id int, pay enc_int4) IMMUTABLE YES WITH TYPE TEE",
                "CREATE TABLE t (id int, pay enc_int4) WITH (confide.ledger = on)",
            ),
            (
                "CREATE TABLE t (id int) immutable YES with type tee;",
                "CREATE TABLE t (id int) WITH (confide.ledger = on);",
            ),
        ],
    );
    remembered(
        "CREATE TABLE t (id int) IMMUTABLE YES WITH TYPE TEE",
        &schema(),
    );
}

/// A bug would read the table of today, or show a client columns that it has not asked for.
#[test]
fn as_of_is_a_query_over_the_view() {
    let mut schema = schema();
    common::relation(
        &mut schema,
        "public.deed: id int4, pay enc_int4, sn ledger_sn generated, valid_from timestamptz, by text",
    );
    common::relation(
        &mut schema,
        "public.deed_ledger: id int4, pay enc_int4, sn int8, valid_from timestamptz, by text,\
         valid_to timestamptz, ended_by text",
    );
    check(
        &schema,
        &[(
            "SELECT pay FROM confide.as_of(deed, now()) WHERE pay = 5",
            "SELECT pay FROM LATERAL (SELECT l.\"id\", l.\"pay\", l.\"sn\"::pg_catalog.ledger_sn AS sn, \
                 l.\"valid_from\", l.\"by\" FROM \"public\".\"deed_ledger\" AS l, (SELECT ( now()\
                 )::pg_catalog.timestamptz) AS a (t) WHERE l.valid_from <= a.t AND a.t < l.valid_to) AS as_of \
                 WHERE pay = '<<int4:5>>'::enc_int4",
        )],
    );
    let star = &rewrite::analyze("SELECT * FROM deed", &schema).unwrap()[0];
    assert_eq!(star.results, Some(vec![false, true]));
    let named = &rewrite::analyze("SELECT sn, pay FROM deed", &schema).unwrap()[0];
    assert_eq!(named.results, Some(vec![false, true]));
}
