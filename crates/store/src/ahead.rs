//! Reading ahead. When a column is read segment by segment, another thread reads the next segment
//! back while the values of the current one are used. The segment waits on a *shelf*. It moves to
//! its partition when one of its values is needed, so that unneeded segments evict nothing.
//!
//! Module `segment` detects that a column is read in order and gives a hint. The newest hint is
//! served first: when several columns are read side by side, the reader loads the first one itself
//! while the other thread loads the last one.
//!
//! Invariants: a segment on the shelf is not in its partition's memory, so it cannot have changed
//! since it was read; nobody waits for longer than the reading of one segment; everything that was
//! read ahead and not used yet takes at most a quarter of the memory for values.

use crate::resident::Resident;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// Number of columns that can have a hint at a time.
const HINTS_MAX: usize = 64;
/// A segment not used for this many ticks is dropped.
const STALE_TICKS: u32 = 4;

/// A segment of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// Identifies the use of a partition number for one column.
    pub(crate) column: u64,
    pub(crate) partition: u32,
    pub(crate) segment: u32,
}

/// A segment that will be needed.
#[derive(Clone, Copy)]
pub(crate) struct Hint {
    pub(crate) place: Place,
    /// Estimated size in memory.
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

/// Segments that were read ahead.
#[derive(Default)]
pub(crate) struct Shelf {
    inner: Mutex<Inner>,
    /// Signalled when a segment was read, or will not be.
    changed: Condvar,
    waker: OnceLock<Box<dyn Fn() + Send + Sync>>,
    pub(crate) read: AtomicU64,
    pub(crate) used: AtomicU64,
}

impl Shelf {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the function that wakes the reading thread. Without one, hints are ignored.
    pub(crate) fn switch_on(&self, waker: Box<dyn Fn() + Send + Sync>) {
        let _ = self.waker.set(waker);
    }

    /// Gives a hint: the segment will be needed, and earlier ones of its column will not.
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

    /// Removes and returns the newest hint.
    pub(crate) fn next(&self) -> Option<Hint> {
        self.inner().hints.pop()
    }

    /// To be called before a segment is read, while its partition is locked. Returns false if it
    /// does not fit within `limit` bytes.
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

    /// To be called after a segment was read, or could not be read.
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
            (None, _) => {} // the column was dropped
        }
        drop(inner);
        self.changed.notify_all();
    }

    /// Takes a segment off the shelf, waiting if it is being read. Returns `None` if the caller
    /// must read it.
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

    /// Drops everything read for a column, including reads in progress.
    pub(crate) fn forget(&self, column: u64) {
        self.drop_if(|held| held.place.column == column);
    }

    /// Drops what has been on the shelf for long.
    pub(crate) fn drop_stale(&self, now: u32) {
        self.drop_if(|h| h.resident.is_some() && now.wrapping_sub(h.since) >= STALE_TICKS);
    }

    /// Drops everything that was read.
    pub(crate) fn clear(&self) {
        self.drop_if(|held| held.resident.is_some());
    }

    fn drop_if(&self, which: impl Fn(&Held) -> bool) {
        let mut inner = self.inner();
        let gone: Vec<Held> = inner.held.extract_if(.., |held| which(held)).collect();
        drop(inner); // unlock before the values are dropped
        if !gone.is_empty() {
            self.changed.notify_all();
        }
    }
}

/// A read in progress; reports its end in any case.
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
