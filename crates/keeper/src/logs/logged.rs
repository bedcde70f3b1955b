//! Which entries of a log are in the WAL.
//!
//! Backends write the entries to the WAL one after the other, under a lock. If one of them does not
//! come to write what it was given, the next one says so; so does the first after a restart of
//! PostgreSQL, which may have lost the WAL's tail. Which entries are missing nobody can say, so all
//! of them are logged again that are not certainly on disk.
//!
//! Invariant: an entry that may be missing is logged again before any later one.

use std::ops::Range;

/// See the module documentation. All numbers are of entries.
#[derive(Default)]
pub(super) struct Logged {
    /// Those before this one are in the WAL on disk.
    certain: u64,
    /// Those before this one were in the store when it was read.
    found: u64,
    /// Those from this one on are to be logged again.
    again: Option<u64>,
    /// Of how many losses it has heard.
    losses: Option<u64>,
}

impl Logged {
    /// Those before `settled` are on disk; all before `there` are in the store, be it from the WAL
    /// or from a checkpoint that was made before they were logged.
    pub fn found(&mut self, settled: u64, there: u64) {
        self.on_disk(settled);
        self.found = there;
    }

    /// A transaction has committed that made the last entry before this one.
    pub fn on_disk(&mut self, next: u64) {
        self.certain = self.certain.max(next);
    }

    /// Those before this one are in the WAL on disk.
    pub fn certain(&self) -> u64 {
        self.certain
    }

    /// Those before this one are still there if PostgreSQL and the keeper crash now.
    pub fn kept(&self) -> u64 {
        self.certain.max(self.found)
    }

    /// There were so many losses so far. Whoever hears of them first has just read the store.
    pub fn heard_of(&mut self, losses: u64) {
        if self.losses != Some(losses) {
            self.losses = Some(losses);
            self.again = Some(self.certain);
        }
    }

    /// The next ones to be logged again, at most so many, of a log of this size.
    pub fn again(&mut self, size: u64, most: u64) -> Range<u64> {
        let from = self.again.unwrap_or(size).min(size);
        let until = size.min(from.saturating_add(most));
        self.again = Some(until).filter(|until| *until < size);
        from..until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is not on disk is logged again after each loss, also what was logged again before.
    /// Bug: two crashes one after the other leave a gap in the log.
    #[test]
    fn losses() {
        let mut logged = Logged::default();
        logged.found(0, 0);
        logged.heard_of(0);
        assert_eq!(logged.again(0, 10), 0..0);
        assert_eq!(logged.again(5, 10), 5..5);
        logged.on_disk(3);
        for losses in 1..4 {
            logged.heard_of(losses);
            assert_eq!(logged.again(5 + losses, 10), 3..5 + losses);
            logged.heard_of(losses);
            assert_eq!(logged.again(6 + losses, 10), 6 + losses..6 + losses);
        }
        logged.on_disk(8);
        logged.on_disk(7);
        logged.heard_of(4);
        assert_eq!(logged.again(9, 10), 8..9);
    }

    /// Long logs are logged again in parts.
    #[test]
    fn parts() {
        let mut logged = Logged::default();
        logged.heard_of(0);
        assert_eq!(logged.again(25, 10), 0..10);
        assert_eq!(logged.again(25, 0), 10..10);
        assert_eq!(logged.again(25, 10), 10..20);
        logged.heard_of(0);
        assert_eq!(logged.again(25, 10), 20..25);
        assert_eq!(logged.again(26, 10), 26..26);
        logged.heard_of(1);
        assert_eq!(logged.again(26, 30), 0..26);
    }

    /// A keeper that starts logs again what may have come from a checkpoint only. Bug: a standby
    /// never gets it.
    #[test]
    fn found() {
        let mut logged = Logged::default();
        logged.found(7, 9);
        logged.heard_of(0);
        assert_eq!((logged.certain(), logged.kept()), (7, 9));
        assert_eq!(logged.again(9, 10), 7..9);
        logged.on_disk(12);
        assert_eq!((logged.certain(), logged.kept()), (12, 12));
    }
}
