//! Ends of transactions on ledger tables that are known from elsewhere than the log.
//!
//! An entry says of earlier transactions that they have ended, but nothing in a log says so of the
//! last one. Therefore a checkpoint has the last ends that were known before its position in the WAL
//! was taken; of what the WAL has since, the recovery worker tells which transactions committed.
//!
//! Not here: transactions that were rolled back. Without an end they are in doubt.
//!
//! Invariant: what a checkpoint has, committed before the checkpoint's position in the WAL.

use std::collections::{BTreeMap, VecDeque};

/// So many ends of each log are kept. Entries that follow them say so of earlier ones.
const ENDS_MAX: usize = 64;
/// So many transactions may be running that the WAL has records of.
const RUNNING_MAX: usize = 256;

/// Of a log's partition: a transaction that committed has made the last entry before this one.
pub type End = (u32, u64);

/// See the module documentation.
#[derive(Default)]
pub(super) struct Ended {
    known: BTreeMap<u32, VecDeque<u64>>,
    /// Transactions that records came of, and what ends they make if they commit.
    running: VecDeque<(u32, Vec<End>)>,
    /// Those that the next checkpoint has.
    taken: Vec<End>,
}

impl Ended {
    /// A transaction has committed.
    pub fn add(&mut self, (log, next): End) {
        let known = self.known.entry(log).or_default();
        if known.contains(&next) {
            return;
        }
        if known.len() == ENDS_MAX {
            known.pop_front();
        }
        known.push_back(next);
    }

    /// The WAL has a record of a transaction, with entries of logs. The last ones of each log are its
    /// own; before them there may be some of others that are logged again.
    pub fn record(&mut self, transaction: u32, ends: Vec<End>) {
        let known = self.ends_of(transaction);
        for (log, next) in ends {
            match known.iter_mut().find(|(of, _)| *of == log) {
                Some((_, last)) => *last = next.max(*last),
                None => known.push((log, next)),
            }
        }
    }

    /// What ends a transaction makes if it commits, as far as it is known.
    fn ends_of(&mut self, transaction: u32) -> &mut Vec<End> {
        let at = self.running.iter().position(|(of, _)| *of == transaction);
        let at = at.unwrap_or_else(|| {
            if self.running.len() == RUNNING_MAX {
                self.running.pop_front();
            }
            self.running.push_back((transaction, Vec::new()));
            self.running.len() - 1
        });
        &mut self.running[at].1
    }

    /// The WAL says that it has committed.
    pub fn committed(&mut self, transaction: u32) {
        let at = self.running.iter().position(|(of, _)| *of == transaction);
        let found = at.and_then(|at| self.running.remove(at));
        let ends = found.into_iter().flat_map(|(_, ends)| ends);
        ends.for_each(|end| self.add(end));
    }

    /// The ends in a log, each as the entry that follows.
    pub fn of(&self, log: u32) -> impl Iterator<Item = u64> {
        self.known.get(&log).into_iter().flatten().copied()
    }

    /// The position of a checkpoint is going to be taken.
    pub fn take(&mut self) {
        let all = self.known.iter();
        let ends = all.flat_map(|(log, known)| known.iter().map(|next| (*log, *next)));
        self.taken = ends.collect();
    }

    /// What the checkpoint has.
    pub fn taken(&self) -> &[End] {
        &self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ended: &Ended, log: u32) -> Vec<u64> {
        ended.of(log).collect()
    }

    /// Only a transaction that committed has ended, with its last entries. Bug: one that PostgreSQL
    /// lost counts as committed, by itself or because its entries were logged again.
    #[test]
    fn committed() {
        let mut ended = Ended::default();
        ended.record(7, vec![(1, 5), (2, 3)]);
        ended.record(8, vec![(1, 9)]);
        ended.record(7, vec![(1, 7)]);
        ended.record(7, vec![(1, 6)]);
        ended.committed(9);
        assert_eq!((of(&ended, 1), of(&ended, 2)), (vec![], vec![]));
        ended.committed(7);
        ended.committed(7);
        assert_eq!((of(&ended, 1), of(&ended, 2)), (vec![7], vec![3]));
        for transaction in 100..100 + RUNNING_MAX as u32 {
            ended.record(transaction, vec![(3, 1)]);
        }
        ended.committed(8);
        assert_eq!(of(&ended, 1), [7]);
    }

    /// A checkpoint has what was known before its position was taken, and no more of a log than what
    /// later entries may not say. Bug: after recovery to a point before a commit, it counts.
    #[test]
    fn taken() {
        let mut ended = Ended::default();
        ended.add((1, 4));
        ended.add((1, 4));
        ended.take();
        ended.add((1, 6));
        assert_eq!(ended.taken(), [(1, 4)]);
        for next in 0..200 {
            ended.add((2, next));
        }
        ended.take();
        let (first, rest) = ended.taken().split_at(2);
        assert_eq!(first, [(1, 4), (1, 6)]);
        assert_eq!((rest.len(), rest.first()), (ENDS_MAX, Some(&(2, 136))));
    }
}
