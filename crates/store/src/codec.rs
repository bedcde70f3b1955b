//! Values as bytes, for redo records and segments at rest. Compact, with one fixed format per type.
//! The bytes are sealed by whoever stores them.
//!
//! Integers and floats have the type's own width, little-endian. Strings are stored as they are. A
//! `numeric` is either 0, the scale as `u16` and the significant bytes of an integer in units of
//! 10^-scale, or 1 and PostgreSQL's binary format.
//!
//! Invariant: an encoded value decodes to an indistinguishable value; any other bytes decode to
//! some value or to none, without a panic.

use crate::data::significant;
use crate::scalar::Scalar;
use contract::TypeCode;
use std::borrow::Cow;
use values::{Interval, Value};

const SCALED: u8 = 0;
const BINARY: u8 = 1;

/// Size of all values of a type, if it is constant.
pub(crate) fn width(t: TypeCode) -> Option<usize> {
    Some(match t {
        TypeCode::Bool => 1,
        TypeCode::Int2 => 2,
        TypeCode::Int4 | TypeCode::Date | TypeCode::Float4 => 4,
        TypeCode::Int8 | TypeCode::Time | TypeCode::Timestamp | TypeCode::Timestamptz => 8,
        TypeCode::Float8 => 8,
        TypeCode::Interval | TypeCode::Uuid => 16,
        _ => return None,
    })
}

/// Appends the encoding of a value.
pub fn encode(value: &Scalar<'_>, t: TypeCode, out: &mut Vec<u8>) {
    match value {
        Scalar::Int(v) => {
            let bytes = v.to_le_bytes();
            out.extend_from_slice(bytes.get(..width(t).unwrap_or(8)).unwrap_or(&bytes));
        }
        Scalar::Float(v) if t == TypeCode::Float4 => {
            out.extend_from_slice(&(*v as f32).to_le_bytes());
        }
        Scalar::Float(v) => out.extend_from_slice(&v.to_le_bytes()),
        Scalar::Scaled(v, scale) => {
            out.push(SCALED);
            out.extend_from_slice(&scale.to_le_bytes());
            out.extend(v.to_le_bytes().iter().take(significant(*v)));
        }
        Scalar::Numeric(n) => {
            out.push(BINARY);
            let value = Value::Numeric(n.as_ref().clone());
            out.extend_from_slice(&values::encode_binary(&value));
        }
        Scalar::Bytes(b) => out.extend_from_slice(b),
        Scalar::Interval(v) => {
            out.extend_from_slice(&v.micros.to_le_bytes());
            out.extend_from_slice(&v.days.to_le_bytes());
            out.extend_from_slice(&v.months.to_le_bytes());
        }
        Scalar::Uuid(v) => out.extend_from_slice(v),
    }
}

/// Decodes a value of a type.
pub fn decode(t: TypeCode, bytes: &[u8]) -> Option<Scalar<'_>> {
    if width(t).is_some_and(|width| width != bytes.len()) {
        return None;
    }
    Some(match t {
        TypeCode::Bool
        | TypeCode::Int2
        | TypeCode::Int4
        | TypeCode::Date
        | TypeCode::Int8
        | TypeCode::Time
        | TypeCode::Timestamp
        | TypeCode::Timestamptz => Scalar::Int(integer(bytes)),
        TypeCode::Float4 => Scalar::Float(f64::from(f32::from_le_bytes(array(bytes)?))),
        TypeCode::Float8 => Scalar::Float(f64::from_le_bytes(array(bytes)?)),
        TypeCode::Numeric => return numeric(bytes),
        TypeCode::Text
        | TypeCode::Varchar
        | TypeCode::Bpchar
        | TypeCode::Bytea
        | TypeCode::Json
        | TypeCode::Jsonb => Scalar::Bytes(bytes),
        TypeCode::Interval => Scalar::Interval(Interval {
            micros: integer(bytes.get(..8)?),
            days: i32::from_le_bytes(array(bytes.get(8..12)?)?),
            months: i32::from_le_bytes(array(bytes.get(12..)?)?),
        }),
        TypeCode::Uuid => Scalar::Uuid(array(bytes)?),
    })
}

fn array<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

/// An integer of up to 8 bytes, sign-extended.
fn integer(bytes: &[u8]) -> i64 {
    let fill = match bytes.last() {
        Some(b) if *b & 0x80 != 0 => 0xff,
        _ => 0,
    };
    let mut whole = [fill; 8];
    for (to, from) in whole.iter_mut().zip(bytes) {
        *to = *from;
    }
    i64::from_le_bytes(whole)
}

fn numeric(bytes: &[u8]) -> Option<Scalar<'_>> {
    match bytes {
        [SCALED, low, high, rest @ ..] if rest.len() <= 8 => Some(Scalar::Scaled(
            integer(rest),
            u16::from_le_bytes([*low, *high]),
        )),
        [BINARY, rest @ ..] => match values::decode_binary(TypeCode::Numeric, -1, rest) {
            Ok(Value::Numeric(n)) => Some(Scalar::Numeric(Cow::Owned(n))),
            _ => None,
        },
        _ => None,
    }
}
