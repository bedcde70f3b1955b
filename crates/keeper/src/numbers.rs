//! Numbers of arenas: two consecutive partition numbers per channel, reused as late as possible, so
//! that a FID left over from an old session names nothing for as long as possible.

use contract::fid::{ARENA_BASE, PARTITION_END};
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Allocates numbers of arenas.
#[derive(Debug, Default)]
pub struct Numbers(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Pairs allocated since the start, modulo the number of pairs.
    next: u32,
    used: HashSet<u32>,
}

const PAIRS: u32 = (PARTITION_END - ARENA_BASE) / 2;

impl Numbers {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates a pair and returns its first number.
    pub fn take(&self) -> Option<u32> {
        let mut state = self.state();
        for _ in 0..PAIRS {
            let pair = state.next;
            state.next = (pair + 1) % PAIRS;
            if state.used.insert(pair) {
                return Some(ARENA_BASE + 2 * pair);
            }
        }
        None
    }

    /// Releases a pair.
    pub fn give(&self, first: u32) {
        self.state().used.remove(&((first - ARENA_BASE) / 2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers come round only after all others, and never while in use; with
    /// the bug a FID of an ended session could name a value of a new one.
    #[test]
    fn reuse_is_late() {
        let numbers = Numbers::default();
        let kept = numbers.take();
        assert_eq!(kept, Some(ARENA_BASE));
        for n in 1..PAIRS {
            let first = numbers.take();
            assert_eq!(first, Some(ARENA_BASE + 2 * n));
            numbers.give(ARENA_BASE + 2 * n);
        }
        assert_eq!(numbers.take(), Some(ARENA_BASE + 2));
    }
}
