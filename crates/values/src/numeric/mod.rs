//! Arbitrary-precision decimals.

use std::fmt;

/// A `numeric`: NaN, an infinity, or coefficient × 10^-scale where scale is
/// PostgreSQL's display scale.
#[derive(Clone)]
pub struct Numeric(Repr);

#[derive(Clone)]
enum Repr {
    NaN,
    Small(u16, [u64; 2]),
}

impl Numeric {
    /// The number `value` × 10^-`scale`. A scale above 16383 gives NaN.
    pub fn from_scaled(value: i64, scale: u16) -> Numeric {
        let v = i128::from(value) as u128;
        Numeric(Repr::Small(scale, [v as u64, (v >> 64) as u64]))
    }

    /// The inverse of [`Numeric::from_scaled`]: exact, only if the display scale
    /// is `scale` and the coefficient fits.
    pub fn to_scaled(&self, scale: u16) -> Option<i64> {
        let _ = scale;
        match self.0 {
            Repr::NaN => None,
            Repr::Small(s, v) if s == scale => Some(v[0] as i64),
            Repr::Small(..) => None,
        }
    }

    /// A whole number.
    pub fn from_i64(value: i64) -> Numeric {
        Numeric::from_scaled(value, 0)
    }

    /// Bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        0
    }
}

impl fmt::Debug for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("numeric")
    }
}
