//! Decides how long to poll before going to sleep, from how well polling has worked so far. Does
//! not sleep itself.
//!
//! A successful spin sets the budget to a few times the time it took. An unsuccessful one halves
//! it, down to zero. When sleeps turn out to be short, so that a longer spin might have succeeded,
//! an occasional spin probes with the largest budget. Each unsuccessful probe makes the next one
//! rarer; it means that the peer cannot run while we spin, because there are too few processors.
//!
//! Invariant: one wait never spins longer than [`LIMIT_NS`], and an idle channel spins once.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The longest spin in nanoseconds.
const LIMIT_NS: u32 = 40_000;
/// A sleep up to this long, including falling asleep and waking up, could have been avoided by a
/// spin with the largest budget.
const SHORT: Duration = Duration::from_micros(90);
/// Smaller budgets are not worthwhile.
const LEAST_NS: u32 = 500;
/// Number of short sleeps before a probe, initially and at most.
const PROBE_FIRST: u32 = 4;
const PROBE_LAST: u32 = 1024;

/// Nanoseconds of one pause instruction, at least 1.
fn pause_ns() -> u32 {
    static PAUSE: OnceLock<u32> = OnceLock::new();
    *PAUSE.get_or_init(|| {
        let measure = || {
            let start = Instant::now();
            for _ in 0..100 {
                std::hint::spin_loop();
            }
            start.elapsed().as_nanos() / 100
        };
        let best = (0..8).map(|_| measure()).min().unwrap_or(40);
        best.clamp(1, 1000) as u32
    })
}

/// What one side of a ring has learned.
#[derive(Debug)]
pub(crate) struct Spin {
    budget_ns: u32,
    probing: bool,
    short_sleeps: u32,
    probe_after: u32,
    missed: Option<Instant>,
}

impl Spin {
    pub(crate) fn new() -> Self {
        Spin {
            budget_ns: LIMIT_NS / 2,
            probing: false,
            short_sleeps: 0,
            probe_after: PROBE_FIRST,
            missed: None,
        }
    }

    /// Polls until `look` returns true or fails, or the budget is used up.
    #[inline]
    pub(crate) fn spin<E>(&mut self, mut look: impl FnMut() -> Result<bool, E>) -> Result<bool, E> {
        let pause = pause_ns();
        let budget = if self.probing {
            LIMIT_NS
        } else {
            self.budget_ns
        };
        // The caller has just looked in vain, so pause before looking again. Polling without pauses
        // keeps pulling the peer's cache line, which costs more than it gains.
        for n in 0..budget / pause {
            std::hint::spin_loop();
            if look()? {
                self.hit((n + 1).saturating_mul(pause));
                return Ok(true);
            }
        }
        self.miss();
        Ok(false)
    }

    fn hit(&mut self, took_ns: u32) {
        let wanted = took_ns.saturating_mul(4).saturating_add(2_000);
        let decayed = self.budget_ns - self.budget_ns / 16;
        self.budget_ns = decayed.max(wanted).min(LIMIT_NS);
        self.probing = false;
        self.short_sleeps = 0;
        self.probe_after = PROBE_FIRST;
    }

    fn miss(&mut self) {
        if self.probing {
            self.probing = false;
            self.probe_after = (self.probe_after * 2).min(PROBE_LAST);
        } else {
            self.budget_ns /= 2;
            if self.budget_ns < LEAST_NS {
                self.budget_ns = 0;
            }
        }
        self.missed = Some(Instant::now());
    }

    /// To be called after the sleep that followed the last unsuccessful spin.
    pub(crate) fn woken(&mut self) {
        let Some(start) = self.missed.take() else {
            return;
        };
        if start.elapsed() > SHORT {
            return;
        }
        self.short_sleeps += 1;
        if self.short_sleeps >= self.probe_after {
            self.short_sleeps = 0;
            self.probing = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn never(_: u32) -> impl FnMut() -> Result<bool, ()> {
        || Ok(false)
    }

    /// Mechanism: misses shrink the budget to nothing; with the bug an idle or
    /// overloaded system burns its processors.
    #[test]
    fn misses_end_spinning() {
        let mut spin = Spin::new();
        for _ in 0..20 {
            assert_eq!(spin.spin(never(0)), Ok(false));
            std::thread::sleep(2 * SHORT);
            spin.woken();
        }
        let mut looks = 0;
        let found = spin.spin::<()>(|| {
            looks += 1;
            Ok(false)
        });
        assert_eq!((found, looks), (Ok(false), 0));
    }

    /// Mechanism: short sleeps lead to a probe, and a probe that hits brings the
    /// budget back; with the bug one busy moment would make a channel slow for good.
    #[test]
    fn short_sleeps_bring_spinning_back() {
        let mut spin = Spin::new();
        spin.budget_ns = 0;
        let mut sleeps = 0;
        while !spin.probing {
            assert_eq!(spin.spin(never(0)), Ok(false));
            // Not short if we are interrupted between these two.
            spin.missed = Some(Instant::now());
            spin.woken();
            sleeps += 1;
        }
        assert!(sleeps >= PROBE_FIRST);
        let mut looks = 0;
        let found = spin.spin::<()>(|| {
            looks += 1;
            Ok(looks == 10)
        });
        assert_eq!(found, Ok(true));
        assert!(spin.budget_ns > 2_000);
    }
}
