//! Garbage collection (docs/durability.md): `GarbageBegin`, `GarbageMark`, `GarbageSweep`,
//! `GarbageSwept`, `GarbageEnd`; and `Resolve`.
//!
//! The backend, which reads the pages, determines what is in use. A sweep has two steps, so that no
//! slot is reused before its sweep is in the WAL.
//!
//! Invariants: a collection never sweeps anything stored after it began; a partition is in at most
//! one collection at a time; a collection that ends for whatever reason frees no slot whose sweep
//! was not confirmed; in a store with checkpoints, no slot is reused before a checkpoint records
//! that it was swept.

use super::Connection;
use crate::fail::{self, Failure};
use contract::codec::Fixed;
use contract::fid::ARENA_BASE;
use contract::message::WHOLE_DATABASE;
use contract::message::table::{self, LiveColumn};
use contract::{Fid, answer, body};
use redo::Sweep;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use store::{Layout, PartitionKey, Store};
use values::Error;

/// Number of values per batch of a sweep.
const BATCH: usize = 65_536;

/// A garbage collection of one relation.
pub(super) struct Collection {
    partitions: Vec<Collected>,
    /// The partition being swept, and the next slot.
    at: usize,
    from: u64,
    /// The batch that `GarbageSwept` will confirm.
    batch: Batch,
    /// LSN at which it is freed, if something is recorded.
    position: u64,
}

struct Collected {
    number: u32,
    /// Whether its column exists.
    alive: bool,
}

enum Batch {
    Nothing,
    Values(Vec<Fid>),
    Partition(u32, u64),
}

fn busy() -> Error {
    Error::new(
        b"55006",
        "confide: the relation's garbage is being collected already",
    )
}

fn not_begun() -> Error {
    Error::new(b"55000", "confide: no collection of garbage has begun")
        .detail("The keeper may have been restarted meanwhile.")
        .hint("Try again.")
}

impl Collection {
    /// The next batch; empty if there are no more.
    fn next(&mut self, store: &Store) -> Batch {
        while let Some(Collected { number, alive }) = self.partitions.get(self.at) {
            let Some(partition) = store.get(*number) else {
                self.at += 1;
                continue;
            };
            if !alive && self.from == 0 && partition.is_unmarked() {
                self.at += 1;
                let live = partition.statistics().map_or(0, |s| s.live);
                return Batch::Partition(*number, live);
            }
            let slots = partition.unmarked(self.from, BATCH);
            if let Some(last) = slots.last() {
                self.from = last + 1;
                return Batch::Values(slots.iter().map(|s| Fid::new(*number, *s)).collect());
            }
            self.at += 1;
            self.from = 0;
        }
        Batch::Nothing
    }
}

impl Connection {
    pub(super) fn resolve(&mut self, body: body::Resolve<'_>) -> Result<(), Failure> {
        let unresolved = body.fids.iter().filter(|fid| !self.resolves(*fid));
        let unresolved = unresolved.count() as u64;
        self.answer(&answer::Resolve { unresolved });
        Ok(())
    }

    /// Whether a permanent FID resolves.
    pub(super) fn resolves(&self, fid: Fid) -> bool {
        let partition = self.keeper.store.get(fid.partition());
        fid.partition() < ARENA_BASE
            && partition.is_some_and(|p| p.read().get(fid.slot()).is_some())
    }

    pub(super) fn garbage_begin(&mut self, body: body::GarbageBegin<'_>) -> Result<(), Failure> {
        let (database, relation) = (body.database, body.relation);
        if relation == 0 {
            return Err(fail::malformed("Constants belong to no relation.").into());
        }
        let code = |c: LiveColumn| (c.attribute, Layout::of(c.t, c.typmod).code());
        let alive: BTreeSet<_> = body.alive.iter().map(code).collect();
        self.garbage_end();
        let keeper = &self.keeper;
        let list = keeper.store.list();
        let of = |key: &PartitionKey| {
            let asked = [key.relation, WHOLE_DATABASE].contains(&relation);
            // The log of a ledger table outlives the table, because it is the proof.
            key.database == database && asked && !key.is_log()
        };
        let mut collection = Collection {
            partitions: Vec::new(),
            at: 0,
            from: 0,
            batch: Batch::Nothing,
            position: 0,
        };
        let mut begun = Ok(());
        for listed in list.iter().filter(|l| of(&l.key)) {
            let count = match keeper.store.get(listed.number).map(|p| p.begin_marks()) {
                Some(Ok(Some(count))) => count,
                Some(Err(error)) => {
                    begun = Err(error);
                    break;
                }
                _ => {
                    begun = Err(busy());
                    break;
                }
            };
            let column = (listed.key.attribute, listed.key.layout.code());
            let alive = alive.contains(&column);
            let told = table::Collected {
                attribute: listed.key.attribute,
                alive: u32::from(alive),
                values: count,
            };
            told.put(&mut self.reply);
            let number = listed.number;
            collection.partitions.push(Collected { number, alive });
        }
        keeper.counters.collections_total.fetch_add(1, Relaxed);
        self.collection = Some(collection);
        if begun.is_err() {
            self.garbage_end();
        }
        Ok(begun?)
    }

    /// The relations of a database, or all databases.
    pub(super) fn garbage_list(&mut self, body: body::GarbageList) -> Result<(), Failure> {
        let mut list = self.keeper.store.list();
        list.retain(|l| !l.key.is_log());
        let found: BTreeSet<u32> = match body.database {
            0 => list.iter().map(|l| l.key.database).collect(),
            _ => {
                let of = list.iter().filter(|l| l.key.database == body.database);
                of.map(|l| l.key.relation).collect()
            }
        };
        let found = found.iter().filter(|oid| **oid != 0);
        found.for_each(|oid| oid.put(&mut self.reply));
        Ok(())
    }

    pub(super) fn garbage_mark(&mut self, body: body::GarbageMark<'_>) -> Result<(), Failure> {
        let collection = self.collection.as_ref().ok_or_else(not_begun)?;
        let marked: Vec<Fid> = body.fids.iter().collect();
        for Collected { number, .. } in &collection.partitions {
            let of = marked.iter().filter(|fid| fid.partition() == *number);
            let mut slots = of.map(|fid| fid.slot()).peekable();
            if slots.peek().is_some()
                && let Some(partition) = self.keeper.store.get(*number)
            {
                partition.mark(slots);
            }
        }
        Ok(())
    }

    pub(super) fn garbage_sweep(&mut self) -> Result<(), Failure> {
        let keeper = &self.keeper;
        let collection = self.collection.as_mut().ok_or_else(not_begun)?;
        if !matches!(collection.batch, Batch::Nothing) {
            return Err(fail::malformed("The batch before was not confirmed.").into());
        }
        collection.batch = collection.next(&keeper.store);
        let durable = keeper.durable.as_ref();
        let (count, record) = match &collection.batch {
            Batch::Nothing => (0, None),
            Batch::Values(values) => {
                let mut sweep = Sweep::default();
                values.iter().for_each(|fid| sweep.push(fid.0));
                let record = durable.map(|d| d.log_sweep(&sweep)).transpose()?;
                (values.len() as u64, record)
            }
            Batch::Partition(number, live) => {
                let record = durable.map(|d| d.log_drop(*number)).transpose()?;
                (*live, record)
            }
        };
        let more = !matches!(collection.batch, Batch::Nothing);
        self.answer(&answer::GarbageSweep {
            values: count,
            more: u64::from(more),
            record: &record.unwrap_or_default(),
        });
        Ok(())
    }

    /// Only what is recorded of it counts; a collection remembers where it is.
    pub(super) fn snapshot(&mut self, body: body::Snapshot<'_>) -> Result<(), Failure> {
        if let Some(collection) = &mut self.collection {
            collection.position = body.position;
        }
        Ok(())
    }

    pub(super) fn garbage_swept(&mut self) -> Result<(), Failure> {
        let keeper = &self.keeper;
        let collection = self.collection.as_mut().ok_or_else(not_begun)?;
        let swept = match std::mem::replace(&mut collection.batch, Batch::Nothing) {
            Batch::Nothing => return Err(fail::malformed("There is no batch to confirm.").into()),
            Batch::Values(values) => {
                keeper.recorder.freed(collection.position, &values);
                keeper.delivery.forget();
                let durable = keeper.durable.is_some();
                let freed = values.iter().filter(|fid| match durable {
                    true => keeper.store.sweep(**fid),
                    false => keeper.store.free(**fid),
                });
                freed.count() as u64
            }
            Batch::Partition(number, live) => {
                keeper.delivery.forget();
                keeper.store.drop_partition(number);
                live
            }
        };
        keeper.counters.swept_total.fetch_add(swept, Relaxed);
        Ok(())
    }

    pub(super) fn garbage_end(&mut self) {
        for Collected { number, .. } in self.collection.take().iter().flat_map(|c| &c.partitions) {
            if let Some(partition) = self.keeper.store.get(*number) {
                partition.end_marks();
            }
        }
    }
}
