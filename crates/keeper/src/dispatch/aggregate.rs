//! Aggregates whose states are in the keeper: `AggregateStep`, `AggregateCombine`,
//! `AggregateFinal`. A state is stored in a slot of an arena; a failed state is poisoned and stays
//! so.

use super::Connection;
use crate::fail::{self, Failure};
use crate::provenance::UNKNOWN;
use catalog::AggregateSignature;
use contract::{Fid, body};
use grant::family;
use store::{Entry, Label, State, Window};
use values::{AggregateState, Env, Error, Value};

fn no_state() -> Failure {
    Error::new(b"42804", "confide: protected value is no aggregate's state").into()
}

/// The contents of a slot as a state.
fn state_of(entry: &mut Entry) -> Result<&mut State, Failure> {
    match entry {
        Entry::State(state) => Ok(state),
        Entry::Poison(error) => Err(Failure::inherited(error)),
        Entry::Empty => Err(store::no_such_value().into()),
        Entry::Null | Entry::Value(_) => Err(no_state()),
    }
}

fn step(
    entry: &mut Entry,
    signature: &AggregateSignature,
    new: bool,
    value: Option<&Value>,
    env: &Env,
) -> Result<(), Failure> {
    if new {
        *entry = Entry::State(Box::new(State {
            signature: signature.number,
            state: AggregateState::new(signature.aggregate, signature.input)?,
        }));
    }
    let state = state_of(entry)?;
    if state.signature != signature.number {
        return Err(no_state());
    }
    match value {
        Some(value) => Ok(state.state.step(value, env)?),
        None => Ok(()),
    }
}

fn combine(entry: &mut Entry, other: &State) -> Result<(), Failure> {
    let state = state_of(entry)?;
    if state.signature != other.signature {
        return Err(no_state());
    }
    Ok(state.state.combine(&other.state)?)
}

impl Connection {
    /// Updates a state in any arena of the session with something of this label. A failure poisons
    /// the state.
    fn change_state(
        &self,
        fid: Fid,
        label: Label,
        change: impl FnOnce(&mut Entry) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.space.with_arena(fid.partition(), |arena| {
            let mut window = arena.write();
            let marked = self.mark_state(&mut window, fid.slot(), label);
            window.update(fid.slot(), |entry| {
                let changed = marked.and_then(|()| change(entry));
                if let Err(failure) = &changed {
                    *entry = Entry::Poison(failure.error.clone());
                }
                changed
            })
        })??
    }

    /// Labels a state before something is added to it, if that is authorised.
    fn mark_state(&self, window: &mut Window, slot: u64, label: Label) -> Result<(), Failure> {
        if !self.is_bound() {
            return Ok(());
        }
        let before = window.label(slot).unwrap_or(UNKNOWN);
        let label = self.union(before, label)?;
        self.authorise(label, family::AGGREGATE)?;
        Ok(window.mark_state(slot, label)?)
    }

    pub(super) fn aggregate_step(&mut self, body: body::AggregateStep) -> Result<(), Failure> {
        let (state, new) = (body.state, body.new == 1);
        if new {
            self.space.own_arena(state.partition())?;
        }
        let label = self.operands(&[body.value])?.label;
        let operands = self.step_operands(body.aggregate, body.value);
        self.change_state(state, label, |entry| {
            let (signature, value) = operands?;
            step(entry, signature, new, value.as_ref(), &self.env)
        })
    }

    fn step_operands(
        &self,
        number: u16,
        value: Fid,
    ) -> Result<(&AggregateSignature, Option<Value>), Failure> {
        self.need_client()?;
        let signature = self.keeper.table.aggregate(number);
        let signature = signature.ok_or_else(fail::no_such_program)?;
        let value = self.space.value(value, Some(signature.input.stored()))?;
        Ok((signature, value))
    }

    pub(super) fn aggregate_combine(
        &mut self,
        body: body::AggregateCombine,
    ) -> Result<(), Failure> {
        let body::AggregateCombine { into, from } = body;
        // Only one lock at a time: the second state is copied.
        let label = self.operands(&[from])?.label;
        let other = self.need_client().map_err(Failure::from).and_then(|()| {
            self.space.with_arena(from.partition(), |arena| {
                match arena.read().get(from.slot())? {
                    Entry::State(state) => Ok(state.clone()),
                    Entry::Poison(error) => Err(Failure::inherited(error)),
                    _ => Err(no_state()),
                }
            })?
        });
        self.change_state(into, label, |entry| combine(entry, &*other?))
    }

    pub(super) fn aggregate_final(&mut self, body: body::AggregateFinal) -> Result<(), Failure> {
        let body::AggregateFinal { to, from } = body;
        let done = self
            .final_entry(from)
            .and_then(|(entry, label)| Ok(self.space.set(to, entry, label)?));
        if let Err(failure) = &done {
            self.space.poison(to, 1, failure);
        }
        done
    }

    fn final_entry(&self, from: Fid) -> Result<(Entry, Label), Failure> {
        self.need_client()?;
        self.space.with_arena(from.partition(), |arena| {
            let window = arena.read();
            let entry = match window.get(from.slot())? {
                Entry::State(state) if state.state.is_empty() => Entry::Null,
                Entry::State(state) => match state.state.finish() {
                    Ok(value) => Entry::Value(value),
                    Err(error) if error.is_null() => Entry::Null,
                    Err(error) => return Err(error.into()),
                },
                Entry::Poison(error) => return Err(Failure::inherited(error)),
                _ => return Err(no_state()),
            };
            let label = window.label(from.slot()).unwrap_or(UNKNOWN);
            Ok((entry, self.label_if_bound(label)))
        })?
    }
}
