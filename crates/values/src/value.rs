//! The value type: one variant for each stored type.
//!
//! Invariant: `Debug` prints the type only, never the content.

use crate::Numeric;
use contract::TypeCode;
use std::fmt;

/// A value that is not null. Text of `text` and `varchar` is valid UTF-8
/// without NUL; so is that of `bpchar`, blank-padded to its declared length.
#[derive(Clone)]
pub enum Value {
    /// `bool`
    Bool(bool),
    /// `int2`
    Int2(i16),
    /// `int4`
    Int4(i32),
    /// `int8`
    Int8(i64),
    /// `float4`
    Float4(f32),
    /// `float8`
    Float8(f64),
    /// `numeric`
    Numeric(Numeric),
    /// `text` and `varchar`
    Text(Box<[u8]>),
    /// `char(n)`
    Bpchar(Box<[u8]>),
    /// `bytea`
    Bytea(Box<[u8]>),
    /// `json`: its text
    Json(Box<[u8]>),
    /// `jsonb`: the text that its output function prints
    Jsonb(Box<[u8]>),
    /// `date`: days since 2000-01-01; `i32::MIN`, `i32::MAX` are the infinities
    Date(i32),
    /// `time`: microseconds since midnight, up to and including 24:00
    Time(i64),
    /// `timestamp`: microseconds since 2000-01-01; `i64::MIN`, `i64::MAX` are the infinities
    Timestamp(i64),
    /// `timestamptz`: microseconds since 2000-01-01 UTC; infinities as in `timestamp`
    Timestamptz(i64),
    /// `interval`
    Interval(Interval),
    /// `uuid`
    Uuid([u8; 16]),
}

/// A span of time, in PostgreSQL's three independent units.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Interval {
    /// Months, years included.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds, hours included.
    pub micros: i64,
}

impl Value {
    /// The value of any float type.
    pub(crate) fn widen(&self) -> Option<f64> {
        match *self {
            Value::Float4(x) => Some(f64::from(x)),
            Value::Float8(x) => Some(x),
            _ => None,
        }
    }

    /// The type under which the value is stored (`Text` for `varchar`).
    pub fn type_code(&self) -> TypeCode {
        match self {
            Value::Bool(_) => TypeCode::Bool,
            Value::Int2(_) => TypeCode::Int2,
            Value::Int4(_) => TypeCode::Int4,
            Value::Int8(_) => TypeCode::Int8,
            Value::Float4(_) => TypeCode::Float4,
            Value::Float8(_) => TypeCode::Float8,
            Value::Numeric(_) => TypeCode::Numeric,
            Value::Text(_) => TypeCode::Text,
            Value::Bpchar(_) => TypeCode::Bpchar,
            Value::Bytea(_) => TypeCode::Bytea,
            Value::Json(_) => TypeCode::Json,
            Value::Jsonb(_) => TypeCode::Jsonb,
            Value::Date(_) => TypeCode::Date,
            Value::Time(_) => TypeCode::Time,
            Value::Timestamp(_) => TypeCode::Timestamp,
            Value::Timestamptz(_) => TypeCode::Timestamptz,
            Value::Interval(_) => TypeCode::Interval,
            Value::Uuid(_) => TypeCode::Uuid,
        }
    }

    /// Bytes that the value holds on the heap, besides its own size.
    #[inline]
    pub fn heap_bytes(&self) -> usize {
        match self {
            Value::Text(b)
            | Value::Bpchar(b)
            | Value::Bytea(b)
            | Value::Json(b)
            | Value::Jsonb(b) => b.len(),
            Value::Numeric(n) => n.heap_bytes(),
            _ => 0,
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.type_code().plain_name())
    }
}

impl fmt::Debug for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interval")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A larger value makes every batch of the keeper larger.
    #[test]
    fn value_is_small() {
        assert_eq!(size_of::<Value>(), 24);
    }

    /// Content in `Debug` output would end up in a log.
    #[test]
    fn debug_is_silent() {
        assert_eq!(format!("{:?}", Value::Int4(12345)), "int4");
        assert_eq!(
            format!("{:?}", Value::Text(Box::from(&b"secret"[..]))),
            "text"
        );
    }
}
