//! Redo records as a history: what an authentic record may still change.
//!
//! The WAL is the database's. Records in it are authentic one by one; somebody may leave some
//! out, send them twice or in another order, or bring old ones back. Each has its place
//! ([`redo::Order`]), and the checkpoint says before which generation it holds everything.
//!
//! So a record of an earlier generation than the checkpoint's changes nothing; and of two that
//! set one slot, the later one counts, in whichever order and however often they come.
//!
//! Not here: records that were left out. A backend that died between the keeper's answer and
//! its write leaves the same gap (docs/security.md).
//!
//! Invariant: runs in `slots` do not overlap.

use redo::Order;
use std::collections::BTreeMap;
use std::ops::Range;

/// Runs that are remembered; beyond that, what came first is forgotten.
const RUNS_MAX: usize = 1 << 22;

/// What has been applied since the checkpoint.
pub(super) struct History {
    floor: u32,
    newest: u32,
    /// The end of each run of FIDs by its first, and the record that set it.
    slots: BTreeMap<u64, (u64, Order)>,
    /// Records and runs that changed nothing.
    pub stale: u64,
}

impl History {
    /// Of a store whose checkpoint holds everything before this generation.
    pub fn after(floor: u32) -> History {
        History {
            floor,
            newest: floor,
            slots: BTreeMap::new(),
            stale: 0,
        }
    }

    /// The generation that the checkpoint was loaded with.
    pub fn floor(&self) -> u32 {
        self.floor
    }

    /// A generation after all that have been seen.
    pub fn next(&self) -> u32 {
        self.newest.saturating_add(1)
    }

    /// Whether a record may change anything.
    pub fn admits(&mut self, order: Order) -> bool {
        let counts = order.generation >= self.floor;
        self.newest = self.newest.max(order.generation);
        self.stale += u64::from(!counts);
        counts
    }

    /// The parts of a run of FIDs that a record may set: those that no later one has set.
    pub fn set(&mut self, order: Order, first: u64, count: u64) -> Vec<Range<u64>> {
        let end = first.saturating_add(count);
        let mut open = Vec::new();
        let mut from = first;
        for (start, (stop, by)) in self.overlapping(first, end) {
            if by > order {
                if from < start {
                    open.push(from..start);
                }
                from = from.max(stop);
                self.stale += 1;
            }
        }
        if from < end {
            open.push(from..end);
        }
        if self.slots.len() > RUNS_MAX {
            self.slots.clear();
        }
        for part in &open {
            self.take(part.clone(), order);
        }
        open
    }

    fn overlapping(&self, first: u64, end: u64) -> Vec<(u64, (u64, Order))> {
        let before = self.slots.range(..end).rev();
        let mut found: Vec<_> = before
            .take_while(|(_, (stop, _))| *stop > first)
            .map(|(start, run)| (*start, *run))
            .collect();
        found.reverse();
        found
    }

    /// Puts a run in the place of what overlaps it.
    fn take(&mut self, part: Range<u64>, order: Order) {
        for (start, (stop, by)) in self.overlapping(part.start, part.end) {
            self.slots.remove(&start);
            if start < part.start {
                self.slots.insert(start, (part.start, by));
            }
            if stop > part.end {
                self.slots.insert(part.end, (stop, by));
            }
        }
        self.slots.insert(part.start, (part.end, order));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn order(generation: u32, counter: u64) -> Order {
        Order {
            generation,
            counter,
        }
    }

    proptest! {
        /// Against a map of slots: the latest record counts, whatever the order.
        #[test]
        fn the_latest_counts(steps in proptest::collection::vec(
            (0u32..3, 0u64..9, 0u64..40, 1u64..12), 0..60
        )) {
            let mut history = History::after(0);
            let mut model: BTreeMap<u64, Order> = BTreeMap::new();
            for (generation, counter, first, count) in steps {
                let order = order(generation, counter);
                prop_assert!(history.admits(order));
                let open: Vec<u64> = history.set(order, first, count).into_iter().flatten().collect();
                let may = |slot: &u64| model.get(slot).is_none_or(|by| *by <= order);
                let expected: Vec<u64> = (first..first + count).filter(may).collect();
                prop_assert_eq!(&open, &expected);
                model.extend(open.into_iter().map(|slot| (slot, order)));
            }
        }
    }

    /// What the checkpoint holds changes nothing.
    #[test]
    fn older_than_the_checkpoint() {
        let mut history = History::after(4);
        assert!(!history.admits(order(3, 900)));
        assert!(history.admits(order(4, 0)));
        assert!(history.admits(order(7, 0)));
        assert_eq!((history.stale, history.next()), (1, 8));
    }
}
