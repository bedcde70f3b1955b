//! All partitions, by number and by key. Looking one up by number takes no lock.
//!
//! Invariant: a number is reused only if no unused one is left, the oldest first.

use crate::budget::Budget;
use crate::error;
use crate::journal::Journal;
use crate::layout::PartitionKey;
use crate::partition::{Partition, PartitionStatistics};
use crate::scalar::Scalar;
use crate::segment::{Backing, Haste, Memory, USES_MAX};
use contract::fid::ARENA_BASE;
use contract::{Fid, TypeCode};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use values::Error;

/// Number of entries in one leaf of the table.
const LEAF: usize = 1024;
const LEAVES: usize = ARENA_BASE as usize / LEAF;

type Leaf = Box<[OnceLock<Box<Partition>>]>;

/// The partitions of all columns.
pub struct Store {
    table: Box<[OnceLock<Leaf>]>,
    names: Mutex<Names>,
    memory: Arc<Memory>,
    journal: Box<dyn Journal>,
}

/// A partition in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listed {
    /// Its number.
    pub number: u32,
    /// The key of the partition.
    pub key: PartitionKey,
}

/// Statistics of evicting segments from memory and reading them back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Paging {
    /// Segments currently in memory.
    pub resident: u64,
    /// Segments that are only in the vault.
    pub evicted: u64,
    /// Segments read back since the start while a caller was waiting.
    pub faults: u64,
    /// Segments evicted from memory since the start.
    pub evictions: u64,
    /// Segments read ahead since the start.
    pub ahead: u64,
    /// Number of these that were used later.
    pub ahead_used: u64,
}

struct Names {
    by_key: HashMap<PartitionKey, u32>,
    next: u32,
    dropped: VecDeque<u32>,
}

fn slots<T>(count: usize) -> Box<[OnceLock<T>]> {
    (0..count).map(|_| OnceLock::new()).collect()
}

impl Store {
    /// An empty store.
    pub fn new(budget: Arc<Budget>, journal: Box<dyn Journal>) -> Store {
        Store {
            table: slots(LEAVES),
            names: Mutex::new(Names {
                by_key: HashMap::new(),
                next: 1,
                dropped: VecDeque::new(),
            }),
            memory: Arc::new(Memory::new(budget)),
            journal,
        }
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The partition with this number, if the number was ever used.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&Partition> {
        let number = number as usize;
        let leaf = self.table.get(number / LEAF)?.get()?;
        leaf.get(number % LEAF)?.get().map(Box::as_ref)
    }

    fn make(&self, number: u32) -> Option<&Partition> {
        let at = number as usize;
        let leaf = self.table.get(at / LEAF)?.get_or_init(|| slots(LEAF));
        let place = leaf.get(at % LEAF)?;
        Some(place.get_or_init(|| Box::new(Partition::unused(number))))
    }

    /// Returns the number of the partition of a column, creating the partition if necessary.
    pub fn open(&self, key: PartitionKey) -> Result<u32, Error> {
        let mut names = self.names();
        if let Some(number) = names.by_key.get(&key) {
            return Ok(*number);
        }
        let number = if names.next < ARENA_BASE {
            names.next += 1;
            names.next - 1
        } else {
            let oldest = names.dropped.pop_front();
            oldest.ok_or_else(error::no_partitions_left)?
        };
        let partition = self.make(number).ok_or_else(error::no_partitions_left)?;
        partition.open(key, &self.memory);
        names.by_key.insert(key, number);
        self.journal.opened(number, &key);
        Ok(number)
    }

    /// The number of the partition of a column, if there is one.
    pub fn find(&self, key: &PartitionKey) -> Option<u32> {
        self.names().by_key.get(key).copied()
    }

    /// Restores a partition under its number. If there are two for one column, or two with one
    /// number, the later one replaces the earlier.
    pub fn restore(&self, listed: Listed) -> Result<(), Error> {
        let Listed { number, key } = listed;
        if number == 0 || number >= ARENA_BASE {
            return Err(error::bad_segment());
        }
        let mut names = self.names();
        if names.by_key.get(&key) == Some(&number) {
            return Ok(());
        }
        let partition = self.make(number).ok_or_else(error::no_partitions_left)?;
        if let Some(other) = partition.key() {
            names.by_key.remove(&other);
        }
        if let Some(older) = names.by_key.insert(key, number)
            && let Some(older) = self.get(older)
        {
            older.close();
        }
        names.next = names.next.max(number + 1);
        partition.open(key, &self.memory);
        Ok(())
    }

    /// The partitions in use, by number.
    pub fn list(&self) -> Vec<Listed> {
        let listed = |(key, number): (&PartitionKey, &u32)| Listed {
            number: *number,
            key: *key,
        };
        let mut all: Vec<Listed> = self.names().by_key.iter().map(listed).collect();
        all.sort_unstable_by_key(|l| l.number);
        all
    }

    /// One more than the largest number ever used.
    pub fn next_number(&self) -> u32 {
        self.names().next
    }

    /// Prevents numbers below this one from being assigned.
    pub fn skip_to(&self, next: u32) {
        let mut names = self.names();
        names.next = names.next.max(next.min(ARENA_BASE));
    }

    /// Drops the partitions of a relation, except the log of a ledger table; returns their number.
    pub fn drop_relation(&self, database: u32, relation: u32) -> usize {
        let mut names = self.names();
        let of = |key: &PartitionKey| {
            key.database == database && key.relation == relation && !key.is_log()
        };
        let mut numbers: Vec<u32> = names
            .by_key
            .extract_if(|key, _| of(key))
            .map(|(_, number)| number)
            .collect();
        numbers.sort_unstable();
        for number in &numbers {
            if let Some(partition) = self.get(*number) {
                partition.close();
            }
            names.dropped.push_back(*number);
            self.journal.dropped(*number);
        }
        numbers.len()
    }

    /// Drops a partition by its number. Returns false if it is not in use.
    pub fn drop_partition(&self, number: u32) -> bool {
        let mut names = self.names();
        let Some(partition) = self.get(number) else {
            return false;
        };
        let Some(key) = partition.key() else {
            return false;
        };
        names.by_key.remove(&key);
        partition.close();
        names.dropped.push_back(number);
        self.journal.dropped(number);
        true
    }

    /// Copies a value into a column of this type.
    pub fn promote(&self, number: u32, t: TypeCode, value: &Scalar<'_>) -> Result<Fid, Error> {
        let partition = self.get(number).ok_or_else(error::unresolved)?;
        partition.put(t, value, |fid| self.journal.promoted(fid, value))
    }

    /// Gives a leased FID its value. Returns false, and changes nothing, if it is not leased.
    pub fn fill(&self, fid: Fid, t: TypeCode, value: &Scalar<'_>) -> Result<bool, Error> {
        let partition = self.get(fid.partition()).ok_or_else(error::unresolved)?;
        partition.fill(t, fid.slot(), value, |fid| {
            self.journal.promoted(fid, value);
        })
    }

    /// Copies values into a column of this type; `made` is called for each.
    pub fn promote_all<'v>(
        &self,
        number: u32,
        t: TypeCode,
        values: impl Iterator<Item = Scalar<'v>>,
        mut made: impl FnMut(Fid),
    ) -> Result<(), Error> {
        let partition = self.get(number).ok_or_else(error::unresolved)?;
        partition.put_all(t, values, |fid, value| {
            self.journal.promoted(fid, value);
            made(fid);
        })
    }

    /// Frees a permanent FID. Returns false if it had no value.
    pub fn free(&self, fid: Fid) -> bool {
        self.get(fid.partition())
            .is_some_and(|p| p.free(fid.slot(), |fid| self.journal.freed(fid)))
    }

    /// Like [`Store::free`], for a value that was swept: its slot rests.
    pub fn sweep(&self, fid: Fid) -> bool {
        self.get(fid.partition())
            .is_some_and(|p| p.sweep(fid.slot(), |fid| self.journal.freed(fid)))
    }

    /// Numbers and statistics of all partitions in use, by number.
    pub fn statistics(&self) -> Vec<(u32, PartitionStatistics)> {
        let mut numbers: Vec<u32> = self.names().by_key.values().copied().collect();
        numbers.sort_unstable();
        numbers
            .into_iter()
            .filter_map(|n| Some((n, self.get(n)?.statistics()?)))
            .collect()
    }

    /// Number of partitions in use.
    pub fn partitions(&self) -> usize {
        self.names().by_key.len()
    }

    /// The budget to which the store's memory is charged.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.memory.budget
    }

    /// Sets where segments are read back from.
    pub fn set_backing(&self, backing: Arc<dyn Backing>) {
        self.memory.set_backing(backing);
    }

    /// Sets a target for memory use; `wake` is called whenever more is used, and must soon lead to
    /// [`Store::make_room`]. Only the first call has an effect.
    pub fn set_bound(&self, bound: usize, wake: Box<dyn Fn() + Send + Sync>) {
        self.memory.set_bound(bound, wake);
    }

    /// Enables reading ahead; `wake` is called when a segment will be needed, and must soon lead to
    /// [`Store::read_ahead`]. Only the first call has an effect.
    pub fn set_read_ahead(&self, wake: Box<dyn Fn() + Send + Sync>) {
        self.memory.shelf.switch_on(wake);
    }

    /// Reads the segment most recently found to be needed soon. Returns false if there is none.
    pub fn read_ahead(&self) -> bool {
        let Some(hint) = self.memory.shelf.next() else {
            return false;
        };
        if let Some(partition) = self.get(hint.place.partition) {
            partition.read_ahead(hint, &self.memory);
        }
        true
    }

    /// Advances the clock: later uses of a segment are distinguished from earlier ones.
    pub fn tick(&self) {
        self.memory.tick();
    }

    /// Evicts values that are in the vault from memory, until memory use is within the target;
    /// returns the number of bytes still exceeding it.
    pub fn make_room(&self) -> usize {
        let numbers: Vec<u32> = self.names().by_key.values().copied().collect();
        self.memory.shelf.drop_stale(self.memory.now());
        let aged = std::iter::repeat_n(Haste::Aged, usize::from(USES_MAX) + 1);
        let first = [Haste::Forgotten, Haste::Passed].into_iter();
        let rounds = first.chain(aged).chain([Haste::Any]);
        for haste in rounds {
            if haste == Haste::Any {
                self.memory.shelf.clear();
            }
            for number in &numbers {
                let excess = self.memory.excess();
                if excess == 0 {
                    return 0;
                }
                if let Some(partition) = self.get(*number) {
                    partition.evict(excess, haste);
                }
            }
        }
        self.memory.excess()
    }

    /// Returns the paging statistics.
    pub fn paging(&self) -> Paging {
        let numbers: Vec<u32> = self.names().by_key.values().copied().collect();
        let mut paging = Paging {
            faults: self.memory.faults.load(Ordering::Relaxed),
            evictions: self.memory.evicted.load(Ordering::Relaxed),
            ahead: self.memory.shelf.read.load(Ordering::Relaxed),
            ahead_used: self.memory.shelf.used.load(Ordering::Relaxed),
            ..Paging::default()
        };
        for partition in numbers.iter().filter_map(|n| self.get(*n)) {
            let [resident, evicted] = partition.segment_counts();
            paging.resident += resident;
            paging.evicted += evicted;
        }
        paging
    }
}
