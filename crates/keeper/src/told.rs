//! What was disclosed of each column, and to whom: accounts by principal and column, preserved
//! across restarts.
//!
//! A session counts by the labels of the values that it discloses (`provenance`), so that
//! disclosing a temporary value counts for each column that it was computed from. These tallies are
//! added to the accounts on request, periodically, and when a session ends.
//!
//! Authorisation is in `dispatch::authorise`. Values returned from the database's own memory
//! (`delivery`) were counted when they were sealed.
//!
//! Invariants: once collected, numbers are not lost while the keeper runs; a number never
//! decreases.

use crate::fail;
use crate::limits::Budget;
pub use crate::limits::{Counts, KINDS, Told};
use crate::provenance::{Origin, UNNAMED};
use crate::sealed_file::SealedFile;
use crate::used::OfBudget;
use grant::Column;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{ColumnId, Label};
use values::Error;
use zeroize::Zeroizing;

/// File in the data directory.
pub const FILE: &str = "accounts";
/// The principal if there is no client.
pub const NOBODY: &str = "-";
/// Start of the line with the number of the last reservation.
const NUMBER: &str = "\u{2}";
/// A budget is used in this many portions, each of which is recorded before it is used.
const PIECES: u64 = 16;
/// Additional accounts are merged into the account of nobody for the unnamed column.
const ACCOUNTS_MAX: usize = 65_536;
/// Number of labels that a session counts separately; the others count for an unnamed column.
const LABELS_MAX: usize = 1024;

fn unnamed() -> Column {
    Column::new("", "", "")
}

fn add(to: &mut Counts, more: &Counts) {
    for (to, more) in to.iter_mut().zip(more) {
        *to = to.saturating_add(*more);
    }
}

/// What was disclosed of values with one label since the last collection. Its users often keep a
/// reference to it.
#[derive(Debug, Default)]
pub struct Tally([AtomicU64; KINDS.len()]);

impl Tally {
    /// Adds a number of rows.
    #[inline]
    pub fn add(&self, what: Told, rows: u64) {
        if let Some(count) = self.0.get(what as usize) {
            count.fetch_add(rows, Ordering::Relaxed);
        }
    }

    fn take(&self) -> Counts {
        self.0
            .each_ref()
            .map(|count| count.swap(0, Ordering::Relaxed))
    }
}

/// What a session has disclosed since its tallies were last collected.
#[derive(Debug)]
pub struct Tallies {
    principal: Arc<str>,
    labels: HashMap<Label, Arc<Tally>>,
}

impl Default for Tallies {
    fn default() -> Tallies {
        Tallies {
            principal: Arc::from(NOBODY),
            labels: HashMap::new(),
        }
    }
}

impl Tallies {
    /// From now on counts for this client.
    pub fn begin(&mut self, principal: &str) {
        self.principal = Arc::from(principal);
    }

    /// Returns the tally of a label; if there are too many, that of the unknown label.
    pub fn of(&mut self, label: Label) -> Arc<Tally> {
        let full = self.labels.len() >= LABELS_MAX && !self.labels.contains_key(&label);
        let label = if full {
            crate::provenance::UNKNOWN
        } else {
            label
        };
        Arc::clone(self.labels.entry(label).or_default())
    }

    /// Returns the tallies and resets them. Tallies that are referenced elsewhere are kept.
    pub fn take(&mut self) -> (Arc<str>, Vec<(Label, Counts)>) {
        let mut taken = Vec::new();
        self.labels.retain(|label, tally| {
            // Check first: nobody can add to a tally that is no longer referenced.
            let kept = Arc::get_mut(tally).is_none();
            let counts = tally.take();
            if counts != Counts::default() {
                taken.push((*label, counts));
            }
            kept
        });
        (Arc::clone(&self.principal), taken)
    }
}

/// An account.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Account {
    /// Total disclosed so far.
    told: Counts,
    /// The budget to which `spent` applies, and how much of it is used.
    epoch: u64,
    spent: Counts,
    /// The amount recorded as used: a keeper that is killed continues from there.
    reserved: Counts,
    /// The amount that the WAL shall have: with a further portion, which is used before the WAL has
    /// the next.
    ahead: Counts,
}

/// A disclosure about to be made, to be checked against a budget.
pub struct Spending<'a> {
    /// To whom.
    pub principal: &'a Arc<str>,
    /// The column.
    pub column: ColumnId,
    /// Its budget.
    pub budget: Budget,
    /// The kind of disclosure.
    pub what: Told,
    /// Number of rows.
    pub rows: u64,
}

/// Result of checking a budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spent {
    /// It is within the budget.
    Within,
    /// It is within the budget, and a further portion was reserved, with this number.
    Reserved(u64),
    /// It exceeds the budget for the first time, but is allowed.
    Noted(u64),
    /// It would exceed the budget.
    Beyond,
}

type Key = (Arc<str>, ColumnId);

#[derive(Default)]
struct Inner {
    accounts: HashMap<Key, Account>,
    names: HashMap<ColumnId, Column>,
    changed: bool,
    /// Number of the last reservation.
    number: u64,
    /// Number of the last reservation since the keeper started; the WAL has them up to some number.
    last: u64,
}

/// An account as returned by [`Accounts::list`].
pub struct Entry {
    /// The principal.
    pub principal: Arc<str>,
    /// The column.
    pub column: ColumnId,
    /// Name of the column; empty if unknown.
    pub name: Column,
    /// What was disclosed.
    pub told: Counts,
}

/// All accounts.
pub struct Accounts {
    file: SealedFile,
    inner: Mutex<Inner>,
}

impl Accounts {
    /// Opens the accounts of a keeper with this data directory.
    pub fn open(directory: &Path, root: &Zeroizing<[u8; 32]>) -> Result<Accounts, String> {
        let file = SealedFile::new(directory, FILE, root);
        let plain = file.read()?;
        let text = std::str::from_utf8(&plain).map_err(|_| file.altered())?;
        let mut inner = Inner::default();
        for line in text.split_terminator('\u{1}') {
            if let Some(number) = line.strip_prefix(NUMBER) {
                inner.number = number.parse().map_err(|_| file.altered())?;
                continue;
            }
            let (key, account, name) = read(line).ok_or_else(|| file.altered())?;
            if name != unnamed() {
                inner.names.insert(key.1, name);
            }
            inner.last = inner.last.max(u64::from(account.epoch > 0));
            inner.accounts.insert(key, account);
        }
        Ok(Accounts {
            file,
            inner: Mutex::new(inner),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what was disclosed to a principal about values of this origin; `name` returns the names
    /// of columns.
    pub fn enter(
        &self,
        principal: &Arc<str>,
        (origin, counts): (&Origin, &Counts),
        name: impl Fn(&ColumnId) -> Option<Column>,
    ) {
        let mut inner = self.lock();
        let unnamed = (origin.others & UNNAMED != 0).then(ColumnId::default);
        for column in origin.columns.iter().copied().chain(unnamed) {
            let mut key = (Arc::clone(principal), column);
            if inner.accounts.len() >= ACCOUNTS_MAX && !inner.accounts.contains_key(&key) {
                key = (Arc::from(NOBODY), ColumnId::default());
            }
            if !inner.names.contains_key(&key.1)
                && let Some(name) = name(&key.1)
            {
                inner.names.insert(key.1, name);
            }
            add(&mut inner.accounts.entry(key).or_default().told, counts);
            inner.changed = true;
        }
    }

    /// Checks the file against the reservation number in the audit log (0 if none). | | # Errors |
    /// The file is older than that.
    pub fn goes_on(&self, known: u64) -> Result<(), String> {
        let number = self.lock().number;
        match number < known {
            true => Err(format!(
                "what was told of columns (\"{FILE}\") is older than the audit log: reservation {number} of \
                 {known}. Put the newest copy of the file back, or say that it is lost: --accept-backup"
            )),
            false => Ok(()),
        }
    }

    /// Uses part of a budget. The amount is recorded as used before anything is disclosed.
    pub fn spend(&self, wanted: &Spending<'_>) -> Result<Spent, Error> {
        let mut inner = self.lock();
        let at = wanted.what as usize;
        let limit = wanted.budget.limit(wanted.what).unwrap_or(u64::MAX);
        let key = (Arc::clone(wanted.principal), wanted.column);
        if inner.accounts.len() >= ACCOUNTS_MAX && !inner.accounts.contains_key(&key) {
            return Ok(Spent::Beyond);
        }
        let account = inner.accounts.entry(key).or_default();
        if account.epoch != wanted.budget.epoch {
            account.epoch = wanted.budget.epoch;
            (account.spent, account.reserved) = (Counts::default(), Counts::default());
            account.ahead = Counts::default();
        }
        let (Some(spent), Some(reserved)) =
            (account.spent.get_mut(at), account.reserved.get_mut(at))
        else {
            return Ok(Spent::Within);
        };
        let (before, next) = (*spent, spent.saturating_add(wanted.rows));
        if next > limit && wanted.budget.refuses() {
            return Ok(Spent::Beyond);
        }
        *spent = next;
        // Exceeding the budget has already been logged, or the amount is already reserved.
        if before > limit || next <= *reserved {
            return Ok(Spent::Within);
        }
        *reserved = next.saturating_add(limit / PIECES).min(limit).max(next);
        let ahead = reserved.saturating_add(limit / PIECES);
        if let Some(all) = account.ahead.get_mut(at) {
            *all = ahead.min(limit).max(*reserved);
        }
        inner.last += 1;
        inner.number += 1;
        inner.changed = true;
        let number = inner.number;
        drop(inner);
        self.save()?;
        Ok(match next > limit {
            true => Spent::Noted(number),
            false => Spent::Reserved(number),
        })
    }

    /// The number of the last reservation since the keeper started; 1 at least if there was one before.
    pub fn last(&self) -> u64 {
        self.lock().last
    }

    /// What the WAL shall have of each budget.
    pub fn reserved(&self) -> Vec<OfBudget> {
        let inner = self.lock();
        let each = inner.accounts.iter().filter(|(_, a)| a.epoch > 0);
        let each = each.map(|((principal, column), account)| OfBudget {
            principal: principal.to_string(),
            column: *column,
            epoch: account.epoch,
            amounts: account.ahead,
        });
        each.collect()
    }

    /// Takes in what was reserved at the primary.
    pub fn hear(&self, heard: &[OfBudget]) -> Result<(), Error> {
        let mut inner = self.lock();
        inner.last += 1;
        for one in heard {
            let key = (Arc::from(one.principal.as_str()), one.column);
            if inner.accounts.len() >= ACCOUNTS_MAX && !inner.accounts.contains_key(&key) {
                continue;
            }
            let account = inner.accounts.entry(key).or_default();
            if account.epoch > one.epoch {
                continue;
            }
            if account.epoch < one.epoch {
                account.epoch = one.epoch;
                account.reserved = Counts::default();
            }
            for (own, amount) in account.reserved.iter_mut().zip(one.amounts) {
                *own = amount.max(*own);
            }
            (account.spent, account.ahead) = (account.reserved, account.reserved);
            inner.changed = true;
        }
        drop(inner);
        self.save()
    }

    /// Returns all accounts.
    pub fn list(&self) -> Vec<Entry> {
        let inner = self.lock();
        let each = inner.accounts.iter();
        each.map(|((who, column), account)| Entry {
            principal: Arc::clone(who),
            column: *column,
            name: inner.names.get(column).cloned().unwrap_or_else(unnamed),
            told: account.told,
        })
        .collect()
    }

    /// Writes the accounts to the file if anything has changed.
    pub fn save(&self) -> Result<(), Error> {
        let text = {
            let mut inner = self.lock();
            if !std::mem::take(&mut inner.changed) {
                return Ok(());
            }
            let unnamed = unnamed();
            let name = |key: &Key| inner.names.get(&key.1).unwrap_or(&unnamed);
            let each = inner.accounts.iter();
            let lines = each.map(|(key, account)| write(key, account, name(key)));
            let text = format!("{NUMBER}{}\u{1}", inner.number);
            text + &lines.collect::<String>()
        };
        self.file.write(text.as_bytes()).map_err(|what| {
            self.lock().changed = true;
            tracing::error!("cannot write what was told: {what}");
            fail::internal("the keeper cannot write its accounts")
        })
    }
}

/// Formats a line: principal, column and its names, counts; each ends with a zero byte.
fn write((principal, column): &Key, account: &Account, name: &Column) -> String {
    let hex = column.iter().map(|byte| format!("{byte:02x}"));
    let mut fields = vec![
        principal.to_string(),
        hex.collect(),
        name.schema.clone(),
        name.relation.clone(),
        name.column.clone(),
    ];
    fields.extend(account.told.iter().map(u64::to_string));
    fields.push(account.epoch.to_string());
    fields.extend(account.reserved.iter().map(u64::to_string));
    fields.join("\0") + "\u{1}"
}

fn read(line: &str) -> Option<(Key, Account, Column)> {
    let mut fields = line.split('\0');
    let (principal, hex) = (fields.next()?, fields.next()?);
    let mut column = ColumnId::default();
    if hex.len() != 2 * column.len() {
        return None;
    }
    for (at, byte) in column.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    let name = Column::new(fields.next()?, fields.next()?, fields.next()?);
    let mut account = Account::default();
    for count in &mut account.told {
        *count = fields.next()?.parse().ok()?;
    }
    // Files from keepers without budgets end here.
    if let Some(epoch) = fields.next() {
        account.epoch = epoch.parse().ok()?;
        for count in &mut account.reserved {
            *count = fields.next()?.parse().ok()?;
        }
        (account.spent, account.ahead) = (account.reserved, account.reserved);
    }
    let read = ((Arc::from(principal), column), account, name);
    fields.next().is_none().then_some(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each column that a value was computed from is charged. The bug this guards against:
    /// disclosing a sum of two columns counts for only one of them, or none.
    #[test]
    fn every_column() -> Result<(), String> {
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let root = Zeroizing::new([1; 32]);
        let open = || Accounts::open(dir.path(), &root);
        let accounts = open()?;
        let (a, b) = ([1; 16], [2; 16]);
        let both = Origin {
            others: 0,
            columns: vec![a, b],
        };
        let ann: Arc<str> = Arc::from("ann");
        let names = |id: &ColumnId| (*id == b).then(|| Column::new("s", "t", "b"));
        accounts.enter(&ann, (&both, &[1, 2, 3, 4, 5]), names);
        let one = Origin {
            others: UNNAMED,
            columns: vec![b],
        };
        accounts.enter(&ann, (&one, &[1, 0, 0, 0, 0]), names);
        accounts.enter(&Arc::from(NOBODY), (&one, &[0, 7, 0, 0, 0]), names);
        let found = |accounts: &Accounts| {
            let mut all = accounts.list();
            all.sort_by_key(|entry| (entry.principal.to_string(), entry.column));
            let each = all.into_iter();
            each.map(|entry| (entry.principal.to_string(), entry.name.column, entry.told))
                .collect::<Vec<_>>()
        };
        let expected = [
            ("-".to_owned(), String::new(), [0, 7, 0, 0, 0]),
            ("-".to_owned(), "b".to_owned(), [0, 7, 0, 0, 0]),
            ("ann".to_owned(), String::new(), [1, 0, 0, 0, 0]),
            ("ann".to_owned(), String::new(), [1, 2, 3, 4, 5]),
            ("ann".to_owned(), "b".to_owned(), [2, 2, 3, 4, 5]),
        ];
        assert_eq!(found(&accounts), expected);
        accounts.save().map_err(|e| e.message.into_owned())?;
        assert_eq!(found(&open()?), expected);
        Ok(())
    }

    /// A budget is enforced exactly, for each principal separately. A keeper that is killed returns
    /// nothing of it, an older copy of the file is rejected, and a new budget starts at zero.
    #[test]
    fn budgets() -> Result<(), String> {
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let root = Zeroizing::new([1; 32]);
        let open = || Accounts::open(dir.path(), &root);
        let (ann, bob): (Arc<str>, Arc<str>) = (Arc::from("ann"), Arc::from("bob"));
        let budget = |text, epoch| Budget::read(text, epoch).ok_or("no budget");
        let spend = |accounts: &Accounts, principal, budget, rows| {
            let spent = accounts.spend(&Spending {
                principal,
                column: [1; 16],
                budget,
                what: Told::Orders,
                rows,
            });
            spent.map_err(|e| e.message.into_owned())
        };
        let accounts = open()?;
        let hundred = budget("orders=100", 1)?;
        let mut used = 0;
        while spend(&accounts, &ann, hundred, 1)? != Spent::Beyond {
            used += 1;
        }
        assert_eq!(used, 100);
        assert_eq!(spend(&accounts, &bob, hundred, 101)?, Spent::Beyond);
        assert_eq!(spend(&accounts, &bob, hundred, 10)?, Spent::Reserved(16));
        assert_eq!(spend(&accounts, &bob, hundred, 6)?, Spent::Within);
        let accounts = open()?;
        assert_eq!(spend(&accounts, &ann, hundred, 1)?, Spent::Beyond);
        // The reserved amount counts, although less of it was used.
        assert_eq!(spend(&accounts, &bob, hundred, 85)?, Spent::Beyond);
        assert!(accounts.goes_on(16).is_ok() && accounts.goes_on(17).is_err());
        assert_eq!(
            spend(&accounts, &ann, budget("orders=100", 2)?, 1)?,
            Spent::Reserved(17)
        );
        let noted = budget("orders=2,then=note", 3)?;
        assert_eq!(spend(&accounts, &ann, noted, 3)?, Spent::Noted(18));
        assert_eq!(spend(&accounts, &ann, noted, 3)?, Spent::Within);
        Ok(())
    }

    /// Tallies are separate for each label, whatever the order in which labels occur.
    #[test]
    fn tallies() {
        let mut tallies = Tallies::default();
        for label in [7, 7, 8, 7, 9, 8] {
            tallies.of(label).add(Told::Orders, 2);
        }
        tallies.begin("ann");
        let (who, mut found) = tallies.take();
        found.sort_unstable();
        assert_eq!(&*who, "ann");
        let of = |label, count| (label, [0, count, 0, 0, 0]);
        assert_eq!(found, [of(7, 6), of(8, 4), of(9, 2)]);
        assert!(tallies.take().1.is_empty());
        for label in 0..5000 {
            tallies.of(label).add(Told::Shown, 1);
        }
        let (_, found) = tallies.take();
        assert!(found.len() <= LABELS_MAX + 1);
        let sum: u64 = found.iter().map(|(_, counts)| counts[4]).sum();
        assert_eq!(sum, 5000);
    }

    /// Additions to a tally that is referenced elsewhere are collected later: if the first
    /// collection dropped it, later disclosures would be missing from the accounts.
    #[test]
    fn kept_tallies() {
        let mut tallies = Tallies::default();
        let kept = tallies.of(7);
        kept.add(Told::Tokens, 1);
        assert_eq!(tallies.take().1, [(7, [0, 0, 0, 1, 0])]);
        kept.add(Told::Tokens, 2);
        tallies.of(7).add(Told::Tokens, 3);
        assert_eq!(tallies.take().1, [(7, [0, 0, 0, 5, 0])]);
        assert!(tallies.take().1.is_empty());
        kept.add(Told::Shown, 1);
        drop(kept);
        assert_eq!(tallies.take().1, [(7, [0, 0, 0, 0, 1])]);
        assert!(tallies.labels.is_empty());
    }
}
