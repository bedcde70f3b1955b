//! Functions of numbers. Those of `float8` call the C library through `std`, as PostgreSQL does, and
//! check what comes out as it does; those of `numeric` are in [`crate::numeric`].

use crate::error::{no_such_operation, out_of_range};
use crate::float::{binary_f64, overflow, underflow};
use crate::{Error, Numeric, Result, Value};
use contract::Op;

/// PostgreSQL's constant.
const RADIANS_PER_DEGREE: f64 = 0.017_453_292_519_943_295;

pub(super) fn apply(op: Op, args: &[&Value]) -> Result<Value> {
    use Value::{Float8, Int4, Int8};
    match (op, args) {
        (Op::Power, [Float8(x), Float8(y)]) => power(*x, *y).map(Float8),
        (Op::Atan2, [Float8(y), Float8(x)]) => Ok(Float8(y.atan2(*x))),
        (Op::Atan2d, [Float8(y), Float8(x)]) => Ok(Float8(degrees::of_tangent(y.atan2(*x)))),
        (_, [Float8(x)]) => float(op, *x).map(Float8),
        (Op::WidthBucket, [Float8(x), Float8(low), Float8(high), Int4(count)]) => {
            bucket(*x, *low, *high, *count).map(Int4)
        }
        (Op::Gcd | Op::Lcm, [Int4(a), Int4(b)]) => {
            let made = divisor(op, i128::from(*a), i128::from(*b));
            let made = i32::try_from(made).map_err(|_| out_of_range("integer"));
            made.map(Int4)
        }
        (Op::Gcd | Op::Lcm, [Int8(a), Int8(b)]) => {
            let made = divisor(op, i128::from(*a), i128::from(*b));
            let made = i64::try_from(made).map_err(|_| out_of_range("bigint"));
            made.map(Int8)
        }
        (Op::Factorial, [Int8(n)]) => Numeric::factorial(*n).map(Value::Numeric),
        _ => numeric(op, args),
    }
}

fn numeric(op: Op, args: &[&Value]) -> Result<Value> {
    use Value::Int4;
    let n = |n: Result<Numeric>| n.map(Value::Numeric);
    match (op, args) {
        (Op::Power, [Value::Numeric(a), Value::Numeric(b)]) => n(a.power(b)),
        (Op::LogBase, [Value::Numeric(a), Value::Numeric(b)]) => n(Numeric::log(a, b)),
        (Op::DivTrunc, [Value::Numeric(a), Value::Numeric(b)]) => n(a.div_trunc(b)),
        (Op::Gcd, [Value::Numeric(a), Value::Numeric(b)]) => n(a.gcd(b)),
        (Op::Lcm, [Value::Numeric(a), Value::Numeric(b)]) => n(a.lcm(b)),
        (Op::Sqrt, [Value::Numeric(a)]) => n(a.sqrt()),
        (Op::Exp, [Value::Numeric(a)]) => n(a.exp()),
        (Op::Ln, [Value::Numeric(a)]) => n(a.ln()),
        (Op::Log10, [Value::Numeric(a)]) => n(Numeric::log(&Numeric::from_i64(10), a)),
        (Op::Scale, [Value::Numeric(a)]) if a.is_nan() || a.is_infinite() => Err(Error::null()),
        (Op::Scale, [Value::Numeric(a)]) => Ok(Int4(i32::from(a.scale()))),
        (Op::MinScale, [Value::Numeric(a)]) if a.is_nan() || a.is_infinite() => Err(Error::null()),
        (Op::MinScale, [Value::Numeric(a)]) => Ok(Int4(i32::from(a.min_scale()))),
        (Op::TrimScale, [Value::Numeric(a)]) => n(a.rounded(i32::from(a.min_scale()))),
        (
            Op::WidthBucket,
            [
                Value::Numeric(x),
                Value::Numeric(low),
                Value::Numeric(high),
                Int4(count),
            ],
        ) => numeric_bucket(x, low, high, *count).map(Int4),
        _ => Err(no_such_operation()),
    }
}

/// Angles in degrees, exact where PostgreSQL's are: at multiples of 30 and 45.
mod degrees {
    use super::RADIANS_PER_DEGREE;

    fn to_30(x: f64) -> f64 {
        let unit = (30.0 * RADIANS_PER_DEGREE).sin();
        ((x * RADIANS_PER_DEGREE).sin() / unit) / 2.0
    }

    fn to_60(x: f64) -> f64 {
        let unit = 1.0 - (60.0 * RADIANS_PER_DEGREE).cos();
        1.0 - ((1.0 - (x * RADIANS_PER_DEGREE).cos()) / unit) / 2.0
    }

    fn sine_to_90(x: f64) -> f64 {
        if x <= 30.0 { to_30(x) } else { to_60(90.0 - x) }
    }

    fn cosine_to_90(x: f64) -> f64 {
        if x <= 60.0 { to_60(x) } else { to_30(90.0 - x) }
    }

    /// The angle within 90 degrees, and the signs that a sine and a cosine of it take.
    fn reduced(x: f64) -> (f64, f64, f64) {
        let (mut x, mut sine, mut cosine) = (x % 360.0, 1.0, 1.0);
        if x < 0.0 {
            (x, sine) = (-x, -sine);
        }
        if x > 180.0 {
            (x, sine) = (360.0 - x, -sine);
        }
        if x > 90.0 {
            (x, cosine) = (180.0 - x, -cosine);
        }
        (x, sine, cosine)
    }

    pub fn sine(x: f64) -> f64 {
        let (x, sign, _) = reduced(x);
        sign * sine_to_90(x)
    }

    pub fn cosine(x: f64) -> f64 {
        let (x, _, sign) = reduced(x);
        sign * cosine_to_90(x)
    }

    /// The tangent, or cotangent.
    pub fn tangent(x: f64, turned: bool) -> f64 {
        let (x, sine, cosine) = reduced(x);
        let of = |x: f64| match turned {
            false => sine_to_90(x) / cosine_to_90(x),
            true => cosine_to_90(x) / sine_to_90(x),
        };
        let r = sine * cosine * (of(x) / of(45.0));
        // There is no minus zero.
        if r == 0.0 { 0.0 } else { r }
    }

    fn of_sine_above_0(x: f64) -> f64 {
        match x <= 0.5 {
            true => (x.asin() / 0.5f64.asin()) * 30.0,
            false => 90.0 - (x.acos() / 0.5f64.acos()) * 60.0,
        }
    }

    pub fn of_sine(x: f64) -> f64 {
        match x >= 0.0 {
            true => of_sine_above_0(x),
            false => -of_sine_above_0(-x),
        }
    }

    pub fn of_cosine(x: f64) -> f64 {
        match (x >= 0.0, x <= 0.5) {
            (false, _) => 90.0 + of_sine_above_0(-x),
            (true, true) => 90.0 - (x.asin() / 0.5f64.asin()) * 30.0,
            (true, false) => (x.acos() / 0.5f64.acos()) * 60.0,
        }
    }

    /// Degrees of an arctangent in radians.
    pub fn of_tangent(radians: f64) -> f64 {
        (radians / 1f64.atan()) * 45.0
    }
}

/// Inverses of the hyperbolic functions. Rust's own have other last digits than the C library's, so the
/// ranges and the forms that are used within them are the library's (glibc).
mod area {
    use std::f64::consts::LN_2;

    /// From here on the 1 below the root is lost.
    const LARGE: f64 = 268_435_456.0;

    pub fn of_sine(x: f64) -> f64 {
        let a = x.abs();
        let r = if a < 1.0 / LARGE || !a.is_finite() {
            a
        } else if a > LARGE {
            a.ln() + LN_2
        } else if a > 2.0 {
            (2.0 * a + 1.0 / ((a * a + 1.0).sqrt() + a)).ln()
        } else {
            let square = a * a;
            (a + square / (1.0 + (1.0 + square).sqrt())).ln_1p()
        };
        r.copysign(x)
    }

    pub fn of_cosine(x: f64) -> f64 {
        if x.is_infinite() {
            x
        } else if x >= LARGE {
            x.ln() + LN_2
        } else if x > 2.0 {
            (2.0 * x - 1.0 / (x + (x * x - 1.0).sqrt())).ln()
        } else {
            let above = x - 1.0;
            (above + (2.0 * above + above * above).sqrt()).ln_1p()
        }
    }

    pub fn of_tangent(x: f64) -> f64 {
        let a = x.abs();
        let r = if a < 1.0 / LARGE {
            a
        } else if a < 0.5 {
            let twice = a + a;
            0.5 * (twice + twice * a / (1.0 - a)).ln_1p()
        } else if a < 1.0 {
            0.5 * ((a + a) / (1.0 - a)).ln_1p()
        } else {
            f64::INFINITY
        };
        r.copysign(x)
    }
}

fn complex() -> Error {
    Error::new(
        b"2201F",
        "a negative number raised to a non-integer power yields a complex result",
    )
}

fn beyond_input() -> Error {
    Error::new(b"22003", "input is out of range")
}

fn logarithm(x: f64) -> Result<()> {
    if x == 0.0 {
        return Err(Error::new(b"2201E", "cannot take logarithm of zero"));
    }
    if x < 0.0 {
        return Err(Error::new(
            b"2201E",
            "cannot take logarithm of a negative number",
        ));
    }
    Ok(())
}

/// Refuses an infinite result of a finite operand, and a zero that should be none.
fn checked(r: f64, finite: bool, may_be_zero: bool) -> Result<f64> {
    if r.is_infinite() && finite {
        return Err(overflow());
    }
    if r == 0.0 && !may_be_zero {
        return Err(underflow());
    }
    Ok(r)
}

fn float(op: Op, x: f64) -> Result<f64> {
    if x.is_nan() {
        return Ok(f64::NAN);
    }
    let finite = x.is_finite();
    match op {
        Op::Sqrt if x < 0.0 => Err(Error::new(
            b"2201F",
            "cannot take square root of a negative number",
        )),
        Op::Sqrt => checked(x.sqrt(), finite, x == 0.0),
        Op::Exp => checked(x.exp(), finite, !finite),
        Op::Ln => {
            logarithm(x)?;
            checked(x.ln(), finite, x == 1.0)
        }
        Op::Log10 => {
            logarithm(x)?;
            checked(x.log10(), finite, x == 1.0)
        }
        Op::Degrees => binary_f64(Op::Div, x, RADIANS_PER_DEGREE),
        Op::Radians => binary_f64(Op::Mul, x, RADIANS_PER_DEGREE),
        Op::Atan => Ok(x.atan()),
        Op::Sinh => Ok(x.sinh()),
        Op::Cosh => Ok(x.cosh()),
        Op::Tanh => Ok(x.tanh()),
        Op::Asinh => Ok(area::of_sine(x)),
        Op::Acosh if x < 1.0 => Err(beyond_input()),
        Op::Acosh => Ok(area::of_cosine(x)),
        Op::Atanh if x.abs() > 1.0 => Err(beyond_input()),
        Op::Atanh => Ok(area::of_tangent(x)),
        Op::Asin | Op::Acos if x.abs() > 1.0 => Err(beyond_input()),
        Op::Asin => Ok(x.asin()),
        Op::Acos => Ok(x.acos()),
        Op::Sin | Op::Cos | Op::Tan | Op::Cot if !finite => Err(beyond_input()),
        Op::Sin => Ok(x.sin()),
        Op::Cos => Ok(x.cos()),
        Op::Tan => Ok(x.tan()),
        Op::Cot => Ok(1.0 / x.tan()),
        Op::Sind | Op::Cosd | Op::Tand | Op::Cotd if !finite => Err(beyond_input()),
        Op::Sind => Ok(degrees::sine(x)),
        Op::Cosd => Ok(degrees::cosine(x)),
        Op::Tand => Ok(degrees::tangent(x, false)),
        Op::Cotd => Ok(degrees::tangent(x, true)),
        Op::Asind | Op::Acosd if x.abs() > 1.0 => Err(beyond_input()),
        Op::Asind => Ok(degrees::of_sine(x)),
        Op::Acosd => Ok(degrees::of_cosine(x)),
        Op::Atand => Ok(degrees::of_tangent(x.atan())),
        _ => Err(no_such_operation()),
    }
}

/// `x ^ y` of floats.
fn power(x: f64, y: f64) -> Result<f64> {
    if x.is_nan() || y.is_nan() {
        let one = x == 1.0 || y == 0.0;
        return Ok(if one { 1.0 } else { f64::NAN });
    }
    if x == 0.0 && y < 0.0 {
        return Err(Error::new(
            b"2201F",
            "zero raised to a negative power is undefined",
        ));
    }
    if x < 0.0 && y.floor() != y {
        return Err(complex());
    }
    if y.is_infinite() || x.is_infinite() {
        return Ok(x.powf(y));
    }
    let r = x.powf(y);
    if r.is_infinite() {
        return Err(overflow());
    }
    checked(r, true, x == 0.0)
}

fn bucket_error(message: &'static str) -> Error {
    Error::new(b"2201G", message)
}

fn beyond_buckets(count: i32) -> Result<i32> {
    count.checked_add(1).ok_or_else(|| out_of_range("integer"))
}

fn bucket(x: f64, low: f64, high: f64, count: i32) -> Result<i32> {
    if count <= 0 {
        return Err(bucket_error("count must be greater than zero"));
    }
    if x.is_nan() || low.is_nan() || high.is_nan() {
        return Err(bucket_error(
            "operand, lower bound, and upper bound cannot be NaN",
        ));
    }
    if low.is_infinite() || high.is_infinite() {
        return Err(bucket_error("lower and upper bounds must be finite"));
    }
    if low == high {
        return Err(bucket_error("lower bound cannot equal upper bound"));
    }
    let (before, after) = match low < high {
        true => (x < low, x >= high),
        false => (x > low, x <= high),
    };
    if before {
        return Ok(0);
    }
    if after {
        return beyond_buckets(count);
    }
    let wide = f64::from(count);
    let number = match low < high {
        true => wide * (x - low) / (high - low) + 1.0,
        false => wide * (low - x) / (low - high) + 1.0,
    };
    // What does not fit is what the processor makes of it for PostgreSQL.
    let fits = number > f64::from(i32::MIN) && number < f64::from(i32::MAX) + 1.0;
    Ok(if fits { number as i32 } else { i32::MIN })
}

fn numeric_bucket(x: &Numeric, low: &Numeric, high: &Numeric, count: i32) -> Result<i32> {
    if count <= 0 {
        return Err(bucket_error("count must be greater than zero"));
    }
    if x.is_nan() || low.is_nan() || high.is_nan() {
        return Err(bucket_error(
            "operand, lower bound, and upper bound cannot be NaN",
        ));
    }
    if low.is_infinite() || high.is_infinite() {
        return Err(bucket_error("lower and upper bounds must be finite"));
    }
    let upward = low.compare(high);
    if upward.is_eq() {
        return Err(bucket_error("lower bound cannot equal upper bound"));
    }
    // Both orders are relative to the direction of the bounds.
    let order = |a: &Numeric, b: &Numeric| match upward.is_lt() {
        true => a.compare(b),
        false => b.compare(a),
    };
    if order(x, low).is_lt() {
        return Ok(0);
    }
    if order(x, high).is_ge() {
        return beyond_buckets(count);
    }
    let parts = Numeric::from_i64(i64::from(count));
    let number = x.sub(low)?.mul(&parts)?.div(&high.sub(low)?)?;
    if number.compare(&parts).is_ge() {
        return Ok(count);
    }
    let number = number.add(&Numeric::from_i64(1))?.floor()?;
    i32::try_from(number.to_integer("integer")?).map_err(|_| out_of_range("integer"))
}

/// Greatest common divisor or least common multiple, never negative.
fn divisor(op: Op, a: i128, b: i128) -> i128 {
    let (mut x, mut y) = (a.abs(), b.abs());
    while y != 0 {
        (x, y) = (y, x % y);
    }
    match op {
        Op::Gcd => x,
        _ if x == 0 => 0,
        _ => (a.abs() / x).saturating_mul(b.abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state<T>(r: Result<T>) -> String {
        r.map_or_else(|e| e.sqlstate_str().into(), |_| "value".into())
    }

    #[test]
    fn floats() {
        assert_eq!(float(Op::Sqrt, 2.25).unwrap(), 1.5);
        assert!(float(Op::Ln, f64::NAN).unwrap().is_nan());
        assert_eq!(float(Op::Exp, f64::NEG_INFINITY).unwrap(), 0.0);
        assert_eq!(float(Op::Cot, 0.0).unwrap(), f64::INFINITY);
        for (op, x, expected) in [
            (Op::Sqrt, -1.0, "2201F"),
            (Op::Ln, 0.0, "2201E"),
            (Op::Log10, -1.0, "2201E"),
            (Op::Exp, 1000.0, "22003"),
            (Op::Exp, -1000.0, "22003"),
            (Op::Asin, 1.5, "22003"),
            (Op::Sin, f64::INFINITY, "22003"),
            (Op::Atan, f64::INFINITY, "value"),
            (Op::Sqrt, f64::INFINITY, "value"),
        ] {
            assert_eq!(state(float(op, x)), expected, "{op:?} {x}");
        }
    }

    #[test]
    fn angles() {
        assert_eq!(degrees::sine(30.0), 0.5);
        assert_eq!(degrees::sine(-390.0), -0.5);
        assert_eq!(degrees::cosine(120.0), -0.5);
        assert_eq!(degrees::tangent(45.0, false), 1.0);
        assert_eq!(degrees::tangent(180.0, false).to_bits(), 0);
        assert_eq!(degrees::tangent(0.0, true), f64::INFINITY);
        assert_eq!(degrees::of_sine(-0.5), -30.0);
        assert_eq!(degrees::of_cosine(-0.5), 120.0);
        assert_eq!(degrees::of_tangent(1f64.atan()), 45.0);
        assert_eq!(state(float(Op::Sind, f64::INFINITY)), "22003");
        assert_eq!(state(float(Op::Asind, 2.0)), "22003");
    }

    #[test]
    fn powers() {
        assert_eq!(power(f64::NAN, 0.0).unwrap(), 1.0);
        assert_eq!(power(1.0, f64::NAN).unwrap(), 1.0);
        assert_eq!(power(-1.0, f64::INFINITY).unwrap(), 1.0);
        assert_eq!(power(f64::NEG_INFINITY, 3.0).unwrap(), f64::NEG_INFINITY);
        for (x, y, expected) in [
            (0.0, -1.0, "2201F"),
            (-8.0, 0.5, "2201F"),
            (10.0, 400.0, "22003"),
            (10.0, -400.0, "22003"),
            (0.0, 2.0, "value"),
        ] {
            assert_eq!(state(power(x, y)), expected);
        }
    }

    #[test]
    fn integers() {
        assert_eq!(divisor(Op::Gcd, -12, 18), 6);
        assert_eq!(divisor(Op::Lcm, 4, 6), 12);
        assert_eq!(divisor(Op::Lcm, 0, 6), 0);
        let least = Value::Int4(i32::MIN);
        assert_eq!(state(apply(Op::Gcd, &[&least, &Value::Int4(0)])), "22003");
        assert_eq!(state(apply(Op::Lcm, &[&least, &Value::Int4(3)])), "22003");
    }

    #[test]
    fn buckets() {
        assert_eq!(bucket(5.0, 0.0, 10.0, 5).unwrap(), 3);
        assert_eq!(bucket(5.0, 10.0, 0.0, 5).unwrap(), 3);
        assert_eq!(bucket(-1.0, 0.0, 10.0, 5).unwrap(), 0);
        assert_eq!(bucket(10.0, 0.0, 10.0, 5).unwrap(), 6);
        assert_eq!(bucket(1e15, 1.7e308, 1.0, 5).unwrap(), i32::MIN);
        assert_eq!(state(bucket(10.0, 0.0, 10.0, i32::MAX)), "22003");
        for (low, high, count) in [(0.0, 0.0, 1), (f64::NAN, 1.0, 1), (0.0, 1.0, 0)] {
            assert_eq!(state(bucket(0.5, low, high, count)), "2201G");
        }
        let n = |s: &str| Numeric::parse(s.as_bytes(), -1).unwrap();
        assert_eq!(
            numeric_bucket(&n("5.35"), &n("0.024"), &n("10.06"), 5).unwrap(),
            3
        );
        assert_eq!(
            numeric_bucket(&n("Infinity"), &n("0"), &n("10"), 5).unwrap(),
            6
        );
        assert_eq!(
            numeric_bucket(&n("9.999"), &n("10"), &n("0"), 5).unwrap(),
            1
        );
    }
}
