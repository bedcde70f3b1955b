//! Reports and entries: what is signed is what was found, and parses in one way.

use ledger::entry::{Entry, Kind};
use ledger::proof::Consistency;
use ledger::report::{Finding, Report, What};
use ledger::{Error, Hash, SigningKey};
use proptest::prelude::*;

fn report() -> Report {
    Report {
        log: "confide/1/5/public.account".into(),
        size: 9,
        root: Hash::leaf(b"root"),
        time: 815_000_000_000_000,
        began: -1,
        before: 0,
        nonce: b"my nonce".to_vec(),
        principal: "app".into(),
        versions: 7,
        erased: 1,
        restored: 3,
        since: 800,
        unconfirmed: vec![3],
        findings: vec![
            Finding {
                sn: 5,
                what: What::Altered,
            },
            Finding {
                sn: 0,
                what: What::Renamed,
            },
        ],
        more: 2,
        consistency: Some(Consistency {
            old: 4,
            new: 9,
            path: vec![Hash::leaf(b"a"), Hash::leaf(b"b")],
        }),
    }
}

/// Signed and read again it is the same; with another nonce, key or text it is none. With the
/// bug the database could take a finding out, or show an older report.
#[test]
fn changes_are_noticed() {
    let key = SigningKey::from_seed(&[7; 32]).unwrap();
    let public = key.verifying_key().unwrap();
    let note = report().sign(&key).unwrap();
    assert_eq!(Report::verify(&note, b"my nonce", &public), Ok(report()));
    assert_eq!(Report::verify(&note, b"", &public), Err(Error::Nonce));
    let other = SigningKey::from_seed(&[8; 32]).unwrap();
    let other = other.verifying_key().unwrap();
    assert_eq!(
        Report::verify(&note, b"my nonce", &other),
        Err(Error::OtherKey)
    );
    for (from, to) in [
        ("finding 5 altered\n", ""),
        ("versions 7", "versions 8"),
        ("restored 3\n", ""),
        ("unconfirmed 3", "unconfirmed 4"),
        ("more 2", "more 0"),
    ] {
        let changed = note.replace(from, to);
        assert_ne!(changed, note);
        assert_eq!(
            Report::verify(&changed, b"my nonce", &public),
            Err(Error::Signature)
        );
    }
    let twice = note.replace("more 2\n", "more 1\nmore 2\n");
    assert!(matches!(
        Report::verify(&twice, b"my nonce", &public),
        Err(Error::Malformed(_))
    ));
}

proptest! {
    /// Any bytes are an entry, which they are the bytes of, or an error.
    #[test]
    fn entries_decode_in_one_way(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(entry) = Entry::decode(&bytes) {
            prop_assert_eq!(entry.encode(), bytes);
        }
    }

    /// An entry is read back as it was.
    #[test]
    fn entries_come_back(
        numbers in any::<(u64, u64, u64, u64, i64, i64)>(),
        principal in ".{0,20}",
        names in ".{0,20}",
        row in any::<[u8; 32]>(),
    ) {
        let entry = Entry {
            kind: Kind::Write,
            group: numbers.0,
            settled: numbers.1,
            sn: numbers.2,
            other: numbers.3,
            time: numbers.4,
            sealed: numbers.5,
            principal,
            names,
            row: Hash(row),
        };
        prop_assert_eq!(Entry::decode(&entry.encode()), Ok(entry));
    }
}
