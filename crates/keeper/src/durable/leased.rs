//! Leases in the WAL: which FIDs a session's client could give values, and taking in the values.
//!
//! A lease's record has a place in the history; a record of adopted values has none, and takes that
//! of the lease. The client's envelope names the column, so it fills no FID of another one; the lease
//! names the session's key, so nobody else's does.
//!
//! Invariants: a leased FID is given one value at most; a value that does not open, or does not fit, leaves
//! the zero of its type, as it did when it was adopted.

use super::{State, of_redo};
use crate::fitted;
use crate::leases::Leased;
use contract::Fid;
use envelope::{Opener, StoringKey};
use redo::{Item, Order};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::Store;
use values::Error;
use zeroize::Zeroizing;

/// What FIDs of one lease share.
struct Of {
    order: Order,
    key: Zeroizing<[u8; 32]>,
    opener: Opener,
}

/// All leases in the WAL since the checkpoint, and those that are in it.
#[derive(Default)]
pub(super) struct Open {
    /// By the first FID, the one behind the last.
    runs: BTreeMap<u64, (u64, Arc<Of>)>,
}

fn refused(error: &envelope::Error) -> Error {
    Error::new(b"XX000", "confide: a session's storing key is not usable").detail(error.to_string())
}

impl Open {
    /// Adds a lease, which replaces others of the same FIDs.
    pub(super) fn add(&mut self, leased: &Leased) -> Result<(), Error> {
        let key = StoringKey::read(*leased.key);
        let of = Arc::new(Of {
            order: leased.order,
            key: leased.key.clone(),
            opener: Opener::storing(&key).map_err(|e| refused(&e))?,
        });
        for (first, count) in &leased.runs {
            let end = first.saturating_add(*count);
            self.cut(*first, end);
            self.runs.insert(*first, (end, Arc::clone(&of)));
        }
        Ok(())
    }

    /// Removes the FIDs from one on up to another.
    fn cut(&mut self, from: u64, to: u64) {
        let before = self.runs.range(..to).rev();
        let over: Vec<(u64, u64, Arc<Of>)> = before
            .take_while(|(_, (end, _))| *end > from)
            .map(|(first, (end, of))| (*first, *end, Arc::clone(of)))
            .collect();
        for (first, end, of) in over {
            self.runs.remove(&first);
            if first < from {
                self.runs.insert(first, (from, Arc::clone(&of)));
            }
            if end > to {
                self.runs.insert(to, (end, of));
            }
        }
    }

    /// The lease of a FID that has no value yet; it gets one now.
    fn take(&mut self, fid: u64) -> Option<Arc<Of>> {
        let (_, (end, of)) = self.runs.range(..=fid).next_back()?;
        let of = (*end > fid).then(|| Arc::clone(of))?;
        self.cut(fid, fid + 1);
        Some(of)
    }

    /// All of them.
    pub(super) fn list(&self) -> Vec<Leased> {
        let mut found: Vec<Leased> = Vec::new();
        for (first, (end, of)) in &self.runs {
            let run = (*first, end - first);
            match found.iter_mut().find(|l| l.order == of.order) {
                Some(leased) => leased.runs.push(run),
                None => found.push(Leased {
                    order: of.order,
                    key: of.key.clone(),
                    runs: vec![run],
                }),
            }
        }
        found
    }

    /// No lease goes on.
    pub(super) fn clear(&mut self) {
        self.runs.clear();
    }

    /// Gives a leased FID its value, if `permits` says that the lease still counts. Returns whether it was
    /// given.
    pub(super) fn adopt(
        &mut self,
        store: &Store,
        item: &Item<'_>,
        permits: impl FnOnce(Order, u64) -> bool,
    ) -> Result<bool, Error> {
        let Some(of) = self.take(item.fid) else {
            return Ok(false);
        };
        let fid = contract::Fid(item.fid);
        let column = store.get(fid.partition());
        let Some((partition, t)) = column.and_then(|p| Some((p, p.read().stored_type()?))) else {
            return Ok(false);
        };
        if !permits(of.order, item.fid) {
            return Ok(false);
        }
        let (name, _) = partition.column().unwrap_or_default();
        let value = fitted::open(&of.opener, &name, t, item).or_else(|_| fitted::zero(t))?;
        let values = std::iter::once(store::Scalar::of(&value));
        Ok(partition.restore(t, fid.slot(), values)? == 1)
    }
}

impl State {
    /// The FIDs of a lease are free, and may be given values.
    pub(super) fn apply_lease(
        &mut self,
        store: &Store,
        order: Order,
        lease: &redo::Lease,
    ) -> Result<(), Error> {
        let mut runs = Vec::new();
        for (first, count) in &lease.runs {
            for part in self.history.set(order, *first, *count) {
                part.clone().for_each(|fid| {
                    store.free(Fid(fid));
                });
                runs.push((part.start, part.end - part.start));
            }
        }
        let key = Zeroizing::new(lease.key);
        self.leases.add(&Leased { order, key, runs })
    }

    /// Gives leased FIDs the values that clients have sealed.
    pub(super) fn apply_adopted(&mut self, store: &Store, record: &[u8]) -> Result<(), Error> {
        let adopted = redo::Adopted::parse(record).map_err(of_redo)?;
        for item in adopted.items() {
            let permits = |order, fid| self.history.permits(order, fid);
            let given = self.leases.adopt(store, &item, permits)?;
            self.history.stale += u64::from(!given);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leased(generation: u32, runs: &[(u64, u64)]) -> Leased {
        Leased {
            order: Order {
                generation,
                counter: 0,
            },
            key: Zeroizing::new([generation as u8; 32]),
            runs: runs.to_vec(),
        }
    }

    /// A FID is taken once, from the lease that came last; the rest stays.
    #[test]
    fn once() {
        let mut open = Open::default();
        open.add(&leased(1, &[(10, 10), (40, 2)])).unwrap();
        open.add(&leased(2, &[(15, 2)])).unwrap();
        let generation = |open: &mut Open, fid| open.take(fid).map(|of| of.order.generation);
        assert_eq!(generation(&mut open, 15), Some(2));
        assert_eq!(generation(&mut open, 15), None);
        assert_eq!(generation(&mut open, 14), Some(1));
        assert_eq!(generation(&mut open, 20), None);
        assert_eq!(generation(&mut open, 9), None);
        let left = [
            leased(1, &[(10, 4), (17, 3), (40, 2)]),
            leased(2, &[(16, 1)]),
        ];
        let mut list = open.list();
        list.sort_by_key(|l| l.order);
        assert_eq!(list, left);
    }
}
