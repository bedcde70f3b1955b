//! Compression at rest is a setting of the writer; readers need not know it. Right answer: the
//! content is the same with either setting, and files are smaller with compression. Bug: a keeper
//! whose setting was changed could not read its own store.

mod disk;

use disk::*;
use vault::{Checkpoint, SegmentId};

const IDS: [SegmentId; 2] = [
    SegmentId {
        partition: 3,
        number: 0,
    },
    SegmentId {
        partition: 3,
        number: 1,
    },
];

/// Repetitive bytes.
fn content(id: SegmentId) -> Vec<u8> {
    (0..20_000u32).map(|i| (i / 9 + id.number) as u8).collect()
}

#[test]
fn either_setting_reads_what_the_other_wrote() {
    let disk = Shared::default();
    let mut lengths = Vec::new();
    for (id, compress) in IDS.into_iter().zip([true, false]) {
        let mut vault = open(&disk).unwrap();
        vault.compress(compress);
        let mut change = Checkpoint::new();
        change.write(id, content(id));
        vault.commit(change, vec![]).unwrap();
        lengths.push(
            disk.volatile(&format!("data-{:016x}", vault.version()))
                .len(),
        );
    }
    assert!(lengths[0] * 4 < lengths[1], "{lengths:?}");
    for compress in [true, false] {
        let mut vault = open(&disk).unwrap();
        vault.compress(compress);
        for id in IDS {
            assert_eq!(vault.read(id).unwrap(), Some(content(id)));
        }
    }
}
