//! The seam for durability (design, section 5): whoever makes redo records and
//! at-rest pages is told of every change to what outlives a session.

use crate::{PartitionKey, Scalar};
use contract::Fid;

/// Is told of changes, under the lock of the partition that changes.
pub trait Journal: Send + Sync {
    /// A partition got its number.
    fn opened(&self, _number: u32, _key: &PartitionKey) {}
    /// A partition and all its values are no more.
    fn dropped(&self, _number: u32) {}
    /// A value got its permanent FID.
    fn promoted(&self, _fid: Fid, _value: &Scalar<'_>) {}
    /// A permanent FID is free again.
    fn freed(&self, _fid: Fid) {}
}

/// Keeps no journal: values last as long as the keeper runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoJournal;

impl Journal for NoJournal {}
