//! Names that expressions can use: what `FROM` brings into scope.

use crate::value::Val;
use std::rc::Rc;

/// A column that can be named.
#[derive(Clone, Debug)]
pub(crate) struct Col {
    pub name: String,
    pub val: Val,
    /// One that a ledger table has besides those of its definition: in the result of a statement `*`
    /// does not stand for it (`extension/src/hooks/stars.c` has the same rules).
    pub own: bool,
}

/// The columns of a query. `open`: there may be more, not protected, whose names
/// and number we do not know; what each of them is made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cols {
    pub list: Vec<Col>,
    pub open: Option<Val>,
}

impl Cols {
    /// What a statement shows of them.
    pub fn shown(mut self) -> Cols {
        self.list.retain(|c| !c.own);
        self
    }

    /// What one of them is made of, whichever it is.
    pub fn any(&self) -> Val {
        Val::unknown_of(self.list.iter().map(|c| &c.val).chain(&self.open))
    }
}

/// A table, function or subquery in `FROM`.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub alias: String,
    /// The schema, when a qualified table name stands without an alias.
    pub schema: Option<String>,
    pub cols: Rc<Cols>,
}

/// One level of names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    pub entries: Vec<Entry>,
    /// Columns that can be named without a table, and what `*` stands for.
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

    /// Puts another item of the same level beside this one.
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
    /// The whole row. An open one is plain: what it does not list is.
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

/// The one that is made of more literals.
pub(crate) fn riskier<'v>(a: Option<&'v Val>, b: Option<&'v Val>) -> Option<&'v Val> {
    match (a, b) {
        (Some(a), Some(b)) if a.leaves.is_empty() => Some(b),
        (None, b) => b,
        (a, _) => a,
    }
}
