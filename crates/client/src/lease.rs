//! When a session has to be renewed (docs/security.md).

use std::time::{Duration, Instant};

/// The session's lease, as the client knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term {
    /// The time when the keeper's part of the handshake was received; the keeper's own start time
    /// is earlier.
    since: Instant,
    length: Duration,
    renewed: Instant,
}

/// Whether the lease must be renewed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// Not yet.
    No,
    /// At the next opportunity.
    Soon,
    /// Before anything else.
    Now,
}

impl Term {
    /// A lease of this many seconds; `None` if it does not expire.
    pub fn of(seconds: u16, since: Instant) -> Option<Term> {
        (seconds > 0).then(|| Term {
            since,
            length: Duration::from_secs(seconds.into()),
            renewed: since,
        })
    }

    pub fn due(&self, now: Instant) -> Due {
        let gone = now.saturating_duration_since(self.renewed);
        match self.length / 3 {
            third if gone < third => Due::No,
            third if gone < 2 * third => Due::Soon,
            _ => Due::Now,
        }
    }

    /// Records that the lease is renewed now; returns the time since the beginning.
    pub fn renew(&mut self, now: Instant) -> Duration {
        self.renewed = now;
        now.saturating_duration_since(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lease is renewed after a third of its duration has passed; after two thirds the renewal is
    /// urgent.
    #[test]
    fn when() {
        let since = Instant::now();
        let at = |seconds| since + Duration::from_secs(seconds);
        assert!(Term::of(0, since).is_none());
        let mut term = Term::of(30, since).unwrap();
        let due = |term: &Term, seconds| term.due(at(seconds));
        assert_eq!(due(&term, 9), Due::No);
        assert_eq!(due(&term, 10), Due::Soon);
        assert_eq!(due(&term, 20), Due::Now);
        assert_eq!(term.renew(at(25)), Duration::from_secs(25));
        assert_eq!(due(&term, 34), Due::No);
        assert_eq!(due(&term, 45), Due::Now);
    }
}
