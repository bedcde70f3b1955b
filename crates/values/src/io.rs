//! Text and binary formats of all types, and type modifiers.

use crate::{Env, Error, Result, Value};
use contract::TypeCode;

fn todo<T>() -> Result<T> {
    Err(Error::new(b"0A000", "not implemented"))
}

/// The type's input function. `typmod` is PostgreSQL's (-1: none).
pub fn parse_text(t: TypeCode, typmod: i32, s: &[u8], env: &Env) -> Result<Value> {
    let _ = (t, typmod, s, env);
    todo()
}

/// The type's output function.
pub fn format_text(v: &Value, env: &Env) -> Vec<u8> {
    let _ = (v, env);
    Vec::new()
}

/// The type's receive function.
pub fn decode_binary(t: TypeCode, typmod: i32, b: &[u8]) -> Result<Value> {
    let _ = (t, typmod, b);
    todo()
}

/// The type's send function.
pub fn encode_binary(v: &Value) -> Vec<u8> {
    let _ = v;
    Vec::new()
}

/// The type's length coercion: as a cast written in the statement does if
/// `explicit`, else as an assignment does.
pub fn apply_typmod(v: Value, t: TypeCode, typmod: i32, explicit: bool) -> Result<Value> {
    let _ = (v, t, typmod, explicit);
    todo()
}
