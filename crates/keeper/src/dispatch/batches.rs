//! `EvalBatch`, `DeclassifyBatch` and `DeclassifyGroups`: registered programs over columns as
//! a scan, or a join, has them.
//!
//! Invariant: an error of a row is in the answer, with the rows before it; it is no
//! error of the request, and not kept for later.

use super::Connection;
use crate::body::Body;
use crate::fail::{self, Failure};
use crate::program::Program;
use crate::program::batch::{FirstFailure, Wide};
use crate::program::encoded::Encoded;
use crate::program::groups::Groups;
use contract::message::{COLUMNS_MAX, ROWS_MAX};
use contract::{Fid, OpResult};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use values::Error;

pub(super) fn shape(rows: usize, columns: usize) -> Result<(), Error> {
    if rows > ROWS_MAX || columns > COLUMNS_MAX {
        return Err(fail::malformed("There are too many rows or columns."));
    }
    Ok(())
}

pub(super) fn columns<'a>(
    body: &mut Body<'a>,
    rows: usize,
    count: usize,
) -> Result<Vec<Encoded<'a>>, Error> {
    let columns: Result<Vec<_>, _> = (0..count).map(|_| Encoded::take(body, rows)).collect();
    match columns {
        Ok(_) if !body.is_empty() => Err(fail::malformed("There are bytes after the columns.")),
        columns => columns,
    }
}

fn misfit() -> Failure {
    fail::misused_program("Its result is of another kind.").into()
}

impl Connection {
    fn registered(&self, handle: u32) -> Result<Arc<Program>, Error> {
        let program = self.space.session.program(handle);
        program.ok_or_else(fail::no_such_program)
    }

    pub(super) fn eval_batch(&mut self, body: &[u8]) -> Result<(), Failure> {
        self.need_client()?;
        let mut body = Body::new(body);
        let (rows, count) = (body.u32()? as usize, body.u32()? as usize);
        let programs = body.u32()? as usize;
        body.skip::<4>()?;
        shape(rows, count.max(programs))?;
        let mut targets = Vec::with_capacity(programs);
        let mut places = Vec::with_capacity(programs);
        for _ in 0..programs {
            let program = self.registered(body.u32()?)?;
            body.skip::<4>()?;
            let first = body.fid()?;
            self.space.own_arena(first.partition())?;
            if program.result != OpResult::Fid {
                return Err(misfit());
            }
            targets.push(program);
            places.push(first);
        }
        let columns = columns(&mut body, rows, count)?;
        let wide = Wide {
            programs: &targets,
            columns: &columns,
            rows,
        };
        let (failed, nulls) = wide.store(self.tools(), &places as &[Fid])?;
        self.reply_rows(rows, &failed);
        for nulls in nulls {
            self.reply.extend_from_slice(&nulls.count.to_le_bytes());
            if nulls.count > 0 {
                self.reply.extend_from_slice(&nulls.rows);
            }
        }
        self.reply_error(failed.as_ref().map(|(_, failure)| failure));
        Ok(())
    }

    pub(super) fn declassify_batch(&mut self, body: &[u8]) -> Result<(), Failure> {
        self.need_client()?;
        let mut body = Body::new(body);
        let program = self.registered(body.u32()?)?;
        let (rows, count) = (body.u32()? as usize, body.u32()? as usize);
        let wanted = body.u32()? as usize;
        shape(rows, count)?;
        if program.result == OpResult::Fid {
            return Err(misfit());
        }
        let columns = columns(&mut body, rows, count)?;
        let wide = Wide {
            programs: &[program],
            columns: &columns,
            rows,
        };
        self.reply_revealed(|this, reply| wide.declassify(this.tools(), wanted, reply))
    }

    pub(super) fn declassify_groups(&mut self, body: &[u8]) -> Result<(), Failure> {
        self.need_client()?;
        let mut body = Body::new(body);
        let program = self.registered(body.u32()?)?;
        let (rows, count) = (body.u32()? as usize, body.u32()? as usize);
        let wanted = body.u32()? as usize;
        let (number, none) = (body.u32()? as usize, body.u32()? != 0);
        shape(rows.max(number), count)?;
        if program.result != OpResult::Bool {
            return Err(misfit());
        }
        let lengths: Result<Vec<u32>, Error> = (0..number).map(|_| body.u32()).collect();
        let lengths = lengths?;
        if lengths.iter().map(|n| u64::from(*n)).sum::<u64>() != rows as u64 {
            return Err(fail::malformed("The groups have other rows than the batch.").into());
        }
        let columns = columns(&mut body, rows, count)?;
        let wide = Wide {
            programs: &[program],
            columns: &columns,
            rows,
        };
        self.reply_revealed(|this, reply| {
            let groups = Groups::new(&lengths, none, wanted, reply);
            wide.declassify_groups(this.tools(), groups)
        })
    }

    /// Answers with what is appended, how much that is, and the error after it.
    pub(super) fn reply_revealed(
        &mut self,
        reveal: impl FnOnce(&Connection, &mut Vec<u8>) -> Result<(usize, Option<Failure>), Failure>,
    ) -> Result<(), Failure> {
        let mut reply = std::mem::take(&mut self.reply);
        reply.extend_from_slice(&[0; 8]);
        let done = reveal(self, &mut reply);
        self.reply = reply;
        let (good, failed) = done?;
        if let Some(head) = self.reply.first_chunk_mut() {
            *head = (good as u32).to_le_bytes();
        }
        self.reply_error(failed.as_ref());
        let counters = &self.space.session.counters;
        counters.declassified.fetch_add(good as u64, Relaxed);
        Ok(())
    }

    /// How many rows are good.
    fn reply_rows(&mut self, rows: usize, failed: &FirstFailure) {
        let good = failed.as_ref().map_or(rows, |(row, _)| *row) as u64;
        self.reply.extend_from_slice(&good.to_le_bytes());
    }

    /// The error of the first row that is not.
    fn reply_error(&mut self, failed: Option<&Failure>) {
        if let Some(failure) = failed {
            fail::encode(&failure.error, &mut self.reply);
        }
    }
}
