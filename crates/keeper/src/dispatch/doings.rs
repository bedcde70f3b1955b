//! What a transaction does to ledger tables, as the channel has said it so far.
//!
//! Invariant: what was rolled back to a savepoint is not in it.

use super::ledger::Walk;
use super::moved;
use crate::logs::{Doing, Group};
use std::collections::BTreeMap;
use values::Error;

/// A row's table is looked for among so many that were written to last.
const TABLES_SEEN: usize = 16;

/// What a channel does with ledger tables.
#[derive(Default)]
pub(super) struct Doings {
    /// What the transaction did so far: to which of `tables`, and what.
    pub pending: Vec<(usize, Doing)>,
    /// Logs, and the names of their tables.
    pub tables: Vec<(u32, String)>,
    /// Values of versions that went to histories.
    pub moved: moved::Values,
    /// The time of the first of it that did not come from a dump.
    pub began: Option<i64>,
    /// The groups that were made of it, and that nobody has said the end of.
    pub sealed: Vec<(u32, Group)>,
    /// A walk over a table.
    pub walk: Option<Walk>,
    /// What the last transaction made that committed, until there is a receipt for it.
    pub committed: Option<Committed>,
}

/// Entries of a transaction that committed.
pub(super) struct Committed {
    /// Who wrote.
    pub principal: String,
    /// Logs, and entries of them.
    pub groups: Vec<(u32, Group)>,
}

impl Doings {
    /// Whether nobody has said yet how the transaction ended.
    pub fn awaited(&self) -> bool {
        !self.sealed.is_empty()
    }

    /// The row that was told last.
    pub fn last_row(&self) -> Option<usize> {
        self.pending.len().checked_sub(1)
    }

    /// The rows from this one on were rolled back.
    pub fn back_to(&mut self, row: usize) {
        self.pending.truncate(row);
        self.moved.back_to(row);
        if row == 0 {
            self.began = None;
            self.tables.clear();
        }
    }

    /// Where a table is in the list, which may have it more than once.
    pub fn table(&mut self, log: u32, names: &str) -> usize {
        let late = self.tables.len().saturating_sub(TABLES_SEEN);
        let mut seen = self.tables.iter().enumerate().skip(late).rev();
        if let Some((at, _)) = seen.find(|(_, (known, other))| *known == log && other == names) {
            return at;
        }
        self.tables.push((log, names.to_owned()));
        self.tables.len() - 1
    }
}

/// What happened, by log, with the names of the log's table. Fails if a log has two.
pub(super) fn by_log<D>(
    tables: &[(u32, String)],
    doings: impl Iterator<Item = (usize, D)>,
) -> Result<BTreeMap<u32, (&str, Vec<D>)>, Error> {
    let mut found: BTreeMap<u32, (&str, Vec<D>)> = BTreeMap::new();
    for (table, doing) in doings {
        let (log, names) = tables.get(table).ok_or_else(renamed)?;
        let of = found.entry(*log).or_insert_with(|| (names, Vec::new()));
        if of.0 != names {
            return Err(renamed());
        }
        of.1.push(doing);
    }
    Ok(found)
}

pub(super) fn renamed() -> Error {
    Error::new(
        b"55000",
        "confide: a ledger table has another name than its log",
    )
    .hint("Give it back the name that it was made with.")
}
