//! What is known of the session's cursors: which columns of their rows may be protected, so that
//! FETCH shows no protected value where the client reads something plain.
//!
//! A cursor that the client has declared has the columns of its query. The name of any other
//! may be that of a cursor that a routine has opened: its rows are shown if they are as those of a
//! query in the bodies of the routines that the transaction has called (`rewrite`), or as those of
//! a cursor of that name that may still be open.
//!
//! Invariant: a cursor that is certain exists, or its name is unused: others are not certain after
//! what may have closed it.

use super::queue::Rows;
use super::statement::Statement;
use client::Protected;
use client::description::Column;
use rewrite::Late;
use std::collections::HashMap;

/// A cursor that the client has declared.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    /// For each column whether it may be protected; `None` if unknown.
    pub(super) results: Option<Vec<bool>>,
    /// It outlives its transaction.
    pub(super) hold: bool,
    /// [`rewrite::Statement::late`] of its query.
    pub(super) late: Late,
}

/// The session's cursors by name.
#[derive(Default)]
pub(super) struct Cursors {
    declared: HashMap<String, (Cursor, bool)>,
    /// Of routines, in this transaction.
    opened: Vec<Vec<bool>>,
}

impl Cursors {
    /// A cursor has been declared.
    pub(super) fn insert(&mut self, name: String, cursor: Cursor) {
        self.declared.insert(name, (cursor, true));
    }

    /// Routines that may have opened cursors have been called.
    pub(super) fn opened(&mut self, cursors: Vec<Vec<bool>>) {
        for one in cursors {
            if !self.opened.contains(&one) {
                self.opened.push(one);
            }
        }
    }

    /// [`rewrite::Statement::late`] of a FETCH, which changes nothing itself but where the cursor is.
    pub(super) fn late(&self, name: &str) -> Late {
        match self.declared.get(name) {
            Some((cursor, _)) if cursor.late != Late::Never => Late::Reads,
            _ => Late::Never,
        }
    }

    /// A cursor has been closed.
    pub(super) fn remove(&mut self, name: &str) {
        self.declared.remove(name);
    }

    /// All have been closed.
    pub(super) fn clear(&mut self) {
        self.declared.clear();
        self.opened.clear();
    }

    /// All may have been closed.
    pub(super) fn doubt(&mut self) {
        self.declared
            .values_mut()
            .for_each(|(_, certain)| *certain = false);
    }

    /// A transaction has ended.
    pub(super) fn end(&mut self) {
        self.declared.retain(|_, (cursor, _)| cursor.hold);
        self.opened.clear();
    }

    /// Whether a statement's rows may have these columns.
    pub(super) fn permit(&self, statement: Option<&Statement>, columns: &[Column]) -> bool {
        match statement.map(|s| (s, s.cursor())) {
            Some((_, Some(name))) => self.permit_cursor(name, columns),
            Some((statement, None)) => is_expected(columns, statement.results()),
            // The portal of a cursor.
            None => {
                self.permit_opened(columns)
                    || self.declared.values().any(|(c, _)| c.permits(columns))
            }
        }
    }

    /// The same for a statement of a Query; `None` if all of them have completed.
    pub(super) fn permit_rows(&self, rows: Option<&Rows>, columns: &[Column]) -> bool {
        match rows {
            Some(Rows::Cursor(name)) => self.permit_cursor(name, columns),
            Some(Rows::Analysed(results)) => is_expected(columns, results.as_deref()),
            None => is_expected(columns, Some(&[])),
        }
    }

    fn permit_cursor(&self, name: &str, columns: &[Column]) -> bool {
        match self.declared.get(name) {
            Some((known, certain)) => {
                known.permits(columns) || !certain && self.permit_opened(columns)
            }
            None => self.permit_opened(columns),
        }
    }

    fn permit_opened(&self, columns: &[Column]) -> bool {
        let fits = |known: &Vec<bool>| is_expected(columns, Some(known));
        is_expected(columns, Some(&[])) || self.opened.iter().any(fits)
    }
}

impl Cursor {
    fn permits(&self, columns: &[Column]) -> bool {
        is_expected(columns, self.results.as_deref())
    }
}

/// Whether no column is protected where the statement reads plain ones: otherwise its values would
/// be shown in the clear to anybody who can read the plain column.
fn is_expected(columns: &[Column], expected: Option<&[bool]>) -> bool {
    let may = |at: usize| expected.is_none_or(|all| all.get(at).copied().unwrap_or(false));
    let opened = |c: &Column| matches!(c.protected, Some(p) if p != Protected::Quoting);
    columns
        .iter()
        .enumerate()
        .all(|(at, c)| may(at) || !opened(c))
}
