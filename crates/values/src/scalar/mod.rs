//! Implements the operations with codes from 100 on.
//!
//! Arguments have the types in the catalog; anything else is 42883.
//!
//! Invariant: results, and the SQLSTATE of errors, are the same as PostgreSQL's on plain values.

mod bytes;
mod documents;
mod fields;
mod format;
mod format_number;
mod from_format;
mod from_number;
mod hash;
mod items;
mod keywords;
mod layout;
mod math;
mod regex_functions;
mod strings;
mod times;

use crate::error::no_such_operation;
use crate::{Env, Result, Value, json};
use contract::{Op, TypeCode};

/// Evaluates an operation that is in the list.
pub(crate) fn apply(op: Op, ret: TypeCode, args: &[&Value], env: &Env) -> Result<Value> {
    match op as u16 {
        100..=106 | 112..=117 => strings::apply(op, args),
        107..=111 | 118..=126 => bytes::apply(op, args),
        130..=141 => regex_functions::apply(op, args),
        150..=190 => math::apply(op, args),
        200..=212 => times::apply(op, ret, args, env),
        213..=216 => formatted(op, args, env),
        220..=223 => items::apply(op, args, env),
        217..=219 | 224..=225 | 227..=239 | 252..=254 => json::apply(op, args),
        240..=250 => documents::apply(op, ret, args, env),
        _ => Err(no_such_operation()),
    }
}

/// `to_char` and its like.
fn formatted(op: Op, args: &[&Value], env: &Env) -> Result<Value> {
    match (op, args) {
        (Op::ToTimestamp, [Value::Float8(seconds)]) => times::from_epoch(*seconds),
        (
            Op::ToChar,
            [
                v @ (Value::Timestamp(_) | Value::Timestamptz(_) | Value::Interval(_)),
                Value::Text(f),
            ],
        ) => format::to_char(v, f, env),
        (Op::ToChar, [v, Value::Text(f)]) => format_number::to_char(v, f),
        (Op::ToDate, [Value::Text(s), Value::Text(f)]) => from_format::to_date(s, f),
        (Op::ToTimestamp, [Value::Text(s), Value::Text(f)]) => from_format::to_timestamp(s, f, env),
        (Op::ToNumber, [Value::Text(s), Value::Text(f)]) => from_number::to_number(s, f),
        _ => Err(no_such_operation()),
    }
}

/// Whether a string matches a regular expression, optionally ignoring case.
pub(crate) use regex_functions::matches;

fn text(bytes: impl Into<Box<[u8]>>) -> Result<Value> {
    Ok(Value::Text(bytes.into()))
}

fn bytea(bytes: impl Into<Box<[u8]>>) -> Result<Value> {
    Ok(Value::Bytea(bytes.into()))
}

fn int4(n: usize) -> Result<Value> {
    i32::try_from(n)
        .map(Value::Int4)
        .map_err(|_| crate::error::out_of_range("integer"))
}
