//! How many copies of the store are under way. Each retains the files of its checkpoint on disk,
//! and holds some files in memory.
//!
//! Invariant: a session has at most one copy, and there are at most as many as the configuration
//! allows.

use crate::fail;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use values::Error;

/// See the module documentation.
pub struct Copies {
    most: usize,
    /// Numbers of the sessions that have one.
    sessions: Mutex<BTreeSet<u64>>,
}

/// The right to a copy.
pub struct Place {
    copies: Arc<Copies>,
    session: u64,
}

impl Copies {
    /// Allows so many.
    pub fn new(most: u32) -> Copies {
        Copies {
            most: most as usize,
            sessions: Mutex::default(),
        }
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a session, which keeps it until it is dropped.
    pub fn place(self: &Arc<Copies>, session: u64) -> Result<Place, Error> {
        let mut sessions = self.sessions();
        if sessions.contains(&session) {
            return Err(fail::too_many_copies("The session makes one already."));
        }
        if sessions.len() >= self.most {
            return Err(fail::too_many_copies(
                "Other sessions make as many as \"store_copies\" allows.",
            ));
        }
        sessions.insert(session);
        Ok(Place {
            copies: Arc::clone(self),
            session,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.copies.sessions().remove(&self.session);
    }
}
