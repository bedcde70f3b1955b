//! What is known of the session's cursors: which columns of their rows may be protected, so that
//! FETCH shows no protected value in a column that was declared plain.
//!
//! Cursors that a function has opened are not known, and their rows are opened as they come. So
//! are all cursors after an error.
//!
//! Invariant: a cursor that is known exists, or its name is unused: a name is forgotten when its
//! cursor may have been closed.

use super::queue::Rows;
use super::statement::Statement;
use std::collections::HashMap;

/// A cursor that the client has declared.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    /// For each column whether it may be protected; `None` if unknown.
    pub(super) results: Option<Vec<bool>>,
    /// It outlives its transaction.
    pub(super) hold: bool,
}

/// The session's cursors by name.
#[derive(Default)]
pub(super) struct Cursors {
    known: HashMap<String, Cursor>,
}

impl Cursors {
    /// A cursor has been declared.
    pub(super) fn insert(&mut self, name: String, cursor: Cursor) {
        self.known.insert(name, cursor);
    }

    /// A cursor has been closed.
    pub(super) fn remove(&mut self, name: &str) {
        self.known.remove(name);
    }

    /// All may have been closed.
    pub(super) fn clear(&mut self) {
        self.known.clear();
    }

    /// A transaction has ended.
    pub(super) fn end(&mut self, committed: bool) {
        self.known.retain(|_, cursor| committed && cursor.hold);
    }

    /// Which columns of the statement's rows may be protected, if known.
    pub(super) fn expected<'a>(&'a self, statement: &'a Statement) -> Option<&'a [bool]> {
        match statement.cursor() {
            Some(name) => self.results(name),
            None => statement.results(),
        }
    }

    /// The same for a statement of a Query.
    pub(super) fn of_rows<'a>(&'a self, rows: &'a Rows) -> Option<&'a [bool]> {
        match rows {
            Rows::Cursor(name) => self.results(name),
            Rows::Analysed(results) => results.as_deref(),
        }
    }

    fn results(&self, name: &str) -> Option<&[bool]> {
        self.known.get(name)?.results.as_deref()
    }
}
