//! Columns of a batch as represented in a message ([`contract::message::column`]), and loading a
//! part of one as a column of values.
//!
//! Invariant: an [`Encoded`] has exactly as many rows as its batch, unless it is a list for all
//! rows.

use super::column::Column;
use super::load::{Touched, load, load_cells};
use super::logic;
use super::vector::Meter;
use crate::fail::{self, Failure, malformed};
use crate::space::Space;
use contract::codec::List;
use contract::message::column::{Column as Wire, ColumnRun};
use contract::{Fid, TypeCode};
use values::Error;

/// A column of a batch.
pub enum Encoded<'a> {
    /// FIDs, 8 bytes each.
    List(&'a [u8]),
    /// Runs of FIDs.
    Runs(Vec<Run>),
    /// Booleans known to the database.
    Bools(&'a [u8]),
    /// A list for all rows: FIDs, 8 bytes each.
    Values(&'a [u8]),
    /// Unprotected values, 8 bytes each, and NULL flags.
    Raw(&'a [u8], &'a [u8]),
    /// Cells of the family `rnd_`; an empty one is NULL.
    Cells(Vec<&'a [u8]>),
}

/// FIDs of a column.
pub enum Fids {
    /// One for each row.
    Each(Vec<Fid>),
    /// The same for all rows.
    Same(Fid),
}

/// FIDs that are consecutive or all the same.
pub struct Run {
    first: Fid,
    /// Number of rows of the column up to the end of this run.
    end: usize,
    counts: bool,
}

impl<'a> Encoded<'a> {
    /// Converts a column of this many rows from its message form.
    pub fn new(column: Wire<'a>, rows: usize) -> Result<Encoded<'a>, Error> {
        match column {
            Wire::List(fids) => Ok(Encoded::List(fids.bytes())),
            Wire::Values(fids) => Ok(Encoded::Values(fids.bytes())),
            Wire::Bools(bools) => Ok(Encoded::Bools(bools)),
            Wire::Raw(values, nulls) => Ok(Encoded::Raw(values.bytes(), nulls)),
            Wire::Runs(list) => runs(list, rows).map(Encoded::Runs),
            Wire::Cells(lengths, bytes) => Ok(Encoded::Cells(cells(lengths, bytes))),
        }
    }

    /// The cells; empty for other columns.
    pub fn cells(&self) -> &[&'a [u8]] {
        match self {
            Encoded::Cells(cells) => cells,
            _ => &[],
        }
    }

    /// Loads rows `from..to`, of a type or as plain booleans; a single element if one value
    /// represents all of them.
    pub fn load(
        &self,
        space: &Space,
        (from, to): (usize, usize),
        want: Option<TypeCode>,
        touched: &mut Touched,
        meter: &Meter<'_>,
    ) -> Result<Column, Failure> {
        let Some(want) = want else {
            return match self {
                Encoded::Bools(bytes) => Ok(logic::known(bytes.get(from..to).unwrap_or(&[]))),
                _ => Err(misfit()),
            };
        };
        if let Encoded::Cells(cells) = self {
            let cells = cells.get(from..to).unwrap_or(&[]);
            return load_cells(space, cells.iter().copied(), want, touched, meter);
        }
        let fids = match self.fids((from, to))? {
            Fids::Each(fids) => fids,
            Fids::Same(fid) => {
                if !fid.is_temporary() && fid != Fid::INVALID {
                    touched.add(fid.partition(), to - from - 1);
                }
                vec![fid]
            }
        };
        load(space, &fids, want, touched, meter)
    }

    /// Loads all values of a list; `None` for other columns.
    pub fn load_list(
        &self,
        space: &Space,
        want: Option<TypeCode>,
        meter: &Meter<'_>,
    ) -> Result<Option<Column>, Failure> {
        let (Encoded::Values(bytes), Some(want)) = (self, want) else {
            return Ok(None);
        };
        let fids: Vec<Fid> = words(bytes).collect();
        load(space, &fids, want, &mut Touched::default(), meter).map(Some)
    }

    /// All FIDs of the rows, or of a list; empty if the column contains no FIDs.
    pub fn all_fids(&self, rows: usize) -> Result<Fids, Failure> {
        match self {
            Encoded::Bools(_) | Encoded::Raw(..) | Encoded::Cells(_) => Ok(Fids::Each(Vec::new())),
            Encoded::Values(bytes) => Ok(Fids::Each(words(bytes).collect())),
            Encoded::List(_) | Encoded::Runs(_) => self.fids((0, rows)),
        }
    }

    /// The FIDs of rows `from..to`.
    pub fn fids(&self, (from, to): (usize, usize)) -> Result<Fids, Failure> {
        let mut fids = Vec::new();
        match self {
            Encoded::Bools(_) | Encoded::Raw(..) | Encoded::Values(_) | Encoded::Cells(_) => {
                return Err(misfit());
            }
            Encoded::List(bytes) => {
                fids.extend(words(bytes.get(from * 8..to * 8).unwrap_or(&[])));
            }
            Encoded::Runs(runs) => {
                if let Some(fid) = expand(runs, from, to, &mut fids) {
                    return Ok(Fids::Same(fid));
                }
            }
        }
        Ok(Fids::Each(fids))
    }
}

/// The cells; their lengths and bytes are consistent, as was checked when the message was read.
fn cells<'a>(lengths: List<'a, u32>, bytes: &'a [u8]) -> Vec<&'a [u8]> {
    let mut rest = bytes;
    let cell = |length: u32| {
        let (cell, later) = rest.split_at_checked(length as usize).unwrap_or_default();
        rest = later;
        cell
    };
    lengths.iter().map(cell).collect()
}

fn words(bytes: &[u8]) -> impl Iterator<Item = Fid> {
    let words = bytes.chunks_exact(8).filter_map(<[u8]>::first_chunk);
    words.map(|bytes| Fid(u64::from_le_bytes(*bytes)))
}

fn misfit() -> Failure {
    fail::misused_program("A column is of another form than its input.").into()
}

fn runs(list: List<'_, ColumnRun>, rows: usize) -> Result<Vec<Run>, Error> {
    let mut out = Vec::with_capacity(list.len());
    let mut end = 0usize;
    for run in list {
        let (first, length, stride) = (run.first, run.length as usize, run.stride);
        end = end.saturating_add(length);
        if length == 0 || stride > 1 || end > rows {
            return Err(malformed("A run of a column is not as it should be."));
        }
        // Identifiers stay within their partition; NULL cannot be incremented.
        let room = contract::fid::SLOT_MAX - first.slot();
        if stride == 1 && (first == Fid::INVALID || room < length as u64 - 1) {
            return Err(malformed("A run of a column leaves its partition."));
        }
        out.push(Run {
            first,
            end,
            counts: stride == 1,
        });
    }
    if end != rows {
        return Err(malformed(
            "A column does not have as many rows as the batch.",
        ));
    }
    Ok(out)
}

/// Appends the FIDs of rows `from..to`; if they are all the same because of one run, returns that
/// FID instead.
fn expand(runs: &[Run], from: usize, to: usize, out: &mut Vec<Fid>) -> Option<Fid> {
    let at = runs.partition_point(|run| run.end <= from);
    let mut start = at
        .checked_sub(1)
        .and_then(|n| runs.get(n))
        .map_or(0, |run| run.end);
    out.reserve(to - from);
    for run in runs.get(at..).unwrap_or(&[]) {
        if start >= to {
            break;
        }
        let (low, high) = (from.max(start), to.min(run.end));
        if !run.counts {
            if low == from && high == to {
                return Some(run.first);
            }
            out.resize(out.len() + (high - low), run.first);
        } else {
            let first = run.first.0 + (low - start) as u64;
            out.extend((0..(high - low) as u64).map(|n| Fid(first + n)));
        }
        start = run.end;
    }
    None
}
