//! Casts: those of `pg_cast`, and casts through text.

use crate::calendar::infinite;
use crate::datetime::arith;
use crate::error::{no_such_operation, out_of_range};
use crate::{Env, Error, Interval, Numeric, Result, Value, float, integer, io, json, text};
use contract::TypeCode;

/// `v::ret`, without type modifier.
pub(crate) fn cast(v: &Value, ret: TypeCode, env: &Env) -> Result<Value> {
    use TypeCode as T;
    if v.type_code() == ret.stored() {
        return Ok(v.clone());
    }
    match (v, ret) {
        (Value::Bool(b), T::Int4) => Ok(Value::Int4(i32::from(*b))),
        (Value::Int4(n), T::Bool) => Ok(Value::Bool(*n != 0)),
        (Value::Bool(b), T::Text | T::Varchar | T::Bpchar) => {
            string(if *b { b"true" } else { b"false" }, ret)
        }
        (Value::Int2(_) | Value::Int4(_) | Value::Int8(_), _) => from_int(v, ret, env),
        (Value::Float4(_) | Value::Float8(_), T::Int2 | T::Int4 | T::Int8) => {
            let x = v.widen().ok_or_else(no_such_operation)?;
            float_to_int(x, ret)
        }
        (Value::Float4(x), T::Float8) => Ok(Value::Float8(f64::from(*x))),
        (Value::Float8(x), T::Float4) => float::to_f32(*x).map(Value::Float4),
        (Value::Float4(x), T::Numeric) => Numeric::from_f32(*x).map(Value::Numeric),
        (Value::Float8(x), T::Numeric) => Numeric::from_f64(*x).map(Value::Numeric),
        (Value::Numeric(n), T::Int2 | T::Int4 | T::Int8) => {
            let name = integer::name(ret);
            integer::narrow(i128::from(n.to_integer(name)?), ret)
        }
        (Value::Numeric(n), T::Float4) => n.to_f32().map(Value::Float4),
        (Value::Numeric(n), T::Float8) => n.to_f64().map(Value::Float8),
        (Value::Bpchar(s), T::Text | T::Varchar) => Ok(Value::Text(text::trim_blanks(s).into())),
        (Value::Text(s), T::Bpchar) => Ok(Value::Bpchar(s.clone())),
        (Value::Text(s) | Value::Bpchar(s), _) => io::parse_text(ret, -1, s, env),
        (_, T::Text | T::Varchar | T::Bpchar) => string(&io::format_text(v, env), ret),
        (Value::Json(_) | Value::Jsonb(_), _) => match json::cast(v, ret)? {
            n @ Value::Numeric(_) => cast(&n, ret, env),
            other => Ok(other),
        },
        _ => datetime(v, ret, env),
    }
}

fn string(s: &[u8], ret: TypeCode) -> Result<Value> {
    Ok(if ret == TypeCode::Bpchar {
        Value::Bpchar(s.into())
    } else {
        Value::Text(s.into())
    })
}

fn from_int(v: &Value, ret: TypeCode, env: &Env) -> Result<Value> {
    let n = integer::widen(v).ok_or_else(no_such_operation)?;
    Ok(match ret {
        TypeCode::Int2 | TypeCode::Int4 | TypeCode::Int8 => {
            return integer::narrow(i128::from(n), ret);
        }
        TypeCode::Float4 => Value::Float4(n as f32),
        TypeCode::Float8 => Value::Float8(n as f64),
        TypeCode::Numeric => Value::Numeric(Numeric::from_i64(n)),
        TypeCode::Text | TypeCode::Varchar | TypeCode::Bpchar => {
            return string(&io::format_text(v, env), ret);
        }
        _ => return Err(no_such_cast()),
    })
}

/// Rounds half to even, then checks the range.
fn float_to_int(x: f64, ret: TypeCode) -> Result<Value> {
    let r = x.round_ties_even();
    // Within ±2^63 the cast is exact; NaN fails the test.
    if r.abs() <= 9_223_372_036_854_775_808.0 {
        integer::narrow(r as i128, ret)
    } else {
        Err(out_of_range(integer::name(ret)))
    }
}

fn datetime(v: &Value, ret: TypeCode, env: &Env) -> Result<Value> {
    use TypeCode as T;
    Ok(match (v, ret) {
        (Value::Date(d), T::Timestamp) => Value::Timestamp(arith::date_to_timestamp(*d)?),
        (Value::Date(d), T::Timestamptz) => {
            Value::Timestamptz(arith::date_to_timestamptz(*d, env)?)
        }
        (Value::Timestamp(t), T::Date) => Value::Date(arith::timestamp_to_date(*t)?),
        (Value::Timestamptz(t), T::Date) => Value::Date(arith::timestamptz_to_date(*t, env)?),
        (Value::Timestamp(t), T::Timestamptz) => {
            Value::Timestamptz(arith::timestamp_to_timestamptz(*t, env)?)
        }
        (Value::Timestamptz(t), T::Timestamp) => {
            Value::Timestamp(arith::timestamptz_to_timestamp(*t, env)?)
        }
        (Value::Timestamp(t) | Value::Timestamptz(t), T::Time) if infinite(*t) => {
            return Err(Error::null());
        }
        (Value::Timestamp(t), T::Time) => Value::Time(arith::timestamp_to_time(*t)),
        (Value::Timestamptz(t), T::Time) => Value::Time(arith::local(*t, env).0.time()),
        (Value::Time(t), T::Interval) => Value::Interval(Interval {
            months: 0,
            days: 0,
            micros: *t,
        }),
        (Value::Interval(i), T::Time) => Value::Time(arith::time_add(0, i.micros)),
        _ => return Err(no_such_cast()),
    })
}

fn no_such_cast() -> Error {
    Error::new(b"42846", "cannot cast between these types")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{format_text, parse_text};

    fn to(v: &Value, ret: TypeCode) -> String {
        let env = Env::default();
        match cast(v, ret, &env) {
            Ok(v) => String::from_utf8(format_text(&v, &env)).unwrap(),
            Err(e) => e.sqlstate_str().into(),
        }
    }

    /// Floats round half to even, numerics half away from zero.
    #[test]
    fn numbers() {
        let numeric = |s: &str| Value::Numeric(Numeric::parse(s.as_bytes(), -1).unwrap());
        assert_eq!(to(&Value::Float8(2.5), TypeCode::Int4), "2");
        assert_eq!(to(&numeric("2.5"), TypeCode::Int4), "3");
        assert_eq!(to(&Value::Float8(2147483647.5), TypeCode::Int4), "22003");
        assert_eq!(
            to(&Value::Float8(9223372036854775808.0), TypeCode::Int8),
            "22003"
        );
        assert_eq!(to(&Value::Float8(f64::NAN), TypeCode::Int4), "22003");
        assert_eq!(to(&numeric("NaN"), TypeCode::Int4), "0A000");
        assert_eq!(to(&Value::Float8(0.1 + 0.2), TypeCode::Numeric), "0.3");
        assert_eq!(to(&Value::Float4(1e10), TypeCode::Numeric), "10000000000");
        assert_eq!(to(&numeric("1e400"), TypeCode::Float8), "22003");
        assert_eq!(to(&Value::Int4(70_000), TypeCode::Int2), "22003");
    }

    #[test]
    fn strings() {
        assert_eq!(to(&Value::Bool(true), TypeCode::Text), "true");
        assert_eq!(to(&Value::Bpchar((*b"ab  ").into()), TypeCode::Text), "ab");
        assert_eq!(to(&Value::Text((*b" 12 ").into()), TypeCode::Int4), "12");
        assert_eq!(to(&Value::Text((*b"x").into()), TypeCode::Int4), "22P02");
        assert_eq!(to(&Value::Uuid([0; 16]), TypeCode::Int4), "42846");
    }

    #[test]
    fn dates() {
        let env = Env::default();
        let ts = |s: &str| parse_text(TypeCode::Timestamp, -1, s.as_bytes(), &env).unwrap();
        assert_eq!(to(&ts("1999-12-31 23:59:59"), TypeCode::Date), "1999-12-31");
        assert_eq!(to(&ts("1999-12-31 23:59:59"), TypeCode::Time), "23:59:59");
        assert_eq!(to(&ts("-infinity"), TypeCode::Date), "-infinity");
        assert_eq!(to(&ts("infinity"), TypeCode::Time), "00000");
        let span = Value::Interval(Interval {
            months: 1,
            days: 1,
            micros: -1,
        });
        assert_eq!(to(&span, TypeCode::Time), "23:59:59.999999");
    }
}
