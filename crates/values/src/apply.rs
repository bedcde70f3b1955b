//! Evaluates operations that give a value.

use crate::{Env, Error, Result, Value};
use contract::{Op, TypeCode};

/// Evaluates `op`, whose result is a value of type `ret`. Arguments are not null.
pub fn apply(op: Op, ret: TypeCode, immediate: i32, args: &[&Value], env: &Env) -> Result<Value> {
    let _ = (op, ret, immediate, args, env);
    Err(Error::new(b"0A000", "not implemented"))
}
