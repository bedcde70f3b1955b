//! A value as whole numbers that a solver can vary, and back.
//!
//! An integer, a date or a point in time is one number; a decimal its digits without the point,
//! whose place stays; a float its place among all floats; an interval its three units; a string
//! the code points of its characters, each as wide in UTF-8 as it was, bytes the bytes.
//!
//! Invariants: numbers of a value make the value again; numbers within [`Shape::bounds`] make a
//! value of the same type, of the same length, scale and width.

use contract::TypeCode;
use values::{Env, Interval, Value, parse_text};

/// How numbers make a value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// One number, of a type that is one.
    Whole(TypeCode),
    /// Digits after the point.
    Decimal(usize),
    /// A float4 or float8.
    Float(TypeCode),
    /// An interval.
    Span,
    /// Characters of text or bpchar.
    Characters(TypeCode),
    /// Bytes of bytea or uuid.
    Bytes(TypeCode),
    /// A value without a neighbour: NaN, an infinity.
    Fixed,
}

/// A value's kind and its numbers.
#[derive(Clone)]
pub struct Shape {
    /// How they make a value.
    pub kind: Kind,
    /// The numbers.
    pub numbers: Vec<i128>,
    value: Value,
}

/// Digits that a number here may have.
const DIGITS_MAX: usize = 36;

/// The place of a float among all: neighbours differ by one, and order is kept.
fn place(x: f64) -> i128 {
    let bits = i128::from(x.to_bits() & (u64::MAX >> 1));
    if x.is_sign_negative() { -bits } else { bits }
}

fn at_place(place: i128) -> f64 {
    let bits = u64::try_from(place.unsigned_abs()).unwrap_or(0);
    let x = f64::from_bits(bits);
    if place < 0 { -x } else { x }
}

/// As [`place`], of a float4.
fn place4(x: f32) -> i128 {
    let bits = i128::from(x.to_bits() & (u32::MAX >> 1));
    if x.is_sign_negative() { -bits } else { bits }
}

fn at_place4(place: i128) -> f32 {
    let x = f32::from_bits(u32::try_from(place.unsigned_abs()).unwrap_or(0));
    if place < 0 { -x } else { x }
}

fn decimal(text: &str) -> Option<(usize, i128)> {
    let scale = text.split_once('.').map_or(0, |(_, after)| after.len());
    let digits: String = text.chars().filter(|c| *c != '.').collect();
    if digits.len() > DIGITS_MAX {
        return None;
    }
    Some((scale, digits.parse().ok()?))
}

impl Shape {
    /// The shape of a value; none if this code does not vary such a one.
    #[must_use]
    pub fn of(value: &Value) -> Option<Shape> {
        let t = value.type_code();
        let one = |n: i64| (Kind::Whole(t), vec![i128::from(n)]);
        let (kind, numbers) = match value {
            Value::Bool(b) => one(i64::from(*b)),
            Value::Int2(n) => one(i64::from(*n)),
            Value::Int4(n) => one(i64::from(*n)),
            Value::Int8(n) | Value::Time(n) => one(*n),
            Value::Date(i32::MIN | i32::MAX) => (Kind::Fixed, Vec::new()),
            Value::Date(n) => one(i64::from(*n)),
            Value::Timestamp(i64::MIN | i64::MAX) | Value::Timestamptz(i64::MIN | i64::MAX) => {
                (Kind::Fixed, Vec::new())
            }
            Value::Timestamp(n) | Value::Timestamptz(n) => one(*n),
            Value::Float4(x) if x.is_finite() => (Kind::Float(t), vec![place4(*x)]),
            Value::Float8(x) if x.is_finite() => (Kind::Float(t), vec![place(*x)]),
            Value::Float4(_) | Value::Float8(_) => (Kind::Fixed, Vec::new()),
            Value::Numeric(n) if n.is_nan() || n.is_infinite() => (Kind::Fixed, Vec::new()),
            Value::Numeric(n) => {
                let (scale, number) = decimal(&n.to_text())?;
                (Kind::Decimal(scale), vec![number])
            }
            Value::Interval(i) => {
                let units = [i64::from(i.months), i64::from(i.days), i.micros];
                (Kind::Span, units.map(i128::from).to_vec())
            }
            Value::Text(s) | Value::Bpchar(s) => {
                let text = std::str::from_utf8(s).ok()?;
                let points = text.chars().map(|c| i128::from(u32::from(c)));
                (Kind::Characters(t), points.collect())
            }
            Value::Bytea(b) => (Kind::Bytes(t), b.iter().map(|b| i128::from(*b)).collect()),
            // Another document of the same shape is not looked for.
            Value::Json(_) | Value::Jsonb(_) => (Kind::Fixed, Vec::new()),
            Value::Uuid(b) => (Kind::Bytes(t), b.iter().map(|b| i128::from(*b)).collect()),
        };
        Some(Shape {
            kind,
            numbers,
            value: value.clone(),
        })
    }

    /// The value of other numbers; none if they are of no value of this shape.
    #[must_use]
    pub fn value(&self, numbers: &[i128]) -> Option<Value> {
        let one = numbers.first().copied();
        Some(match &self.kind {
            Kind::Fixed => self.value.clone(),
            Kind::Whole(t) => whole(*t, one?)?,
            Kind::Decimal(scale) => {
                let text = with_point(one?, *scale);
                parse_text(TypeCode::Numeric, -1, text.as_bytes(), &Env::default()).ok()?
            }
            Kind::Float(TypeCode::Float4) => Value::Float4(at_place4(one?)),
            Kind::Float(_) => Value::Float8(at_place(one?)),
            Kind::Span => match numbers {
                [months, days, micros] => Value::Interval(Interval {
                    months: i32::try_from(*months).ok()?,
                    days: i32::try_from(*days).ok()?,
                    micros: i64::try_from(*micros).ok()?,
                }),
                _ => return None,
            },
            Kind::Characters(t) => {
                let point = |n: &i128| char::from_u32(u32::try_from(*n).ok()?);
                let text: String = numbers.iter().map(point).collect::<Option<_>>()?;
                match t {
                    TypeCode::Bpchar => Value::Bpchar(text.into_bytes().into()),
                    _ => Value::Text(text.into_bytes().into()),
                }
            }
            Kind::Bytes(t) => {
                let bytes = numbers.iter().map(|n| u8::try_from(*n).ok());
                let bytes: Vec<u8> = bytes.collect::<Option<_>>()?;
                match t {
                    TypeCode::Uuid => Value::Uuid(bytes.try_into().ok()?),
                    _ => Value::Bytea(bytes.into()),
                }
            }
        })
    }

    /// What the number at a place may be: ranges.
    #[must_use]
    pub fn bounds(&self, at: usize) -> Vec<(i128, i128)> {
        let original = self.numbers.get(at).copied().unwrap_or(0);
        match &self.kind {
            Kind::Whole(t) => vec![whole_bounds(*t)],
            Kind::Decimal(_) => vec![(1 - 10_i128.pow(36), 10_i128.pow(36) - 1)],
            Kind::Float(TypeCode::Float4) => vec![(-place4(f32::MAX), place4(f32::MAX))],
            Kind::Float(_) => vec![(-place(f64::MAX), place(f64::MAX))],
            Kind::Span if at < 2 => vec![whole_bounds(TypeCode::Int4)],
            Kind::Span => vec![whole_bounds(TypeCode::Int8)],
            Kind::Characters(_) => as_wide(original),
            Kind::Bytes(_) => vec![(0, 255)],
            Kind::Fixed => vec![(original, original)],
        }
    }

    /// What else the number at a place may be, where the value shall look more like what it was:
    /// its sign, its number of digits or its exponent, its class of characters.
    #[must_use]
    pub fn alike(&self, at: usize) -> Vec<(i128, i128)> {
        let original = self.numbers.get(at).copied().unwrap_or(0);
        if let Kind::Characters(_) = self.kind {
            return class(original);
        }
        let size = original.unsigned_abs();
        let (low, high) = match &self.kind {
            _ if size == 0 => (0, 0),
            Kind::Bytes(_) => return vec![(original, original)],
            Kind::Float(t) => {
                let bits = if *t == TypeCode::Float4 { 23 } else { 52 };
                let exponent = size >> bits;
                (exponent << bits, ((exponent + 1) << bits) - 1)
            }
            _ => {
                let power = 10_u128.pow(size.ilog10());
                (power, power * 10 - 1)
            }
        };
        let number = |n: u128| i128::try_from(n).unwrap_or(i128::MAX);
        match original < 0 {
            true => vec![(-number(high), -number(low))],
            false => vec![(number(low), number(high))],
        }
    }
}

fn whole(t: TypeCode, n: i128) -> Option<Value> {
    let long = i64::try_from(n).ok()?;
    let int = i32::try_from(n).ok();
    Some(match t {
        TypeCode::Bool => Value::Bool(long != 0),
        TypeCode::Int2 => Value::Int2(i16::try_from(n).ok()?),
        TypeCode::Int4 => Value::Int4(int?),
        TypeCode::Date => Value::Date(int?),
        TypeCode::Time => Value::Time(long),
        TypeCode::Timestamp => Value::Timestamp(long),
        TypeCode::Timestamptz => Value::Timestamptz(long),
        _ => Value::Int8(long),
    })
}

fn whole_bounds(t: TypeCode) -> (i128, i128) {
    match t {
        TypeCode::Bool => (0, 1),
        TypeCode::Int2 => (i16::MIN.into(), i16::MAX.into()),
        TypeCode::Int4 => (i32::MIN.into(), i32::MAX.into()),
        // From 4713-11-24 BC, as PostgreSQL's.
        TypeCode::Date => (-2_451_545, 2_145_031_948),
        TypeCode::Time => (0, 86_400_000_000),
        TypeCode::Timestamp | TypeCode::Timestamptz => {
            (-211_813_488_000_000_000, 9_223_371_331_199_999_999)
        }
        _ => (i64::MIN.into(), i64::MAX.into()),
    }
}

/// Code points as wide in UTF-8 as this one.
fn as_wide(point: i128) -> Vec<(i128, i128)> {
    match point {
        ..0x20 => vec![(point, point), (0x20, 0x7e)],
        0x20..0x80 => vec![(0x20, 0x7e)],
        0x80..0x800 => vec![(0xa1, 0x7ff)],
        0x800..0x1_0000 => vec![(0x800, 0xd7ff), (0xe000, 0xfffd)],
        _ => vec![(0x1_0000, 0x10_ffff)],
    }
}

/// Characters of the kind of this one: small, capital, digit, blank, other, or as wide.
fn class(point: i128) -> Vec<(i128, i128)> {
    let byte = u8::try_from(point).unwrap_or(0x80);
    if byte == b' ' {
        return vec![(point, point)];
    }
    match byte {
        ..0x20 => vec![(point, point)],
        b'a'..=b'z' => vec![(0x61, 0x7a)],
        b'A'..=b'Z' => vec![(0x41, 0x5a)],
        b'0'..=b'9' => vec![(0x30, 0x39)],
        _ if byte.is_ascii() => vec![(0x21, 0x2f), (0x3a, 0x40), (0x5b, 0x60), (0x7b, 0x7e)],
        _ => as_wide(point),
    }
}

fn with_point(number: i128, scale: usize) -> String {
    let digits = format!("{:0>width$}", number.unsigned_abs(), width = scale + 1);
    let (whole, rest) = digits.split_at(digits.len() - scale);
    let sign = if number < 0 { "-" } else { "" };
    match rest {
        "" => format!("{sign}{whole}"),
        rest => format!("{sign}{whole}.{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call;

    /// A shape that loses something would make fake operands of another type or length.
    #[test]
    fn back_and_forth() {
        for (t, text) in [
            (TypeCode::Bool, "t"),
            (TypeCode::Int2, "-32768"),
            (TypeCode::Int8, "9223372036854775807"),
            (TypeCode::Float4, "-3.5e-40"),
            (TypeCode::Float8, "1.7976931348623157e+308"),
            (TypeCode::Float8, "NaN"),
            (TypeCode::Numeric, "-0.0012300"),
            (TypeCode::Numeric, "123456789012345678901234"),
            (TypeCode::Numeric, "Infinity"),
            (TypeCode::Text, "Żółć 日本 😀 a"),
            (TypeCode::Bpchar, "ab  "),
            (TypeCode::Bytea, "\\x00ff10"),
            (TypeCode::Date, "0044-03-15 BC"),
            (TypeCode::Date, "infinity"),
            (TypeCode::Time, "24:00:00"),
            (TypeCode::Timestamp, "2020-02-29 12:34:56.789"),
            (TypeCode::Interval, "-1 years +2 days -00:00:00.000001"),
            (TypeCode::Uuid, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ] {
            let value = call::value(t, text, &Env::default()).expect(text);
            let shape = Shape::of(&value).expect(text);
            let again = shape.value(&shape.numbers).expect(text);
            assert_eq!(call::text(&again), call::text(&value), "{text}");
            for (at, n) in shape.numbers.iter().enumerate() {
                for ranges in [shape.bounds(at), shape.alike(at)] {
                    assert!(
                        ranges.iter().any(|(low, high)| (low..=high).contains(&n)),
                        "{text}"
                    );
                }
            }
        }
    }
}
