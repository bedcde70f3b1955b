//! The interface for durability (design, section 5): it reports every change to data that outlives
//! a session, for redo records and checkpoints.

use crate::{PartitionKey, Scalar};
use contract::Fid;

/// Receives changes, under the lock of the partition that changes.
pub trait Journal: Send + Sync {
    /// A partition was assigned its number.
    fn opened(&self, _number: u32, _key: &PartitionKey) {}
    /// A partition was dropped with all its values.
    fn dropped(&self, _number: u32) {}
    /// A value was assigned its permanent FID.
    fn promoted(&self, _fid: Fid, _value: &Scalar<'_>) {}
    /// A permanent FID was freed.
    fn freed(&self, _fid: Fid) {}
}

/// No journal: values live as long as the keeper.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoJournal;

impl Journal for NoJournal {}
