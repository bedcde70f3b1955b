//! A probe that tells how busy the keeper is, for the switch between it and encodings (docs/families.md,
//! "The switch"): the time that it takes to sort random data and to search in it. The accesses are random, so
//! that it takes longer when the machine's processors are shared, and much longer when memory is paged
//! (Enc2DB, section 3.3).
//!
//! Also measured, once: how long it takes to open a cell of the family `soft_` and compare the value.
//!
//! Not here: what follows from it, which the database decides (`extension/src/switch`).
//!
//! Invariants: nothing of it depends on values or keys of columns; however often it is asked, at most one probe runs
//! at a time, and one in an interval.

use crate::random::random;
use encodings::ColumnKeys;
use encodings::det::Det;
use std::hint::black_box;
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// The type code in the cells that are opened for the measurement.
const TYPE: u8 = contract::TypeCode::Int4 as u8;
/// How often a cell is opened for it.
const OPENED: u32 = 64;

/// What is known.
#[derive(Clone, Copy, Default)]
pub(crate) struct Latest {
    /// Nanoseconds of opening and comparing a cell.
    pub open: u32,
    /// Nanoseconds of the last probe.
    pub last: u64,
    /// Of the fastest one.
    pub usual: u64,
    /// How many there were.
    pub count: u64,
}

struct State {
    latest: Latest,
    at: Option<Instant>,
    /// Random numbers, not sorted.
    data: Vec<u32>,
    sorted: Vec<u32>,
}

/// Runs it when it is asked, at a bounded rate.
pub(crate) struct Probe {
    interval: Duration,
    state: Mutex<State>,
}

impl Probe {
    /// With so many bytes of data, and milliseconds between two probes. Probes once.
    pub fn new(bytes: usize, interval: u64) -> Result<Probe, String> {
        let seed = u64::from_le_bytes(random().map_err(|e| e.to_string())?) | 1;
        let latest = Latest {
            open: opening().map_err(|e| e.to_string())?,
            ..Latest::default()
        };
        let data = numbers(seed, bytes / size_of::<u32>());
        let probe = Probe {
            interval: Duration::from_millis(interval),
            state: Mutex::new(State {
                latest,
                at: None,
                sorted: Vec::with_capacity(data.len()),
                data,
            }),
        };
        probe.latest();
        Ok(probe)
    }

    /// Probes, unless that was done lately or is being done; returns what is known then.
    pub fn latest(&self) -> Latest {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Somebody else probes: this one waits as long, which tells the same.
            Err(TryLockError::WouldBlock) => {
                let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                return state.latest;
            }
        };
        if state.data.is_empty() || state.at.is_some_and(|at| at.elapsed() < self.interval) {
            return state.latest;
        }
        let took = run(&mut state);
        let latest = &mut state.latest;
        latest.last = took;
        latest.usual = match latest.count {
            0 => took,
            _ => latest.usual.min(took),
        };
        latest.count += 1;
        let latest = *latest;
        state.at = Some(Instant::now());
        latest
    }
}

/// Sorts and searches; returns nanoseconds.
fn run(state: &mut State) -> u64 {
    let begun = Instant::now();
    state.sorted.clear();
    state.sorted.extend_from_slice(&state.data);
    state.sorted.sort_unstable();
    let sorted = black_box(&state.sorted);
    let found = state
        .data
        .iter()
        .filter(|n| sorted.binary_search(n).is_ok());
    black_box(found.count());
    u64::try_from(begun.elapsed().as_nanos())
        .unwrap_or(u64::MAX)
        .max(1)
}

/// Random numbers (xorshift): they need not be secret.
fn numbers(seed: u64, count: usize) -> Vec<u32> {
    let mut state = seed;
    let next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// Nanoseconds of opening a cell, as a column's key opens it, and comparing the value.
fn opening() -> Result<u32, encodings::Error> {
    let master = random().map_err(|_| encodings::Error::Library)?;
    let det = Det::new(&ColumnKeys::numbered(&master, 1, TYPE, 0))?;
    let value = [0, 0, 0, 9];
    let sealed = det.seal(TYPE, &value)?;
    let begun = Instant::now();
    for _ in 0..OPENED {
        let opened = det.open(TYPE, black_box(&sealed))?;
        black_box(opened.as_slice() < value.as_slice());
    }
    let each = begun.elapsed().as_nanos() / u128::from(OPENED);
    Ok(u32::try_from(each).unwrap_or(u32::MAX).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However often it is asked, it probes once in an interval; each interval, again. The bug this guards
    /// against: clients keep the keeper busy with probes, or are told an old answer for ever.
    #[test]
    fn bounded_rate() -> Result<(), String> {
        let rare = Probe::new(1 << 12, 3_600_000)?;
        for _ in 0..100 {
            assert_eq!(rare.latest().count, 1);
        }
        let often = Probe::new(1 << 12, 0)?;
        for number in 2..10 {
            let latest = often.latest();
            assert_eq!(latest.count, number);
            assert!(latest.usual <= latest.last && latest.open > 0);
        }
        Ok(())
    }

    /// Without data there are no probes. The bug this guards against: switched off, it costs time.
    #[test]
    fn switched_off() -> Result<(), String> {
        let none = Probe::new(0, 0)?;
        let latest = none.latest();
        assert_eq!((latest.count, latest.last, latest.usual), (0, 0, 0));
        Ok(())
    }
}
