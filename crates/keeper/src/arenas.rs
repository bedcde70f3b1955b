//! The arenas of a session: one pair for each of its channels.
//!
//! Invariant: all arenas in the map belong to one session, so an arena that is not found here
//! cannot be named in it.

use crate::numbers::Numbers;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use store::{Arena, Budget};

/// The two arenas of a channel, kept as long as somebody can name their contents.
pub struct ArenaPair {
    numbers: Arc<Numbers>,
    first: u32,
    /// Values that live until the end of the statement.
    pub statement: Arena,
    /// Values that live until the end of the session.
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

    /// Number of the pair to which an arena with this number belongs.
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
    /// Whether the channel is closed.
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

    /// Number of open channels.
    pub fn open(&self) -> usize {
        self.read().values().filter(|member| !member.left).count()
    }

    /// Creates the arenas of another channel; `None` if no numbers are left.
    pub fn enter(&self, numbers: &Arc<Numbers>, budget: &Arc<Budget>) -> Option<Arc<ArenaPair>> {
        let pair = ArenaPair::new(numbers, budget)?;
        let member = Member {
            pair: Arc::clone(&pair),
            left: false,
        };
        self.write().insert(pair.first(), member);
        Some(pair)
    }

    /// The channel with these arenas was closed. They are kept until the leader's statement ends,
    /// since the leader may still read a worker's results.
    pub fn leave(&self, pair: &ArenaPair) {
        if let Some(member) = self.write().get_mut(&pair.first()) {
            member.left = true;
        }
    }

    /// The leader's statement has ended: releases the arenas of closed channels.
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
