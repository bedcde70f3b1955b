//! Columns: `PartitionOpen`, `PartitionLogged`, `PartitionDrop`, `Promote`, `PromoteSearch`; and
//! `Release` of temporary values.

use super::Connection;
use crate::fail::{self, Failure};
use crate::fault;
use crate::provenance::column_id;
use contract::codec::{Each, Fixed, List, Part};
use contract::fid::ARENA_BASE;
use contract::message::derived;
use contract::message::table::Move;
use contract::message::{BODY_MAX, NOT_PROMOTED};
use contract::{Fid, answer, body};
use grant::Column;
use redo::Promotion;
use store::{Layout, PartitionKey, Scalar};
use values::Value;

/// A redo record takes no more values after reaching this size.
pub(super) const RECORD_BYTES: usize = 4 * 1024 * 1024;

/// Maximum length of the names of a schema, a relation, and the columns that an index's expression
/// combines.
const NAME_BYTES: usize = (2 + derived::SOURCES_MAX as usize) * 256;

/// What to do with a source of a promotion.
pub(super) enum Source {
    /// Nothing: it is NULL or already in its column.
    Stays(Fid),
    /// It gets a FID of this column.
    Moves(u32, Value),
}

/// Decodes the names of schema, relation and column, each zero-terminated; `None` if there are no
/// bytes.
pub(super) fn column_name(bytes: &[u8]) -> Result<Option<Column>, Failure> {
    let bad = || fail::malformed("The name of a column is not as it should be.");
    if bytes.is_empty() {
        return Ok(None);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| bad())?;
    let names: Vec<&str> = text.split('\0').collect();
    match names.as_slice() {
        [schema, relation, column, ""] if bytes.len() <= NAME_BYTES => {
            Ok(Some(Column::new(schema, relation, column)))
        }
        _ => Err(bad().into()),
    }
}

impl Connection {
    pub(super) fn partition_open(&mut self, body: body::PartitionOpen<'_>) -> Result<(), Failure> {
        let key = PartitionKey {
            database: body.database,
            relation: body.relation,
            attribute: body.attribute,
            layout: Layout::of(body.t, body.typmod),
        };
        let column = column_name(body.name)?;
        if !key.is_derived() && column.as_ref().is_some_and(crate::derived::is_combined) {
            return Err(fail::malformed("No column can have this name.").into());
        }
        if key.is_log()
            && self.may_write().is_err()
            && let Some(partition) = self.keeper.store.find(&key)
        {
            // A standby may read a ledger's log.
            self.answer(&answer::PartitionOpen {
                partition,
                record: &[],
            });
            return Ok(());
        }
        self.may_write()?;
        let number = self.keeper.store.open(key)?;
        let keeper = &self.keeper;
        if let (Some(column), Some(partition)) = (&column, keeper.store.get(number)) {
            partition.set_column(column_id(column));
            keeper.standing.name(column);
        }
        let durable = keeper.durable.as_ref();
        let unlogged = keeper.store.get(number).filter(|p| !p.is_logged());
        let record = durable
            .zip(unlogged)
            .map(|(durable, partition)| durable.log_partition(number, partition));
        self.answer(&answer::PartitionOpen {
            partition: number,
            record: &record.transpose()?.unwrap_or_default(),
        });
        Ok(())
    }

    pub(super) fn partition_logged(&mut self, body: body::PartitionLogged) -> Result<(), Failure> {
        match self.keeper.store.get(body.partition) {
            Some(partition) => partition.set_logged(),
            None => return Err(fail::malformed("There is no such partition.").into()),
        }
        Ok(())
    }

    pub(super) fn partition_drop(&mut self, body: body::PartitionDrop) -> Result<(), Failure> {
        let body::PartitionDrop { database, relation } = body;
        if relation == 0 {
            return Err(fail::malformed("Constants belong to no relation.").into());
        }
        self.may_write()?;
        self.keeper.delivery.forget();
        self.keeper.store.drop_relation(database, relation);
        Ok(())
    }

    /// On a standby, values come from the WAL only.
    pub(super) fn may_write(&self) -> Result<(), Failure> {
        let durable = self.keeper.durable.as_ref();
        match durable.is_some_and(|durable| durable.follows()) {
            true => Err(fail::standby().into()),
            false => Ok(()),
        }
    }

    /// Promotes all values or none: after a failure, what was promoted is freed again. Stops early
    /// when the redo record has reached its size limit.
    pub(super) fn promote(&mut self, body: body::Promote<'_>) -> Result<(), Failure> {
        let mut head = answer::Promote {
            count: body.count,
            length: 0,
            period: 0,
            fids: List::new(&[]),
            record: &[],
            envelopes: Each::new(&[]),
        };
        self.answer(&head);
        let (fids, length) = self.promote_moves(body.moves)?;
        head.length = length;
        head.period = self.seal_promoted(body.moves, &fids);
        self.answer_head(&head);
        Ok(())
    }

    /// Promotes all values or none. Then searches for the positions of the new FIDs; if that is
    /// refused, the backend searches by itself.
    pub(super) fn promote_search(&mut self, body: body::PromoteSearch<'_>) -> Result<(), Failure> {
        let mut head = answer::PromoteSearch {
            count: body.count,
            length: 0,
            told: 0,
            period: 0,
            fids: List::new(&[]),
            record: &[],
            places: List::new(&[]),
            envelopes: Each::new(&[]),
        };
        self.answer(&head);
        let (fids, length) = self.promote_moves(body.moves)?;
        head.length = length;
        head.told = self.search_promoted(&body, &fids);
        head.period = self.seal_promoted(body.moves, &fids);
        self.answer_head(&head);
        Ok(())
    }

    /// Rewrites the fixed part of the answer once all of it is known.
    fn answer_head<'b>(&mut self, head: &impl Part<'b>) {
        self.scratch.clear();
        head.put(&mut self.scratch);
        if let Some(place) = self.reply.get_mut(..self.scratch.len()) {
            place.copy_from_slice(&self.scratch);
        }
    }

    /// Appends the FIDs and the redo record to the answer. Returns the FIDs and the record's
    /// length.
    fn promote_moves(&mut self, moves: List<'_, Move>) -> Result<(Vec<Fid>, u32), Failure> {
        self.may_write()?;
        let begin = self.reply.len();
        let mut made = Vec::new();
        let mut log = Promotion::new();
        for Move {
            source, partition, ..
        } in moves
        {
            if log.len() >= RECORD_BYTES {
                NOT_PROMOTED.put(&mut self.reply);
                continue;
            }
            match self.promote_one(source, partition) {
                Ok(Source::Stays(fid)) => fid.put(&mut self.reply),
                Ok(Source::Moves(partition, value)) => {
                    match self.keeper.store.promote(
                        partition,
                        value.type_code(),
                        &Scalar::of(&value),
                    ) {
                        Ok(fid) => {
                            made.push(fid);
                            self.note(&mut log, fid, &value);
                            fid.put(&mut self.reply);
                        }
                        Err(error) => return Err(self.unmake(&made, error.into())),
                    }
                }
                Err(failure) => return Err(self.unmake(&made, failure)),
            }
        }
        let logged = self.log(log).map_err(|failure| self.unmake(&made, failure));
        fault::at("promoted");
        logged?;
        let answered = self.reply.get(begin..).unwrap_or_default();
        let (fids, record) = answered
            .split_at_checked(moves.len() * Fid::BYTES)
            .unwrap_or_default();
        Ok((List::new(fids).iter().collect(), record.len() as u32))
    }

    /// Adds a promoted value to the redo record being built.
    pub(super) fn note(&mut self, log: &mut Promotion, fid: Fid, value: &Value) {
        if self.keeper.durable.is_some() {
            let t = value.type_code();
            self.plain.clear();
            store::encode(&Scalar::of(value), t, &mut self.plain);
            log.push(fid.0, t as u8, &self.plain);
        }
    }

    /// Appends the redo record to the answer.
    fn log(&mut self, log: Promotion) -> Result<(), Failure> {
        if let Some(durable) = &self.keeper.durable
            && !log.is_empty()
        {
            let record = durable.log_promotion(log)?;
            if self.reply.len() + record.len() > BODY_MAX {
                return Err(fail::answer_too_long().into());
            }
            self.reply.extend_from_slice(&record);
        }
        Ok(())
    }

    fn unmake(&self, made: &[Fid], failure: Failure) -> Failure {
        for fid in made {
            self.keeper.store.free(*fid);
        }
        failure
    }

    /// Values are promoted to columns, never to arenas or logs of ledger tables.
    pub(super) fn must_be_column(&self, partition: u32) -> Result<(), Failure> {
        let key = self.keeper.store.get(partition).and_then(|p| p.key());
        if partition >= ARENA_BASE || key.is_some_and(|key| key.is_log()) {
            return Err(fail::malformed("The partition is not one of a column.").into());
        }
        Ok(())
    }

    pub(super) fn promote_one(&self, source: Fid, partition: u32) -> Result<Source, Failure> {
        self.must_be_column(partition)?;
        if source == Fid::INVALID {
            return Ok(Source::Stays(source));
        }
        // Within the same column, it would move to another row.
        if !source.is_temporary() && self.client.is_none() {
            return Err(fail::no_client_to_move().into());
        }
        if source.partition() == partition {
            return Ok(Source::Stays(source));
        }
        self.may_take(source, 1, partition)?;
        if self.is_bound() {
            self.authorise_write(self.operands(&[source])?.label, partition)?;
        }
        let column = self.keeper.store.get(partition);
        let column = column.ok_or_else(store::unresolved)?;
        let want = column.read().stored_type();
        let want = want.ok_or_else(store::unresolved)?;
        match self.space.value(source, Some(want))? {
            Some(value) => Ok(Source::Moves(partition, value)),
            None => Ok(Source::Stays(Fid::INVALID)),
        }
    }

    pub(super) fn release(&mut self, body: body::Release) -> Result<(), Failure> {
        let body::Release { arena, keep } = body;
        let own = &self.space.own;
        let ended = {
            let mut window = self.space.own_arena(arena)?.write();
            window.release(keep);
            window.is_empty() && arena == own.first()
        };
        if ended {
            // No statement is running: the remaining aggregations were abandoned because of an
            // error.
            self.aggregations.clear();
            self.forget_buffers();
        }
        if ended && self.leads {
            self.session.end_statement();
        }
        Ok(())
    }
}
