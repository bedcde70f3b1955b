//! Operations on booleans and NULL: AND, OR, NOT, IS NULL, SELECT.
//!
//! Invariant: a failure counts only if PostgreSQL, which evaluates from left to right and stops
//! early, would have reached it.

use super::column::{Column, Data};
use crate::fail::Failure;
use contract::TypeCode;
use contract::message::program;
use store::Scalar;

/// The contents of a row in a boolean column.
#[derive(Clone, Copy)]
enum Truth<'a> {
    Known(bool),
    Null,
    Failed(&'a Failure),
}

fn truth(column: &Column, row: usize) -> Truth<'_> {
    match column.failure(row) {
        Some(failure) => Truth::Failed(failure),
        None if column.is_null(row) => Truth::Null,
        None => Truth::Known(column.truth(row)),
    }
}

fn length(columns: &[&Column], rows: usize) -> usize {
    match columns.iter().all(|c| c.is_constant()) {
        true => 1,
        false => rows,
    }
}

fn booleans(rows: usize) -> Column {
    Column::of(TypeCode::Bool, Data::Bool(Vec::with_capacity(rows)))
}

/// AND or OR; `decides` is the operand value that determines the result alone.
pub fn connect(code: u8, a: &Column, b: &Column, rows: usize) -> Column {
    let decides = code == program::OR;
    let rows = length(&[a, b], rows);
    if let Some(fast) = connect_plain(decides, a, b, rows) {
        return fast;
    }
    let mut out = booleans(rows);
    for row in 0..rows {
        match (truth(a, row), truth(b, row)) {
            (Truth::Failed(f), _) => out.push_failure(f.clone()),
            (Truth::Known(x), _) if x == decides => out.push_truth(decides),
            (_, Truth::Failed(f)) => out.push_failure(f.clone()),
            (_, Truth::Known(x)) if x == decides => out.push_truth(decides),
            (Truth::Null, _) | (_, Truth::Null) => out.push_null(),
            _ => out.push_truth(!decides),
        }
    }
    out
}

/// Fast path without NULLs and failures.
fn connect_plain(decides: bool, a: &Column, b: &Column, rows: usize) -> Option<Column> {
    let (Data::Bool(x), Data::Bool(y)) = (&a.data, &b.data) else {
        return None;
    };
    if !a.nulls.is_empty() || !b.nulls.is_empty() || x.len() != rows || y.len() != rows {
        return None;
    }
    let pairs = x.iter().zip(y);
    let out = match decides {
        true => pairs.map(|(x, y)| x | y).collect(),
        false => pairs.map(|(x, y)| x & y).collect(),
    };
    Some(Column::of(TypeCode::Bool, Data::Bool(out)))
}

/// NOT.
pub fn not(a: &Column) -> Column {
    let mut out = booleans(a.len());
    for row in 0..a.len() {
        match truth(a, row) {
            Truth::Failed(f) => out.push_failure(f.clone()),
            Truth::Null => out.push_null(),
            Truth::Known(x) => out.push_truth(!x),
        }
    }
    out
}

/// Whether it is true, which NULL is not.
pub fn holds(a: &Column) -> Column {
    if let Data::Bool(v) = &a.data
        && a.failures.is_empty()
    {
        let plain = v.iter().enumerate();
        let out = match a.nulls.is_empty() {
            true => v.clone(),
            false => plain
                .map(|(row, x)| x & u8::from(!a.is_null(row)))
                .collect(),
        };
        return Column::of(TypeCode::Bool, Data::Bool(out));
    }
    let mut out = booleans(a.len());
    for row in 0..a.len() {
        match truth(a, row) {
            Truth::Failed(f) => out.push_failure(f.clone()),
            Truth::Null => out.push_truth(false),
            Truth::Known(x) => out.push_truth(x),
        }
    }
    out
}

/// Booleans known to the database: 0, 1, or 2 for NULL.
pub fn known(bytes: &[u8]) -> Column {
    let mut out = booleans(bytes.len());
    for byte in bytes {
        match byte {
            0 | 1 => out.push_truth(*byte == 1),
            _ => out.push_null(),
        }
    }
    out
}

/// IS NULL.
pub fn is_null(a: &Column) -> Column {
    let mut out = booleans(a.len());
    for row in 0..a.len() {
        match a.failure(row) {
            Some(f) => out.push_failure(f.clone()),
            None => out.push_truth(a.is_null(row)),
        }
    }
    out
}

/// For each row, the value of `yes` if the condition is true, otherwise that of `no`. Failures of
/// the other one do not count.
pub fn select(condition: &Column, yes: &Column, no: &Column, rows: usize) -> Column {
    let rows = length(&[condition, yes, no], rows);
    // A constant NULL has no type.
    let shape = if yes.is_constant() && yes.is_null(0) {
        no
    } else {
        yes
    };
    let mut out = Column::of(shape.t, like(shape, rows));
    for row in 0..rows {
        let from = match truth(condition, row) {
            Truth::Failed(f) => {
                out.push_failure(f.clone());
                continue;
            }
            Truth::Known(true) => yes,
            _ => no,
        };
        take(&mut out, from, row);
    }
    out
}

/// A copy of a column with an element for each row.
pub fn copy(column: &Column, rows: usize) -> Column {
    let mut out = Column::of(column.t, like(column, rows));
    for row in 0..rows {
        take(&mut out, column, row);
    }
    out
}

fn like(column: &Column, rows: usize) -> Data {
    match &column.data {
        Data::Bool(_) => Data::Bool(Vec::with_capacity(rows)),
        Data::Order(_) => Data::Order(Vec::with_capacity(rows)),
        Data::Hash(_) => Data::Hash(Vec::with_capacity(rows)),
        Data::Scaled(_, scale) => Data::Scaled(Vec::with_capacity(rows), *scale),
        _ => Data::for_type(column.t, rows),
    }
}

/// Appends a row of another column of the same kind.
fn take(out: &mut Column, from: &Column, row: usize) {
    if let Some(failure) = from.failure(row) {
        return out.push_failure(failure.clone());
    }
    if from.is_null(row) {
        return out.push_null();
    }
    let at = from.at(row);
    match (&mut out.data, &from.data) {
        (Data::Bool(to), Data::Bool(v)) => to.push(v.get(at).copied().unwrap_or(0)),
        (Data::Order(to), Data::Order(v)) => to.push(v.get(at).copied().unwrap_or(0)),
        (Data::Hash(to), Data::Hash(v)) => to.push(v.get(at).copied().unwrap_or(0)),
        _ => {
            let nothing = Scalar::Int(0);
            return out.push(from.scalar(row).as_ref().unwrap_or(&nothing));
        }
    }
    if !out.nulls.is_empty() {
        out.nulls.push(false);
    }
}
