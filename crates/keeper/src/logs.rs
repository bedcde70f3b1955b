//! The logs of ledger tables (docs/ledger.md; crate `ledger`): which entries there are, which
//! row versions they are about, and the tree over them.
//!
//! An entry is a value of a partition of its own, in the slot of its number. So it comes into
//! the WAL, into checkpoints, backups and standbys as any value does. Here is what follows from the
//! entries; it is computed when a log is first used, and kept.
//!
//! Not here: what a client may do, and messages (`dispatch::ledger`,
//! `dispatch::entries`).
//!
//! Invariants: an entry that is in a log stays as it is; the entries of a log have no gap;
//! a version that has ended ends once more only if the first end was rolled back, or may have been.

mod admit;
mod ended;
mod logged;
mod versions;

use crate::fail;
use contract::{Fid, TypeCode};
pub use ended::End;
use ended::Ended;
use ledger::Hash;
use ledger::entry::{Entry, Kind};
use ledger::tree::Tree;
use logged::Logged;
use redo::Promotion;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use store::{Scalar, Store};
use values::{Error, Value};
pub use versions::Version;
use versions::Versions;

/// All logs that have been used since the keeper's start.
#[derive(Default)]
pub struct Logs(Mutex<All>);

#[derive(Default)]
struct All {
    logs: HashMap<u32, Log>,
    ended: Ended,
    /// How many times entries may have been lost on their way to the WAL.
    losses: u64,
}

/// What a transaction does to a row version.
pub struct Doing {
    /// [`Kind::Write`], [`Kind::End`], [`Kind::Erase`] or [`Kind::Restore`].
    pub kind: Kind,
    /// Number of the version.
    pub sn: u64,
    /// The version that it replaces, or 0.
    pub other: u64,
    /// When.
    pub time: i64,
    /// Hash of the version.
    pub row: Hash,
}

/// Consecutive entries of one transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    /// Number of the first.
    pub first: u64,
    /// How many there are.
    pub count: u64,
}

/// Groups by their first entries, with their lengths.
type Groups = BTreeMap<u64, u64>;

/// The log of one table.
pub struct Log {
    partition: u32,
    /// Over all entries.
    pub tree: Tree,
    /// The table's schema and name, with a point between them.
    pub names: String,
    /// When it began.
    pub began: i64,
    /// How many logs of tables of this name there were before.
    pub before: u64,
    /// Row versions by number.
    pub versions: Versions,
    /// Versions in doubt whose numbers were given again: their numbers and entries.
    pub replaced: Vec<(u64, u64)>,
    /// None of them has a greater number.
    greatest: u64,
    sealed: i64,
    /// Groups that may be running.
    open: Groups,
    void: Groups,
    doubt: Groups,
    /// Ends of groups that no entry says yet.
    notes: Vec<(Kind, Group)>,
    logged: Logged,
    /// Memory for the bytes of an entry.
    scratch: Vec<u8>,
    /// Read while the keeper followed: whose groups are open the primary knows.
    followed: bool,
}

fn among(groups: &Groups, index: u64) -> bool {
    let before = groups.range(..=index).next_back();
    before.is_some_and(|(first, count)| index - first < *count)
}

fn broken() -> Error {
    Error::new(b"XX001", "confide: the log of a ledger table is broken")
        .detail("An entry is missing or cannot be read.")
        .hint("Redo records may have been left out of the WAL: restore keeper and cluster from a backup.")
}

impl Logs {
    fn lock(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets somebody see a log as it is now.
    pub fn with<T>(
        &self,
        store: &Store,
        partition: u32,
        follows: bool,
        act: impl FnOnce(&mut Log) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let All {
            logs,
            ended,
            losses,
        } = &mut *self.lock();
        let log = logs.entry(partition).or_insert_with(|| Log::new(partition));
        log.catch_up(store, follows, ended)?;
        log.logged.heard_of(*losses);
        act(log)
    }

    /// Entries that were made may not have come into the WAL, of whichever logs.
    pub fn lost(&self) {
        self.lock().losses += 1;
    }

    /// The logs that were used since the keeper's start.
    pub fn used(&self) -> Vec<u32> {
        self.lock().logs.keys().copied().collect()
    }

    /// How a group ended; `None`: nobody has said.
    pub fn settle(&self, store: &Store, partition: u32, group: Group, committed: Option<bool>) {
        let All { logs, ended, .. } = &mut *self.lock();
        if let Some(log) = logs.get_mut(&partition) {
            log.settle(store, group, committed);
        }
        if committed == Some(true) {
            ended.add((partition, group.first + group.count));
        }
    }

    /// Transactions that have ended, as a checkpoint says.
    pub fn have_ended(&self, ends: &[End]) {
        let ended = &mut self.lock().ended;
        ends.iter().for_each(|end| ended.add(*end));
    }

    /// The WAL has a record of a transaction, with entries of logs.
    pub fn record(&self, transaction: u32, ends: Vec<End>) {
        self.lock().ended.record(transaction, ends);
    }

    /// The WAL says that a transaction has committed.
    pub fn committed(&self, transaction: u32) {
        self.lock().ended.committed(transaction);
    }

    /// The position of a checkpoint is going to be taken.
    pub fn take_ends(&self) {
        self.lock().ended.take();
    }

    /// The ends that the checkpoint has.
    pub fn taken_ends(&self) -> Vec<End> {
        self.lock().ended.taken().to_vec()
    }
}

impl Log {
    fn new(partition: u32) -> Log {
        Log {
            partition,
            tree: Tree::new(),
            names: String::new(),
            began: 0,
            before: 0,
            versions: Versions::default(),
            replaced: Vec::new(),
            greatest: 0,
            sealed: i64::MIN,
            open: Groups::new(),
            void: Groups::new(),
            doubt: Groups::new(),
            notes: Vec::new(),
            logged: Logged::default(),
            scratch: Vec::new(),
            followed: false,
        }
    }

    /// Number of entries.
    pub fn size(&self) -> u64 {
        self.tree.size()
    }

    /// Its partition.
    pub fn partition(&self) -> u32 {
        self.partition
    }

    /// Number of entries that no crash takes away. At a standby that is all of them.
    pub fn kept(&self) -> u64 {
        self.logged.kept().min(self.size())
    }

    /// Number of entries before the first whose transaction may be running, or that may be lost.
    pub fn settled(&self) -> u64 {
        self.running().min(self.kept())
    }

    /// The bytes of an entry.
    pub fn bytes(&self, store: &Store, index: u64) -> Result<Vec<u8>, Error> {
        let partition = store.get(self.partition).ok_or_else(store::unresolved)?;
        match partition.read().value(index) {
            Ok(Value::Bytea(bytes)) => Ok(bytes.to_vec()),
            Ok(_) => Err(broken()),
            Err(error) => Err(broken().detail(error.message.into_owned())),
        }
    }

    /// An entry.
    pub fn entry(&self, store: &Store, index: u64) -> Result<Entry, Error> {
        Entry::decode(&self.bytes(store, index)?).map_err(|_| broken())
    }

    /// Takes in entries that have come since: at the start all, at a standby those of the
    /// primary.
    fn catch_up(&mut self, store: &Store, follows: bool, ended: &Ended) -> Result<(), Error> {
        let partition = store.get(self.partition).ok_or_else(store::unresolved)?;
        let there = partition.live().ok_or_else(store::unresolved)?;
        if there < self.size() {
            return Err(broken());
        }
        let fresh = there > self.size();
        let mut settled = 0;
        while self.size() < there {
            let bytes = self.bytes(store, self.size())?;
            let entry = Entry::decode(&bytes).map_err(|_| broken())?;
            settled = settled.max(entry.settled);
            self.append(store, &bytes, &entry)?;
        }
        if fresh {
            self.open.retain(|first, _| *first >= settled);
            self.logged.found(settled, there);
            self.followed = follows;
        }
        if fresh || self.followed {
            for next in ended.of(self.partition).filter(|next| *next <= there) {
                self.has_committed(store, next)?;
            }
        }
        // What was open when the keeper stopped, nobody will say any more.
        if (fresh || self.followed) && !follows {
            self.followed = false;
            for (first, count) in std::mem::take(&mut self.open) {
                self.doubt.insert(first, count);
                self.notes.push((Kind::Doubt, Group { first, count }));
            }
        }
        Ok(())
    }

    /// A transaction that committed has made the last entry before this one.
    fn has_committed(&mut self, store: &Store, next: u64) -> Result<(), Error> {
        if self.open.is_empty() && next <= self.logged.certain() {
            return Ok(());
        }
        let last = next.checked_sub(1).ok_or_else(broken)?;
        let entry = self.entry(store, last)?;
        self.open.remove(&entry.group);
        self.logged.on_disk(next);
        Ok(())
    }

    /// Takes in one entry.
    fn append(&mut self, store: &Store, bytes: &[u8], entry: &Entry) -> Result<(), Error> {
        let index = self.size();
        self.tree.push(Entry::leaf(bytes));
        self.sealed = self.sealed.max(entry.sealed);
        let end = |version: &mut Version| version.ended = Some(index);
        match entry.kind {
            Kind::Begin => {
                self.names.clone_from(&entry.names);
                self.began = entry.time;
                self.before = entry.other;
                return Ok(());
            }
            Kind::Write => {
                self.add(entry.sn, index, None);
                self.versions.change(entry.other, end);
            }
            Kind::Restore => self.add(entry.sn, index, Some(index)),
            Kind::End => self.versions.change(entry.sn, end),
            Kind::Erase => {
                let erase = |version: &mut Version| version.erased = Some(index);
                self.versions.change(entry.sn, erase);
            }
            Kind::Void => {
                self.open.remove(&entry.sn);
                return self.undo(store, entry.sn, entry.other);
            }
            Kind::Doubt => {
                self.open.remove(&entry.sn);
                self.doubt.insert(entry.sn, entry.other);
                return Ok(());
            }
        }
        *self.open.entry(entry.group).or_default() += 1;
        Ok(())
    }

    /// How a group ended. Holds at once, for the transaction that comes next; the entry that says
    /// so is made with those of that one.
    fn settle(&mut self, store: &Store, group: Group, committed: Option<bool>) {
        self.open.remove(&group.first);
        match committed {
            Some(true) => self.logged.on_disk(group.first + group.count),
            Some(false) => {
                // An error comes again with the entry.
                let _ = self.undo(store, group.first, group.count);
                self.notes.push((Kind::Void, group));
            }
            None => {
                self.doubt.insert(group.first, group.count);
                self.notes.push((Kind::Doubt, group));
            }
        }
    }

    fn add(&mut self, sn: u64, index: u64, ended: Option<u64>) {
        let version = Version {
            index,
            ended,
            erased: None,
        };
        self.greatest = self.greatest.max(sn);
        let before = self.versions.insert(sn, version);
        let in_doubt = before.filter(|before| self.is_doubtful(before.index));
        self.replaced
            .extend(in_doubt.map(|before| (sn, before.index)));
    }

    /// A group was rolled back.
    fn undo(&mut self, store: &Store, first: u64, count: u64) -> Result<(), Error> {
        self.void.insert(first, count);
        for index in first..first.saturating_add(count).min(self.size()) {
            let entry = self.entry(store, index)?;
            let of = match entry.kind {
                Kind::Write => entry.other,
                _ => entry.sn,
            };
            self.versions.change(of, |version| match entry.kind {
                Kind::Erase if version.erased == Some(index) => version.erased = None,
                Kind::Erase => {}
                _ if version.ended == Some(index) => version.ended = None,
                _ => {}
            });
        }
        Ok(())
    }

    /// The least number of a version that was written by this entry or later.
    pub fn first_since(&self, entry: u64) -> u64 {
        if entry == 0 {
            return 0;
        }
        let later = self.versions.iter().filter(|(_, v)| v.index >= entry);
        later.map(|(sn, _)| sn).next().unwrap_or(u64::MAX)
    }

    /// Whether an entry's transaction was rolled back.
    pub fn is_void(&self, index: u64) -> bool {
        among(&self.void, index)
    }

    /// Whether nobody has said how an entry's transaction ended.
    pub fn is_doubtful(&self, index: u64) -> bool {
        among(&self.doubt, index)
    }

    /// Whether an entry's transaction may be running.
    pub fn is_open(&self, index: u64) -> bool {
        among(&self.open, index)
    }

    /// Whether the log is the one of a table of this name; a new one is anybody's.
    pub fn is_of(&self, names: &str) -> bool {
        self.size() == 0 || self.names == names
    }

    /// Adds entries to what must come into the WAL that may be missing there, at most so many.
    /// Returns how many.
    pub fn log_again(
        &mut self,
        store: &Store,
        most: u64,
        made: &mut Promotion,
    ) -> Result<u64, Error> {
        let again = self.logged.again(self.size(), most);
        for index in again.clone() {
            self.note(index, &self.bytes(store, index)?, made);
        }
        Ok(again.end - again.start)
    }

    /// Makes entries of what a transaction did, behind those that are due; adds them to what must
    /// come into the WAL together. Nothing is left to be logged again ([`Log::log_again`]). `names`
    /// and `before` are for the first entry of all. An error leaves a group that was rolled back.
    pub fn seal<'d>(
        &mut self,
        store: &Store,
        doings: impl Iterator<Item = &'d Doing>,
        by: &Author<'_>,
        made: &mut Promotion,
    ) -> Result<Group, Error> {
        self.sealed = self.sealed.max(by.now);
        if self.size() == 0 {
            let entry = Entry {
                names: by.names.to_owned(),
                ..self.blank(Kind::Begin, 0, by.before, by)
            };
            self.put(store, &entry, made)?;
        }
        for (kind, group) in std::mem::take(&mut self.notes) {
            let entry = self.blank(kind, group.first, group.count, by);
            self.put(store, &entry, made)?;
        }
        let begun = by.group.filter(|g| g.first + g.count == self.size());
        let mut group = begun.unwrap_or(Group {
            first: self.size(),
            count: 0,
        });
        let mut entry = self.blank(Kind::Write, 0, 0, by);
        entry.group = group.first;
        for doing in doings {
            entry.kind = doing.kind;
            entry.settled = self.certain();
            entry.sn = doing.sn;
            entry.other = doing.other;
            entry.time = doing.time;
            entry.row = doing.row;
            if let Err(error) = self.put(store, &entry, made) {
                self.settle(store, group, Some(false));
                return Err(error);
            }
            group.count += 1;
        }
        Ok(group)
    }

    /// The first entry whose transaction may be running; without any, the next one.
    fn running(&self) -> u64 {
        let open = self.open.keys().next().copied();
        open.map_or(self.size(), |open| open.min(self.size()))
    }

    /// All before this one have ended, and are in the WAL on disk.
    fn certain(&self) -> u64 {
        self.running().min(self.logged.certain())
    }

    fn blank(&self, kind: Kind, sn: u64, other: u64, by: &Author<'_>) -> Entry {
        Entry {
            kind,
            group: self.size(),
            settled: self.certain(),
            sn,
            other,
            time: by.now,
            sealed: self.sealed,
            principal: by.principal.to_owned(),
            names: String::new(),
            row: Hash([0; 32]),
        }
    }

    /// Adds an entry to what must come into the WAL.
    fn note(&self, index: u64, bytes: &[u8], made: &mut Promotion) {
        let fid = Fid::new(self.partition, index);
        made.push(fid.0, TypeCode::Bytea as u8, bytes);
    }

    fn put(&mut self, store: &Store, entry: &Entry, made: &mut Promotion) -> Result<(), Error> {
        let index = self.size();
        let mut bytes = std::mem::take(&mut self.scratch);
        entry.encode_over(&mut bytes);
        let value = Scalar::Bytes(&bytes);
        let fid = store.promote(self.partition, TypeCode::Bytea, &value)?;
        // Slots are given in order, and none is ever freed.
        if fid.slot() != index {
            return Err(fail::internal("a log has a gap"));
        }
        self.append(store, &bytes, entry)?;
        self.note(index, &bytes, made);
        self.scratch = bytes;
        Ok(())
    }
}

/// Who makes entries, and what the first one says.
pub struct Author<'a> {
    /// The client.
    pub principal: &'a str,
    /// The keeper's time.
    pub now: i64,
    /// Schema and name of the table.
    pub names: &'a str,
    /// How many logs of this name there were before.
    pub before: u64,
    /// The group of the same transaction that is continued.
    pub group: Option<Group>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What may still be undone, or may be lost with the WAL's tail, is not settled.
    #[test]
    fn settled() {
        let mut log = Log::new(1);
        (0..9).for_each(|leaf| log.tree.push(Hash([leaf; 32])));
        assert_eq!(log.settled(), 0);
        log.logged.on_disk(8);
        assert_eq!(log.settled(), 8);
        log.open.insert(6, 2);
        assert_eq!(log.settled(), 6);
        log.logged.on_disk(9);
        assert_eq!(log.settled(), 6);
        log.open.clear();
        assert_eq!(log.settled(), 9);
    }
}
