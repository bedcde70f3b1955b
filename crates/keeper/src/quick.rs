//! Maps whose keys are small numbers that the keeper itself hands out: labels, partitions.
//!
//! Not for anything that a client or the database chooses: their keys could be made to collide.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// An odd number without a pattern, so that a product's upper bits depend on all of a key's.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A multiplication for each number of a key.
#[derive(Clone, Copy, Default)]
pub struct Quick(u64);

impl Quick {
    #[inline]
    fn add(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(26) ^ number).wrapping_mul(FACTOR);
    }
}

impl Hasher for Quick {
    #[inline]
    fn finish(&self) -> u64 {
        // Tables use the lower bits, too, in which a product has little of its key.
        self.0.rotate_left(26)
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.add(u64::from(*byte)));
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.add(u64::from(number));
    }

    #[inline]
    fn write_u16(&mut self, number: u16) {
        self.add(u64::from(number));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.add(u64::from(number));
    }
}

/// A map with such keys.
pub type Map<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;
/// A set of such keys.
pub type Set<K> = HashSet<K, BuildHasherDefault<Quick>>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::Hash;

    /// Keys as they occur are spread: with a bug, all pairs of labels with one sum, say, are in one
    /// place, and a lookup walks through them.
    #[test]
    fn spread() {
        let mut places: Map<u64, usize> = Map::default();
        for a in 1..64_u16 {
            for b in 1..64_u16 {
                let mut hasher = Quick::default();
                (a, b).hash(&mut hasher);
                *places.entry(hasher.finish() % 4096).or_default() += 1;
            }
        }
        assert!(places.values().all(|count| *count < 16));
        assert!(places.len() > 2000);
    }
}
