//! Arithmetic of [`Numeric`], with PostgreSQL's result scales.

use super::*;

pub(super) fn division_by_zero() -> Error {
    Error::new(b"22012", "division by zero")
}

/// Both coefficients at the larger scale, inline.
fn aligned_small(a: &Small, b: &Small) -> Option<(i128, i128, u16)> {
    match a.scale.cmp(&b.scale) {
        Ordering::Equal => Some((a.coef(), b.coef(), a.scale)),
        Ordering::Less => Some((scale_up(a.coef(), b.scale - a.scale)?, b.coef(), b.scale)),
        Ordering::Greater => Some((a.coef(), scale_up(b.coef(), a.scale - b.scale)?, a.scale)),
    }
}

/// Both coefficients at the larger scale.
pub(super) fn aligned_big(a: (IBig, u32), b: (IBig, u32)) -> (IBig, IBig, u32) {
    match a.1.cmp(&b.1) {
        Ordering::Equal => (a.0, b.0, a.1),
        Ordering::Less => (a.0 * big_pow10(b.1 - a.1), b.0, b.1),
        Ordering::Greater => (a.0, b.0 * big_pow10(a.1 - b.1), a.1),
    }
}

/// Weight and value of the leading base-10000 digit; zero has both zero.
pub(super) fn leading_group(n: &Numeric) -> (i64, i64) {
    let Some(int_digits) = n.int_digits() else {
        return (0, 0);
    };
    let weight = (int_digits - 1).div_euclid(4);
    // Digits of the coefficient that lie in the leading group.
    let take = (int_digits - weight * 4) as u32;
    let group = match n.finite() {
        Some(Finite::Small(c, _)) => {
            let digits = digits_small(c.unsigned_abs());
            let c = c.unsigned_abs();
            if digits >= take {
                pow10(digits - take).map_or(0, |p| (c / p.unsigned_abs()) as i64)
            } else {
                (c as i64) * 10i64.pow(take - digits)
            }
        }
        Some(Finite::Big(c, _)) => {
            let c = magnitude(c);
            let digits = digits_big(&c);
            i64::try_from(c / big_pow10(digits - take)).unwrap_or(0)
        }
        None => 0,
    };
    (weight, group)
}

/// PostgreSQL's scale of a quotient: at least 16 significant digits.
fn div_scale(a: &Numeric, b: &Numeric) -> u32 {
    let ((weight_a, first_a), (weight_b, first_b)) = (leading_group(a), leading_group(b));
    let mut weight = weight_a - weight_b;
    if first_a <= first_b {
        weight -= 1;
    }
    let scale = (16 - weight * 4)
        .max(i64::from(a.scale()))
        .max(i64::from(b.scale()));
    scale.clamp(0, MAX_DISPLAY_SCALE) as u32
}

impl Numeric {
    /// `self + other`
    pub fn add(&self, other: &Numeric) -> Result<Numeric> {
        if let (Repr::Small(a), Repr::Small(b)) = (&self.0, &other.0)
            && let Some((ca, cb, scale)) = aligned_small(a, b)
            && let Some(sum) = ca.checked_add(cb)
        {
            return Numeric::from_small(sum, u32::from(scale));
        }
        match (self.parts(), other.parts()) {
            (Some(a), Some(b)) => {
                let (a, b, scale) = aligned_big(a, b);
                Numeric::from_big(a + b, scale)
            }
            _ => Ok(self.special_sum(other)),
        }
    }

    /// Sum of two numbers, at least one of which is not finite.
    fn special_sum(&self, other: &Numeric) -> Numeric {
        match (&self.0, &other.0) {
            (Repr::NaN, _) | (_, Repr::NaN) => Numeric::NAN,
            (Repr::PosInf, Repr::NegInf) | (Repr::NegInf, Repr::PosInf) => Numeric::NAN,
            (Repr::PosInf | Repr::NegInf, _) => self.clone(),
            _ => other.clone(),
        }
    }

    /// `self - other`
    pub fn sub(&self, other: &Numeric) -> Result<Numeric> {
        self.add(&other.neg())
    }

    /// `-self`
    pub fn neg(&self) -> Numeric {
        Numeric(match &self.0 {
            Repr::NaN => Repr::NaN,
            Repr::PosInf => Repr::NegInf,
            Repr::NegInf => Repr::PosInf,
            Repr::Small(s) => return Numeric::small(-s.coef(), s.scale),
            Repr::Big(b) => Repr::Big(Box::new(Big {
                scale: b.scale,
                coef: -b.coef.clone(),
            })),
        })
    }

    /// `abs(self)`
    pub fn abs(&self) -> Numeric {
        if self.signum() < 0 {
            self.neg()
        } else {
            self.clone()
        }
    }

    /// `self * other`
    pub fn mul(&self, other: &Numeric) -> Result<Numeric> {
        if let (Repr::Small(a), Repr::Small(b)) = (&self.0, &other.0)
            && let Some(product) = a.coef().checked_mul(b.coef())
        {
            let scale = u32::from(a.scale) + u32::from(b.scale);
            if scale <= MAX_SCALE {
                return Numeric::from_small(product, scale);
            }
        }
        match (self.parts(), other.parts()) {
            (Some((a, sa)), Some((b, sb))) => {
                let (product, scale) = (a * b, sa + sb);
                if scale <= MAX_SCALE {
                    return Numeric::from_big(product, scale);
                }
                let excess = IBig::from(big_pow10(scale - MAX_SCALE));
                Numeric::from_big(div_round_big(&product, &excess), MAX_SCALE)
            }
            _ => Ok(
                match (
                    self.is_nan() || other.is_nan(),
                    self.signum() * other.signum(),
                ) {
                    (true, _) | (_, 0) => Numeric::NAN,
                    (_, 1) => Numeric::INFINITY,
                    _ => Numeric::NEG_INFINITY,
                },
            ),
        }
    }

    /// `self / other`
    pub fn div(&self, other: &Numeric) -> Result<Numeric> {
        if self.is_nan() || other.is_nan() {
            return Ok(Numeric::NAN);
        }
        if self.is_infinite() {
            return match (other.is_infinite(), self.signum() * other.signum()) {
                (true, _) => Ok(Numeric::NAN),
                (_, 0) => Err(division_by_zero()),
                (_, 1) => Ok(Numeric::INFINITY),
                _ => Ok(Numeric::NEG_INFINITY),
            };
        }
        if other.is_infinite() {
            return Ok(Numeric::from_i64(0));
        }
        if other.signum() == 0 {
            return Err(division_by_zero());
        }
        self.div_scaled(other, div_scale(self, other))
    }

    /// Quotient of finite numbers rounded to `scale`; `other` is not zero.
    pub(super) fn div_scaled(&self, other: &Numeric, scale: u32) -> Result<Numeric> {
        // q = a·10^-sa / b·10^-sb, so the coefficient is a·10^(scale+sb-sa) / b.
        let shift = i64::from(scale) + i64::from(other.scale()) - i64::from(self.scale());
        let by = shift.unsigned_abs() as u32;
        if let (Repr::Small(a), Repr::Small(b)) = (&self.0, &other.0) {
            let (n, d) = if shift >= 0 {
                (
                    pow10(by).and_then(|p| a.coef().checked_mul(p)),
                    Some(b.coef()),
                )
            } else {
                (
                    Some(a.coef()),
                    pow10(by).and_then(|p| b.coef().checked_mul(p)),
                )
            };
            if let (Some(n), Some(d)) = (n, d)
                && d != 0
                && n != i128::MIN
            {
                return Numeric::from_small(div_round_small(n, d), scale);
            }
        }
        let (Some((a, _)), Some((b, _))) = (self.parts(), other.parts()) else {
            return Ok(Numeric::NAN);
        };
        if b.is_zero() {
            return Err(division_by_zero());
        }
        let quotient = if shift >= 0 {
            div_round_big(&(a * big_pow10(by)), &b)
        } else {
            div_round_big(&a, &(b * big_pow10(by)))
        };
        Numeric::from_big(quotient, scale)
    }

    /// `self % other`, with the sign of `self`
    pub fn rem(&self, other: &Numeric) -> Result<Numeric> {
        if self.is_nan() || other.is_nan() {
            return Ok(Numeric::NAN);
        }
        if other.signum() == 0 {
            return Err(division_by_zero());
        }
        if self.is_infinite() {
            return Ok(Numeric::NAN);
        }
        if other.is_infinite() {
            return Ok(self.clone());
        }
        if let (Repr::Small(a), Repr::Small(b)) = (&self.0, &other.0)
            && let Some((ca, cb, scale)) = aligned_small(a, b)
            && let Some(r) = ca.checked_rem(cb)
        {
            return Numeric::from_small(r, u32::from(scale));
        }
        match (self.parts(), other.parts()) {
            (Some(a), Some(b)) => {
                let (a, b, scale) = aligned_big(a, b);
                if b.is_zero() {
                    return Err(division_by_zero());
                }
                Numeric::from_big(a.div_rem(&b).1, scale)
            }
            _ => Ok(Numeric::NAN),
        }
    }

    /// `ceil(self)`
    pub fn ceil(&self) -> Result<Numeric> {
        let whole = self.truncated(0)?;
        if self.signum() > 0 && whole.compare(self) == Ordering::Less {
            return whole.add(&Numeric::from_i64(1));
        }
        Ok(whole)
    }

    /// `floor(self)`
    pub fn floor(&self) -> Result<Numeric> {
        let whole = self.truncated(0)?;
        if self.signum() < 0 && whole.compare(self) == Ordering::Greater {
            return whole.sub(&Numeric::from_i64(1));
        }
        Ok(whole)
    }

    /// `sign(self)`
    pub fn sign(&self) -> Numeric {
        if self.is_nan() {
            Numeric::NAN
        } else {
            Numeric::from_i64(i64::from(self.signum()))
        }
    }

    /// `round(self, digits)`
    pub fn round(&self, digits: i32) -> Result<Numeric> {
        self.rounded(digits.clamp(-(MAX_INT_DIGITS as i32) - 1, MAX_SCALE as i32))
    }

    /// `trunc(self, digits)`
    pub fn trunc(&self, digits: i32) -> Result<Numeric> {
        self.truncated(digits.clamp(-(MAX_INT_DIGITS as i32), MAX_SCALE as i32))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::n;
    use super::*;

    /// PostgreSQL's own answers; the digits shown depend on the scale rules.
    #[test]
    fn results() {
        type Binary = fn(&Numeric, &Numeric) -> Result<Numeric>;
        let cases: &[(Binary, &str, &str, &str)] = &[
            (Numeric::add, "1.5", "2.25", "3.75"),
            (
                Numeric::add,
                "99999999999999999999999999999999999999",
                "1",
                "100000000000000000000000000000000000000",
            ),
            (Numeric::add, "Infinity", "-Infinity", "NaN"),
            (Numeric::sub, "1", "1.000", "0.000"),
            (Numeric::mul, "1.50", "2.0", "3.000"),
            (Numeric::mul, "Infinity", "0", "NaN"),
            (
                Numeric::mul,
                "1e30",
                "1e30",
                "1000000000000000000000000000000000000000000000000000000000000",
            ),
            (Numeric::div, "1", "3", "0.33333333333333333333"),
            (Numeric::div, "2", "3", "0.66666666666666666667"),
            (Numeric::div, "10000", "3", "3333.3333333333333333"),
            (Numeric::div, "1", "7.00", "0.14285714285714285714"),
            (
                Numeric::div,
                "100000000000000000000",
                "3",
                "33333333333333333333",
            ),
            (Numeric::div, "1", "Infinity", "0"),
            (Numeric::rem, "-7.5", "2", "-1.5"),
            (Numeric::rem, "5", "Infinity", "5"),
            (Numeric::rem, "Infinity", "5", "NaN"),
        ];
        for (op, a, b, expected) in cases {
            assert_eq!(
                op(&n(a), &n(b)).unwrap().to_text(),
                *expected,
                "{a} and {b}"
            );
        }
        assert_eq!(n("1").div(&n("0.00")).unwrap_err().sqlstate, *b"22012");
        assert_eq!(n("Infinity").rem(&n("0")).unwrap_err().sqlstate, *b"22012");
        assert_eq!(n("9e131071").mul(&n("10")).unwrap_err().sqlstate, *b"22003");
    }

    #[test]
    fn rounding() {
        for (s, digits, round, trunc) in [
            ("2.5", 0, "3", "2"),
            ("-2.5", 0, "-3", "-2"),
            ("1234.567", 2, "1234.57", "1234.56"),
            ("1254.567", -2, "1300", "1200"),
            ("49", -2, "0", "0"),
            ("1.5", 4, "1.5000", "1.5000"),
        ] {
            assert_eq!(n(s).round(digits).unwrap().to_text(), round);
            assert_eq!(n(s).trunc(digits).unwrap().to_text(), trunc);
        }
        assert_eq!(n("-1.5").ceil().unwrap().to_text(), "-1");
        assert_eq!(n("-1.5").floor().unwrap().to_text(), "-2");
        assert_eq!(n("1.00").ceil().unwrap().to_text(), "1");
        assert_eq!(n("-0.5").sign().to_text(), "-1");
    }
}
