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
