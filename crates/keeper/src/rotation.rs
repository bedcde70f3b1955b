//! Changes of the keys of columns of the family `rnd_`, and keys of columns of `soft_` that are given to
//! the keeper: who may order them, and that they are noted.
//!
//! Invariant: what cells are opened by is on disk before it counts; it is in the file of those who
//! see columns, so an older copy is not taken.

use crate::cells::Cells;
use crate::generations::Generation;
use crate::provenance::column_id;
use crate::rules::Rules;
use crate::transferred::Given;
use crate::viewers::Viewers;
use grant::{Column, Command, Verb};
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

fn no_key() -> Error {
    Error::new(b"22023", "confide: this is no key of a column")
}

/// Two columns have one key; the cells do not say of which they are.
fn shared(other: &Column) -> Error {
    Error::new(
        b"55000",
        "confide: the key is that of another column, too, which the keeper has",
    )
    .detail(format!("It was given for {other}."))
    .hint("Take it back from that column, or give the columns keys of their own.")
}

fn all_given(rules: &Rules) -> Vec<(ColumnId, Given)> {
    let each = rules.given.iter();
    each.map(|(column, given)| (column_id(column), given.clone()))
        .collect()
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
        let rules = self.read_rules();
        cells.set_generations(listed(&rules));
        cells.transferred.set(all_given(&rules).into_iter());
    }

    /// Takes a key from somebody who may give it, or forgets one. `count` as for [`Viewers::rotate`].
    ///
    /// # Errors
    /// It is no key, it is that of another column, too, or it cannot be written.
    pub fn transfer(
        &self,
        command: &Command,
        note: impl FnOnce(u64) -> Result<(), Error>,
        count: impl FnOnce(Vec<(ColumnId, Given)>),
    ) -> Result<(), Error> {
        let mut rules = self.write_rules();
        let mut next = rules.clone();
        let column = &command.column;
        if command.verb == Verb::WithdrawKey {
            next.given.remove(column);
        } else {
            let given = Given::read(&command.word).ok_or_else(no_key)?;
            let mut others = next.given.iter().filter(|(other, _)| *other != column);
            if let Some((other, _)) = others.find(|(_, key)| key.same(&given)) {
                return Err(shared(other));
            }
            next.given.insert(column.clone(), given);
        }
        if next.given == rules.given {
            return Ok(());
        }
        next.number += 1;
        self.save(&next)?;
        note(next.number)?;
        count(all_given(&next));
        *rules = next;
        Ok(())
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
