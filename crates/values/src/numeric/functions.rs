//! Roots, powers, logarithms, divisors of [`Numeric`].
//!
//! What is not rational is computed as a fixed-point number with guard digits, and rounded once;
//! PostgreSQL's series have guard digits of their own, and the scale of the result is its.
//!
//! Invariant: no result has more digits than PostgreSQL gives; work is bounded by its limits.

use super::arith::{aligned_big, division_by_zero, leading_group};
use super::*;
use dashu_int::ops::SquareRoot;
use std::f64::consts::LN_10;

/// Significant digits that PostgreSQL's functions give at least.
const SIGNIFICANT: i64 = 16;
/// Beyond three times this, a natural exponent overflows.
const MAX_RESULT_SCALE: f64 = 2000.0;
/// Digits beyond those of the result.
const GUARD: u32 = 30;
/// log10(e), as PostgreSQL has it: in 15 digits.
#[allow(clippy::approx_constant)]
const LOG10_E: f64 = 0.434_294_481_903_252;

fn result_scale(scale: i64, operands: &[&Numeric]) -> u32 {
    let least = operands.iter().map(|n| i64::from(n.scale())).max();
    scale.max(least.unwrap_or(0)).clamp(0, MAX_DISPLAY_SCALE) as u32
}

fn bad_logarithm(n: &Numeric) -> Result<()> {
    match n.signum() {
        1 => Ok(()),
        0 => Err(Error::new(b"2201E", "cannot take logarithm of zero")),
        _ => Err(Error::new(
            b"2201E",
            "cannot take logarithm of a negative number",
        )),
    }
}

/// A finite number as a fixed-point one of this scale.
fn fixed(n: &Numeric, scale: u32) -> IBig {
    let Some((coef, from)) = n.parts() else {
        return IBig::ZERO;
    };
    match from <= scale {
        true => coef * big_pow10(scale - from),
        false => coef / IBig::from(big_pow10(from - scale)),
    }
}

/// A fixed-point number rounded to a smaller scale.
fn rounded_from(fixed: IBig, from: u32, to: u32) -> Result<Numeric> {
    let unit = IBig::from(big_pow10(from - to));
    Numeric::from_big(div_round_big(&fixed, &unit), to)
}

/// ln of a positive fixed-point number between 0.1 and 10.
fn ln_fixed(x: &IBig, scale: u32) -> IBig {
    let one = IBig::from(big_pow10(scale));
    let mut x = x.clone();
    let mut doubled = 0;
    // Roots bring it close to 1.
    let near = &one / IBig::from(1000);
    while (&x - &one).abs() > near && doubled < 64 {
        x = IBig::from((magnitude(&x) * magnitude(&one)).sqrt());
        doubled += 1;
    }
    // ln x = 2 artanh((x - 1) / (x + 1))
    let t = (&x - &one) * &one / (&x + &one);
    let square = &t * &t / &one;
    let (mut term, mut sum, mut n) = (t.clone(), t, 1u32);
    while !term.is_zero() {
        n += 2;
        term = &term * &square / &one;
        sum += &term / IBig::from(n);
    }
    sum << (doubled + 1)
}

/// e to a fixed-point number between -3 and 3.
fn exp_fixed(x: &IBig, scale: u32) -> IBig {
    const HALVED: usize = 16;
    let one = IBig::from(big_pow10(scale));
    let x = x >> HALVED;
    let (mut term, mut sum, mut n) = (one.clone(), one.clone(), 0u32);
    while !term.is_zero() {
        n += 1;
        term = &term * &x / &one / IBig::from(n);
        sum += &term;
    }
    for _ in 0..HALVED {
        sum = &sum * &sum / &one;
    }
    sum
}

impl Numeric {
    fn to_f64_saturating(&self) -> f64 {
        self.to_f64().unwrap_or_else(|_| {
            if self.signum() < 0 {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            }
        })
    }

    /// The digits after the point that are not zeros at the end.
    pub(crate) fn min_scale(&self) -> u16 {
        let Some((coef, scale)) = self.parts() else {
            return 0;
        };
        if coef.is_zero() {
            return 0;
        }
        let text = magnitude(&coef).to_string();
        let zeros = text.len() - text.trim_end_matches('0').len();
        scale.saturating_sub(zeros as u32) as u16
    }

    fn is_whole(&self) -> bool {
        self.min_scale() == 0
    }

    /// `sqrt(self)`
    pub(crate) fn sqrt(&self) -> Result<Numeric> {
        if self.is_nan() {
            return Ok(Numeric::NAN);
        }
        if self.signum() < 0 {
            return Err(Error::new(
                b"2201F",
                "cannot take square root of a negative number",
            ));
        }
        if self.is_infinite() {
            return Ok(Numeric::INFINITY);
        }
        let weight = (leading_group(self).0 + 1) * 4 / 2 - 1;
        self.sqrt_scaled(result_scale(SIGNIFICANT - weight, &[self]))
    }

    /// The square root of a finite number that is not negative, with this scale.
    fn sqrt_scaled(&self, scale: u32) -> Result<Numeric> {
        let digits = scale + 1;
        // sqrt(x · 10^2d), truncated, has the digit that decides about rounding.
        let cut = magnitude(&fixed(self, digits * 2)).sqrt();
        rounded_from(IBig::from(cut), digits, scale)
    }

    /// Variance of `count` numbers (its root, if wanted) by their sum and the sum of their squares.
    pub(crate) fn variance(
        count: u64,
        sum: &Numeric,
        squares: &Numeric,
        sample: bool,
        root: bool,
    ) -> Result<Numeric> {
        if sum.parts().is_none() {
            return Ok(Numeric::NAN);
        }
        let n = Numeric::from_i128(i128::from(count));
        let top = n.mul(squares)?.sub(&sum.mul(sum)?)?;
        if top.signum() <= 0 {
            return Ok(Numeric::from_i64(0));
        }
        let less = Numeric::from_i128(i128::from(count) - i128::from(sample));
        let bottom = n.mul(&less)?;
        let variance = top.div(&bottom)?;
        match root {
            true => variance.sqrt_scaled(u32::from(variance.scale())),
            false => Ok(variance),
        }
    }

    /// The decimal weight of ln(self), estimated as PostgreSQL does.
    fn ln_weight(&self) -> i64 {
        let (weight, group) = leading_group(self);
        let low = Numeric::from_scaled(9, 1);
        let high = Numeric::from_scaled(11, 1);
        if self.compare(&low).is_ge() && self.compare(&high).is_le() {
            let Ok(x) = self.sub(&Numeric::from_i64(1)) else {
                return 0;
            };
            let (weight, group) = leading_group(&x.abs());
            return match group {
                0 => 0,
                _ => weight * 4 + i64::from(group.ilog10()),
            };
        }
        if group == 0 {
            return 0;
        }
        // The first two groups of four digits.
        let (digits, weight) = match self.second_group(weight) {
            Some(second) => (group * 10_000 + second, weight * 4 - 4),
            None => (group, weight * 4),
        };
        let ln = (digits as f64).ln() + weight as f64 * LN_10;
        ln.abs().log10() as i64
    }

    /// The group of four digits after the leading one, if there are digits beyond that.
    fn second_group(&self, weight: i64) -> Option<i64> {
        let (coef, scale) = self.parts()?;
        // 10^(4 · (weight - 1)) is the unit of the second group.
        let shift = i64::from(scale) + 4 * (weight - 1);
        let coef = magnitude(&coef);
        let two = match shift >= 0 {
            true => &coef / big_pow10(u32::try_from(shift).ok()?),
            false => coef.clone() * big_pow10(u32::try_from(-shift).ok()?),
        };
        let second = i64::try_from(two % UBig::from(10_000u32)).ok()?;
        let unit = u32::try_from(shift + 4).ok();
        let rest = unit.is_none_or(|unit| !(coef % big_pow10(unit)).is_zero());
        rest.then_some(second)
    }

    /// ln of a positive number as a fixed-point one.
    fn ln_to(&self, scale: u32) -> IBig {
        // x = d · 10^e with d from 1 to 10, or near 1.
        let exponent = match self.int_digits() {
            Some(digits) if !(0..=1).contains(&digits) => digits - 1,
            _ => 0,
        };
        let d = match u32::try_from(exponent) {
            Ok(down) => fixed(self, scale + GUARD) / IBig::from(big_pow10(down)),
            Err(_) => fixed(self, scale + GUARD + (-exponent) as u32),
        };
        let work = scale + GUARD;
        let mut ln = ln_fixed(&d, work);
        if exponent != 0 {
            let ten = IBig::from(10) * big_pow10(work);
            ln += ln_fixed(&ten, work) * IBig::from(exponent);
        }
        ln / IBig::from(big_pow10(GUARD))
    }

    /// `ln(self)`
    pub(crate) fn ln(&self) -> Result<Numeric> {
        if self.is_nan() {
            return Ok(Numeric::NAN);
        }
        bad_logarithm(self)?;
        if self.is_infinite() {
            return Ok(Numeric::INFINITY);
        }
        let scale = result_scale(SIGNIFICANT - self.ln_weight(), &[self]);
        rounded_from(self.ln_to(scale + GUARD), scale + GUARD, scale)
    }

    /// `log(base, n)`
    pub(crate) fn log(base: &Numeric, n: &Numeric) -> Result<Numeric> {
        if base.is_nan() || n.is_nan() {
            return Ok(Numeric::NAN);
        }
        if base.signum() < 0 || n.signum() < 0 {
            bad_logarithm(&Numeric::from_i64(-1))?;
        }
        bad_logarithm(base)?;
        bad_logarithm(n)?;
        match (base.is_infinite(), n.is_infinite()) {
            (true, true) => return Ok(Numeric::NAN),
            (true, false) => return Ok(Numeric::from_i64(0)),
            (false, true) => return Ok(Numeric::INFINITY),
            (false, false) => {}
        }
        let weight = n.ln_weight() - base.ln_weight();
        let scale = result_scale(SIGNIFICANT - weight, &[base, n]);
        // Digits that a small divisor takes away.
        let small = base.ln_weight().min(0).unsigned_abs().min(2000) as u32;
        let work = scale + GUARD + 2 * small;
        let (top, bottom) = (n.ln_to(work), base.ln_to(work));
        if bottom.is_zero() {
            return Err(division_by_zero());
        }
        let quotient = top * big_pow10(work) / bottom;
        rounded_from(quotient, work, scale)
    }

    /// e to this fixed-point number, as a number of this scale.
    fn exp_to(x: &IBig, work: u32, scale: u32) -> Result<Numeric> {
        let one = IBig::from(big_pow10(work));
        let ln10 = ln_fixed(&(&one * IBig::from(10)), work);
        let k = div_round_big(x, &ln10);
        let rest = x - &k * &ln10;
        let e = exp_fixed(&rest, work);
        let k = i64::try_from(&k).map_err(|_| overflow())?;
        // e · 10^k with `scale` digits.
        let drop = i64::from(work) - k - i64::from(scale);
        match u32::try_from(drop) {
            Ok(drop) => {
                let unit = IBig::from(big_pow10(drop));
                Numeric::from_big(div_round_big(&e, &unit), scale)
            }
            Err(_) => Err(overflow()),
        }
    }

    /// `exp(self)`
    pub(crate) fn exp(&self) -> Result<Numeric> {
        if self.is_nan() {
            return Ok(Numeric::NAN);
        }
        if self.is_infinite() {
            return Ok(match self.signum() {
                1 => Numeric::INFINITY,
                _ => Numeric::from_i64(0),
            });
        }
        let value = self.to_f64_saturating();
        let weight = (value * LOG10_E).clamp(-MAX_RESULT_SCALE, MAX_RESULT_SCALE);
        let scale = result_scale(SIGNIFICANT - weight as i64, &[self]);
        if value.abs() >= MAX_RESULT_SCALE * 3.0 {
            return match value > 0.0 {
                true => Err(overflow()),
                false => Numeric::from_small(0, scale),
            };
        }
        let work = scale + weight.max(0.0) as u32 + GUARD;
        Numeric::exp_to(&fixed(self, work), work, scale)
    }

    /// `self ^ exponent`
    pub(crate) fn power(&self, exponent: &Numeric) -> Result<Numeric> {
        let one = Numeric::from_i64(1);
        let is = |n: &Numeric, other: &Numeric| n.compare(other).is_eq();
        if self.is_nan() || exponent.is_nan() {
            let zero = !exponent.is_nan() && exponent.signum() == 0;
            let known = zero || !self.is_nan() && is(self, &one);
            return Ok(if known { one } else { Numeric::NAN });
        }
        if self.signum() == 0 && exponent.signum() < 0 {
            return Err(Error::new(
                b"2201F",
                "zero raised to a negative power is undefined",
            ));
        }
        if self.signum() < 0 && !exponent.is_infinite() && !exponent.is_whole() {
            return Err(Error::new(
                b"2201F",
                "a negative number raised to a non-integer power yields a complex result",
            ));
        }
        if self.is_infinite() || exponent.is_infinite() {
            return Ok(self.infinite_power(exponent));
        }
        let whole = exponent.to_integer("bigint").ok();
        if let Some(n) = whole.filter(|_| exponent.is_whole())
            && let Ok(n) = i32::try_from(n)
        {
            return self.whole_power(n);
        }
        self.real_power(exponent)
    }

    /// A power with an infinity in it.
    fn infinite_power(&self, exponent: &Numeric) -> Numeric {
        let one = Numeric::from_i64(1);
        let (zero, up) = (Numeric::from_i64(0), exponent.signum() > 0);
        if self.compare(&one).is_eq() || exponent.signum() == 0 {
            return one;
        }
        if self.signum() == 0 {
            return zero;
        }
        if exponent.is_infinite() {
            return match self.abs().compare(&one) {
                Ordering::Equal => one,
                order if order.is_gt() == up => Numeric::INFINITY,
                _ => zero,
            };
        }
        let odd = || {
            let two = Numeric::from_i64(2);
            exponent.rem(&two).is_ok_and(|r| r.signum() != 0)
        };
        match (up, self.signum()) {
            (false, _) => zero,
            (true, -1) if odd() => Numeric::NEG_INFINITY,
            (true, _) => Numeric::INFINITY,
        }
    }

    /// A power with a whole exponent.
    fn whole_power(&self, n: i32) -> Result<Numeric> {
        let scale = result_scale(SIGNIFICANT, &[self]);
        match n {
            0 => return Numeric::from_i64(1).rounded(scale as i32),
            1 => return self.rounded(scale as i32),
            -1 => return Numeric::from_i64(1).div_scaled(self, scale),
            2 => return self.mul(self)?.rounded(scale as i32),
            _ => {}
        }
        if self.signum() == 0 {
            return Numeric::from_small(0, scale);
        }
        // The decimal logarithm of the result.
        let (weight, group) = leading_group(self);
        let (digits, weight) = match self.second_group(weight) {
            Some(second) => (group * 10_000 + second, weight * 4 - 4),
            None => (group, weight * 4),
        };
        let estimate = f64::from(n) * ((digits as f64).log10() + weight as f64);
        if estimate > f64::from(MAX_INT_DIGITS) {
            return Err(overflow());
        }
        if estimate + 1.0 < -f64::from(scale) || estimate + 1.0 < -(MAX_DISPLAY_SCALE as f64) {
            return Numeric::from_small(0, scale);
        }
        self.multiplied(n, scale, estimate)
    }

    /// A whole power by squaring, with as many significant digits as the result needs.
    fn multiplied(&self, n: i32, scale: u32, estimate: f64) -> Result<Numeric> {
        let significant = (f64::from(scale) + estimate.max(-f64::from(scale))) as u32 + 2 * GUARD;
        let Some((coef, from)) = self.parts() else {
            return Ok(Numeric::NAN);
        };
        // coefficient · 10^exponent, truncated to that many digits
        let cut = |coef: IBig, exponent: i64| {
            let drop = digits_big(&magnitude(&coef)).saturating_sub(significant);
            match drop {
                0 => (coef, exponent),
                _ => (
                    div_round_big(&coef, &IBig::from(big_pow10(drop))),
                    exponent + i64::from(drop),
                ),
            }
        };
        let (mut base, mut base_exponent) = cut(coef, -i64::from(from));
        let (mut made, mut made_exponent) = (IBig::ONE, 0);
        let mut bits = n.unsigned_abs();
        while bits != 0 {
            if bits & 1 == 1 {
                (made, made_exponent) = cut(made * &base, made_exponent + base_exponent);
            }
            bits >>= 1;
            if bits != 0 {
                (base, base_exponent) = cut(&base * &base, base_exponent * 2);
            }
        }
        let target = i64::from(scale);
        let (top, bottom, shift) = match n > 0 {
            true => (made, IBig::ONE, made_exponent + target),
            false => (IBig::ONE, made, target - made_exponent),
        };
        let by = u32::try_from(shift.unsigned_abs()).map_err(|_| overflow())?;
        let quotient = match shift >= 0 {
            true => div_round_big(&(top * big_pow10(by)), &bottom),
            false => div_round_big(&top, &(bottom * big_pow10(by))),
        };
        Numeric::from_big(quotient, scale)
    }

    /// A power with an exponent that is not whole, or large.
    fn real_power(&self, exponent: &Numeric) -> Result<Numeric> {
        if self.signum() == 0 {
            return Numeric::from_small(0, SIGNIFICANT as u32);
        }
        let base = self.abs();
        let negative = self.signum() < 0 && {
            let two = Numeric::from_i64(2);
            exponent.rem(&two)?.signum() != 0
        };
        let weight = base.ln_weight();
        let rough = (8 - weight).clamp(0, MAX_DISPLAY_SCALE) as u32;
        let ln = rounded_from(base.ln_to(rough + GUARD), rough + GUARD, rough)?;
        let value = ln.mul(exponent)?.rounded(rough as i32)?.to_f64_saturating();
        if value.abs() > MAX_RESULT_SCALE * 3.01 {
            return match value > 0.0 {
                true => Err(overflow()),
                false => Numeric::from_small(0, MAX_DISPLAY_SCALE as u32),
            };
        }
        let value = value * LOG10_E;
        let scale = result_scale(SIGNIFICANT - value as i64, &[self, exponent]);
        let large = exponent.int_digits().unwrap_or(0).clamp(0, 20_000) as u32;
        let work = scale + value.max(0.0) as u32 + large + GUARD;
        let product = base.ln_to(work) * fixed(exponent, work) / IBig::from(big_pow10(work));
        let made = Numeric::exp_to(&product, work, scale)?;
        Ok(if negative { made.neg() } else { made })
    }

    /// `div(self, other)`: the quotient, truncated to a whole number.
    pub(crate) fn div_trunc(&self, other: &Numeric) -> Result<Numeric> {
        let (Some(a), Some(b)) = (self.parts(), other.parts()) else {
            return self.div(other);
        };
        let (a, b, _) = aligned_big(a, b);
        if b.is_zero() {
            return Err(division_by_zero());
        }
        Numeric::from_big(a / b, 0)
    }

    /// `gcd(self, other)`
    pub(crate) fn gcd(&self, other: &Numeric) -> Result<Numeric> {
        let (Some(a), Some(b)) = (self.parts(), other.parts()) else {
            return Ok(Numeric::NAN);
        };
        let (a, b, scale) = aligned_big(a, b);
        let (mut x, mut y) = (a.abs(), b.abs());
        while !y.is_zero() {
            let rest = &x % &y;
            (x, y) = (y, rest);
        }
        Numeric::from_big(x, scale)
    }

    /// `lcm(self, other)`
    pub(crate) fn lcm(&self, other: &Numeric) -> Result<Numeric> {
        if self.parts().is_none() || other.parts().is_none() {
            return Ok(Numeric::NAN);
        }
        let scale = self.scale().max(other.scale());
        if self.signum() == 0 || other.signum() == 0 {
            return Numeric::from_small(0, u32::from(scale));
        }
        let part = self.div_trunc(&self.gcd(other)?)?;
        part.mul(other)?.abs().rounded(i32::from(scale))
    }

    /// `factorial(n)`
    pub(crate) fn factorial(n: i64) -> Result<Numeric> {
        if n < 0 {
            return Err(Error::new(
                b"22003",
                "factorial of a negative number is undefined",
            ));
        }
        // The first that has more digits than a numeric can have.
        if n > 32_177 {
            return Err(overflow());
        }
        let product = (2..=n as u32).fold(UBig::ONE, |product, n| product * n);
        Numeric::from_big(IBig::from(product), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::n;
    use super::*;

    fn shown(r: Result<Numeric>) -> String {
        r.map_or_else(|e| e.sqlstate_str().into(), |v| v.to_text())
    }

    /// As PostgreSQL shows them.
    #[test]
    fn roots_and_logarithms() {
        assert_eq!(shown(n("2").sqrt()), "1.414213562373095");
        assert_eq!(shown(n("0").sqrt()), "0.000000000000000");
        assert_eq!(shown(n("-1").sqrt()), "2201F");
        assert_eq!(shown(n("2").ln()), "0.6931471805599453");
        assert_eq!(shown(n("1").ln()), "0.0000000000000000");
        assert_eq!(shown(n("0").ln()), "2201E");
        assert_eq!(shown(n("1").exp()), "2.7182818284590452");
        assert_eq!(shown(n("6000").exp()), "22003");
        assert_eq!(
            shown(Numeric::log(&n("10"), &n("1000"))),
            "3.0000000000000000"
        );
        assert_eq!(shown(Numeric::log(&n("1"), &n("10"))), "22012");
        assert_eq!(shown(Numeric::log(&n("-1"), &n("0"))), "2201E");
    }

    #[test]
    fn powers() {
        for (a, b, expected) in [
            ("2.5", "2", "6.2500000000000000"),
            ("2", "0.5", "1.4142135623730950"),
            ("0", "0", "1.0000000000000000"),
            ("0", "-1", "2201F"),
            ("-8", "0.5", "2201F"),
            ("-2", "3", "-8.0000000000000000"),
            ("2", "-2", "0.2500000000000000"),
            ("NaN", "0", "1"),
            ("-Infinity", "3", "-Infinity"),
            ("0.5", "Infinity", "0"),
            ("10", "200000", "22003"),
        ] {
            assert_eq!(shown(n(a).power(&n(b))), expected, "{a} {b}");
        }
    }

    #[test]
    fn divisors() {
        assert_eq!(shown(n("7.5").div_trunc(&n("2"))), "3");
        assert_eq!(shown(n("1").div_trunc(&n("0"))), "22012");
        assert_eq!(shown(n("330.3").gcd(&n("462"))), "0.3");
        assert_eq!(shown(n("330.3").lcm(&n("-462"))), "508662.0");
        assert_eq!(shown(Numeric::factorial(20)), "2432902008176640000");
        assert_eq!(shown(Numeric::factorial(-1)), "22003");
        assert_eq!(shown(Numeric::factorial(40_000)), "22003");
        assert_eq!(n("1.500").min_scale(), 1);
        assert_eq!(n("100").min_scale(), 0);
    }
}
