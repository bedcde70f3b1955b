//! `WITH SIGNATURE`. The statement becomes an argument of confide.signed_result, its shape and the
//! nonce go in envelopes. A bug here would sign what the database says was asked, send the
//! nonce in the clear, or sign a part of a text only.

mod common;
use common::{check, refused, remembered, schema, unchanged};

#[test]
fn signed() {
    check(
        &schema(),
        &[
            (
                "SELECT id, salary FROM emp WHERE salary > 5 AND id < 7 WITH SIGNATURE",
                "SELECT confide.signed_result($signed$SELECT id, salary FROM emp WHERE salary > \
                 '<<int4:5>>'::enc_int4 AND id < 7 $signed$, '<<~text:SELECT id, salary FROM emp WHERE \
                 salary > $1 AND id < $2>>'::enc_text, \
                 '<<~bytea:\\x>>'::enc_bytea) AS signed_result",
            ),
            (
                "TABLE plain with Signature 'a''b';",
                "SELECT confide.signed_result($signed$TABLE plain $signed$, '<<~text:TABLE plain>>'\
                 ::enc_text, '<<~bytea:\\x612762>>'::enc_bytea) AS signed_result;",
            ),
            (
                "SELECT FROM plain WITH SIGNATURE",
                "SELECT confide.signed_result($signed$SELECT*FROM plain $signed$, '<<~text:SELECT*FROM \
                 plain>>'::enc_text, '<<~bytea:\\x>>'::enc_bytea) AS signed_result",
            ),
            (
                "SELECT note FROM emp WHERE note = '$signed$' WITH SIGNATURE",
                "SELECT confide.signed_result($signed1$SELECT note FROM emp WHERE note = '$signed$' \
                 $signed1$, '<<~text:SELECT note FROM emp WHERE note = $1>>'::enc_text, \
                 '<<~bytea:\\x>>'::enc_bytea) AS signed_result",
            ),
        ],
    );
    remembered(
        "SELECT id FROM emp WHERE salary = 5 WITH SIGNATURE",
        &schema(),
    );
}

#[test]
fn not_signed() {
    refused(
        &schema(),
        &[
            "INSERT INTO plain VALUES (1) WITH SIGNATURE",
            "SELECT 1; SELECT 2 WITH SIGNATURE",
            "SELECT salary FROM emp WHERE id = $1 WITH SIGNATURE",
            "SELECT salary INTO x FROM emp WITH SIGNATURE",
            "SELECT 1 WITH SIGNATURE E'\\x'",
            "CREATE TABLE x AS SELECT 1 WITH SIGNATURE",
        ],
    );
    unchanged(
        &schema(),
        &["WITH signature AS (SELECT 1) SELECT * FROM signature"],
    );
}
