//! `LedgerRow`, `LedgerSeal`, `LedgerEnd`, `LedgerWho`: what transactions do to ledger tables
//! becomes entries of the tables' logs. `LedgerCheck`, `LedgerReport`: a walk over a table, and
//! what it found. `LedgerProve`: checkpoints and proofs.
//!
//! The database says which rows there are, and how a transaction ended; the keeper knows what
//! was said before (`logs`), who the client is, and the values (`versions`).
//!
//! Invariants: without a client nothing is written; what a channel has sent of a transaction
//! becomes entries whole or not at all; a report says what its walk has seen, and nothing
//! leaves a finding out.

use super::Connection;
use super::doings::{Committed, Row, by_log, renamed, sort_by_log};
use super::signed::now;
use crate::fail::{self, Failure};
use crate::logs::{Author, Doing, Log};
use crate::published;
use contract::codec::Each;
use contract::message::ledger::{
    CHECKPOINT, CONSISTENCY, CURRENT, END, ERASE, INCLUSION, PAST, RESTORE, SHOWN, WRITE,
};
use contract::{TypeCode, answer, body};
use ledger::checkpoint::Checkpoint;
use ledger::entry::Kind;
use ledger::report::{FINDINGS_MAX, Finding, Report, What};
use ledger::result::NONCE_MAX;
use ledger::{Hash, tree};
use redo::Promotion;
use std::collections::HashSet;
use std::fmt::Write;
use store::{Entry, PartitionKey};
use values::{Error, Value};

/// A transaction may do so much to ledger tables.
const DOINGS_MAX: usize = 1 << 22;
/// So many entries are made at once, so that no redo record gets long.
const SEAL_ROWS: usize = 16_384;
/// Bytes of most entries.
const ENTRY_BYTES: usize = 192;
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
        let (_, size) = admitted_at.ok_or_else(|| fail::malformed("Rows are not sealed."))?;
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
        if erased > 0 {
            let what = format!("{names}: {erased} row versions");
            self.keeper.audit.note("erase", &client.name, what)?;
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
