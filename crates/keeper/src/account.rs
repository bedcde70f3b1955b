//! Memory charged by an aggregation to its session. It is charged in larger pieces than needed,
//! because charging costs atomic operations.

use std::sync::Arc;
use store::{Budget, out_of_memory};
use values::Error;

/// Amount charged at a time.
const PIECE: usize = 64 * 1024;

/// The memory account of an aggregation.
pub struct Account {
    budget: Arc<Budget>,
    limit: usize,
    charged: usize,
    used: usize,
}

impl Account {
    /// An account with nothing charged.
    pub fn new(budget: &Arc<Budget>, limit: usize) -> Account {
        Account {
            budget: Arc::clone(budget),
            limit,
            charged: 0,
            used: 0,
        }
    }

    /// Takes bytes within the aggregation's limit, or fails and takes none.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Result<(), Error> {
        if self.used.saturating_add(bytes) > self.limit {
            return Err(out_of_memory("session_memory_limit"));
        }
        self.take_beyond(bytes)
    }

    /// Takes bytes regardless of the aggregation's limit, but within the session's.
    #[inline]
    pub fn take_beyond(&mut self, bytes: usize) -> Result<(), Error> {
        let used = self.used.saturating_add(bytes);
        if used > self.charged {
            self.charge(used - self.charged)?;
        }
        self.used = used;
        Ok(())
    }

    #[cold]
    fn charge(&mut self, missing: usize) -> Result<(), Error> {
        let piece = missing.max(PIECE);
        if self.budget.take(piece).is_ok() {
            self.charged += piece;
            return Ok(());
        }
        self.budget.take(missing)?;
        self.charged += missing;
        Ok(())
    }

    /// Releases bytes for reuse by the same aggregation.
    pub fn give(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
    }

    /// Releases everything.
    pub fn empty(&mut self) {
        self.budget.give(self.charged);
        self.charged = 0;
        self.used = 0;
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that was charged comes back; with the bug a session that aggregates often
    /// runs out of memory.
    #[test]
    fn comes_back() {
        let budget = Budget::new(100_000, "x");
        let mut account = Account::new(&budget, 90_000);
        assert!(account.take(80_000).is_ok());
        assert!(account.take(20_000).is_err());
        assert!(account.take_beyond(20_000).is_ok());
        assert!(account.take_beyond(1).is_err());
        account.give(50_000);
        assert!(account.take(40_000).is_ok());
        assert_eq!(budget.used(), 100_000);
        drop(account);
        assert_eq!(budget.used(), 0);
    }
}
