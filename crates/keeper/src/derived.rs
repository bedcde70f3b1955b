//! What an index's expression makes of columns: the names of such values.
//!
//! What is made of one column has that column's name, and so its labels, viewers, accounts and
//! budgets. What is made of several has a name that consists of theirs.
//!
//! Invariant: a value that is stored under a name was made of the columns that the name says, and of no others.

use crate::provenance::column_id;
use contract::message::derived::MARK;
use grant::Column;
use store::ColumnId;

/// Whether a name is one of what was made of several columns.
pub fn is_combined(column: &Column) -> bool {
    column.column.as_bytes().first() == Some(&MARK)
}

/// The columns that a name stands for, sorted: itself, or those that it consists of.
pub fn sources(column: &Column) -> Vec<ColumnId> {
    if !is_combined(column) {
        return vec![column_id(column)];
    }
    let parts = column.column.split(char::from(MARK));
    let named = parts.filter(|part| !part.is_empty());
    let of = |part: &str| column_id(&Column::new(&column.schema, &column.relation, part));
    let mut all: Vec<ColumnId> = named.map(of).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A combined name stands for its parts in the same relation, each once.
    #[test]
    fn parts_of_names() {
        let column = |name: &str| Column::new("s", "t", name);
        let (a, b) = (column_id(&column("a")), column_id(&column("b")));
        assert_eq!(sources(&column("a")), [a]);
        let mut both = vec![a, b];
        both.sort_unstable();
        assert_eq!(sources(&column("\u{1}b\u{1}a\u{1}b")), both);
        assert!(is_combined(&column("\u{1}a")) && !is_combined(&column("a\u{1}b")));
    }
}
