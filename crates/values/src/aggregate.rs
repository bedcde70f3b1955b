//! Transition states of aggregates.

use crate::{Env, Error, Result, Value};
use contract::{Aggregate, TypeCode};

/// The state of one aggregate of one group.
#[derive(Clone, Debug)]
pub struct AggregateState {}

impl AggregateState {
    /// The empty state of `agg` over values of type `input`.
    pub fn new(agg: Aggregate, input: TypeCode) -> Result<AggregateState> {
        let _ = (agg, input);
        Err(Error::new(b"0A000", "not implemented"))
    }

    /// The type of the result of `agg` over values of type `input`.
    pub fn result_type(agg: Aggregate, input: TypeCode) -> Result<TypeCode> {
        let _ = (agg, input);
        Err(Error::new(b"0A000", "not implemented"))
    }

    /// Takes in a value that is not null.
    pub fn step(&mut self, v: &Value, env: &Env) -> Result<()> {
        let _ = (v, env);
        Ok(())
    }

    /// Takes in what another state of the same aggregate has seen.
    pub fn combine(&mut self, other: &AggregateState) -> Result<()> {
        let _ = other;
        Ok(())
    }

    /// Whether no value has been seen: the result is null then, and
    /// [`AggregateState::finish`] an error.
    pub fn is_empty(&self) -> bool {
        true
    }

    /// The result.
    pub fn finish(&self) -> Result<Value> {
        Err(Error::new(b"0A000", "not implemented"))
    }

    /// Bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        0
    }
}
