//! The lease of a client's session. The client renews it by stating how long after the handshake it
//! was still present (`grant::Lease`).
//!
//! `lease` watches the clock, and `session` handles the end of a session.
//!
//! Invariant: a lease ends at most its length after the client was last present, assuming that the
//! client's clock runs at the same rate as ours; nothing that the database delays, repeats or omits
//! prolongs it.

use std::time::{Duration, Instant};

/// The lease of a client's session.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    /// When the keeper sent its part of the handshake, before the client had seen it.
    since: Instant,
    length: Duration,
    until: Instant,
}

impl Lease {
    /// A lease whose client was present when it began.
    pub fn begin(since: Instant, length: Duration) -> Lease {
        Lease {
            since,
            length,
            until: since + length,
        }
    }

    /// The client states that it was present so long after the beginning; a time in the future is
    /// reduced to now.
    pub fn renew(&mut self, after: Duration, now: Instant) {
        let there = self.since + after.min(now.saturating_duration_since(self.since));
        self.until = self.until.max(there + self.length);
    }

    /// Whether it has ended.
    pub fn is_over(&self, now: Instant) -> bool {
        now > self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// What counts is when the client was there, by its own word; a word that comes late, comes
    /// again, or is of the future gives nothing. With the bug who holds words back has a session
    /// for as long as he likes.
    #[test]
    fn words_count_by_when_they_were_said() {
        let since = Instant::now();
        let mut lease = Lease::begin(since, 10 * SECOND);
        assert!(!lease.is_over(since + 10 * SECOND));
        assert!(lease.is_over(since + 11 * SECOND));
        // Said after 5 seconds, delivered after an hour.
        lease.renew(5 * SECOND, since + 3600 * SECOND);
        assert!(!lease.is_over(since + 15 * SECOND));
        assert!(lease.is_over(since + 16 * SECOND));
        // An older one takes nothing away, and the same again gives nothing.
        lease.renew(SECOND, since + 14 * SECOND);
        lease.renew(5 * SECOND, since + 14 * SECOND);
        assert!(!lease.is_over(since + 15 * SECOND));
        assert!(lease.is_over(since + 16 * SECOND));
        // Of the future.
        lease.renew(Duration::MAX, since + 15 * SECOND);
        assert!(lease.is_over(since + 26 * SECOND));
    }
}
