//! Leased slots: whoever holds the lease will fill them, and nobody else gets them.
//!
//! Invariant: a leased slot is empty; it is filled at most once.

use super::Partition;
use crate::error;
use crate::lock;
use crate::scalar::Scalar;
use contract::{Fid, TypeCode};
use values::Error;

impl Partition {
    /// Leases the lowest free slots. Returns runs of a first slot and a number.
    pub fn lease(&self, count: u64) -> Result<Vec<(u64, u64)>, Error> {
        let mut guard = lock::write(&self.inner);
        let inner = guard.as_mut().ok_or_else(error::unresolved)?;
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for _ in 0..count {
            let slot = inner.taken.next();
            inner.taken.lease(slot);
            match runs.last_mut() {
                Some((first, length)) if *first + *length == slot => *length += 1,
                _ => runs.push((slot, 1)),
            }
        }
        Ok(runs)
    }

    /// Fills a leased slot. Returns false, and changes nothing, if it is not leased.
    pub fn fill(
        &self,
        t: TypeCode,
        slot: u64,
        value: &Scalar<'_>,
        note: impl FnOnce(Fid),
    ) -> Result<bool, Error> {
        self.change(
            |_| slot,
            |inner, slot| {
                inner.expect(t)?;
                if !inner.taken.is_leased(slot) {
                    return Ok(false);
                }
                inner.put(slot, value)?;
                note(Fid::new(self.number, slot));
                Ok(true)
            },
        )?
    }

    /// Ends the lease of slots that were not filled.
    pub fn unlease(&self, slots: impl Iterator<Item = u64>) {
        if let Some(inner) = lock::write(&self.inner).as_mut() {
            slots.for_each(|slot| inner.taken.unlease(slot));
        }
    }

    /// Whether one of these slots is leased, and was not filled.
    pub fn any_leased(&self, mut slots: impl Iterator<Item = u64>) -> bool {
        let guard = lock::read(&self.inner);
        let inner = guard.as_ref();
        inner.is_some_and(|inner| slots.any(|slot| inner.taken.is_leased(slot)))
    }

    /// Whether a slot is leased, and was not filled.
    pub fn is_leased(&self, slot: u64) -> bool {
        let guard = lock::read(&self.inner);
        let inner = guard.as_ref();
        inner.is_some_and(|inner| inner.taken.is_leased(slot))
    }
}
