//! Receipts: what verifies is what was signed, and is in the log.

use ledger::checkpoint::Checkpoint;
use ledger::entry::{Entry, Kind};
use ledger::receipt::{Proven, Receipt, Written};
use ledger::tree::{Tree, prove_inclusion};
use ledger::{Error, Hash, SigningKey};

fn entry(sn: u64, principal: &str) -> Vec<u8> {
    Entry {
        kind: Kind::Write,
        group: 1,
        settled: 1,
        sn,
        other: 0,
        time: 5,
        sealed: 6,
        principal: principal.into(),
        names: String::new(),
        row: Hash::leaf(b"row"),
    }
    .encode()
}

/// Of a log with six entries the last three.
fn receipt(principal: &str) -> Receipt {
    let entries: Vec<Vec<u8>> = (0..6).map(|sn| entry(sn, principal)).collect();
    let mut tree = Tree::new();
    entries.iter().for_each(|e| tree.push(Entry::leaf(e)));
    let proven = (3..6).map(|index| Proven {
        index,
        entry: entries[index as usize].clone(),
        path: prove_inclusion(&tree, index, 6).unwrap().path,
    });
    Receipt {
        time: 815_000_000_000_000,
        nonce: b"my nonce".to_vec(),
        principal: "app".into(),
        logs: vec![Written {
            log: Checkpoint {
                origin: "confide/1/5/7/public.account".into(),
                size: 6,
                root: tree.root(),
            },
            entries: proven.collect(),
        }],
    }
}

/// Signed and read again it is the same; any changed character, another nonce or key is noticed. With
/// the bug somebody could show a receipt for what was never written.
#[test]
fn changes_are_noticed() {
    let key = SigningKey::from_seed(&[7; 32]).unwrap();
    let public = key.verifying_key().unwrap();
    let note = receipt("app").sign(&key).unwrap();
    let verify = |note: &str| Receipt::verify(note, Some(b"my nonce"), &public);
    assert_eq!(verify(&note), Ok(receipt("app")));
    assert!(Receipt::verify(&note, None, &public).is_ok());
    let other = Receipt::verify(&note, Some(b"another"), &public);
    assert_eq!(other, Err(Error::Nonce));
    let stranger = SigningKey::from_seed(&[8; 32]).unwrap();
    let signed = Receipt::verify(&note, None, &stranger.verifying_key().unwrap());
    assert_eq!(signed, Err(Error::OtherKey));
    for (at, c) in note.char_indices() {
        let mut changed = note.clone();
        let with = if c == 'A' { "B" } else { "A" };
        changed.replace_range(at..at + c.len_utf8(), with);
        assert!(verify(&changed).is_err(), "{at}");
    }
}

/// What is signed but not so, as a keeper with a bug could: an entry that the log does not have at that place,
/// one of another principal.
#[test]
fn what_is_not_in_the_log() {
    let key = SigningKey::from_seed(&[7; 32]).unwrap();
    let public = key.verifying_key().unwrap();
    let verify = |receipt: Receipt| Receipt::verify(&receipt.sign(&key).unwrap(), None, &public);
    let mut moved = receipt("app");
    moved.logs[0].entries[0].index = 4;
    assert_eq!(verify(moved), Err(Error::Proof));
    let mut longer = receipt("app");
    longer.logs[0].log.size = 7;
    assert_eq!(verify(longer), Err(Error::Proof));
    assert!(matches!(verify(receipt("bob")), Err(Error::Malformed(_))));
}
