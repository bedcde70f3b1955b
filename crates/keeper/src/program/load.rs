//! Loads columns from FIDs: each run of FIDs of one partition is read under one lock, as arrays if
//! the layout permits.

use super::column::{Column, Data};
use super::vector::Meter;
use crate::cells;
use crate::fail::{self, Failure};
use crate::space::Space;
use crate::witness;
use contract::fid::{SLOT_BITS, alike};
use contract::{Fid, TypeCode};
use std::collections::BTreeMap;
use store::{Entry, Layout, Reader, Scalar, Window};
use zeroize::Zeroizing;

/// Counts rows by the columns they come from, to account for declassification.
#[derive(Default)]
pub struct Touched(Vec<(u32, u64)>);

impl Touched {
    /// Counts rows; rows that belong to no column are ignored.
    pub fn add(&mut self, partition: u32, rows: usize) {
        if let Some((_, count)) = self.0.iter_mut().find(|(p, _)| *p == partition) {
            *count += rows as u64;
        } else if self.0.len() < TOUCHED_MAX {
            // A statement touches few columns; a longer list is malicious.
            self.0.push((partition, rows as u64));
        }
    }

    /// Partitions and rows.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> {
        self.0.iter().copied()
    }
}

const TOUCHED_MAX: usize = 4096;

/// FIDs of a column, which are often all of one partition: found out once for all who ask.
#[derive(Clone, Copy)]
pub struct Named<'a> {
    fids: &'a [Fid],
    one: bool,
}

impl<'a> Named<'a> {
    /// Examines FIDs.
    pub fn new(fids: &'a [Fid]) -> Named<'a> {
        let one = run(fids) == fids.len();
        Named { fids, one }
    }

    /// FIDs that are known to be of one partition, or not to be.
    pub fn known(fids: &'a [Fid], one: bool) -> Named<'a> {
        debug_assert!(!one || run(fids) == fids.len());
        Named { fids, one }
    }

    /// Some of them.
    pub fn part(&self, from: usize, to: usize) -> Named<'a> {
        Named {
            fids: self.fids.get(from..to).unwrap_or(&[]),
            one: self.one,
        }
    }

    /// Takes those of one partition from the front.
    #[inline]
    pub fn take_run(&mut self) -> Option<(u32, &'a [Fid])> {
        let partition = self.fids.first()?.partition();
        let length = match self.one {
            true => self.fids.len(),
            false => run(self.fids),
        };
        let (taken, later) = self.fids.split_at(length);
        self.fids = later;
        Some((partition, taken))
    }
}

/// Number of FIDs of one partition at the front.
#[inline]
pub fn run(fids: &[Fid]) -> usize {
    alike(fids, SLOT_BITS, |fid| *fid)
}

/// Loads the values of FIDs, all of one type, as a column.
pub fn load(
    space: &Space,
    fids: Named<'_>,
    want: TypeCode,
    touched: &mut Touched,
    meter: &Meter<'_>,
) -> Result<Column, Failure> {
    let mut column = Column::of(want, Data::for_type(want, fids.fids.len()));
    let mut rest = fids;
    while let Some((partition, run)) = rest.take_run() {
        if partition == 0 {
            nulls(&mut column, run)?;
        } else if Fid::new(partition, 0).is_temporary() {
            space.with_arena(partition, |arena| {
                temporaries(&mut column, &arena.read(), run, want, meter)
            })??;
        } else {
            touched.add(partition, run.len());
            let partition = space.store.get(partition);
            let reader = partition.ok_or_else(store::unresolved)?.read();
            permanents(&mut column, &reader, run, want, meter)?;
        }
    }
    if witness::on() {
        column.source = witness::source(space, fids.fids);
    }
    Ok(column)
}

/// Loads the values in cells, all of one type, as a column. A cell that cannot be opened makes its
/// row fail.
pub fn load_cells<'a>(
    space: &Space,
    cells: impl ExactSizeIterator<Item = &'a [u8]>,
    want: TypeCode,
    touched: &mut Touched,
    meter: &Meter<'_>,
) -> Result<Column, Failure> {
    let mut column = Column::of(want, Data::for_type(want, cells.len()));
    let mut opener = space.cells.opener();
    let mut plain = Zeroizing::new(Vec::new());
    for cell in cells {
        if cell.is_empty() {
            column.push_null();
        } else if let Some(fid) = cells::loose(cell) {
            let one = load(space, Named::new(&[fid]), want, touched, meter)?;
            match (one.failure(0), one.scalar(0)) {
                (Some(failure), _) => column.push_failure(failure.clone()),
                (None, Some(scalar)) if !one.is_null(0) => column.push(&scalar),
                _ => column.push_null(),
            }
        } else {
            match opener.opened(cell, want, &mut plain) {
                Ok(opened) => {
                    meter.take(opened.value.heap_bytes())?;
                    column.push(&Scalar::of(&opened.value));
                }
                Err(error) => column.push_failure(error.into()),
            }
        }
    }
    Ok(column)
}

fn nulls(column: &mut Column, run: &[Fid]) -> Result<(), Failure> {
    for fid in run {
        if *fid != Fid::INVALID {
            return Err(store::unresolved().into());
        }
        column.push_null();
    }
    Ok(())
}

fn temporaries(
    column: &mut Column,
    window: &Window,
    run: &[Fid],
    want: TypeCode,
    meter: &Meter<'_>,
) -> Result<(), Failure> {
    for fid in run {
        match window.get(fid.slot()) {
            Ok(Entry::Value(value)) if value.type_code() == want => {
                meter.take(value.heap_bytes())?;
                column.push(&Scalar::of(value));
            }
            Ok(Entry::Value(value)) => {
                return Err(fail::wrong_type(value.type_code(), want).into());
            }
            Ok(Entry::Null) => column.push_null(),
            Ok(Entry::Poison(error)) => column.push_failure(Failure::inherited(error)),
            Ok(Entry::State(_)) => return Err(fail::not_a_value(want).into()),
            Ok(Entry::Empty) => column.push_failure(store::no_such_value().into()),
            Err(error) => column.push_failure(error.into()),
        }
    }
    Ok(())
}

fn permanents(
    column: &mut Column,
    reader: &Reader<'_>,
    run: &[Fid],
    want: TypeCode,
    meter: &Meter<'_>,
) -> Result<(), Failure> {
    let layout = reader.layout().ok_or_else(store::unresolved)?;
    let stored = layout.stored_type();
    if stored != want {
        return Err(fail::wrong_type(stored, want).into());
    }
    let start = column.len();
    let mut missing = Vec::new();
    if start == 0
        && let Layout::Scaled(scale) = layout
    {
        column.data = Data::Scaled(Vec::with_capacity(run.len()), scale);
    }
    let whole = match &mut column.data {
        Data::Int(out) => reader.ints(run, out, &mut missing),
        Data::Scaled(out, scale) if layout == Layout::Scaled(*scale) => {
            reader.ints(run, out, &mut missing)
        }
        Data::Float(out) => reader.floats(run, out, &mut missing),
        Data::Bytes(bytes, ends) => {
            strings(reader, run, bytes, ends, &mut missing, meter)?;
            true
        }
        _ => false,
    };
    if !whole {
        for fid in run {
            match reader.get(fid.slot()) {
                Some((_, scalar)) => {
                    if let Scalar::Bytes(bytes) = scalar {
                        meter.take(bytes.len())?;
                    }
                    column.push(&scalar);
                }
                None => column.push_failure(reader.why(fid.slot()).into()),
            }
        }
        return Ok(());
    }
    if !missing.is_empty() || !column.nulls.is_empty() {
        column.nulls.resize(column.data.len(), false);
    }
    for index in missing {
        let row = start + index as usize;
        if let Some(null) = column.nulls.get_mut(row) {
            *null = true;
        }
        let fid = run.get(index as usize);
        let why = fid.map_or_else(store::unresolved, |fid| reader.why(fid.slot()));
        let failure = why.into();
        column.failures.insert(row as u32, failure);
    }
    Ok(())
}

fn strings(
    reader: &Reader<'_>,
    run: &[Fid],
    bytes: &mut Vec<u8>,
    ends: &mut Vec<usize>,
    missing: &mut Vec<u32>,
    meter: &Meter<'_>,
) -> Result<(), Failure> {
    let before = ends.len();
    ends.reserve(run.len());
    reader.strings(run, |string| {
        match string {
            Some(string) => {
                meter.take(string.len())?;
                bytes.extend_from_slice(string);
            }
            None => missing.push((ends.len() - before) as u32),
        }
        ends.push(bytes.len());
        Ok(())
    })
}

/// Combines failures; those of the first operand take precedence.
pub fn join(columns: &[&Column], rows: usize) -> BTreeMap<u32, Failure> {
    let mut all: BTreeMap<u32, Failure> = BTreeMap::new();
    for column in columns.iter().rev().filter(|c| !c.failures.is_empty()) {
        if column.is_constant() {
            for row in 0..rows as u32 {
                if let Some(failure) = column.failure(0) {
                    all.insert(row, failure.clone());
                }
            }
        } else {
            all.extend(column.failures.iter().map(|(row, f)| (*row, f.clone())));
        }
    }
    all
}
