//! Aggregations over batches: registration, rows, groups. What they compute is in
//! [`crate::aggregation`].

use super::Connection;
use crate::aggregation::{Aggregation, FETCH_MAX, Input, Plan};
use crate::body::Body;
use crate::fail::{self, Failure};
use crate::program::encoded::Encoded;
use contract::message::ROWS_MAX;
use std::sync::atomic::Ordering::Relaxed;
use values::Error;

/// Aggregations that one channel may have at a time.
const AGGREGATIONS_MAX: usize = 1024;

/// There may be more groups.
const MORE: u32 = 1;
/// Rows are to be taken back.
const RETURNED: u32 = 2;
/// Groups that were handed over wait for another pass.
const UNMERGED: u32 = 4;

fn unknown() -> Failure {
    Error::new(b"42883", "confide: no such aggregation").into()
}

/// The columns of a batch.
fn inputs(plan: &Plan, body: &mut Body<'_>, rows: usize) -> Result<Vec<Input>, Failure> {
    let mut inputs = Vec::with_capacity(plan.columns.len());
    for t in &plan.columns {
        inputs.push(Input::of(&Encoded::take(body, rows)?, *t, rows)?);
    }
    Ok(inputs)
}

impl Connection {
    pub(super) fn aggregate_register(&mut self, body: &[u8]) -> Result<(), Failure> {
        self.need_client()?;
        if self.aggregations.len() >= AGGREGATIONS_MAX {
            let error = fail::program_limit("The statement has too many aggregations.");
            return Err(error.into());
        }
        let session = &self.space.session;
        let plan = Plan::new(body, &self.space.keeper.table, |handle| {
            session.program(handle)
        })?;
        let aggregation = Aggregation::new(plan, &session.budget);
        while self.aggregations.contains_key(&self.next_aggregation) {
            self.next_aggregation = self.next_aggregation.wrapping_add(1);
        }
        let handle = self.next_aggregation;
        self.next_aggregation = handle.wrapping_add(1);
        self.aggregations.insert(handle, aggregation);
        self.reply.extend_from_slice(&handle.to_le_bytes());
        Ok(())
    }

    /// Hands an aggregation to `use_it`, which may use the connection, too.
    fn with_aggregation<R>(
        &mut self,
        handle: u32,
        use_it: impl FnOnce(&mut Connection, &mut Aggregation) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        self.need_client()?;
        let mut aggregation = self.aggregations.remove(&handle).ok_or_else(unknown)?;
        let done = use_it(self, &mut aggregation);
        self.aggregations.insert(handle, aggregation);
        done
    }

    pub(super) fn aggregate_rows(&mut self, body: &[u8]) -> Result<(), Failure> {
        let mut body = Body::new(body);
        let (handle, rows) = (body.u32()?, body.u32()? as usize);
        if rows > ROWS_MAX {
            return Err(fail::malformed("There are too many rows.").into());
        }
        self.with_aggregation(handle, |this, aggregation| {
            let inputs = inputs(aggregation.plan(), &mut body, rows)?;
            if !body.is_empty() {
                return Err(fail::malformed("There are bytes after the rows.").into());
            }
            aggregation.rows(this.tools(), &inputs, rows)
        })
    }

    pub(super) fn aggregate_return(&mut self, body: &[u8]) -> Result<(), Failure> {
        let handle = Body::new(body).u32()?;
        self.with_aggregation(handle, |this, aggregation| {
            let (columns, rows, more) = aggregation.take_back();
            let reply = &mut this.reply;
            reply.extend_from_slice(&aggregation.allowance().to_le_bytes());
            reply.extend_from_slice(&(rows as u32).to_le_bytes());
            reply.extend_from_slice(&u32::from(more).to_le_bytes());
            for column in &columns {
                match column {
                    Input::Fids(v) => v
                        .iter()
                        .for_each(|fid| reply.extend_from_slice(&fid.0.to_le_bytes())),
                    Input::Same(fid) => {
                        (0..rows).for_each(|_| reply.extend_from_slice(&fid.0.to_le_bytes()));
                    }
                    Input::Raw(v, nulls) => {
                        v.iter()
                            .for_each(|x| reply.extend_from_slice(&x.to_le_bytes()));
                        reply.extend_from_slice(nulls);
                    }
                }
            }
            Ok(())
        })
    }

    pub(super) fn aggregate_fetch(&mut self, body: &[u8]) -> Result<(), Failure> {
        let mut body = Body::new(body);
        let (handle, max, first) = (body.u32()?, body.u32()? as usize, body.fid()?);
        let mut constants = Vec::new();
        body.fids(body.rest().len() / 8, &mut constants)?;
        self.space.own_arena(first.partition())?;
        self.with_aggregation(handle, |this, aggregation| {
            let fetched = aggregation.fetch(this.tools(), first, max.min(FETCH_MAX), &constants)?;
            let mut flags = 0;
            flags |= if fetched.more { MORE } else { 0 };
            flags |= if fetched.returned { RETURNED } else { 0 };
            flags |= if fetched.unmerged { UNMERGED } else { 0 };
            let groups = fetched.groups as u64;
            let counters = &this.space.session.counters;
            counters.declassified.fetch_add(groups, Relaxed);
            let reply = &mut this.reply;
            reply.extend_from_slice(&(fetched.groups as u32).to_le_bytes());
            reply.extend_from_slice(&flags.to_le_bytes());
            reply.extend_from_slice(&fetched.total.to_le_bytes());
            for (values, nulls) in &fetched.columns {
                for value in values {
                    reply.extend_from_slice(&value.to_le_bytes());
                }
                reply.extend_from_slice(nulls.as_deref().unwrap_or(&[]));
            }
            Ok(())
        })
    }

    pub(super) fn aggregate_reset(&mut self, body: &[u8]) -> Result<(), Failure> {
        let mut body = Body::new(body);
        let (handle, goes_on) = (body.u32()?, body.u32()? == 1);
        self.with_aggregation(handle, |this, aggregation| match goes_on {
            true => aggregation.next_pass(&this.env),
            false => {
                aggregation.reset();
                Ok(())
            }
        })
    }

    pub(super) fn aggregate_hand_over(&mut self, body: &[u8]) -> Result<(), Failure> {
        self.need_client()?;
        let handle = Body::new(body).u32()?;
        let aggregation = self.aggregations.get(&handle).ok_or_else(unknown)?;
        aggregation.check_whole()?;
        let aggregation = self.aggregations.remove(&handle).ok_or_else(unknown)?;
        let statement = (!self.leads).then_some(self.statement);
        let number = self.space.session.handed.put(aggregation, statement)?;
        self.reply.extend_from_slice(&number.to_le_bytes());
        Ok(())
    }

    pub(super) fn aggregate_merge(&mut self, body: &[u8]) -> Result<(), Failure> {
        let mut body = Body::new(body);
        let handle = body.u32()?;
        body.skip::<4>()?;
        let other = self.space.session.handed.take(body.u64()?);
        self.with_aggregation(handle, |this, aggregation| match other {
            Some(other) => aggregation.merge(other, &this.env),
            // Without its groups the result would be wrong.
            None => Err(aggregation.fail(unknown())),
        })
    }

    pub(super) fn aggregate_forget(&mut self, body: &[u8]) -> Result<(), Failure> {
        // Forgetting what is not there is no error: nothing can be done about it.
        self.aggregations.remove(&Body::new(body).u32()?);
        Ok(())
    }
}
