//! Aggregations being handed over from one channel of a session to another.
//!
//! Invariants: a number is used once in the life of the keeper, so the number of another session or
//! of an earlier statement names nothing; no aggregation outlives the leader's statement during
//! which it was handed over.

use super::Aggregation;
use crate::fail;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use values::Error;

/// Maximum number of aggregations waiting in one session.
const HANDED_MAX: usize = 1024;

/// Shared by all sessions.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The aggregations waiting in a session.
#[derive(Default)]
pub struct Handed {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    statement: u64,
    by_number: HashMap<u64, Aggregation>,
}

impl Handed {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of the leader's current statement.
    pub fn statement(&self) -> u64 {
        self.lock().statement
    }

    /// Stores an aggregation and returns its number. A worker passes the statement in which it
    /// began; what it does after the end of that statement is discarded.
    pub fn put(&self, aggregation: Aggregation, statement: Option<u64>) -> Result<u64, Error> {
        let mut state = self.lock();
        if statement.is_some_and(|s| s != state.statement) {
            return Err(fail::misused_program("The statement has ended."));
        }
        if state.by_number.len() >= HANDED_MAX {
            return Err(fail::program_limit(
                "The statement has too many aggregations.",
            ));
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        state.by_number.insert(number, aggregation);
        Ok(number)
    }

    /// Removes and returns an aggregation.
    pub fn take(&self, number: u64) -> Option<Aggregation> {
        self.lock().by_number.remove(&number)
    }

    /// The leader's statement has ended.
    pub fn end_statement(&self) {
        let mut state = self.lock();
        state.statement += 1;
        let left = std::mem::take(&mut state.by_number);
        drop(state);
        // Dropping large ones takes a while, so the lock was released first.
        drop(left);
    }
}
