//! The tree over a result's leaves. An inner node has up to [`CHILDREN`] children: a binary tree takes
//! two blocks of SHA-256 for each leaf, this one five for seven leaves.
//!
//! The last node of a level may have fewer children. The signed header gives the number of leaves,
//! and with it the number of children of each node.
//!
//! Invariant: a path verifies only for its leaf, at its position, among that many leaves, and only
//! if all of its hashes were used.

use crate::hash::CHILDREN;
use crate::{Error, Hash};

/// The hashes of all levels: the leaves first, the root last.
pub(super) struct Tree(Vec<Vec<Hash>>);

impl Tree {
    pub(super) fn of(leaves: Vec<Hash>) -> Tree {
        let mut levels = vec![leaves];
        while let Some(below) = levels.last().filter(|below| below.len() > 1) {
            let level = below.chunks(CHILDREN).map(Hash::wide_node).collect();
            levels.push(level);
        }
        Tree(levels)
    }

    pub(super) fn root(&self) -> Hash {
        let top = self.0.last().and_then(|top| top.first());
        top.copied().unwrap_or_else(Hash::empty)
    }

    /// The siblings of a leaf, and of the nodes above it: level by level, from the left.
    pub(super) fn path(&self, leaf: u64) -> Result<Vec<Hash>, Error> {
        let mut place = usize::try_from(leaf).map_err(|_| Error::Range)?;
        let leaves = self.0.first().map_or(0, Vec::len);
        if place >= leaves {
            return Err(Error::Range);
        }
        let mut path = Vec::new();
        let above = self.0.len().saturating_sub(1);
        for level in self.0.iter().take(above) {
            let siblings = level.chunks(CHILDREN).nth(place / CHILDREN);
            let (left, right) = siblings
                .and_then(|siblings| siblings.split_at_checked(place % CHILDREN))
                .ok_or(Error::Range)?;
            let (_, right) = right.split_first().ok_or(Error::Range)?;
            path.extend_from_slice(left);
            path.extend_from_slice(right);
            place /= CHILDREN;
        }
        Ok(path)
    }
}

/// Checks that the leaf is at its position among so many leaves below this root.
pub(super) fn verify(
    leaf: Hash,
    index: u64,
    leaves: u64,
    path: &[Hash],
    root: &Hash,
) -> Result<(), Error> {
    const WIDTH: u64 = CHILDREN as u64;
    if index >= leaves {
        return Err(Error::Range);
    }
    let (mut hash, mut path) = (leaf, path);
    let (mut place, mut count) = (index, leaves);
    while count > 1 {
        let at = place % WIDTH;
        let siblings = (count - (place - at)).min(WIDTH) - 1;
        let (beside, above) = path
            .split_at_checked(siblings as usize)
            .ok_or(Error::Proof)?;
        let (left, right) = beside.split_at_checked(at as usize).ok_or(Error::Proof)?;
        hash = Hash::wide_node(&[left, &[hash], right].concat());
        path = above;
        (place, count) = (place / WIDTH, count.div_ceil(WIDTH));
    }
    let holds = path.is_empty() && hash == *root;
    holds.then_some(()).ok_or(Error::Proof)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(count: u64) -> Vec<Hash> {
        (0..count).map(|n| Hash::leaf(&n.to_le_bytes())).collect()
    }

    /// Each leaf at its place, and nowhere else: not beside it, not among more or fewer leaves, not
    /// with a hash more or less. Bug: a cell that is shown alone as one of another row or column.
    #[test]
    fn places() -> Result<(), Error> {
        for count in [1, 2, 7, 8, 9, 63, 64, 65, 130, 513] {
            let leaves = leaves(count);
            let tree = Tree::of(leaves.clone());
            let root = tree.root();
            for (index, leaf) in (0..).zip(&leaves) {
                let path = tree.path(index)?;
                verify(*leaf, index, count, &path, &root)?;
                for other in (0..count).filter(|other| *other != index) {
                    let moved = verify(*leaf, other, count, &path, &root);
                    assert_eq!(moved, Err(Error::Proof), "{index} as {other} of {count}");
                }
                let longer = [path.as_slice(), &[*leaf]].concat();
                let found = verify(*leaf, index, count, &longer, &root);
                assert_eq!(found, Err(Error::Proof));
                if let Some((_, shorter)) = path.split_last() {
                    let found = verify(*leaf, index, count, shorter, &root);
                    assert_eq!(found, Err(Error::Proof));
                }
            }
            assert_eq!(tree.path(count), Err(Error::Range));
            let beyond = verify(Hash::empty(), count, count, &[], &root);
            assert_eq!(beyond, Err(Error::Range));
        }
        Ok(())
    }

    /// Roots differ with the number of leaves, also where levels are not full.
    #[test]
    fn roots() {
        let roots: std::collections::HashSet<Hash> = (0..600)
            .map(|count| Tree::of(leaves(count)).root())
            .collect();
        assert_eq!(roots.len(), 600);
    }

    /// Inner nodes are neither leaves nor nodes of a log: each has a prefix of its own.
    #[test]
    fn domains() {
        let [left, right] = [Hash([1; 32]), Hash([2; 32])];
        let node = Hash::wide_node(&[left, right]);
        assert_ne!(node, Hash::node(&left, &right));
        assert_ne!(node, Hash::leaf(&[left.0, right.0].concat()));
        assert_ne!(Hash::wide_node(&[left]), left);
    }
}
