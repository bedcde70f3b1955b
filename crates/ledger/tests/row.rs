//! Leaves of row versions.

use ledger::Hash;
use ledger::row::{Column, Form, RowVersion};
use std::collections::HashSet;

fn column<'a>(name: &'a str, type_name: &'a str, value: Option<&'a [u8]>) -> Column<'a> {
    Column {
        name,
        type_name,
        value: value.map(|bytes| (Form::Plain, bytes)),
    }
}

fn version<'a>(columns: &'a [Column<'a>]) -> RowVersion<'a> {
    RowVersion {
        schema: "public",
        table: "account",
        sn: 7,
        valid_from: 5,
        principal: "ann",
        columns,
    }
}

/// Whatever is changed of a row version changes its leaf, also where the bytes of all
/// fields together stay the same; with the bug a value could move into another column.
#[test]
fn every_change_changes_the_leaf() {
    let columns = [
        column("owner", "text", Some(b"bob")),
        column("balance", "int4", Some(b"12")),
    ];
    let others = [
        [
            column("owner", "text", Some(b"bob1")),
            column("balance", "int4", Some(b"2")),
        ],
        [
            column("owner", "text", Some(b"12")),
            column("balance", "int4", Some(b"bob")),
        ],
        [
            column("ownert", "ext", Some(b"bob")),
            column("balance", "int4", Some(b"12")),
        ],
        [
            column("owner", "text", None),
            column("balance", "int4", Some(b"12")),
        ],
        [
            column("owner", "text", Some(b"")),
            column("balance", "int4", Some(b"12")),
        ],
        [
            column("balance", "int4", Some(b"12")),
            column("owner", "text", Some(b"bob")),
        ],
    ];
    let first = version(&columns);
    let mut leaves: Vec<Hash> = others.iter().map(|c| version(c).leaf()).collect();
    leaves.extend([
        first.leaf(),
        RowVersion {
            schema: "publi",
            table: "caccount",
            ..first.clone()
        }
        .leaf(),
        RowVersion {
            sn: 8,
            ..first.clone()
        }
        .leaf(),
        RowVersion {
            valid_from: 6,
            ..first.clone()
        }
        .leaf(),
        RowVersion {
            principal: "",
            ..first.clone()
        }
        .leaf(),
        version(&columns[..1]).leaf(),
    ]);
    let different: HashSet<Hash> = leaves.iter().copied().collect();
    assert_eq!(different.len(), leaves.len());
}
