//! Evaluates operations that return a value: finds the function by operation and argument types.

use crate::datetime::{arith, extract};
use crate::error::{no_such_operation, too_large};
use crate::text::{self, End};
use crate::{Env, Interval, Numeric, Result, Value, cast, float, integer, io, like, scalar};
use contract::{Op, TypeCode, Unit};

/// Evaluates `op`, whose result is a value of type `ret`. Arguments are not null.
/// A result that is null is [`crate::Error::null`].
pub fn apply(op: Op, ret: TypeCode, immediate: i32, args: &[&Value], env: &Env) -> Result<Value> {
    if op as u16 >= Op::Initcap as u16 {
        return scalar::apply(op, ret, args, env);
    }
    match (op, args) {
        (Op::Cast, [v]) => cast::cast(v, ret, env),
        (Op::Typmod, [v]) => io::apply_typmod((*v).clone(), ret, immediate, false),
        (Op::TypmodExplicit, [v]) => io::apply_typmod((*v).clone(), ret, immediate, true),
        (Op::Extract, [v]) => extract::extract(unit(immediate)?, v, env),
        (Op::DatePart, [v]) => extract::date_part(unit(immediate)?, v, env),
        (Op::DateTrunc, [v]) => extract::date_trunc(unit(immediate)?, v, env),
        (
            Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Mod | Op::BitAnd | Op::BitOr | Op::BitXor,
            [a, b],
        ) => arithmetic(op, ret, a, b, env),
        (Op::ShiftLeft | Op::ShiftRight, [a, count]) => integer::shift(op, a, count),
        (Op::Round | Op::Trunc, [Value::Numeric(n), Value::Int4(digits)]) => {
            let r = if op == Op::Round {
                n.round(*digits)
            } else {
                n.trunc(*digits)
            };
            r.map(Value::Numeric)
        }
        (
            Op::Neg
            | Op::Plus
            | Op::Abs
            | Op::BitNot
            | Op::Round
            | Op::Trunc
            | Op::Ceil
            | Op::Floor
            | Op::Sign,
            [v],
        ) => unary(op, v),
        _ => string(op, args),
    }
}

fn unit(immediate: i32) -> Result<Unit> {
    u8::try_from(immediate)
        .ok()
        .and_then(Unit::from_u8)
        .ok_or_else(no_such_operation)
}

fn unary(op: Op, v: &Value) -> Result<Value> {
    match v {
        Value::Numeric(n) => numeric_unary(op, n).map(Value::Numeric),
        Value::Float8(x) => float::unary(op, *x).map(Value::Float8),
        // Exact: the results of these fit a float4.
        Value::Float4(x) => float::unary(op, f64::from(*x)).map(|y| Value::Float4(y as f32)),
        Value::Interval(i) if op == Op::Neg => i.checked_neg().map(Value::Interval),
        _ => integer::unary(op, v),
    }
}

fn numeric_unary(op: Op, n: &Numeric) -> Result<Numeric> {
    Ok(match op {
        Op::Neg => n.neg(),
        Op::Plus => n.clone(),
        Op::Abs => n.abs(),
        Op::Round => n.round(0)?,
        Op::Trunc => n.trunc(0)?,
        Op::Ceil => n.ceil()?,
        Op::Floor => n.floor()?,
        Op::Sign => n.sign(),
        _ => return Err(no_such_operation()),
    })
}

fn arithmetic(op: Op, ret: TypeCode, a: &Value, b: &Value, env: &Env) -> Result<Value> {
    if let (Value::Numeric(x), Value::Numeric(y)) = (a, b) {
        let r = match op {
            Op::Add => x.add(y),
            Op::Sub => x.sub(y),
            Op::Mul => x.mul(y),
            Op::Div => x.div(y),
            Op::Mod => x.rem(y),
            _ => Err(no_such_operation()),
        };
        return r.map(Value::Numeric);
    }
    if let (Some(x), Some(y)) = (integer::widen(a), integer::widen(b)) {
        return integer::binary(op, x, y, ret);
    }
    if let (Value::Float4(x), Value::Float4(y)) = (a, b) {
        return float::binary_f32(op, *x, *y).map(Value::Float4);
    }
    if let (Some(x), Some(y)) = (a.widen(), b.widen()) {
        return float::binary_f64(op, x, y).map(Value::Float8);
    }
    match op {
        Op::Add => datetime_add(a, b, env),
        Op::Sub => datetime_sub(a, b, env),
        Op::Mul => match (a, b) {
            (Value::Interval(i), Value::Float8(x)) | (Value::Float8(x), Value::Interval(i)) => {
                i.mul(*x).map(Value::Interval)
            }
            _ => Err(no_such_operation()),
        },
        Op::Div => match (a, b) {
            (Value::Interval(i), Value::Float8(x)) => i.div(*x).map(Value::Interval),
            _ => Err(no_such_operation()),
        },
        _ => Err(no_such_operation()),
    }
}

fn datetime_add(a: &Value, b: &Value, env: &Env) -> Result<Value> {
    use Value as V;
    Ok(match (a, b) {
        (V::Date(d), V::Int4(n)) | (V::Int4(n), V::Date(d)) => {
            V::Date(arith::date_add_days(*d, i64::from(*n))?)
        }
        (V::Date(d), V::Interval(i)) | (V::Interval(i), V::Date(d)) => {
            V::Timestamp(arith::add(arith::date_to_timestamp(*d)?, i)?)
        }
        (V::Date(d), V::Time(t)) | (V::Time(t), V::Date(d)) => {
            V::Timestamp(arith::date_add_time(*d, *t)?)
        }
        (V::Time(t), V::Interval(i)) | (V::Interval(i), V::Time(t)) => {
            V::Time(arith::time_add(*t, i.micros))
        }
        (V::Timestamp(t), V::Interval(i)) | (V::Interval(i), V::Timestamp(t)) => {
            V::Timestamp(arith::add(*t, i)?)
        }
        (V::Timestamptz(t), V::Interval(i)) | (V::Interval(i), V::Timestamptz(t)) => {
            V::Timestamptz(arith::add_tz(*t, i, env)?)
        }
        (V::Interval(x), V::Interval(y)) => V::Interval(x.checked_add(y)?),
        _ => return Err(no_such_operation()),
    })
}

fn datetime_sub(a: &Value, b: &Value, env: &Env) -> Result<Value> {
    use Value as V;
    Ok(match (a, b) {
        (V::Date(d), V::Int4(n)) => V::Date(arith::date_add_days(*d, -i64::from(*n))?),
        (V::Date(x), V::Date(y)) => V::Int4(arith::date_diff(*x, *y)?),
        (V::Date(d), V::Interval(i)) => V::Timestamp(arith::add(
            arith::date_to_timestamp(*d)?,
            &arith::opposite(i),
        )?),
        (V::Time(x), V::Time(y)) => V::Interval(Interval {
            months: 0,
            days: 0,
            micros: x.wrapping_sub(*y),
        }),
        (V::Time(t), V::Interval(i)) => V::Time(arith::time_sub(*t, i.micros)),
        (V::Timestamp(x), V::Timestamp(y)) | (V::Timestamptz(x), V::Timestamptz(y)) => {
            V::Interval(arith::diff(*x, *y)?)
        }
        (V::Timestamp(t), V::Interval(i)) => V::Timestamp(arith::add(*t, &arith::opposite(i))?),
        (V::Timestamptz(t), V::Interval(i)) => {
            V::Timestamptz(arith::add_tz(*t, &arith::opposite(i), env)?)
        }
        (V::Interval(x), V::Interval(y)) => V::Interval(x.checked_sub(y)?),
        _ => return Err(no_such_operation()),
    })
}

/// The bytes of a string as functions on `text` see them.
fn as_text(v: &Value) -> Option<&[u8]> {
    match v {
        Value::Text(s) => Some(s),
        Value::Bpchar(s) => Some(text::trim_blanks(s)),
        _ => None,
    }
}

fn int4(n: usize) -> Result<Value> {
    i32::try_from(n).map(Value::Int4).map_err(|_| too_large())
}

fn string(op: Op, args: &[&Value]) -> Result<Value> {
    if let [Value::Bytea(b), rest @ ..] = args {
        return bytes(op, b, rest);
    }
    if let (Op::OctetLength, [Value::Bpchar(s)]) = (op, args) {
        return int4(s.len());
    }
    let (first, rest) = args.split_first().ok_or_else(no_such_operation)?;
    let s = as_text(first).ok_or_else(no_such_operation)?;
    let owned = |b: &[u8]| Ok(Value::Text(b.into()));
    match rest {
        [] => match op {
            Op::Upper => owned(&s.to_ascii_uppercase()),
            Op::Lower => owned(&s.to_ascii_lowercase()),
            Op::Length => int4(text::char_count(s)),
            Op::OctetLength => int4(s.len()),
            Op::Reverse => Ok(Value::Text(text::reverse(s))),
            _ => owned(text::trim(s, b" ", end(op)?)),
        },
        [Value::Int4(n)] => match op {
            Op::Substring => owned(text::substring(s, *n, None)?),
            Op::Left => owned(text::left(s, *n)),
            Op::Right => owned(text::right(s, *n)),
            _ => Err(no_such_operation()),
        },
        [Value::Int4(from), Value::Int4(length)] if op == Op::Substring => {
            owned(text::substring(s, *from, Some(*length))?)
        }
        [other] => {
            let other = as_text(other).ok_or_else(no_such_operation)?;
            match op {
                Op::Concat => text::concat(s, other).map(Value::Text),
                Op::LikeEscape => like::escape(s, other).map(Value::Text),
                Op::Position => int4(text::position(s, other)),
                _ => owned(text::trim(s, other, end(op)?)),
            }
        }
        [from, to] if op == Op::Replace => {
            let from = as_text(from).ok_or_else(no_such_operation)?;
            let to = as_text(to).ok_or_else(no_such_operation)?;
            text::replace(s, from, to).map(Value::Text)
        }
        _ => Err(no_such_operation()),
    }
}

fn end(op: Op) -> Result<End> {
    match op {
        Op::TrimBoth => Ok(End::Both),
        Op::TrimLeft => Ok(End::Left),
        Op::TrimRight => Ok(End::Right),
        _ => Err(no_such_operation()),
    }
}

fn bytes(op: Op, b: &[u8], rest: &[&Value]) -> Result<Value> {
    let owned = |b: &[u8]| Ok(Value::Bytea(b.into()));
    match (op, rest) {
        (Op::Length | Op::OctetLength, []) => int4(b.len()),
        (Op::Concat, [Value::Bytea(other)]) => text::concat(b, other).map(Value::Bytea),
        (Op::Substring, [Value::Int4(from)]) => owned(text::substring_bytes(b, *from, None)?),
        (Op::Substring, [Value::Int4(from), Value::Int4(length)]) => {
            owned(text::substring_bytes(b, *from, Some(*length))?)
        }
        (Op::Position, [Value::Bytea(what)]) => int4(text::position_bytes(b, what)),
        (_, [Value::Bytea(set)]) => owned(text::trim_bytes(b, set, end(op)?)),
        _ => Err(no_such_operation()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, format_text, parse_text};

    fn v(t: TypeCode, s: &str) -> Value {
        parse_text(t, -1, s.as_bytes(), &Env::default()).unwrap()
    }

    fn shown(op: Op, ret: TypeCode, args: &[&Value]) -> std::result::Result<String, Error> {
        let env = Env::default();
        let r = apply(op, ret, 0, args, &env)?;
        assert_eq!(r.type_code(), ret.stored(), "{op:?}");
        Ok(String::from_utf8(format_text(&r, &env)).unwrap())
    }

    /// One operation of each group reaches its function.
    #[test]
    fn dispatch() {
        use TypeCode::*;
        for (op, ret, args, expected) in [
            (Op::Add, Int8, vec![v(Int2, "1"), v(Int8, "2")], "3"),
            (
                Op::Mul,
                Float8,
                vec![v(Float4, "0.5"), v(Float8, "3")],
                "1.5",
            ),
            (
                Op::Sub,
                Int4,
                vec![v(Date, "2000-03-01"), v(Date, "2000-02-01")],
                "29",
            ),
            (
                Op::Sub,
                Timestamp,
                vec![v(Date, "1998-12-01"), v(Interval, "90 days")],
                "1998-09-02 00:00:00",
            ),
            (
                Op::Add,
                Timestamp,
                vec![v(Time, "12:00"), v(Date, "2000-01-01")],
                "2000-01-01 12:00:00",
            ),
            (
                Op::Sub,
                Interval,
                vec![v(Timestamp, "2000-01-02 01:00"), v(Timestamp, "2000-01-01")],
                "1 day 01:00:00",
            ),
            (
                Op::Mul,
                Interval,
                vec![v(Float8, "2"), v(Interval, "1 day")],
                "2 days",
            ),
            (
                Op::Round,
                Numeric,
                vec![v(Numeric, "1.255"), v(Int4, "2")],
                "1.26",
            ),
            (
                Op::Substring,
                Text,
                vec![v(Text, "abcdef"), v(Int4, "2"), v(Int4, "3")],
                "bcd",
            ),
            (
                Op::Replace,
                Text,
                vec![v(Text, "abc"), v(Text, "b"), v(Text, "")],
                "ac",
            ),
            (Op::Length, Int4, vec![v(Bpchar, "äb  ")], "2"),
            (Op::OctetLength, Int4, vec![v(Bpchar, "äb  ")], "5"),
            (
                Op::Concat,
                Bytea,
                vec![v(Bytea, "a"), v(Bytea, "b")],
                "\\x6162",
            ),
            (Op::TrimLeft, Text, vec![v(Text, "xxa"), v(Text, "x")], "a"),
        ] {
            let args: Vec<&Value> = args.iter().collect();
            assert_eq!(shown(op, ret, &args).unwrap(), expected, "{op:?}");
        }
    }

    /// Each function of the table has an implementation. Bug: after an entry was added, PostgreSQL
    /// calls a function that the keeper does not know.
    #[test]
    fn functions_of_the_table() {
        let sample = |t: &TypeCode| match t {
            TypeCode::Bytea => v(*t, "\\x61"),
            TypeCode::Text | TypeCode::Bpchar => v(*t, "a"),
            TypeCode::Interval => v(*t, "1 day"),
            TypeCode::Time => v(*t, "01:02:03"),
            TypeCode::Uuid => v(*t, "00000000-0000-0000-0000-000000000001"),
            TypeCode::Json | TypeCode::Jsonb => v(*t, "[true]"),
            TypeCode::Date | TypeCode::Timestamp | TypeCode::Timestamptz => v(*t, "2000-01-02"),
            _ => v(*t, "1"),
        };
        let env = Env::default();
        for named in Op::FUNCTIONS {
            let values: Vec<Value> = named.args.iter().map(sample).collect();
            let args: Vec<&Value> = values.iter().collect();
            let unknown = match named.ret {
                Some(ret) => {
                    let unit = Unit::Hour as i32;
                    apply(named.op, ret, unit, &args, &env).err()
                }
                None => crate::test(named.op, args[0], args[1], &env).err(),
            };
            let code = unknown.map(|e| e.sqlstate);
            assert_ne!(code, Some(*b"42883"), "{:?} {:?}", named.op, named.args);
        }
    }

    /// An operation without such a signature is an error, whatever the number of arguments.
    #[test]
    fn no_such_signature() {
        let (int, text) = (v(TypeCode::Int4, "1"), v(TypeCode::Text, "1"));
        for args in [
            &[][..],
            &[&int],
            &[&int, &text],
            &[&text, &int],
            &[&text, &text, &text],
        ] {
            let e = shown(Op::Add, TypeCode::Int4, args).unwrap_err();
            assert_eq!(e.sqlstate, *b"42883");
        }
    }
}
