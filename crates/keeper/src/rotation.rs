//! Changes of the keys of columns of the family `rnd_`: who may order them, and that they are noted.
//!
//! Invariant: what cells are opened by is on disk before it counts; it is in the file of those who
//! see columns, so an older copy is not taken.

use crate::cells::Cells;
use crate::generations::Generation;
use crate::provenance::column_id;
use crate::rules::Rules;
use crate::viewers::Viewers;
use grant::{Command, Verb};
use store::ColumnId;
use values::Error;

/// The error for a client who may not change a key.
pub fn not_the_owner() -> Error {
    Error::new(b"42501", "confide: the column is another principal's")
        .detail("Only a column's owner changes its key.")
        .hint("Ask its owner.")
}

fn wrong(what: &'static str, hint: &'static str) -> Error {
    Error::new(
        b"55000",
        "confide: the key of the column is not being changed",
    )
    .detail(what)
    .hint(hint)
}

fn next(command: &Command, before: Option<Generation>) -> Result<Generation, Error> {
    let unchanged = || {
        wrong(
            "It was never changed.",
            "Begin with \"confide rotate-column\".",
        )
    };
    match command.verb {
        Verb::RotateBegin => Generation::begun(before, command.word.parse().unwrap_or(0))
            .ok_or_else(|| wrong("It was changed too often.", "Copy the column to a new one.")),
        Verb::RotateBack => Ok(Generation {
            turning: true,
            ..before.ok_or_else(unchanged)?
        }),
        _ => Ok(Generation {
            turning: false,
            ..before.ok_or_else(unchanged)?
        }),
    }
}

fn listed(rules: &Rules) -> Vec<(ColumnId, Generation)> {
    let each = rules.keys.iter();
    each.map(|(column, generation)| (column_id(column), *generation))
        .collect()
}

impl Viewers {
    /// Whether all of these columns are somebody's, or nobody's. Those without an owner are
    /// everybody's who is authorised.
    pub fn may_rotate(&self, columns: &[ColumnId], by: &str) -> bool {
        let rules = self.read_rules();
        let mut rules = columns.iter().filter_map(|column| rules.of(column));
        rules.all(|rule| rule.owners.last().is_some_and(|owner| owner == by))
    }

    /// Tells which keys there are, at the keeper's start.
    pub fn tell_keys(&self, cells: &Cells) {
        cells.set_generations(listed(&self.read_rules()));
    }

    /// Carries out a command of somebody who may change the column's key. `count` is told what holds
    /// from now on; changes call it one after the other.
    ///
    /// # Errors
    /// The command does not fit the key's state, or it cannot be written.
    pub fn rotate(
        &self,
        command: &Command,
        note: impl FnOnce(u64) -> Result<(), Error>,
        count: impl FnOnce(Vec<(ColumnId, Generation)>),
    ) -> Result<(), Error> {
        let mut rules = self.write_rules();
        let before = rules.keys.get(&command.column).copied();
        let generation = next(command, before)?;
        if before == Some(generation) {
            return Ok(());
        }
        let mut next = rules.clone();
        next.number += 1;
        next.keys.insert(command.column.clone(), generation);
        self.save(&next)?;
        note(next.number)?;
        count(listed(&next));
        *rules = next;
        Ok(())
    }
}
