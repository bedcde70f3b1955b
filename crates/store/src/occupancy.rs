//! Which slots of a partition are taken: a bitmap, and above it a bitmap of the
//! words that have room. Free slots are reused lowest first, so that the FIDs of
//! a column stay dense.
//!
//! A slot whose value was swept *rests*: it is free, and is not given out before a checkpoint holds
//! that it is (docs/durability.md, "Swept slots rest").
//!
//! Invariant: bit w of `open` is set exactly if word w of `taken` has a zero bit that does not rest.

use std::collections::BTreeMap;

const BITS: u64 = 64;
/// Slots of one chunk ([`crate::chunks`]).
pub(crate) const CHUNK: usize = 1024;

#[derive(Default)]
pub(crate) struct Occupancy {
    taken: Vec<u64>,
    open: Vec<u64>,
    /// No word of `open` below this one has a bit set.
    hint: usize,
    count: u64,
    /// Slots that rest, by word: those that came to rest since the checkpoint under way began ...
    resting: BTreeMap<usize, u64>,
    /// ... and before.
    aging: BTreeMap<usize, u64>,
}

fn place(slot: u64) -> (usize, u64) {
    ((slot / BITS) as usize, 1 << (slot % BITS))
}

impl Occupancy {
    /// Bytes that holding `slots` slots takes, about.
    pub(crate) const BYTES_PER_CHUNK: usize = CHUNK / 8 + 16;

    /// Number of slots that are taken.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Number of slots there is room for without growing.
    pub(crate) fn capacity(&self) -> u64 {
        self.taken.len() as u64 * BITS
    }

    /// The slot that [`Occupancy::take`] would take.
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

    /// Takes a slot, growing as needed. False if it is taken already.
    pub(crate) fn take(&mut self, slot: u64) -> bool {
        let (at, bit) = place(slot);
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
        let Some(word) = self.taken.get_mut(at).filter(|w| **w & bit == 0) else {
            return false;
        };
        *word |= bit;
        let full = *word;
        self.count += 1;
        for rest in [&mut self.resting, &mut self.aging] {
            if let Some(bits) = rest.get_mut(&at) {
                *bits &= !bit;
            }
        }
        if full | self.rest_of(at) == u64::MAX {
            let (word, open) = place(at as u64);
            if let Some(w) = self.open.get_mut(word) {
                *w &= !open;
            }
        }
        true
    }

    /// The slots of a word that rest.
    #[inline]
    fn rest_of(&self, at: usize) -> u64 {
        if self.resting.is_empty() && self.aging.is_empty() {
            return 0;
        }
        let bits = |rest: &BTreeMap<usize, u64>| rest.get(&at).copied().unwrap_or(0);
        bits(&self.resting) | bits(&self.aging)
    }

    /// Frees a slot, which rests until a checkpoint that begins later is there. False if it is free
    /// already.
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

    /// A checkpoint begins: it will hold that the slots that rest now are free.
    pub(crate) fn age(&mut self) {
        for (at, bits) in std::mem::take(&mut self.resting) {
            *self.aging.entry(at).or_default() |= bits;
        }
    }

    /// It is there: they may be given out.
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

    /// Frees a slot. False if it is free already.
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

    /// The bitmap from word `first` on, at most `count` words.
    pub(crate) fn words(&self, first: usize, count: usize) -> &[u64] {
        let end = first.saturating_add(count).min(self.taken.len());
        self.taken.get(first..end).unwrap_or(&[])
    }

    /// Whether a slot is taken.
    #[inline]
    pub(crate) fn has(&self, slot: u64) -> bool {
        let (at, bit) = place(slot);
        self.taken.get(at).is_some_and(|word| word & bit != 0)
    }

    /// Whether `count` slots from one on are all taken.
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
        /// Against sets: lowest free slot first that does not rest, nothing taken twice.
        #[test]
        fn like_a_set(steps in proptest::collection::vec((0u8..8, 0u64..700), 0..2000)) {
            let mut real = Occupancy::default();
            let mut model = BTreeSet::new();
            let (mut resting, mut aging) = (BTreeSet::new(), BTreeSet::new());
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
                    // A redo record puts a value there, whether it rests or not.
                    3 => {
                        prop_assert_eq!(real.take(slot), model.insert(slot));
                        resting.remove(&slot);
                        aging.remove(&slot);
                    }
                    4 => prop_assert_eq!(real.free(slot), model.remove(&slot)),
                    _ => {
                        let used = |s: &u64| {
                            model.contains(s) || resting.contains(s) || aging.contains(s)
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
                let run = (slot..slot + 70).all(|s| model.contains(&s));
                prop_assert_eq!(real.has_all(slot, 70), run);
            }
        }
    }
}
