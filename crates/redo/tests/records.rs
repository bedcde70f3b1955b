//! Records come back as they were, or not at all.

use proptest::prelude::*;
use redo::{Error, Opener, Partition, Promotion, Record, Sealer};

fn sealed(items: &[(u64, u8, Vec<u8>)]) -> Vec<u8> {
    let mut promotion = Promotion::new();
    for (fid, t, bytes) in items {
        promotion.push(*fid, *t, bytes);
    }
    Sealer::new(&[3; 32]).unwrap().promotion(promotion).unwrap()
}

fn item() -> impl Strategy<Value = (u64, u8, Vec<u8>)> {
    let fid = prop_oneof![any::<u64>(), (0u64..1000).prop_map(|n| (1 << 44) + n)];
    (
        fid,
        any::<u8>(),
        proptest::collection::vec(any::<u8>(), 0..300),
    )
}

proptest! {
    #[test]
    fn there_and_back(items in proptest::collection::vec(item(), 0..50)) {
        let record = Opener::new(&[3; 32]).open(&sealed(&items)).unwrap_or_else(|e| panic!("{e}"));
        let Record::Promotion(found) = record else { panic!("kind") };
        let found: Vec<_> = found.iter().map(|i| (i.fid, i.type_code, i.bytes.to_vec())).collect();
        prop_assert_eq!(found, items);
    }

    #[test]
    fn partitions(number: u32, database: u32, relation: u32, attribute: i32, layout: u32) {
        let partition = Partition { number, database, relation, attribute, layout };
        let record = Sealer::new(&[3; 32]).unwrap().partition(&partition).unwrap();
        match Opener::new(&[3; 32]).open(&record) {
            Ok(Record::Partition(found)) => prop_assert_eq!(found, partition),
            _ => prop_assert!(false),
        }
    }

    /// Any bytes are an error, none a panic.
    #[test]
    fn garbage(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), version: bool) {
        if version && let Some(first) = bytes.first_mut() {
            *first = redo::VERSION;
        }
        prop_assert!(Opener::new(&[3; 32]).open(&bytes).is_err());
    }
}

/// Each bit counts, and so does the length; with a bug in the authenticated
/// header a DBA could make one record pass for another kind or place.
#[test]
fn tampering_is_noticed() {
    let record = sealed(&[
        (1 << 44, 3, vec![1, 2, 3, 4]),
        (2 << 44, 8, b"secret".to_vec()),
    ]);
    let mut opener = Opener::new(&[3; 32]);
    assert!(opener.open(&record).is_ok());
    for bit in 0..record.len() * 8 {
        let mut changed = record.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(opener.open(&changed).is_err(), "bit {bit}");
    }
    for length in 0..record.len() {
        assert!(opener.open(&record[..length]).is_err(), "length {length}");
    }
    let other = Opener::new(&[4; 32]).open(&record);
    assert_eq!(other.err(), Some(Error::Altered));
}

/// A batch of rows is compressed unless the setting says no, and opens either way; with
/// the bug a keeper whose setting was changed could not read the WAL before.
#[test]
fn batches_are_shorter() {
    let rows: Vec<(u64, u8, Vec<u8>)> = (0..3000u64)
        .map(|n| {
            (
                ((20 + n % 3) << 44) + n / 3,
                8,
                format!("value {}", n % 7).into_bytes(),
            )
        })
        .collect();
    let sealed = |compress| {
        let mut sealer = Sealer::new(&[3; 32]).unwrap();
        sealer.compress(compress);
        let mut promotion = Promotion::new();
        for (fid, t, bytes) in &rows {
            promotion.push(*fid, *t, bytes);
        }
        sealer.promotion(promotion).unwrap()
    };
    let (long, short) = (sealed(false), sealed(true));
    // Two differences, type, length, seven bytes.
    assert!(long.len() < 3000 * 11 + 100, "{}", long.len());
    assert!(short.len() * 3 < long.len(), "{}", short.len());
    for record in [long, short] {
        let Ok(Record::Promotion(found)) = Opener::new(&[3; 32]).open(&record) else {
            panic!("it does not open");
        };
        let found: Vec<_> = found
            .iter()
            .map(|i| (i.fid, i.type_code, i.bytes.to_vec()))
            .collect();
        assert!(found == rows);
    }
}
