//! `LedgerTable`: which table the rows of ledger tables are rows of, and what its columns are
//! called. The database says it once for a channel; rows have the place's number.
//!
//! What it says is its word, as all of a row is that is not protected; it is in the row's hash.
//!
//! Invariants: a channel has at most [`PLACES`] descriptions, each of bounded size; a row is never
//! read with one that another was sent for, whether that was taken or refused.

use super::Connection;
use crate::fail::{self, Failure};
use contract::message::ledger::{COLUMNS_MAX, PLACES};
use contract::message::table::LedgerColumn;
use contract::{TypeCode, body};
use ledger::row::Heading;
use values::Error;

/// Names in a description may have so many bytes altogether.
const BYTES_MAX: usize = 512 * 1024;

/// A column, as the database calls it.
pub(super) struct Column {
    /// Type of its values; none: not protected.
    pub t: Option<TypeCode>,
    /// Its name and its type's, as they are hashed.
    pub heading: Heading,
}

/// A table, as the database calls it.
pub(super) struct Described {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub table: String,
    /// Both, with a point between them.
    pub names: String,
    columns: Vec<Column>,
}

/// The descriptions of a channel, by place.
#[derive(Default)]
pub(super) struct Descriptions(Vec<Option<Described>>);

impl Column {
    fn of(column: &LedgerColumn<'_>) -> Column {
        Column {
            t: column.t,
            heading: Heading::new(column.name.to_bytes(), column.type_name.to_bytes()),
        }
    }
}

impl Described {
    fn of(body: &body::LedgerTable<'_>) -> Result<Described, Error> {
        let mut bytes = body.schema.len() + body.table.len();
        let mut columns = 0;
        for column in body.columns.iter() {
            columns += 1;
            bytes += column.name.count_bytes() + column.type_name.count_bytes();
        }
        if columns > COLUMNS_MAX || bytes > BYTES_MAX {
            return Err(fail::malformed("A ledger table has too many columns."));
        }
        Ok(Described {
            schema: body.schema.to_owned(),
            table: body.table.to_owned(),
            names: format!("{}.{}", body.schema, body.table),
            columns: body.columns.iter().map(|c| Column::of(&c)).collect(),
        })
    }

    /// The column in a position.
    pub fn column(&self, position: u16) -> Result<&Column, Error> {
        let column = self.columns.get(usize::from(position));
        column.ok_or_else(|| fail::malformed("A row has a column that its table has not."))
    }
}

fn place(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl Descriptions {
    fn put(&mut self, body: &body::LedgerTable<'_>) -> Result<(), Error> {
        if body.place >= PLACES {
            return Err(fail::malformed("There is no such place for a table."));
        }
        let at = place(body.place);
        if self.0.len() <= at {
            self.0.resize_with(at + 1, || None);
        }
        if let Some(place) = self.0.get_mut(at) {
            *place = None;
            *place = Some(Described::of(body)?);
        }
        Ok(())
    }

    /// What a row is a row of.
    pub fn of(&self, body: &body::LedgerRow<'_>) -> Result<&Described, Error> {
        let described = self.0.get(place(body.place)).and_then(Option::as_ref);
        described.ok_or_else(|| fail::malformed("A row is of a table that was not described."))
    }
}

impl Connection {
    pub(super) fn ledger_table(&mut self, body: &body::LedgerTable<'_>) -> Result<(), Failure> {
        Ok(self.described.put(body)?)
    }

    /// Whether a row, also one whose columns are not looked at, has a table and its columns only.
    pub(super) fn check_described(&self, body: &body::LedgerRow<'_>) -> Result<(), Failure> {
        let described = self.described.of(body)?;
        for cell in body.cells.iter() {
            described.column(cell.column)?;
        }
        Ok(())
    }
}
