//! Values that go out of memory and come back. Right answer: whatever is in memory, every
//! FID has its value, or reading is an error; memory stays within the bound; what is used
//! again and again stays, whatever a scan reads.

use contract::{Fid, TypeCode};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::{
    Backing, Budget, Layout, NoJournal, Partition, PartitionKey, SEGMENT_SLOTS, Scalar, Store,
};
use values::Error;

#[derive(Default)]
struct Shelf {
    segments: Mutex<HashMap<(u32, u32), Vec<u8>>>,
    reads: AtomicU64,
}

impl Backing for Shelf {
    fn read(&self, partition: u32, segment: u32) -> Result<Vec<u8>, Error> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let all = self.segments.lock().unwrap();
        let found = all.get(&(partition, segment)).cloned();
        found.ok_or_else(|| Error::new(b"58030", "lost"))
    }
}

impl Shelf {
    fn take(&self, store: &Store, partition: u32, segment: u32) {
        let from = store.get(partition).unwrap();
        let bytes = from.write_segment(segment).unwrap().unwrap();
        // Let go of before the partition is locked: a reader holds that, and waits for us.
        self.segments
            .lock()
            .unwrap()
            .insert((partition, segment), bytes);
        from.set_stored(segment);
    }

    fn take_dirty(&self, store: &Store, partition: u32) {
        for segment in store.get(partition).unwrap().take_dirty() {
            self.take(store, partition, segment);
        }
    }
}

fn store(bound: usize) -> (Store, Arc<Shelf>) {
    let store = Store::new(Budget::new(1 << 30, "memory_limit"), Box::new(NoJournal));
    let shelf = Arc::new(Shelf::default());
    store.set_backing(Arc::clone(&shelf) as Arc<dyn Backing>);
    store.set_bound(bound, Box::new(|| ()));
    (store, shelf)
}

fn open(store: &Store, relation: u32, t: TypeCode) -> u32 {
    let key = PartitionKey {
        database: 5,
        relation,
        attribute: 1,
        layout: Layout::of(t, -1),
    };
    store.open(key).unwrap()
}

fn restore(partition: &Partition, slot: u64, value: i64) {
    let value = [Scalar::Int(value)].into_iter();
    partition.restore(TypeCode::Int8, slot, value).unwrap();
}

const SEGMENTS: u64 = 6;
const SLOTS: u64 = SEGMENTS * SEGMENT_SLOTS;

#[test]
fn numbers() {
    let (store, shelf) = store(1 << 20);
    let number = open(&store, 1, TypeCode::Int8);
    for n in 0..SLOTS {
        store
            .promote(number, TypeCode::Int8, &Scalar::Int(n as i64 * 3))
            .unwrap();
    }
    // Nothing can go that is nowhere else.
    assert!(store.make_room() > 0);
    assert_eq!(store.paging().evictions, 0);
    shelf.take_dirty(&store, number);
    assert_eq!(store.make_room(), 0);
    assert!(store.budget().used() <= 1 << 20);
    assert!(store.paging().evicted >= 4);
    // Run by run, across segments.
    let partition = store.get(number).unwrap();
    let fids: Vec<Fid> = (0..SLOTS).map(|slot| Fid::new(number, slot)).collect();
    let (mut out, mut missing) = (Vec::new(), Vec::new());
    for run in fids.chunks(4096) {
        assert!(partition.read().ints(run, &mut out, &mut missing));
        store.make_room();
        assert!(store.budget().used() <= 1 << 20);
    }
    assert!(missing.is_empty());
    assert!(out.iter().zip(0..).all(|(found, n)| *found == n * 3));
    // Changed where it is not in memory: a slot freed, taken again, put back.
    assert!(store.free(Fid::new(number, 5)));
    let fid = store
        .promote(number, TypeCode::Int8, &Scalar::Int(-7))
        .unwrap();
    assert_eq!(fid.slot(), 5);
    restore(partition, SEGMENT_SLOTS + 9, -8);
    store.make_room();
    shelf.take_dirty(&store, number);
    restore(partition, 2 * SEGMENT_SLOTS, -9);
    assert_eq!(store.make_room(), 0);
    for (slot, value) in [
        (4, 12),
        (5, -7),
        (SEGMENT_SLOTS + 9, -8),
        (2 * SEGMENT_SLOTS, -9),
    ] {
        let reader = partition.read();
        assert!(
            matches!(reader.get(slot), Some((_, Scalar::Int(v))) if v == value),
            "{slot}"
        );
    }
    assert_eq!(partition.statistics().unwrap().live, SLOTS);
}

/// After a start nothing is in memory but which slots are taken; a value needed is read back
/// with its segment. With the bug a new value would get a slot that is taken.
#[test]
fn adopted() {
    let (old, shelf) = store(0);
    let number = open(&old, 1, TypeCode::Int4);
    for n in 0..2 * SEGMENT_SLOTS {
        old.promote(number, TypeCode::Int4, &Scalar::Int(n as i64))
            .unwrap();
    }
    assert!(old.free(Fid::new(number, 7)));
    shelf.take_dirty(&old, number);
    let new = Store::new(Budget::new(1 << 30, "memory_limit"), Box::new(NoJournal));
    new.set_backing(shelf.clone());
    assert_eq!(open(&new, 1, TypeCode::Int4), number);
    let partition = new.get(number).unwrap();
    for segment in 0..2 {
        let bytes = shelf.read(number, segment).unwrap();
        partition.adopt_segment(segment, &bytes).unwrap();
        assert!(partition.adopt_segment(segment, &bytes[..20]).is_err());
    }
    assert_eq!(new.budget().used(), 0);
    assert_eq!((new.paging().resident, new.paging().evicted), (0, 2));
    assert_eq!(partition.statistics().unwrap().live, 2 * SEGMENT_SLOTS - 1);
    let value = |slot| match partition.read().get(slot) {
        Some((_, Scalar::Int(v))) => Some(v),
        _ => None,
    };
    assert_eq!(value(SEGMENT_SLOTS + 3), Some(SEGMENT_SLOTS as i64 + 3));
    assert_eq!((new.paging().resident, new.paging().faults), (1, 1));
    assert_eq!(value(7), None);
    let fid = new
        .promote(number, TypeCode::Int4, &Scalar::Int(-7))
        .unwrap();
    assert_eq!((fid.slot(), value(7), value(8)), (7, Some(-7), Some(8)));
    // What is in memory is not the vault's to say any more.
    let bytes = shelf.read(number, 0).unwrap();
    assert!(partition.adopt_segment(0, &bytes).is_err());
}

/// Strings, and what cannot be read back: an error with its reason, for each way to read.
#[test]
fn lost() {
    let (store, shelf) = store(1 << 20);
    let number = open(&store, 1, TypeCode::Text);
    for n in 0..3 * SEGMENT_SLOTS {
        let text = format!("this is the text of number {n}");
        store
            .promote(number, TypeCode::Text, &Scalar::Bytes(text.as_bytes()))
            .unwrap();
    }
    shelf.take_dirty(&store, number);
    assert_eq!(store.make_room(), 0);
    let partition = store.get(number).unwrap();
    assert!(partition.is_evicted(0) && partition.is_evicted(1));
    let slot = SEGMENT_SLOTS + 77;
    let wanted = format!("this is the text of number {slot}");
    assert!(matches!(
        partition.read().get(slot),
        Some((TypeCode::Text, Scalar::Bytes(b))) if b == wanted.as_bytes()
    ));
    shelf.segments.lock().unwrap().remove(&(number, 0));
    let reader = partition.read();
    assert!(reader.get(3).is_none());
    assert_eq!(&reader.why(3).sqlstate, b"58030");
    assert_eq!(&reader.value(3).unwrap_err().sqlstate, b"58030");
    assert_ne!(&reader.why(1 << 30).sqlstate, b"58030");
    drop(reader);
    let value = [Scalar::Bytes(b"x")].into_iter();
    let error = partition.restore(TypeCode::Text, 3, value).unwrap_err();
    assert_eq!(&error.sqlstate, b"58030");
    assert!(
        partition.write_segment(0).is_err(),
        "an error, not an empty segment"
    );
    let other = shelf.segments.lock().unwrap()[&(number, 1)][..100].to_vec();
    shelf.segments.lock().unwrap().insert((number, 0), other);
    assert!(partition.read().get(3).is_none());
}

/// A small column that is used throughout stays in memory while a large one is read
/// three times; with the bug (least recently used first) each pass pushes it out.
#[test]
fn scans_push_out_themselves() {
    let (store, shelf) = store(2 << 20);
    let (large, small) = (
        open(&store, 1, TypeCode::Int8),
        open(&store, 2, TypeCode::Int8),
    );
    for n in 0..16 * SEGMENT_SLOTS {
        store
            .promote(large, TypeCode::Int8, &Scalar::Int(n as i64))
            .unwrap();
    }
    for n in 0..SEGMENT_SLOTS {
        store
            .promote(small, TypeCode::Int8, &Scalar::Int(n as i64))
            .unwrap();
    }
    for number in [large, small] {
        shelf.take_dirty(&store, number);
    }
    store.make_room();
    let look = |number: u32, slot: u64| {
        let found = store.get(number).unwrap().read().value(slot);
        assert!(found.is_ok());
    };
    for pass in 0..3 {
        for slot in (0..16 * SEGMENT_SLOTS).step_by(512) {
            look(large, slot);
            if slot % (SEGMENT_SLOTS / 2) == 0 {
                look(small, slot % SEGMENT_SLOTS);
            }
            store.make_room();
            assert!(
                pass == 0 || !store.get(small).unwrap().is_evicted(0),
                "{pass} {slot}"
            );
        }
    }
}

/// Readers, a writer and eviction at once.
#[test]
fn together() {
    let (store, shelf) = store(1 << 20);
    let number = open(&store, 1, TypeCode::Int8);
    for n in 0..SLOTS {
        store
            .promote(number, TypeCode::Int8, &Scalar::Int(n as i64))
            .unwrap();
    }
    shelf.take_dirty(&store, number);
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for seed in 1..4u64 {
            let (store, done) = (&store, &done);
            scope.spawn(move || {
                let mut x = seed;
                let began = Instant::now();
                // On a busy machine it may take longer until anything goes.
                let goes_on = || match began.elapsed() {
                    t if t < Duration::from_millis(700) => true,
                    t => t < Duration::from_secs(600) && store.paging().faults <= 10,
                };
                while goes_on() {
                    x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let slot = (x >> 33) % SLOTS;
                    let partition = store.get(number).unwrap();
                    let found = partition
                        .read()
                        .get(slot)
                        .map(|(_, s)| s.to_value(TypeCode::Int8));
                    let wanted = slot as i64;
                    assert!(matches!(found, Some(Some(values::Value::Int8(v))) if v == wanted));
                    // Of what is changed all the time nothing can go.
                    if (x >> 20) & 1023 == 0 && slot < 2 * SEGMENT_SLOTS {
                        restore(partition, slot, slot as i64);
                    }
                }
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
        scope.spawn(|| {
            while done.load(Ordering::SeqCst) < 3 {
                shelf.take_dirty(&store, number);
                store.make_room();
            }
        });
    });
    assert!(store.paging().faults > 10);
}
