//! Permissions (design, section 10).
//!
//! Without a client session, a backend may import and obtain export envelopes, promote their values
//! where they belong (`belonging`), manage partitions, and compare permanent FIDs within one column
//! (with `index_order_only`, only columns that a client has an index on, or that a restore ticket
//! covers). That suffices for dump, restore, index builds and ANALYZE. There are no constants and
//! no arithmetic, not even through a type modifier: a value rounded by `numeric(9,-4)` or cut by
//! `varchar(1)` would be a constant, or a digit, to compare others with.

use super::Connection;
use crate::fail::{self, Ended};
use crate::signatures::Operation;
use contract::{Fid, Kind};
use values::{Error, Value};

impl Connection {
    /// Requests that a session still answers after it has ended: those that end it in order, or
    /// start another one.
    #[inline]
    pub(super) fn may_go_on(&self, kind: Kind) -> Result<(), Error> {
        match self.ended {
            None => Ok(()),
            Some(ended) => may_follow(ended, kind),
        }
    }

    /// Every computation needs a client session.
    #[inline]
    pub(super) fn need_client(&self) -> Result<(), Error> {
        match self.client {
            Some(_) => Ok(()),
            None => Err(fail::no_client()),
        }
    }

    /// Whether the result of an operation on these operands (column by column) may be declassified.
    #[inline]
    pub(super) fn may_declassify(&self, operation: &Operation, fids: &[Fid]) -> Result<(), Error> {
        match self.client {
            Some(_) => Ok(()),
            None => self.may_declassify_alone(operation, fids),
        }
    }

    #[cold]
    fn may_declassify_alone(&self, operation: &Operation, fids: &[Fid]) -> Result<(), Error> {
        let named = fids.iter().find(|fid| **fid != Fid::INVALID);
        match operation.is_comparison() && within_one_column(fids) {
            true => named.map_or(Ok(()), |fid| self.may_order(fid.partition())),
            false => Err(fail::no_client()),
        }
    }

    /// Whether values of a column may be compared with each other without a client.
    pub(super) fn may_order(&self, partition: u32) -> Result<(), Error> {
        let keeper = &self.keeper;
        let indexed = || keeper.store.get(partition).is_some_and(|p| p.is_indexed());
        match !keeper.config.index_order_only || indexed() || self.restores(partition) {
            true => Ok(()),
            false => Err(fail::no_client_to_compare()),
        }
    }

    /// Whether a value may enter a column whose modifier changes it to `fitted`.
    pub(super) fn may_fit(&self, value: &Value, fitted: &Value) -> Result<(), Error> {
        let same = match (value, fitted) {
            // A different scale or number of blanks does not matter to any operator.
            (Value::Numeric(_), Value::Numeric(_)) | (Value::Bpchar(_), Value::Bpchar(_)) => {
                values::compare(value, fitted, &self.env)?.is_eq()
            }
            _ => values::encode_binary(value) == values::encode_binary(fitted),
        };
        if same || self.client.is_some() {
            return Ok(());
        }
        Err(fail::no_client_to_change())
    }
}

#[cold]
fn may_follow(ended: Ended, kind: Kind) -> Result<(), Error> {
    use Kind::{Announce, Clock, Fence, Forget, Grant, Handshake, LedgerTable, Ping};
    use Kind::{Release, Settings, Stats, Withdraw};
    match ended {
        _ if matches!(kind, Ping | Fence | Release | Forget) => Ok(()),
        // What is told once for a channel counts for the next client.
        _ if matches!(kind, Settings | Clock | LedgerTable) => Ok(()),
        // A channel that joins is told why the session has ended.
        _ if matches!(kind, Announce | Withdraw) => Ok(()),
        Ended::LeaseOver if matches!(kind, Grant) => Ok(()),
        Ended::KeyWithdrawn | Ended::LeaseOver | Ended::Left
            if matches!(kind, Handshake | Stats) =>
        {
            Ok(())
        }
        _ => Err(fail::ended(ended)),
    }
}

/// Whether all FIDs other than NULL are permanent and of one partition.
pub(super) fn within_one_column(fids: &[Fid]) -> bool {
    let mut named = fids.iter().filter(|fid| **fid != Fid::INVALID);
    let Some(first) = named.next() else {
        return true;
    };
    !first.is_temporary() && named.all(|fid| fid.partition() == first.partition())
}
