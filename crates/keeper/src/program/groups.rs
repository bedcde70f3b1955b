//! Decides which groups of rows pass: a group consists of the pairs of one outer row of a semijoin
//! or antijoin.
//!
//! Invariant: a group is decided by its first row that is true or fails. Later rows do not count,
//! since PostgreSQL would not have reached them row by row.

use super::column::Column;
use crate::fail::Failure;

/// Groups being decided, row by row.
pub struct Groups<'a> {
    /// Numbers of rows of the undecided groups.
    lengths: &'a [u32],
    /// Whether groups without a true row pass.
    none: bool,
    /// Number of passing groups still to be reported.
    wanted: usize,
    /// Rows of the first group that have been examined.
    seen: u32,
    /// Whether one of them was true.
    found: bool,
    out: &'a mut Vec<u8>,
    /// Number of decided groups.
    pub done: usize,
    /// Why the next one failed.
    pub failed: Option<Failure>,
}

impl<'a> Groups<'a> {
    /// Groups with these numbers of rows. A boolean is appended to `out` for each, up to the one
    /// that makes `wanted` (0: all) groups pass.
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

    /// Decides groups whose rows have all been examined.
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

    /// Examines the next rows. Returns false if no more are needed.
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
