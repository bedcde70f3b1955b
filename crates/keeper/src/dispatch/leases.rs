//! `Lease`, `Adopt` and `Confirm`: FIDs that the database gives to values which the client has sealed
//! (docs/decisions.md, "Client-sealed redo").
//!
//! Invariants: FIDs are leased only if the client may write the column, or it may be a history's; a
//! channel fills only FIDs that it has leased, with values that were sealed under the key for which they
//! are leased, or that go to a history (`moved`); a FID that was announced has a value, of the type's
//! zero if what was sent is no good; what was not used is free when the channel has ended.

use super::Connection;
use crate::fail::{self, Failure};
use crate::fitted;
use crate::leases::{Progress, identity};
use crate::provenance;
use crate::session::Client;
use contract::codec::{Fixed, List};
use contract::message::table::{Run, Wanted};
use contract::message::{LEASE_COLUMNS_MAX, LEASE_MAX, ROWS_MAX};
use contract::{Fid, Kind, answer, body};
use redo::{Adopted, Item};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use store::{ColumnId, Scalar};
use values::{Error, Value};

/// FIDs that a channel may hold at a time.
const HELD_MAX: u64 = 1 << 18;
/// Much less than a checkpoint waits.
const LOOK: Duration = Duration::from_secs(5);

/// The leases of a channel.
#[derive(Default)]
pub(super) struct Held {
    /// The channel's number, and how far it has come; none for one that leases nothing.
    channel: Option<(u64, Progress)>,
    leases: Vec<One>,
    total: u64,
    /// Whether checkpoints look after the channel: once it has leased something.
    known: bool,
    /// The first value of the transaction that was refused: it cannot be committed.
    refused: Option<Failure>,
}

struct One {
    number: u64,
    runs: Vec<(u64, u64)>,
    client: Arc<Client>,
}

impl One {
    fn has(&self, fid: u64) -> bool {
        let has = |(first, count): &(u64, u64)| fid >= *first && fid - first < *count;
        self.runs.iter().any(has)
    }
}

impl Connection {
    /// Lets the channel lease FIDs.
    pub fn may_lease(&mut self, channel: u64, progress: Progress) {
        self.held.channel = Some((channel, progress));
    }

    /// The channel's number, and how far it has come.
    pub(super) fn channel(&self) -> Option<&(u64, Progress)> {
        self.held.channel.as_ref()
    }

    /// Whether the channel has leased a FID.
    pub(super) fn has_leased(&self, fid: Fid) -> bool {
        self.held.leases.iter().rev().any(|one| one.has(fid.0))
    }

    /// Everything up to a position in the ring has been dealt with.
    #[inline]
    pub fn dealt_with(&self, position: u64) {
        if (self.held.known || self.tape.is_some() || self.ledger.awaited())
            && let Some((_, progress)) = &self.held.channel
        {
            progress.done(position);
            if let Some(tape) = &self.tape {
                tape.follow(progress);
            }
            if self.held.known {
                self.keeper.leases.moved();
            }
        }
    }

    pub(super) fn lease_fids(&mut self, body: body::Lease<'_>) -> Result<(), Failure> {
        let (runs, names, record) = self.lease_all(&body)?.unwrap_or_default();
        let (mut told, mut columns) = (Vec::new(), Vec::new());
        for (first, count) in &runs {
            let run = Run {
                first: Fid(*first),
                length: *count as u32,
            };
            run.put(&mut told);
        }
        names
            .iter()
            .for_each(|name| identity(name).put(&mut columns));
        self.answer(&answer::Lease {
            count: runs.len() as u32,
            columns: names.len() as u32,
            runs: List::new(&told),
            names: List::new(&columns),
            record: &record,
        });
        Ok(())
    }

    /// Leases FIDs of all columns, or none.
    #[expect(clippy::type_complexity, reason = "the parts of an answer")]
    fn lease_all(
        &mut self,
        body: &body::Lease<'_>,
    ) -> Result<Option<(Vec<(u64, u64)>, Vec<ColumnId>, Vec<u8>)>, Failure> {
        if body.count > LEASE_MAX || body.columns > LEASE_COLUMNS_MAX {
            return Err(fail::malformed("The lease is too large.").into());
        }
        self.may_write()?;
        self.forget_used();
        let wanted = u64::from(body.count) * u64::from(body.columns);
        let Some(client) = self.client.clone().filter(|_| self.held.channel.is_some()) else {
            return Ok(None);
        };
        // A recording shows what was promoted.
        let on = self.keeper.config.lease && self.tape.is_none();
        if !on || self.keeper.durable.is_none() || self.held.total + wanted > HELD_MAX {
            return Ok(None);
        }
        let mut names = Vec::new();
        for partition in body.partitions {
            match self.leasable(partition)? {
                Some(name) => names.push(name),
                None => return Ok(None),
            }
        }
        let mut runs = Vec::new();
        let made = body.partitions.iter().try_for_each(|partition| {
            let column = self.keeper.store.get(partition);
            let slots = column
                .ok_or_else(store::unresolved)?
                .lease(u64::from(body.count))?;
            let fid = |(slot, count): (u64, u64)| (Fid::new(partition, slot).0, count);
            runs.extend(slots.into_iter().map(fid));
            Ok::<(), Error>(())
        });
        let sealed = made.and_then(|()| self.seal_lease(&client, &runs));
        match sealed {
            Ok((number, record)) => {
                self.held.total += wanted;
                self.held.known = true;
                self.held.leases.push(One {
                    number,
                    runs: runs.clone(),
                    client,
                });
                Ok(Some((runs, names, record)))
            }
            Err(error) => {
                self.unlease(&runs);
                Err(error.into())
            }
        }
    }

    /// Begins a lease. Returns its number and its record.
    fn seal_lease(&self, client: &Client, runs: &[(u64, u64)]) -> Result<(u64, Vec<u8>), Error> {
        let durable = self.keeper.durable.as_ref();
        let durable = durable.ok_or_else(store::unresolved)?;
        let channel = self.held.channel.as_ref();
        let (channel, progress) = channel.ok_or_else(store::unresolved)?;
        let leases = &self.keeper.leases;
        leases.begin(
            (*channel, progress),
            &client.storing,
            runs.to_vec(),
            |lease| durable.log_lease(lease),
        )
    }

    /// Ends leases all of whose FIDs have values.
    fn forget_used(&mut self) {
        let keeper = &self.keeper;
        let empty = |(first, count): &(u64, u64)| {
            let fid = Fid(*first);
            let partition = keeper.store.get(fid.partition());
            partition.is_some_and(|p| p.any_leased(fid.slot()..fid.slot() + count))
        };
        let leases = std::mem::take(&mut self.held.leases);
        let (open, used): (Vec<One>, Vec<One>) = leases
            .into_iter()
            .partition(|one| one.runs.iter().any(empty));
        keeper.leases.end(used.iter().map(|one| one.number));
        let counts = open.iter().flat_map(|one| &one.runs);
        self.held.total = counts.map(|(_, count)| count).sum();
        self.held.leases = open;
    }

    /// Which column a partition is of, if its FIDs can be leased, and the client may write it. Into
    /// a history only values of the table are moved, for which that is asked when they are.
    fn leasable(&self, partition: u32) -> Result<Option<ColumnId>, Failure> {
        self.must_be_column(partition)?;
        let column = self.keeper.store.get(partition).and_then(|p| p.column());
        let Some((name, false)) = column.filter(|(name, _)| *name != ColumnId::default()) else {
            return Ok(None);
        };
        let written = self.authorise_write(provenance::CLIENT, partition).is_ok();
        Ok((written || self.may_be_history(&name)).then_some(name))
    }

    fn unlease(&self, runs: &[(u64, u64)]) {
        for (first, count) in runs {
            let fid = Fid(*first);
            if let Some(partition) = self.keeper.store.get(fid.partition()) {
                partition.unlease(fid.slot()..fid.slot() + count);
            }
        }
    }

    /// Ends the channel's leases.
    pub(super) fn end_leases(&mut self) {
        let Some((channel, _)) = &self.held.channel else {
            return;
        };
        if !self.held.known {
            return;
        }
        // First nothing is listed: a FID that is free is not given a value by recovery.
        let leases = &self.keeper.leases;
        leases.end(self.held.leases.iter().map(|one| one.number));
        self.held
            .leases
            .iter()
            .for_each(|one| self.unlease(&one.runs));
        leases.leave(*channel);
        self.held.leases.clear();
        self.held.total = 0;
        self.held.known = false;
    }

    /// In which intervals a channel with leases looks at its ring while nobody wakes it: so a checkpoint need
    /// not wait for the next message that does.
    pub(super) fn looks_for_values(&self) -> Option<Duration> {
        self.held.known.then_some(LOOK)
    }

    /// A transaction begins: what was refused before belonged to another one.
    pub(super) fn forget_refused(&mut self) {
        self.held.refused = None;
    }

    /// Everything that was sent before has been dealt with. A value that was refused is told again, since the
    /// database forgets errors when it goes back to a savepoint.
    pub(super) fn fence(&self, kind: Kind) -> Result<(), Failure> {
        match kind {
            Kind::Fence => self.adopted_all(),
            _ => Ok(()),
        }
    }

    /// Whether no value that the transaction has adopted was refused.
    pub(super) fn adopted_all(&self) -> Result<(), Failure> {
        self.held.refused.clone().map_or(Ok(()), Err)
    }

    /// As [`Connection::fence`], with delivery envelopes of what was adopted.
    pub(super) fn confirm(&mut self, body: &body::Confirm<'_>) -> Result<(), Failure> {
        self.adopted_all()?;
        self.deliver_adopted(body.period, body.wanted);
        Ok(())
    }

    /// Appends delivery envelopes of what was adopted.
    pub(super) fn deliver_adopted(&mut self, period: u64, wanted: List<'_, Wanted>) {
        let wanted = wanted.iter().take(ROWS_MAX);
        self.seal_for_delivery(period, wanted.map(|one| (one.fid, one.t)));
    }

    pub(super) fn adopt(&mut self, body: body::Adopt<'_>) -> Result<(), Failure> {
        let adopted = Adopted::parse(body.record);
        let adopted = adopted.map_err(|_| fail::malformed("The values are malformed."))?;
        let mut first = Ok(());
        for item in adopted.items() {
            let done = self.adopt_one(&item);
            if first.is_ok() {
                first = done;
            }
        }
        if let Err(failure) = &first {
            let told = Failure::inherited(&failure.error);
            self.held.refused.get_or_insert(told);
        }
        first
    }

    /// Gives a FID its value, or zero if that is refused.
    fn adopt_one(&self, item: &Item<'_>) -> Result<(), Failure> {
        let fid = Fid(item.fid);
        let not_leased = || fail::malformed("The identifier is not leased.");
        let one = self.held.leases.iter().rev().find(|one| one.has(item.fid));
        let one = one.ok_or_else(not_leased)?;
        let partition = self.keeper.store.get(fid.partition());
        let partition = partition.ok_or_else(store::unresolved)?;
        let t = partition.read().stored_type();
        let t = t.ok_or_else(store::unresolved)?;
        let opened = self.open_adopted(one, fid, t, item);
        let (value, told) = match opened {
            Ok(value) => (value, Ok(())),
            Err(failure) => (fitted::zero(t)?, Err(failure)),
        };
        if !self.keeper.store.fill(fid, t, &Scalar::of(&value))? {
            return Err(not_leased().into());
        }
        self.session.counters.opened.fetch_add(1, Relaxed);
        told
    }

    fn open_adopted(
        &self,
        one: &One,
        fid: Fid,
        t: contract::TypeCode,
        item: &Item<'_>,
    ) -> Result<Value, Failure> {
        self.authorise_write(provenance::CLIENT, fid.partition())?;
        let column = self.keeper.store.get(fid.partition());
        let (name, _) = column.and_then(|p| p.column()).unwrap_or_default();
        Ok(fitted::open(&one.client.opens_fitted, &name, t, item)?)
    }
}
