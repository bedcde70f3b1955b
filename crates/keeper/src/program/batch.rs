//! Registered programs over a batch of encoded columns, processed in parts. Several programs share
//! the columns, and each part of a column is loaded once.
//!
//! Invariant: the failure reported is that of the first failing row, and within it that of the
//! first program, which is the one that PostgreSQL would have reached row by row.

use super::check::{Program, Use};
use super::column::Column;
use super::encoded::Encoded;
use super::eval::{PART, Tools, run, store, write};
use super::groups::Groups;
use super::load::Touched;
use super::vector::{Context, Meter};
use crate::fail::{self, Failure};
use contract::{Fid, OpResult};
use std::sync::Arc;
use store::Label;

/// A batch.
pub struct Wide<'a> {
    /// The programs to evaluate.
    pub programs: &'a [Arc<Program>],
    /// Their input columns.
    pub columns: &'a [Encoded<'a>],
    /// Number of rows.
    pub rows: usize,
}

/// The first row that failed, and its failure.
pub type FirstFailure = Option<(usize, Failure)>;

impl Wide<'_> {
    fn check(&self) -> Result<(), Failure> {
        let Some(first) = self.programs.first() else {
            return Ok(());
        };
        let fits = |p: &Arc<Program>| {
            let fits = |(column, used): (&Encoded<'_>, &Use)| match used {
                Use::Not => true,
                Use::Value => !matches!(column, Encoded::Values(_)),
                Use::List => matches!(column, Encoded::Values(_)),
            };
            p.inputs == first.inputs && self.columns.iter().zip(&p.uses).all(fits)
        };
        if !self.programs.iter().all(fits) || first.inputs.len() != self.columns.len() {
            return Err(fail::misused_program("It takes other columns.").into());
        }
        Ok(())
    }

    /// Evaluates part by part. `take` receives each program's column, its number and the rows.
    fn each(
        &self,
        tools: Tools<'_>,
        touched: &mut Touched,
        mut take: impl FnMut(Column, usize, (usize, usize)) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        self.check()?;
        let Some(first) = self.programs.first() else {
            return Ok(());
        };
        let space = tools.space;
        let meter = Meter::new(&space.budget);
        let mut lists = Vec::with_capacity(self.columns.len());
        for (column, t) in self.columns.iter().zip(&first.inputs) {
            lists.push(column.load_list(space, *t, &meter)?);
        }
        let mut from = 0;
        while from < self.rows {
            let part = (from, self.rows.min(from + PART));
            let meter = Meter::new(&space.budget);
            let context = Context {
                env: tools.env,
                hash_key: &space.keys.hash,
                meter: &meter,
            };
            let mut loaded = Vec::with_capacity(self.columns.len());
            for ((column, t), list) in self.columns.iter().zip(&first.inputs).zip(&lists) {
                loaded.push(match list {
                    Some(_) => None,
                    None => Some(column.load(space, part, *t, touched, &meter)?),
                });
            }
            let inputs = loaded.iter().zip(&lists);
            let inputs: Vec<&Column> = inputs
                .filter_map(|(a, b)| a.as_ref().or(b.as_ref()))
                .collect();
            for (number, program) in self.programs.iter().enumerate() {
                let column = run(space, program, &inputs, part.1 - part.0, context)?;
                if !take(column, number, part)? {
                    return Ok(());
                }
            }
            from = part.1;
        }
        Ok(())
    }

    /// Evaluates the first program and appends the declassified results, up to the first row that
    /// failed or, if `wanted` is not 0, up to the row where so many booleans are true. Returns the
    /// number of these rows, and why the next one failed.
    pub fn declassify(
        &self,
        tools: Tools<'_>,
        wanted: usize,
        out: &mut Vec<u8>,
    ) -> Result<(usize, Option<Failure>), Failure> {
        let program = self.programs.first();
        let counts = wanted > 0 && program.is_some_and(|p| p.result == OpResult::Bool);
        let mut left = wanted;
        let mut failed = None;
        let mut done = 0;
        let mut touched = Touched::default();
        self.each(tools, &mut touched, |column, _, (from, to)| {
            let failure = first_failure(&column);
            let mut rows = failure.as_ref().map_or(to - from, |(row, _)| *row);
            let start = out.len();
            write(&column, rows, out)?;
            if counts && let Some(enough) = up_to_true(out.get(start..), &mut left) {
                out.truncate(start + enough);
                rows = enough;
            } else {
                failed = failure.map(|(_, failure)| failure);
            }
            done = from + rows;
            Ok(rows == to - from && !(counts && left == 0))
        })?;
        self.count(tools, &touched, done);
        Ok((done, failed))
    }

    /// Evaluates the first program and decides groups by it, as many as are wanted or those before
    /// the first that failed. Returns their number, and why the next one failed.
    pub fn declassify_groups(
        &self,
        tools: Tools<'_>,
        mut groups: Groups<'_>,
    ) -> Result<(usize, Option<Failure>), Failure> {
        let mut touched = Touched::default();
        self.each(tools, &mut touched, |column, _, (from, to)| {
            Ok(groups.take(&column, to - from))
        })?;
        self.count(tools, &touched, groups.done);
        Ok((groups.done, groups.failed))
    }

    /// Counts what was declassified, as a number of booleans. Rows of a column that were not
    /// reached disclose nothing.
    fn count(&self, tools: Tools<'_>, touched: &Touched, done: usize) {
        let Some(program) = self.programs.first() else {
            return;
        };
        for (partition, rows) in touched.iter() {
            if let Some(partition) = tools.space.store.get(partition) {
                partition.reveal(program.result, rows.min(done as u64));
            }
        }
    }

    /// Evaluates, and stores the results of each program in consecutive slots. Also returns which
    /// rows are NULL, by program.
    pub fn store(
        &self,
        tools: Tools<'_>,
        to: &[(Fid, Label)],
    ) -> Result<(FirstFailure, Vec<Nulls>), Failure> {
        let mut failed: FirstFailure = None;
        let mut nulls: Vec<Nulls> = to.iter().map(|_| Nulls::default()).collect();
        self.each(tools, &mut Touched::default(), |column, number, part| {
            let first = *to
                .get(number)
                .ok_or_else(|| fail::internal("no destination"))?;
            store(tools.space, &column, first, part.0, part.1)?;
            if let Some(nulls) = nulls.get_mut(number) {
                nulls.note(&column, part, self.rows);
            }
            if let Some((row, failure)) = first_failure(&column) {
                let row = part.0 + row;
                if failed.as_ref().is_none_or(|(before, _)| row < *before) {
                    failed = Some((row, failure));
                }
            }
            Ok(true)
        })?;
        Ok((failed, nulls))
    }
}

/// The NULL results of a program.
#[derive(Default)]
pub struct Nulls {
    /// Their number.
    pub count: u32,
    /// 1 for each row that is NULL; empty if none is.
    pub rows: Vec<u8>,
}

impl Nulls {
    fn note(&mut self, column: &Column, (from, to): (usize, usize), rows: usize) {
        if column.nulls.is_empty() {
            return;
        }
        let out = &mut self.rows;
        out.resize(rows, 0);
        for (row, place) in out.iter_mut().take(to).skip(from).enumerate() {
            if column.is_null(row) && column.failure(row).is_none() {
                *place = 1;
                self.count += 1;
            }
        }
    }
}

/// Number of booleans up to the one that makes `left` of them true; decrements `left` by those that
/// are true.
fn up_to_true(booleans: Option<&[u8]>, left: &mut usize) -> Option<usize> {
    for (row, boolean) in booleans.unwrap_or_default().iter().enumerate() {
        *left -= usize::from(*boolean == 1);
        if *left == 0 {
            return Some(row + 1);
        }
    }
    None
}

fn first_failure(column: &Column) -> FirstFailure {
    let (row, failure) = column.failures.first_key_value()?;
    Some((*row as usize, failure.clone()))
}
