//! `LedgerRow`, `LedgerWho`: what transactions do to ledger tables (`entries`: how it becomes
//! entries). `LedgerCheck`, `LedgerReport`: a walk over a table, and what it found. `LedgerProve`:
//! checkpoints and proofs.
//!
//! The database says which rows there are; the keeper knows what was said before (`logs`), who the
//! client is, and the values (`versions`).
//!
//! Invariants: without a client nothing is written; a report says what its walk has seen, and
//! nothing leaves a finding out.

use super::Connection;
use super::doings::Row;
use super::signed::now;
use crate::fail::{self, Failure};
use crate::logs::{Doing, Log};
use crate::published;
use contract::message::ledger::{
    CHECKPOINT, CONSISTENCY, CURRENT, END, ERASE, INCLUSION, PAST, RESTORE, SHOWN, WRITE,
};
use contract::{TypeCode, answer, body};
use ledger::checkpoint::Checkpoint;
use ledger::entry::Kind;
use ledger::report::{FINDINGS_MAX, Finding, Report, What};
use ledger::result::NONCE_MAX;
use ledger::{Hash, tree};
use std::collections::HashSet;
use std::fmt::Write;
use store::{Entry, PartitionKey};
use values::{Error, Value};

/// A transaction may do so much to ledger tables.
const DOINGS_MAX: usize = 1 << 22;
/// The database's clock may differ by so many microseconds from the keeper's.
pub(super) const SKEW: i64 = 60_000_000;

/// A walk over a table.
pub(super) struct Walk {
    log: u32,
    size: u64,
    /// So many entries the report signs: those that no crash takes away.
    kept: u64,
    /// Versions before this entry may come without their columns.
    since: u64,
    seen: HashSet<u64>,
    /// Entries whose transactions were running when it began.
    running: HashSet<u64>,
    versions: u64,
    /// Of them: came from a dump.
    restored: u64,
    findings: Vec<Finding>,
    more: u64,
}

impl Walk {
    fn found(&mut self, sn: u64, what: What) {
        match self.findings.len() < FINDINGS_MAX {
            true => self.findings.push(Finding { sn, what }),
            false => self.more += 1,
        }
    }
}

fn not_begun() -> Failure {
    Error::new(b"55000", "confide: no walk over a ledger table has begun").into()
}

impl Connection {
    /// The key of a log's partition.
    pub(super) fn log_key(&self, log: u32) -> Result<PartitionKey, Failure> {
        let key = self.keeper.store.get(log).and_then(|p| p.key());
        let key = key.filter(PartitionKey::is_log);
        key.ok_or_else(|| fail::malformed("The partition is not a log.").into())
    }

    pub(super) fn with_log<T>(
        &self,
        log: u32,
        act: impl FnOnce(&mut Log) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let keeper = &self.keeper;
        let follows = keeper.durable.as_ref().is_some_and(|d| d.follows());
        keeper.logs.with(&keeper.store, log, follows, act)
    }

    pub(super) fn ledger_row(&mut self, body: body::LedgerRow<'_>) -> Result<(), Failure> {
        self.log_key(body.log)?;
        self.check_described(&body)?;
        if [CURRENT, PAST].contains(&body.what) {
            return self.ledger_seen(&body);
        }
        if body.what == SHOWN {
            return self.ledger_shown(&body);
        }
        let at = usize::try_from(body.number).unwrap_or(usize::MAX);
        if at > self.ledger.pending.len() {
            return Err(fail::malformed("A row of the transaction is missing.").into());
        }
        self.ledger.back_to(at);
        let doing = self.ledger_doing(&body)?;
        if at >= DOINGS_MAX {
            let error = Error::new(b"54000", "confide: too many changes of ledger tables")
                .hint("Change fewer rows in one transaction.");
            return Err(error.into());
        }
        if doing.kind != Kind::Restore {
            self.ledger.began.get_or_insert(doing.time);
        }
        let of = self.described.of(&body)?;
        let table = self.ledger.table(body.log, &of.names);
        self.ledger.pending.push(Row { table, doing });
        Ok(())
    }

    /// What the client does, if it may.
    fn ledger_doing(&self, body: &body::LedgerRow<'_>) -> Result<Doing, Failure> {
        self.may_write()?;
        let client = self.client.as_ref().ok_or_else(fail::no_client)?;
        let kind = match body.what {
            WRITE => Kind::Write,
            END => Kind::End,
            ERASE => Kind::Erase,
            RESTORE => Kind::Restore,
            _ => return Err(fail::malformed("It is not known what happened to a row.").into()),
        };
        if kind == Kind::Restore {
            return self.restored(body);
        }
        if client.name != body.principal || body.sn == 0 {
            return Err(fail::malformed("A row version has no such author, or no number.").into());
        }
        let now = now();
        // A long transaction has the time of its first change.
        let from = self.ledger.began.unwrap_or(now);
        if body.time < from.saturating_sub(SKEW) || body.time > now.saturating_add(SKEW) {
            let error = Error::new(
                b"22008",
                "confide: the clocks of database and keeper differ",
            )
            .detail("Row versions of ledger tables carry the time; the keeper compares it.")
            .hint("Set the clocks right.");
            return Err(error.into());
        }
        let row = match kind {
            Kind::Write => self.ledger_hash(body, false)?,
            _ => Hash([0; 32]),
        };
        Ok(Doing {
            kind,
            sn: body.sn,
            other: body.other,
            time: body.time,
            row,
        })
    }

    pub(super) fn ledger_who(&mut self) -> Result<(), Failure> {
        let client = self.client.clone().ok_or_else(fail::no_client)?;
        self.answer(&answer::LedgerWho { name: &client.name });
        Ok(())
    }

    pub(super) fn ledger_check(&mut self, body: body::LedgerCheck<'_>) -> Result<(), Failure> {
        self.need_client()?;
        self.log_key(body.log)?;
        // Else what the last transactions did could be taken away, as if they had not ended.
        self.keeper.ends.catch_up()?;
        let names = format!("{}.{}", body.schema, body.table);
        let mut walk = self.with_log(body.log, |log| {
            let mut walk = Walk {
                log: body.log,
                size: log.size(),
                kept: log.kept(),
                since: body.since,
                seen: HashSet::new(),
                running: HashSet::new(),
                versions: 0,
                restored: 0,
                findings: Vec::new(),
                more: 0,
            };
            for (_, version) in log.versions.iter() {
                let entries = [Some(version.index), version.ended, version.erased];
                let open = entries.into_iter().flatten().filter(|e| log.is_open(*e));
                walk.running.extend(open);
            }
            if !log.is_of(&names) {
                walk.found(0, What::Renamed);
            }
            Ok(walk)
        })?;
        walk.seen.reserve(1024);
        let first = self.with_log(body.log, |log| Ok(log.first_since(body.since)))?;
        let size = walk.size;
        self.answer(&answer::LedgerCheck { size, first });
        self.ledger.walk = Some(walk);
        Ok(())
    }

    /// A row that the walk has come by.
    fn ledger_seen(&mut self, body: &body::LedgerRow<'_>) -> Result<(), Failure> {
        let mut walk = self.ledger.walk.take().ok_or_else(not_begun)?;
        if walk.log != body.log {
            return Err(not_begun());
        }
        let light = body.number == 1;
        let row = match light {
            true => None,
            false => Some(self.ledger_hash(body, false).ok()),
        };
        let store = &self.keeper.store;
        let found = self.with_log(body.log, |log| {
            let Some(version) = log.versions.get(body.sn) else {
                return Ok(Some(What::Inserted));
            };
            if !walk.seen.insert(body.sn) {
                return Ok(Some(What::Twice));
            }
            let written = log.entry(store, version.index)?;
            // A value that is not there any more is another one as well.
            let restored = written.kind == Kind::Restore;
            let known = light && version.index < walk.since;
            let compared = match &row {
                Some(_) if restored => self.ledger_hash(body, true).ok() == Some(written.row),
                Some(row) => *row == Some(written.row),
                None => false,
            };
            if !(compared || known) {
                return Ok(Some(What::Altered));
            }
            walk.restored += u64::from(restored);
            if log.is_void(version.index) {
                return Ok(Some(What::RolledBack));
            }
            let known = |entry: u64| {
                entry < walk.size && !walk.running.contains(&entry) && !log.is_doubtful(entry)
            };
            if version.erased.is_some_and(known) {
                return Ok(Some(What::Erased));
            }
            match (body.what, version.ended) {
                (CURRENT, Some(end)) if known(end) => Ok(Some(What::Revived)),
                (PAST, None) => Ok(Some(What::Hidden)),
                (PAST, Some(end)) => {
                    let end = log.entry(store, end)?;
                    let same = end.time == body.until && end.principal == body.ended_by;
                    // The end of a restored one is in its hash.
                    Ok((!same && !restored).then_some(What::AlteredEnd))
                }
                _ => Ok(None),
            }
        })?;
        match found {
            Some(what) => walk.found(body.sn, what),
            None => walk.versions += 1,
        }
        self.ledger.walk = Some(walk);
        Ok(())
    }

    pub(super) fn ledger_report(&mut self, body: body::LedgerReport) -> Result<(), Failure> {
        let client = self.client.clone().ok_or_else(fail::no_client)?;
        let mut walk = self.ledger.walk.take().ok_or_else(not_begun)?;
        let nonce = match self.space.value(body.nonce, Some(TypeCode::Bytea))? {
            Some(Value::Bytea(bytes)) if bytes.len() <= NONCE_MAX => bytes.to_vec(),
            _ => return Err(fail::unsigned("The nonce is none, or too long.").into()),
        };
        let origin = self.ledger_origin(walk.log)?;
        let report = self.with_log(walk.log, |log| {
            let (unconfirmed, erased) = missing(log, &mut walk);
            walk.findings.sort_unstable_by_key(|finding| finding.sn);
            let wanted = 1..=walk.kept;
            let proof = wanted.contains(&body.old).then(|| {
                let proof = tree::prove_consistency(&log.tree, body.old, walk.kept);
                proof.map_err(|_| fail::internal("a log has no such size"))
            });
            Ok(Report {
                log: origin,
                size: walk.kept,
                root: tree::root(&log.tree, walk.kept)
                    .map_err(|_| fail::internal("a log has no root"))?,
                time: now(),
                began: log.began,
                before: log.before,
                nonce,
                principal: client.name.clone(),
                versions: walk.versions,
                erased,
                restored: walk.restored,
                since: walk.since,
                unconfirmed,
                findings: std::mem::take(&mut walk.findings),
                more: walk.more,
                consistency: proof.transpose()?,
            })
        })?;
        self.answer(&answer::LedgerReport {
            findings: report.findings.len() as u64 + report.more,
            versions: report.versions,
        });
        let text = report.sign(&self.keeper.keys.signing);
        let text = text.map_err(|e| fail::internal("signing failed").detail(e.to_string()))?;
        let label = self.operands(&[body.nonce])?.label;
        let entry = Entry::Value(Value::Text(text.into_bytes().into()));
        self.space.set(body.to, entry, label)?;
        Ok(())
    }

    /// What checkpoints of a log are called: store, database, table's OID and name.
    pub(super) fn ledger_origin(&self, log: u32) -> Result<String, Failure> {
        let key = self.log_key(log)?;
        let names = self.with_log(log, |log| Ok(log.names.clone()))?;
        let store = self.keeper.durable.as_ref().map_or(0, |d| d.id());
        Ok(published::origin(store, key, &names))
    }

    pub(super) fn ledger_prove(&mut self, body: body::LedgerProve) -> Result<(), Failure> {
        self.need_client()?;
        let origin = self.ledger_origin(body.log)?;
        self.keeper.ends.catch_up()?;
        let store = &self.keeper.store;
        let key = &self.keeper.keys.signing;
        let text = self.with_log(body.log, |log| {
            let proven = log.versions.get(body.number);
            let proven = proven.filter(|_| body.what == INCLUSION);
            // No more than is asked for of what a crash may take away.
            let size = proven
                .map_or(0, |version| version.index + 1)
                .max(log.kept());
            let range = |_| Error::new(b"22023", "confide: the log has no such size");
            let checkpoint = Checkpoint {
                origin,
                size,
                root: tree::root(&log.tree, size).map_err(range)?,
            };
            let note = checkpoint.sign(key);
            let mut text =
                note.map_err(|e| fail::internal("signing failed").detail(e.to_string()))?;
            match body.what {
                CHECKPOINT => {}
                CONSISTENCY => {
                    let proof = tree::prove_consistency(&log.tree, body.number, size);
                    let proof = proof.map_err(range)?;
                    let _ = write!(text, "\nconsistency {}\n", body.number);
                    put_hashes(&mut text, &proof.path);
                }
                INCLUSION => {
                    let version = proven.ok_or_else(|| {
                        Error::new(b"02000", "confide: the log has no such version")
                    })?;
                    let proof = tree::prove_inclusion(&log.tree, version.index, size);
                    let proof = proof.map_err(range)?;
                    let entry = ledger::base64(&log.bytes(store, version.index)?);
                    let _ = write!(text, "\ninclusion {} {entry}\n", version.index);
                    put_hashes(&mut text, &proof.path);
                }
                _ => return Err(fail::malformed("There is no such proof.")),
            }
            Ok(text)
        })?;
        self.answer(&answer::LedgerProve {
            text: text.as_bytes(),
        });
        Ok(())
    }
}

fn put_hashes(text: &mut String, hashes: &[Hash]) {
    for hash in hashes {
        let _ = writeln!(text, "{}", ledger::base64(&hash.0));
    }
}

/// Finds the versions that the walk has not come by: those of which nobody knows whether they
/// were ever there, and how many were erased. A version in doubt is not there if another one has its
/// number, whatever the database says: who has a receipt for it must find out.
fn missing(log: &Log, walk: &mut Walk) -> (Vec<u64>, u64) {
    let (mut unconfirmed, mut removed, mut erased) = (Vec::new(), Vec::new(), 0);
    for (sn, version) in log.versions.iter() {
        let index = version.index;
        if index >= walk.size || walk.seen.contains(&sn) || walk.running.contains(&index) {
            continue;
        }
        match () {
            () if version.erased.is_some() => erased += 1,
            () if log.is_void(index) => {}
            () if log.is_doubtful(index) => unconfirmed.push(sn),
            () => removed.push(sn),
        }
    }
    let replaced = log.replaced.iter().filter(|(_, index)| *index < walk.size);
    unconfirmed.extend(replaced.map(|(sn, _)| *sn));
    removed.iter().for_each(|sn| walk.found(*sn, What::Removed));
    unconfirmed.sort_unstable();
    (unconfirmed, erased)
}
