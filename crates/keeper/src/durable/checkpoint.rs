//! Checkpoints: writes what has changed to the vault, in pieces, while the keeper serves.
//!
//! A piece that is committed before the last one keeps the LSN of the previous checkpoint. Its
//! segments are newer than that, but applying redo records to them again changes nothing. It names
//! the partitions that existed at the previous checkpoint and still exist; redo records name those
//! created since.
//!
//! Invariant: segments of a partition named in the meta belong to the column named there; other
//! segments are not read.

use super::leased::Open;
use super::lineage::Sent;
use super::meta::Meta;
use super::{At, Durable, Mode, State, other_cluster};
use crate::fault;
use crate::leases::{Leased, Leases};
use crate::logs::End;
use ledger::audit::Head;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use store::{ColumnId, Listed, PartitionKey, Store};
use values::Error;
use vault::{Checkpoint, SegmentId, Vault};

/// No cluster writes that much WAL. A checkpoint at such a position would be the last one.
const POSITION_MAX: u64 = 1 << 62;

/// Approximate size of the segments in one commit.
const PIECE_BYTES: usize = 64 * 1024 * 1024;

pub(super) fn failed(what: &impl std::fmt::Display) -> Error {
    Error::new(b"58030", "confide: the keeper's checkpoint failed")
        .detail(what.to_string())
        .hint("Values are safe in PostgreSQL's WAL. Check the keeper's data directory.")
}

/// A checkpoint being written.
pub(super) struct Writer<'a> {
    vault: &'a mut Vault,
    /// Meta of all pieces but the last.
    between: Vec<u8>,
    change: Checkpoint,
    bytes: usize,
    written: u64,
}

impl<'a> Writer<'a> {
    pub(super) fn new(vault: &'a mut Vault, between: Vec<u8>) -> Writer<'a> {
        Writer {
            vault,
            between,
            change: Checkpoint::new(),
            bytes: 0,
            written: 0,
        }
    }

    pub(super) fn segment(
        &mut self,
        id: SegmentId,
        content: Option<Vec<u8>>,
    ) -> Result<(), vault::Error> {
        match content {
            Some(content) => {
                self.bytes += content.len();
                self.written += 1;
                self.change.write(id, content);
            }
            None => self.change.remove(id),
        }
        if self.bytes < PIECE_BYTES {
            return Ok(());
        }
        self.bytes = 0;
        let change = std::mem::take(&mut self.change);
        self.vault.commit(change, self.between.clone())?;
        fault::at("checkpoint-piece");
        Ok(())
    }

    /// Writes the rest, with a new meta if the checkpoint is complete.
    pub(super) fn finish(self, meta: Option<Vec<u8>>) -> Result<u64, vault::Error> {
        let meta = meta.unwrap_or(self.between);
        self.vault.commit(self.change, meta)?;
        Ok(self.written)
    }
}

impl Durable {
    /// Makes the whole store durable; WAL before this position is not needed any more. `audit` is
    /// the end of the audit log; `ends` are what was known before the position was taken.
    ///
    /// # Errors
    /// If the vault fails; the previous checkpoint remains valid.
    pub fn checkpoint(
        &self,
        store: &Store,
        at: At,
        (audit, leases, ends): (Head, &Leases, Vec<End>),
    ) -> Result<(), Error> {
        let At {
            system, position, ..
        } = at;
        let standing = self.standing(system)?;
        let first = standing.position == 0 && store.partitions() == 0;
        if standing.mode == Mode::Recovers && !first {
            return Err(Error::new(
                b"55000",
                "confide: the keeper makes no checkpoint before it is up to date",
            ));
        }
        if position == 0 || position < standing.position || position > POSITION_MAX || system == 0 {
            return Err(Error::new(
                b"22023",
                "confide: a checkpoint must be later than the one before",
            ));
        }
        let began = std::time::Instant::now();
        let mut state = self.state();
        let whole = state.vault.is_none();
        let written = match self.write(&mut state, store, at, (whole, audit, leases, ends)) {
            Ok(written) => written,
            Err(error) => {
                state.vault = None;
                tracing::error!(%error.message, detail = error.detail.as_deref(), "checkpoint");
                return Err(error);
            }
        };
        self.system.store(system, Ordering::Release);
        self.position.store(position, Ordering::Release);
        self.timeline.store(at.timeline, Ordering::Release);
        self.applied.fetch_max(position, Ordering::AcqRel);
        tracing::debug!(segments = written, took = ?began.elapsed(), "checkpoint");
        Ok(())
    }

    /// Binds the audit log's end to the freshness counter now instead of with the next checkpoint,
    /// so that an older copy of the log is refused at the next start.
    ///
    /// # Errors
    /// If the vault fails.
    pub fn anchor(&self, audit: Head) -> Result<(), Error> {
        let mut state = self.state();
        // Nothing can be older than the state before the first checkpoint.
        if self.position() == 0 {
            return Ok(());
        }
        let vault = state.vault.as_mut().ok_or_else(|| failed(&"no vault"))?;
        let mut meta = Meta::decode(vault.meta()).ok_or_else(|| failed(&"malformed meta"))?;
        if meta.audit.number >= audit.number {
            return Ok(());
        }
        meta.audit = audit;
        let done = vault.commit(Checkpoint::new(), meta.encode());
        if let Err(error) = &done {
            state.vault = None;
            tracing::error!(%error, "the audit log's end was not noted");
        }
        done.map_err(|e| failed(&e))
    }

    /// Notes which run begins to serve, and which records it was sent.
    ///
    /// # Errors
    /// If the vault fails.
    pub(super) fn note_run(&self, state: &mut State) -> Result<(), Error> {
        // After a failure the next checkpoint still writes everything.
        let mut again = None;
        let vault = match state.vault.as_mut() {
            Some(vault) => vault,
            None => &mut again.insert(self.place.open().map_err(|e| failed(&e))?).0,
        };
        let mut meta = Meta::decode(vault.meta()).ok_or_else(|| failed(&"malformed meta"))?;
        meta.run = Some(self.sealer.epoch());
        meta.sent = state.lineage.sent()?.clone();
        let done = vault.commit(Checkpoint::new(), meta.encode());
        if done.is_err() {
            state.vault = None;
        }
        done.map_err(|e| failed(&e))
    }

    /// The FIDs that are leased and have no value. Called after the generation began: a lease that is not
    /// listed has a record of this one.
    fn leased(&self, open: &Open, leases: &Leases, store: &Store) -> Vec<Leased> {
        match self.follows() {
            true => open.list(),
            false => leases.list(store),
        }
    }

    fn write(
        &self,
        state: &mut State,
        store: &Store,
        at: At,
        (whole, audit, leases, ends): (bool, Head, &Leases, Vec<End>),
    ) -> Result<u64, Error> {
        if whole {
            let (vault, _) = self.place.open().map_err(|e| failed(&e))?;
            state.vault = Some(vault);
        }
        let vault = state.vault.as_mut().ok_or_else(|| failed(&"no vault"))?;
        let before = Meta::decode(vault.meta()).ok_or_else(|| failed(&"malformed meta"))?;
        if before.system != 0 && before.system != at.system {
            return Err(other_cluster(before.system, at.system));
        }
        // Records of earlier generations are in the store now. The records on a standby come from
        // another keeper.
        let generation = match self.follows() {
            true => state.history.floor(),
            false => {
                self.sealer
                    .begin(self.sealer.generation().saturating_add(1));
                self.sealer.generation()
            }
        };
        // A head anchored meanwhile is later.
        let audit = match before.audit.number > audit.number {
            true => before.audit,
            false => audit,
        };
        // The order matters: a number assigned after the list was made is below `next` at the next
        // checkpoint, or in a redo record after `position`.
        let meta = Meta {
            system: at.system,
            position: at.position,
            timeline: at.timeline,
            store: self.id,
            generation,
            run: before.run,
            sent: match self.follows() {
                true => before.sent.clone(),
                // They are of earlier generations.
                false => Sent::default(),
            },
            audit,
            leases: self.leased(&state.leases, leases, store),
            ends,
            said: self.said.point(),
            next: store.next_number(),
            partitions: store.list(),
            indexed: indexed(store),
            columns: columns(store),
        };
        let written = write_segments(vault, &before, &meta, store, whole)?;
        let held = meta.partitions.iter().filter_map(|l| store.get(l.number));
        held.for_each(|partition| partition.wake());
        Ok(written)
    }
}

/// The partitions whose index a client has searched.
fn indexed(store: &Store) -> BTreeSet<u32> {
    let all = store.list().into_iter().map(|l| l.number);
    all.filter(|n| store.get(*n).is_some_and(|p| p.is_indexed()))
        .collect()
}

/// The columns of partitions, as far as known.
fn columns(store: &Store) -> BTreeMap<u32, ColumnId> {
    let column = |l: &Listed| Some((l.number, store.get(l.number)?.column()?.0));
    let all = store.list();
    let known = all.iter().filter_map(column);
    known.filter(|(_, id)| *id != ColumnId::default()).collect()
}

fn write_segments(
    vault: &mut Vault,
    before: &Meta,
    now: &Meta,
    store: &Store,
    whole: bool,
) -> Result<u64, Error> {
    let keys = |meta: &Meta| -> BTreeMap<u32, PartitionKey> {
        meta.partitions.iter().map(|l| (l.number, l.key)).collect()
    };
    let (old, new) = (keys(before), keys(now));
    let stays = |number: &u32| new.contains_key(number) && old.get(number) == new.get(number);
    // A segment written early belongs to the column that has the number now.
    let early = |id: &SegmentId| {
        let partition = store.get(id.partition);
        partition.is_some_and(|p| p.is_stored(id.number))
    };
    let (kept, gone): (Vec<SegmentId>, Vec<SegmentId>) = vault
        .segments()
        .partition(|id| stays(&id.partition) || early(id));
    let mut between = before.clone();
    between.partitions.retain(|l| stays(&l.number));
    let mut writer = Writer::new(vault, between.encode());
    let mut stored = Vec::new();
    for id in gone {
        writer.change.remove(id);
    }
    for Listed { number, .. } in &now.partitions {
        let Some(partition) = store.get(*number) else {
            continue;
        };
        partition.age();
        let mut numbers: BTreeSet<u32> = partition.take_dirty().into_iter().collect();
        if whole {
            let of = |id: &&SegmentId| id.partition == *number;
            numbers.extend(kept.iter().filter(of).map(|id| id.number));
            numbers.extend(partition.all_segments());
        }
        for segment in numbers {
            let id = SegmentId {
                partition: *number,
                number: segment,
            };
            if whole && partition.is_evicted(segment) {
                continue;
            }
            let content = partition.write_segment(segment).map_err(|e| failed(&e))?;
            if content.is_some() {
                stored.push(id);
            }
            writer.segment(id, content).map_err(|e| failed(&e))?;
        }
    }
    fault::at("checkpoint-begun");
    let written = writer.finish(Some(now.encode()));
    let written = written.map_err(|e| failed(&e))?;
    fault::at("checkpoint-committed");
    super::pages::stored(store, &stored);
    Ok(written)
}
