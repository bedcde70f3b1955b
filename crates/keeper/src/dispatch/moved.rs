//! `LedgerMove`: protected values of a row version that goes to the history, under FIDs of the
//! history's columns that the channel has leased. No statement waits for them: their redo record
//! comes with the transaction's entries (`LedgerSeal`), so it is in the WAL before the commit.
//!
//! Values are taken as a promotion takes them, by the same checks.
//!
//! Invariants: a version whose values were not moved gets no entry, so its transaction cannot
//! commit; what was rolled back to a savepoint is not logged, since its FIDs may have been freed,
//! and given to other values, meanwhile.

use super::Connection;
use super::columns::{RECORD_BYTES, Source};
use crate::fail::{self, Failure};
use contract::message::table::Moved;
use contract::{Fid, body};
use redo::Promotion;
use store::Scalar;

/// The moved values of a transaction that are not logged yet.
#[derive(Default)]
pub(super) struct Values(Vec<(usize, Fid)>);

impl Values {
    /// The rows from this one on were rolled back.
    pub fn back_to(&mut self, row: usize) {
        let kept = self.0.partition_point(|(of, _)| *of < row);
        self.0.truncate(kept);
    }

    /// Whether all were logged.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Connection {
    pub(super) fn ledger_move(&mut self, body: body::LedgerMove<'_>) -> Result<(), Failure> {
        let row = self.ledger.last_row();
        let row = row.ok_or_else(|| fail::malformed("Values of no row are moved."))?;
        let done = self.may_write().and_then(|()| {
            body.moved
                .iter()
                .try_for_each(|one| self.move_one(row, one))
        });
        if done.is_err() {
            // Whoever seals the rows finds that one is missing, even if the error is forgotten.
            self.ledger.back_to(row);
        }
        done
    }

    fn move_one(&mut self, row: usize, Moved { source, into }: Moved) -> Result<(), Failure> {
        let Source::Moves(partition, value) = self.promote_one(source, into.partition())? else {
            return Err(fail::malformed("A value is not moved to another column.").into());
        };
        let store = &self.keeper.store;
        let (t, value) = (value.type_code(), Scalar::of(&value));
        if !self.has_leased(into) || !store.fill(into, t, &value)? {
            return Err(fail::malformed("The identifier is not leased.").into());
        }
        debug_assert_eq!(partition, into.partition());
        self.ledger.moved.0.push((row, into));
        Ok(())
    }

    /// Adds values to a redo record, as far as it has room.
    pub(super) fn log_moved(&mut self, log: &mut Promotion) -> Result<(), Failure> {
        let moved = std::mem::take(&mut self.ledger.moved.0);
        let mut left = moved.into_iter();
        while log.len() < RECORD_BYTES
            && let Some((_, fid)) = left.next()
        {
            let value = self.space.value(fid, None)?;
            let value = value.ok_or_else(store::unresolved)?;
            self.note(log, fid, &value);
        }
        self.ledger.moved.0 = left.collect();
        Ok(())
    }
}
