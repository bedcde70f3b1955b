//! Comparisons and operations that return booleans.

use crate::datetime::arith;
use crate::error::no_such_operation;
use crate::like::{Units, like};
use crate::{Env, Result, Value, integer, json, scalar, text};
use contract::Op;
use std::cmp::Ordering;

/// PostgreSQL's B-tree order within a family of types; 42883 between families.
pub fn compare(a: &Value, b: &Value, env: &Env) -> Result<Ordering> {
    if let Some(order) = compare_same(a, b) {
        return Ok(order);
    }
    if let (Some(x), Some(y)) = (integer::widen(a), integer::widen(b)) {
        return Ok(x.cmp(&y));
    }
    if let (Some(x), Some(y)) = (a.widen(), b.widen()) {
        return Ok(compare_floats(x, y));
    }
    Ok(match (a, b) {
        (Value::Date(d), Value::Timestamp(t)) => arith::cmp_date_timestamp(*d, *t),
        (Value::Timestamp(t), Value::Date(d)) => arith::cmp_date_timestamp(*d, *t).reverse(),
        (Value::Date(d), Value::Timestamptz(t)) => arith::cmp_date_timestamptz(*d, *t, env),
        (Value::Timestamptz(t), Value::Date(d)) => {
            arith::cmp_date_timestamptz(*d, *t, env).reverse()
        }
        (Value::Timestamp(a), Value::Timestamptz(b)) => {
            arith::cmp_timestamp_timestamptz(*a, *b, env)
        }
        (Value::Timestamptz(a), Value::Timestamp(b)) => {
            arith::cmp_timestamp_timestamptz(*b, *a, env).reverse()
        }
        _ => return Err(no_such_operation()),
    })
}

/// The order of two values of the same type.
pub(crate) fn compare_same(a: &Value, b: &Value) -> Option<Ordering> {
    Some(match (a, b) {
        (Value::Int4(x), Value::Int4(y)) => x.cmp(y),
        (Value::Int8(x), Value::Int8(y)) => x.cmp(y),
        (Value::Numeric(x), Value::Numeric(y)) => x.compare(y),
        (Value::Text(x), Value::Text(y)) => x.cmp(y),
        (Value::Bpchar(x), Value::Bpchar(y)) => text::trim_blanks(x).cmp(text::trim_blanks(y)),
        (Value::Date(x), Value::Date(y)) => x.cmp(y),
        (Value::Timestamp(x), Value::Timestamp(y)) => x.cmp(y),
        (Value::Timestamptz(x), Value::Timestamptz(y)) => x.cmp(y),
        (Value::Float8(x), Value::Float8(y)) => compare_floats(*x, *y),
        (Value::Float4(x), Value::Float4(y)) => compare_floats(f64::from(*x), f64::from(*y)),
        (Value::Bool(x), Value::Bool(y)) => x.cmp(y),
        (Value::Int2(x), Value::Int2(y)) => x.cmp(y),
        (Value::Bytea(x), Value::Bytea(y)) => x.cmp(y),
        (Value::Time(x), Value::Time(y)) => x.cmp(y),
        (Value::Interval(x), Value::Interval(y)) => x.linear().cmp(&y.linear()),
        (Value::Uuid(x), Value::Uuid(y)) => x.cmp(y),
        // What is stored has been parsed before.
        (Value::Jsonb(x), Value::Jsonb(y)) => match (json::parse(x), json::parse(y)) {
            (Ok(x), Ok(y)) => x.compare(&y),
            _ => x.cmp(y),
        },
        _ => return None,
    })
}

/// NaN equals itself and exceeds everything else; -0 equals 0.
fn compare_floats(x: f64, y: f64) -> Ordering {
    x.partial_cmp(&y)
        .unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()))
}

/// Evaluates an operation on two values that returns a boolean.
pub fn test(op: Op, a: &Value, b: &Value, env: &Env) -> Result<bool> {
    Ok(match op {
        Op::Lt => compare(a, b, env)?.is_lt(),
        Op::Le => compare(a, b, env)?.is_le(),
        Op::Eq => equal(a, b, env)?,
        Op::Ge => compare(a, b, env)?.is_ge(),
        Op::Gt => compare(a, b, env)?.is_gt(),
        Op::Ne => !equal(a, b, env)?,
        Op::Like => match_pattern(a, b, false)?,
        Op::NotLike => !match_pattern(a, b, false)?,
        Op::Ilike => match_pattern(a, b, true)?,
        Op::NotIlike => !match_pattern(a, b, true)?,
        Op::Regex => match_regex(a, b, false)?,
        Op::NotRegex => !match_regex(a, b, false)?,
        Op::RegexFold => match_regex(a, b, true)?,
        Op::NotRegexFold => !match_regex(a, b, true)?,
        Op::StartsWith => match (a, b) {
            (Value::Text(s), Value::Text(prefix)) => s.starts_with(prefix),
            (Value::Bpchar(s), Value::Text(prefix)) => text::trim_blanks(s).starts_with(prefix),
            _ => return Err(no_such_operation()),
        },
        Op::JsonContains | Op::JsonContained => match (a, b) {
            (Value::Jsonb(a), Value::Jsonb(b)) if op == Op::JsonContains => json::contains(a, b)?,
            (Value::Jsonb(a), Value::Jsonb(b)) => json::contains(b, a)?,
            _ => return Err(no_such_operation()),
        },
        Op::JsonThere => match (a, b) {
            (Value::Json(_), Value::Json(_)) => true,
            _ => return Err(no_such_operation()),
        },
        Op::JsonExists | Op::JsonExistsAny | Op::JsonExistsAll => match (a, b) {
            (Value::Jsonb(v), Value::Text(keys)) => json::exists(op, v, keys)?,
            _ => return Err(no_such_operation()),
        },
        _ => return Err(no_such_operation()),
    })
}

/// Strings of different lengths need not be compared.
fn equal(a: &Value, b: &Value, env: &Env) -> Result<bool> {
    match (a, b) {
        (Value::Text(x), Value::Text(y)) | (Value::Bytea(x), Value::Bytea(y)) => Ok(x == y),
        _ => Ok(compare(a, b, env)?.is_eq()),
    }
}

/// As in PostgreSQL, the trailing blanks of `char(n)` are significant.
fn match_pattern(s: &Value, pattern: &Value, fold: bool) -> Result<bool> {
    match (s, pattern) {
        (Value::Text(s) | Value::Bpchar(s), Value::Text(p)) if fold => like(
            &s.to_ascii_lowercase(),
            &p.to_ascii_lowercase(),
            Units::Utf8,
        ),
        (Value::Text(s) | Value::Bpchar(s), Value::Text(p)) => like(s, p, Units::Utf8),
        (Value::Bytea(s), Value::Bytea(p)) if !fold => like(s, p, Units::Bytes),
        _ => Err(no_such_operation()),
    }
}

/// Like [`match_pattern`], for a regular expression.
fn match_regex(s: &Value, pattern: &Value, fold: bool) -> Result<bool> {
    match (s, pattern) {
        (Value::Text(s) | Value::Bpchar(s), Value::Text(p)) => scalar::matches(s, p, fold),
        _ => Err(no_such_operation()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_text;
    use contract::TypeCode;

    fn v(t: TypeCode, s: &str) -> Value {
        parse_text(t, -1, s.as_bytes(), &Env::default()).unwrap()
    }

    #[test]
    fn families() {
        use TypeCode::*;
        let mut env = Env::default();
        env.set("TimeZone", "America/New_York").unwrap();
        for (a, b, order) in [
            (v(Int2, "-1"), v(Int8, "1"), Ordering::Less),
            (v(Float8, "NaN"), v(Float4, "Infinity"), Ordering::Greater),
            (v(Float8, "-0"), v(Float8, "0"), Ordering::Equal),
            (v(Float4, "0.1"), v(Float8, "0.1"), Ordering::Greater),
            (v(Text, "a"), v(Text, "B"), Ordering::Greater),
            (v(Text, "ab"), v(Text, "ab "), Ordering::Less),
            (v(Bpchar, "ab"), v(Bpchar, "ab "), Ordering::Equal),
            (
                v(Date, "2000-01-01"),
                v(Timestamp, "2000-01-01 00:00"),
                Ordering::Equal,
            ),
            (
                v(Date, "2000-01-01"),
                v(Timestamptz, "2000-01-01 05:00+00"),
                Ordering::Equal,
            ),
            (
                v(Date, "5000000-01-01"),
                v(Timestamp, "infinity"),
                Ordering::Less,
            ),
            (v(Interval, "1 mon"), v(Interval, "720:00"), Ordering::Equal),
            (v(Bool, "f"), v(Bool, "t"), Ordering::Less),
        ] {
            assert_eq!(compare(&a, &b, &env).unwrap(), order, "{a:?} {b:?}");
            assert_eq!(compare(&b, &a, &env).unwrap(), order.reverse());
        }
        let mixed = compare(&v(Int4, "1"), &v(Numeric, "1"), &env);
        assert_eq!(mixed.unwrap_err().sqlstate, *b"42883");
    }

    /// LIKE sees the blanks of char(n); comparison does not.
    #[test]
    fn padded_strings() {
        let env = Env::default();
        let padded = v(TypeCode::Bpchar, "ab  ");
        assert!(!test(Op::Like, &padded, &v(TypeCode::Text, "ab"), &env).unwrap());
        assert!(test(Op::Like, &padded, &v(TypeCode::Text, "ab__"), &env).unwrap());
        assert!(test(Op::Ilike, &padded, &v(TypeCode::Text, "AB%"), &env).unwrap());
        assert!(test(Op::Eq, &padded, &v(TypeCode::Bpchar, "ab"), &env).unwrap());
    }
}
