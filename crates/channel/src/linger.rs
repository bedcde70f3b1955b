//! Decides whether a keeper's thread that has nothing to do looks for its next request a while longer
//! before it sleeps, on a processor that nobody else wants. Does not sleep itself.
//!
//! Waking a sleeper costs both sides: the kernel has it run where its waker runs, so that one
//! interrupts the other, and both find their caches cold. A thread that lingers on another processor
//! answers at once. It gives way (`sched_yield`) before each look, and stops when others take much of
//! its time, or when the process has more threads at work than may linger. Each attempt in vain makes
//! the next ones rarer.
//!
//! Invariant: one wait lingers no longer than the limit, and an idle channel lingers once at most.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Who gives way for longer than this has let somebody else run.
const OTHERS_TURN: Duration = Duration::from_micros(20);
/// Time that others have taken does not matter before it is more than this, and more than nine tenths
/// of all: the client, for which everybody waits, may run here, too.
const LOST_LEAST: Duration = Duration::from_micros(500);
/// After many attempts in vain, so many waits end in sleep at once.
const SKIP_MAX: u32 = 256;
/// The average of others' waits is kept in this unit, and moves by this part of the difference.
const ONE: u64 = 256;
const PART: u64 = 8;

/// What lingering needs of the operating system.
pub(crate) trait Clock {
    fn now(&self) -> Instant;
    /// Lets others run that want this processor.
    fn give_way(&self);
}

/// The real one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct System;

impl Clock for System {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn give_way(&self) {
        std::thread::yield_now();
    }
}

/// Number of waits that the threads of this process have begun.
#[derive(Debug)]
pub(crate) struct Waits(AtomicU64);

impl Waits {
    pub(crate) const fn new() -> Waits {
        Waits(AtomicU64::new(0))
    }
}

/// What one thread has learned.
#[derive(Debug)]
pub(crate) struct Linger {
    waits: &'static Waits,
    /// The longest time.
    limit: Duration,
    /// How many threads of the process may linger.
    room: u64,
    /// [`Waits`] when this thread's last one began.
    seen: u64,
    /// Average number of waits of other threads between two of this one, times [`ONE`].
    others: u64,
    /// So many waits are not to linger.
    skip: u32,
    /// What `skip` was last.
    skipped: u32,
}

impl Linger {
    /// Does not linger before there is a limit.
    pub(crate) fn new(waits: &'static Waits, room: usize) -> Linger {
        Linger {
            waits,
            limit: Duration::ZERO,
            room: room as u64,
            seen: waits.0.load(Ordering::Relaxed),
            others: 0,
            skip: 0,
            skipped: 0,
        }
    }

    /// The longest time; zero: not at all.
    pub(crate) fn limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// To be called when a wait begins.
    pub(crate) fn begin(&mut self) {
        if self.limit.is_zero() {
            return;
        }
        let all = self.waits.0.fetch_add(1, Ordering::Relaxed) + 1;
        let others = (all - self.seen).saturating_sub(1).min(ONE);
        self.others = self.others - self.others / PART + others * ONE / PART;
        self.seen = all;
    }

    /// Whether more threads are at work than may linger.
    fn has_company(&self) -> bool {
        let since = self.waits.0.load(Ordering::Relaxed) - self.seen;
        since >= self.room || self.others > (self.room - 1) * ONE + ONE / 4
    }

    /// Looks until `look` returns true or fails, or it is time to sleep.
    pub(crate) fn linger<E>(
        &mut self,
        clock: &impl Clock,
        mut look: impl FnMut() -> Result<bool, E>,
    ) -> Result<bool, E> {
        if self.limit.is_zero() || self.room == 0 || self.has_company() {
            return Ok(false);
        }
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(false);
        }
        let start = clock.now();
        let (mut last, mut lost) = (start, Duration::ZERO);
        let (found, crowded) = loop {
            clock.give_way();
            let found = look()?;
            let now = clock.now();
            if now - last > OTHERS_TURN {
                lost += now - last;
            }
            last = now;
            let crowded = lost > LOST_LEAST && lost * 10 > (now - start) * 9;
            if found || crowded || now - start > self.limit || self.has_company() {
                break (found, crowded);
            }
        };
        if found && !crowded {
            self.skipped /= 2;
        } else {
            self.skipped = (self.skipped * 2).clamp(1, SKIP_MAX);
            self.skip = self.skipped;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const LIMIT: Duration = Duration::from_millis(2);

    /// A clock that moves on when somebody gives way, by this time.
    struct Simulated {
        now: Cell<Instant>,
        turn: Duration,
    }

    impl Simulated {
        fn new(turn_us: u64) -> Simulated {
            Simulated {
                now: Cell::new(Instant::now()),
                turn: Duration::from_micros(turn_us),
            }
        }

        fn pass(&self, time: Duration) {
            self.now.set(self.now.get() + time);
        }
    }

    impl Clock for Simulated {
        fn now(&self) -> Instant {
            self.now.get()
        }

        fn give_way(&self) {
            self.pass(self.turn);
        }
    }

    /// The first thread of a process in which so many may linger.
    fn alone(room: usize) -> Linger {
        let waits = Box::leak(Box::new(Waits::new()));
        let mut linger = Linger::new(waits, room);
        linger.limit(LIMIT);
        linger
    }

    /// One wait for a request that comes after this time; whether it was found without sleep, and for
    /// how long the thread lingered.
    fn wait(linger: &mut Linger, clock: &Simulated, after: Duration) -> (bool, Duration) {
        let start = clock.now();
        linger.begin();
        let found = linger.linger::<()>(clock, || Ok(clock.now() - start >= after));
        let lingered = clock.now() - start;
        if found != Ok(true) {
            clock.pass(after.saturating_sub(lingered));
        }
        (found == Ok(true), lingered)
    }

    #[test]
    fn requests_within_the_limit_are_found() {
        let (mut linger, clock) = (alone(1), Simulated::new(1));
        for _ in 0..100 {
            assert!(wait(&mut linger, &clock, LIMIT / 2).0);
        }
    }

    /// Bug: a session that is idle for longer takes a processor.
    #[test]
    fn lingering_in_vain_becomes_rare() {
        let (mut linger, clock) = (alone(1), Simulated::new(1));
        let mut attempts = 0;
        for _ in 0..2000 {
            let (found, lingered) = wait(&mut linger, &clock, LIMIT * 5);
            assert!(!found && lingered <= LIMIT + Duration::from_micros(1));
            attempts += u32::from(!lingered.is_zero());
        }
        assert!((8..20).contains(&attempts), "{attempts}");
        // It is busy again.
        for _ in 0..SKIP_MAX {
            wait(&mut linger, &clock, LIMIT / 2);
        }
        for _ in 0..100 {
            assert!(wait(&mut linger, &clock, LIMIT / 2).0);
        }
        // One pause costs one wait.
        assert!(!wait(&mut linger, &clock, LIMIT * 5).0);
        assert!(!wait(&mut linger, &clock, LIMIT / 2).0);
        assert!(wait(&mut linger, &clock, LIMIT / 2).0);
    }

    /// Bug: a keeper takes the time of those that it waits for.
    #[test]
    fn stops_when_others_want_the_processor() {
        let turn = Duration::from_micros(120);
        let (mut linger, clock) = (alone(1), Simulated::new(120));
        let mut attempts = 0;
        for _ in 0..2000 {
            let (_, lingered) = wait(&mut linger, &clock, LIMIT / 2);
            assert!(lingered <= LOST_LEAST + turn);
            attempts += u32::from(!lingered.is_zero());
        }
        assert!((8..20).contains(&attempts), "{attempts}");
        // They have gone.
        let clock = Simulated::new(1);
        for _ in 0..SKIP_MAX {
            wait(&mut linger, &clock, LIMIT / 2);
        }
        assert!(wait(&mut linger, &clock, LIMIT / 2).0);
    }

    #[test]
    fn a_request_that_others_delayed_is_none_gained() {
        let (mut linger, clock) = (alone(1), Simulated::new(600));
        assert!(wait(&mut linger, &clock, LOST_LEAST).0);
        assert!(!wait(&mut linger, &clock, LOST_LEAST).0);
    }

    #[test]
    fn as_many_threads_as_there_is_room_for() {
        for (room, threads, found) in [(1, 2, false), (2, 2, true), (2, 4, false), (0, 1, false)] {
            let clock = Simulated::new(1);
            let first = alone(room);
            let mut all = vec![first];
            for _ in 1..threads {
                let mut other = Linger::new(all[0].waits, room);
                other.limit(LIMIT);
                all.push(other);
            }
            for _ in 0..50 {
                for linger in &mut all {
                    wait(linger, &clock, LIMIT / 2);
                }
            }
            assert_eq!(
                wait(&mut all[0], &clock, LIMIT / 2).0,
                found,
                "{room} {threads}"
            );
        }
    }

    /// Bug: the others' requests wait for a thread that only looks.
    #[test]
    fn stops_when_another_thread_has_work() {
        let (mut linger, clock) = (alone(1), Simulated::new(1));
        let waits = linger.waits;
        linger.begin();
        let mut looks = 0;
        let found = linger.linger::<()>(&clock, || {
            looks += 1;
            if looks == 10 {
                waits.0.fetch_add(1, Ordering::Relaxed);
            }
            Ok(false)
        });
        assert_eq!((found, looks), (Ok(false), 10));
    }

    #[test]
    fn without_a_limit() {
        let clock = Simulated::new(1);
        let mut linger = alone(1);
        linger.limit(Duration::ZERO);
        assert_eq!(
            wait(&mut linger, &clock, LIMIT / 2),
            (false, Duration::ZERO)
        );
    }
}
