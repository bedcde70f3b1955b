//! `EvalBatch`, `DeclassifyBatch` and `DeclassifyGroups`: evaluates registered programs over
//! columns supplied by a scan or a join.
//!
//! Invariant: an error of a row is part of the answer, together with the preceding rows; it is not
//! an error of the request, and it is not kept for later.

use super::Connection;
use super::operands::Operands;
use super::telling::as_told;
use crate::fail::{self, Failure};
use crate::program::Program;
use crate::program::batch::Wide;
use crate::program::encoded::Encoded;
use crate::program::groups::Groups;
use crate::program::pure;
use crate::told::Told;
use contract::codec::{Each, Part};
use contract::message::column::Columns;
use contract::message::table::{self, Revealed};
use contract::message::{COLUMNS_MAX, ROWS_MAX};
use contract::{OpResult, answer, body};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use store::Label;
use values::Error;

pub(super) fn shape(rows: usize, columns: usize) -> Result<(), Error> {
    if rows > ROWS_MAX || columns > COLUMNS_MAX {
        return Err(fail::malformed("There are too many rows or columns."));
    }
    Ok(())
}

pub(super) fn columns(batch: Columns<'_>, rows: usize) -> Result<Vec<Encoded<'_>>, Error> {
    batch
        .iter()
        .map(|column| Encoded::new(column, rows))
        .collect()
}

/// The head of an answer about rows.
fn good_rows(good: usize, width: usize) -> Revealed<'static> {
    Revealed {
        good: good as u32,
        width: width as u32,
        results: &[],
        error: None,
    }
}

fn misfit() -> Failure {
    fail::misused_program("Its result is of another kind.").into()
}

impl Connection {
    fn registered(&self, handle: u32) -> Result<Arc<Program>, Error> {
        let program = self.session.program(handle);
        program.ok_or_else(fail::no_such_program)
    }

    /// Returns what each column of a batch was computed from.
    pub(super) fn batch_operands(&self, columns: &[Encoded<'_>]) -> Result<Vec<Operands>, Failure> {
        self.count_cells(columns.iter().map(|column| column.cells().len()).sum());
        let of = |column| self.column_operands(column);
        columns.iter().map(of).collect()
    }

    /// Returns the label of a program's result for these columns, if authorised.
    fn authorise_program(
        &self,
        program: &Program,
        operands: &[Operands],
    ) -> Result<Label, Failure> {
        let label = self.program_label(program, operands)?;
        self.authorise(label, program.families)?;
        Ok(label)
    }

    pub(super) fn eval_batch(&mut self, body: body::EvalBatch<'_>) -> Result<(), Failure> {
        self.need_client()?;
        let rows = body.rows as usize;
        shape(rows, body.columns.max(body.programs) as usize)?;
        let mut targets = Vec::with_capacity(body.targets.len());
        let mut places = Vec::with_capacity(body.targets.len());
        for table::Target { program, first } in body.targets {
            let program = self.registered(program)?;
            self.space.own_arena(first.partition())?;
            if program.result != OpResult::Fid {
                return Err(misfit());
            }
            targets.push(program);
            places.push(first);
        }
        let columns = columns(body.batch, rows)?;
        let operands = self.batch_operands(&columns)?;
        let mut marked = Vec::with_capacity(targets.len());
        for (place, program) in places.iter().zip(&targets) {
            marked.push((*place, self.authorise_program(program, &operands)?));
        }
        let wide = Wide {
            programs: &targets,
            columns: &columns,
            rows,
        };
        let (failed, nulls) = wide.store(self.tools(), &marked)?;
        self.answer(&answer::EvalBatch {
            good: failed.as_ref().map_or(rows, |(row, _)| *row) as u32,
            programs: body.programs,
            nulls: Each::new(&[]),
            error: None,
        });
        for nulls in nulls {
            let rows = match nulls.count {
                0 => &[],
                _ => nulls.rows.as_slice(),
            };
            self.answer(&table::Nulls {
                count: nulls.count,
                length: rows.len() as u32,
                rows,
            });
        }
        self.reply_error(failed.as_ref().map(|(_, failure)| failure));
        Ok(())
    }

    pub(super) fn declassify_batch(
        &mut self,
        body: body::DeclassifyBatch<'_>,
    ) -> Result<(), Failure> {
        self.need_client()?;
        let program = self.registered(body.program)?;
        let (rows, wanted) = (body.rows as usize, body.wanted as usize);
        shape(rows, body.columns as usize)?;
        let result = program.result;
        if result == OpResult::Fid {
            return Err(misfit());
        }
        let columns = columns(body.batch, rows)?;
        let label = self.authorise_program(&program, &self.batch_operands(&columns)?)?;
        let request = pure::Request {
            program: &program,
            columns: &columns,
            rows,
            wanted,
        };
        let name = self.name_request(&request);
        let width = match result {
            OpResult::Hash => size_of::<u64>(),
            _ => 1,
        };
        if let Some(good) = self.known_answer(name.as_ref(), width) {
            return self.told(label, as_told(result), good);
        }
        let wide = Wide {
            programs: &[program],
            columns: &columns,
            rows,
        };
        let good = self.reply_revealed(width, |this, reply| {
            wide.declassify(this.tools(), wanted, reply)
        })?;
        self.know_answer(name.as_ref(), good, width);
        self.told(label, as_told(result), good)
    }

    /// None if there is no cache, or the answer depends on more than the request.
    fn name_request(&self, request: &pure::Request<'_>) -> Option<pure::Name> {
        self.keeper.cells.answers.as_ref()?;
        request.name(self.tools())
    }

    /// Answers a request as before if it was the same, and returns the number of results. What it
    /// asks for was authorised just now.
    fn known_answer(&mut self, name: Option<&pure::Name>, width: usize) -> Option<usize> {
        let answers = self.keeper.cells.answers.as_ref()?;
        if !answers.get(name?, &mut self.reply) {
            return None;
        }
        let good = (self.reply.len() - Revealed::FIXED) / width;
        let counters = &self.session.counters;
        counters.declassified.fetch_add(good as u64, Relaxed);
        Some(good)
    }

    /// Keeps an answer without an error.
    fn know_answer(&self, name: Option<&pure::Name>, good: usize, width: usize) {
        let (Some(answers), Some(name)) = (&self.keeper.cells.answers, name) else {
            return;
        };
        if self.reply.len() == Revealed::FIXED + good * width {
            answers.put(name, &self.reply);
        }
    }

    pub(super) fn declassify_groups(
        &mut self,
        body: body::DeclassifyGroups<'_>,
    ) -> Result<(), Failure> {
        self.need_client()?;
        let program = self.registered(body.program)?;
        let (rows, wanted) = (body.rows as usize, body.wanted as usize);
        shape(rows.max(body.groups as usize), body.columns as usize)?;
        if program.result != OpResult::Bool {
            return Err(misfit());
        }
        let lengths: Vec<u32> = body.lengths.iter().collect();
        if lengths.iter().map(|n| u64::from(*n)).sum::<u64>() != rows as u64 {
            return Err(fail::malformed("The groups have other rows than the batch.").into());
        }
        let columns = columns(body.batch, rows)?;
        let label = self.authorise_program(&program, &self.batch_operands(&columns)?)?;
        let wide = Wide {
            programs: &[program],
            columns: &columns,
            rows,
        };
        let good = self.reply_revealed(1, |this, reply| {
            let groups = Groups::new(&lengths, body.none != 0, wanted, reply);
            wide.declassify_groups(this.tools(), groups)
        })?;
        self.told(label, Told::Booleans, good)?;
        Ok(())
    }

    /// Answers with the results appended by `reveal`, each of the given width, preceded by their
    /// number and followed by the error, if any. Returns the number of results.
    pub(super) fn reply_revealed(
        &mut self,
        width: usize,
        reveal: impl FnOnce(&Connection, &mut Vec<u8>) -> Result<(usize, Option<Failure>), Failure>,
    ) -> Result<usize, Failure> {
        let mut reply = std::mem::take(&mut self.reply);
        // The number of good rows is known only afterwards.
        good_rows(0, width).put(&mut reply);
        let done = reveal(self, &mut reply);
        self.reply = reply;
        let (good, failed) = done?;
        let mut head = Vec::with_capacity(Revealed::FIXED);
        good_rows(good, width).put(&mut head);
        if let Some(place) = self.reply.get_mut(..head.len()) {
            place.copy_from_slice(&head);
        }
        self.reply_error(failed.as_ref());
        let counters = &self.session.counters;
        counters.declassified.fetch_add(good as u64, Relaxed);
        Ok(good)
    }

    /// Appends the error of the first row that is not good.
    fn reply_error(&mut self, failed: Option<&Failure>) {
        if let Some(failure) = failed {
            fail::encode(&failure.error, &mut self.reply);
        }
    }
}
