//! Segments of a partition's values: each is in memory, or in the vault only and read
//! back when it is needed.
//!
//! Reading back happens under the partition's read lock, so other readers go on; giving
//! up memory needs its write lock, for a moment.
//!
//! Which segments go first: those that were not used again after the while in which they
//! were read back. So a scan of a large column pushes out what it has read itself, not
//! what others use again and again.
//!
//! Invariants: a segment leaves memory only when the vault holds exactly its content;
//! what cannot be read back is an error, never another value.

use crate::budget::{Account, Budget};
use crate::data::Data;
use crate::error;
use crate::image;
use crate::layout::Layout;
use crate::lock;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use values::Error;

/// Where segments are that are not in memory.
pub trait Backing: Send + Sync {
    /// The bytes of a segment as they were written last.
    ///
    /// # Errors
    /// When they cannot be read, or are not what was written.
    fn read(&self, partition: u32, segment: u32) -> Result<Vec<u8>, Error>;
}

/// What all partitions of a store share about memory.
pub(crate) struct Memory {
    pub(crate) budget: Arc<Budget>,
    backing: RwLock<Option<Arc<dyn Backing>>>,
    /// Counts up as segments are read back: "now", to tell one use from the next.
    tick: AtomicU32,
    loaded: AtomicU64,
    pub(crate) faults: AtomicU64,
    pub(crate) evicted: AtomicU64,
    /// Bytes of values that are wanted in memory at most; 0: no bound.
    bound: OnceLock<usize>,
    waker: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// A tick passes when this part of the bound was read back.
const TICKS: u64 = 4;
/// Uses in different ticks that count.
const USES_MAX: u8 = 3;

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

    /// Bytes beyond the bound.
    pub(crate) fn excess(&self) -> usize {
        let bound = self.bound.get().copied().unwrap_or(usize::MAX);
        self.budget.used().saturating_sub(bound)
    }

    /// Something grew: wakes who makes room, if there is too little.
    pub(crate) fn grown(&self) {
        if self.excess() > 0
            && let Some(wake) = self.waker.get()
        {
            wake();
        }
    }

    #[inline]
    fn now(&self) -> u32 {
        self.tick.load(Ordering::Relaxed)
    }

    fn read_back(&self, bytes: usize) {
        self.faults.fetch_add(1, Ordering::Relaxed);
        let bytes = bytes as u64;
        let before = self.loaded.fetch_add(bytes, Ordering::Relaxed);
        let bound = self.bound.get().copied().unwrap_or(usize::MAX) as u64;
        let part = (bound / TICKS).max(1);
        if before / part != (before + bytes) / part {
            self.tick.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Values in memory, and what is charged for them.
pub(crate) struct Resident {
    pub(crate) data: Data,
    pub(crate) account: Account,
}

/// A segment.
#[derive(Default)]
pub(crate) struct Segment {
    resident: OnceLock<Box<Resident>>,
    /// The vault holds exactly this.
    stored: bool,
    /// The tick in which it was used last.
    used: AtomicU32,
    /// In how many ticks it was used, less those in which it aged.
    uses: AtomicU8,
    aged: u32,
}

/// The segments of a partition.
pub(crate) struct Segments {
    number: u32,
    layout: Layout,
    memory: Arc<Memory>,
    all: Vec<Segment>,
    /// Held while one is read back: no two readers do the same work.
    loading: Mutex<()>,
}

impl Segments {
    pub(crate) fn new(number: u32, layout: Layout, memory: Arc<Memory>) -> Segments {
        Segments {
            number,
            layout,
            memory,
            all: Vec::new(),
            loading: Mutex::new(()),
        }
    }

    /// A segment's values, read back if need be; `None` where there never were any.
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

    /// A segment's values, if they are in memory.
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
            let backing = lock::read(&self.memory.backing).clone();
            let backing = backing.ok_or_else(error::unresolved)?;
            let bytes = backing.read(self.number, segment)?;
            let resident = self.decode(segment, &bytes)?;
            self.memory.read_back(resident.account.charged());
            found.used.store(self.memory.now(), Ordering::Relaxed);
            found.uses.store(0, Ordering::Relaxed);
            let _ = found.resident.set(Box::new(resident));
            self.memory.grown();
        }
        let resident = found.resident.get().map(Box::as_ref);
        resident.ok_or_else(error::unresolved)
    }

    fn decode(&self, segment: u32, bytes: &[u8]) -> Result<Resident, Error> {
        let mut resident = Resident {
            data: Data::new(self.layout),
            account: Account::forced(Arc::clone(&self.memory.budget)),
        };
        let first = image::first_slot(segment);
        image::read(self.layout, segment, bytes, |slot, value| {
            let Resident { data, account } = &mut resident;
            data.put(slot - first, value, account)
        })?;
        resident.account.unforce();
        Ok(resident)
    }

    /// Whether a segment's values are in memory, or there are none.
    pub(crate) fn is_present(&self, segment: u32) -> bool {
        let found = self.all.get(segment as usize);
        found.is_none_or(|s| s.resident.get().is_some() || !s.stored)
    }

    /// A segment to change; `None` when it must be read back first.
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

    /// A segment is in the vault; false when it is in memory already.
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

    /// The vault holds a segment as it is now.
    pub(crate) fn set_stored(&mut self, segment: u32) {
        if let Some(found) = self.all.get_mut(segment as usize) {
            found.stored = true;
        }
    }

    /// Whether the vault holds a segment as it is now.
    pub(crate) fn is_stored(&self, segment: u32) -> bool {
        self.all.get(segment as usize).is_some_and(|s| s.stored)
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        let resident = self.all.iter().filter_map(|s| s.resident.get());
        resident.map(|r| r.account.charged()).sum()
    }

    /// Segments in memory and in the vault only.
    pub(crate) fn counts(&self) -> [u64; 2] {
        let resident = self.all.iter().filter(|s| s.resident.get().is_some());
        let evicted = self
            .all
            .iter()
            .filter(|s| s.stored && s.resident.get().is_none());
        [resident.count() as u64, evicted.count() as u64]
    }

    /// Takes out of memory what was not used lately, until `enough` bytes are free; the
    /// others age. With `mercy` those of this tick stay, and the others age once in it. The caller drops what it
    /// gets without the lock.
    pub(crate) fn evict(&mut self, enough: usize, mercy: bool, gone: &mut Vec<Resident>) -> usize {
        let now = self.memory.now();
        let mut freed = 0;
        for segment in self.all.iter_mut().filter(|s| s.stored) {
            if freed >= enough {
                break;
            }
            let uses = *segment.uses.get_mut();
            if mercy && *segment.used.get_mut() == now {
                continue;
            }
            if uses > 0 {
                if !mercy || segment.aged != now {
                    segment.aged = now;
                    *segment.uses.get_mut() = uses - 1;
                }
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
