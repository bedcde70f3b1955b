//! Numbers of row versions that one transaction has named: a set that costs little where there are
//! few, as in most transactions.

use std::collections::HashSet;

/// So many are looked through one by one; to hash a number costs more.
const FEW: usize = 32;

/// Some numbers.
#[derive(Default)]
pub struct Named {
    few: Vec<u64>,
    more: HashSet<u64>,
}

impl Named {
    /// Whether it is one of them.
    pub fn contains(&self, number: u64) -> bool {
        self.few.contains(&number) || self.more.contains(&number)
    }

    /// Adds one that is not among them.
    pub fn add(&mut self, number: u64) {
        if self.few.len() < FEW {
            self.few.push(number);
        } else {
            self.more.insert(number);
        }
    }

    /// Adds one. Returns whether it was not among them.
    pub fn insert(&mut self, number: u64) -> bool {
        let fresh = !self.contains(number);
        if fresh {
            self.add(number);
        }
        fresh
    }
}
