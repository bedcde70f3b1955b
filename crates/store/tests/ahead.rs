//! Reading ahead, and what a scan leaves in memory. Right answer: of a column that is read
//! in order the next segment is read beside, once; every FID has its value, or reading is an
//! error; what is read ahead keeps within its part of the memory, and goes with its
//! column; what is used again and again stays.

use contract::TypeCode;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use store::{Backing, Budget, Layout, NoJournal, PartitionKey, SEGMENT_SLOTS, Scalar, Store};
use values::Error;

#[derive(Default)]
struct Vault {
    segments: Mutex<HashMap<(u32, u32), Vec<u8>>>,
    reads: AtomicU64,
}

impl Backing for Vault {
    fn read(&self, partition: u32, segment: u32) -> Result<Vec<u8>, Error> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let all = self.segments.lock().unwrap();
        let found = all.get(&(partition, segment)).cloned();
        found.ok_or_else(|| Error::new(b"58030", "lost"))
    }
}

/// Of 8-byte values, with what a chunk of 1024 takes beside.
const SEGMENT_BYTES: usize = 64 * (8 * 1024 + 144);

struct Stand {
    store: Store,
    vault: Arc<Vault>,
    rung: Arc<AtomicU64>,
}

impl Stand {
    /// With `bound` bytes for values.
    fn new(bound: usize) -> Stand {
        let store = Store::new(Budget::new(1 << 30, "memory_limit"), Box::new(NoJournal));
        let (vault, rung) = (Arc::new(Vault::default()), Arc::new(AtomicU64::new(0)));
        store.set_backing(Arc::clone(&vault) as Arc<dyn Backing>);
        store.set_bound(bound, Box::new(|| ()));
        let bell = Arc::clone(&rung);
        store.set_read_ahead(Box::new(move || {
            bell.fetch_add(1, Ordering::Relaxed);
        }));
        Stand { store, vault, rung }
    }

    /// A column of so many segments, each value its slot's number times `factor`; all of it
    /// in the vault only.
    fn column(&self, relation: u32, segments: u32, factor: i64) -> u32 {
        let key = PartitionKey {
            database: 5,
            relation,
            attribute: 1,
            layout: Layout::of(TypeCode::Int8, -1),
        };
        let made = Store::new(Budget::new(1 << 30, "memory_limit"), Box::new(NoJournal));
        let source = made.open(key).unwrap();
        for n in 0..u64::from(segments) * SEGMENT_SLOTS {
            let value = Scalar::Int(n as i64 * factor);
            made.promote(source, TypeCode::Int8, &value).unwrap();
        }
        let number = self.store.open(key).unwrap();
        for segment in 0..segments {
            let bytes = made.get(source).unwrap().write_segment(segment);
            let bytes = bytes.unwrap().unwrap();
            let partition = self.store.get(number).unwrap();
            partition.adopt_segment(segment, &bytes).unwrap();
            let mut all = self.vault.segments.lock().unwrap();
            all.insert((number, segment), bytes);
        }
        number
    }

    fn look(&self, number: u32, slot: u64) -> Option<i64> {
        match self.store.get(number)?.read().get(slot) {
            Some((_, Scalar::Int(v))) => Some(v),
            _ => None,
        }
    }

    fn read_ahead(&self) -> u64 {
        let mut read = 0;
        while self.store.read_ahead() {
            read += 1;
        }
        read
    }

    /// Reads of segments while somebody waits, ahead, and those used of the latter.
    fn counts(&self) -> [u64; 3] {
        let paging = self.store.paging();
        [paging.faults, paging.ahead, paging.ahead_used]
    }
}

/// A column of 8 segments of which 4 fit into memory, read in order: all but the first are
/// read ahead, none twice.
#[test]
fn in_order() {
    let stand = Stand::new(4 * SEGMENT_BYTES);
    let number = stand.column(1, 8, 3);
    for segment in 0..8 {
        for slot in [0, 77, SEGMENT_SLOTS - 1] {
            let slot = segment * SEGMENT_SLOTS + slot;
            assert_eq!(stand.look(number, slot), Some(slot as i64 * 3));
        }
        assert_eq!(stand.read_ahead(), u64::from(segment < 7), "{segment}");
        stand.store.make_room();
        assert!(stand.store.budget().used() <= 4 * SEGMENT_BYTES);
    }
    assert_eq!(stand.counts(), [1, 7, 7]);
    assert_eq!(stand.vault.reads.load(Ordering::Relaxed), 8);
    assert_eq!(stand.rung.load(Ordering::Relaxed), 7);
}

/// Whoever looks at some value in the middle has nothing read ahead; at the first one
/// (a LIMIT), one segment. Nothing is, where nobody asked for it.
#[test]
fn little_for_a_look() {
    let stand = Stand::new(4 * SEGMENT_BYTES);
    let number = stand.column(1, 8, 1);
    assert!(stand.look(number, 3 * SEGMENT_SLOTS + 5).is_some());
    assert!(stand.look(number, 6 * SEGMENT_SLOTS + 5).is_some());
    assert_eq!((stand.read_ahead(), stand.counts()), (0, [2, 0, 0]));
    assert!(stand.look(number, 5).is_some());
    assert_eq!((stand.read_ahead(), stand.counts()), (1, [3, 1, 0]));
    let off = Stand {
        store: Store::new(Budget::new(1 << 30, "memory_limit"), Box::new(NoJournal)),
        ..stand
    };
    off.store.set_backing(off.vault.clone());
    let number = off.column(1, 3, 1);
    for segment in 0..3 {
        assert!(off.look(number, segment * SEGMENT_SLOTS).is_some());
        assert_eq!(off.read_ahead(), 0);
    }
}

/// Of many columns that are read side by side no more is read ahead than a quarter of the
/// memory holds; what was never used goes after some time, and all goes with its column.
#[test]
fn within_its_part() {
    let stand = Stand::new(8 * SEGMENT_BYTES);
    let ahead = || {
        let resident = stand.store.paging().resident as usize;
        stand.store.budget().used() - resident * SEGMENT_BYTES
    };
    for relation in 1..=6 {
        let number = stand.column(relation, 4, 1);
        assert!(stand.look(number, 0).is_some());
        stand.read_ahead();
        assert!(ahead() <= 2 * SEGMENT_BYTES);
    }
    assert_eq!(ahead(), 2 * SEGMENT_BYTES);
    (0..4).for_each(|_| stand.store.tick());
    stand.store.make_room();
    assert_eq!(ahead(), 0);
    let fresh = stand.column(8, 3, 1);
    assert!(stand.look(fresh, 0).is_some());
    assert_eq!((stand.read_ahead(), ahead()), (1, SEGMENT_BYTES));
    assert!(stand.store.drop_partition(fresh));
    assert_eq!(ahead(), 0);
}

/// A column that takes a dropped one's number never gets its values; what cannot be
/// read is the reader's error.
#[test]
fn never_another_value() {
    let stand = Stand::new(4 * SEGMENT_BYTES);
    let number = stand.column(1, 4, 1);
    assert!(stand.look(number, 0).is_some()); // a hint
    let listed = store::Listed {
        number,
        key: PartitionKey {
            database: 5,
            relation: 77,
            attribute: 1,
            layout: Layout::of(TypeCode::Int8, -1),
        },
    };
    stand.store.restore(listed).unwrap();
    assert_eq!((stand.read_ahead(), stand.counts()[1]), (1, 0));
    assert_eq!(stand.look(number, SEGMENT_SLOTS), None);
    let other = stand.column(3, 4, 5);
    stand.vault.segments.lock().unwrap().remove(&(other, 1));
    assert!(stand.look(other, 0).is_some());
    assert_eq!((stand.read_ahead(), stand.counts()[1]), (1, 0));
    let reader = stand.store.get(other).unwrap().read();
    assert!(reader.get(SEGMENT_SLOTS).is_none());
    assert_eq!(&reader.why(SEGMENT_SLOTS).sqlstate, b"58030");
}

/// What has been looked up again and again is still there after a scan of six times the
/// memory during which nobody looked it up. With the bug (every look for room ages what
/// it passes) a scan of once the memory pushes it out.
#[test]
fn a_scan_leaves_what_is_used() {
    const LOOKED_UP: u32 = 12;
    let stand = Stand::new(32 * SEGMENT_BYTES);
    let used: Vec<u32> = (1..=LOOKED_UP).map(|n| stand.column(n, 1, 1)).collect();
    let large = stand.column(100, 6 * 32, 1);
    for _ in 0..4 {
        stand.store.tick();
        for number in &used {
            assert!(stand.look(*number, 9).is_some());
        }
    }
    for segment in 0..6 * 32 {
        assert!(stand.look(large, segment * SEGMENT_SLOTS + 1).is_some());
        stand.read_ahead();
        stand.store.make_room();
    }
    let gone = |number: &&u32| stand.store.get(**number).unwrap().is_evicted(0);
    assert_eq!(used.iter().filter(gone).count(), 0);
}

/// What was used once upon a time goes when others are used instead.
#[test]
fn habits_change() {
    let stand = Stand::new(16 * SEGMENT_BYTES);
    let old: Vec<u32> = (1..=15).map(|n| stand.column(n, 1, 1)).collect();
    let new: Vec<u32> = (21..=32).map(|n| stand.column(n, 1, 1)).collect();
    let use_all = |columns: &[u32], times: u64| {
        for n in 0..times {
            for number in columns {
                assert!(stand.look(*number, n).is_some());
                stand.store.make_room();
            }
            stand.store.tick();
        }
    };
    use_all(&old, 8);
    use_all(&new, 30);
    let before = stand.counts()[0];
    use_all(&new, 10);
    assert_eq!(stand.counts()[0] - before, 0);
}

/// Readers in order, whoever reads ahead, a writer and eviction at once.
#[test]
fn together() {
    let stand = Stand::new(6 * SEGMENT_BYTES);
    let numbers = [stand.column(1, 6, 1), stand.column(2, 6, 2)];
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2u64)
            .map(|seed| {
                let stand = &stand;
                scope.spawn(move || {
                    for step in 0..24 * 64u64 {
                        let slot = (step * (SEGMENT_SLOTS / 64) + seed) % (6 * SEGMENT_SLOTS);
                        for (number, factor) in numbers.iter().zip(1..) {
                            assert_eq!(stand.look(*number, slot), Some(slot as i64 * factor));
                        }
                        if step % 100 == 0 {
                            let partition = stand.store.get(numbers[0]).unwrap();
                            let value = [Scalar::Int(slot as i64)].into_iter();
                            partition.restore(TypeCode::Int8, slot, value).unwrap();
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                stand.store.read_ahead();
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for segment in stand.store.get(numbers[0]).unwrap().take_dirty() {
                    let partition = stand.store.get(numbers[0]).unwrap();
                    let bytes = partition.write_segment(segment).unwrap().unwrap();
                    let mut all = stand.vault.segments.lock().unwrap();
                    all.insert((numbers[0], segment), bytes);
                    drop(all);
                    partition.set_stored(segment);
                }
                stand.store.make_room();
            }
        });
        let read = readers.into_iter().all(|reader| reader.join().is_ok());
        done.store(true, Ordering::Relaxed);
        assert!(read);
    });
    assert!(stand.counts()[0] > 0);
}
