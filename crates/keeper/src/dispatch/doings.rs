//! What a transaction does to ledger tables, as the channel has said it so far.
//!
//! Invariant: what was rolled back to a savepoint is not in it.

use super::ledger::Walk;
use super::moved;
use crate::logs::{Doing, Group};
use values::Error;

/// A row's table is looked for among so many that were written to last.
const TABLES_SEEN: usize = 16;

/// What happened to a row version.
pub(super) struct Row {
    /// Its table, by its place in [`Doings::tables`].
    pub table: usize,
    /// What it was.
    pub doing: Doing,
}

/// What a channel does with ledger tables.
#[derive(Default)]
pub(super) struct Doings {
    /// What the transaction did so far, of which nothing is an entry yet.
    pub pending: Vec<Row>,
    /// Logs that take their part of `pending`, and how many entries each had then.
    pub admitted: Vec<(u32, u64)>,
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
        self.admitted.clear();
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

/// Puts the rows of each log one after the other, in the order in which they were told.
pub(super) fn sort_by_log(tables: &[(u32, String)], rows: &mut [Row]) {
    rows.sort_by_key(|row| log_of(tables, row));
}

fn log_of(tables: &[(u32, String)], row: &Row) -> Option<u32> {
    tables.get(row.table).map(|(log, _)| *log)
}

/// Sorted rows by log, with the names of the log's table. Fails if a log has two.
pub(super) fn by_log<'a>(
    tables: &'a [(u32, String)],
    rows: &'a [Row],
) -> impl Iterator<Item = Result<(u32, &'a str, &'a [Row]), Error>> {
    rows.chunk_by(|row, next| log_of(tables, row) == log_of(tables, next))
        .map(|rows| {
            let mut named = rows.iter().map(|row| tables.get(row.table));
            let (log, names) = named.next().flatten().ok_or_else(renamed)?;
            match named.all(|other| other.is_some_and(|(_, other)| other == names)) {
                true => Ok((*log, names.as_str(), rows)),
                false => Err(renamed()),
            }
        })
}

pub(super) fn renamed() -> Error {
    Error::new(
        b"55000",
        "confide: a ledger table has another name than its log",
    )
    .hint("Give it back the name that it was made with.")
}
