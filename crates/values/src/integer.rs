//! Integers: arithmetic of mixed widths, text format.

use crate::error::{division_by_zero, invalid_syntax, no_such_operation, out_of_range};
use crate::{Error, Result, Value, scan};
use contract::{Code, Op, TypeCode};

/// The value of any integer type.
pub(crate) fn widen(v: &Value) -> Option<i64> {
    match *v {
        Value::Int2(n) => Some(i64::from(n)),
        Value::Int4(n) => Some(i64::from(n)),
        Value::Int8(n) => Some(n),
        _ => None,
    }
}

/// PostgreSQL's name of an integer type in messages.
pub(crate) fn name(t: TypeCode) -> &'static str {
    match t {
        TypeCode::Int2 => "smallint",
        TypeCode::Int4 => "integer",
        _ => "bigint",
    }
}

/// The value as type `t`, or 22003.
pub(crate) fn narrow(v: i128, t: TypeCode) -> Result<Value> {
    match t {
        TypeCode::Int2 => i16::try_from(v).ok().map(Value::Int2),
        TypeCode::Int4 => i32::try_from(v).ok().map(Value::Int4),
        TypeCode::Int8 => i64::try_from(v).ok().map(Value::Int8),
        _ => return Err(no_such_operation()),
    }
    .ok_or_else(|| out_of_range(name(t)))
}

/// Operators with two integer operands; the result has type `ret`.
pub(crate) fn binary(op: Op, a: i64, b: i64, ret: TypeCode) -> Result<Value> {
    let (wide_a, wide_b) = (i128::from(a), i128::from(b));
    match op {
        Op::Add => narrow(wide_a + wide_b, ret),
        Op::Sub => narrow(wide_a - wide_b, ret),
        Op::Mul => narrow(wide_a * wide_b, ret),
        Op::Div if b == 0 => Err(division_by_zero()),
        Op::Mod if b == 0 => Err(division_by_zero()),
        Op::Div => narrow(wide_a / wide_b, ret),
        Op::Mod => narrow(wide_a % wide_b, ret),
        Op::BitAnd => narrow(i128::from(a & b), ret),
        Op::BitOr => narrow(i128::from(a | b), ret),
        Op::BitXor => narrow(i128::from(a ^ b), ret),
        _ => Err(no_such_operation()),
    }
}

/// Shifts: the count is taken modulo the width, as the processor does; `int2`
/// is shifted as `int4`.
pub(crate) fn shift(op: Op, a: &Value, count: &Value) -> Result<Value> {
    let Value::Int4(count) = *count else {
        return Err(no_such_operation());
    };
    let count = count as u32;
    Ok(match (op, a) {
        (Op::ShiftLeft, Value::Int2(n)) => Value::Int2(i32::from(*n).wrapping_shl(count) as i16),
        (Op::ShiftLeft, Value::Int4(n)) => Value::Int4(n.wrapping_shl(count)),
        (Op::ShiftLeft, Value::Int8(n)) => Value::Int8(n.wrapping_shl(count)),
        (Op::ShiftRight, Value::Int2(n)) => Value::Int2(i32::from(*n).wrapping_shr(count) as i16),
        (Op::ShiftRight, Value::Int4(n)) => Value::Int4(n.wrapping_shr(count)),
        (Op::ShiftRight, Value::Int8(n)) => Value::Int8(n.wrapping_shr(count)),
        _ => return Err(no_such_operation()),
    })
}

/// Operators with one integer operand.
pub(crate) fn unary(op: Op, v: &Value) -> Result<Value> {
    let t = v.type_code();
    let wide = i128::from(widen(v).ok_or_else(no_such_operation)?);
    match op {
        Op::Plus => narrow(wide, t),
        Op::Neg => narrow(-wide, t),
        Op::Abs => narrow(wide.abs(), t),
        Op::BitNot => narrow(!wide, t),
        _ => Err(no_such_operation()),
    }
}

/// Reads an integer of type `t`.
pub(crate) fn parse(s: &[u8], t: TypeCode) -> Result<Value> {
    let invalid = || invalid_syntax(name(t));
    let s = scan::trim(s);
    let (negative, digits) = match s.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, s),
    };
    let (digits, junk) = scan::digits(digits);
    if digits.is_empty() {
        return Err(invalid());
    }
    // Like PostgreSQL, this counts down, because there is one more negative number, and reports the
    // range before it checks what follows the digits.
    let lowest = match t {
        TypeCode::Int2 => i128::from(i16::MIN),
        TypeCode::Int4 => i128::from(i32::MIN),
        _ => i128::from(i64::MIN),
    };
    let too_large = || {
        Error::new(
            b"22003",
            format!("value is out of range for type {}", name(t)),
        )
        .code(Code::OutOfRange)
    };
    let value = digits
        .iter()
        .try_fold(0i128, |v, b| {
            Some(v * 10 - i128::from(b - b'0')).filter(|&v| v >= lowest)
        })
        .ok_or_else(too_large)?;
    if !junk.is_empty() {
        return Err(invalid());
    }
    narrow(if negative { value } else { -value }, t).map_err(|_| too_large())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(r: Result<Value>) -> String {
        match r {
            Ok(v) => widen(&v).unwrap().to_string(),
            Err(e) => e.sqlstate_str().to_string(),
        }
    }

    #[test]
    fn input() {
        for (s, t, expected) in [
            (" +12\n", TypeCode::Int2, "12"),
            ("-32768", TypeCode::Int2, "-32768"),
            ("32768", TypeCode::Int2, "22003"),
            // The range comes before what follows the digits.
            ("99999x", TypeCode::Int2, "22003"),
            ("9x", TypeCode::Int2, "22P02"),
            ("", TypeCode::Int4, "22P02"),
            ("1 2", TypeCode::Int4, "22P02"),
            (
                "-9223372036854775808",
                TypeCode::Int8,
                "-9223372036854775808",
            ),
            ("9223372036854775808", TypeCode::Int8, "22003"),
        ] {
            assert_eq!(state(parse(s.as_bytes(), t)), expected, "{s}");
        }
    }

    /// Overflow is an error in every width, division of the lowest number included.
    #[test]
    fn arithmetic() {
        let (low, high) = (i64::from(i32::MIN), i64::from(i32::MAX));
        for (op, a, b, ret, expected) in [
            (Op::Add, high, 1, TypeCode::Int4, "22003"),
            (Op::Add, high, 1, TypeCode::Int8, "2147483648"),
            (Op::Div, low, -1, TypeCode::Int4, "22003"),
            (Op::Mod, low, -1, TypeCode::Int4, "0"),
            (Op::Div, -7, 2, TypeCode::Int4, "-3"),
            (Op::Mod, -7, 2, TypeCode::Int4, "-1"),
            (Op::Div, 1, 0, TypeCode::Int4, "22012"),
            (Op::Mul, i64::MIN, -1, TypeCode::Int8, "22003"),
            (Op::BitXor, -1, 5, TypeCode::Int2, "-6"),
        ] {
            assert_eq!(state(binary(op, a, b, ret)), expected, "{op:?} {a} {b}");
        }
        assert_eq!(state(unary(Op::Neg, &Value::Int2(i16::MIN))), "22003");
        assert_eq!(state(unary(Op::Abs, &Value::Int8(i64::MIN))), "22003");
        assert_eq!(
            state(shift(Op::ShiftLeft, &Value::Int4(1), &Value::Int4(33))),
            "2"
        );
        assert_eq!(
            state(shift(Op::ShiftLeft, &Value::Int2(1), &Value::Int4(15))),
            "-32768"
        );
    }
}
