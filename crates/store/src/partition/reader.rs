//! Reading from a partition: single values, and many at once for vectors.
//!
//! Invariant: while a [`Reader`] exists, the partition does not change; a free slot never yields a
//! value.

use super::Inner;
use crate::data;
use crate::error;
use crate::image::{SEGMENT_BITS, first_slot, segment_of};
use crate::layout::Layout;
use crate::occupancy::Occupancy;
use crate::resident::Resident;
use crate::scalar::Scalar;
use contract::fid::alike;
use contract::{Fid, TypeCode};
use std::sync::RwLockReadGuard;
use values::{Error, Value};

/// A partition locked for reading. All FIDs passed to it must belong to this partition.
pub struct Reader<'a> {
    pub(super) number: u32,
    pub(super) guard: RwLockReadGuard<'a, Option<Inner>>,
}

impl Reader<'_> {
    /// Type of the values as stored; `None` if the partition does not exist.
    #[inline]
    pub fn stored_type(&self) -> Option<TypeCode> {
        self.guard.as_ref().map(|inner| inner.t)
    }

    /// Layout of the values.
    pub fn layout(&self) -> Option<Layout> {
        self.guard.as_ref().map(|inner| inner.key.layout)
    }

    /// The segment of a slot in memory, and the slot's position in it.
    #[inline]
    fn resident(&self, slot: u64) -> Result<Option<(&Inner, &Resident, u64)>, Error> {
        let Some(inner) = self.guard.as_ref().filter(|i| i.taken.has(slot)) else {
            return Ok(None);
        };
        let segment = segment_of(slot);
        let resident = inner.segments.get(segment)?;
        Ok(resident.map(|r| (inner, r, slot - first_slot(segment))))
    }

    /// The value in a slot and its type. If it is `None`, [`Reader::why`] gives the reason.
    #[inline]
    pub fn get(&self, slot: u64) -> Option<(TypeCode, Scalar<'_>)> {
        let (inner, resident, at) = self.resident(slot).ok()??;
        Some((inner.t, resident.data.get(at)))
    }

    /// The value in a slot of an integer column. `None` if it is not of this type or not in memory;
    /// [`Reader::get`] handles these cases.
    #[inline]
    pub fn int(&self, slot: u64, want: TypeCode) -> Option<i64> {
        let inner = self.guard.as_ref()?;
        if inner.t != want || !inner.taken.has(slot) {
            return None;
        }
        let segment = segment_of(slot);
        let resident = inner.segments.here(segment)?;
        resident.data.int(slot - first_slot(segment))
    }

    /// Like [`Reader::int`], for two slots.
    #[inline]
    pub fn two_ints(&self, [a, b]: [u64; 2], [want_a, want_b]: [TypeCode; 2]) -> Option<[i64; 2]> {
        let inner = self.guard.as_ref()?;
        let typed = inner.t == want_a && inner.t == want_b;
        if !typed || !inner.taken.has(a) || !inner.taken.has(b) {
            return None;
        }
        let segment = segment_of(a);
        if segment_of(b) != segment {
            return Some([self.int(a, want_a)?, self.int(b, want_b)?]);
        }
        let first = first_slot(segment);
        let resident = inner.segments.here(segment)?;
        resident.data.two_ints([a - first, b - first])
    }

    /// Why a slot has no value.
    pub fn why(&self, slot: u64) -> Error {
        self.resident(slot).err().unwrap_or_else(error::unresolved)
    }

    /// The value in a slot, in owned form.
    pub fn value(&self, slot: u64) -> Result<Value, Error> {
        let found = self.resident(slot)?;
        let (inner, resident, at) = found.ok_or_else(error::unresolved)?;
        data::to_value(&resident.data.get(at), inner.key.layout)
    }

    /// Appends the values under the FIDs as integers (in units of 10^-scale for a scaled layout
    /// without side entries). Returns false and appends nothing if the layout does not store
    /// integers. `missing` receives the indexes of FIDs that do not resolve.
    #[inline]
    pub fn ints(&self, fids: &[Fid], out: &mut Vec<i64>, missing: &mut Vec<u32>) -> bool {
        self.gather(
            fids,
            out,
            missing,
            |resident, run, at, taken, out, missing| {
                resident.data.ints(run, at, taken, out, missing)
            },
        )
    }

    /// As [`Reader::ints`], for floats.
    #[inline]
    pub fn floats(&self, fids: &[Fid], out: &mut Vec<f64>, missing: &mut Vec<u32>) -> bool {
        self.gather(
            fids,
            out,
            missing,
            |resident, run, at, taken, out, missing| {
                resident.data.floats(run, at, taken, out, missing)
            },
        )
    }

    /// Passes the strings under the FIDs of a string column to `each`, one by one; `None` for a FID
    /// that does not resolve.
    #[inline]
    pub fn strings<E>(
        &self,
        fids: &[Fid],
        mut each: impl FnMut(Option<&[u8]>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut at: Option<(u32, Option<&Resident>)> = None;
        for fid in fids {
            let (slot, segment) = (fid.slot(), segment_of(fid.slot()));
            let resident = match at {
                Some((same, resident)) if same == segment => resident,
                _ => {
                    let inner = self.guard.as_ref();
                    let found = inner.and_then(|i| i.segments.get(segment).ok().flatten());
                    at = Some((segment, found));
                    found
                }
            };
            let taken = self.guard.as_ref().is_some_and(|i| i.taken.has(slot));
            let string = resident.filter(|_| taken);
            each(string.and_then(|r| r.data.string(slot - first_slot(segment))))?;
        }
        Ok(())
    }

    /// Gathers values segment by segment.
    #[inline]
    fn gather<T: Default>(
        &self,
        fids: &[Fid],
        out: &mut Vec<T>,
        missing: &mut Vec<u32>,
        each: impl Fn(&Resident, &[Fid], (u64, usize), &Occupancy, &mut Vec<T>, &mut Vec<u32>) -> bool,
    ) -> bool {
        debug_assert!(fids.iter().all(|fid| fid.partition() == self.number));
        let Some(inner) = self.guard.as_ref() else {
            return false;
        };
        let (start, missed) = (out.len(), missing.len());
        let mut rest = fids;
        while let Some(first) = rest.first() {
            let segment = segment_of(first.slot());
            let (run, later) = rest.split_at(alike(rest, SEGMENT_BITS, |fid| *fid));
            rest = later;
            match inner.segments.get(segment) {
                Ok(Some(resident)) => {
                    let at = (first_slot(segment), start);
                    if !each(resident, run, at, &inner.taken, out, missing) {
                        out.truncate(start);
                        missing.truncate(missed);
                        return false;
                    }
                }
                _ => {
                    let from = out.len() - start;
                    missing.extend((from..from + run.len()).map(|n| n as u32));
                    out.resize_with(out.len() + run.len(), T::default);
                }
            }
        }
        true
    }
}
