//! Copies rows from the old table to the new one, and reads each of them back.
//!
//! Invariant: after `all` and one run of `changes` the new table has the rows of the old one as of
//! that run's snapshot; each further run brings it to its own snapshot. If a row that is read back
//! differs, the conversion fails.

use super::Names;
use super::session::Session;
use super::table::Table;
use std::collections::BTreeSet;

/// Number of keys in a statement.
const KEYS: usize = 500;

/// See the module.
pub struct Copy<'a> {
    table: &'a Table,
    names: &'a Names,
    batch: u32,
    key: String,
    rows: usize,
}

impl<'a> Copy<'a> {
    /// Starts with nothing copied.
    pub fn new(table: &'a Table, names: &'a Names, batch: u32) -> Copy<'a> {
        Copy {
            table,
            names,
            batch,
            key: table.key.join(", "),
            rows: 0,
        }
    }

    /// The literals of a key, as a row constructor.
    fn literals(&self) -> String {
        let each = self.table.key.iter();
        let each = each.map(|column| format!("quote_literal({column})"));
        format!("concat_ws(', ', {})", each.collect::<Vec<_>>().join(", "))
    }

    /// Copies all rows in batches, in key order.
    pub fn all(&mut self, session: &mut Session) -> Result<(), String> {
        let (key, name) = (self.key.clone(), &self.table.name);
        let mut low = String::new();
        loop {
            let above = match low.is_empty() {
                true => String::new(),
                false => format!("WHERE ({key}) > ({low})"),
            };
            session.ask("BEGIN ISOLATION LEVEL REPEATABLE READ")?;
            let last = session.ask(&format!(
                "SELECT {} FROM {name} {above} ORDER BY {key} OFFSET {} LIMIT 1",
                self.literals(),
                self.batch - 1
            ))?;
            let last = last.into_iter().next();
            let range = match (&last, above.is_empty()) {
                (None, _) => above,
                (Some(last), true) => format!("WHERE ({key}) <= ({last})"),
                (Some(last), false) => format!("{above} AND ({key}) <= ({last})"),
            };
            self.rows += self.copied(session, &range)?;
            session.ask("COMMIT")?;
            eprintln!("{} rows of about {}", self.rows, self.table.estimate);
            match last {
                Some(last) => low = last,
                None => return Ok(()),
            }
        }
    }

    /// Copies the rows that satisfy a condition; returns their number.
    fn copied(&self, session: &mut Session, range: &str) -> Result<usize, String> {
        let (columns, key) = (&self.table.columns, &self.key);
        let of = |table: &str| {
            format!("COPY (SELECT {columns} FROM {table} {range} ORDER BY {key}) TO STDOUT")
        };
        let rows = session.ask(&of(&self.table.name))?;
        if rows.is_empty() {
            return Ok(0);
        }
        session.copy(&format!("{} ({columns})", self.names.new), &rows)?;
        // The error message has no values.
        match session.ask(&of(&self.names.new))? == rows {
            true => Ok(rows.len()),
            false => Err("rows of the new table are not as they were sent".to_owned()),
        }
    }

    /// Copies changed rows again until there are few; those that change during the last run are
    /// left for `rest`.
    pub fn changes(&mut self, session: &mut Session) -> Result<(), String> {
        loop {
            session.ask("BEGIN ISOLATION LEVEL REPEATABLE READ")?;
            let count = self.rest(session)?;
            session.ask("COMMIT")?;
            if count < KEYS {
                return Ok(());
            }
        }
    }

    /// Must run in a transaction that sees one state of the old table; returns the number of
    /// changed keys.
    pub fn rest(&mut self, session: &mut Session) -> Result<usize, String> {
        let literals = self.literals();
        let log = &self.names.log;
        let keys = session.ask(&format!("DELETE FROM {log} RETURNING {literals}"))?;
        let keys: BTreeSet<String> = keys.into_iter().collect();
        let keys: Vec<String> = keys.into_iter().map(|key| format!("({key})")).collect();
        let of = |part: &[String]| format!("WHERE ({}) IN ({})", self.key, part.join(", "));
        // All of them are deleted before any is inserted: unique values may have moved between
        // rows.
        for part in keys.chunks(KEYS) {
            session.ask(&format!("DELETE FROM {} {}", self.names.new, of(part)))?;
        }
        for part in keys.chunks(KEYS) {
            self.copied(session, &of(part))?;
        }
        Ok(keys.len())
    }
}
