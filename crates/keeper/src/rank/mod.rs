//! Rows to be ranked: their key columns, collected in batches, and the dense ranks that follow from
//! their order; if wanted, also the column in which neighbours differ.
//!
//! Messages and policy are unknown here.
//!
//! Invariants: the contents of a set are charged to its session until it is dropped; ranks disclose
//! how rows compare and nothing else: equal rows have equal ranks, and there are no gaps that could
//! tell how far apart values are. A step is the column where the column-wise comparison of two
//! neighbours ends.

mod keys;

use crate::program::column::Column;
use contract::TypeCode;
use contract::message::rank::{BEYOND, ROWS_MAX};
use keys::Elements;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;
use store::Budget;
use values::{Env, Error};

/// A key column and its ordering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// Type of its values; `None` for numbers known to the database.
    pub t: Option<TypeCode>,
    /// Whether the order is descending.
    pub descending: bool,
    /// Whether NULL precedes all values.
    pub nulls_first: bool,
}

/// One key column.
pub struct KeyColumn {
    key: Key,
    elements: Elements,
    /// Which rows are NULL; empty if none is.
    nulls: Vec<bool>,
    /// The column that all its rows belong to, for a session without a client.
    pub partition: Option<u32>,
}

/// Rows to be ranked.
pub struct Set {
    columns: Vec<KeyColumn>,
    rows: usize,
    budget: Arc<Budget>,
    charged: usize,
}

/// The order of rows.
pub struct Ranks {
    /// The rank of each row.
    pub ranks: Vec<u32>,
    /// For each rank, the first column in which it differs from the previous one.
    pub steps: Vec<u8>,
}

/// Marks a row that equals the previous one.
const SAME: u8 = u8::MAX;

/// Temporary memory per row during ranking, in bytes.
const WORK_BYTES: usize = 32;

impl KeyColumn {
    fn new(key: Key) -> KeyColumn {
        KeyColumn {
            key,
            elements: Elements::Empty,
            nulls: Vec::new(),
            partition: None,
        }
    }

    fn is_null(&self, row: u32) -> bool {
        self.nulls.get(row as usize).is_some_and(|null| *null)
    }

    /// Sorts row numbers by this column alone.
    fn sort(&self, rows: &mut [u32], env: &Env) {
        let mut rest = rows;
        if !self.nulls.is_empty() {
            let first = self.key.nulls_first;
            rest.sort_unstable_by_key(|row| (self.is_null(*row) != first, *row));
            let nulls = rest.iter().filter(|row| self.is_null(**row)).count();
            let cut = if first { nulls } else { rest.len() - nulls };
            let (head, tail) = rest.split_at_mut(cut);
            rest = if first { tail } else { head };
        }
        self.elements.sort(rest, self.key.descending, env);
    }

    fn equal(&self, a: u32, b: u32, env: &Env) -> bool {
        match (self.is_null(a), self.is_null(b)) {
            (false, false) => self.elements.compare(a, b, env) == Ordering::Equal,
            (a, b) => a == b,
        }
    }
}

impl Set {
    /// A set without rows.
    pub fn new(keys: impl Iterator<Item = Key>, budget: &Arc<Budget>) -> Set {
        Set {
            columns: keys.map(KeyColumn::new).collect(),
            rows: 0,
            budget: Arc::clone(budget),
            charged: 0,
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether the set has these key columns.
    pub fn has_keys(&self, keys: &[Key]) -> bool {
        self.columns.iter().map(|c| &c.key).eq(keys)
    }

    /// A key column.
    pub fn column(&mut self, index: usize) -> Option<&mut KeyColumn> {
        self.columns.get_mut(index)
    }

    /// Counts rows that were added to every column.
    pub fn added(&mut self, rows: usize) -> Result<(), Error> {
        self.rows += rows;
        if self.rows > ROWS_MAX {
            return Err(too_many());
        }
        let held: usize = self.columns.iter().map(|c| c.elements.bytes()).sum();
        let nulls: usize = self.columns.iter().map(|c| c.nulls.capacity()).sum();
        self.charge_up_to(held + nulls)
    }

    /// Charges heap memory of values.
    pub fn charge(&mut self, bytes: usize) -> Result<(), Error> {
        if bytes > 0 {
            self.budget.take(bytes)?;
            self.charged += bytes;
        }
        Ok(())
    }

    fn charge_up_to(&mut self, bytes: usize) -> Result<(), Error> {
        self.charge(bytes.saturating_sub(self.charged))
    }

    /// Ranks of the rows from `first` on; with a nonzero limit, of so many of them.
    pub fn rank(&mut self, first: usize, limit: usize, env: &Env) -> Result<Ranks, Error> {
        let count = self.rows.saturating_sub(first);
        let work = count * WORK_BYTES;
        self.budget.take(work)?;
        let ranks = self.ranks(first as u32, count, limit, env);
        self.budget.give(work);
        Ok(ranks)
    }

    fn ranks(&self, first: u32, count: usize, limit: usize, env: &Env) -> Ranks {
        let mut order: Vec<u32> = (first..first + count as u32).collect();
        let mut steps = vec![SAME; count];
        if let Some(step) = steps.first_mut() {
            *step = 0;
        }
        for (index, column) in self.columns.iter().enumerate() {
            let mut at = 0;
            while let Some(group) = next_group(&steps, at) {
                at = group.end;
                if group.len() < 2 {
                    continue;
                }
                let (Some(rows), Some(steps)) =
                    (order.get_mut(group.clone()), steps.get_mut(group))
                else {
                    continue;
                };
                column.sort(rows, env);
                let pairs = rows.windows(2).zip(steps.iter_mut().skip(1));
                for (pair, step) in pairs {
                    if let [a, b] = pair
                        && !column.equal(*a, *b, env)
                    {
                        *step = index as u8;
                    }
                }
            }
        }
        dense(&order, &steps, first, limit)
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        self.budget.give(self.charged);
    }
}

/// The next group of rows that are equal so far, starting at `at`.
fn next_group(steps: &[u8], at: usize) -> Option<Range<usize>> {
    let rest = steps.get(at + 1..)?;
    let length = rest.iter().position(|step| *step != SAME);
    Some(at..at + 1 + length.unwrap_or(rest.len()))
}

fn dense(order: &[u32], steps: &[u8], first: u32, limit: usize) -> Ranks {
    let mut ranks = vec![BEYOND; order.len()];
    let mut kept = Vec::new();
    let wanted = if limit == 0 { order.len() } else { limit };
    for (row, step) in order.iter().zip(steps).take(wanted) {
        if *step != SAME {
            kept.push(*step);
        }
        if let Some(to) = ranks.get_mut((row - first) as usize) {
            *to = kept.len() as u32 - 1;
        }
    }
    Ranks { ranks, steps: kept }
}

impl KeyColumn {
    /// The column's key.
    pub fn key(&self) -> Key {
        self.key
    }

    /// Appends numbers known to the database.
    pub fn push_numbers(&mut self, numbers: impl Iterator<Item = u64>) {
        self.elements.push_numbers(numbers);
    }

    /// Appends rows to the `before` existing ones. Returns the heap size of their values.
    pub fn push(&mut self, column: &Column, before: usize) -> usize {
        self.elements.push(column);
        if !self.nulls.is_empty() || !column.nulls.is_empty() {
            self.nulls.resize(before, false);
            self.nulls
                .extend((0..column.len()).map(|row| column.is_null(row)));
        }
        keys::beside(column)
    }
}

fn too_many() -> Error {
    Error::new(b"54000", "confide: too many rows to rank at once")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::column::Data;

    fn set(keys: &[(bool, bool)], columns: &[&[Option<i64>]]) -> Set {
        let keys = keys.iter().map(|(descending, nulls_first)| Key {
            t: Some(TypeCode::Int8),
            descending: *descending,
            nulls_first: *nulls_first,
        });
        let mut set = Set::new(keys, &Budget::new(1 << 20, "session_memory_limit"));
        let mut rows = 0;
        for (index, values) in columns.iter().enumerate() {
            let mut column = Column::of(TypeCode::Int8, Data::Int(Vec::new()));
            for value in *values {
                match value {
                    Some(v) => column.push(&store::Scalar::Int(*v)),
                    None => column.push_null(),
                }
            }
            if let Some(to) = set.column(index) {
                to.push(&column, 0);
            }
            rows = values.len();
        }
        assert!(set.added(rows).is_ok());
        set
    }

    fn order(set: &mut Set, first: usize, limit: usize) -> (Vec<u32>, Vec<u8>) {
        set.rank(first, limit, &Env::default())
            .map(|found| (found.ranks, found.steps))
            .unwrap_or_default()
    }

    fn ranks(set: &mut Set, first: usize, limit: usize) -> Vec<u32> {
        order(set, first, limit).0
    }

    /// Ranks have no gaps after equal rows: a gap would tell the number of equal
    /// rows twice, and a difference of values never.
    #[test]
    fn ranks_are_dense() {
        let mut set = set(
            &[(false, false)],
            &[&[Some(70), Some(-5), None, Some(70), Some(6)]],
        );
        assert_eq!(ranks(&mut set, 0, 0), [2, 0, 3, 2, 1]);
        assert_eq!(ranks(&mut set, 2, 0), [2, 1, 0]);
    }

    #[test]
    fn later_columns_decide_among_equals() {
        let a = [Some(1), Some(2), Some(1), None, None];
        let b = [Some(5), Some(5), Some(9), Some(1), None];
        let mut set = set(&[(true, true), (true, false)], &[&a, &b]);
        assert_eq!(ranks(&mut set, 0, 0), [4, 2, 3, 0, 1]);
    }

    /// A step names the column that decides between neighbours; of rows beyond the limit it
    /// tells nothing.
    #[test]
    fn steps_between_neighbours() {
        let a = [Some(1), Some(2), Some(1), None, None, Some(1)];
        let b = [Some(5), Some(5), Some(9), Some(1), None, Some(9)];
        let mut set = set(&[(false, false), (true, false)], &[&a, &b]);
        let all = (vec![1, 2, 0, 3, 4, 0], vec![0, 1, 0, 0, 1]);
        assert_eq!(order(&mut set, 0, 0), all);
        let three = (vec![1, BEYOND, 0, BEYOND, BEYOND, 0], vec![0, 1]);
        assert_eq!(order(&mut set, 0, 3), three);
    }

    /// Rows beyond the limit must look alike: ranks would tell their order.
    #[test]
    fn nothing_is_told_beyond_the_limit() {
        let values = [Some(5), Some(4), Some(3), Some(2), Some(1)];
        let mut set = set(&[(false, false)], &[&values]);
        assert_eq!(ranks(&mut set, 0, 2), [BEYOND, BEYOND, BEYOND, 1, 0]);
    }

    #[test]
    fn memory_is_charged_and_given_back() {
        let budget = Budget::new(1000, "session_memory_limit");
        let key = Key {
            t: None,
            descending: false,
            nulls_first: false,
        };
        let mut set = Set::new([key].into_iter(), &budget);
        if let Some(column) = set.column(0) {
            column.push_numbers(0..100);
        }
        assert!(set.added(100).is_ok());
        assert!(budget.used() >= 800);
        assert_eq!(
            set.rank(0, 0, &Env::default())
                .map(|_| ())
                .map_err(|e| e.sqlstate),
            Err(*b"53200")
        );
        drop(set);
        assert_eq!(budget.used(), 0);
    }
}
