//! Who may do what (design, section 10).
//!
//! Without a client session a backend may take in and give out export envelopes,
//! promote them, manage partitions, and compare permanent FIDs within one column:
//! enough for dump, restore, index builds and ANALYZE. No constants, no
//! arithmetic: nothing to smuggle with.

use super::Connection;
use crate::fail;
use crate::program::Operation;
use contract::Fid;
use values::Error;

impl Connection {
    /// Everything that computes needs a client session.
    #[inline]
    pub(super) fn need_client(&self) -> Result<(), Error> {
        match self.client {
            Some(_) => Ok(()),
            None => Err(fail::no_client()),
        }
    }

    /// Whether an operation on these operands (column by column) may be
    /// declassified.
    #[inline]
    pub(super) fn may_declassify(&self, operation: &Operation, fids: &[Fid]) -> Result<(), Error> {
        if self.client.is_some() || (operation.is_comparison() && within_one_column(fids)) {
            return Ok(());
        }
        Err(fail::no_client())
    }
}

/// Whether all FIDs that are not NULL are permanent and of one partition.
pub(super) fn within_one_column(fids: &[Fid]) -> bool {
    let mut named = fids.iter().filter(|fid| **fid != Fid::INVALID);
    let Some(first) = named.next() else {
        return true;
    };
    !first.is_temporary() && named.all(|fid| fid.partition() == first.partition())
}
