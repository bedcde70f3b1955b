//! The log: an append-only Merkle tree, its roots, and proofs about it.
//!
//! Proofs need only the hashes of *complete* subtrees: 2^level leaves, starting at a multiple of
//! 2^level. They come from an implementation of [`Nodes`]: [`Tree`] holds them in memory, others
//! read them from files.
//!
//! Invariant: the root of the first n leaves never changes, however many follow.

use crate::proof::{Consistency, Inclusion};
use crate::{Error, Hash};

/// Hashes of complete subtrees.
pub trait Nodes {
    /// Returns the hash of the leaves `index << level .. (index + 1) << level`, if the log has all
    /// of them.
    fn node(&self, level: u32, index: u64) -> Option<Hash>;
}

/// A log in memory, with 64 bytes for each leaf.
#[derive(Default, Clone, Debug)]
pub struct Tree {
    /// For each level, the hashes of its complete subtrees.
    levels: Vec<Vec<Hash>>,
}

impl Tree {
    /// A log without leaves.
    pub fn new() -> Tree {
        Tree::default()
    }

    /// A log without leaves that has room for so many, without being moved.
    pub fn with_capacity(leaves: usize) -> Tree {
        let levels = (0..=leaves.max(1).ilog2()).map(|level| Vec::with_capacity(leaves >> level));
        Tree {
            levels: levels.collect(),
        }
    }

    /// Number of leaves.
    pub fn size(&self) -> u64 {
        self.levels.first().map_or(0, |leaves| leaves.len() as u64)
    }

    /// Appends a leaf by its hash.
    pub fn push(&mut self, leaf: Hash) {
        let mut hash = leaf;
        for level in 0.. {
            if level == self.levels.len() {
                self.levels.push(Vec::new());
            }
            let Some(nodes) = self.levels.get_mut(level) else {
                return;
            };
            nodes.push(hash);
            // The second node of a pair completes its parent.
            match nodes.as_slice() {
                [.., left, right] if nodes.len() % 2 == 0 => hash = Hash::node(left, right),
                _ => return,
            }
        }
    }

    /// The root of all leaves.
    pub fn root(&self) -> Hash {
        root(self, self.size()).unwrap_or_else(|_| Hash::empty())
    }
}

impl Nodes for Tree {
    fn node(&self, level: u32, index: u64) -> Option<Hash> {
        let nodes = self.levels.get(usize::try_from(level).ok()?)?;
        nodes.get(usize::try_from(index).ok()?).copied()
    }
}

/// The root of the first `size` leaves.
///
/// # Errors
/// [`Error::Range`] if there are fewer.
pub fn root(nodes: &impl Nodes, size: u64) -> Result<Hash, Error> {
    if size == 0 {
        return Ok(Hash::empty());
    }
    range(nodes, 0, size)
}

/// Proves that a leaf is at `index` among the first `size` leaves.
///
/// # Errors
/// [`Error::Range`] if there is no such leaf.
pub fn prove_inclusion(nodes: &impl Nodes, index: u64, size: u64) -> Result<Inclusion, Error> {
    if index >= size {
        return Err(Error::Range);
    }
    let (mut start, mut end) = (0, size);
    let mut path = Vec::new();
    while end - start > 1 {
        let middle = start + left_size(end - start);
        if index < middle {
            path.push(range(nodes, middle, end)?);
            end = middle;
        } else {
            path.push(range(nodes, start, middle)?);
            start = middle;
        }
    }
    path.reverse();
    Ok(Inclusion { index, size, path })
}

/// Proves that the log with `new` leaves extends the one with `old` leaves.
///
/// # Errors
/// [`Error::Range`] if there are fewer leaves, or if `old` is greater than `new`.
pub fn prove_consistency(nodes: &impl Nodes, old: u64, new: u64) -> Result<Consistency, Error> {
    if old > new {
        return Err(Error::Range);
    }
    let mut path = Vec::new();
    if old > 0 && old < new {
        let (mut start, mut end) = (0, new);
        while old != end {
            let middle = start + left_size(end - start);
            if old <= middle {
                path.push(range(nodes, middle, end)?);
                end = middle;
            } else {
                path.push(range(nodes, start, middle)?);
                start = middle;
            }
        }
        // The verifier has the old root itself, so it is not part of the proof.
        if start > 0 {
            path.push(range(nodes, start, end)?);
        }
        path.reverse();
    }
    Ok(Consistency { old, new, path })
}

/// The largest power of two below the number of leaves, which must exceed one.
fn left_size(leaves: u64) -> u64 {
    1 << (leaves - 1).ilog2()
}

/// The root of the leaves from `start` up to but excluding `end`, at least one, where `start` is a
/// multiple of the power of two that holds them.
fn range(nodes: &impl Nodes, start: u64, end: u64) -> Result<Hash, Error> {
    let leaves = end - start;
    if leaves.is_power_of_two() {
        let level = leaves.ilog2();
        return nodes.node(level, start >> level).ok_or(Error::Range);
    }
    let middle = start + left_size(leaves);
    Ok(Hash::node(
        &range(nodes, start, middle)?,
        &range(nodes, middle, end)?,
    ))
}
