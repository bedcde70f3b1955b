//! Row versions of ledger tables: their hashes, and those that come from a dump.
//!
//! Protected values are hashed under a key of the keeper's and with the version's number, so that
//! nobody finds them out by hashing guesses.
//!
//! Invariant: the same version has the same hash whenever it is read; a version from a dump comes
//! into a log only with a ticket, and never as one that was written here.

use super::Connection;
use super::ledger::SKEW;
use super::signed::now;
use crate::fail::{self, Failure};
use crate::logs::Doing;
use aws_lc_rs::hmac;
use contract::message::table::LedgerCell;
use contract::{Fid, TypeCode, body};
use ledger::Hash;
use ledger::entry::Kind;
use ledger::row::{Column, RowVersion};
use store::Scalar;
use values::Error;

/// What is before the bytes of a value: in which form it is.
const PLAIN: u8 = 0;
const HASHED: u8 = 1;
const PROTECTED: u8 = 2;

impl Connection {
    /// A version of a dump's history: with a ticket, and with an end that has been.
    pub(super) fn restored(&self, body: &body::LedgerRow<'_>) -> Result<Doing, Failure> {
        if !self.has_ticket() {
            return Err(fail::no_exports().into());
        }
        let ended = body.time <= body.until && body.until <= now().saturating_add(SKEW);
        if body.sn == 0 || !ended {
            return Err(
                Error::new(b"22008", "confide: a version of a history has not ended")
                    .detail("It ends before it begins, or in the future.")
                    .into(),
            );
        }
        Ok(Doing {
            kind: Kind::Restore,
            sn: body.sn,
            other: 0,
            time: body.until,
            row: self.ledger_hash(body, true)?,
        })
    }

    /// The hash of a row version; of one that was restored also over its end.
    pub(super) fn ledger_hash(
        &self,
        body: &body::LedgerRow<'_>,
        with_end: bool,
    ) -> Result<Hash, Failure> {
        let cells: Vec<LedgerCell<'_>> = body.cells.iter().collect();
        let mut values = Vec::with_capacity(cells.len());
        for cell in &cells {
            values.push(match cell.t {
                Some(t) => self.ledger_value(cell.fid, t, body.sn)?,
                None => {
                    let form = if cell.hashed == 0 { PLAIN } else { HASHED };
                    [&[form], cell.bytes].concat()
                }
            });
        }
        let columns = cells.iter().zip(&values);
        let until = [&[PLAIN], body.until.to_le_bytes().as_slice()].concat();
        let ended_by = [&[PLAIN], body.ended_by.as_bytes()].concat();
        let end = [("valid_to", &until), ("ended_by", &ended_by)];
        let end = end.iter().filter(|_| with_end).map(|(name, value)| Column {
            name,
            type_name: "",
            value: Some(value),
        });
        let columns: Vec<Column<'_>> = columns
            .map(|(cell, value)| Column {
                name: cell.name,
                type_name: cell.type_name,
                value: Some(value),
            })
            .chain(end)
            .collect();
        let version = RowVersion {
            schema: body.schema,
            table: body.table,
            sn: body.sn,
            valid_from: body.time,
            principal: body.principal,
            columns: &columns,
        };
        Ok(version.leaf())
    }

    /// What stands for a protected value in a version's hash.
    fn ledger_value(&self, fid: Fid, t: TypeCode, sn: u64) -> Result<Vec<u8>, Failure> {
        let value = self.space.value(fid, Some(t.stored()))?;
        let value = value.ok_or_else(store::unresolved)?;
        let mut plain = zeroize::Zeroizing::new(Vec::new());
        store::encode(&Scalar::of(&value), value.type_code(), &mut plain);
        let mut context = hmac::Context::with_key(&self.keeper.keys.ledger);
        context.update(&sn.to_le_bytes());
        context.update(&[value.type_code() as u8]);
        context.update(&plain);
        Ok([&[PROTECTED], context.sign().as_ref()].concat())
    }
}
