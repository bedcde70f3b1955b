//! Rounding and cutting to a scale, and the modifiers of `numeric`.

use super::*;

impl Numeric {
    /// The value rounded half away from zero to `scale` digits after the point
    /// (before it, if negative), which becomes the display scale.
    pub(crate) fn rounded(&self, scale: i32) -> Result<Numeric> {
        self.rescaled(scale, true)
    }

    /// As [`Numeric::rounded`], toward zero.
    pub(crate) fn truncated(&self, scale: i32) -> Result<Numeric> {
        self.rescaled(scale, false)
    }

    fn rescaled(&self, scale: i32, round: bool) -> Result<Numeric> {
        let Some(finite) = self.finite() else {
            return Ok(self.clone());
        };
        let (Finite::Small(_, from) | Finite::Big(_, from)) = finite;
        let target = scale.max(0) as u32;
        // from and scale are small; the difference fits.
        let drop = i64::from(from) - i64::from(scale);
        if drop <= 0 {
            let add = drop.unsigned_abs() as u32;
            return match finite {
                Finite::Small(c, _) => match pow10(add).and_then(|p| c.checked_mul(p)) {
                    Some(c) => Numeric::from_small(c, target),
                    None if target > MAX_SCALE => Err(overflow()),
                    None => Numeric::from_big(IBig::from(c) * big_pow10(add), target),
                },
                Finite::Big(..) if target > MAX_SCALE => Err(overflow()),
                Finite::Big(c, _) => Numeric::from_big(c * big_pow10(add), target),
            };
        }
        let drop = u32::try_from(drop).unwrap_or(u32::MAX);
        let refill = (-i64::from(scale)).max(0) as u32;
        match finite {
            Finite::Small(c, _) => {
                let q = match pow10(drop) {
                    Some(p) if round => div_round_small(c, p),
                    Some(p) => c / p,
                    None => 0,
                };
                match pow10(refill).and_then(|p| q.checked_mul(p)) {
                    _ if q == 0 => Numeric::from_small(0, target),
                    Some(v) => Numeric::from_small(v, target),
                    None => Numeric::from_big(IBig::from(q) * big_pow10(refill), target),
                }
            }
            Finite::Big(c, _) => {
                if drop > digits_big(&magnitude(c)) {
                    return Numeric::from_small(0, target);
                }
                let p = IBig::from(big_pow10(drop));
                let q = if round { div_round_big(c, &p) } else { c / p };
                Numeric::from_big(q * big_pow10(refill), target)
            }
        }
    }

    /// Decimal exponent of the leading digit plus one: the number of digits
    /// before the point, negative if zeros follow it. `None` for zero and
    /// special values.
    pub(super) fn int_digits(&self) -> Option<i64> {
        let (digits, scale) = match self.finite()? {
            Finite::Small(c, s) => (digits_small(c.unsigned_abs()), s),
            Finite::Big(c, s) => (digits_big(&magnitude(c)), s),
        };
        (digits > 0).then(|| i64::from(digits) - i64::from(scale))
    }

    /// Applies a `numeric(p,s)` modifier (-1: none).
    pub fn with_typmod(self, typmod: i32) -> Result<Numeric> {
        let Some((precision, scale)) = typmod_parts(typmod) else {
            return Ok(self);
        };
        if self.is_nan() {
            return Ok(self);
        }
        if self.is_infinite() {
            return Err(Error::new(b"22003", "numeric field overflow").detail(format!(
                "A field with precision {precision}, scale {scale} cannot hold an infinite value."
            )));
        }
        let rounded = if i32::from(self.scale()) == scale {
            self
        } else {
            self.rounded(scale)?
        };
        let room = i64::from(precision) - i64::from(scale);
        if rounded.int_digits().is_some_and(|digits| digits > room) {
            return Err(field_overflow(precision, scale));
        }
        Ok(rounded)
    }
}

/// Precision and scale of a modifier, if it is one.
pub(crate) fn typmod_parts(typmod: i32) -> Option<(i32, i32)> {
    let bare = typmod.checked_sub(4).filter(|&t| t >= 0)?;
    Some(((bare >> 16) & 0xffff, ((bare & 0x7ff) ^ 1024) - 1024))
}

pub(super) fn field_overflow(precision: i32, scale: i32) -> Error {
    let room = precision - scale;
    let limit = if room == 0 {
        "1".to_string()
    } else {
        format!("10^{room}")
    };
    Error::new(b"22003", "numeric field overflow").detail(format!(
        "A field with precision {precision}, scale {scale} must round to an absolute value less than {limit}."
    ))
}
