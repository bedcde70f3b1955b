//! Slots of a partition that a garbage collection has found in use: one bit for each slot that
//! existed when it began.
//!
//! Invariant: a slot that was filled after the collection began is never garbage.

use crate::occupancy::Occupancy;

const BITS: u64 = 64;

pub(crate) struct Marks {
    bits: Vec<u64>,
    any: bool,
}

impl Marks {
    /// Marks for `slots` slots, none of them set.
    pub(crate) fn new(slots: u64) -> Marks {
        Marks {
            bits: vec![0; slots.div_ceil(BITS) as usize],
            any: false,
        }
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bits.len() * size_of::<u64>()
    }

    /// Marks a slot. Slots beyond the end are newer and count as marked.
    pub(crate) fn mark(&mut self, slot: u64) {
        self.any = true;
        if let Some(word) = self.bits.get_mut((slot / BITS) as usize) {
            *word |= 1 << (slot % BITS);
        }
    }

    /// Whether nothing was marked.
    pub(crate) fn is_empty(&self) -> bool {
        !self.any
    }

    /// The taken and unmarked slots from `from` on.
    pub(crate) fn garbage(&self, taken: &Occupancy, from: u64) -> impl Iterator<Item = u64> {
        let first = (from / BITS) as usize;
        let words = taken.words(first, self.bits.len().saturating_sub(first));
        let marks = self.bits.get(first..).unwrap_or(&[]);
        let words = words.iter().zip(marks).enumerate();
        words
            .flat_map(move |(at, (taken, marked))| {
                let base = (first + at) as u64 * BITS;
                let word = taken & !marked;
                (0..BITS)
                    .filter(move |bit| word >> bit & 1 == 1)
                    .map(move |bit| base + bit)
            })
            .filter(move |slot| *slot >= from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against sets: garbage is what was there and was neither marked nor put.
        #[test]
        fn like_sets(
            before in proptest::collection::btree_set(0u64..400, 0..300),
            used in proptest::collection::btree_set(0u64..600, 0..300),
            after in proptest::collection::btree_set(0u64..600, 0..100),
            from in 0u64..450,
        ) {
            let mut taken = Occupancy::default();
            before.iter().for_each(|slot| { taken.take(*slot); });
            let mut marks = Marks::new(taken.capacity());
            used.iter().for_each(|slot| marks.mark(*slot));
            for slot in &after {
                taken.take(*slot);
                marks.mark(*slot);
            }
            let found: Vec<u64> = marks.garbage(&taken, from).collect();
            let kept: BTreeSet<u64> = used.union(&after).copied().collect();
            let garbage = before.difference(&kept).copied();
            prop_assert_eq!(found, garbage.filter(|s| *s >= from).collect::<Vec<_>>());
        }
    }
}
