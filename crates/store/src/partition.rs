//! One protected column of one table. Readers run in parallel; a writer is alone.
//!
//! Invariants: a slot that is taken holds a value of the layout's type; a slot
//! that is free holds zeros; what is charged to the budget goes back when the
//! partition is dropped.
//!
//! Reading from a partition held still is in `reader`.

mod reader;

pub use reader::Reader;

use crate::ahead::Hint;
use crate::budget::Account;
use crate::error;
use crate::image::{self, Dirty, SEGMENT_SLOTS, first_slot, segment_of};
use crate::layout::{ColumnId, PartitionKey};
use crate::lock;
use crate::marks::Marks;
use crate::occupancy::Occupancy;
use crate::resident::Resident;
use crate::scalar::Scalar;
use crate::segment::{Haste, Memory, Segments};
use contract::{Fid, OpResult, TypeCode};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use values::Error;

/// A column's values, or an unused number.
pub struct Partition {
    number: u32,
    inner: RwLock<Option<Inner>>,
    revealed: [AtomicU64; 3],
    logged: AtomicBool,
    /// A client has built or searched an index of the column.
    indexed: AtomicBool,
}

struct Inner {
    key: PartitionKey,
    column: ColumnId,
    t: TypeCode,
    segments: Segments,
    taken: Occupancy,
    account: Account,
    dirty: Dirty,
    /// While garbage is collected.
    marks: Option<Marks>,
}

/// Between finding a segment absent and reading it back it may go again.
const TRIES: u32 = 1000;

impl Inner {
    /// Whether it is of a type: the number may have become another column's since somebody
    /// looked at its type.
    fn expect(&self, t: TypeCode) -> Result<(), Error> {
        match self.t == t {
            true => Ok(()),
            false => Err(error::unresolved()),
        }
    }

    /// Only for segments that are present. The slot rests, or not.
    fn clear(&mut self, slot: u64, rests: bool) -> bool {
        if !self.taken.has(slot) {
            return false;
        }
        let segment = segment_of(slot);
        let Some(Resident { data, account }) = self.segments.change(segment) else {
            return false;
        };
        data.clear(slot - first_slot(segment), account);
        match rests {
            true => self.taken.rest(slot),
            false => self.taken.free(slot),
        };
        self.dirty.mark(slot);
        true
    }

    /// Only for segments that are present.
    fn put(&mut self, slot: u64, value: &Scalar<'_>) -> Result<(), Error> {
        let segment = segment_of(slot);
        let present = self.segments.change(segment);
        let Resident { data, account } = present.ok_or_else(error::unresolved)?;
        data.put(slot - first_slot(segment), value, account)?;
        self.taken.take(slot);
        self.dirty.mark(slot);
        if let Some(marks) = &mut self.marks {
            marks.mark(slot);
        }
        Ok(())
    }

    /// Puts values into the slots of a segment that is present, from one on, whatever is
    /// there now; the slot after the last one.
    fn put_back<'v>(
        &mut self,
        first: u64,
        values: &mut impl Iterator<Item = Scalar<'v>>,
    ) -> Result<u64, Error> {
        let segment = segment_of(first);
        let (start, end) = (first_slot(segment), first_slot(segment + 1));
        let present = self.segments.change(segment);
        let Resident { data, account } = present.ok_or_else(error::unresolved)?;
        self.dirty.mark(first);
        for slot in first..end {
            let Some(value) = values.next() else {
                return Ok(slot);
            };
            if self.taken.free(slot) {
                data.clear(slot - start, account);
            }
            data.put(slot - start, &value, account)?;
            self.taken.take(slot);
            if let Some(marks) = &mut self.marks {
                marks.mark(slot);
            }
        }
        Ok(end)
    }
}

/// How much of a column has been declassified, in rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Revealed {
    /// Booleans.
    pub booleans: u64,
    /// Orders.
    pub orders: u64,
    /// Hashes.
    pub hashes: u64,
}

/// What a partition takes and holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartitionStatistics {
    /// What it belongs to.
    pub key: PartitionKey,
    /// Bytes allocated.
    pub bytes: usize,
    /// Slots taken.
    pub live: u64,
    /// Slots there is room for that are not taken.
    pub free: u64,
    /// What has been declassified.
    pub revealed: Revealed,
}

impl Partition {
    pub(crate) fn unused(number: u32) -> Partition {
        Partition {
            number,
            inner: RwLock::new(None),
            revealed: [const { AtomicU64::new(0) }; 3],
            logged: AtomicBool::new(false),
            indexed: AtomicBool::new(false),
        }
    }

    /// Begins to be the partition of a column.
    pub(crate) fn open(&self, key: PartitionKey, memory: &Arc<Memory>) {
        for counter in &self.revealed {
            counter.store(0, Ordering::Relaxed);
        }
        self.logged.store(false, Ordering::Relaxed);
        self.indexed.store(false, Ordering::Relaxed);
        *lock::write(&self.inner) = Some(Inner {
            key,
            column: ColumnId::default(),
            t: key.layout.stored_type(),
            segments: Segments::new(self.number, key.layout, Arc::clone(memory)),
            taken: Occupancy::default(),
            account: Account::new(Arc::clone(&memory.budget)),
            dirty: Dirty::default(),
            marks: None,
        });
    }

    /// Ends to be anything.
    pub(crate) fn close(&self) {
        *lock::write(&self.inner) = None;
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Whether a client has built or searched an index of the column.
    pub fn is_indexed(&self) -> bool {
        self.indexed.load(Ordering::Relaxed)
    }

    /// A client has built or searched an index of the column: to be logged.
    #[inline]
    pub fn set_indexed(&self) {
        if !self.is_indexed() {
            self.indexed.store(true, Ordering::Relaxed);
            self.logged.store(false, Ordering::Relaxed);
        }
    }

    /// Holds the partition still to read from it. Take no other lock meanwhile.
    #[inline]
    pub fn read(&self) -> Reader<'_> {
        Reader {
            number: self.number,
            guard: lock::read(&self.inner),
        }
    }

    /// Lets `act` change the slot that `pick` says, whose segment is in memory then.
    fn change<R>(
        &self,
        pick: impl Fn(&mut Inner) -> u64,
        act: impl FnOnce(&mut Inner, u64) -> R,
    ) -> Result<R, Error> {
        for _ in 0..TRIES {
            let segment = {
                let mut guard = lock::write(&self.inner);
                let inner = guard.as_mut().ok_or_else(error::unresolved)?;
                let slot = pick(inner);
                let segment = segment_of(slot);
                if inner.segments.is_present(segment) {
                    return Ok(act(inner, slot));
                }
                segment
            };
            if let Some(inner) = lock::read(&self.inner).as_ref() {
                inner.segments.get(segment)?;
            }
        }
        Err(error::unresolved())
    }

    /// Copies a value of a type into the lowest free slot. `note` is called with the FID
    /// before anybody else can see it.
    pub fn put(
        &self,
        t: TypeCode,
        value: &Scalar<'_>,
        note: impl FnOnce(Fid),
    ) -> Result<Fid, Error> {
        self.change(
            |inner| inner.taken.next(),
            |inner, slot| {
                inner.expect(t)?;
                inner.put(slot, value)?;
                let fid = Fid::new(self.number, slot);
                note(fid);
                Ok(fid)
            },
        )?
    }

    /// Copies values into the lowest free slots, as [`Partition::put`] one after the
    /// other. What was copied before an error stays.
    pub fn put_all<'v>(
        &self,
        t: TypeCode,
        values: impl Iterator<Item = Scalar<'v>>,
        mut note: impl FnMut(Fid, &Scalar<'_>),
    ) -> Result<(), Error> {
        let mut values = values.peekable();
        while values.peek().is_some() {
            self.change(
                |inner| inner.taken.next(),
                |inner, mut slot| {
                    inner.expect(t)?;
                    while let Some(value) = values.peek() {
                        if !inner.segments.is_present(segment_of(slot)) {
                            break;
                        }
                        inner.put(slot, value)?;
                        note(Fid::new(self.number, slot), value);
                        values.next();
                        slot = inner.taken.next();
                    }
                    Ok(())
                },
            )??;
        }
        Ok(())
    }

    /// Frees a slot. False if nothing was in it, or its segment cannot be read back.
    pub fn free(&self, slot: u64, note: impl FnOnce(Fid)) -> bool {
        self.clear(slot, false, note)
    }

    /// As [`Partition::free`], of a value that redo records may bring back: the slot takes no other
    /// one before a checkpoint that begins later.
    pub fn sweep(&self, slot: u64, note: impl FnOnce(Fid)) -> bool {
        self.clear(slot, true, note)
    }

    /// A checkpoint begins, which will hold what was swept before.
    pub fn age(&self) {
        if let Some(inner) = lock::write(&self.inner).as_mut() {
            inner.taken.age();
        }
    }

    /// The checkpoint is there: what was swept before it began may be used again.
    pub fn wake(&self) {
        if let Some(inner) = lock::write(&self.inner).as_mut() {
            inner.taken.wake();
        }
    }

    fn clear(&self, slot: u64, rests: bool, note: impl FnOnce(Fid)) -> bool {
        let freed = self.change(
            |_| slot,
            |inner, slot| {
                let cleared = inner.clear(slot, rests);
                if cleared {
                    note(Fid::new(self.number, slot));
                }
                cleared
            },
        );
        freed.unwrap_or(false)
    }

    /// Which column's values it holds, and whether they are constants of catalogs.
    pub fn column(&self) -> Option<(ColumnId, bool)> {
        let inner = lock::read(&self.inner);
        inner.as_ref().map(|i| (i.column, i.key.relation == 0))
    }

    /// Says which column's values it holds, unless that was said before.
    pub fn set_column(&self, column: ColumnId) {
        if let Some(inner) = lock::write(&self.inner).as_mut()
            && inner.column == ColumnId::default()
            && column != ColumnId::default()
        {
            inner.column = column;
            self.logged.store(false, Ordering::Relaxed);
        }
    }

    /// What it belongs to; `None` if the number is unused.
    pub fn key(&self) -> Option<PartitionKey> {
        lock::read(&self.inner).as_ref().map(|inner| inner.key)
    }

    /// Puts values of a type back into consecutive slots, whatever is there now; how many.
    pub fn restore<'v>(
        &self,
        t: TypeCode,
        first: u64,
        values: impl Iterator<Item = Scalar<'v>>,
    ) -> Result<u64, Error> {
        let mut values = values.peekable();
        let mut next = first;
        while values.peek().is_some() {
            let from = next;
            next = self.change(
                |_| from,
                |inner, slot| {
                    inner.expect(t)?;
                    inner.put_back(slot, &mut values)
                },
            )??;
        }
        Ok(next - first)
    }

    /// Whether what is known of the partition is in the WAL for good. That a checkpoint lists it
    /// is not enough: a standby and older copies of the store have only the WAL.
    pub fn is_logged(&self) -> bool {
        self.logged.load(Ordering::Relaxed)
    }

    /// The partition's making is on record.
    pub fn set_logged(&self) {
        self.logged.store(true, Ordering::Relaxed);
    }

    /// Segments that changed since they were last asked for.
    pub fn take_dirty(&self) -> Vec<u32> {
        let mut guard = lock::write(&self.inner);
        guard
            .as_mut()
            .map_or(Vec::new(), |inner| inner.dirty.take())
    }

    /// All segments that may hold something.
    pub fn all_segments(&self) -> Vec<u32> {
        let guard = lock::read(&self.inner);
        let slots = guard.as_ref().map_or(0, |inner| inner.taken.capacity());
        (0..slots.div_ceil(SEGMENT_SLOTS) as u32).collect()
    }

    /// A segment's bytes; `None` when it is empty, or there is no partition.
    ///
    /// # Errors
    /// When it had to be read back, and could not.
    pub fn write_segment(&self, segment: u32) -> Result<Option<Vec<u8>>, Error> {
        let guard = lock::read(&self.inner);
        let Some(inner) = guard.as_ref() else {
            return Ok(None);
        };
        let words = (SEGMENT_SLOTS / 64) as usize;
        let at = (segment as usize).checked_mul(words);
        let taken = inner.taken.words(at.ok_or_else(error::unresolved)?, words);
        let Some(Resident { data, .. }) = inner.segments.get(segment)? else {
            return Ok(None);
        };
        let first = first_slot(segment);
        let value = |slot: u64| data.get(slot - first);
        Ok(image::write(inner.key.layout, segment, taken, value))
    }

    /// Whether a segment is in the vault only.
    pub fn is_evicted(&self, segment: u32) -> bool {
        let guard = lock::read(&self.inner);
        let inner = guard.as_ref();
        inner.is_some_and(|inner| !inner.segments.is_present(segment))
    }

    /// Whether the vault holds a segment just as it is.
    pub fn is_stored(&self, segment: u32) -> bool {
        let guard = lock::read(&self.inner);
        let inner = guard.as_ref();
        inner.is_some_and(|inner| inner.segments.is_stored(segment))
    }

    /// The vault holds what [`Partition::write_segment`] or [`Partition::read_segment`]
    /// had; of no effect if it was changed since.
    pub fn set_stored(&self, segment: u32) {
        if let Some(inner) = lock::write(&self.inner).as_mut()
            && !inner.dirty.has(segment)
        {
            inner.segments.set_stored(segment);
        }
    }

    /// Takes values out of memory that the vault holds; how many bytes.
    pub(crate) fn evict(&self, enough: usize, haste: Haste) -> usize {
        let mut gone = Vec::new();
        let mut guard = lock::write(&self.inner);
        let freed = guard
            .as_mut()
            .map_or(0, |inner| inner.segments.evict(enough, haste, &mut gone));
        drop(guard); // before what is gone is dropped
        freed
    }

    /// Reads a segment ahead, if it is still to be read. Others use the partition meanwhile.
    pub(crate) fn read_ahead(&self, hint: Hint, memory: &Memory) {
        let layout = {
            let guard = lock::read(&self.inner);
            let inner = guard.as_ref();
            inner.and_then(|inner| inner.segments.begin_ahead(hint))
        };
        if let Some(layout) = layout {
            memory.read_ahead(hint.place, layout);
        }
    }

    /// Segments in memory, and those in the vault only.
    pub(crate) fn segment_counts(&self) -> [u64; 2] {
        let guard = lock::read(&self.inner);
        guard
            .as_ref()
            .map_or([0; 2], |inner| inner.segments.counts())
    }

    /// Puts back a segment. It is not dirty afterwards.
    pub fn read_segment(&self, segment: u32, bytes: &[u8]) -> Result<(), Error> {
        let mut guard = lock::write(&self.inner);
        let inner = guard.as_mut().ok_or_else(error::unresolved)?;
        let before = std::mem::take(&mut inner.dirty);
        let result = image::read(inner.key.layout, segment, bytes, |slot, value| {
            inner.clear(slot, false);
            inner.put(slot, value)
        });
        inner.dirty = before;
        result
    }

    /// Takes note of a segment that is in the vault with these bytes: its slots are taken,
    /// its values are read back when one of them is needed. Of a new partition only.
    pub fn adopt_segment(&self, segment: u32, bytes: &[u8]) -> Result<(), Error> {
        let mut guard = lock::write(&self.inner);
        let inner = guard.as_mut().ok_or_else(error::unresolved)?;
        let slots = image::taken(inner.key.layout, segment, bytes)?;
        if !inner.segments.adopt(segment) {
            return Err(error::bad_segment());
        }
        for slot in slots {
            inner.taken.take(slot);
        }
        Ok(())
    }

    /// Begins to collect garbage: from now on every value that is put is marked.
    /// Gives the number of values; none, and nothing begins, while another
    /// collection runs or there is no partition.
    pub fn begin_marks(&self) -> Result<Option<u64>, Error> {
        let mut guard = lock::write(&self.inner);
        let Some(inner) = guard.as_mut().filter(|inner| inner.marks.is_none()) else {
            return Ok(None);
        };
        let marks = Marks::new(inner.taken.capacity());
        inner.account.take(marks.bytes())?;
        inner.marks = Some(marks);
        Ok(Some(inner.taken.count()))
    }

    /// Marks values as in use.
    pub fn mark(&self, slots: impl Iterator<Item = u64>) {
        let mut guard = lock::write(&self.inner);
        if let Some(marks) = guard.as_mut().and_then(|inner| inner.marks.as_mut()) {
            slots.for_each(|slot| marks.mark(slot));
        }
    }

    /// Whether a collection runs in which nothing was marked or put.
    pub fn is_unmarked(&self) -> bool {
        let guard = lock::read(&self.inner);
        let marks = guard.as_ref().and_then(|inner| inner.marks.as_ref());
        marks.is_some_and(Marks::is_empty)
    }

    /// Up to `limit` values from a slot on that are not marked.
    pub fn unmarked(&self, from: u64, limit: usize) -> Vec<u64> {
        let guard = lock::read(&self.inner);
        let Some(inner) = guard.as_ref() else {
            return Vec::new();
        };
        let Some(marks) = &inner.marks else {
            return Vec::new();
        };
        marks.garbage(&inner.taken, from).take(limit).collect()
    }

    /// Ends the collection of garbage.
    pub fn end_marks(&self) {
        let mut guard = lock::write(&self.inner);
        if let Some(inner) = guard.as_mut()
            && let Some(marks) = inner.marks.take()
        {
            inner.account.give(marks.bytes());
        }
    }

    /// Counts rows whose declassified result depends on this column.
    #[inline]
    pub fn reveal(&self, result: OpResult, rows: u64) {
        let [booleans, orders, hashes] = &self.revealed;
        let counter = match result {
            OpResult::Bool => booleans,
            OpResult::Order => orders,
            OpResult::Hash => hashes,
            OpResult::Fid => return,
        };
        counter.fetch_add(rows, Ordering::Relaxed);
    }

    /// What it takes and holds; `None` if the number is unused.
    pub fn statistics(&self) -> Option<PartitionStatistics> {
        let guard = lock::read(&self.inner);
        let inner = guard.as_ref()?;
        let [booleans, orders, hashes] = [0, 1, 2].map(|n| {
            self.revealed
                .get(n)
                .map_or(0, |c| c.load(Ordering::Relaxed))
        });
        Some(PartitionStatistics {
            key: inner.key,
            bytes: inner.account.charged() + inner.segments.bytes(),
            live: inner.taken.count(),
            free: inner.taken.capacity() - inner.taken.count(),
            revealed: Revealed {
                booleans,
                orders,
                hashes,
            },
        })
    }
}
