//! Conversions between [`Numeric`] and machine numbers.

use super::*;

impl Numeric {
    /// As the cast from `float8`: 15 significant digits.
    pub fn from_f64(v: f64) -> Result<Numeric> {
        Numeric::from_float(v, 14)
    }

    /// As the cast from `float4`: 6 significant digits.
    pub fn from_f32(v: f32) -> Result<Numeric> {
        Numeric::from_float(f64::from(v), 5)
    }

    fn from_float(v: f64, decimals: usize) -> Result<Numeric> {
        if v.is_nan() {
            return Ok(Numeric::NAN);
        }
        if v.is_infinite() {
            return Ok(if v > 0.0 {
                Numeric::INFINITY
            } else {
                Numeric::NEG_INFINITY
            });
        }
        let text = format!("{v:.decimals$e}");
        // Drop zeros at the end of the mantissa: they are not significant.
        let short = match text.split_once('e') {
            Some((mantissa, exponent)) => {
                format!(
                    "{}e{exponent}",
                    mantissa.trim_end_matches('0').trim_end_matches('.')
                )
            }
            None => text,
        };
        Numeric::parse(short.as_bytes(), -1)
    }

    /// As the cast to `float8`.
    pub fn to_f64(&self) -> Result<f64> {
        crate::float::parse_f64(self.to_text().as_bytes())
    }

    /// As the cast to `float4`.
    pub fn to_f32(&self) -> Result<f32> {
        crate::float::parse_f32(self.to_text().as_bytes())
    }

    /// As the cast to an integer type: `name` is PostgreSQL's name of the type.
    pub fn to_integer(&self, name: &'static str) -> Result<i64> {
        if self.is_nan() {
            return Err(Error::new(
                b"0A000",
                format!("cannot convert NaN to {name}"),
            ));
        }
        if self.is_infinite() {
            return Err(Error::new(
                b"0A000",
                format!("cannot convert infinity to {name}"),
            ));
        }
        match self.rounded(0)?.0 {
            Repr::Small(s) => i64::try_from(s.coef()).ok(),
            _ => None,
        }
        .ok_or_else(|| crate::error::out_of_range(name))
    }

    /// A whole number.
    pub(crate) fn from_i128(v: i128) -> Numeric {
        Numeric::from_small(v, 0).unwrap_or(Numeric::NAN)
    }

    /// `coef` × 10^-`scale`, with a small scale.
    pub(crate) fn from_i128_scaled(coef: i128, scale: u16) -> Numeric {
        Numeric::from_small(coef, u32::from(scale)).unwrap_or(Numeric::NAN)
    }

    /// The number as a coefficient of 64 bits and the least scale that it can have;
    /// `None` if there are none. Equal numbers have equal ones.
    pub fn reduced(&self) -> Option<(i64, u16)> {
        let (mut coef, mut scale) = match &self.0 {
            Repr::Small(s) => (s.coef(), s.scale),
            Repr::Big(b) => {
                let zeros = {
                    let text = magnitude(&b.coef).to_string();
                    (text.len() - text.trim_end_matches('0').len()) as u32
                };
                let strip = zeros.min(u32::from(b.scale));
                let coef = i128::try_from(&(b.coef.clone() / IBig::from(big_pow10(strip)))).ok()?;
                (coef, b.scale - strip as u16)
            }
            _ => return None,
        };
        while scale > 0 && coef % 10 == 0 {
            coef /= 10;
            scale -= 1;
            if coef == 0 {
                scale = 0;
            }
        }
        Some((i64::try_from(coef).ok()?, scale))
    }
}
