//! Row versions of a log, by number.
//!
//! Most numbers are greater than all before them, so they are kept in order, in runs of bounded
//! length: to add a version never moves more than a run, however many there are, where a hash
//! table would be copied whole each time that it grows. A version takes 32 bytes.
//!
//! Invariant: numbers rise from run to run and within each; no run is empty.

/// A run has at most so many versions.
const RUN: usize = 128;

/// A row version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version {
    /// The entry that says what was written.
    pub index: u64,
    /// The entry that ended it.
    pub ended: Option<u64>,
    /// The entry that erased it.
    pub erased: Option<u64>,
}

/// A version as it is kept. 0 stands for none: the first entry of a log is about no version.
#[derive(Clone, Copy)]
struct Kept {
    index: u64,
    ended: u64,
    erased: u64,
}

impl Kept {
    fn of(version: Version) -> Kept {
        Kept {
            index: version.index,
            ended: version.ended.unwrap_or(0),
            erased: version.erased.unwrap_or(0),
        }
    }

    fn version(self) -> Version {
        Version {
            index: self.index,
            ended: Some(self.ended).filter(|entry| *entry != 0),
            erased: Some(self.erased).filter(|entry| *entry != 0),
        }
    }
}

/// Numbers that follow each other, and the versions that have them. They lie apart, so that a
/// search touches little memory.
#[derive(Default)]
struct Run {
    numbers: Vec<u64>,
    kept: Vec<Kept>,
}

impl Run {
    fn insert(&mut self, at: usize, number: u64, kept: Kept) {
        self.numbers.insert(at, number);
        self.kept.insert(at, kept);
    }

    /// Where a number is, as a binary search gives it. Numbers come from a sequence: in a run without
    /// gaps a number's distance from the first one is its place, and with gaps it is before that.
    fn position(&self, number: u64) -> Result<usize, usize> {
        let ahead = self
            .numbers
            .first()
            .map_or(0, |first| number.saturating_sub(*first));
        let ahead = usize::try_from(ahead).unwrap_or(usize::MAX);
        if self.numbers.get(ahead) == Some(&number) {
            return Ok(ahead);
        }
        let below = self.numbers.len().min(ahead);
        self.numbers
            .get(..below)
            .unwrap_or_default()
            .binary_search(&number)
    }

    /// Takes the upper half away.
    fn split(&mut self) -> Run {
        Run {
            numbers: self.numbers.split_off(RUN / 2),
            kept: self.kept.split_off(RUN / 2),
        }
    }
}

/// Row versions by number.
#[derive(Default)]
pub struct Versions {
    /// The first number of each run.
    firsts: Vec<u64>,
    runs: Vec<Run>,
}

impl Versions {
    /// The run that a number belongs to: the last one that does not begin behind it.
    fn run_of(&self, number: u64) -> usize {
        let behind = self.firsts.partition_point(|first| *first <= number);
        behind.saturating_sub(1)
    }

    fn find(&self, number: u64) -> Option<&Kept> {
        let run = self.runs.get(self.run_of(number))?;
        let at = run.position(number).ok()?;
        run.kept.get(at)
    }

    /// The version with this number.
    pub fn get(&self, number: u64) -> Option<Version> {
        self.find(number).map(|kept| kept.version())
    }

    /// Changes the version with this number, if there is one.
    pub fn change(&mut self, number: u64, change: impl FnOnce(&mut Version)) {
        let run = self.run_of(number);
        let Some(run) = self.runs.get_mut(run) else {
            return;
        };
        let at = run.position(number).ok();
        if let Some(kept) = at.and_then(|at| run.kept.get_mut(at)) {
            let mut version = kept.version();
            change(&mut version);
            *kept = Kept::of(version);
        }
    }

    /// Adds a version. Returns the one that had its number.
    pub fn insert(&mut self, number: u64, version: Version) -> Option<Version> {
        let kept = Kept::of(version);
        let last = self.runs.last();
        let greatest = last.and_then(|run| run.numbers.last());
        if greatest.is_none_or(|greatest| *greatest < number) {
            self.push(number, kept);
            return None;
        }
        let of = self.run_of(number);
        let run = self.runs.get_mut(of)?;
        match run.position(number) {
            Ok(at) => {
                let before = std::mem::replace(run.kept.get_mut(at)?, kept);
                return Some(before.version());
            }
            Err(at) => run.insert(at, number, kept),
        }
        self.tidy(of);
        None
    }

    /// Adds a version whose number is greater than all before.
    fn push(&mut self, number: u64, kept: Kept) {
        match self.runs.last_mut().filter(|run| run.numbers.len() < RUN) {
            Some(run) => run.insert(run.numbers.len(), number, kept),
            None => {
                let mut run = Run::default();
                run.insert(0, number, kept);
                self.firsts.push(number);
                self.runs.push(run);
            }
        }
    }

    /// After a number was added to a run that is not too long before.
    fn tidy(&mut self, of: usize) {
        let Some(run) = self.runs.get_mut(of) else {
            return;
        };
        let upper = (run.numbers.len() > RUN).then(|| run.split());
        for (first, number) in self.firsts.get_mut(of).into_iter().zip(&run.numbers) {
            *first = *number;
        }
        if let Some(upper) = upper {
            let first = upper.numbers.first().copied();
            self.firsts.insert(of + 1, first.unwrap_or(u64::MAX));
            self.runs.insert(of + 1, upper);
        }
    }

    /// All of them, with their numbers, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Version)> {
        self.runs.iter().flat_map(|run| {
            let versions = run.kept.iter().map(|kept| kept.version());
            run.numbers.iter().copied().zip(versions)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn version(index: u64) -> Version {
        Version {
            index,
            ended: None,
            erased: None,
        }
    }

    fn check(found: &Versions, wanted: &BTreeMap<u64, Version>) {
        assert!(found.iter().eq(wanted.iter().map(|(n, v)| (*n, *v))));
        assert_eq!(found.firsts.len(), found.runs.len());
        for (first, run) in found.firsts.iter().zip(&found.runs) {
            assert_eq!(Some(first), run.numbers.first());
            assert!(run.numbers.len() <= RUN && run.numbers.len() == run.kept.len());
        }
    }

    proptest! {
        /// Whatever the order in which numbers come, each has its own version, and others none.
        #[test]
        fn as_a_map(numbers in prop::collection::vec(1..2000_u64, 0..1500), rising: bool) {
            let mut numbers = numbers;
            if rising {
                // As a sequence gives them to sessions that commit in another order.
                numbers.sort_unstable();
                numbers.chunks_mut(5).for_each(<[u64]>::reverse);
            }
            let (mut found, mut wanted) = (Versions::default(), BTreeMap::new());
            for (index, number) in (1..).zip(&numbers) {
                prop_assert_eq!(
                    found.insert(*number, version(index)),
                    wanted.insert(*number, version(index))
                );
            }
            check(&found, &wanted);
            for number in (0..2001).step_by(3) {
                let end = |version: &mut Version| version.ended = Some(number + 1);
                found.change(number, end);
                wanted.entry(number).and_modify(end);
                let erase = |version: &mut Version| version.erased = Some(7);
                found.change(number + 1, erase);
                wanted.entry(number + 1).and_modify(erase);
            }
            check(&found, &wanted);
            for number in 0..2001 {
                prop_assert_eq!(found.get(number), wanted.get(&number).copied());
            }
        }
    }

    /// What rises fills its runs.
    #[test]
    fn runs_are_full() {
        let mut found = Versions::default();
        (1..=1000).for_each(|n| assert!(found.insert(3 * n, version(n)).is_none()));
        assert_eq!(found.runs.len(), 1000_usize.div_ceil(RUN));
        assert_eq!(found.get(3), Some(version(1)));
        assert_eq!(found.get(4), None);
        assert_eq!(Versions::default().get(1), None);
    }
}
