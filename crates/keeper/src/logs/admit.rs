//! Whether a log takes what a transaction did to row versions.
//!
//! Invariant: no version is written twice, ended twice or erased twice, unless the first time was
//! rolled back, or may have been.

use super::{Doing, Log, Version};
use crate::named::Named;
use ledger::entry::Kind;
use values::Error;

fn refused(what: String) -> Error {
    Error::new(b"XX001", "confide: a ledger table is not as its log says")
        .detail(what)
        .hint("Verify the table with \"confide verify table\".")
}

impl Log {
    /// Whether the log takes all of it, one after the other.
    pub fn admit<'d>(&self, doings: impl Iterator<Item = &'d Doing>) -> Result<(), Error> {
        let mut greatest = self.greatest;
        let mut made = Named::default();
        let mut ended = Named::default();
        for doing in doings {
            if [Kind::Write, Kind::Restore].contains(&doing.kind) {
                // Most numbers are greater than all before them, which were not there, then.
                if doing.sn > greatest {
                    greatest = doing.sn;
                    made.add(doing.sn);
                } else if self.has(doing.sn) || !made.insert(doing.sn) {
                    return Err(refused(format!("Version {} has been there.", doing.sn)));
                }
            }
            let ends = match doing.kind {
                Kind::Write => doing.other,
                Kind::Restore => 0,
                _ => doing.sn,
            };
            if ends == 0 {
                continue;
            }
            let lives = self.lives(ends) || made.contains(ends);
            let may = match doing.kind {
                Kind::Erase => self.may_erase(ends) || ended.contains(ends),
                _ => lives && ended.insert(ends),
            };
            if !may {
                return Err(refused(format!("Version {ends} is not there to be ended.")));
            }
        }
        Ok(())
    }

    /// Whether a number is taken. PostgreSQL's sequence gives a number again if it has crashed,
    /// and lost the transaction that had it before.
    fn has(&self, sn: u64) -> bool {
        let version = self.versions.get(sn);
        version.is_some_and(|v| !self.is_void(v.index) && !self.is_doubtful(v.index))
    }

    /// Whether a version is there that nothing has ended.
    fn lives(&self, sn: u64) -> bool {
        let version = self.versions.get(sn);
        version.is_some_and(|v| {
            let ended = self.happened(v.ended) || self.is_erased(&v);
            !ended && !self.is_void(v.index)
        })
    }

    fn may_erase(&self, sn: u64) -> bool {
        let version = self.versions.get(sn);
        version.is_some_and(|v| v.ended.is_some() && !self.is_erased(&v))
    }

    /// Whether a version was erased.
    pub fn is_erased(&self, version: &Version) -> bool {
        self.happened(version.erased)
    }

    /// Whether there is such an entry, and no doubt about its transaction.
    fn happened(&self, entry: Option<u64>) -> bool {
        entry.is_some_and(|index| !self.is_doubtful(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::Hash;

    fn doing(kind: Kind, sn: u64, other: u64) -> Doing {
        Doing {
            kind,
            sn,
            other,
            time: 0,
            row: Hash([0; 32]),
        }
    }

    /// No version is written or ended twice, in the log or in one transaction, in whatever order
    /// their numbers come, and however many there are. With a bug a version could have two entries.
    #[test]
    fn admitted() {
        use Kind::{End, Erase, Write};
        let mut log = Log::new(1);
        for (index, sn) in [5, 1000, 7].into_iter().enumerate() {
            log.add(sn, index as u64, None);
        }
        let admits = |doings: &[(Kind, u64, u64)]| {
            let doings: Vec<Doing> = doings.iter().map(|d| doing(d.0, d.1, d.2)).collect();
            log.admit(doings.iter()).is_ok()
        };
        assert!(admits(&[
            (Write, 1001, 0),
            (Write, 6, 1001),
            (Write, 8, 6),
            (End, 8, 0)
        ]));
        for there in [5, 7, 1000] {
            assert!(!admits(&[(Write, there, 0)]));
            assert!(admits(&[(Write, 9, there)]));
            assert!(!admits(&[(Write, 9, there), (End, there, 0)]));
            assert!(!admits(&[(Erase, there, 0)]));
            assert!(admits(&[(End, there, 0), (Erase, there, 0)]));
        }
        assert!(!admits(&[(Write, 9, 10), (Write, 10, 0)]));
        // Rising, falling, both below the greatest number of the log and above it.
        for numbers in [2000..2100, 100..200] {
            for order in [
                numbers.clone().collect::<Vec<u64>>(),
                numbers.rev().collect(),
            ] {
                let written: Vec<_> = order.iter().map(|sn| (Write, *sn, 0)).collect();
                assert!(admits(&written));
                for again in &order {
                    let twice = [written.as_slice(), &[(Write, *again, 0)]].concat();
                    assert!(!admits(&twice));
                    let ends = order.iter().map(|sn| (End, *sn, 0));
                    let ended: Vec<_> = written.iter().copied().chain(ends).collect();
                    assert!(admits(&ended));
                    let twice = [ended.as_slice(), &[(End, *again, 0)]].concat();
                    assert!(!admits(&twice));
                }
            }
        }
    }

    /// What was rolled back, or may have been, can be done again: PostgreSQL has forgotten it, also
    /// that the number was given. With the bug nobody can change a row after a crash.
    #[test]
    fn admitted_again() {
        use Kind::{End, Erase, Write};
        let mut log = Log::new(1);
        (0..6).for_each(|sn| log.add(sn + 1, sn, None));
        let admits =
            |log: &Log, kind, sn, other| log.admit([doing(kind, sn, other)].iter()).is_ok();
        log.versions.change(4, |v| v.ended = Some(7));
        log.versions.change(5, |v| v.ended = Some(8));
        log.versions.change(5, |v| v.erased = Some(9));
        assert!(!admits(&log, Write, 2, 0) && !admits(&log, Write, 3, 0));
        assert!(!admits(&log, End, 4, 0) && !admits(&log, Erase, 5, 0));
        log.void.insert(1, 1);
        log.doubt.insert(2, 1);
        log.doubt.insert(7, 1);
        log.doubt.insert(9, 1);
        assert!(admits(&log, Write, 2, 0) && admits(&log, Write, 3, 0));
        assert!(admits(&log, End, 4, 0) && admits(&log, Erase, 5, 0));
        assert!(!admits(&log, Write, 1, 0) && !admits(&log, End, 2, 0));
        log.add(2, 20, None);
        log.add(3, 21, None);
        assert_eq!(log.replaced, [(3, 2)]);
    }
}
