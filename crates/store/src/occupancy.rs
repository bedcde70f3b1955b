//! The slots of a partition that are in use: a bitmap, and above it a bitmap of the words that
//! contain free slots. The lowest free slots are reused first, so that the FIDs of a column stay
//! dense.
//!
//! A slot whose value was swept *rests*: it is free, but is not reused before a checkpoint contains
//! this fact (docs/durability.md, "Swept slots rest").
//!
//! A *leased* slot is free, but only who holds the lease fills it (docs/durability.md, "Leases").
//!
//! Invariant: bit w of `open` is set if and only if word w of `taken` has a zero bit whose slot
//! does not rest and is not leased.

use std::collections::BTreeMap;

const BITS: u64 = 64;
/// Number of slots in one chunk ([`crate::chunks`]).
pub(crate) const CHUNK: usize = 1024;

#[derive(Default)]
pub(crate) struct Occupancy {
    taken: Vec<u64>,
    open: Vec<u64>,
    /// No word of `open` below this one has a bit set.
    hint: usize,
    count: u64,
    /// Resting slots, by word: those that started to rest after the current checkpoint began ...
    resting: BTreeMap<usize, u64>,
    /// ... and before that.
    aging: BTreeMap<usize, u64>,
    /// Leased slots, by word.
    leased: BTreeMap<usize, u64>,
}

fn place(slot: u64) -> (usize, u64) {
    ((slot / BITS) as usize, 1 << (slot % BITS))
}

impl Occupancy {
    /// Approximate memory needed for the slots of one chunk, in bytes.
    pub(crate) const BYTES_PER_CHUNK: usize = CHUNK / 8 + 16;

    /// Number of slots in use.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Number of slots available without growing.
    pub(crate) fn capacity(&self) -> u64 {
        self.taken.len() as u64 * BITS
    }

    /// The slot to be used next: the lowest one that is free and does not rest, or a new one.
    pub(crate) fn next(&mut self) -> u64 {
        while let Some(word) = self.open.get(self.hint) {
            if *word != 0 {
                let at = self.hint as u64 * BITS + u64::from(word.trailing_zeros());
                let taken = self.taken.get(at as usize).copied().unwrap_or(0);
                let taken = taken | self.rest_of(at as usize);
                return at * BITS + u64::from(taken.trailing_ones());
            }
            self.hint += 1;
        }
        self.capacity()
    }

    /// Marks a slot as used, growing as needed. Returns false if it is in use already.
    pub(crate) fn take(&mut self, slot: u64) -> bool {
        let (at, bit) = place(slot);
        self.grow(at);
        let Some(word) = self.taken.get_mut(at).filter(|w| **w & bit == 0) else {
            return false;
        };
        *word |= bit;
        self.count += 1;
        for rest in [&mut self.resting, &mut self.aging, &mut self.leased] {
            if let Some(bits) = rest.get_mut(&at) {
                *bits &= !bit;
                if *bits == 0 {
                    rest.remove(&at);
                }
            }
        }
        self.close(at);
        true
    }

    /// Adds words until this one is there.
    fn grow(&mut self, at: usize) {
        while self.taken.len() <= at {
            let (word, open) = place(self.taken.len() as u64);
            self.taken.push(0);
            if word >= self.open.len() {
                self.open.push(0);
            }
            if let Some(w) = self.open.get_mut(word) {
                *w |= open;
            }
            self.hint = self.hint.min(word);
        }
    }

    /// Notes if a word has no slot left for [`Occupancy::next`].
    fn close(&mut self, at: usize) {
        let taken = self.taken.get(at).copied().unwrap_or(0);
        if taken | self.rest_of(at) == u64::MAX {
            let (word, open) = place(at as u64);
            if let Some(w) = self.open.get_mut(word) {
                *w &= !open;
            }
        }
    }

    /// Leases a slot, which must be the next one.
    pub(crate) fn lease(&mut self, slot: u64) {
        let (at, bit) = place(slot);
        self.grow(at);
        *self.leased.entry(at).or_default() |= bit;
        self.close(at);
    }

    /// Whether a slot is leased, and was not filled.
    pub(crate) fn is_leased(&self, slot: u64) -> bool {
        let (at, bit) = place(slot);
        self.leased.get(&at).is_some_and(|bits| bits & bit != 0)
    }

    /// Ends the lease of a slot that was not filled.
    pub(crate) fn unlease(&mut self, slot: u64) {
        let (at, bit) = place(slot);
        let Some(bits) = self.leased.get_mut(&at).filter(|bits| **bits & bit != 0) else {
            return;
        };
        *bits &= !bit;
        if *bits == 0 {
            self.leased.remove(&at);
        }
        let (word, open) = place(at as u64);
        if let Some(w) = self.open.get_mut(word) {
            *w |= open;
        }
        self.hint = self.hint.min(word);
    }

    /// The resting and leased slots of a word.
    #[inline]
    fn rest_of(&self, at: usize) -> u64 {
        if self.resting.is_empty() && self.aging.is_empty() && self.leased.is_empty() {
            return 0;
        }
        let bits = |rest: &BTreeMap<usize, u64>| rest.get(&at).copied().unwrap_or(0);
        bits(&self.resting) | bits(&self.aging) | bits(&self.leased)
    }

    /// Frees a slot, which rests until a checkpoint that begins later has completed. Returns false
    /// if it is free already.
    pub(crate) fn rest(&mut self, slot: u64) -> bool {
        let (at, bit) = place(slot);
        let Some(word) = self.taken.get_mut(at).filter(|w| **w & bit != 0) else {
            return false;
        };
        *word &= !bit;
        self.count -= 1;
        *self.resting.entry(at).or_default() |= bit;
        true
    }

    /// A checkpoint begins: it will record that the slots now resting are free.
    pub(crate) fn age(&mut self) {
        for (at, bits) in std::mem::take(&mut self.resting) {
            *self.aging.entry(at).or_default() |= bits;
        }
    }

    /// The checkpoint has completed: these slots may be reused.
    pub(crate) fn wake(&mut self) {
        for (at, bits) in std::mem::take(&mut self.aging) {
            let (word, open) = place(at as u64);
            if bits != 0
                && let Some(w) = self.open.get_mut(word)
            {
                *w |= open;
                self.hint = self.hint.min(word);
            }
        }
    }

    /// Frees a slot. Returns false if it is free already.
    pub(crate) fn free(&mut self, slot: u64) -> bool {
        let (at, bit) = place(slot);
        let Some(word) = self.taken.get_mut(at).filter(|w| **w & bit != 0) else {
            return false;
        };
        *word &= !bit;
        self.count -= 1;
        let (word, open) = place(at as u64);
        if let Some(w) = self.open.get_mut(word) {
            *w |= open;
        }
        self.hint = self.hint.min(word);
        true
    }

    /// Returns the bitmap starting with word `first`, at most `count` words.
    pub(crate) fn words(&self, first: usize, count: usize) -> &[u64] {
        let end = first.saturating_add(count).min(self.taken.len());
        self.taken.get(first..end).unwrap_or(&[])
    }

    /// Whether a slot is in use.
    #[inline]
    pub(crate) fn has(&self, slot: u64) -> bool {
        let (at, bit) = place(slot);
        self.taken.get(at).is_some_and(|word| word & bit != 0)
    }

    /// Whether `count` slots starting with this one are all in use.
    #[inline]
    pub(crate) fn has_all(&self, slot: u64, count: u64) -> bool {
        let mut at = slot;
        let end = slot.saturating_add(count);
        while at < end {
            let offset = at % BITS;
            let here = (BITS - offset).min(end - at);
            let mask = (u64::MAX >> (BITS - here)) << offset;
            match self.taken.get((at / BITS) as usize) {
                Some(word) if word & mask == mask => at += here,
                _ => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Compares with sets: the lowest free slot that does not rest is used first, and no slot
        /// is used twice.
        #[test]
        fn like_a_set(steps in proptest::collection::vec((0u8..10, 0u64..700), 0..2000)) {
            let mut real = Occupancy::default();
            let mut model = BTreeSet::new();
            let (mut resting, mut aging) = (BTreeSet::new(), BTreeSet::new());
            let mut leased = BTreeSet::new();
            for (step, slot) in steps {
                match step {
                    0 => {
                        real.age();
                        aging.append(&mut resting);
                    }
                    1 => {
                        real.wake();
                        aging.clear();
                    }
                    2 => {
                        let was = model.remove(&slot);
                        prop_assert_eq!(real.rest(slot), was);
                        if was {
                            resting.insert(slot);
                        }
                    }
                    // A redo record stores a value there, whether the slot rests or not.
                    3 => {
                        prop_assert_eq!(real.take(slot), model.insert(slot));
                        resting.remove(&slot);
                        aging.remove(&slot);
                        leased.remove(&slot);
                    }
                    4 => {
                        real.unlease(slot);
                        leased.remove(&slot);
                    }
                    5 => {
                        let next = real.next();
                        real.lease(next);
                        leased.insert(next);
                    }
                    6 => prop_assert_eq!(real.free(slot), model.remove(&slot)),
                    _ => {
                        let used = |s: &u64| {
                            model.contains(s) || resting.contains(s) || aging.contains(s) || leased.contains(s)
                        };
                        let lowest = (0..).find(|s| !used(s)).unwrap_or(0);
                        let next = real.next();
                        prop_assert_eq!(next, lowest);
                        prop_assert!(real.take(next));
                        prop_assert!(!real.take(next));
                        model.insert(next);
                    }
                }
                prop_assert_eq!(real.count(), model.len() as u64);
                prop_assert_eq!(real.has(slot), model.contains(&slot));
                prop_assert_eq!(real.is_leased(slot), leased.contains(&slot));
                let run = (slot..slot + 70).all(|s| model.contains(&s));
                prop_assert_eq!(real.has_all(slot, 70), run);
            }
        }
    }
}
