//! Order and tests.

use crate::{Env, Error, Result, Value};
use contract::Op;
use std::cmp::Ordering;

/// PostgreSQL's B-tree order.
pub fn compare(a: &Value, b: &Value, env: &Env) -> Result<Ordering> {
    let _ = (a, b, env);
    Err(Error::new(b"0A000", "not implemented"))
}

/// Evaluates an operation that gives a boolean of two values.
pub fn test(op: Op, a: &Value, b: &Value, env: &Env) -> Result<bool> {
    let _ = (op, a, b, env);
    Err(Error::new(b"0A000", "not implemented"))
}
