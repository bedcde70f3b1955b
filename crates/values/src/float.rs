//! Floats: text format (shortest form that reads back), arithmetic with
//! PostgreSQL's overflow and underflow errors.

use crate::error::{division_by_zero, invalid_syntax, no_such_operation};
use crate::{Error, Result, scan};
use contract::{Code, Op};
use dashu_int::UBig;
use std::fmt::{LowerExp, Write};

pub(crate) fn overflow() -> Error {
    Error::new(b"22003", "value out of range: overflow")
}

pub(crate) fn underflow() -> Error {
    Error::new(b"22003", "value out of range: underflow")
}

/// What both widths have in common.
pub(crate) trait Float: Copy + PartialOrd + LowerExp + std::str::FromStr {
    const NAME: &'static str;
    /// Exponent from which on the output is scientific.
    const SCIENTIFIC: i32;
    /// Significant decimal digits that any value keeps.
    const DIGITS: i32;
    fn wide(self) -> f64;
    fn from_wide(v: f64) -> Self;
    fn is_even(self) -> bool;
    /// Mantissa and exponent: value = m · 2^e.
    fn decode(self) -> (u64, i32);
    /// The power of two below which numbers are not normal: smallest mantissa.
    fn lowest_normal_mantissa() -> u64;
}

impl Float for f64 {
    const NAME: &'static str = "double precision";
    const SCIENTIFIC: i32 = 15;
    const DIGITS: i32 = 15;
    fn wide(self) -> f64 {
        self
    }
    fn from_wide(v: f64) -> f64 {
        v
    }
    fn is_even(self) -> bool {
        self.to_bits() & 1 == 0
    }
    fn decode(self) -> (u64, i32) {
        let bits = self.to_bits();
        let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
        if exponent == 0 {
            (fraction, -1074)
        } else {
            (fraction | 1 << 52, exponent - 1075)
        }
    }
    fn lowest_normal_mantissa() -> u64 {
        1 << 52
    }
}

impl Float for f32 {
    const NAME: &'static str = "real";
    const SCIENTIFIC: i32 = 6;
    const DIGITS: i32 = 6;
    fn wide(self) -> f64 {
        f64::from(self)
    }
    fn from_wide(v: f64) -> f32 {
        v as f32
    }
    fn is_even(self) -> bool {
        self.to_bits() & 1 == 0
    }
    fn decode(self) -> (u64, i32) {
        let bits = self.to_bits();
        let (exponent, fraction) = (
            (bits >> 23 & 0xff) as i32,
            u64::from(bits & ((1 << 23) - 1)),
        );
        if exponent == 0 {
            (fraction, -149)
        } else {
            (fraction | 1 << 23, exponent - 150)
        }
    }
    fn lowest_normal_mantissa() -> u64 {
        1 << 23
    }
}

pub(crate) fn parse_f64(s: &[u8]) -> Result<f64> {
    parse(s)
}

pub(crate) fn parse_f32(s: &[u8]) -> Result<f32> {
    parse(s)
}

/// Reads a float as `strtod` does, with PostgreSQL's errors. Like PostgreSQL,
/// complains about the range before what follows the number.
fn parse<F: Float>(s: &[u8]) -> Result<F> {
    let invalid = || invalid_syntax(F::NAME);
    let s = scan::trim(s);
    let (negative, body) = match s.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, s),
    };
    let sign = |v: f64| F::from_wide(if negative { -v } else { v });
    if body.eq_ignore_ascii_case(b"inf") || body.eq_ignore_ascii_case(b"infinity") {
        return Ok(sign(f64::INFINITY));
    }
    if is_nan_literal(body) {
        return Ok(sign(f64::NAN));
    }
    if let Some(hex) = body
        .strip_prefix(b"0x")
        .or_else(|| body.strip_prefix(b"0X"))
        && let Some((value, nonzero, rest)) = parse_hex(hex)
    {
        let value = check(sign(value), nonzero)?;
        return if rest.is_empty() {
            Ok(value)
        } else {
            Err(invalid())
        };
    }
    let (nonzero, rest) = check_decimal(body).ok_or_else(invalid)?;
    let number = s.get(..s.len() - rest.len()).unwrap_or_default();
    let text = std::str::from_utf8(number).map_err(|_| invalid())?;
    let value = check(text.parse::<F>().map_err(|_| invalid())?, nonzero)?;
    if rest.is_empty() {
        Ok(value)
    } else {
        Err(invalid())
    }
}

/// Refuses what did not fit.
fn check<F: Float>(v: F, nonzero: bool) -> Result<F> {
    if v.wide().is_infinite() || (v.wide() == 0.0 && nonzero) {
        return Err(Error::new(
            b"22003",
            format!("value is out of range for type {}", F::NAME),
        )
        .code(Code::OutOfRange));
    }
    Ok(v)
}

/// `nan` or `nan(characters)`.
fn is_nan_literal(s: &[u8]) -> bool {
    let Some((head, tail)) = s.split_at_checked(3) else {
        return false;
    };
    head.eq_ignore_ascii_case(b"nan")
        && match tail {
            [] => true,
            [b'(', inner @ .., b')'] => inner
                .iter()
                .all(|b| b.is_ascii_alphanumeric() || *b == b'_'),
            _ => false,
        }
}

/// Reads an unsigned decimal literal: whether it is not zero, and the rest.
fn check_decimal(s: &[u8]) -> Option<(bool, &[u8])> {
    let (int, rest) = scan::digits(s);
    let (frac, mut rest) = match rest.split_first() {
        Some((b'.', rest)) => scan::digits(rest),
        _ => (&b""[..], rest),
    };
    if int.is_empty() && frac.is_empty() {
        return None;
    }
    if let Some((b'e' | b'E', exponent)) = rest.split_first() {
        let unsigned = match exponent.split_first() {
            Some((b'+' | b'-', unsigned)) => unsigned,
            _ => exponent,
        };
        let (digits, after) = scan::digits(unsigned);
        if !digits.is_empty() {
            rest = after;
        }
    }
    Some((int.iter().chain(frac).any(|&b| b != b'0'), rest))
}

/// A hexadecimal literal after `0x`: its value, whether it is not zero, the rest.
fn parse_hex(s: &[u8]) -> Option<(f64, bool, &[u8])> {
    let (mut mantissa, mut exponent, mut any, mut point, mut used) = (0u64, 0i64, false, false, 0);
    for &b in s {
        if b == b'.' && !point {
            point = true;
        } else if let Some(digit) = (b as char).to_digit(16) {
            any = true;
            if mantissa >> 59 == 0 {
                mantissa = mantissa << 4 | u64::from(digit);
                exponent -= if point { 4 } else { 0 };
            } else {
                // Digits that cannot count still decide the rounding.
                mantissa |= u64::from(digit != 0);
                exponent += if point { 0 } else { 4 };
            }
        } else {
            break;
        }
        used += 1;
    }
    let mut rest = s.get(used..)?;
    if !any {
        return None;
    }
    if let Some((b'p' | b'P', power)) = rest.split_first() {
        let (minus, unsigned) = match power.split_first() {
            Some((b'-', unsigned)) => (true, unsigned),
            Some((b'+', unsigned)) => (false, unsigned),
            _ => (false, power),
        };
        let (digits, after) = scan::digits(unsigned);
        if !digits.is_empty() {
            let e = scan::integer(digits).unwrap_or(1 << 40).min(1 << 40);
            exponent += if minus { -e } else { e };
            rest = after;
        }
    }
    let mut value = mantissa as f64;
    let mut left = exponent.clamp(-3000, 3000) as i32;
    while left != 0 && value != 0.0 && value.is_finite() {
        let step = left.clamp(-500, 500);
        value *= 2f64.powi(step);
        left -= step;
    }
    Some((value, mantissa != 0, rest))
}

/// PostgreSQL's output for `extra_float_digits`.
pub(crate) fn format<F: Float>(v: F, extra_digits: i32) -> String {
    let wide = v.wide();
    if wide.is_nan() {
        return "NaN".into();
    }
    if wide.is_infinite() {
        return if wide > 0.0 { "Infinity" } else { "-Infinity" }.into();
    }
    if extra_digits > 0 {
        layout(&shortest(v), F::SCIENTIFIC)
    } else {
        let digits = (F::DIGITS + extra_digits).max(1);
        layout(&format!("{wide:.*e}", (digits - 1) as usize), digits)
    }
}

/// The fewest digits strictly inside the interval that reads back as `v`, as
/// PostgreSQL has it; Rust's own form may lie on the border of the interval.
fn shortest<F: Float>(v: F) -> String {
    let text = format!("{v:e}");
    if v.wide() == 0.0 || !may_be_halfway(v) {
        return text;
    }
    let mantissa = text.split('e').next().unwrap_or_default();
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    let inside = |s: &String| s.parse::<F>().is_ok_and(|back| back == v) && !on_border(v, s);
    // Of two shortest forms equally near, the even one.
    let decimals = digits.saturating_sub(1);
    let even = format!("{v:.decimals$e}");
    if even != text && inside(&even) {
        return even;
    }
    if !v.is_even() || !on_border(v, &text) {
        return text;
    }
    (digits..17)
        .map(|decimals| format!("{v:.decimals$e}"))
        .find(inside)
        .unwrap_or(text)
}

/// Whether a decimal of at most 18 digits can be halfway between two decimals with fewer digits, or
/// between `v` and a neighbour. Cheap, and rarely true.
fn may_be_halfway<F: Float>(v: F) -> bool {
    let (mantissa, exponent) = v.decode();
    // The number of decimals of a fraction is its number of bits, minus the leading zeros.
    let bits = -(exponent + mantissa.trailing_zeros() as i32);
    let zeros = (-v.wide().abs().log10()).max(0.0) as i32;
    bits - zeros <= 20
}

/// Whether a decimal lies exactly halfway between `v` and a neighbour.
fn on_border<F: Float>(v: F, text: &str) -> bool {
    let (mantissa, exponent) = v.decode();
    // A number halfway has many digits unless the exponent is moderate.
    if !(-130..=130).contains(&exponent) {
        return false;
    }
    let Some((decimal, power)) = text.trim_start_matches('-').split_once('e') else {
        return false;
    };
    let fraction = decimal.split_once('.').map_or(0, |(_, f)| f.len() as i32);
    let digits: String = decimal.chars().filter(char::is_ascii_digit).collect();
    let (Ok(digits), Ok(power)) = (digits.parse::<u64>(), power.parse::<i32>()) else {
        return false;
    };
    let power = power - fraction;
    // Compare digits·10^power with (4m ± 2)·2^(e-2), or 4m - 1 at a power of two.
    let scale2 = exponent - 2;
    let mut left = UBig::from(digits);
    let mut right = UBig::ONE;
    let ten = UBig::from(10u8).pow(power.unsigned_abs() as usize);
    let two = UBig::ONE << scale2.unsigned_abs() as usize;
    if power >= 0 {
        left *= ten
    } else {
        right *= ten
    }
    if scale2 >= 0 {
        right *= two
    } else {
        left *= two
    }
    let m = UBig::from(mantissa) * 4u8;
    let below = if mantissa == F::lowest_normal_mantissa() {
        1u8
    } else {
        2u8
    };
    left == (&m + 2u8) * &right || left == (m - below) * right
}

/// Lays out `d.ddde±x` as C's `%g` and PostgreSQL's shortest form do.
fn layout(text: &str, scientific_from: i32) -> String {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (decimal, power) = text.split_once('e').unwrap_or((text, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    let digits: String = decimal.chars().filter(char::is_ascii_digit).collect();
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        kept => kept,
    };
    let mut out = String::with_capacity(24);
    if negative {
        out.push('-');
    }
    let (first, others) = digits.split_at_checked(1).unwrap_or((digits, ""));
    if power < -4 || power >= scientific_from {
        out.push_str(first);
        if !others.is_empty() {
            out.push('.');
            out.push_str(others);
        }
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "e{}{:02}",
            if power < 0 { '-' } else { '+' },
            power.abs()
        );
    } else if power < 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', (-power - 1) as usize));
        out.push_str(digits);
    } else {
        let int = power as usize + 1;
        match digits.split_at_checked(int) {
            Some((int, "")) => out.push_str(int),
            Some((int, frac)) => {
                out.push_str(int);
                out.push('.');
                out.push_str(frac);
            }
            None => {
                out.push_str(digits);
                out.extend(std::iter::repeat_n('0', int - digits.len()));
            }
        }
    }
    out
}

/// `float4` operands with a `float4` result.
pub(crate) fn binary_f32(op: Op, a: f32, b: f32) -> Result<f32> {
    let r = match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div => a / b,
        _ => return Err(no_such_operation()),
    };
    check_result(op, f64::from(a), f64::from(b), f64::from(r))?;
    Ok(r)
}

/// Operands of any float type with a `float8` result.
pub(crate) fn binary_f64(op: Op, a: f64, b: f64) -> Result<f64> {
    let r = match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div => a / b,
        _ => return Err(no_such_operation()),
    };
    check_result(op, a, b, r)?;
    Ok(r)
}

fn check_result(op: Op, a: f64, b: f64, r: f64) -> Result<()> {
    let divides = op == Op::Div;
    if divides && b == 0.0 && !a.is_nan() {
        return Err(division_by_zero());
    }
    if r.is_infinite() && !a.is_infinite() && (divides || !b.is_infinite()) {
        return Err(overflow());
    }
    if r == 0.0 && a != 0.0 {
        let lost = if divides {
            !b.is_infinite()
        } else {
            op == Op::Mul && b != 0.0
        };
        if lost {
            return Err(underflow());
        }
    }
    Ok(())
}

/// The cast from `float8` to `float4`.
pub(crate) fn to_f32(v: f64) -> Result<f32> {
    let r = v as f32;
    if r.is_infinite() && !v.is_infinite() {
        return Err(overflow());
    }
    if r == 0.0 && v != 0.0 {
        return Err(underflow());
    }
    Ok(r)
}

/// Operators and functions with one operand.
pub(crate) fn unary(op: Op, x: f64) -> Result<f64> {
    Ok(match op {
        Op::Plus => x,
        Op::Neg => -x,
        Op::Abs => x.abs(),
        Op::Round => x.round_ties_even(),
        Op::Trunc => x.trunc(),
        Op::Ceil => x.ceil(),
        Op::Floor => x.floor(),
        Op::Sign if x > 0.0 => 1.0,
        Op::Sign if x < 0.0 => -1.0,
        Op::Sign => 0.0,
        _ => return Err(no_such_operation()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shortest form strictly inside the interval, ties to even: Rust's own
    /// form differs in the cases marked.
    #[test]
    fn output() {
        for (v, shown) in [
            (0.1 + 0.2, "0.30000000000000004"),
            (1e15, "1e+15"),
            (123456789012345.0, "123456789012345"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-0.0, "-0"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (1e23, "9.999999999999999e+22"), // on the border
            (-237.68899536132812, "-237.68899536132812"), // tie
            (9007199254740993.0, "9.007199254740992e+15"),
        ] {
            assert_eq!(format(v, 1), shown);
        }
        assert_eq!(format(16777216f32, 1), "1.6777216e+07");
        assert_eq!(format(0.1f32, 1), "0.1");
        assert_eq!(format(1.0 / 3.0, 0), "0.333333333333333");
        assert_eq!(format(1234567.0, -10), "1.2346e+06");
        assert_eq!(format(1.5f32, -15), "2");
    }

    #[test]
    fn input() {
        let state = |s: &str| parse_f64(s.as_bytes()).unwrap_err().sqlstate;
        assert_eq!(parse_f64(b" 0x1p3 ").unwrap(), 8.0);
        assert_eq!(parse_f64(b"-iNfinity").unwrap(), f64::NEG_INFINITY);
        assert!(parse_f64(b"nan").unwrap().is_nan());
        for s in ["", "1e", "infinit", "1 2", "--1", "1f"] {
            assert_eq!(state(s), *b"22P02", "{s}");
        }
        for s in ["1e400", "1e-400", "1e400x"] {
            assert_eq!(state(s), *b"22003", "{s}");
        }
        assert_eq!(parse_f64(b"0e-400").unwrap(), 0.0);
        assert_eq!(parse_f32(b"1e39").unwrap_err().sqlstate, *b"22003");
    }

    #[test]
    fn arithmetic() {
        let message = |r: Result<f64>| r.unwrap_err().message.into_owned();
        assert_eq!(
            message(binary_f64(Op::Mul, 1e300, 1e300)),
            "value out of range: overflow"
        );
        assert_eq!(
            message(binary_f64(Op::Mul, 1e-300, 1e-300)),
            "value out of range: underflow"
        );
        assert_eq!(message(binary_f64(Op::Div, 1.0, 0.0)), "division by zero");
        assert!(binary_f64(Op::Div, f64::NAN, 0.0).unwrap().is_nan());
        assert_eq!(binary_f64(Op::Div, 1.0, f64::INFINITY).unwrap(), 0.0);
        assert_eq!(to_f32(1e39).unwrap_err().sqlstate, *b"22003");
    }
}
