//! `RankAdd`, `Rank`, `RankForget`: the order of many rows in one round trip.
//!
//! Sets belong to the channel. If a row could not be added, the set is kept and returns that error
//! when it is ranked.
//!
//! Invariant: without a client session, only permanent FIDs of one column are compared with each
//! other, as in `Declassify`.

use super::Connection;
use super::operands::Operands;
use super::policy::within_one_column;
use crate::fail::{self, Failure};
use crate::program::load::{Named, Touched, load};
use crate::program::vector::Meter;
use crate::rank::{Key, Ranks, Set};
use crate::told::Told;
use contract::codec::{Fixed, List};
use contract::message::ROWS_MAX;
use contract::message::rank::{COLUMNS_MAX, DESCENDING, GOES, NULLS_FIRST, SETS_MAX, STEPS};
use contract::message::table::RankColumn;
use contract::{Fid, OpResult, TypeCode, answer, body};
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use store::Label;
use values::Error;

/// The sets of a channel, by number.
pub(super) type Sets = HashMap<u32, Ranked>;

/// A set, or the reason why it is unusable.
pub(super) struct Ranked {
    set: Set,
    touched: Touched,
    /// What each column's values were computed from.
    operands: Vec<Operands>,
    broken: Option<Failure>,
}

fn key(column: RankColumn) -> Key {
    Key {
        t: column.t.map(TypeCode::stored),
        descending: column.flags & DESCENDING != 0,
        nulls_first: column.flags & NULLS_FIRST != 0,
    }
}

fn no_such_set() -> Failure {
    fail::malformed("There is no such set of rows.").into()
}

impl Connection {
    pub(super) fn rank_add(&mut self, body: body::RankAdd<'_>) -> Result<(), Failure> {
        let (columns, rows) = (body.columns as usize, body.rows as usize);
        if columns == 0 || columns > COLUMNS_MAX || rows > ROWS_MAX {
            return Err(fail::malformed("There are too many rows or columns.").into());
        }
        let keys: Vec<Key> = body.keys.iter().map(key).collect();
        let mut words = std::mem::take(&mut self.fids);
        words.clear();
        words.extend(body.values);
        let done = self.rank_add_rows(body.set, &keys, &words, rows);
        self.fids = words;
        done
    }

    fn rank_add_rows(
        &mut self,
        number: u32,
        keys: &[Key],
        words: &[Fid],
        rows: usize,
    ) -> Result<(), Failure> {
        let mut ranked = match self.sets.remove(&number) {
            Some(ranked) if ranked.broken.is_some() => {
                self.sets.insert(number, ranked);
                return Ok(());
            }
            Some(ranked) if ranked.set.has_keys(keys) => ranked,
            Some(_) => return Err(fail::malformed("The set has other columns.").into()),
            None if self.sets.len() >= SETS_MAX => {
                return Err(fail::program_limit("The channel ranks too many sets.").into());
            }
            None => Ranked {
                set: Set::new(keys.iter().copied(), &self.session.budget),
                touched: Touched::default(),
                operands: Vec::new(),
                broken: None,
            },
        };
        let done = self.fill(&mut ranked, words, rows);
        if let Err(failure) = &done {
            ranked = Ranked {
                set: Set::new(keys.iter().copied(), &self.session.budget),
                touched: Touched::default(),
                operands: Vec::new(),
                broken: Some(failure.clone()),
            };
        }
        self.sets.insert(number, ranked);
        done
    }

    fn fill(&self, ranked: &mut Ranked, words: &[Fid], rows: usize) -> Result<(), Failure> {
        let Ranked {
            set,
            touched,
            operands,
            ..
        } = ranked;
        let before = set.rows();
        let mut index = 0;
        let mut rest = words;
        while let Some(column) = set.column(index) {
            let (words, later) = rest.split_at_checked(rows).unwrap_or((&[], &[]));
            (index, rest) = (index + 1, later);
            if operands.len() < index {
                operands.push(Operands::NONE);
            }
            let Some(t) = column.key().t else {
                column.push_numbers(words.iter().map(|word| word.0));
                continue;
            };
            if self.client.is_none() {
                column.partition = one_column(words, column.partition)?;
                column.partition.map_or(Ok(()), |p| self.may_order(p))?;
            }
            let words = Named::new(words);
            if let Some(before) = operands.get_mut(index - 1) {
                *before = self.more_operands(*before, words)?;
            }
            let meter = Meter::new(&self.session.budget);
            let values = load(&self.space, words, t, touched, &meter)?;
            if let Some((_, failure)) = values.failures.iter().next() {
                return Err(failure.clone());
            }
            let beside = column.push(&values, before);
            set.charge(beside)?;
        }
        Ok(set.added(rows)?)
    }

    pub(super) fn rank(&mut self, body: body::Rank) -> Result<(), Failure> {
        let (number, flags) = (body.set, body.flags);
        let (first, limit) = (body.first as usize, body.limit as usize);
        let ranked = self.sets.get(&number).ok_or_else(no_such_set)?;
        for operands in &ranked.operands {
            self.authorise_order(*operands)?;
        }
        let ranked = self.sets.get_mut(&number).ok_or_else(no_such_set)?;
        let done = match &ranked.broken {
            Some(failure) => Err(failure.clone()),
            None => ranked
                .set
                .rank(first, limit, &self.env)
                .map_err(Failure::from),
        };
        let mut labels: Vec<Label> = ranked.operands.iter().map(|o| o.label).collect();
        let touched = std::mem::take(&mut ranked.touched);
        if flags & GOES != 0 || ranked.broken.is_some() {
            self.sets.remove(&number);
        }
        let Ranks { ranks, steps } = done?;
        for (number, rows) in touched.iter() {
            if let Some(partition) = self.keeper.store.get(number) {
                partition.reveal(OpResult::Order, rows);
            }
            if self.client.is_none() {
                labels.push(self.label_of_column(number)?);
            }
        }
        for label in labels {
            self.told(label, Told::Ranks, ranks.len())?;
        }
        let counters = &self.session.counters;
        counters.declassified.fetch_add(ranks.len() as u64, Relaxed);
        counters.ranked.fetch_add(ranks.len() as u64, Relaxed);
        let steps = match flags & STEPS {
            0 => Vec::new(),
            _ => steps,
        };
        self.reply
            .reserve(ranks.len() * size_of::<u32>() + steps.len());
        self.answer(&answer::Rank {
            rows: ranks.len() as u32,
            count: steps.len() as u32,
            ranks: List::new(&[]),
            steps: &[],
        });
        for rank in ranks {
            rank.put(&mut self.reply);
        }
        self.reply.extend_from_slice(&steps);
        Ok(())
    }

    pub(super) fn rank_forget(&mut self, body: body::RankForget) -> Result<(), Failure> {
        self.sets.remove(&body.set);
        Ok(())
    }
}

/// The column of permanent FIDs, which must be a single one.
fn one_column(fids: &[Fid], before: Option<u32>) -> Result<Option<u32>, Error> {
    if !within_one_column(fids) {
        return Err(fail::no_client());
    }
    match fids.iter().find(|fid| **fid != Fid::INVALID) {
        Some(fid) if before.is_some_and(|p| p != fid.partition()) => Err(fail::no_client()),
        Some(fid) => Ok(Some(fid.partition())),
        None => Ok(before),
    }
}
