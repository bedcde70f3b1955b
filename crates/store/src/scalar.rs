//! A borrowed view of a stored value, without allocation or copy.

use contract::TypeCode;
use std::borrow::Cow;
use std::fmt;
use values::{Interval, Numeric, Value};

/// A value that is not NULL. Its type is known from the context.
pub enum Scalar<'a> {
    /// `bool` (0, 1), integers, `date`, `time`, `timestamp`, `timestamptz`
    Int(i64),
    /// `float4`, `float8`
    Float(f64),
    /// `numeric` as an integer in units of 10^-scale, with that display scale
    Scaled(i64, u16),
    /// any other `numeric`
    Numeric(Cow<'a, Numeric>),
    /// strings and `bytea`
    Bytes(&'a [u8]),
    /// `interval`
    Interval(Interval),
    /// `uuid`
    Uuid([u8; 16]),
}

impl<'a> Scalar<'a> {
    /// The integer representation of a value, if its type has one.
    #[inline]
    pub fn int(value: &Value) -> Option<i64> {
        match value {
            Value::Bool(v) => Some(i64::from(*v)),
            Value::Int2(v) => Some(i64::from(*v)),
            Value::Int4(v) | Value::Date(v) => Some(i64::from(*v)),
            Value::Int8(v) | Value::Time(v) | Value::Timestamp(v) | Value::Timestamptz(v) => {
                Some(*v)
            }
            _ => None,
        }
    }

    /// A view of a value.
    #[inline]
    pub fn of(value: &'a Value) -> Scalar<'a> {
        match value {
            Value::Bool(v) => Scalar::Int(i64::from(*v)),
            Value::Int2(v) => Scalar::Int(i64::from(*v)),
            Value::Int4(v) | Value::Date(v) => Scalar::Int(i64::from(*v)),
            Value::Int8(v) | Value::Time(v) | Value::Timestamp(v) | Value::Timestamptz(v) => {
                Scalar::Int(*v)
            }
            Value::Float4(v) => Scalar::Float(f64::from(*v)),
            Value::Float8(v) => Scalar::Float(*v),
            Value::Numeric(n) => Scalar::of_numeric(n),
            Value::Text(b) | Value::Bpchar(b) | Value::Bytea(b) => Scalar::Bytes(b),
            Value::Json(b) | Value::Jsonb(b) => Scalar::Bytes(b),
            Value::Interval(v) => Scalar::Interval(*v),
            Value::Uuid(v) => Scalar::Uuid(*v),
        }
    }

    fn of_numeric(n: &'a Numeric) -> Scalar<'a> {
        match n.to_scaled(n.scale()) {
            Some(v) => Scalar::Scaled(v, n.scale()),
            None => Scalar::Numeric(Cow::Borrowed(n)),
        }
    }

    /// Converts to a value of a known type. `None` if it is not of that type.
    pub fn to_value(&self, t: TypeCode) -> Option<Value> {
        Some(match (self, t) {
            (Scalar::Int(v), _) => return int_value(*v, t),
            (Scalar::Float(v), TypeCode::Float4) => Value::Float4(*v as f32),
            (Scalar::Float(v), TypeCode::Float8) => Value::Float8(*v),
            (Scalar::Scaled(v, scale), TypeCode::Numeric) => {
                Value::Numeric(Numeric::from_scaled(*v, *scale))
            }
            (Scalar::Numeric(n), TypeCode::Numeric) => Value::Numeric(n.as_ref().clone()),
            (Scalar::Bytes(b), TypeCode::Text | TypeCode::Varchar) => Value::Text(Box::from(*b)),
            (Scalar::Bytes(b), TypeCode::Bpchar) => Value::Bpchar(Box::from(*b)),
            (Scalar::Bytes(b), TypeCode::Bytea) => Value::Bytea(Box::from(*b)),
            (Scalar::Bytes(b), TypeCode::Json) => Value::Json(Box::from(*b)),
            (Scalar::Bytes(b), TypeCode::Jsonb) => Value::Jsonb(Box::from(*b)),
            (Scalar::Interval(v), TypeCode::Interval) => Value::Interval(*v),
            (Scalar::Uuid(v), TypeCode::Uuid) => Value::Uuid(*v),
            _ => return None,
        })
    }
}

/// A value of a type that is stored as an integer.
#[inline]
pub fn int_value(v: i64, t: TypeCode) -> Option<Value> {
    Some(match t {
        TypeCode::Bool => Value::Bool(v != 0),
        TypeCode::Int2 => Value::Int2(i16::try_from(v).ok()?),
        TypeCode::Int4 => Value::Int4(i32::try_from(v).ok()?),
        TypeCode::Date => Value::Date(i32::try_from(v).ok()?),
        TypeCode::Int8 => Value::Int8(v),
        TypeCode::Time => Value::Time(v),
        TypeCode::Timestamp => Value::Timestamp(v),
        TypeCode::Timestamptz => Value::Timestamptz(v),
        _ => return None,
    })
}

impl fmt::Debug for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scalar(..)")
    }
}
