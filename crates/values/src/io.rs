//! Text and binary formats of all types, and type modifiers.

use crate::datetime::{self, format, interval, parse, with_precision};
use crate::scan::Reader;
use crate::{Env, Error, Interval, Numeric, Result, Value, float, integer, json, text};
use contract::TypeCode;

/// The type's input function. `typmod` is PostgreSQL's (-1: none).
pub fn parse_text(t: TypeCode, typmod: i32, s: &[u8], env: &Env) -> Result<Value> {
    parse(t, typmod, s, env).map_err(|error| error.of(t))
}

fn parse(t: TypeCode, typmod: i32, s: &[u8], env: &Env) -> Result<Value> {
    text::check_utf8(s)?;
    Ok(match t {
        TypeCode::Bool => Value::Bool(text::parse_bool(s)?),
        TypeCode::Int2 | TypeCode::Int4 | TypeCode::Int8 => integer::parse(s, t)?,
        TypeCode::Float4 => Value::Float4(float::parse_f32(s)?),
        TypeCode::Float8 => Value::Float8(float::parse_f64(s)?),
        TypeCode::Numeric => Value::Numeric(Numeric::parse(s, typmod)?),
        TypeCode::Text => Value::Text(s.into()),
        TypeCode::Varchar => Value::Text(text::varchar(s.into(), typmod, false)?),
        TypeCode::Bpchar => Value::Bpchar(text::bpchar(s.into(), typmod, false)?),
        TypeCode::Bytea => Value::Bytea(text::parse_bytea(s)?),
        TypeCode::Date => Value::Date(parse::date(s, env)?),
        TypeCode::Time => {
            return apply_typmod(Value::Time(parse::time_of_day(s, env)?), t, typmod, false);
        }
        TypeCode::Timestamp => {
            return apply_typmod(
                Value::Timestamp(parse::timestamp(s, env)?),
                t,
                typmod,
                false,
            );
        }
        TypeCode::Timestamptz => {
            return apply_typmod(
                Value::Timestamptz(parse::timestamptz(s, env)?),
                t,
                typmod,
                false,
            );
        }
        TypeCode::Interval => Value::Interval(interval::parse(s, typmod, env)?),
        TypeCode::Uuid => Value::Uuid(text::parse_uuid(s)?),
        TypeCode::Json => {
            json::check(s)?;
            Value::Json(s.into())
        }
        TypeCode::Jsonb => Value::Jsonb(json::canonical(s)?),
    })
}

/// The same as [`format_text`], of a value that is not needed any more: what is text is not copied.
pub fn into_text(v: Value, env: &Env) -> Vec<u8> {
    match v {
        Value::Text(s) | Value::Bpchar(s) | Value::Json(s) | Value::Jsonb(s) => s.into_vec(),
        other => format_text(&other, env),
    }
}

/// The type's output function.
pub fn format_text(v: &Value, env: &Env) -> Vec<u8> {
    let text = match v {
        Value::Text(s) | Value::Bpchar(s) | Value::Json(s) | Value::Jsonb(s) => return s.to_vec(),
        Value::Bool(b) => if *b { "t" } else { "f" }.to_string(),
        Value::Int2(n) => n.to_string(),
        Value::Int4(n) => n.to_string(),
        Value::Int8(n) => n.to_string(),
        Value::Float4(x) => float::format(*x, env.extra_float_digits),
        Value::Float8(x) => float::format(*x, env.extra_float_digits),
        Value::Numeric(n) => n.to_text(),
        Value::Bytea(b) if env.bytea_escape => return text::escape_bytea(b),
        Value::Bytea(b) => text::format_bytea(b),
        Value::Date(d) => format::date(*d, env),
        Value::Time(t) => format::time(*t),
        Value::Timestamp(t) => format::timestamp(*t, env),
        Value::Timestamptz(t) => format::timestamptz(*t, env),
        Value::Interval(i) => format::interval(i, env),
        Value::Uuid(u) => text::format_uuid(u),
    };
    text.into_bytes()
}

/// The type's receive function.
pub fn decode_binary(t: TypeCode, typmod: i32, b: &[u8]) -> Result<Value> {
    let mut r = Reader(b);
    let v = decode(t, typmod, &mut r)?;
    if r.0.is_empty() {
        Ok(v)
    } else {
        Err(Error::new(b"22P03", "incorrect binary data format"))
    }
}

fn decode(t: TypeCode, typmod: i32, r: &mut Reader<'_>) -> Result<Value> {
    Ok(match t {
        TypeCode::Bool => {
            let byte = r
                .take(1)
                .map_err(|_| Error::new(b"08P01", "no data left in message"))?;
            Value::Bool(byte != [0])
        }
        TypeCode::Int2 => Value::Int2(r.u16()? as i16),
        TypeCode::Int4 => Value::Int4(r.i32()?),
        TypeCode::Int8 => Value::Int8(r.i64()?),
        TypeCode::Float4 => Value::Float4(f32::from_be_bytes(r.array()?)),
        TypeCode::Float8 => Value::Float8(f64::from_be_bytes(r.array()?)),
        TypeCode::Numeric => Value::Numeric(Numeric::from_binary(r, typmod)?),
        TypeCode::Text | TypeCode::Varchar | TypeCode::Bpchar => {
            let s = r.take(r.0.len())?;
            text::check_utf8(s)?;
            match t {
                TypeCode::Bpchar => Value::Bpchar(text::bpchar(s.into(), typmod, false)?),
                TypeCode::Varchar => Value::Text(text::varchar(s.into(), typmod, false)?),
                _ => Value::Text(s.into()),
            }
        }
        TypeCode::Bytea => Value::Bytea(r.take(r.0.len())?.into()),
        TypeCode::Date => Value::Date(parse::check_date(r.i32()?)?),
        TypeCode::Time => {
            let t = r.i64()?;
            if !format::valid_time(t) {
                return Err(datetime::out_of_range("time"));
            }
            Value::Time(with_precision(t, typmod, "time")?)
        }
        TypeCode::Timestamp | TypeCode::Timestamptz => {
            let v = parse::check_timestamp(r.i64()?)?;
            let v = if t == TypeCode::Timestamp {
                Value::Timestamp(v)
            } else {
                Value::Timestamptz(v)
            };
            apply_typmod(v, t, typmod, false)?
        }
        TypeCode::Interval => {
            let (micros, days, months) = (r.i64()?, r.i32()?, r.i32()?);
            Value::Interval(interval::with_typmod(
                Interval {
                    months,
                    days,
                    micros,
                },
                typmod,
            )?)
        }
        TypeCode::Uuid => Value::Uuid(r.array()?),
        TypeCode::Json | TypeCode::Jsonb => return decode_json(t, r),
    })
}

/// The first byte of a `jsonb` in binary form; its text follows.
const JSONB_VERSION: u8 = 1;

fn decode_json(t: TypeCode, r: &mut Reader<'_>) -> Result<Value> {
    if t == TypeCode::Jsonb && r.take(1)? != [JSONB_VERSION] {
        return Err(Error::new(b"XX000", "unsupported jsonb version number"));
    }
    let s = r.take(r.0.len())?;
    parse(t, -1, s, &Env::default())
}

/// The type's send function.
pub fn encode_binary(v: &Value) -> Vec<u8> {
    match v {
        Value::Bool(b) => vec![u8::from(*b)],
        Value::Int2(n) => n.to_be_bytes().to_vec(),
        Value::Int4(n) | Value::Date(n) => n.to_be_bytes().to_vec(),
        Value::Int8(n) | Value::Time(n) | Value::Timestamp(n) | Value::Timestamptz(n) => {
            n.to_be_bytes().to_vec()
        }
        Value::Float4(x) => x.to_be_bytes().to_vec(),
        Value::Float8(x) => x.to_be_bytes().to_vec(),
        Value::Numeric(n) => {
            let mut out = Vec::new();
            n.to_binary(&mut out);
            out
        }
        Value::Text(s) | Value::Bpchar(s) | Value::Bytea(s) | Value::Json(s) => s.to_vec(),
        Value::Jsonb(s) => [&[JSONB_VERSION], &s[..]].concat(),
        Value::Interval(i) => {
            let mut out = i.micros.to_be_bytes().to_vec();
            out.extend_from_slice(&i.days.to_be_bytes());
            out.extend_from_slice(&i.months.to_be_bytes());
            out
        }
        Value::Uuid(u) => u.to_vec(),
    }
}

/// The type's length coercion: as a cast written in the statement does if
/// `explicit`, else as an assignment does.
pub fn apply_typmod(v: Value, t: TypeCode, typmod: i32, explicit: bool) -> Result<Value> {
    if typmod < 0 {
        return Ok(v);
    }
    fit(v, t, typmod, explicit).map_err(|error| error.of(t))
}

fn fit(v: Value, t: TypeCode, typmod: i32, explicit: bool) -> Result<Value> {
    Ok(match v {
        Value::Numeric(n) => Value::Numeric(n.with_typmod(typmod)?),
        Value::Text(s) if t == TypeCode::Varchar => {
            Value::Text(text::varchar(s, typmod, explicit)?)
        }
        Value::Bpchar(s) => Value::Bpchar(text::bpchar(s, typmod, explicit)?),
        Value::Time(t) => Value::Time(with_precision(t, typmod, "time")?),
        Value::Timestamp(t) if !crate::calendar::infinite(t) => {
            Value::Timestamp(with_precision(t, typmod, "timestamp")?)
        }
        Value::Timestamptz(t) if !crate::calendar::infinite(t) => {
            Value::Timestamptz(with_precision(t, typmod, "timestamp")?)
        }
        Value::Interval(i) => Value::Interval(interval::with_typmod(i, typmod)?),
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Binary values are checked like text: a hostile sender must not get a date
    /// into the store that no output function knows.
    #[test]
    fn binary_is_checked() {
        let state = |t, b: &[u8]| decode_binary(t, -1, b).unwrap_err().sqlstate;
        assert_eq!(state(TypeCode::Int4, &[0; 3]), *b"08P01");
        assert_eq!(state(TypeCode::Int4, &[0; 5]), *b"22P03");
        assert_eq!(
            state(TypeCode::Date, &(i32::MAX - 1).to_be_bytes()),
            *b"22008"
        );
        assert_eq!(
            state(TypeCode::Timestamp, &(i64::MAX - 1).to_be_bytes()),
            *b"22008"
        );
        assert_eq!(state(TypeCode::Time, &(-1i64).to_be_bytes()), *b"22008");
        assert_eq!(state(TypeCode::Text, b"\xff"), *b"22021");
        assert_eq!(state(TypeCode::Bpchar, b"a\0"), *b"22021");
        assert!(decode_binary(TypeCode::Date, -1, &i32::MAX.to_be_bytes()).is_ok());
    }

    #[test]
    fn precision() {
        let env = Env::default();
        let shown = |t, typmod, s: &str| {
            parse_text(t, typmod, s.as_bytes(), &env)
                .map(|v| format_text(&v, &env))
                .unwrap()
        };
        assert_eq!(shown(TypeCode::Time, 0, "23:59:59.5"), b"24:00:00");
        assert_eq!(
            shown(TypeCode::Timestamp, 2, "1999-12-31 23:59:59.996"),
            b"2000-01-01 00:00:00"
        );
        assert_eq!(
            shown(TypeCode::Timestamp, 0, "1999-12-31 23:59:59.5"),
            b"1999-12-31 23:59:59"
        );
        assert_eq!(shown(TypeCode::Timestamp, 0, "infinity"), b"infinity");
    }
}
