//! Transition states of all groups, one array per aggregate.
//!
//! Invariant: the result equals that of [`AggregateState`] for the same values in the same order.
//! Sums of integers and decimals do not depend on the order, so those that do not fit into integers
//! of a common scale are kept in a side table and added at the end.

use super::NO_GROUP;
use super::keys::encode_raw;
use super::part::Part;
use super::plan::{Family, StateSpec};
use crate::account::Account;
use crate::fail::{self, Failure};
use crate::program::column::{Column, Data};
use crate::program::rowform::encode_row;
use crate::program::scalar::order_floats;
use crate::program::strings::Strings;
use contract::{Aggregate, Fid, TypeCode};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use store::Scalar;
use values::{AggregateState, Env, Error, Value, replaces_extreme};

/// Memory per state in the side table.
const ASIDE_BYTES: usize = 256;

/// Sums and counts of values.
#[derive(Default)]
struct Sums {
    sums: Vec<i128>,
    counts: Vec<u64>,
}

enum Held {
    Counts(Vec<u64>),
    Integers(Sums),
    /// Decimals of one scale, and the side table for others.
    Numerics(Sums, Option<u16>, BTreeMap<u32, AggregateState>),
    Extremes(Aggregate, Vec<Option<Value>>),
    General(Aggregate, Vec<AggregateState>),
}

/// The states of one aggregate.
pub struct States {
    held: Held,
    input: TypeCode,
    /// Values seen, with their groups, if equal values count once.
    seen: Option<Strings>,
    form: Vec<u8>,
    groups: Vec<u32>,
}

fn lost() -> Failure {
    fail::internal("an aggregation has lost a state").into()
}

impl States {
    /// States for no groups yet.
    pub fn new(spec: &StateSpec) -> States {
        let held = match spec.family {
            Family::Count => Held::Counts(Vec::new()),
            Family::Integers => Held::Integers(Sums::default()),
            Family::Numerics => Held::Numerics(Sums::default(), None, BTreeMap::new()),
            Family::Extreme(aggregate) => Held::Extremes(aggregate, Vec::new()),
            Family::General(aggregate) => Held::General(aggregate, Vec::new()),
        };
        States {
            held,
            input: spec.input,
            seen: spec.distinct.then(Strings::default),
            form: Vec::new(),
            groups: Vec::new(),
        }
    }

    /// Makes room for new groups.
    pub fn grow(&mut self, groups: usize) {
        match &mut self.held {
            Held::Counts(v) => v.resize(groups, 0),
            Held::Integers(s) | Held::Numerics(s, ..) => {
                s.sums.resize(groups, 0);
                s.counts.resize(groups, 0);
            }
            Held::Extremes(_, v) => v.resize(groups, None),
            Held::General(aggregate, v) => {
                if let Ok(new) = AggregateState::new(*aggregate, self.input) {
                    v.resize(groups, new);
                }
            }
        }
    }

    /// Adds a part: the value of each row to the state of its group.
    pub fn step(
        &mut self,
        spec: &StateSpec,
        part: &Part<'_>,
        numbers: &[u32],
        account: &mut Account,
    ) -> Result<(), Failure> {
        if spec.filter.is_none() && spec.argument.is_none() {
            return self.count_rows(numbers);
        }
        let mut groups = std::mem::take(&mut self.groups);
        groups.clear();
        groups.extend_from_slice(numbers);
        let done = self.step_some(spec, part, &mut groups, account);
        self.groups = groups;
        done
    }

    fn step_some(
        &mut self,
        spec: &StateSpec,
        part: &Part<'_>,
        groups: &mut [u32],
        account: &mut Account,
    ) -> Result<(), Failure> {
        if let Some(filter) = spec.filter {
            part.condition(filter, |row, truth| {
                if !truth && let Some(group) = groups.get_mut(row) {
                    *group = NO_GROUP;
                }
            })?;
        }
        let Some(argument) = spec.argument else {
            return self.count_rows(groups);
        };
        if let Some(raw) = part.raw_column(argument) {
            leave_out(groups, |row| raw.raw(part.first() + row).is_none());
            self.once(groups, account, |row, out| {
                encode_raw(raw, part.first() + row, out)
            })?;
            return self.count_rows(groups);
        }
        let counts = matches!(self.held, Held::Counts(_));
        if counts
            && self.seen.is_none()
            && let Some(fids) = part.fid_column(argument)
        {
            // Whether a FID is NULL is known without its value.
            leave_out(groups, |row| fids.fid(part.first() + row) == Fid::INVALID);
            return self.count_rows(groups);
        }
        let column = part.expression(argument)?;
        none_failed(column, groups)?;
        if !column.nulls.is_empty() {
            leave_out(groups, |row| column.is_null(row));
        }
        self.once(groups, account, |row, out| encode_row(column, row, out))?;
        if counts {
            return self.count_rows(groups);
        }
        self.take(column, groups, part.context().env, account)
    }

    /// For aggregates where equal values count once: passes each value of a group once.
    fn once(
        &mut self,
        groups: &mut [u32],
        account: &mut Account,
        encode: impl Fn(usize, &mut Vec<u8>) -> bool,
    ) -> Result<(), Failure> {
        let Some(seen) = &mut self.seen else {
            return Ok(());
        };
        for (row, group) in groups.iter_mut().enumerate() {
            if *group == NO_GROUP {
                continue;
            }
            self.form.clear();
            self.form
                .extend_from_slice(&u64::from(*group).to_le_bytes());
            encode(row, &mut self.form);
            match seen.find(&self.form) {
                Ok(_) => *group = NO_GROUP,
                Err(hash) => {
                    account.take_beyond(seen.cost(&self.form))?;
                    seen.add(hash, &self.form);
                }
            }
        }
        Ok(())
    }

    fn count_rows(&mut self, groups: &[u32]) -> Result<(), Failure> {
        let Held::Counts(counts) = &mut self.held else {
            return Err(lost());
        };
        for group in groups {
            if let Some(count) = counts.get_mut(*group as usize) {
                *count += 1;
            }
        }
        Ok(())
    }

    /// Adds values. Rows without a group are skipped.
    fn take(
        &mut self,
        column: &Column,
        groups: &[u32],
        env: &Env,
        account: &mut Account,
    ) -> Result<(), Failure> {
        if let (Held::Numerics(_, scale @ None, _), Data::Scaled(_, s)) =
            (&mut self.held, &column.data)
        {
            *scale = Some(*s);
        }
        match (&mut self.held, &column.data) {
            (Held::Integers(sums), Data::Int(v)) => sums.add_all(v, groups),
            (Held::Numerics(sums, Some(scale), _), Data::Scaled(v, s)) if scale == s => {
                sums.add_all(v, groups);
            }
            (Held::Extremes(aggregate, kept), _) => {
                extremes(*aggregate, self.input, kept, column, groups, env, account)?;
            }
            _ => {
                for (row, group) in groups.iter().enumerate() {
                    if *group != NO_GROUP {
                        self.take_one(column, row, *group, env, account)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn take_one(
        &mut self,
        column: &Column,
        row: usize,
        group: u32,
        env: &Env,
        account: &mut Account,
    ) -> Result<(), Failure> {
        let value = column.value(row).ok_or_else(lost)?;
        match &mut self.held {
            Held::Numerics(sums, scale, aside) => {
                if let Scalar::Scaled(v, s) = Scalar::of(&value)
                    && *scale.get_or_insert(s) == s
                {
                    sums.add(v, group);
                    return Ok(());
                }
                change_aside(aside, group, account, |state| state.step(&value, env))?;
            }
            Held::General(_, states) => {
                let state = states.get_mut(group as usize).ok_or_else(lost)?;
                state.step(&value, env)?;
            }
            Held::Integers(_) | Held::Counts(_) | Held::Extremes(..) => return Err(lost()),
        }
        Ok(())
    }

    /// Merges the states of another aggregation's groups. `numbers` gives the group here for each
    /// of them.
    pub fn merge(
        &mut self,
        other: &States,
        numbers: &[u32],
        env: &Env,
        account: &mut Account,
    ) -> Result<(), Failure> {
        match (&mut self.held, &other.held) {
            (Held::Counts(to), Held::Counts(from)) => {
                for (count, group) in from.iter().zip(numbers) {
                    if let Some(to) = to.get_mut(*group as usize) {
                        *to += count;
                    }
                }
            }
            (Held::Integers(to), Held::Integers(from)) => to.merge(from, numbers),
            (Held::Numerics(to, scale, aside), Held::Numerics(from, other_scale, other_aside)) => {
                merge_sums((to, scale, aside), (from, *other_scale), numbers, account)?;
                for (number, state) in other_aside {
                    let group = *numbers.get(*number as usize).ok_or_else(lost)?;
                    if group != NO_GROUP {
                        change_aside(aside, group, account, |to| to.combine(state))?;
                    }
                }
            }
            (Held::Extremes(aggregate, to), Held::Extremes(_, from)) => {
                merge_extremes((*aggregate, self.input), (to, from), numbers, env, account)?;
            }
            (Held::General(_, to), Held::General(_, from)) => {
                for (state, group) in from.iter().zip(numbers) {
                    if let Some(to) = to.get_mut(*group as usize) {
                        to.combine(state)?;
                    }
                }
            }
            _ => return Err(lost()),
        }
        Ok(())
    }

    /// Number of rows or values in a group.
    pub fn count(&self, group: usize) -> u64 {
        match &self.held {
            Held::Counts(v) => v.get(group).copied().unwrap_or(0),
            _ => 0,
        }
    }

    /// The result for a group; `None` for NULL.
    pub fn finish(&self, aggregate: Aggregate, group: usize) -> Result<Option<Value>, Failure> {
        let state = match &self.held {
            Held::Counts(_) => return Err(lost()),
            Held::Extremes(_, kept) => return Ok(kept.get(group).cloned().flatten()),
            Held::General(_, states) => states.get(group).cloned(),
            Held::Integers(sums) => {
                let (sum, count) = sums.get(group);
                Some(AggregateState::of_integers(
                    aggregate, self.input, sum, count,
                )?)
            }
            Held::Numerics(sums, scale, aside) => {
                let (sum, count) = sums.get(group);
                let mut state = match count {
                    0 => AggregateState::new(aggregate, self.input)?,
                    _ => AggregateState::of_numerics(aggregate, sum, scale.unwrap_or(0), count)?,
                };
                if let Some(other) = aside.get(&(group as u32)) {
                    state.combine(&other.clone().to_end_as(aggregate))?;
                }
                Some(state)
            }
        };
        let state = state.ok_or_else(lost)?;
        if state.is_empty() {
            return Ok(None);
        }
        match state.finish() {
            Err(error) if error.is_null() => Ok(None),
            done => Ok(Some(done?)),
        }
    }
}

impl Sums {
    #[inline]
    fn add(&mut self, value: i64, group: u32) {
        let at = group as usize;
        if let (Some(sum), Some(count)) = (self.sums.get_mut(at), self.counts.get_mut(at)) {
            // The sum of 2^64 values of 64 bits fits.
            *sum = sum.wrapping_add(i128::from(value));
            *count += 1;
        }
    }

    fn add_all(&mut self, values: &[i64], groups: &[u32]) {
        match values {
            [one] if groups.len() != 1 => groups.iter().for_each(|g| self.add(*one, *g)),
            _ => {
                for (value, group) in values.iter().zip(groups) {
                    self.add(*value, *group);
                }
            }
        }
    }

    fn merge(&mut self, other: &Sums, numbers: &[u32]) {
        let others = other.sums.iter().zip(&other.counts);
        for ((sum, count), group) in others.zip(numbers) {
            let at = *group as usize;
            if let (Some(to), Some(counted)) = (self.sums.get_mut(at), self.counts.get_mut(at)) {
                *to = to.wrapping_add(*sum);
                *counted += count;
            }
        }
    }

    fn get(&self, group: usize) -> (i128, u64) {
        let sum = self.sums.get(group).copied().unwrap_or(0);
        (sum, self.counts.get(group).copied().unwrap_or(0))
    }
}

/// Merges sums of decimals into those of their groups, using the side table if the scale differs.
fn merge_sums(
    (to, scale, aside): (
        &mut Sums,
        &mut Option<u16>,
        &mut BTreeMap<u32, AggregateState>,
    ),
    (from, other_scale): (&Sums, Option<u16>),
    numbers: &[u32],
    account: &mut Account,
) -> Result<(), Failure> {
    *scale = scale.or(other_scale);
    let Some(other) = other_scale.filter(|other| Some(*other) != *scale) else {
        to.merge(from, numbers);
        return Ok(());
    };
    for (number, group) in numbers.iter().enumerate() {
        let (sum, count) = from.get(number);
        if count > 0 && *group != NO_GROUP {
            let sum = AggregateState::of_numerics(Aggregate::Sum, sum, other, count)?;
            change_aside(aside, *group, account, |state| state.combine(&sum))?;
        }
    }
    Ok(())
}

fn merge_extremes(
    (aggregate, t): (Aggregate, TypeCode),
    (to, from): (&mut [Option<Value>], &[Option<Value>]),
    numbers: &[u32],
    env: &Env,
    account: &mut Account,
) -> Result<(), Failure> {
    for (value, group) in from.iter().zip(numbers) {
        if let (Some(place), Some(value)) = (to.get_mut(*group as usize), value) {
            let order = match &place {
                Some(old) => Some(values::compare(old, value, env)?),
                None => None,
            };
            if order.is_none_or(|o| replaces_extreme(aggregate, t, o)) {
                keep_extreme(place, value.clone(), account)?;
            }
        }
    }
    Ok(())
}

fn extremes(
    aggregate: Aggregate,
    t: TypeCode,
    kept: &mut [Option<Value>],
    column: &Column,
    groups: &[u32],
    env: &Env,
    account: &mut Account,
) -> Result<(), Failure> {
    for (row, group) in groups.iter().enumerate() {
        let Some(place) = kept.get_mut(*group as usize) else {
            continue;
        };
        let new = column.scalar(row).ok_or_else(lost)?;
        let replace = match place {
            None => true,
            Some(old) => {
                let order = match quick_order(t, &Scalar::of(old), &new) {
                    Some(order) => order,
                    None => {
                        let new = column.value(row).ok_or_else(lost)?;
                        values::compare(old, &new, env)?
                    }
                };
                replaces_extreme(aggregate, t, order)
            }
        };
        if replace {
            let value = new.to_value(t).ok_or_else(lost)?;
            keep_extreme(place, value, account)?;
        }
    }
    Ok(())
}

fn keep_extreme(
    place: &mut Option<Value>,
    value: Value,
    account: &mut Account,
) -> Result<(), Failure> {
    account.take_beyond(value.heap_bytes())?;
    if let Some(old) = place.replace(value) {
        account.give(old.heap_bytes());
    }
    Ok(())
}

/// Clears the group of rows that an aggregate does not see.
fn leave_out(groups: &mut [u32], unseen: impl Fn(usize) -> bool) {
    for (row, group) in groups.iter_mut().enumerate() {
        if unseen(row) {
            *group = NO_GROUP;
        }
    }
}

/// Returns the first failure of a row that has a group.
fn none_failed(column: &Column, groups: &[u32]) -> Result<(), Failure> {
    for (row, failure) in &column.failures {
        // A failed constant fails for every row.
        let counted = match column.is_constant() {
            true => groups.iter().any(|g| *g != NO_GROUP),
            false => groups.get(*row as usize).is_some_and(|g| *g != NO_GROUP),
        };
        if counted {
            return Err(failure.clone());
        }
    }
    Ok(())
}

/// Updates the state of a group in the side table.
fn change_aside(
    aside: &mut BTreeMap<u32, AggregateState>,
    group: u32,
    account: &mut Account,
    change: impl FnOnce(&mut AggregateState) -> Result<(), Error>,
) -> Result<(), Failure> {
    let state = match aside.entry(group) {
        Entry::Occupied(place) => place.into_mut(),
        Entry::Vacant(place) => {
            account.take_beyond(ASIDE_BYTES)?;
            place.insert(AggregateState::new(Aggregate::Sum, TypeCode::Numeric)?)
        }
    };
    let before = state.heap_bytes();
    change(state)?;
    account.give(before);
    account.take_beyond(state.heap_bytes())?;
    Ok(())
}

/// The order of values that can be compared in stored form.
#[inline]
fn quick_order(t: TypeCode, a: &Scalar<'_>, b: &Scalar<'_>) -> Option<Ordering> {
    match (a, b) {
        (Scalar::Int(a), Scalar::Int(b)) => Some(a.cmp(b)),
        (Scalar::Float(a), Scalar::Float(b)) => Some(order_floats(*a, *b)),
        (Scalar::Scaled(a, x), Scalar::Scaled(b, y)) if x == y => Some(a.cmp(b)),
        (Scalar::Bytes(a), Scalar::Bytes(b)) if t == TypeCode::Text => Some(a.cmp(b)),
        _ => None,
    }
}
