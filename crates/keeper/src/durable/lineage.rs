//! Whose redo records a store takes: those of its own last run, and of earlier runs those that this
//! run was sent when it began.
//!
//! The keeper seals a record before the database logs it. If the database withholds the records of
//! a run and has the keeper restarted, the next run gives the same identifiers, and the same numbers of
//! partitions, to other values. Records of both runs are authentic. Brought together later, they would
//! show a value of one column in another one. So each run notes, before it serves, which records
//! it was sent and which run it is; all other records are refused at later starts.
//!
//! A copy of a store takes records of any run: those of its original go on. An operator declares a copy
//! (`--accept-backup`), not the database.

use redo::Epoch;
use std::collections::BTreeMap;
use values::Error;

/// Number of ranges that are noted at most.
const RANGES_MAX: usize = 1 << 20;

/// Ranges of numbers of records: by run and first number, the number after the last.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Sent(BTreeMap<(Epoch, u64), u64>);

impl Sent {
    fn before(&self, run: Epoch, number: u64) -> Option<(u64, u64)> {
        let mut range = self.0.range((run, 0)..=(run, number));
        range.next_back().map(|((_, from), to)| (*from, *to))
    }

    /// Adds a record.
    pub(super) fn add(&mut self, run: Epoch, number: u64) {
        let from = match self.before(run, number) {
            Some((_, to)) if to > number => return,
            Some((from, to)) if to == number => from,
            _ => number,
        };
        let next = number.saturating_add(1);
        let to = self.0.remove(&(run, next)).unwrap_or(next);
        self.0.insert((run, from), to);
    }

    /// Adds a range as [`Sent::ranges`] has it.
    pub(super) fn add_range(&mut self, (run, from, to): (Epoch, u64, u64)) {
        self.0.insert((run, from), to);
    }

    fn contains(&self, run: Epoch, number: u64) -> bool {
        self.before(run, number).is_some_and(|(_, to)| to > number)
    }

    /// The ranges: a run, its first record, the one after its last.
    pub(super) fn ranges(&self) -> impl ExactSizeIterator<Item = (Epoch, u64, u64)> {
        self.0.iter().map(|((run, from), to)| (*run, *from, *to))
    }
}

/// What a start of the keeper knows of earlier runs, and what it was sent.
pub(super) struct Lineage {
    /// The last run that served; `None` for a copy, which takes records of any run.
    last: Option<Epoch>,
    /// What that run was sent when it began.
    known: Sent,
    sent: Sent,
}

impl Lineage {
    pub(super) fn after(last: Option<Epoch>, known: Sent) -> Lineage {
        Lineage {
            last,
            known,
            sent: Sent::default(),
        }
    }

    /// Notes a record that was sent.
    ///
    /// # Errors
    /// If it is of a run that the store does not descend from.
    pub(super) fn take(&mut self, run: Epoch, number: u64) -> Result<(), Error> {
        let own = self.last.is_none_or(|last| last == run);
        if !own && !self.known.contains(run, number) {
            return Err(Error::new(
                b"XX001",
                "confide: a redo record was withheld from the run of the keeper that came after it",
            )
            .hint(
                "If the keeper's store is a copy, or its cluster follows another one now, run \
                 confide-keeper --accept-backup.",
            ));
        }
        self.sent.add(run, number);
        Ok(())
    }

    /// What was sent, for the run that begins now.
    ///
    /// # Errors
    /// If there are too many gaps.
    pub(super) fn sent(&self) -> Result<&Sent, Error> {
        match self.sent.ranges().len() > RANGES_MAX {
            true => Err(Error::new(
                b"54000",
                "confide: too many redo records are missing since the keeper's checkpoint",
            )),
            false => Ok(&self.sent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const RUNS: [Epoch; 2] = [[1; 12], [2; 12]];

    proptest! {
        /// Against a set of records; neighbours make one range.
        #[test]
        fn ranges(all in proptest::collection::vec((0usize..2, 0u64..30), 0..60)) {
            let mut sent = Sent::default();
            let all: Vec<_> = all.into_iter().map(|(run, n)| (RUNS[run], n)).collect();
            all.iter().for_each(|(run, n)| sent.add(*run, *n));
            let set: BTreeSet<_> = all.into_iter().collect();
            for run in RUNS {
                for n in 0..32 {
                    prop_assert_eq!(sent.contains(run, n), set.contains(&(run, n)));
                }
            }
            let begins = |(run, n): &&(Epoch, u64)| *n == 0 || !set.contains(&(*run, n - 1));
            prop_assert_eq!(sent.ranges().len(), set.iter().filter(begins).count());
        }
    }

    #[test]
    fn a_copy_takes_all() {
        let mut known = Sent::default();
        known.add(RUNS[0], 3);
        let mut of = Lineage::after(Some(RUNS[1]), known.clone());
        assert!(of.take(RUNS[0], 3).is_ok() && of.take(RUNS[1], 9).is_ok());
        assert!(of.take(RUNS[0], 4).is_err() && of.take([3; 12], 0).is_err());
        assert_eq!(of.sent().map(|s| s.ranges().len()), Ok(2));
        let mut copy = Lineage::after(None, known);
        assert!(copy.take(RUNS[0], 4).is_ok());
    }
}
