//! Segments of a partition's values: each is either in memory, or only in the vault and read back
//! when needed.
//!
//! Reading back happens under the partition's read lock, so that other readers can continue.
//! Evicting needs its write lock for a moment.
//!
//! Segments that were not used again after the period (*tick*) in which they were read back are
//! evicted first, so a scan of a large column evicts what it has read itself. Segments used in
//! several ticks stay, whatever is scanned, up to three quarters of the bound. Beyond that, and
//! after a long time, they have to be used again to stay.
//!
//! Invariants: a segment leaves memory only if the vault holds exactly its contents; what cannot be
//! read back is an error, never another value.

use crate::ahead::{Hint, Place, Reading, Shelf};
use crate::budget::{Account, Budget};
use crate::data::Data;
use crate::error;
use crate::image;
use crate::layout::Layout;
use crate::lock;
use crate::resident::Resident;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use values::Error;

/// Storage of segments that are not in memory.
pub trait Backing: Send + Sync {
    /// The bytes of a segment as last written.
    ///
    /// # Errors
    /// If they cannot be read, or are not what was written.
    fn read(&self, partition: u32, segment: u32) -> Result<Vec<u8>, Error>;
}

/// Memory management shared by all partitions of a store.
pub(crate) struct Memory {
    pub(crate) budget: Arc<Budget>,
    backing: RwLock<Option<Arc<dyn Backing>>>,
    /// Clock that advances as segments are read back and as time passes; distinguishes one use from
    /// the next.
    tick: AtomicU32,
    loaded: AtomicU64,
    pub(crate) faults: AtomicU64,
    pub(crate) evicted: AtomicU64,
    /// Upper bound for values in memory, in bytes; 0: none.
    bound: OnceLock<usize>,
    waker: OnceLock<Box<dyn Fn() + Send + Sync>>,
    pub(crate) shelf: Shelf,
    /// Counter that identifies columns while they are in use.
    columns: AtomicU64,
}

/// A tick passes when this fraction of the bound was read back.
const TICKS: u64 = 4;
/// Maximum count of uses in different ticks.
pub(crate) const USES_MAX: u8 = 3;
/// A use is forgotten after this many ticks.
const AGE_TICKS: u32 = 16;
/// Segments read ahead and not used yet may take this fraction of the memory for values.
const AHEAD_PART: usize = 4;

/// How aggressively to evict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Haste {
    /// Evict what has not been used for long.
    Forgotten,
    /// Also evict what was used in a single tick only.
    Passed,
    /// Also evict what was used repeatedly, once it has aged.
    Aged,
    /// Evict everything.
    Any,
}

impl Memory {
    pub(crate) fn new(budget: Arc<Budget>) -> Memory {
        Memory {
            budget,
            backing: RwLock::new(None),
            tick: AtomicU32::new(1),
            loaded: AtomicU64::new(0),
            faults: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            bound: OnceLock::new(),
            waker: OnceLock::new(),
            shelf: Shelf::default(),
            columns: AtomicU64::new(0),
        }
    }

    pub(crate) fn set_backing(&self, backing: Arc<dyn Backing>) {
        *lock::write(&self.backing) = Some(backing);
    }

    pub(crate) fn set_bound(&self, bound: usize, waker: Box<dyn Fn() + Send + Sync>) {
        if bound > 0 && self.bound.set(bound).is_ok() {
            let _ = self.waker.set(waker);
        }
    }

    /// Number of bytes above the bound.
    pub(crate) fn excess(&self) -> usize {
        let bound = self.bound.get().copied().unwrap_or(usize::MAX);
        self.budget.used().saturating_sub(bound)
    }

    /// Something grew: wakes the evicting thread if there is too little memory.
    pub(crate) fn grown(&self) {
        if self.excess() > 0
            && let Some(wake) = self.waker.get()
        {
            wake();
        }
    }

    #[inline]
    pub(crate) fn now(&self) -> u32 {
        self.tick.load(Ordering::Relaxed)
    }

    /// Advances the clock, so that a use from now on counts separately.
    pub(crate) fn tick(&self) {
        self.tick.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a segment may be read ahead; if so, registers it as being read.
    fn begin_ahead(&self, hint: Hint) -> bool {
        let most = self.budget.limit();
        let bound = self.bound.get().copied().unwrap_or(most).min(most);
        self.budget.used().saturating_add(hint.bytes) <= most
            && self.shelf.begin(hint, bound / AHEAD_PART, self.now())
    }

    /// Reads a segment that was registered.
    pub(crate) fn read_ahead(&self, place: Place, layout: Layout) {
        let mut reading = Reading {
            shelf: &self.shelf,
            place,
            resident: None,
        };
        // Errors are left to whoever needs the values.
        reading.resident = self.read(place, layout).ok().map(Box::new);
        drop(reading);
        self.grown();
    }

    fn read(&self, place: Place, layout: Layout) -> Result<Resident, Error> {
        let backing = lock::read(&self.backing).clone();
        let backing = backing.ok_or_else(error::unresolved)?;
        let bytes = backing.read(place.partition, place.segment)?;
        let mut resident = Resident {
            data: Data::new(layout),
            account: Account::forced(Arc::clone(&self.budget)),
        };
        let first = image::first_slot(place.segment);
        image::read(layout, place.segment, &bytes, |slot, value| {
            let Resident { data, account } = &mut resident;
            data.put(slot - first, value, account)
        })?;
        resident.account.unforce();
        Ok(resident)
    }

    fn read_back(&self, bytes: usize) {
        let bytes = bytes as u64;
        let before = self.loaded.fetch_add(bytes, Ordering::Relaxed);
        let bound = self.bound.get().copied().unwrap_or(usize::MAX) as u64;
        let part = (bound / TICKS).max(1);
        if before / part != (before + bytes) / part {
            self.tick();
        }
    }
}

/// A segment.
#[derive(Default)]
pub(crate) struct Segment {
    resident: OnceLock<Box<Resident>>,
    /// The vault holds exactly these contents.
    stored: bool,
    /// Tick of the last use.
    used: AtomicU32,
    /// Number of ticks in which it was used, minus the evictions that aged it.
    uses: AtomicU8,
}

/// The segments of a partition.
pub(crate) struct Segments {
    number: u32,
    column: u64,
    layout: Layout,
    memory: Arc<Memory>,
    all: Vec<Segment>,
    /// Held while a segment is read back, so that no two readers do the same work.
    loading: Mutex<()>,
    /// Number of the segment read back last, plus one.
    after: AtomicU32,
}

impl Drop for Segments {
    fn drop(&mut self) {
        self.memory.shelf.forget(self.column);
    }
}

impl Segments {
    pub(crate) fn new(number: u32, layout: Layout, memory: Arc<Memory>) -> Segments {
        Segments {
            number,
            column: memory.columns.fetch_add(1, Ordering::Relaxed),
            layout,
            memory,
            all: Vec::new(),
            loading: Mutex::new(()),
            after: AtomicU32::new(0),
        }
    }

    /// A segment's values, read back if necessary; `None` if it never had any.
    #[inline]
    pub(crate) fn get(&self, segment: u32) -> Result<Option<&Resident>, Error> {
        if let Some(resident) = self.here(segment) {
            return Ok(Some(resident));
        }
        match self.all.get(segment as usize) {
            Some(found) if found.stored => self.read_back(segment, found).map(Some),
            _ => Ok(None),
        }
    }

    /// A segment's values if they are in memory.
    #[inline]
    pub(crate) fn here(&self, segment: u32) -> Option<&Resident> {
        let found = self.all.get(segment as usize)?;
        let resident = found.resident.get()?;
        let now = self.memory.now();
        if found.used.load(Ordering::Relaxed) != now {
            found.used.store(now, Ordering::Relaxed);
            let uses = found.uses.load(Ordering::Relaxed);
            found
                .uses
                .store((uses + 1).min(USES_MAX), Ordering::Relaxed);
        }
        Some(resident)
    }

    #[cold]
    fn read_back<'a>(&self, segment: u32, found: &'a Segment) -> Result<&'a Resident, Error> {
        let _held = self.loading.lock().unwrap_or_else(|e| e.into_inner());
        if found.resident.get().is_none() {
            let in_order = self.is_in_order(segment);
            let place = self.place(segment);
            let resident = match self.memory.shelf.take(place) {
                Some(resident) => resident,
                None => {
                    self.memory.faults.fetch_add(1, Ordering::Relaxed);
                    Box::new(self.memory.read(place, self.layout)?)
                }
            };
            let bytes = resident.account.charged();
            self.memory.read_back(bytes);
            found.used.store(self.memory.now(), Ordering::Relaxed);
            found.uses.store(0, Ordering::Relaxed);
            let _ = found.resident.set(resident);
            self.memory.grown();
            self.after.store(segment + 1, Ordering::Relaxed);
            if in_order && let Some(next) = self.absent_from(segment + 1) {
                let place = self.place(next);
                self.memory.shelf.hint(Hint { place, bytes });
            }
        }
        let resident = found.resident.get().map(Box::as_ref);
        resident.ok_or_else(error::unresolved)
    }

    fn place(&self, segment: u32) -> Place {
        Place {
            column: self.column,
            partition: self.number,
            segment,
        }
    }

    /// The first segment from `segment` on that is only in the vault.
    fn absent_from(&self, segment: u32) -> Option<u32> {
        let from = segment as usize;
        let rest = self.all.get(from..)?.iter();
        let absent = |s: &Segment| s.stored && s.resident.get().is_none();
        rest.zip(segment..)
            .find_map(|(s, number)| absent(s).then_some(number))
    }

    /// Whether the column is read in order: this is the first segment that is not in memory, either
    /// of all segments or after the one that was read back last.
    fn is_in_order(&self, segment: u32) -> bool {
        [0, self.after.load(Ordering::Relaxed)]
            .into_iter()
            .any(|from| self.absent_from(from) == Some(segment))
    }

    /// Registers a segment as being read ahead and returns its layout; `None` if it is not to be
    /// read.
    pub(crate) fn begin_ahead(&self, hint: Hint) -> Option<Layout> {
        let Place {
            column, segment, ..
        } = hint.place;
        let wanted = column == self.column && self.absent_from(segment) == Some(segment);
        (wanted && self.memory.begin_ahead(hint)).then_some(self.layout)
    }

    /// Whether a segment's values are in memory, or it has none.
    pub(crate) fn is_present(&self, segment: u32) -> bool {
        let found = self.all.get(segment as usize);
        found.is_none_or(|s| s.resident.get().is_some() || !s.stored)
    }

    /// A segment to be modified; `None` if it must be read back first.
    pub(crate) fn change(&mut self, segment: u32) -> Option<&mut Resident> {
        let at = segment as usize;
        if at >= self.all.len() {
            self.all.resize_with(at + 1, Segment::default);
        }
        let found = self.all.get_mut(at)?;
        if found.resident.get().is_none() {
            if found.stored {
                return None;
            }
            let _ = found.resident.set(Box::new(Resident {
                data: Data::new(self.layout),
                account: Account::new(Arc::clone(&self.memory.budget)),
            }));
            found.used.store(self.memory.now(), Ordering::Relaxed);
        }
        found.stored = false;
        self.memory.grown();
        found.resident.get_mut().map(Box::as_mut)
    }

    /// Records that the vault holds a segment. Returns false if it is already in memory.
    pub(crate) fn adopt(&mut self, segment: u32) -> bool {
        let at = segment as usize;
        if at >= self.all.len() {
            self.all.resize_with(at + 1, Segment::default);
        }
        let found = self.all.get_mut(at);
        let Some(found) = found.filter(|s| s.resident.get().is_none()) else {
            return false;
        };
        found.stored = true;
        true
    }

    /// Records that the vault holds the current contents of a segment.
    pub(crate) fn set_stored(&mut self, segment: u32) {
        if let Some(found) = self.all.get_mut(segment as usize) {
            found.stored = true;
        }
    }

    /// Whether the vault holds the current contents of a segment.
    pub(crate) fn is_stored(&self, segment: u32) -> bool {
        self.all.get(segment as usize).is_some_and(|s| s.stored)
    }

    /// Size in memory.
    pub(crate) fn bytes(&self) -> usize {
        let resident = self.all.iter().filter_map(|s| s.resident.get());
        resident.map(|r| r.account.charged()).sum()
    }

    /// Number of segments in memory, and in the vault only.
    pub(crate) fn counts(&self) -> [u64; 2] {
        let resident = self.all.iter().filter(|s| s.resident.get().is_some());
        let evicted = self
            .all
            .iter()
            .filter(|s| s.stored && s.resident.get().is_none());
        [resident.count() as u64, evicted.count() as u64]
    }

    /// Evicts segments that were not used lately, until `enough` bytes are free. The caller drops
    /// the returned segments after releasing the lock.
    pub(crate) fn evict(&mut self, enough: usize, haste: Haste, gone: &mut Vec<Resident>) -> usize {
        let now = self.memory.now();
        let mut freed = 0;
        for segment in self.all.iter_mut().filter(|s| s.stored) {
            if freed >= enough {
                break;
            }
            let (used, uses) = (*segment.used.get_mut(), *segment.uses.get_mut());
            if haste != Haste::Any && used == now {
                continue;
            }
            let forgotten = now.wrapping_sub(used) >= AGE_TICKS * u32::from(uses.max(1));
            if haste == Haste::Aged && uses > 0 {
                *segment.uses.get_mut() = uses - 1;
                continue;
            }
            if !forgotten && (haste == Haste::Forgotten || haste == Haste::Passed && uses > 0) {
                continue;
            }
            if let Some(resident) = segment.resident.take() {
                freed += resident.account.charged();
                gone.push(*resident);
                self.memory.evicted.fetch_add(1, Ordering::Relaxed);
            }
        }
        freed
    }
}
