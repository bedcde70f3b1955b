//! Keyed hash, and the form of values that it is taken of.

use crate::{Value, json, text};
use siphasher::{sip::SipHasher24, sip128};
use std::hash::Hasher;

/// A keyed hash (SipHash-2-4): values that are equal within a family are equal
/// under it. Families are the integers, the floats, and each other type alone.
pub fn hash(v: &Value, key: &[u8; 16]) -> u64 {
    let mut h = SipHasher24::new_with_key(key);
    feed_value(v, &mut |bytes| h.write(bytes));
    h.finish()
}

/// A keyed hash of 128 bits (SipHash-2-4-128) of bytes and a number: who does not know the key
/// can neither find two that have one hash, nor compare hashes of different numbers. Of 2^30
/// forms two have one by chance with a probability of 2^-69.
pub fn token(form: &[u8], number: u64, key: &[u8; 16]) -> u128 {
    let mut h = sip128::SipHasher24::new_with_key(key);
    h.write(&number.to_le_bytes());
    h.write(form);
    sip128::Hasher128::finish128(&h).as_u128()
}

/// Appends a form of the value: two values of one type are equal exactly if their
/// forms are.
pub fn key(v: &Value, out: &mut Vec<u8>) {
    feed_value(v, &mut |bytes| out.extend_from_slice(bytes));
}

fn feed_value(v: &Value, h: &mut dyn FnMut(&[u8])) {
    match v {
        Value::Bool(b) => feed(h, 1, &[u8::from(*b)]),
        Value::Int2(n) => feed(h, 2, &i64::from(*n).to_le_bytes()),
        Value::Int4(n) => feed(h, 2, &i64::from(*n).to_le_bytes()),
        Value::Int8(n) => feed(h, 2, &n.to_le_bytes()),
        Value::Float4(x) => feed(h, 3, &float_bits(f64::from(*x))),
        Value::Float8(x) => feed(h, 3, &float_bits(*x)),
        Value::Numeric(n) => {
            h(&[4]);
            n.canonical(h);
        }
        Value::Text(s) => feed(h, 5, s),
        Value::Bpchar(s) => feed(h, 6, text::trim_blanks(s)),
        Value::Bytea(b) => feed(h, 7, b),
        Value::Date(d) => feed(h, 8, &d.to_le_bytes()),
        Value::Time(t) => feed(h, 9, &t.to_le_bytes()),
        Value::Timestamp(t) => feed(h, 10, &t.to_le_bytes()),
        Value::Timestamptz(t) => feed(h, 11, &t.to_le_bytes()),
        Value::Interval(i) => feed(h, 12, &i.linear().to_le_bytes()),
        Value::Uuid(u) => feed(h, 13, u),
        Value::Json(s) => feed(h, 14, s),
        Value::Jsonb(s) => {
            h(&[15]);
            if let Ok(node) = json::parse(s) {
                node.form(h);
            }
        }
    }
}

fn feed(h: &mut dyn FnMut(&[u8]), family: u8, bytes: &[u8]) {
    h(&[family]);
    h(bytes);
}

/// One form for all NaNs, and for both zeros.
fn float_bits(x: f64) -> [u8; 8] {
    let x = if x.is_nan() {
        f64::NAN
    } else if x == 0.0 {
        0.0
    } else {
        x
    };
    x.to_bits().to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interval, Numeric};

    const KEY: [u8; 16] = [7; 16];

    fn text(s: &str) -> Value {
        Value::Text(s.as_bytes().into())
    }

    /// Values that a hash join must bring together; different hashes lose rows.
    #[test]
    fn equal_values_have_equal_hashes() {
        let numeric = |s: &str| Value::Numeric(Numeric::parse(s.as_bytes(), -1).unwrap());
        let big = format!("1{}", "0".repeat(60));
        let pairs = [
            (Value::Int2(-5), Value::Int8(-5)),
            (Value::Float4(0.5), Value::Float8(0.5)),
            (Value::Float8(-0.0), Value::Float8(0.0)),
            (Value::Float8(f64::NAN), Value::Float8(-f64::NAN)),
            (numeric("1.50"), numeric("1.5")),
            (numeric("0.000"), numeric("0")),
            (numeric(&big), numeric(&format!("{big}.000"))),
            (numeric("7"), numeric(&format!("7.{}", "0".repeat(50)))),
            (
                Value::Bpchar((*b"ab  ").into()),
                Value::Bpchar((*b"ab").into()),
            ),
            (
                Value::Interval(Interval {
                    months: 1,
                    days: 0,
                    micros: 0,
                }),
                Value::Interval(Interval {
                    months: 0,
                    days: 30,
                    micros: 0,
                }),
            ),
        ];
        for (a, b) in pairs {
            assert_eq!(hash(&a, &KEY), hash(&b, &KEY), "{a:?}");
        }
        assert_ne!(hash(&text("a"), &KEY), hash(&text("b"), &KEY));
        assert_ne!(hash(&text("a"), &KEY), hash(&text("a"), &[8; 16]));
    }

    /// Tokens of two joins must not compare, nor those of two keys.
    #[test]
    fn tokens_depend_on_number_and_key() {
        assert_eq!(token(b"a", 1, &KEY), token(b"a", 1, &KEY));
        assert_ne!(token(b"a", 1, &KEY), token(b"b", 1, &KEY));
        assert_ne!(token(b"a", 1, &KEY), token(b"a", 2, &KEY));
        assert_ne!(token(b"a", 1, &KEY), token(b"a", 1, &[8; 16]));
    }
}
