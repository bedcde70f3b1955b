//! Columns by other names: those of a child table, former ones, those of a view.
//!
//! Invariant: what is reached by way of others counts as much as what is named directly.

use crate::provenance::column_id;
use grant::Column;
use std::collections::{BTreeSet, HashMap, HashSet};
use store::ColumnId;

/// What each column stands for besides itself.
#[derive(Default)]
pub struct Aliases(pub HashMap<ColumnId, HashSet<ColumnId>>);

impl Aliases {
    /// The columns, and all that they stand for, also by way of others.
    pub fn resolve(&self, columns: &BTreeSet<Column>) -> HashSet<ColumnId> {
        closure(columns.iter().map(column_id), |c| self.direct(c))
    }

    /// What the column stands for directly.
    pub fn direct(&self, column: &ColumnId) -> Vec<ColumnId> {
        self.0.get(column).into_iter().flatten().copied().collect()
    }

    /// What stands for the column directly.
    pub fn names(&self, column: &ColumnId) -> Vec<ColumnId> {
        let all = self.0.iter().filter(|(_, of)| of.contains(column));
        all.map(|(name, _)| *name).collect()
    }
}

/// All that can be reached from these columns, with themselves.
pub fn closure(
    from: impl Iterator<Item = ColumnId>,
    step: impl Fn(&ColumnId) -> Vec<ColumnId>,
) -> HashSet<ColumnId> {
    let mut found: HashSet<ColumnId> = HashSet::new();
    let mut open: Vec<ColumnId> = from.collect();
    while let Some(column) = open.pop() {
        if found.insert(column) {
            open.extend(step(&column));
        }
    }
    found
}
