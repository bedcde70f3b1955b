//! Cells of the family `rnd_`: `CellOpen`, `CellSeal`, `CellCompare`, `CellHash`,
//! `CellToken`, `CellKey`, `CellReseal`.
//!
//! A value from a cell has the label of the column that the cell was sealed for, wherever the cell
//! was found; so a cell that was moved is still refused to clients that may not use its column.
//!
//! Invariants: without a client no cell is opened except to compare two cells of a column on which
//! a client has an index; a value is sealed for a column only if it might be stored in it.

use super::Connection;
use super::columns::column_name;
use crate::cells::{self, Opened};
use crate::fail::{self, Failure};
use crate::program::vector;
use crate::provenance::{self, Origin, TAKEN, column_id};
use crate::rotation::not_the_owner;
use crate::told::Told;
use contract::cell::{FOR_INDEX, WITH_TOKEN};
use contract::codec::Part;
use contract::message::NULL_RESULT;
use contract::message::table::SealedCell;
use contract::{TypeCode, answer, body};
use grant::family;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use store::{ColumnId, Entry, Label};
use values::{Error, Value};

/// Used instead of a column for constants of definitions.
const CONSTANTS: ColumnId = [0xff; contract::cell::COLUMN_BYTES];

fn no_column() -> Error {
    fail::malformed("The message names no column.")
}

fn not_turning() -> Error {
    Error::new(
        b"55000",
        "confide: the key of the column is not being changed",
    )
    .hint("Use \"confide rotate-column\".")
}

/// A value to be compared or hashed.
struct Operand {
    /// `None` for NULL.
    value: Option<Value>,
    label: Label,
    /// The column of its cell.
    column: Option<ColumnId>,
}

impl Connection {
    /// Opens a sealed cell.
    fn open_cell(&mut self, cell: &[u8], t: TypeCode) -> Result<Opened, Error> {
        let opened = self.keeper.cells.opened(cell, t, &mut self.plain);
        self.wipe();
        self.session.counters.opened.fetch_add(1, Relaxed);
        opened
    }

    /// Returns the label of values in cells of a column.
    fn label_of_cells(&self, column: ColumnId) -> Result<Label, Error> {
        if !self.is_bound() {
            return Ok(self.label_if_bound(provenance::UNKNOWN));
        }
        if column == CONSTANTS {
            return Ok(provenance::CLIENT);
        }
        self.write_provenance().number(Origin {
            others: 0,
            columns: vec![column],
        })
    }

    /// Returns the label of the values in the cells of a batch, sealed or loose. An invalid cell
    /// fails when it is opened.
    pub(super) fn label_of_each<'a>(
        &self,
        cells: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Label, Failure> {
        let mut label = provenance::EMPTY;
        let mut latest = None;
        for cell in cells.filter(|cell| !cell.is_empty()) {
            if let Some(fid) = cells::loose(cell) {
                label = self.union(label, self.operands(&[fid])?.label)?;
            } else if let Some(column) = self.keeper.cells.column_of(cell)
                && latest != Some(column)
            {
                latest = Some(column);
                label = self.union(label, self.label_of_cells(column)?)?;
            }
        }
        Ok(label)
    }

    /// Counts the cells of a batch.
    pub(super) fn count_cells(&self, cells: usize) {
        let counters = &self.session.counters;
        counters.opened.fetch_add(cells as u64, Relaxed);
    }

    pub(super) fn cell_open(&mut self, body: body::CellOpen<'_>) -> Result<(), Failure> {
        let opened = self.need_client().and_then(|()| {
            let opened = self.open_cell(body.cell, body.t)?;
            Ok((self.label_of_cells(opened.column)?, opened.value))
        });
        let stored =
            opened.and_then(|(label, value)| self.space.set(body.fid, Entry::Value(value), label));
        stored.map_err(|error| {
            let failure = Failure::from(error);
            self.space.poison(body.fid, 1, &failure);
            failure
        })
    }

    pub(super) fn cell_seal(&mut self, body: body::CellSeal<'_>) -> Result<(), Failure> {
        self.need_client()?;
        let column = column_name(body.name)?;
        let id = column.as_ref().map_or(CONSTANTS, column_id);
        if self.is_bound() {
            let label = self.operands(&[body.fid])?.label;
            if self.origin(label).others & TAKEN != 0 {
                return Err(fail::belongs_elsewhere().into());
            }
            if let Some(column) = &column {
                self.keeper.name_cells(&id, column);
            }
            self.authorise_write_to(label, (id, column.is_none()))?;
        }
        if let Some(value) = self.space.value(body.fid, Some(body.t.stored()))? {
            let token = body.flags & WITH_TOKEN != 0;
            let cells = &self.keeper.cells;
            cells.seal(id, &value, token, &mut self.reply)?;
            self.session.counters.sealed.fetch_add(1, Relaxed);
        }
        Ok(())
    }

    fn operand(&mut self, cell: &[u8], t: TypeCode) -> Result<Operand, Failure> {
        let Some(fid) = cells::loose(cell) else {
            let opened = self.open_cell(cell, t)?;
            return Ok(Operand {
                value: Some(opened.value),
                label: self.label_of_cells(opened.column)?,
                column: Some(opened.column),
            });
        };
        Ok(Operand {
            value: self.space.value(fid, Some(t.stored()))?,
            label: self.operands(&[fid])?.label,
            column: None,
        })
    }

    /// Like [`Connection::authorise_order`], for cells.
    fn authorise_cells(&self, a: &Operand, b: &Operand) -> Result<(), Failure> {
        let one = a.column.is_some() && a.column == b.column;
        if self.client.is_none() {
            let indexed = a.column.filter(|_| one);
            let indexed = indexed.is_some_and(|c| self.keeper.cells.is_indexed(&c));
            let may = indexed || (one && !self.keeper.config.index_order_only);
            return match may {
                true => Ok(()),
                false => Err(fail::no_client_to_compare().into()),
            };
        }
        match one {
            true => self.may_view(a.label),
            false => self.authorise(self.union(a.label, b.label)?, family::COMPARE),
        }
    }

    pub(super) fn cell_compare(&mut self, body: body::CellCompare<'_>) -> Result<(), Failure> {
        let a = self.operand(body.first, body.a)?;
        let b = self.operand(body.second, body.b)?;
        self.authorise_cells(&a, &b)?;
        let order = match (&a.value, &b.value) {
            (Some(x), Some(y)) => values::compare(x, y, &self.env)? as i32,
            _ => i32::from(NULL_RESULT),
        };
        if body.flags & FOR_INDEX != 0
            && self.client.is_some()
            && let (Some(column), _) | (None, Some(column)) = (a.column, b.column)
        {
            self.keeper.cells.set_indexed(column);
        }
        self.session.counters.declassified.fetch_add(1, Relaxed);
        self.told(self.union(a.label, b.label)?, Told::Orders, 1)?;
        self.answer(&answer::CellCompare { order });
        Ok(())
    }

    pub(super) fn cell_hash(&mut self, body: body::CellHash<'_>) -> Result<(), Failure> {
        self.need_client()?;
        let operand = self.operand(body.cell, body.t)?;
        self.authorise(operand.label, family::COMPARE)?;
        let key = &self.keeper.keys.hash;
        let hash = operand.value.map_or(0, |value| vector::hash(&value, key));
        self.session.counters.declassified.fetch_add(1, Relaxed);
        self.told(operand.label, Told::Tokens, 1)?;
        self.answer(&answer::CellHash { hash });
        Ok(())
    }

    /// Anybody can see the generation in cells.
    pub(super) fn cell_key(&mut self, body: body::CellKey<'_>) -> Result<(), Failure> {
        let column = column_name(body.name)?.ok_or_else(no_column)?;
        let id = column_id(&column);
        let generation = self.keeper.cells.generation(&id);
        let changing = generation.turning && generation.current > 0;
        self.answer(&answer::CellKey {
            generation: generation.current,
            turning: u32::from(changing),
            column: &id,
        });
        Ok(())
    }

    /// Whose key was given is no secret: the columns are in everybody's catalog, and a cast tells.
    pub(super) fn soft_state(&mut self, body: body::SoftState) -> Result<(), Failure> {
        let keeper = &self.keeper;
        let probe = keeper.probe.latest();
        let held = keeper.cells.has_transferred((body.t, body.shape, body.key));
        self.answer(&answer::SoftState {
            held: u32::from(held),
            open: probe.open,
            probe: probe.last,
            usual: probe.usual,
            probes: probe.count,
            faults: keeper.store.paging().faults,
        });
        Ok(())
    }

    /// Seals cells of a column anew. One that cannot be opened, or is another column's, is left out.
    pub(super) fn cell_reseal(&mut self, body: body::CellReseal<'_>) -> Result<(), Failure> {
        self.need_client()?;
        let column = column_name(body.name)?.ok_or_else(no_column)?;
        let id = column_id(&column);
        let keeper = Arc::clone(&self.keeper);
        let name = self.client.as_ref().map_or("", |client| &client.name);
        if !keeper.viewers.may_rotate(&self.ruled(&id), name) {
            return Err(not_the_owner().into());
        }
        let generation = keeper.cells.generation(&id);
        if !generation.turning || generation.current == 0 {
            return Err(not_turning().into());
        }
        self.keeper.name_cells(&id, &column);
        let token = body.flags & WITH_TOKEN != 0;
        let mut new = Vec::new();
        for old in body.cells.iter() {
            new.clear();
            if let Ok(opened) = self.open_cell(old.cell, body.t)
                && (opened.column == id || keeper.standing.stands_for(&id, &opened.column))
            {
                keeper.cells.seal(id, &opened.value, token, &mut new)?;
                self.session.counters.sealed.fetch_add(1, Relaxed);
            }
            let sealed = SealedCell {
                length: new.len() as u32,
                cell: &new,
            };
            sealed.put(&mut self.reply);
        }
        Ok(())
    }

    /// A token says no more than a hash of the same value, but to everybody who reads cells with
    /// tokens: so it takes a client, and a grant to compare.
    pub(super) fn cell_token(&mut self, body: body::CellToken<'_>) -> Result<(), Failure> {
        self.need_client()?;
        let operand = self.operand(body.cell, body.t)?;
        self.authorise(operand.label, family::COMPARE)?;
        self.session.counters.declassified.fetch_add(1, Relaxed);
        self.told(operand.label, Told::Tokens, 1)?;
        if let Some(value) = &operand.value {
            let token = self.keeper.cells.token(value);
            self.reply.extend_from_slice(&token);
        }
        Ok(())
    }
}
