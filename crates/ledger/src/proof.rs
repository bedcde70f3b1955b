//! Verification of proofs about a log (RFC 9162, sections 2.1.3.2 and 2.1.4.2). Needs only the
//! roots; [`crate::tree`] makes the proofs.
//!
//! Invariant: a proof verifies only if all of its hashes were used, so nothing can be appended to
//! it.

use crate::{Error, Hash};

/// Proof that a leaf is at a position in a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inclusion {
    /// Number of the leaf, from 0.
    pub index: u64,
    /// Number of leaves below the root.
    pub size: u64,
    /// Sibling hashes on the path from the leaf to the root.
    pub path: Vec<Hash>,
}

/// Proof that one state of a log extends another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Consistency {
    /// Number of leaves of the old root.
    pub old: u64,
    /// Number of leaves of the new root.
    pub new: u64,
    /// Hashes from which both roots can be computed.
    pub path: Vec<Hash>,
}

impl Inclusion {
    /// Checks that the leaf is at its position below this root.
    ///
    /// # Errors
    /// [`Error::Proof`] if not, [`Error::Range`] if there can be no such leaf.
    pub fn verify(&self, leaf: &Hash, root: &Hash) -> Result<(), Error> {
        if self.index >= self.size {
            return Err(Error::Range);
        }
        let (mut place, mut last) = (self.index, self.size - 1);
        let mut hash = *leaf;
        for beside in &self.path {
            if last == 0 {
                return Err(Error::Proof);
            }
            if place & 1 == 1 || place == last {
                hash = Hash::node(beside, &hash);
                // On these levels the node has no right sibling.
                while place & 1 == 0 && place != 0 {
                    (place, last) = (place >> 1, last >> 1);
                }
            } else {
                hash = Hash::node(&hash, beside);
            }
            (place, last) = (place >> 1, last >> 1);
        }
        holds(last == 0 && hash == *root)
    }
}

impl Consistency {
    /// Checks that the log of the new root extends that of the old one.
    ///
    /// # Errors
    /// [`Error::Proof`] if not, [`Error::Range`] if the old log is longer.
    pub fn verify(&self, old_root: &Hash, new_root: &Hash) -> Result<(), Error> {
        if self.old > self.new {
            return Err(Error::Range);
        }
        if self.old == self.new {
            return holds(self.path.is_empty() && old_root == new_root);
        }
        if self.old == 0 {
            return holds(self.path.is_empty() && *old_root == Hash::empty());
        }
        let (mut place, mut last) = (self.old - 1, self.new - 1);
        while place & 1 == 1 {
            (place, last) = (place >> 1, last >> 1);
        }
        let mut path = self.path.iter();
        // If the old log is a complete subtree, the path starts at its root.
        let first = if place == 0 {
            Some(old_root)
        } else {
            path.next()
        };
        let first = first.ok_or(Error::Proof)?;
        let (mut old, mut new) = (*first, *first);
        for beside in path {
            if last == 0 {
                return Err(Error::Proof);
            }
            if place & 1 == 1 || place == last {
                old = Hash::node(beside, &old);
                new = Hash::node(beside, &new);
                while place & 1 == 0 && place != 0 {
                    (place, last) = (place >> 1, last >> 1);
                }
            } else {
                new = Hash::node(&new, beside);
            }
            (place, last) = (place >> 1, last >> 1);
        }
        holds(last == 0 && old == *old_root && new == *new_root)
    }
}

fn holds(condition: bool) -> Result<(), Error> {
    condition.then_some(()).ok_or(Error::Proof)
}
