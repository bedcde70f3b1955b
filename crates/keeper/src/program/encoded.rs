//! Columns of a batch as represented in a message ([`contract::message::column`]), and loading a
//! part of one as a column of values.
//!
//! Invariant: an [`Encoded`] has exactly as many rows as its batch, unless it is a list for all
//! rows.

use super::column::Column;
use super::load::{Named, Touched, load, load_cells};
use super::logic;
use super::vector::Meter;
use crate::fail::{self, Failure, malformed};
use crate::space::Space;
use contract::codec::List;
use contract::fid::{SLOT_BITS, alike};
use contract::message::column::{Column as Wire, ColumnRun};
use contract::{Fid, TypeCode};
use values::Error;

/// A column of a batch.
pub enum Encoded<'a> {
    /// FIDs, 8 bytes each, and whether they are of one partition.
    List(&'a [u8], bool),
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

/// Slots of FIDs of one partition.
pub enum Slots<'a> {
    /// Those of these FIDs.
    Listed(&'a [[u8; 8]]),
    /// So many consecutive ones from this FID on.
    Range(Fid, usize),
}

impl Slots<'_> {
    /// The slots.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        let (listed, range) = match self {
            Slots::Listed(fids) => (*fids, 0..0),
            Slots::Range(first, length) => (&[][..], first.slot()..first.slot() + *length as u64),
        };
        listed.iter().map(|bytes| word(bytes).slot()).chain(range)
    }
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
            Wire::List(fids) => Ok(list(fids.bytes())),
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
        let one = match self {
            Encoded::List(_, one) => *one,
            Encoded::Runs(runs) => one_partition(runs),
            _ => false,
        };
        match self.fids((from, to))? {
            Fids::Each(fids) if one => load(space, Named::known(&fids, true), want, touched, meter),
            Fids::Each(fids) => load(space, Named::new(&fids), want, touched, meter),
            Fids::Same(fid) => {
                if !fid.is_temporary() && fid != Fid::INVALID {
                    touched.add(fid.partition(), to - from - 1);
                }
                load(space, Named::new(&[fid]), want, touched, meter)
            }
        }
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
        let fids = Named::new(&fids);
        load(space, fids, want, &mut Touched::default(), meter).map(Some)
    }

    /// Passes the FIDs of all rows, or of a list, to `use_it`: the partition and the slots of each
    /// run. Identifiers that are known to be of one partition are not looked at one by one.
    pub fn each_run<E>(
        &self,
        mut use_it: impl FnMut(u32, Slots<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Encoded::Bools(_) | Encoded::Raw(..) | Encoded::Cells(_) => Ok(()),
            Encoded::List(bytes, _) | Encoded::Values(bytes) => {
                let (mut rest, _) = bytes.as_chunks::<8>();
                while let Some(first) = rest.first() {
                    let length = match self {
                        Encoded::List(_, true) => rest.len(),
                        _ => alike(rest, SLOT_BITS, word),
                    };
                    let (run, later) = rest.split_at(length);
                    rest = later;
                    use_it(word(first).partition(), Slots::Listed(run))?;
                }
                Ok(())
            }
            Encoded::Runs(runs) => {
                let mut start = 0;
                for run in runs {
                    let length = match run.counts {
                        true => run.end - start,
                        false => 1,
                    };
                    start = run.end;
                    use_it(run.first.partition(), Slots::Range(run.first, length))?;
                }
                Ok(())
            }
        }
    }

    /// The FIDs of rows `from..to`.
    pub fn fids(&self, (from, to): (usize, usize)) -> Result<Fids, Failure> {
        let mut fids = Vec::new();
        match self {
            Encoded::Bools(_) | Encoded::Raw(..) | Encoded::Values(_) | Encoded::Cells(_) => {
                return Err(misfit());
            }
            Encoded::List(bytes, _) => {
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

fn word(bytes: &[u8; 8]) -> Fid {
    Fid(u64::from_le_bytes(*bytes))
}

/// The FIDs, of 8 bytes each.
pub(super) fn words(bytes: &[u8]) -> impl Iterator<Item = Fid> {
    let (words, _) = bytes.as_chunks();
    words.iter().map(word)
}

fn list(bytes: &[u8]) -> Encoded<'_> {
    let (fids, _) = bytes.as_chunks::<8>();
    Encoded::List(bytes, alike(fids, SLOT_BITS, word) == fids.len())
}

fn one_partition(runs: &[Run]) -> bool {
    let partition = |run: &Run| run.first.partition();
    let first = runs.first().map(partition);
    runs.iter().all(|run| Some(partition(run)) == first)
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
