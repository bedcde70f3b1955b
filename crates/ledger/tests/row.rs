//! Leaves of row versions.

use ledger::Hash;
use ledger::row::{Column, Form, Hasher, Heading, RowVersion};
use std::collections::HashSet;

fn column<'a>(name: &'a str, type_name: &'a str, value: Option<&'a [u8]>) -> Column<'a> {
    Column {
        name: name.as_bytes(),
        type_name: type_name.as_bytes(),
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

/// Hashes are compared with those in logs of earlier versions, so the bytes stay as they are written
/// here, however they are made: at once, or column by column after another version's, also under a
/// heading that was made before.
#[test]
fn bytes() {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
    let number = |number: u64| number.to_le_bytes().to_vec();
    let parts = [
        b"cfdrow 1".to_vec(),
        text("public"),
        text("account"),
        number(7),
        number(5),
        text("ann"),
        number(2),
        [text("owner"), text("text"), vec![1], text("\x02mac")].concat(),
        [text("balance"), text("int4"), vec![0]].concat(),
    ];
    let expected = Hash::leaf(&parts.concat());
    let columns = [
        Column {
            name: b"owner",
            type_name: b"text",
            value: Some((Form::Protected, b"mac")),
        },
        column("balance", "int4", None),
    ];
    assert_eq!(version(&columns).leaf(), expected);
    let mut hasher = Hasher::default();
    hasher.begin(&version(&columns));
    hasher.column(&columns[0]);
    assert_ne!(hasher.leaf(), expected);
    hasher.begin(&version(&[]));
    columns.iter().for_each(|column| hasher.column(column));
    assert_eq!(hasher.leaf(), expected);
    hasher.begin(&version(&[]));
    let heading = Heading::new(b"owner", b"text");
    assert_eq!(heading.name(), b"owner");
    assert_eq!(heading.type_name(), b"text");
    hasher.headed(&heading, Form::Protected, b"mac");
    hasher.column(&columns[1]);
    assert_eq!(hasher.leaf(), expected);
}
