//! Columns: `PartitionOpen`, `PartitionLogged`, `PartitionDrop`, `Promote`; and
//! `Release` of temporary values.

use super::Connection;
use crate::body::Body;
use crate::fail::{self, Failure};
use crate::fault;
use contract::Fid;
use contract::fid::ARENA_BASE;
use contract::message::{BODY_MAX, NOT_PROMOTED};
use redo::Promotion;
use store::{Layout, Listed, PartitionKey, Scalar};
use values::Value;

/// A redo record takes no more values once it has this many bytes.
const RECORD_BYTES: usize = 4 * 1024 * 1024;

/// What becomes of one source of a promotion.
enum Source {
    /// It is NULL, or in its column already.
    Stays(Fid),
    /// It gets a FID of this column.
    Moves(u32, Value),
}

impl Connection {
    pub(super) fn partition_open(&mut self, body: &[u8]) -> Result<(), Failure> {
        let mut body = Body::new(body);
        let (database, relation) = (body.u32()?, body.u32()?);
        let (attribute, typmod) = (body.i32()?, body.i32()?);
        let layout = Layout::of(body.type_code()?, typmod);
        let key = PartitionKey {
            database,
            relation,
            attribute,
            layout,
        };
        self.may_write()?;
        let number = self.space.keeper.store.open(key)?;
        self.reply.extend_from_slice(&number.to_le_bytes());
        self.reply.extend_from_slice(&[0; 4]);
        let keeper = &self.space.keeper;
        let logged = keeper.store.get(number).is_none_or(|p| p.is_logged());
        if let Some(durable) = keeper.durable.as_ref().filter(|_| !logged) {
            let record = durable.log_partition(&Listed { number, key })?;
            self.reply.extend_from_slice(&record);
        }
        Ok(())
    }

    pub(super) fn partition_logged(&mut self, body: &[u8]) -> Result<(), Failure> {
        let partition = Body::new(body).u32()?;
        match self.space.keeper.store.get(partition) {
            Some(partition) => partition.set_logged(),
            None => return Err(fail::malformed("There is no such partition.").into()),
        }
        Ok(())
    }

    pub(super) fn partition_drop(&mut self, body: &[u8]) -> Result<(), Failure> {
        let mut body = Body::new(body);
        let (database, relation) = (body.u32()?, body.u32()?);
        if relation == 0 {
            return Err(fail::malformed("Constants belong to no relation.").into());
        }
        self.may_write()?;
        self.space.keeper.store.drop_relation(database, relation);
        Ok(())
    }

    /// At a standby values come from the WAL only.
    pub(super) fn may_write(&self) -> Result<(), Failure> {
        let durable = self.space.keeper.durable.as_ref();
        match durable.is_some_and(|durable| durable.follows()) {
            true => Err(fail::standby().into()),
            false => Ok(()),
        }
    }

    /// All or none: what was promoted before a failure is freed again. Stops early when
    /// the redo record has become long.
    pub(super) fn promote(&mut self, body: &[u8]) -> Result<(), Failure> {
        self.may_write()?;
        let mut body = Body::new(body);
        let count = body.u32()? as usize;
        body.skip::<4>()?;
        if count.checked_mul(16) != Some(body.rest().len()) {
            return Err(fail::malformed("The message has not as many values as it says.").into());
        }
        let mut made = Vec::new();
        let mut log = Promotion::new();
        for _ in 0..count {
            if log.len() >= RECORD_BYTES {
                self.reply.extend_from_slice(&NOT_PROMOTED.to_le_bytes());
                continue;
            }
            let (source, partition) = (body.fid()?, body.u32()?);
            body.skip::<4>()?;
            match self.promote_one(source, partition) {
                Ok(Source::Stays(fid)) => self.reply.extend_from_slice(&fid.0.to_le_bytes()),
                Ok(Source::Moves(partition, value)) => {
                    match self.space.keeper.store.promote(
                        partition,
                        value.type_code(),
                        &Scalar::of(&value),
                    ) {
                        Ok(fid) => {
                            made.push(fid);
                            self.note(&mut log, fid, &value);
                            self.reply.extend_from_slice(&fid.0.to_le_bytes());
                        }
                        Err(error) => return Err(self.unmake(&made, error.into())),
                    }
                }
                Err(failure) => return Err(self.unmake(&made, failure)),
            }
        }
        let logged = self.log(log).map_err(|failure| self.unmake(&made, failure));
        fault::at("promoted");
        logged
    }

    /// Adds a promoted value to the redo record in the making.
    fn note(&mut self, log: &mut Promotion, fid: Fid, value: &Value) {
        if self.space.keeper.durable.is_some() {
            let t = value.type_code();
            self.plain.clear();
            store::encode(&Scalar::of(value), t, &mut self.plain);
            log.push(fid.0, t as u8, &self.plain);
        }
    }

    /// Appends the redo record to the answer.
    fn log(&mut self, log: Promotion) -> Result<(), Failure> {
        if let Some(durable) = &self.space.keeper.durable
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
            self.space.keeper.store.free(*fid);
        }
        failure
    }

    fn promote_one(&self, source: Fid, partition: u32) -> Result<Source, Failure> {
        if partition >= ARENA_BASE {
            return Err(fail::malformed("The partition is not one of a column.").into());
        }
        if source == Fid::INVALID {
            return Ok(Source::Stays(source));
        }
        // Of the same column it would go to another row.
        if !source.is_temporary() && self.client.is_none() {
            return Err(fail::no_client_to_move().into());
        }
        if source.partition() == partition {
            return Ok(Source::Stays(source));
        }
        let column = self.space.keeper.store.get(partition);
        let column = column.ok_or_else(store::unresolved)?;
        let want = column.read().stored_type();
        let want = want.ok_or_else(store::unresolved)?;
        match self.space.value(source, Some(want))? {
            Some(value) => Ok(Source::Moves(partition, value)),
            None => Ok(Source::Stays(Fid::INVALID)),
        }
    }

    pub(super) fn release(&mut self, body: &[u8]) -> Result<(), Failure> {
        let mut body = Body::new(body);
        let arena = body.u32()?;
        body.skip::<4>()?;
        let keep = body.u64()?;
        let own = &self.space.own;
        let ended = {
            let mut window = self.space.own_arena(arena)?.write();
            window.release(keep);
            window.is_empty() && arena == own.first()
        };
        if ended {
            // No statement runs: the aggregations left were given up by an error.
            self.aggregations.clear();
        }
        if ended && self.leads {
            self.space.session.end_statement();
        }
        Ok(())
    }
}
