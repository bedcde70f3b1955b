//! Conversions of values to what columns of the family `soft_` hold, and errors about them.
//!
//! Invariant: as in soft.rs.

use contract::soft::Column;
use contract::{Op, TypeCode};
use values::{Env, Numeric, Value};

use crate::Failure;

/// The modifier of the plain type.
pub(crate) fn modifier(column: Column) -> i32 {
    column
        .precision_and_scale()
        .map_or(-1, |(precision, scale)| {
            ((i32::from(precision) << 16) | i32::from(scale)) + 4
        })
}

/// Converts a value for storage in a column, like PostgreSQL.
pub(crate) fn assigned(column: Column, value: Value) -> Result<Value, Failure> {
    let value = match value.type_code() == column.code {
        true => value,
        false if converts(value.type_code(), column.code) => {
            values::apply(Op::Cast, column.code, 0, &[&value], &Env::default())?
        }
        false => return Err(other_type(column, value.type_code())),
    };
    Ok(values::apply_typmod(
        value,
        column.code,
        modifier(column),
        false,
    )?)
}

fn is_number(code: TypeCode) -> bool {
    matches!(
        code,
        TypeCode::Int2 | TypeCode::Int4 | TypeCode::Int8 | TypeCode::Numeric
    )
}

pub(crate) fn converts(from: TypeCode, to: TypeCode) -> bool {
    is_number(from) && is_number(to)
}

pub(crate) fn numeric(value: &Value) -> Result<Value, Failure> {
    if let Value::Numeric(_) = value {
        return Ok(value.clone());
    }
    Ok(values::apply(
        Op::Cast,
        TypeCode::Numeric,
        0,
        &[value],
        &Env::default(),
    )?)
}

/// `number` × 10^-`scale`.
pub(crate) fn decimal(number: i128, scale: usize) -> Result<Value, Failure> {
    let digits = format!("{:0>1$}", number.unsigned_abs(), scale + 1);
    let (whole, fraction) = digits
        .split_at_checked(digits.len() - scale)
        .ok_or_else(damaged)?;
    let sign = if number < 0 { "-" } else { "" };
    let text = match fraction {
        "" => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{fraction}"),
    };
    Ok(Value::Numeric(Numeric::parse(text.as_bytes(), -1)?))
}

pub(crate) fn damaged() -> Failure {
    Failure::new("XX001", "confide: a cell of the family soft_ does not open")
        .hint("It is damaged, or was encoded under another master key.")
}

pub(crate) fn other_type(column: Column, from: TypeCode) -> Failure {
    let (name, from) = (column.code.soft_name(), from.plain_name());
    Failure::new(
        "0A000",
        format!("confide: a value of type {from} meets a column of type {name}"),
    )
    .hint("Write it without a type, or with the column's plain type.")
}
