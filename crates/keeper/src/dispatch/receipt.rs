//! `LedgerReceipt`: what the session's last committed transaction has written into ledger tables,
//! signed for its client (crate `ledger`, `receipt`).
//!
//! The database reports that a transaction has committed (`LedgerEnd`); from then on the keeper
//! never treats its entries as rolled back. If the database later undoes what it reported as
//! committed, the holder of the receipt can detect that.
//!
//! Invariant: a receipt is issued once, to the client that wrote, and only for entries of a
//! transaction that was reported to the keeper as committed.

use super::Connection;
use super::doings::Committed;
use super::signed::now;
use crate::fail::{self, Failure};
use crate::logs::Group;
use contract::{TypeCode, answer, body};
use ledger::checkpoint::Checkpoint;
use ledger::receipt::{ENTRIES_MAX, Proven, Receipt, Written};
use ledger::result::NONCE_MAX;
use ledger::tree;
use std::collections::BTreeMap;
use store::Entry;
use values::{Error, Value};

fn none() -> Failure {
    Error::new(b"55000", "confide: there is no transaction for a receipt")
        .detail("No transaction of this session has changed a ledger table and committed since the last receipt.")
        .into()
}

impl Connection {
    pub(super) fn ledger_receipt(&mut self, body: body::LedgerReceipt) -> Result<(), Failure> {
        let client = self.client.clone().ok_or_else(fail::no_client)?;
        let nonce = match self.space.value(body.nonce, Some(TypeCode::Bytea))? {
            Some(Value::Bytea(bytes)) if bytes.len() <= NONCE_MAX => bytes.to_vec(),
            _ => return Err(fail::unsigned("The nonce is none, or too long.").into()),
        };
        let written = self.take_committed();
        let Some(Committed { principal, groups }) = written else {
            return Err(none());
        };
        if principal != client.name {
            return Err(none());
        }
        let entries: u64 = groups.iter().map(|(_, group)| group.count).sum();
        if entries > ENTRIES_MAX as u64 {
            let error = Error::new(b"54000", "confide: the receipt would be too long")
                .detail(format!("The transaction made {entries} entries."))
                .hint("Prove versions with confide.ledger_inclusion, or write fewer in a transaction.");
            return Err(error.into());
        }
        let mut by_log: BTreeMap<u32, Vec<Group>> = BTreeMap::new();
        for (log, group) in groups {
            by_log.entry(log).or_default().push(group);
        }
        let logs = by_log.into_iter().map(|(log, of)| self.written(log, &of));
        let receipt = Receipt {
            time: now(),
            nonce,
            principal,
            logs: logs.collect::<Result<_, _>>()?,
        };
        let text = receipt.sign(&self.keeper.keys.signing);
        let text = text.map_err(|e| fail::internal("signing failed").detail(e.to_string()))?;
        self.answer(&answer::LedgerReceipt { entries });
        let label = self.operands(&[body.nonce])?.label;
        let entry = Entry::Value(Value::Text(text.into_bytes().into()));
        self.space.set(body.to, entry, label)?;
        Ok(())
    }

    /// Entries of one log, with a proof for the state of the log after the last of them, which is
    /// in the WAL.
    fn written(&self, log: u32, groups: &[Group]) -> Result<Written, Failure> {
        let origin = self.ledger_origin(log)?;
        let store = &self.keeper.store;
        let range = |_| fail::internal("a log has not what was written");
        Ok(self.with_log(log, |log| {
            let ends = groups.iter().map(|group| group.first + group.count);
            let size = ends.max().unwrap_or(0);
            let mut entries = Vec::new();
            for index in groups.iter().flat_map(|g| g.first..g.first + g.count) {
                let proof = tree::prove_inclusion(&log.tree, index, size).map_err(range)?;
                entries.push(Proven {
                    index,
                    entry: log.bytes(store, index)?,
                    path: proof.path,
                });
            }
            let root = tree::root(&log.tree, size).map_err(range)?;
            let log = Checkpoint { origin, size, root };
            Ok(Written { log, entries })
        })?)
    }
}
