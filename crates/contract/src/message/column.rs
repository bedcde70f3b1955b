//! Columns of a batch (`EvalBatch`, `DeclassifyBatch`, `DeclassifyGroups`, `Tokens`,
//! `AggregateRows`), one after the other: form `u32`, count `u32`, then as the form says.
//!
//! Not checked here: whether runs have as many rows as the batch, and stay within a partition.

use super::ROWS_MAX;
use crate::Fid;
use crate::codec::{Fixed, List, Malformed, Part, Reader, Sink};
use crate::describe::{Field, Form, Structure};

numbers! {
    /// `count` FIDs `u64`, one for each row.
    LIST: u32 = 0;
    /// `count` runs ([`ColumnRun`]) that together have as many rows as the batch.
    RUNS: u32 = 1;
    /// `count` booleans `u8` that the database knows, one for each row: 0, 1, or 2
    /// for NULL.
    BOOLS: u32 = 2;
    /// `count` values `u64` that are not protected, one for each row, then for each a
    /// byte: 1 if it is NULL. Group keys only (`AggregateRows`).
    RAW: u32 = 3;
    /// `count` FIDs `u64`, however many rows there are: a list, the same for all of them.
    VALUES: u32 = 4;
    /// `count` lengths `u32`, one for each row, then so many bytes: cells of the family `rnd_`
    /// ([`crate::cell`]), one after the other, sealed or loose; none for NULL.
    CELLS: u32 = 5;
}

record! {
    /// FIDs of a column that count up, or are all the same.
    ColumnRun {
        /// The first of them.
        first: Fid,
        /// How many there are, not 0.
        length: u32,
        /// 1 if they count up, 0 if they are all the same.
        stride: u32,
    }
    /// What a column begins with.
    ColumnHead {
        /// [`LIST`] and others.
        form: u32,
        /// Number of its elements.
        count: u32,
    }
}

const UNEQUAL: Malformed = Malformed("A column does not have as many rows as the batch.");
const NO_FORM: Malformed = Malformed("There is no such form of a column.");

/// A column of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Column<'a> {
    /// FIDs.
    List(List<'a, Fid>),
    /// Runs of FIDs.
    Runs(List<'a, ColumnRun>),
    /// Booleans that the database knows.
    Bools(&'a [u8]),
    /// Values that are not protected, and which are NULL.
    Raw(List<'a, u64>, &'a [u8]),
    /// A list, the same for all rows.
    Values(List<'a, Fid>),
    /// Lengths of cells, and the cells, one after the other.
    Cells(List<'a, u32>, &'a [u8]),
}

impl<'a> Column<'a> {
    /// Takes a column of so many rows.
    #[inline]
    pub fn take(from: &mut Reader<'a>, rows: usize) -> Result<Column<'a>, Malformed> {
        let ColumnHead { form, count } = Fixed::take(from)?;
        let counts = [count as usize];
        if form == VALUES && counts[0] <= ROWS_MAX {
            return Part::take(from, &counts).map(Column::Values);
        }
        if counts[0] > rows || (form != RUNS && counts[0] != rows) {
            return Err(UNEQUAL);
        }
        match form {
            LIST => Part::take(from, &counts).map(Column::List),
            RUNS => Part::take(from, &counts).map(Column::Runs),
            BOOLS => Part::take(from, &counts).map(Column::Bools),
            RAW => {
                let values = Part::take(from, &counts)?;
                Ok(Column::Raw(values, Part::take(from, &counts)?))
            }
            CELLS => {
                let lengths: List<'a, u32> = Part::take(from, &counts)?;
                let bytes = lengths.iter().map(|n| n as usize);
                let bytes = bytes.fold(0usize, usize::saturating_add);
                Ok(Column::Cells(lengths, from.bytes(bytes)?))
            }
            _ => Err(NO_FORM),
        }
    }

    /// Appends it.
    pub fn put(&self, to: &mut impl Sink) {
        let (form, count) = match self {
            Column::List(fids) => (LIST, fids.len()),
            Column::Runs(runs) => (RUNS, runs.len()),
            Column::Bools(bools) => (BOOLS, bools.len()),
            Column::Raw(values, _) => (RAW, values.len()),
            Column::Values(fids) => (VALUES, fids.len()),
            Column::Cells(lengths, _) => (CELLS, lengths.len()),
        };
        let count = count as u32;
        ColumnHead { form, count }.put(to);
        match self {
            Column::List(fids) | Column::Values(fids) => fids.put(to),
            Column::Runs(runs) => runs.put(to),
            Column::Bools(bools) => to.put(bools),
            Column::Raw(values, nulls) => {
                values.put(to);
                to.put(nulls);
            }
            Column::Cells(lengths, cells) => {
                lengths.put(to);
                to.put(cells);
            }
        }
    }
}

/// Columns of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Columns<'a> {
    bytes: &'a [u8],
    rows: usize,
    count: usize,
}

impl<'a> Columns<'a> {
    /// No columns.
    pub const NONE: Columns<'static> = Columns {
        bytes: &[],
        rows: 0,
        count: 0,
    };

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The columns.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Column<'a>> + use<'a> {
        let (mut from, rows) = (Reader::new(self.bytes), self.rows);
        (0..self.count).map_while(move |_| Column::take(&mut from, rows).ok())
    }
}

/// Counts: rows of each, then their number; without that they go to the message's end.
impl<'a> Part<'a> for Columns<'a> {
    const FORM: Form = Form::Columns;

    #[inline]
    fn take(from: &mut Reader<'a>, counts: &[usize]) -> Result<Columns<'a>, Malformed> {
        let rows = counts.first().copied().unwrap_or(0);
        let wanted = counts.get(1).copied();
        let (start, mut count) = (*from, 0);
        while wanted.map_or(!from.is_empty(), |wanted| count < wanted) {
            Column::take(from, rows)?;
            count += 1;
        }
        let bytes = start.up_to(from);
        Ok(Columns { bytes, rows, count })
    }

    fn put(&self, to: &mut impl Sink) {
        to.put(self.bytes);
    }
}
