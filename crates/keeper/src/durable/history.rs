//! Redo records as a history: decides what an authentic record may still change.
//!
//! The WAL belongs to the database. Its records are authentic individually, but somebody may omit
//! some, replay them, reorder them, or bring back old ones. Each record has a position
//! ([`redo::Order`]), and the checkpoint states the generation before which it contains everything.
//!
//! A record of an earlier generation than the checkpoint's therefore changes nothing. Of two
//! records that set the same slot the later one counts, in whatever order and however often they
//! arrive.
//!
//! Omitted records are not detected here: a backend that dies between the keeper's answer and its
//! write leaves the same gap (docs/security.md).
//!
//! Invariant: runs in `slots` do not overlap.

use redo::Order;
use std::collections::BTreeMap;
use std::ops::Range;

/// Number of runs remembered; beyond that, the oldest are forgotten.
const RUNS_MAX: usize = 1 << 22;

/// Records applied since the checkpoint.
pub(super) struct History {
    floor: u32,
    newest: u32,
    /// Runs of FIDs by their first one, with their end and the record that set them.
    slots: BTreeMap<u64, (u64, Order)>,
    /// Number of records and runs that changed nothing.
    pub stale: u64,
}

impl History {
    /// The history after a checkpoint that contains everything before this generation.
    pub fn after(floor: u32) -> History {
        History {
            floor,
            newest: floor,
            slots: BTreeMap::new(),
            stale: 0,
        }
    }

    /// The generation of the loaded checkpoint.
    pub fn floor(&self) -> u32 {
        self.floor
    }

    /// A generation after all that were seen.
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

    /// The parts of a run of FIDs that a record may set, which are those not set by a later record.
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

    /// Whether no later record has set a slot.
    pub fn permits(&self, order: Order, fid: u64) -> bool {
        let before = self.slots.range(..=fid).next_back();
        before.is_none_or(|(_, (stop, by))| *stop <= fid || *by <= order)
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

    /// Replaces what overlaps a run.
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
