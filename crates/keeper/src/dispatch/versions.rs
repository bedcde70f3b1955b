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
use contract::{Fid, TypeCode, body};
use ledger::Hash;
use ledger::entry::Kind;
use ledger::row::{Column, Form, RowVersion};
use store::Scalar;
use values::Error;

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
        let described = self.described.of(body)?;
        let mut hasher = self.hasher.take();
        hasher.begin(&RowVersion {
            schema: &described.schema,
            table: &described.table,
            sn: body.sn,
            valid_from: body.time,
            principal: body.principal,
            columns: &[],
        });
        for cell in body.cells.iter() {
            let column = described.column(cell.column)?;
            let mac;
            let (form, bytes) = match column.t {
                Some(t) => {
                    mac = self.ledger_mac(cell.fid, t, body.sn)?;
                    (Form::Protected, mac.as_ref())
                }
                None if cell.hashed == 0 => (Form::Plain, cell.bytes),
                None => (Form::Hashed, cell.bytes),
            };
            hasher.headed(&column.heading, form, bytes);
        }
        let until = body.until.to_le_bytes();
        let end = [
            ("valid_to", until.as_slice()),
            ("ended_by", body.ended_by.as_bytes()),
        ];
        for (name, bytes) in end.iter().filter(|_| with_end) {
            hasher.column(&Column {
                name: name.as_bytes(),
                type_name: b"",
                value: Some((Form::Plain, bytes)),
            });
        }
        let leaf = hasher.leaf();
        self.hasher.set(hasher);
        Ok(leaf)
    }

    /// What stands for a protected value in a version's hash.
    fn ledger_mac(&self, fid: Fid, t: TypeCode, sn: u64) -> Result<hmac::Tag, Failure> {
        let t = t.stored();
        let mut context = hmac::Context::with_key(&self.keeper.keys.ledger);
        context.update(&sn.to_le_bytes());
        context.update(&[t as u8]);
        // Texts are not copied, since they may be long.
        let text = self.space.look(fid, t, |scalar| match scalar {
            Scalar::Bytes(bytes) => {
                context.update(bytes);
                true
            }
            _ => false,
        })?;
        if !text.ok_or_else(store::unresolved)? {
            let value = self.space.value(fid, Some(t))?;
            let value = value.ok_or_else(store::unresolved)?;
            let mut plain = zeroize::Zeroizing::new(Vec::new());
            store::encode(&Scalar::of(&value), t, &mut plain);
            context.update(&plain);
        }
        Ok(context.sign())
    }
}
