//! Numbers of arenas: two consecutive partitions for each channel, given again as
//! late as possible, so that a FID kept from an old session names nothing for as
//! long as can be.

use contract::fid::{ARENA_BASE, PARTITION_END};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{Arena, Budget};

/// Gives out numbers of arenas.
#[derive(Debug, Default)]
pub struct Numbers(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Pairs given out since the start, modulo their number.
    next: u32,
    used: HashSet<u32>,
}

const PAIRS: u32 = (PARTITION_END - ARENA_BASE) / 2;

impl Numbers {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first of two unused numbers.
    fn take(&self) -> Option<u32> {
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

    fn give(&self, first: u32) {
        self.state().used.remove(&((first - ARENA_BASE) / 2));
    }
}

/// The two arenas of a channel, as long as somebody can name what is in them.
pub struct ArenaPair {
    numbers: Arc<Numbers>,
    first: u32,
    /// Holds values until the statement ends.
    pub statement: Arena,
    /// Holds values until the session ends.
    pub plan: Arena,
}

impl ArenaPair {
    /// Two empty arenas; `None` if no numbers are left.
    pub fn new(numbers: &Arc<Numbers>, budget: &Arc<Budget>) -> Option<Arc<ArenaPair>> {
        Some(Arc::new(ArenaPair {
            first: numbers.take()?,
            numbers: Arc::clone(numbers),
            statement: Arena::new(budget),
            plan: Arena::new(budget),
        }))
    }

    /// Number of the statement arena; the plan arena has the next one.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// Number of the pair that a partition would belong to.
    #[inline]
    pub fn first_of(partition: u32) -> u32 {
        partition & !1
    }

    /// The arena with this number, if it is one of the two.
    #[inline]
    pub fn get(&self, partition: u32) -> Option<&Arena> {
        match partition.checked_sub(self.first) {
            Some(0) => Some(&self.statement),
            Some(1) => Some(&self.plan),
            _ => None,
        }
    }
}

impl Drop for ArenaPair {
    fn drop(&mut self) {
        self.numbers.give(self.first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers come round only after all others, and never while in use; with
    /// the bug a FID of an ended session could name a value of a new one.
    #[test]
    fn reuse_is_late() {
        let numbers = Arc::new(Numbers::default());
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
