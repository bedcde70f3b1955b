//! `LedgerSeal`, `LedgerEnd`: what a transaction did to ledger tables becomes entries of the tables'
//! logs, in one part or in several, and then valid or void.
//!
//! Invariants: a log admits all that becomes an entry, after all entries that others have made
//! before; a channel that says a commit has valid entries of all it has sent of the transaction, or
//! of nothing. (A keeper that was restarted knows commits from the WAL only, which has no such end.)

use super::Connection;
use super::doings::{Committed, Row, by_log, renamed, sort_by_log};
use super::signed::now;
use crate::fail::{self, Failure};
use crate::logs::{Author, Log};
use contract::codec::Each;
use contract::{answer, body};
use ledger::entry::Kind;
use redo::Promotion;

/// So many entries are made at once, so that no redo record gets long.
const SEAL_ROWS: usize = 16_384;
/// Bytes of most entries.
const ENTRY_BYTES: usize = 192;

impl Connection {
    pub(super) fn ledger_seal(&mut self, body: &body::LedgerSeal<'_>) -> Result<(), Failure> {
        self.need_client()?;
        self.may_write()?;
        if body.adopted == 1 {
            self.adopted_all()?;
        }
        if body.lost == 1 {
            self.keeper.logs.lost();
        }
        if body.count > 0 {
            // Of the transaction before nobody has said the end.
            self.ledger_gone();
            let count = usize::try_from(body.count).unwrap_or(usize::MAX);
            if self.ledger.pending.len() < count {
                return Err(fail::malformed("Rows of the transaction are missing.").into());
            }
            self.ledger.back_to(count);
            self.ledger_admit()?;
        }
        let rows = self.ledger.pending.len().min(SEAL_ROWS);
        let mut promotion = Promotion::with_capacity(rows * ENTRY_BYTES);
        self.log_moved(&mut promotion)?;
        // First the values, then the entries of the rows that have them.
        let room = match self.ledger.moved.is_empty() {
            true => SEAL_ROWS - self.ledger_log_again(&mut promotion)?,
            false => 0,
        };
        let count = rows.min(room);
        let more = u32::from(count < self.ledger.pending.len());
        self.ledger_make(count, &mut promotion)?;
        let record = match &self.keeper.durable {
            Some(durable) if !promotion.is_empty() => durable.log_promotion(promotion)?,
            _ => Vec::new(),
        };
        self.answer(&answer::LedgerSeal {
            more,
            length: u32::try_from(record.len()).unwrap_or(u32::MAX),
            record: &record,
            envelopes: Each::new(&[]),
        });
        self.deliver_adopted(body.period, body.wanted);
        Ok(())
    }

    /// Logs entries again that may be missing in the WAL, of the logs that get new ones. Returns
    /// how many there were, at most [`SEAL_ROWS`].
    fn ledger_log_again(&self, promotion: &mut Promotion) -> Result<usize, Failure> {
        let mut room = SEAL_ROWS as u64;
        for (log, _) in &self.ledger.tables {
            let store = &self.keeper.store;
            room -= self.with_log(*log, |log| log.log_again(store, room, promotion))?;
        }
        Ok(SEAL_ROWS - usize::try_from(room).unwrap_or(0))
    }

    /// Whether the logs take all of it. Sorts it by log.
    fn ledger_admit(&mut self) -> Result<(), Failure> {
        sort_by_log(&self.ledger.tables, &mut self.ledger.pending);
        for of_log in by_log(&self.ledger.tables, &self.ledger.pending) {
            let (number, names, rows) = of_log?;
            let size = self.with_log(number, |log| match log.is_of(names) {
                true => {
                    log.admit(rows.iter().map(|row| &row.doing))?;
                    Ok(log.size())
                }
                false => Err(renamed()),
            })?;
            self.ledger.admitted.push((number, size));
        }
        Ok(())
    }

    /// Makes entries of the first rows, which logs have admitted. Without success the transaction
    /// has none.
    fn ledger_make(&mut self, count: usize, promotion: &mut Promotion) -> Result<(), Failure> {
        let tables = std::mem::take(&mut self.ledger.tables);
        let mut rows = std::mem::take(&mut self.ledger.pending);
        let first = rows.get(..count).unwrap_or_default();
        let made = by_log(&tables, first).try_for_each(|of_log| {
            let (log, names, rows) = of_log?;
            self.ledger_make_of(log, names, rows, promotion)
        });
        if made.is_err() {
            self.ledger_settle(Some(false));
            return made;
        }
        rows.drain(..count);
        self.ledger.pending = rows;
        self.ledger.tables = tables;
        Ok(())
    }

    /// Makes entries of one log.
    fn ledger_make_of(
        &mut self,
        number: u32,
        names: &str,
        rows: &[Row],
        promotion: &mut Promotion,
    ) -> Result<(), Failure> {
        let doings = rows.iter().map(|row| &row.doing);
        let client = self.client.clone().ok_or_else(fail::no_client)?;
        let sealed = &self.ledger.sealed;
        let group = sealed.iter().rfind(|(log, _)| *log == number);
        let mut by = Author {
            principal: &client.name,
            now: now(),
            names,
            before: 0,
            group: group.map(|(_, group)| *group),
        };
        let of_log = |(log, _): &&mut (u32, u64)| *log == number;
        let mut admitted = std::mem::take(&mut self.ledger.admitted);
        let admitted_at = admitted.iter_mut().find(of_log);
        let unknown = || fail::malformed("The log has not admitted the rows.");
        let (_, size) = admitted_at.ok_or_else(unknown)?;
        let store = &self.keeper.store;
        let mut make = |by: &Author<'_>, log: &mut Log| {
            // If others have made entries since, nothing that was admitted then is any longer.
            let alone = log.size() == *size;
            if !alone {
                log.admit(doings.clone())?;
            }
            let group = log.seal(store, doings.clone(), by, promotion)?;
            if alone {
                *size = log.size();
            }
            Ok(group)
        };
        let made = self.with_log(number, |log| match log.size() {
            0 => Ok(None),
            _ => make(&by, log).map(Some),
        })?;
        let group = match made {
            Some(group) => group,
            None => {
                by.before = self.ledger_before(number, names)?;
                self.with_log(number, |log| make(&by, log))?
            }
        };
        self.ledger.admitted = admitted;
        let sealed = &mut self.ledger.sealed;
        sealed.retain(|(log, known)| (*log, known.first) != (number, group.first));
        sealed.push((number, group));
        if let Some(channel) = self.channel() {
            self.keeper.ends.join(channel);
        }
        let erased = doings.filter(|d| d.kind == Kind::Erase).count();
        self.note_erased(&client.name, names, erased)
    }

    fn note_erased(&self, who: &str, names: &str, count: usize) -> Result<(), Failure> {
        if count > 0 {
            let what = format!("{names}: {count} row versions");
            self.keeper.audit.note("erase", who, what)?;
            self.anchor()?;
        }
        Ok(())
    }

    /// How many logs of tables of this name there are besides.
    fn ledger_before(&self, number: u32, names: &str) -> Result<u64, Failure> {
        let database = self.log_key(number)?.database;
        let mut before = 0;
        for listed in self.keeper.store.list() {
            if listed.key.is_log() && listed.key.database == database && listed.number != number {
                let same =
                    self.with_log(
                        listed.number,
                        |log| Ok(log.size() > 0 && log.names == names),
                    );
                before += u64::from(same?);
            }
        }
        Ok(before)
    }

    /// Says how the transaction ended. Without entries of all its rows it has not committed.
    pub(super) fn ledger_end(&mut self, body: body::LedgerEnd) -> Result<(), Failure> {
        let whole = self.ledger.pending.is_empty();
        self.ledger_settle(Some(body.committed == 1 && whole));
        self.ledger.back_to(0);
        Ok(())
    }

    /// Nobody will say how the transaction ended.
    pub(super) fn ledger_gone(&mut self) {
        self.ledger_settle(None);
    }

    fn ledger_settle(&mut self, committed: Option<bool>) {
        let groups = std::mem::take(&mut self.ledger.sealed);
        if groups.is_empty() {
            return;
        }
        let keeper = &self.keeper;
        for (log, group) in &groups {
            keeper.logs.settle(&keeper.store, *log, *group, committed);
        }
        if let Some((channel, _)) = self.channel() {
            self.keeper.ends.leave(*channel);
        }
        let client = self.client.as_ref().filter(|_| committed == Some(true));
        self.ledger.committed = client.map(|client| Committed {
            principal: client.name.clone(),
            groups,
        });
    }

    /// What a receipt is for; once.
    pub(super) fn take_committed(&mut self) -> Option<Committed> {
        self.ledger.committed.take()
    }
}
