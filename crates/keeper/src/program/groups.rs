//! Which groups of rows pass: the pairs of a row of a semi or anti join.
//!
//! Invariant: a group is decided by its first row that is true, or that failed; rows after it
//! count for nothing, as where PostgreSQL, row by row, would not have come to them.

use super::column::Column;
use crate::fail::Failure;

/// Groups that are being decided, row after row.
pub struct Groups<'a> {
    /// Rows of those that are not decided yet.
    lengths: &'a [u32],
    /// Whether those pass that have no row that is true.
    none: bool,
    /// Groups that may still be told of to pass.
    wanted: usize,
    /// Rows of the first group that have been looked at.
    seen: u32,
    /// Whether one of them was true.
    found: bool,
    out: &'a mut Vec<u8>,
    /// How many are decided.
    pub done: usize,
    /// Why the next one failed.
    pub failed: Option<Failure>,
}

impl<'a> Groups<'a> {
    /// Groups of so many rows each, and where a boolean shall be appended for each of them, up to
    /// the one with which so many are `wanted` (0: all) that pass.
    pub fn new(lengths: &'a [u32], none: bool, wanted: usize, out: &'a mut Vec<u8>) -> Groups<'a> {
        let mut groups = Groups {
            lengths,
            none,
            wanted: if wanted == 0 { usize::MAX } else { wanted },
            seen: 0,
            found: false,
            out,
            done: 0,
            failed: None,
        };
        groups.decide();
        groups
    }

    /// Decides those that have had all their rows.
    fn decide(&mut self) {
        while let [length, later @ ..] = self.lengths
            && *length == self.seen
            && self.wanted > 0
        {
            let passes = self.found != self.none;
            self.out.push(u8::from(passes));
            self.wanted -= usize::from(passes);
            self.done += 1;
            (self.lengths, self.seen, self.found) = (later, 0, false);
        }
    }

    /// Looks at the next rows. False: no more are needed.
    pub fn take(&mut self, column: &Column, rows: usize) -> bool {
        for row in 0..rows {
            if self.wanted == 0 {
                return false;
            }
            if !self.found {
                self.failed = column.failure(row).cloned();
                self.found = !column.is_null(row) && column.truth(row);
            }
            if self.failed.is_some() {
                return false;
            }
            self.seen += 1;
            self.decide();
        }
        self.wanted > 0
    }
}
