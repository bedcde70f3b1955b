//! What temporary values were computed from: sets of columns, and whether constants of the client,
//! plain values of the database or envelopes took part. A session numbers the sets that occur;
//! these numbers are the labels of slots.
//!
//! Invariants: a number denotes the same set until the session ends; combining values never loses
//! an element of their sets.

use crate::fail;
use grant::{Column, origin};
use std::collections::HashMap;
use std::sync::Arc;
use store::{ColumnId, Label};
use values::Error;

/// A value of an unnamed column. No grant covers it.
pub const UNNAMED: u8 = 128;

/// From an export envelope, and therefore restricted to one column.
pub const TAKEN: u8 = 64;
/// ... of another or an unknown database.
pub const ELSEWHERE: u8 = 32;
/// ... of a constant in a catalog.
pub const CONSTANT: u8 = 16;
/// Flags that the keeper adds to an export's origin; grants do not mention them.
pub const CARRIED: u8 = TAKEN | ELSEWHERE | CONSTANT;

/// Nothing.
pub const EMPTY: Label = 1;
/// A constant of the client.
pub const CLIENT: Label = 2;
/// A plain value.
pub const PLAIN: Label = 3;
/// From an envelope made by the keeper.
pub const EXPORT: Label = 4;
/// Of unknown origin.
pub const UNKNOWN: Label = 5;

/// Maximum number of sets per session.
const SETS_MAX: usize = 60_000;

/// What a value was computed from.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Origin {
    /// Flags of [`origin`], [`UNNAMED`] and [`CARRIED`].
    pub others: u8,
    /// Columns, sorted.
    pub columns: Vec<ColumnId>,
}

/// The sets of a session, by number.
pub struct Provenance {
    sets: Vec<Arc<Origin>>,
    numbers: HashMap<Arc<Origin>, Label>,
}

impl Default for Provenance {
    fn default() -> Provenance {
        let mut all = Provenance {
            sets: vec![Arc::default()],
            numbers: HashMap::new(),
        };
        for others in [0, origin::CLIENT, origin::PLAIN, origin::EXPORT, UNNAMED] {
            // In the order of the constants above; there is room for five.
            let _ = all.number(Origin {
                others,
                columns: Vec::new(),
            });
        }
        all
    }
}

impl Provenance {
    /// The number of a set.
    pub fn number(&mut self, set: Origin) -> Result<Label, Error> {
        if let Some(number) = self.numbers.get(&set) {
            return Ok(*number);
        }
        if self.sets.len() >= SETS_MAX {
            return Err(fail::program_limit(
                "The session combines values of too many sets of columns.",
            ));
        }
        let set = Arc::new(set);
        let number = self.sets.len() as Label;
        self.sets.push(Arc::clone(&set));
        self.numbers.insert(set, number);
        Ok(number)
    }

    /// The set with a number.
    pub fn set(&self, number: Label) -> Arc<Origin> {
        let set = self.sets.get(usize::from(number));
        set.map_or_else(Arc::default, Arc::clone)
    }

    /// The number of the union of two sets.
    pub fn union(&mut self, a: Label, b: Label) -> Result<Label, Error> {
        let (a, b) = (self.set(a), self.set(b));
        let mut columns = [a.columns.as_slice(), b.columns.as_slice()].concat();
        columns.sort_unstable();
        columns.dedup();
        self.number(Origin {
            others: a.others | b.others,
            columns,
        })
    }
}

/// The identity of a column.
pub fn column_id(column: &Column) -> ColumnId {
    column.id()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets that are made in different ways are one, and nothing gets lost; with a bug a
    /// value that a column went into passes for one that it did not.
    #[test]
    fn unions() -> Result<(), Error> {
        let mut all = Provenance::default();
        let column = |n: u8| Origin {
            others: 0,
            columns: vec![[n; 16]],
        };
        let (a, b) = (all.number(column(1))?, all.number(column(2))?);
        let ab = all.union(a, b)?;
        assert_eq!(all.union(b, a)?, ab);
        assert_eq!(all.union(ab, a)?, ab);
        assert_eq!(all.union(a, EMPTY)?, a);
        let with = all.union(CLIENT, ab)?;
        assert_eq!(all.union(with, PLAIN)?, all.union(PLAIN, with)?);
        let unknown = all.union(with, UNKNOWN)?;
        let set = all.set(unknown);
        assert_eq!(set.others, origin::CLIENT | UNNAMED);
        assert_eq!(set.columns, [[1; 16], [2; 16]]);
        for (label, others) in [
            (CLIENT, 1),
            (PLAIN, 2),
            (EXPORT, 4),
            (UNKNOWN, 128),
            (EMPTY, 0),
        ] {
            assert_eq!(all.set(label).others, others);
        }
        Ok(())
    }
}
