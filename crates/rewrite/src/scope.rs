//! Names that expressions can refer to: the scope created by `FROM`.

use crate::value::Val;
use std::rc::Rc;

/// A column that can be referred to.
#[derive(Clone, Debug)]
pub(crate) struct Col {
    pub name: String,
    pub val: Val,
    /// A column that a ledger table has in addition to its definition. In the result of a statement
    /// `*` does not include it (`extension/src/hooks/stars.c` has the same rules).
    pub own: bool,
}

/// The columns of a query. `open`: there may be further unprotected columns with unknown names; its
/// value is what each of them consists of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cols {
    pub list: Vec<Col>,
    pub open: Option<Val>,
}

impl Cols {
    /// The columns that a statement shows.
    pub fn shown(mut self) -> Cols {
        self.list.retain(|c| !c.own);
        self
    }

    /// A value that covers all of them.
    pub fn any(&self) -> Val {
        Val::unknown_of(self.list.iter().map(|c| &c.val).chain(&self.open))
    }
}

/// A table, function or subquery in `FROM`.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub alias: String,
    /// The schema of a qualified table name without an alias.
    pub schema: Option<String>,
    pub cols: Rc<Cols>,
}

/// One level of names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    pub entries: Vec<Entry>,
    /// Columns that can be referred to without a table, and the meaning of `*`.
    pub list: Vec<Col>,
    pub open: Option<Val>,
}

impl Frame {
    pub fn of(entry: Entry) -> Frame {
        Frame {
            list: entry.cols.list.clone(),
            open: entry.cols.open.clone(),
            entries: vec![entry],
        }
    }

    /// Adds another item of the same level.
    pub fn join(&mut self, other: &Frame) {
        self.entries.extend(other.entries.iter().cloned());
        self.list.extend(other.list.iter().cloned());
        self.open = riskier(self.open.as_ref(), other.open.as_ref()).cloned();
    }

    pub fn entry(&self, schema: Option<&str>, alias: &str) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|e| e.alias == alias && (schema.is_none() || e.schema.as_deref() == schema))
    }
}

impl Entry {
    /// The whole row. An open one without a column list is plain.
    pub fn row(&self) -> Val {
        if let (Some(open), true) = (&self.cols.open, self.cols.list.is_empty()) {
            return open.clone();
        }
        Val::row(
            self.cols
                .list
                .iter()
                .map(|c| (c.name.clone(), c.val.clone()))
                .collect(),
        )
    }
}

/// The one that contains literals.
pub(crate) fn riskier<'v>(a: Option<&'v Val>, b: Option<&'v Val>) -> Option<&'v Val> {
    match (a, b) {
        (Some(a), Some(b)) if a.leaves.is_empty() => Some(b),
        (None, b) => b,
        (a, _) => a,
    }
}
