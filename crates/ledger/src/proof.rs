//! Verification of proofs about a log (RFC 9162, sections 2.1.3.2 and 2.1.4.2). Needs
//! the roots only; proofs come from [`crate::tree`].
//!
//! Invariant: a proof verifies only if every hash of it was used, so nothing can be
//! added to one.

use crate::{Error, Hash};

/// That a leaf stands at a place of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inclusion {
    /// Number of the leaf, from 0.
    pub index: u64,
    /// Number of leaves that the root is of.
    pub size: u64,
    /// Hashes beside the way from the leaf to the root.
    pub path: Vec<Hash>,
}

/// That a log only grew.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Consistency {
    /// Number of leaves of the old root.
    pub old: u64,
    /// Number of leaves of the new root.
    pub new: u64,
    /// Hashes from which both roots follow.
    pub path: Vec<Hash>,
}

impl Inclusion {
    /// Whether the leaf is at its place below this root.
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
                // Levels in which the node has nothing at its right.
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
    /// Whether the log of the old root was continued to that of the new one.
    ///
    /// # Errors
    /// [`Error::Proof`] if not, [`Error::Range`] if the old log is the longer one.
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
        // Where the old log is a complete subtree, its root begins the way.
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
