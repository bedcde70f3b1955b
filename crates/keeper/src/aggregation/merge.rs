//! Merging the groups of parallel workers into the leader's aggregation.
//!
//! Invariants: as in [`super`]; within one pass a group contains the contributions of all merged
//! aggregations and all rows, or none. Groups that do not fit wait for the next pass.

use super::{Aggregation, NO_GROUP, lost, misfit};
use crate::fail::Failure;
use values::Env;

/// An aggregation that was handed over, and which of its groups have not been merged yet.
pub(super) struct Partial {
    aggregation: Aggregation,
    waiting: Vec<bool>,
}

impl Aggregation {
    /// Whether it can be handed over: all of its state must be in its groups.
    pub fn check_whole(&self) -> Result<(), Failure> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if self.returned_rows > 0 || self.fetched > 0 || !self.partials.is_empty() {
            return Err(
                misfit("An aggregation is handed over before all is in its groups.").into(),
            );
        }
        Ok(())
    }

    /// Makes every later request fail.
    pub fn fail(&mut self, failure: Failure) -> Failure {
        self.failure.get_or_insert(failure).clone()
    }

    /// Merges an aggregation that was handed over.
    pub fn merge(&mut self, other: Aggregation, env: &Env) -> Result<(), Failure> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if !self.plan.merges(&other.plan) {
            return Err(self.fail(misfit("An aggregation of another kind is merged.").into()));
        }
        let waiting = vec![true; other.groups.len()];
        let partial = Partial {
            aggregation: other,
            waiting,
        };
        self.take_in(partial, env)
    }

    /// Starts another pass with the groups that did not fit.
    pub fn next_pass(&mut self, env: &Env) -> Result<(), Failure> {
        let partials = std::mem::take(&mut self.partials);
        self.empty();
        for partial in partials {
            self.take_in(partial, env)?;
        }
        Ok(())
    }

    fn take_in(&mut self, mut partial: Partial, env: &Env) -> Result<(), Failure> {
        if let Err(failure) = self.take_groups(&mut partial, env) {
            return Err(self.fail(failure));
        }
        if partial.waiting.contains(&true) {
            self.partials.push(partial);
        }
        Ok(())
    }

    fn take_groups(&mut self, partial: &mut Partial, env: &Env) -> Result<(), Failure> {
        let Partial {
            aggregation: other,
            waiting,
        } = partial;
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.clear();
        self.groups.merge(
            &other.groups,
            waiting,
            &mut self.account,
            &mut self.full,
            &mut numbers,
        )?;
        for state in &mut self.states {
            state.grow(self.groups.len());
        }
        if self.states.len() != other.states.len() {
            return Err(lost());
        }
        for (state, other) in self.states.iter_mut().zip(&other.states) {
            state.merge(other, &numbers, env, &mut self.account)?;
        }
        for (waits, number) in waiting.iter_mut().zip(&numbers) {
            *waits &= *number == NO_GROUP;
        }
        self.numbers = numbers;
        Ok(())
    }
}
