//! Rows being sent to the server. The values of a protected column are sent in batches: one
//! envelope contains all values of a batch and is written into the field of the first row of the
//! batch that has a value; the other rows refer to it ([`contract::envelope`]).
//!
//! A value that its type would not accept is sent separately, so that the server reports the error
//! with the correct row and column. Values that are not scalars are also sent separately. Rows are
//! held until the batch is full or the data ends; in the other direction nothing is held.
//!
//! Invariant: protected values get into `ready` only within envelopes.
use contract::envelope::REFERENCE;
use rewrite::{Direction, Format};

use super::{Refused, Shape, Target, csv, text};
use crate::array::with_length;
use crate::{Failure, Protected, Session, Shown};

/// Maximum number of rows of a batch.
const ROWS: u32 = 1024;
/// A batch ends when its values have this many bytes.
const BYTES: usize = 256 * 1024;
/// Longer values are sent separately.
const VALUE_MAX: usize = 64 * 1024;

/// Rows that have not been sent yet.
#[derive(Default)]
pub(crate) struct Sheet {
    /// The rows, without the batches' envelopes.
    pub(crate) rows: Vec<u8>,
    /// Start of the row that is not complete yet.
    row: usize,
    /// The offsets where envelopes are inserted, and their columns; ascending.
    holes: Vec<(usize, usize)>,
    /// The values of the columns.
    columns: Vec<Column>,
    count: u32,
    bytes: usize,
    /// The data that may be sent.
    pub(crate) ready: Vec<u8>,
    /// The line that could not be parsed.
    pub(crate) failed: Option<Vec<u8>>,
    /// The first value that its type does not accept.
    pub(crate) refused: Option<Refused>,
    scratch: Vec<u8>,
}

#[derive(Default)]
struct Column {
    values: Vec<u8>,
    count: u32,
}

impl Column {
    fn add(&mut self, value: &[u8]) {
        put_length(value.len(), &mut self.values);
        self.values.extend_from_slice(value);
        self.count += 1;
    }
}

impl Sheet {
    /// Writes a protected field that is not NULL, given its value in this format. `quoted` says
    /// that the field was quoted.
    pub(crate) fn field(
        &mut self,
        shape: &Shape,
        session: &Session,
        at: usize,
        value: &[u8],
        quoted: bool,
    ) -> Result<(), Failure> {
        let Some(Some(target)) = shape.columns.get(at).copied() else {
            return Err(Failure::protocol("field of no protected column"));
        };
        if shape.direction == Direction::From
            && let Target::Typed(Protected::Scalar(_)) = target
            && self.batched(shape, session, at, value)?
        {
            return Ok(());
        }
        let mut mapped = std::mem::take(&mut self.scratch);
        mapped.clear();
        let made = shape.field(session, target, shape.value_format(), value, &mut mapped);
        let made = made.and_then(|shown| match shown {
            // An array has commas of its own.
            Shown::Value if matches!(target, Target::Typed(Protected::Array(_))) => {
                write_spelled(shape, &mapped, quoted, &mut self.rows)
            }
            Shown::Value => write(shape, &mapped, quoted, &mut self.rows),
            Shown::Null => {
                self.rows.extend_from_slice(&null(shape));
                Ok(())
            }
        });
        self.scratch = mapped;
        made
    }

    /// Adds a value to the batch of its column; returns false if it must be sent separately.
    fn batched(
        &mut self,
        shape: &Shape,
        session: &Session,
        at: usize,
        value: &[u8],
    ) -> Result<bool, Failure> {
        if session.passes(value) && shape.format != Format::Binary {
            return Ok(false);
        }
        if !shape.accepts(session, at, value) {
            self.refused.get_or_insert_with(|| shape.refused(at, value));
            return Ok(false);
        }
        if value.len() > VALUE_MAX {
            return Ok(false);
        }
        if self.columns.len() < shape.columns.len() {
            let columns = shape.columns.len();
            self.columns.resize_with(columns, Column::default);
        }
        let Some(column) = self.columns.get_mut(at) else {
            return Ok(false);
        };
        if column.count == 0 {
            self.holes.push((self.rows.len(), at));
            column.add(value);
        } else {
            // Skip a number whose reference represents NULL or a default.
            loop {
                self.scratch.clear();
                refer(shape, column.count, &mut self.scratch);
                column.add(value);
                if !shape.is_special(&self.scratch) {
                    break;
                }
            }
            write(shape, &self.scratch, false, &mut self.rows)?;
        }
        self.bytes += value.len();
        Ok(true)
    }

    /// A complete row has been written.
    pub(crate) fn end_row(&mut self, shape: &Shape, session: &Session) -> Result<(), Failure> {
        self.row = self.rows.len();
        self.count += 1;
        if self.holes.is_empty() || self.count >= ROWS || self.bytes >= BYTES {
            self.flush(shape, session)?;
        }
        Ok(())
    }

    /// Removes an incomplete row, and makes the rows before it ready.
    pub(crate) fn give_up_row(&mut self, shape: &Shape, session: &Session) -> Result<(), Failure> {
        let start = self.row;
        self.rows.truncate(start);
        while let Some((_, at)) = self.holes.pop_if(|(hole, _)| *hole >= start) {
            if let Some(column) = self.columns.get_mut(at) {
                *column = Column::default();
            }
        }
        self.flush(shape, session)
    }

    /// Makes everything written so far ready.
    pub(crate) fn flush(&mut self, shape: &Shape, session: &Session) -> Result<(), Failure> {
        let mut from = 0;
        let format = shape.value_format();
        for (to, at) in self.holes.drain(..) {
            let (Some(Some(Target::Typed(Protected::Scalar(code)))), Some(column)) =
                (shape.columns.get(at), self.columns.get_mut(at))
            else {
                return Err(Failure::protocol("batch of no protected column"));
            };
            self.ready
                .extend_from_slice(self.rows.get(from..to).unwrap_or_default());
            from = to;
            self.scratch.clear();
            session.seal_batch(
                *code,
                format,
                column.count,
                &column.values,
                &mut self.scratch,
            )?;
            write(shape, &self.scratch, false, &mut self.ready)?;
            column.values.clear();
            column.count = 0;
        }
        self.ready
            .extend_from_slice(self.rows.get(from..).unwrap_or_default());
        self.rows.clear();
        self.row = 0;
        self.count = 0;
        self.bytes = 0;
        Ok(())
    }
}

/// NULL in the format of a row.
fn null(shape: &Shape) -> Vec<u8> {
    match shape.format {
        Format::Binary => (-1_i32).to_be_bytes().to_vec(),
        _ => shape.options.null.as_bytes().to_vec(),
    }
}

/// Writes the content of a field in the given format.
fn write(shape: &Shape, mapped: &[u8], quoted: bool, out: &mut Vec<u8>) -> Result<(), Failure> {
    if shape.direction == Direction::From && shape.spells_plainly() {
        out.extend_from_slice(mapped);
        return Ok(());
    }
    write_spelled(shape, mapped, quoted, out)
}

/// As `write`, for what may contain characters that mean something in the format.
fn write_spelled(
    shape: &Shape,
    mapped: &[u8],
    quoted: bool,
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    match shape.format {
        Format::Text => text::escape(mapped, shape.options.delimiter, out),
        Format::Csv => {
            csv::write(
                shape,
                mapped,
                quoted && shape.direction == Direction::To,
                out,
            );
        }
        Format::Binary => {
            return with_length(out, |out| {
                out.extend_from_slice(mapped);
                Ok(())
            });
        }
    }
    Ok(())
}

/// Appends a reference to a value of the column's batch.
fn refer(shape: &Shape, number: u32, out: &mut Vec<u8>) {
    out.push(REFERENCE);
    if shape.format == Format::Binary {
        out.extend_from_slice(&number.to_le_bytes());
        return;
    }
    let mut digits = [0_u8; 10];
    let mut start = digits.len();
    let mut left = number;
    for (at, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
        start = at;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(start..).unwrap_or_default());
}

fn put_length(mut length: usize, out: &mut Vec<u8>) {
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}
