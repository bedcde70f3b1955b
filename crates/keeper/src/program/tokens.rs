//! Tokens of rows, by which PostgreSQL joins and groups what it cannot read.
//!
//! A token is a keyed hash of the form that equal rows share, so nothing is kept from one batch to
//! the next, however many rows there are.
//!
//! Invariant: rows that are equal in PostgreSQL have the same token; other rows have different
//! ones, except with negligible probability ([`values::token`]); zeros stand for NULL only.

use super::column::Column;
use super::encoded::Encoded;
use super::eval::{PART, Tools};
use super::load::{Touched, join};
use super::rowform::RowForm;
use super::vector::Meter;
use crate::fail::Failure;
use contract::message::token::BYTES;
use contract::{OpResult, TypeCode};

/// The rows of a batch that get tokens.
pub struct Tokens<'a> {
    /// Types of the columns.
    pub types: &'a [TypeCode],
    /// The columns.
    pub columns: &'a [Encoded<'a>],
    /// Number of rows.
    pub rows: usize,
    /// Purpose of the tokens; those with different numbers cannot be compared.
    pub number: u64,
    /// Whether NULL equals NULL.
    pub nulls_equal: bool,
    /// The key of tokens.
    pub key: &'a [u8; 16],
}

impl Tokens<'_> {
    /// Appends the tokens of all rows before the first that failed. Returns their number, and why
    /// the next one failed.
    pub fn declassify(
        &self,
        tools: Tools<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(usize, Option<Failure>), Failure> {
        let mut touched = Touched::default();
        let mut failed = None;
        let mut done = 0;
        let mut form = RowForm::default();
        while done < self.rows && failed.is_none() {
            let part = (done, self.rows.min(done + PART));
            let meter = Meter::new(&tools.space.budget);
            let mut columns = Vec::with_capacity(self.columns.len());
            for (column, t) in self.columns.iter().zip(self.types) {
                columns.push(column.load(tools.space, part, Some(*t), &mut touched, &meter)?);
            }
            let columns: Vec<&Column> = columns.iter().collect();
            let failures = join(&columns, part.1 - part.0);
            let first = failures.first_key_value();
            let rows = first.map_or(part.1 - part.0, |(row, _)| *row as usize);
            for row in 0..rows {
                out.extend_from_slice(&self.token(&mut form, &columns, row));
            }
            done += rows;
            failed = first.map(|(_, failure)| failure.clone());
        }
        for (partition, rows) in touched.iter() {
            if let Some(partition) = tools.space.store.get(partition) {
                partition.reveal(OpResult::Hash, rows.min(done as u64));
            }
        }
        Ok((done, failed))
    }

    #[inline]
    fn token(&self, form: &mut RowForm, columns: &[&Column], row: usize) -> [u8; BYTES] {
        let (form, some_null) = form.of(columns, row);
        if some_null && !self.nulls_equal {
            return [0; BYTES];
        }
        (values::token(form, self.number, self.key) | 1).to_le_bytes()
    }
}
