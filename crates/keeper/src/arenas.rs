//! The arenas of a session: a pair for each of its channels.
//!
//! Invariant: arenas in the map belong to one session, so what is not found here cannot be
//! named in it.

use crate::numbers::Numbers;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use store::{Arena, Budget};

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

/// A channel's arenas.
struct Member {
    pair: Arc<ArenaPair>,
    /// The channel is closed.
    left: bool,
}

/// The arenas of a session's channels.
#[derive(Default)]
pub struct Arenas(RwLock<HashMap<u32, Member>>);

impl Arenas {
    fn read(&self) -> RwLockReadGuard<'_, HashMap<u32, Member>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<u32, Member>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many channels are open.
    pub fn open(&self) -> usize {
        self.read().values().filter(|member| !member.left).count()
    }

    /// Arenas for one more channel; `None` if no numbers are left.
    pub fn enter(&self, numbers: &Arc<Numbers>, budget: &Arc<Budget>) -> Option<Arc<ArenaPair>> {
        let pair = ArenaPair::new(numbers, budget)?;
        let member = Member {
            pair: Arc::clone(&pair),
            left: false,
        };
        self.write().insert(pair.first(), member);
        Some(pair)
    }

    /// The channel with these arenas is closed. They stay until the leader's
    /// statement ends: it may still read what a worker has left.
    pub fn leave(&self, pair: &ArenaPair) {
        if let Some(member) = self.write().get_mut(&pair.first()) {
            member.left = true;
        }
    }

    /// The leader's statement has ended: what closed channels left goes.
    pub fn end_statement(&self) {
        let someone_left = self.read().values().any(|m| m.left);
        if someone_left {
            self.write().retain(|_, member| !member.left);
        }
    }

    /// The arenas of the channel whose first one this is.
    pub fn get(&self, first: u32) -> Option<Arc<ArenaPair>> {
        self.read().get(&first).map(|m| Arc::clone(&m.pair))
    }

    /// Number of channels that have arenas.
    pub fn len(&self) -> usize {
        self.read().len()
    }
}
