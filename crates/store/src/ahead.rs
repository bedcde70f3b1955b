//! Reading ahead: where a column is read segment after segment, the next one is read back
//! by another thread, while values of this one are used, and waits on a *shelf*. It comes into its
//! partition when a value of it is needed, so what nobody needs pushes nothing out.
//!
//! Which segments: module `segment` sees a column being read in order and gives a hint. The
//! newest hint comes first: of several columns that are read side by side the reader
//! takes the first itself, meanwhile the other thread takes the last.
//!
//! Invariants: a segment on the shelf is not in its partition's memory, so it cannot have
//! changed since it was read; nobody waits for more than the reading of one segment; all
//! that is read ahead and not used yet keeps within a quarter of the memory that values may take.

use crate::resident::Resident;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// Columns of which a segment may be wanted at a time.
const HINTS_MAX: usize = 64;
/// What has not been used for so many ticks will not be.
const STALE_TICKS: u32 = 4;

/// A segment of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// Of the partition, for as long as it is one column's.
    pub(crate) column: u64,
    pub(crate) partition: u32,
    pub(crate) segment: u32,
}

/// A segment that will be needed.
#[derive(Clone, Copy)]
pub(crate) struct Hint {
    pub(crate) place: Place,
    /// What it takes, about.
    pub(crate) bytes: usize,
}

/// A segment that was read ahead, or is being read.
struct Held {
    place: Place,
    resident: Option<Box<Resident>>,
    since: u32,
}

impl Held {
    fn bytes(&self) -> usize {
        self.resident.as_ref().map_or(0, |r| r.account.charged())
    }
}

#[derive(Default)]
struct Inner {
    hints: Vec<Hint>,
    held: Vec<Held>,
}

/// What is read ahead.
#[derive(Default)]
pub(crate) struct Shelf {
    inner: Mutex<Inner>,
    /// Something was read, or will not be.
    changed: Condvar,
    waker: OnceLock<Box<dyn Fn() + Send + Sync>>,
    pub(crate) read: AtomicU64,
    pub(crate) used: AtomicU64,
}

impl Shelf {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Without somebody to wake there are no hints.
    pub(crate) fn switch_on(&self, waker: Box<dyn Fn() + Send + Sync>) {
        let _ = self.waker.set(waker);
    }

    /// A segment will be needed, and no earlier one of its column any more.
    pub(crate) fn hint(&self, hint: Hint) {
        let Some(wake) = self.waker.get() else {
            return;
        };
        let mut inner = self.inner();
        inner.hints.retain(|h| h.place.column != hint.place.column);
        if inner.hints.len() == HINTS_MAX {
            inner.hints.remove(0);
        }
        inner.hints.push(hint);
        drop(inner);
        wake();
    }

    /// The newest hint.
    pub(crate) fn next(&self) -> Option<Hint> {
        self.inner().hints.pop()
    }

    /// Before a segment is read, while its partition is locked; false when there is no room
    /// within `limit` bytes.
    pub(crate) fn begin(&self, hint: Hint, limit: usize, now: u32) -> bool {
        self.drop_stale(now);
        let mut inner = self.inner();
        let held: usize = inner.held.iter().map(Held::bytes).sum();
        let known = inner.held.iter().any(|h| h.place == hint.place);
        if known || held + hint.bytes > limit {
            return false;
        }
        inner.held.push(Held {
            place: hint.place,
            resident: None,
            since: now,
        });
        true
    }

    /// After it was read, or could not be.
    fn finish(&self, place: Place, resident: Option<Box<Resident>>) {
        let mut inner = self.inner();
        let at = inner.held.iter().position(|h| h.place == place);
        match (at, resident) {
            (Some(at), Some(resident)) => {
                self.read.fetch_add(1, Ordering::Relaxed);
                if let Some(held) = inner.held.get_mut(at) {
                    held.resident = Some(resident);
                }
            }
            (Some(at), None) => drop(inner.held.swap_remove(at)),
            (None, _) => {} // the column is no more
        }
        drop(inner);
        self.changed.notify_all();
    }

    /// Takes a segment off the shelf, once it is there if it is being read. `None`: it is
    /// for the caller to read.
    pub(crate) fn take(&self, place: Place) -> Option<Box<Resident>> {
        let mut inner = self.inner();
        loop {
            let at = inner.held.iter().position(|h| h.place == place)?;
            if inner.held.get(at).is_some_and(|h| h.resident.is_some()) {
                self.used.fetch_add(1, Ordering::Relaxed);
                return inner.held.swap_remove(at).resident;
            }
            inner = self
                .changed
                .wait(inner)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Drops what was read of a column, and is being read.
    pub(crate) fn forget(&self, column: u64) {
        self.drop_if(|held| held.place.column == column);
    }

    /// Drops what has been there for long.
    pub(crate) fn drop_stale(&self, now: u32) {
        self.drop_if(|h| h.resident.is_some() && now.wrapping_sub(h.since) >= STALE_TICKS);
    }

    /// Drops all that was read.
    pub(crate) fn clear(&self) {
        self.drop_if(|held| held.resident.is_some());
    }

    fn drop_if(&self, which: impl Fn(&Held) -> bool) {
        let mut inner = self.inner();
        let gone: Vec<Held> = inner.held.extract_if(.., |held| which(held)).collect();
        drop(inner); // before values are
        if !gone.is_empty() {
            self.changed.notify_all();
        }
    }
}

/// Whoever reads ahead; says that it is done whatever happens.
pub(crate) struct Reading<'a> {
    pub(crate) shelf: &'a Shelf,
    pub(crate) place: Place,
    pub(crate) resident: Option<Box<Resident>>,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.shelf.finish(self.place, self.resident.take());
    }
}
