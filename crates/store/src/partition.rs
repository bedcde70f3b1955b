//! One protected column of one table. Readers run in parallel; a writer runs alone.
//!
//! Invariants: a used slot holds a value of the layout's type; a free slot holds zeros; memory
//! charged to the budget is returned when the partition is dropped.
//!
//! Reading from a locked partition is in `reader`, leases are in `lease`.

mod lease;
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

/// The values of a column, or an unused number.
pub struct Partition {
    number: u32,
    inner: RwLock<Option<Inner>>,
    revealed: [AtomicU64; 3],
    logged: AtomicBool,
    /// A client has built or searched an index on the column.
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
    /// Set while garbage is being collected.
    marks: Option<Marks>,
}

/// Number of attempts: a segment that was read back may be evicted again before it is used.
const TRIES: u32 = 1000;

impl Inner {
    /// Fails unless the partition has the given type: since the caller looked up the type, the
    /// number may have been reassigned to another column.
    fn expect(&self, t: TypeCode) -> Result<(), Error> {
        match self.t == t {
            true => Ok(()),
            false => Err(error::unresolved()),
        }
    }

    /// Requires the segment to be present. `rests` says whether the slot rests afterwards.
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

    /// Requires the segment to be present.
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

    /// Stores values into the slots of a present segment, starting with `first` and overwriting
    /// what is there; returns the slot after the last one.
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

/// The size and contents of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartitionStatistics {
    /// The key of the partition.
    pub key: PartitionKey,
    /// Number of bytes allocated.
    pub bytes: usize,
    /// Number of slots in use.
    pub live: u64,
    /// Number of available slots that are not in use.
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

    /// Makes this the partition of a column.
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

    /// Makes this an unused partition.
    pub(crate) fn close(&self) {
        *lock::write(&self.inner) = None;
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Whether a client has built or searched an index on the column.
    pub fn is_indexed(&self) -> bool {
        self.indexed.load(Ordering::Relaxed)
    }

    /// A client has built or searched an index on the column; this must be logged.
    #[inline]
    pub fn set_indexed(&self) {
        if !self.is_indexed() {
            self.indexed.store(true, Ordering::Relaxed);
            self.logged.store(false, Ordering::Relaxed);
        }
    }

    /// Locks the partition for reading. The caller must not take another lock meanwhile.
    #[inline]
    pub fn read(&self) -> Reader<'_> {
        Reader {
            number: self.number,
            guard: lock::read(&self.inner),
        }
    }

    /// Calls `act` to change the slot chosen by `pick`, with its segment in memory.
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

    /// Copies a value of a type into the lowest free slot. `note` is called with the FID before
    /// anybody else can see it.
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

    /// Copies values into the lowest free slots, like [`Partition::put`] called for each. Values
    /// copied before an error are kept.
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

    /// Frees a slot. Returns false if it was empty, or its segment cannot be read back.
    pub fn free(&self, slot: u64, note: impl FnOnce(Fid)) -> bool {
        self.clear(slot, false, note)
    }

    /// Like [`Partition::free`], for a value that redo records may restore: the slot is not reused
    /// before a checkpoint that begins later has completed.
    pub fn sweep(&self, slot: u64, note: impl FnOnce(Fid)) -> bool {
        self.clear(slot, true, note)
    }

    /// A checkpoint begins, which will include what was swept before.
    pub fn age(&self) {
        if let Some(inner) = lock::write(&self.inner).as_mut() {
            inner.taken.age();
        }
    }

    /// The checkpoint has completed: slots swept before it began may be reused.
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

    /// The column whose values it holds, and whether they are constants of catalogs.
    pub fn column(&self) -> Option<(ColumnId, bool)> {
        let inner = lock::read(&self.inner);
        inner.as_ref().map(|i| (i.column, i.key.relation == 0))
    }

    /// Sets the column whose values it holds, unless it is already set.
    pub fn set_column(&self, column: ColumnId) {
        if let Some(inner) = lock::write(&self.inner).as_mut()
            && inner.column == ColumnId::default()
            && column != ColumnId::default()
        {
            inner.column = column;
            self.logged.store(false, Ordering::Relaxed);
        }
    }

    /// The key of the partition; `None` if the number is unused.
    pub fn key(&self) -> Option<PartitionKey> {
        lock::read(&self.inner).as_ref().map(|inner| inner.key)
    }

    /// Stores values of a type into consecutive slots, overwriting what is there; returns their
    /// number.
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

    /// Whether the partition's properties are permanently in the WAL. Being listed in a checkpoint
    /// is not sufficient: a standby and older copies of the store have only the WAL.
    pub fn is_logged(&self) -> bool {
        self.logged.load(Ordering::Relaxed)
    }

    /// The creation of the partition has been logged.
    pub fn set_logged(&self) {
        self.logged.store(true, Ordering::Relaxed);
    }

    /// Returns the segments that have changed since the previous call.
    pub fn take_dirty(&self) -> Vec<u32> {
        let mut guard = lock::write(&self.inner);
        guard
            .as_mut()
            .map_or(Vec::new(), |inner| inner.dirty.take())
    }

    /// All segments that may contain values.
    pub fn all_segments(&self) -> Vec<u32> {
        let guard = lock::read(&self.inner);
        let slots = guard.as_ref().map_or(0, |inner| inner.taken.capacity());
        (0..slots.div_ceil(SEGMENT_SLOTS) as u32).collect()
    }

    /// Returns the bytes of a segment; `None` if it is empty or there is no partition. | | # Errors
    /// | The segment had to be read back, which failed.
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

    /// Whether a segment is only in the vault.
    pub fn is_evicted(&self, segment: u32) -> bool {
        let guard = lock::read(&self.inner);
        let inner = guard.as_ref();
        inner.is_some_and(|inner| !inner.segments.is_present(segment))
    }

    /// Whether the vault holds the current contents of a segment.
    pub fn is_stored(&self, segment: u32) -> bool {
        let guard = lock::read(&self.inner);
        let inner = guard.as_ref();
        inner.is_some_and(|inner| inner.segments.is_stored(segment))
    }

    /// The vault holds the contents processed by [`Partition::write_segment`] or
    /// [`Partition::read_segment`]; has no effect if they have changed since.
    pub fn set_stored(&self, segment: u32) {
        if let Some(inner) = lock::write(&self.inner).as_mut()
            && !inner.dirty.has(segment)
        {
            inner.segments.set_stored(segment);
        }
    }

    /// Evicts values that are in the vault from memory; returns the number of bytes.
    pub(crate) fn evict(&self, enough: usize, haste: Haste) -> usize {
        let mut gone = Vec::new();
        let mut guard = lock::write(&self.inner);
        let freed = guard
            .as_mut()
            .map_or(0, |inner| inner.segments.evict(enough, haste, &mut gone));
        drop(guard); // before the evicted segments are dropped
        freed
    }

    /// Reads a segment ahead if that is still necessary. The partition is not locked meanwhile.
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

    /// Number of segments in memory, and of those only in the vault.
    pub(crate) fn segment_counts(&self) -> [u64; 2] {
        let guard = lock::read(&self.inner);
        guard
            .as_ref()
            .map_or([0; 2], |inner| inner.segments.counts())
    }

    /// Restores a segment, which is not dirty afterwards.
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

    /// Registers a segment that is in the vault with these bytes: its slots are in use, and its
    /// values are read back when one of them is needed. Only for a new partition.
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

    /// Starts a garbage collection: from now on every value that is stored is marked. Returns the
    /// number of values; returns `None` and does nothing if another collection is running or there
    /// is no partition.
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

    /// Whether a collection is running in which nothing was marked or stored.
    pub fn is_unmarked(&self) -> bool {
        let guard = lock::read(&self.inner);
        let marks = guard.as_ref().and_then(|inner| inner.marks.as_ref());
        marks.is_some_and(Marks::is_empty)
    }

    /// Returns up to `limit` unmarked values, starting at a slot.
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

    /// Ends the garbage collection.
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

    /// Number of slots in use; `None` if the number is unused. However large it is, this costs the same.
    pub fn live(&self) -> Option<u64> {
        lock::read(&self.inner).as_ref().map(|i| i.taken.count())
    }

    /// Its size and contents; `None` if the number is unused.
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
