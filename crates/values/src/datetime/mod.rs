//! Dates, times and intervals.

pub(crate) mod abbrev;
pub(crate) mod arith;
pub(crate) mod extract;
pub(crate) mod format;
pub(crate) mod interval;
pub(crate) mod parse;
pub(crate) mod token;

use crate::calendar::*;
use crate::{Error, Result};

/// 22008.
pub(crate) fn out_of_range(what: &str) -> Error {
    Error::new(b"22008", format!("{what} out of range"))
}

/// Rounds to `precision` digits of seconds, half away from zero.
fn round_micros(t: i64, precision: u32) -> i64 {
    let scale = 10i64.pow(6 - precision.min(6));
    let half = scale / 2;
    if t >= 0 {
        (t.wrapping_add(half) / scale).wrapping_mul(scale)
    } else {
        (t.wrapping_neg().wrapping_add(half) / scale)
            .wrapping_mul(scale)
            .wrapping_neg()
    }
}

/// Applies the modifier of `time`, `timestamp` or `timestamptz`.
pub(crate) fn with_precision(t: i64, typmod: i32, name: &str) -> Result<i64> {
    match typmod {
        ..0 => Ok(t),
        0..=6 => Ok(round_micros(t, typmod as u32)),
        _ => Err(Error::new(
            b"22023",
            format!("{name}({typmod}) precision must be between 0 and 6"),
        )),
    }
}
