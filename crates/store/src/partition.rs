//! One protected column of one table. Readers run in parallel; a writer is alone.
//!
//! Invariants: a slot that is taken holds a value of the layout's type; a slot
//! that is free holds zeros; what is charged to the budget goes back when the
//! partition is dropped.

use crate::budget::{Account, Budget};
use crate::data::{self, Data};
use crate::error;
use crate::layout::{Layout, PartitionKey};
use crate::lock;
use crate::occupancy::Occupancy;
use crate::scalar::Scalar;
use contract::{Fid, OpResult, TypeCode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard};
use values::{Error, Value};

/// A column's values, or an unused number.
pub struct Partition {
    number: u32,
    inner: RwLock<Option<Inner>>,
    revealed: [AtomicU64; 3],
}

struct Inner {
    key: PartitionKey,
    t: TypeCode,
    data: Data,
    taken: Occupancy,
    account: Account,
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
        }
    }

    /// Begins to be the partition of a column.
    pub(crate) fn open(&self, key: PartitionKey, budget: &Arc<Budget>) {
        for counter in &self.revealed {
            counter.store(0, Ordering::Relaxed);
        }
        *lock::write(&self.inner) = Some(Inner {
            key,
            t: key.layout.stored_type(),
            data: Data::new(key.layout),
            taken: Occupancy::default(),
            account: Account::new(Arc::clone(budget)),
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

    /// Holds the partition still to read from it. Take no other lock meanwhile.
    #[inline]
    pub fn read(&self) -> Reader<'_> {
        Reader {
            number: self.number,
            guard: lock::read(&self.inner),
        }
    }

    /// Copies a value into the lowest free slot. `note` is called with the FID
    /// before anybody else can see it.
    pub fn put(&self, value: &Scalar<'_>, note: impl FnOnce(Fid)) -> Result<Fid, Error> {
        let mut guard = lock::write(&self.inner);
        let inner = guard.as_mut().ok_or_else(error::unresolved)?;
        let slot = inner.taken.next();
        inner.data.put(slot, value, &mut inner.account)?;
        inner.taken.take(slot);
        let fid = Fid::new(self.number, slot);
        note(fid);
        Ok(fid)
    }

    /// Frees a slot. False if nothing was in it.
    pub fn free(&self, slot: u64, note: impl FnOnce(Fid)) -> bool {
        let mut guard = lock::write(&self.inner);
        let Some(inner) = guard.as_mut() else {
            return false;
        };
        if !inner.taken.free(slot) {
            return false;
        }
        inner.data.clear(slot, &mut inner.account);
        note(Fid::new(self.number, slot));
        true
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
            bytes: inner.account.charged(),
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

/// A partition held still. All FIDs given to it must be of its partition.
pub struct Reader<'a> {
    number: u32,
    guard: RwLockReadGuard<'a, Option<Inner>>,
}

impl Reader<'_> {
    /// Type of the values, as stored; `None` if there is no such partition.
    #[inline]
    pub fn stored_type(&self) -> Option<TypeCode> {
        self.guard.as_ref().map(|inner| inner.t)
    }

    /// Layout of the values.
    pub fn layout(&self) -> Option<Layout> {
        self.guard.as_ref().map(|inner| inner.key.layout)
    }

    /// The value in a slot, and its type.
    #[inline]
    pub fn get(&self, slot: u64) -> Option<(TypeCode, Scalar<'_>)> {
        let inner = self.guard.as_ref().filter(|i| i.taken.has(slot))?;
        Some((inner.t, inner.data.get(slot)))
    }

    /// The value in a slot, as a value.
    pub fn value(&self, slot: u64) -> Result<Value, Error> {
        let inner = self.guard.as_ref().filter(|i| i.taken.has(slot));
        let inner = inner.ok_or_else(error::unresolved)?;
        data::to_value(&inner.data.get(slot), inner.key.layout)
    }

    /// Appends the values under the FIDs as whole numbers where the layout has
    /// them (of 10^-scale in a scaled one without side entries): false, and
    /// nothing appended, where it has not. `missing` gets the indexes of FIDs that
    /// name nothing.
    #[inline]
    pub fn ints(&self, fids: &[Fid], out: &mut Vec<i64>, missing: &mut Vec<u32>) -> bool {
        debug_assert!(fids.iter().all(|fid| fid.partition() == self.number));
        let inner = self.guard.as_ref();
        inner.is_some_and(|i| i.data.ints(fids, &i.taken, out, missing))
    }

    /// As [`Reader::ints`], for floats.
    #[inline]
    pub fn floats(&self, fids: &[Fid], out: &mut Vec<f64>, missing: &mut Vec<u32>) -> bool {
        let inner = self.guard.as_ref();
        inner.is_some_and(|i| i.data.floats(fids, &i.taken, out, missing))
    }
}
