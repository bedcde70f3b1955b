//! Arbitrary-precision decimals: representation, construction, order, rounding.
//!
//! Invariants: the value is coefficient × 10^-scale with scale (PostgreSQL's
//! display scale) at most [`MAX_SCALE`]; the coefficient is inline exactly if it
//! fits in `i128` (and is not `i128::MIN`); the integer part has at most
//! [`MAX_INT_DIGITS`] digits.

mod arith;
mod binary;
mod convert;
mod functions;
mod round;
mod text;

use round::field_overflow;
pub(crate) use round::typmod_parts;

use crate::{Error, Result};
use dashu_int::ops::{Abs, BitTest, DivRem};
use dashu_int::{IBig, Sign, UBig};
use std::cmp::Ordering;
use std::fmt;

/// The largest display scale.
pub(crate) const MAX_SCALE: u32 = 16383;
/// The largest number of digits before the decimal point.
pub(crate) const MAX_INT_DIGITS: u32 = 131_072;
/// The largest scale of a division.
const MAX_DISPLAY_SCALE: i64 = 1000;

/// A `numeric`: NaN, an infinity, or coefficient × 10^-scale where scale is
/// PostgreSQL's display scale.
#[derive(Clone)]
pub struct Numeric(Repr);

#[derive(Clone)]
enum Repr {
    NaN,
    PosInf,
    NegInf,
    Small(Small),
    Big(Box<Big>),
}

/// An `i128` in two words, so that [`Numeric`] needs no 16-byte alignment.
#[derive(Clone, Copy)]
struct Small {
    _room: Room,
    scale: u16,
    low: u64,
    high: i64,
}

/// A byte with one value: its others tell the variants of [`Repr`], and of
/// [`crate::Value`], apart.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Room {
    Only = 0,
}

#[derive(Clone)]
struct Big {
    scale: u16,
    coef: IBig,
}

/// A finite number, taken apart.
enum Finite<'a> {
    Small(i128, u32),
    Big(&'a IBig, u32),
}

const POW10: [i128; 39] = {
    let mut table = [1i128; 39];
    let mut i = 1;
    while i < 39 {
        table[i] = table[i - 1] * 10;
        i += 1;
    }
    table
};

/// 10^n if it fits.
fn pow10(n: u32) -> Option<i128> {
    POW10.get(n as usize).copied()
}

/// 10^n.
fn big_pow10(n: u32) -> UBig {
    UBig::from(10u8).pow(n as usize)
}

fn overflow() -> Error {
    Error::new(b"22003", "value overflows numeric format")
}

/// Number of decimal digits; 0 for zero.
fn digits_small(v: u128) -> u32 {
    v.checked_ilog10().map_or(0, |n| n + 1)
}

/// Number of decimal digits; 0 for zero.
fn digits_big(v: &UBig) -> u32 {
    if v.is_zero() {
        return 0;
    }
    // log10(2^(bits-1)) from below, then at most one step up.
    let bits = v.bit_len() as u64;
    let mut digits = ((bits - 1) as u128 * 30_102_999_566 / 100_000_000_000) as u32;
    while *v >= big_pow10(digits) {
        digits += 1;
    }
    digits
}

/// n / d rounded half away from zero; d must not be zero.
fn div_round_big(n: &IBig, d: &IBig) -> IBig {
    let (q, r) = n.div_rem(d);
    let negative = (n.sign() == Sign::Negative) != (d.sign() == Sign::Negative);
    if r.abs() * 2u8 >= d.abs() {
        if negative {
            q - IBig::ONE
        } else {
            q + IBig::ONE
        }
    } else {
        q
    }
}

/// n / d rounded half away from zero; d must not be zero.
fn div_round_small(n: i128, d: i128) -> i128 {
    let (q, r) = (n / d, n % d);
    let half_or_more = r.unsigned_abs() >= d.unsigned_abs() - r.unsigned_abs();
    match (half_or_more, (n < 0) != (d < 0)) {
        (false, _) => q,
        (true, false) => q + 1,
        (true, true) => q - 1,
    }
}

impl Numeric {
    /// Not a number.
    pub const NAN: Numeric = Numeric(Repr::NaN);
    /// Positive infinity.
    pub const INFINITY: Numeric = Numeric(Repr::PosInf);
    /// Negative infinity.
    pub const NEG_INFINITY: Numeric = Numeric(Repr::NegInf);

    /// The number `value` × 10^-`scale`. A scale above 16383 gives NaN.
    pub fn from_scaled(value: i64, scale: u16) -> Numeric {
        if u32::from(scale) > MAX_SCALE {
            return Numeric::NAN;
        }
        Numeric::small(i128::from(value), scale)
    }

    /// The inverse of [`Numeric::from_scaled`]: exact, only if the display scale
    /// is `scale` and the coefficient fits.
    pub fn to_scaled(&self, scale: u16) -> Option<i64> {
        match &self.0 {
            Repr::Small(s) if s.scale == scale => i64::try_from(s.coef()).ok(),
            _ => None,
        }
    }

    /// A whole number.
    pub fn from_i64(value: i64) -> Numeric {
        Numeric::small(i128::from(value), 0)
    }

    /// Whether the value is NaN.
    pub fn is_nan(&self) -> bool {
        matches!(self.0, Repr::NaN)
    }

    /// Whether the value is an infinity.
    pub fn is_infinite(&self) -> bool {
        matches!(self.0, Repr::PosInf | Repr::NegInf)
    }

    /// The display scale; 0 for NaN and infinities.
    pub fn scale(&self) -> u16 {
        match &self.0 {
            Repr::Small(s) => s.scale,
            Repr::Big(b) => b.scale,
            _ => 0,
        }
    }

    /// -1, 0 or 1; 0 for NaN.
    pub fn signum(&self) -> i8 {
        match &self.0 {
            Repr::NaN => 0,
            Repr::PosInf => 1,
            Repr::NegInf => -1,
            Repr::Small(s) => s.coef().signum() as i8,
            Repr::Big(b) if b.coef.sign() == Sign::Negative => -1,
            Repr::Big(_) => 1,
        }
    }

    /// Bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Repr::Big(b) => {
                let words = b.coef.as_sign_words().1.len();
                size_of::<Big>() + size_of_val(&words) * words
            }
            _ => 0,
        }
    }

    /// `coef` must not be `i128::MIN`.
    fn small(coef: i128, scale: u16) -> Numeric {
        Numeric(Repr::Small(Small {
            _room: Room::Only,
            scale,
            low: coef as u64,
            high: (coef >> 64) as i64,
        }))
    }

    /// A number from any parts, checked against the limits of the type.
    fn from_small(coef: i128, scale: u32) -> Result<Numeric> {
        match u16::try_from(scale) {
            Ok(s) if scale <= MAX_SCALE && coef != i128::MIN => Ok(Numeric::small(coef, s)),
            _ => Numeric::from_big(IBig::from(coef), scale),
        }
    }

    /// A number from any parts, checked against the limits of the type.
    fn from_big(coef: IBig, scale: u32) -> Result<Numeric> {
        let s = u16::try_from(scale).map_err(|_| overflow())?;
        if scale > MAX_SCALE {
            return Err(overflow());
        }
        if let Ok(small) = i128::try_from(&coef)
            && small != i128::MIN
        {
            return Ok(Numeric::small(small, s));
        }
        let limit = MAX_INT_DIGITS + scale;
        // 10^n has more than 3.3219 n bits: only beyond that look closer.
        let bits = coef.as_sign_words().1.len() as u64 * 64;
        if bits * 10_000 > u64::from(limit) * 33_219 {
            let magnitude = magnitude(&coef);
            if digits_big(&magnitude) > limit {
                return Err(overflow());
            }
        }
        Ok(Numeric(Repr::Big(Box::new(Big { scale: s, coef }))))
    }

    /// The parts of a finite number.
    fn finite(&self) -> Option<Finite<'_>> {
        match &self.0 {
            Repr::Small(s) => Some(Finite::Small(s.coef(), u32::from(s.scale))),
            Repr::Big(b) => Some(Finite::Big(&b.coef, u32::from(b.scale))),
            _ => None,
        }
    }

    /// Coefficient and scale of a finite number.
    fn parts(&self) -> Option<(IBig, u32)> {
        self.finite().map(|f| match f {
            Finite::Small(c, s) => (IBig::from(c), s),
            Finite::Big(c, s) => (c.clone(), s),
        })
    }

    /// PostgreSQL's order: NaN equals itself and is above everything.
    pub fn compare(&self, other: &Numeric) -> Ordering {
        if let (Repr::Small(a), Repr::Small(b)) = (&self.0, &other.0) {
            return cmp_small(a, b);
        }
        fn class(n: &Numeric) -> i8 {
            match n.0 {
                Repr::NegInf => -1,
                Repr::PosInf => 1,
                Repr::NaN => 2,
                _ => 0,
            }
        }
        let order = class(self).cmp(&class(other));
        if order != Ordering::Equal || class(self) != 0 {
            return order;
        }
        let by_sign = self.signum().cmp(&other.signum());
        if by_sign != Ordering::Equal {
            return by_sign;
        }
        match (self.parts(), other.parts()) {
            (Some((a, sa)), Some((b, sb))) => match sa.cmp(&sb) {
                Ordering::Equal => a.cmp(&b),
                Ordering::Less => (a * big_pow10(sb - sa)).cmp(&b),
                Ordering::Greater => a.cmp(&(b * big_pow10(sa - sb))),
            },
            _ => Ordering::Equal,
        }
    }

    /// A canonical form of equal values: class or sign, magnitude in bytes, scale.
    pub(crate) fn canonical(&self, feed: &mut dyn FnMut(&[u8])) {
        match self.finite() {
            None => feed(&[if self.is_nan() {
                3
            } else {
                4 + (self.signum() == 1) as u8
            }]),
            Some(Finite::Small(mut c, mut s)) => {
                while s > 0 && c % 10 == 0 {
                    c /= 10;
                    s -= 1;
                    if c == 0 {
                        s = 0;
                    }
                }
                feed(&[0]);
                feed(&c.to_le_bytes());
                feed(&s.to_le_bytes());
            }
            Some(Finite::Big(c, s)) => {
                let text = magnitude(c).to_string();
                let zeros = text.len() - text.trim_end_matches('0').len();
                let strip = (zeros as u32).min(s);
                let reduced = c / IBig::from(big_pow10(strip));
                feed(&[0]);
                match i128::try_from(&reduced) {
                    Ok(small) if small != i128::MIN => feed(&small.to_le_bytes()),
                    _ => {
                        feed(&[(c.sign() == Sign::Negative) as u8]);
                        feed(&magnitude(&reduced).to_le_bytes());
                    }
                }
                feed(&(s - strip).to_le_bytes());
            }
        }
    }
}

fn magnitude(v: &IBig) -> UBig {
    v.clone().unsigned_abs_value()
}

/// Names the absolute value as an unsigned number.
trait UnsignedAbsValue {
    fn unsigned_abs_value(self) -> UBig;
}

impl UnsignedAbsValue for IBig {
    fn unsigned_abs_value(self) -> UBig {
        self.into_parts().1
    }
}

impl Small {
    fn coef(&self) -> i128 {
        (i128::from(self.high) << 64) | i128::from(self.low)
    }
}

fn cmp_small(a: &Small, b: &Small) -> Ordering {
    let (ca, cb) = (a.coef(), b.coef());
    // If scaling up overflows, that side has the larger magnitude.
    let toward = |c: i128, positive| {
        if c > 0 {
            positive
        } else {
            Ordering::reverse(positive)
        }
    };
    match a.scale.cmp(&b.scale) {
        Ordering::Equal => ca.cmp(&cb),
        Ordering::Less => match scale_up(ca, b.scale - a.scale) {
            Some(ca) => ca.cmp(&cb),
            None => toward(ca, Ordering::Greater),
        },
        Ordering::Greater => match scale_up(cb, a.scale - b.scale) {
            Some(cb) => ca.cmp(&cb),
            None => toward(cb, Ordering::Less),
        },
    }
}

fn scale_up(c: i128, by: u16) -> Option<i128> {
    if c == 0 {
        return Some(0);
    }
    pow10(u32::from(by)).and_then(|p| c.checked_mul(p))
}

impl fmt::Debug for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("numeric")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn n(s: &str) -> Numeric {
        Numeric::parse(s.as_bytes(), -1).unwrap()
    }

    /// Order ignores the display scale, takes sides when scaling up overflows, and
    /// puts NaN last; a bug loses rows in indexes.
    #[test]
    fn order() {
        let sorted = [
            "-Infinity",
            "-1e200",
            "-170141183460469231731687303715884105728",
            "-1",
            "-1e-300",
            "0",
            "1e-16383",
            "0.00001",
            "1.5",
            "99999999999999999999999999999999999999",
            "1e39",
            "1e131071",
            "Infinity",
            "NaN",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(n(a).compare(&n(b)), i.cmp(&j), "{a} and {b}");
            }
        }
        assert_eq!(n("1.50").compare(&n("1.5")), Ordering::Equal);
        assert_eq!(
            n("1.00000000000000000000000000000000000000000").compare(&n("1")),
            Ordering::Equal
        );
    }

    /// Values that fit stay inline; a bug costs an allocation per value.
    #[test]
    fn inline_or_not() {
        assert_eq!(n("170141183460469231731687303715884105727").heap_bytes(), 0);
        assert!(n("170141183460469231731687303715884105728").heap_bytes() > 0);
        let big = n("1e39");
        assert_eq!(big.sub(&big).unwrap().heap_bytes(), 0);
    }

    /// Scaled integers for the store: exact, or none.
    #[test]
    fn scaled() {
        assert_eq!(Numeric::from_scaled(-150, 2).to_text(), "-1.50");
        assert_eq!(n("-1.50").to_scaled(2), Some(-150));
        assert_eq!(n("-1.5").to_scaled(2), None);
        assert_eq!(n("9223372036854775808").to_scaled(0), None);
        assert!(Numeric::from_scaled(1, 16_384).is_nan());
    }

    /// Rounding is half away from zero, and modifiers are checked after it.
    #[test]
    fn modifiers() {
        let typmod = |p: i32, s: i32| (p << 16 | s & 0x7ff) + 4;
        let fit = |s: &str, p, sc| n(s).with_typmod(typmod(p, sc)).map(|v| v.to_text());
        assert_eq!(fit("2.345", 5, 2).unwrap(), "2.35");
        assert_eq!(fit("-2.345", 5, 2).unwrap(), "-2.35");
        assert_eq!(fit("1550", 3, -2).unwrap(), "1600");
        assert_eq!(fit("0.00456", 3, 5).unwrap(), "0.00456");
        assert_eq!(fit("NaN", 3, 2).unwrap(), "NaN");
        for (s, p, sc, detail) in [
            (
                "999.995",
                5,
                2,
                "A field with precision 5, scale 2 must round to an absolute value less than 10^3.",
            ),
            (
                "1",
                3,
                3,
                "A field with precision 3, scale 3 must round to an absolute value less than 1.",
            ),
            (
                "Infinity",
                5,
                2,
                "A field with precision 5, scale 2 cannot hold an infinite value.",
            ),
        ] {
            let e = fit(s, p, sc).unwrap_err();
            assert_eq!(
                (&e.sqlstate, &*e.message),
                (b"22003", "numeric field overflow")
            );
            assert_eq!(e.detail.unwrap(), detail);
        }
    }
}
