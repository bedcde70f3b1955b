//! Memory accounting: a limit that is charged before memory is allocated.
//!
//! Invariant: what is charged to a budget is charged to its parent, too.

use crate::error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use values::Error;

/// A limit on allocated bytes, and their current number.
#[derive(Debug)]
pub struct Budget {
    used: AtomicUsize,
    limit: usize,
    /// The setting named in the error when the limit is reached.
    setting: &'static str,
    parent: Option<Arc<Budget>>,
}

impl Budget {
    /// A budget of `limit` bytes; `setting` is named in errors.
    pub fn new(limit: usize, setting: &'static str) -> Arc<Budget> {
        Arc::new(Budget {
            used: AtomicUsize::new(0),
            limit,
            setting,
            parent: None,
        })
    }

    /// A budget within another one.
    pub fn within(parent: &Arc<Budget>, limit: usize, setting: &'static str) -> Arc<Budget> {
        Arc::new(Budget {
            used: AtomicUsize::new(0),
            limit,
            setting,
            parent: Some(Arc::clone(parent)),
        })
    }

    /// Charges bytes, or fails with 53200 and charges nothing.
    pub fn take(&self, bytes: usize) -> Result<(), Error> {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.limit {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            return Err(error::out_of_memory(self.setting));
        }
        if let Some(parent) = &self.parent
            && let Err(error) = parent.take(bytes)
        {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            return Err(error);
        }
        Ok(())
    }

    /// Charges bytes regardless of the limit.
    fn force(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        if let Some(parent) = &self.parent {
            parent.force(bytes);
        }
    }

    /// Releases bytes.
    pub fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(parent) = &self.parent {
            parent.give(bytes);
        }
    }

    /// Bytes currently charged.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The limit in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }
}

/// What one owner has charged. Released on drop.
#[derive(Debug)]
pub(crate) struct Account {
    budget: Arc<Budget>,
    charged: usize,
    forced: bool,
}

impl Account {
    pub(crate) fn new(budget: Arc<Budget>) -> Account {
        Account {
            budget,
            charged: 0,
            forced: false,
        }
    }

    /// An account that is never refused, for data that must be read back.
    pub(crate) fn forced(budget: Arc<Budget>) -> Account {
        Account {
            budget,
            charged: 0,
            forced: true,
        }
    }

    /// Makes the account refusable again.
    pub(crate) fn unforce(&mut self) {
        self.forced = false;
    }

    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), Error> {
        if self.forced {
            self.force(bytes);
        } else if bytes > 0 {
            self.budget.take(bytes)?;
            self.charged += bytes;
        }
        Ok(())
    }

    /// Charges bytes regardless of the limit.
    pub(crate) fn force(&mut self, bytes: usize) {
        self.budget.force(bytes);
        self.charged += bytes;
    }

    /// Releases bytes, at most what was charged.
    #[inline]
    pub(crate) fn give(&mut self, bytes: usize) {
        let bytes = bytes.min(self.charged);
        if bytes > 0 {
            self.charged -= bytes;
            self.budget.give(bytes);
        }
    }

    pub(crate) fn charged(&self) -> usize {
        self.charged
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.give(self.charged);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A refused charge must leave nothing charged, in child and parent alike;
    /// with the bug a session that hit its limit once could never allocate again.
    #[test]
    fn refusal_charges_nothing() {
        let parent = Budget::new(100, "memory_limit");
        let child = Budget::within(&parent, 80, "session_memory_limit");
        assert!(child.take(60).is_ok());
        assert!(child.take(30).is_err());
        assert!(parent.take(30).is_ok());
        assert_eq!(child.take(20).map_err(|e| e.sqlstate), Err(*b"53200"));
        assert_eq!((child.used(), parent.used()), (60, 90));
        child.give(60);
        assert_eq!((child.used(), parent.used()), (0, 30));
    }
}
