//! A part of a batch: columns are loaded and expressions evaluated once, when they are first
//! needed.

use super::misfit;
use super::plan::{Expression, Plan, Source};
use crate::fail::{self, Failure};
use crate::program::column::{Column, Data, string};
use crate::program::encoded::{Encoded, Fids};
use crate::program::eval;
use crate::program::load::{Named, Touched, load, load_cells};
use crate::program::logic;
use crate::program::vector::Context;
use crate::space::Space;
use contract::{Fid, OpResult, TypeCode};
use std::cell::OnceCell;

/// A column of a batch as received.
pub enum Input {
    /// Protected values.
    Fids(Vec<Fid>),
    /// One protected value for all rows.
    Same(Fid),
    /// Eight bytes for each value, and NULL flags.
    Raw(Vec<u64>, Vec<u8>),
    /// Cells of the family `rnd_`, concatenated, and their end offsets.
    Cells(Vec<u8>, Vec<usize>),
}

/// Appends a cell.
fn push_cell(bytes: &mut Vec<u8>, ends: &mut Vec<usize>, cell: &[u8]) {
    bytes.extend_from_slice(cell);
    ends.push(bytes.len());
}

/// A column of cells.
fn cells_of<'a>(cells: impl Iterator<Item = &'a [u8]>) -> Input {
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    cells.for_each(|cell| push_cell(&mut bytes, &mut ends, cell));
    Input::Cells(bytes, ends)
}

impl Input {
    /// A column without rows.
    pub fn none(t: Option<TypeCode>) -> Input {
        match t {
            Some(_) => Input::Fids(Vec::new()),
            None => Input::Raw(Vec::new(), Vec::new()),
        }
    }

    /// Converts a column of a message.
    pub fn of(encoded: &Encoded<'_>, t: Option<TypeCode>, rows: usize) -> Result<Input, Failure> {
        Ok(match (encoded, t) {
            (Encoded::Raw(values, nulls), None) => {
                let (words, _) = values.as_chunks::<8>();
                let words = words.iter().map(|word| u64::from_le_bytes(*word));
                Input::Raw(words.collect(), nulls.to_vec())
            }
            (Encoded::Bools(bytes), None) => Input::Raw(
                bytes.iter().map(|b| u64::from(*b)).collect(),
                bytes.iter().map(|b| u8::from(*b > 1)).collect(),
            ),
            (Encoded::Cells(cells), Some(_)) => cells_of(cells.iter().copied()),
            (_, Some(_)) => match encoded.fids((0, rows))? {
                Fids::Each(fids) => Input::Fids(fids),
                Fids::Same(fid) => Input::Same(fid),
            },
            _ => return Err(misfit("A column is of another form than its type.").into()),
        })
    }

    /// Returns some of its rows, whose numbers count from `from`.
    pub fn gather(&self, from: usize, rows: &[u32]) -> Input {
        let at = |row: &u32| from + *row as usize;
        match self {
            Input::Same(fid) => Input::Same(*fid),
            Input::Fids(v) => Input::Fids(
                rows.iter()
                    .map(|row| v.get(at(row)).copied().unwrap_or(Fid::INVALID))
                    .collect(),
            ),
            Input::Raw(v, nulls) => Input::Raw(
                rows.iter()
                    .map(|row| v.get(at(row)).copied().unwrap_or(0))
                    .collect(),
                rows.iter()
                    .map(|row| nulls.get(at(row)).copied().unwrap_or(1))
                    .collect(),
            ),
            Input::Cells(bytes, ends) => {
                cells_of(rows.iter().map(|row| string(bytes, ends, at(row))))
            }
        }
    }

    /// Appends a row of another column of the same kind; cells may be appended to any column
    /// without rows.
    pub fn push(&mut self, from: &Input, row: usize) {
        if let (Input::Fids(to), Input::Cells(..)) = (&*self, from)
            && to.is_empty()
        {
            *self = Input::Cells(Vec::new(), Vec::new());
        }
        match (self, from) {
            (Input::Cells(to, to_ends), Input::Cells(bytes, ends)) => {
                push_cell(to, to_ends, string(bytes, ends, row));
            }
            (Input::Fids(to), Input::Fids(v)) => {
                to.push(v.get(row).copied().unwrap_or(Fid::INVALID));
            }
            (Input::Fids(to), Input::Same(fid)) => to.push(*fid),
            (Input::Raw(to, to_nulls), Input::Raw(v, nulls)) => {
                to.push(v.get(row).copied().unwrap_or(0));
                to_nulls.push(nulls.get(row).copied().unwrap_or(1));
            }
            _ => {}
        }
    }

    /// Removes the first rows and returns them.
    pub fn split(&mut self, rows: usize) -> Input {
        match self {
            Input::Same(fid) => Input::Same(*fid),
            Input::Fids(v) => Input::Fids(v.drain(..rows.min(v.len())).collect()),
            Input::Raw(v, nulls) => Input::Raw(
                v.drain(..rows.min(v.len())).collect(),
                nulls.drain(..rows.min(nulls.len())).collect(),
            ),
            Input::Cells(bytes, ends) => {
                let first: Vec<usize> = ends.drain(..rows.min(ends.len())).collect();
                let length = first.last().copied().unwrap_or(0);
                ends.iter_mut().for_each(|end| *end -= length);
                Input::Cells(bytes.drain(..length).collect(), first)
            }
        }
    }

    /// The cells; `None` for other columns.
    pub fn cells(&self) -> Option<impl ExactSizeIterator<Item = &[u8]>> {
        match self {
            Input::Cells(bytes, ends) => Some((0..ends.len()).map(|row| string(bytes, ends, row))),
            _ => None,
        }
    }

    /// Size of a row in addition to the size that is the same for all columns.
    pub fn bytes_of(&self, row: usize) -> usize {
        match self {
            Input::Cells(bytes, ends) => string(bytes, ends, row).len(),
            _ => 0,
        }
    }

    /// Number of rows, at least one, whose total size does not exceed `most`.
    pub fn rows_within(&self, rows: usize, most: usize) -> usize {
        match self {
            Input::Cells(_, ends) => ends
                .partition_point(|end| *end <= most)
                .clamp(1, rows.max(1)),
            _ => rows,
        }
    }

    /// A FID.
    #[inline]
    pub fn fid(&self, row: usize) -> Fid {
        match self {
            Input::Fids(v) => v.get(row).copied().unwrap_or(Fid::INVALID),
            Input::Same(fid) => *fid,
            Input::Raw(..) | Input::Cells(..) => Fid::INVALID,
        }
    }

    /// A raw value; `None` for NULL.
    #[inline]
    pub fn raw(&self, row: usize) -> Option<u64> {
        match self {
            Input::Raw(v, nulls) if nulls.get(row).is_none_or(|null| *null == 0) => {
                v.get(row).copied()
            }
            _ => None,
        }
    }
}

/// Rows `first..` of some columns.
pub struct Part<'a> {
    space: &'a Space,
    plan: &'a Plan,
    inputs: &'a [Input],
    first: usize,
    rows: usize,
    context: Context<'a>,
    columns: Vec<OnceCell<Column>>,
    results: Vec<OnceCell<Column>>,
    /// Placeholder for an input that a program does not use.
    nothing: Column,
}

fn lost() -> Failure {
    fail::internal("an aggregation has lost a column").into()
}

impl<'a> Part<'a> {
    /// Creates a part; nothing is loaded yet.
    pub fn new(
        space: &'a Space,
        plan: &'a Plan,
        inputs: &'a [Input],
        from: usize,
        to: usize,
        context: Context<'a>,
    ) -> Part<'a> {
        Part {
            space,
            plan,
            inputs,
            first: from,
            rows: to - from,
            context,
            columns: inputs.iter().map(|_| OnceCell::new()).collect(),
            results: plan.expressions.iter().map(|_| OnceCell::new()).collect(),
            nothing: Column::of(TypeCode::Bool, Data::Bool(Vec::new())),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Start of the rows in the columns.
    pub fn first(&self) -> usize {
        self.first
    }

    /// The columns as received.
    pub fn inputs(&self) -> &'a [Input] {
        self.inputs
    }

    /// What evaluation depends on.
    pub fn context(&self) -> &Context<'a> {
        &self.context
    }

    /// The column of raw values that an expression refers to.
    pub fn raw_column(&self, expression: usize) -> Option<&'a Input> {
        match self.plan.expressions.get(expression)?.source {
            Source::Column(column) => {
                let input = self.inputs.get(column)?;
                matches!(input, Input::Raw(..)).then_some(input)
            }
            Source::Program(..) => None,
        }
    }

    /// The column of FIDs that an expression refers to.
    pub fn fid_column(&self, expression: usize) -> Option<&'a Input> {
        match self.plan.expressions.get(expression)?.source {
            Source::Column(column) => {
                let input = self.inputs.get(column)?;
                (!matches!(input, Input::Raw(..) | Input::Cells(..))).then_some(input)
            }
            Source::Program(..) => None,
        }
    }

    fn load(&self, number: usize) -> Result<Column, Failure> {
        let t = self.plan.columns.get(number).copied().flatten();
        let mut touched = Touched::default();
        let meter = self.context.meter;
        match (self.inputs.get(number).ok_or_else(lost)?, t) {
            (Input::Fids(v), Some(t)) => {
                let fids = v.get(self.first..self.first + self.rows).unwrap_or(&[]);
                load(self.space, Named::new(fids), t, &mut touched, meter)
            }
            (Input::Cells(bytes, ends), Some(t)) => {
                let rows = self.first..self.first + self.rows;
                let cells = rows.map(|row| string(bytes, ends, row));
                load_cells(self.space, cells, t, &mut touched, meter)
            }
            (Input::Same(fid), Some(t)) => {
                load(self.space, Named::new(&[*fid]), t, &mut touched, meter)
            }
            (raw @ Input::Raw(..), None) => {
                let truth = |row| match raw.raw(self.first + row) {
                    Some(v) => u8::from(v != 0),
                    None => 2,
                };
                Ok(logic::known(
                    &(0..self.rows).map(truth).collect::<Vec<u8>>(),
                ))
            }
            _ => Err(lost()),
        }
    }

    fn column(&self, number: usize) -> Result<&Column, Failure> {
        let cell = self.columns.get(number).ok_or_else(lost)?;
        if cell.get().is_none() {
            let _ = cell.set(self.load(number)?);
        }
        cell.get().ok_or_else(lost)
    }

    /// The values of an expression that is not raw.
    pub fn expression(&self, number: usize) -> Result<&Column, Failure> {
        let found = self.plan.expressions.get(number).ok_or_else(lost)?;
        let Expression {
            source: Source::Program(program, columns),
            ..
        } = found
        else {
            let Source::Column(column) = found.source else {
                return Err(lost());
            };
            return self.column(column);
        };
        let cell = self.results.get(number).ok_or_else(lost)?;
        if cell.get().is_none() {
            let mut inputs = Vec::with_capacity(columns.len());
            for column in columns {
                inputs.push(match column {
                    Some(column) => self.column(*column)?,
                    None => &self.nothing,
                });
            }
            let column = eval::run(self.space, program, &inputs, self.rows, self.context)?;
            let _ = cell.set(column);
        }
        cell.get().ok_or_else(lost)
    }

    /// Counts, for the columns used by a condition, that its truth value for a row is revealed.
    pub fn reveal(&self, expression: usize, row: usize) {
        let found = self.plan.expressions.get(expression);
        let Some(Source::Program(_, columns)) = found.map(|e| &e.source) else {
            return;
        };
        for column in columns.iter().flatten() {
            let fid = self.inputs.get(*column).map(|i| i.fid(self.first + row));
            let fid = fid.filter(|fid| !fid.is_temporary());
            let partition = fid.and_then(|fid| self.space.store.get(fid.partition()));
            if let Some(partition) = partition {
                partition.reveal(OpResult::Bool, 1);
            }
        }
    }

    /// Calls `see` for each row with the truth value of a condition; stops at a row for which the
    /// condition failed with an error.
    pub fn condition(
        &self,
        expression: usize,
        mut see: impl FnMut(usize, bool),
    ) -> Result<(), Failure> {
        if let Some(raw) = self.raw_column(expression) {
            for row in 0..self.rows {
                see(row, raw.raw(self.first + row).is_some_and(|v| v != 0));
            }
            return Ok(());
        }
        let truth = self.expression(expression)?;
        if let Some((_, failure)) = truth.failures.first_key_value() {
            return Err(failure.clone());
        }
        for row in 0..self.rows {
            see(row, !truth.is_null(row) && truth.truth(row));
        }
        Ok(())
    }

    /// Returns the rows that satisfy a condition.
    pub fn passing(&self, expression: usize) -> Result<Vec<u32>, Failure> {
        let mut rows = Vec::with_capacity(self.rows);
        self.condition(expression, |row, truth| {
            if truth {
                rows.push(row as u32);
            }
        })?;
        Ok(rows)
    }
}
