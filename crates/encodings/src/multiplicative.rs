//! Cells that multiply: a value times a mask, modulo the prime 2^127 - 1 (after Symmetria's
//! multiplicative scheme, with a mask for each cell as in [`crate::additive`]).
//!
//! A cell is `value * mask(i)` for its identifier `i`. A product has the masks of its factors, whichever
//! columns they are from, so the client divides by all of them. A quotient is kept as two products:
//! only so can the client divide as SQL does, which depends on both.
//!
//! Masks are any numbers of the field but 0. With powers of a generator, or squares, a cell would tell
//! whether its value is a square.
//!
//! A row reveals at rest whether its value is zero, and nothing else; a result which rows
//! are in it. Not authenticated. Two cells with one identifier tell the quotient of their
//! values: never use one twice.

use crate::field::{self, P};
use crate::mask::Masks;
use crate::{ColumnKeys, Error};
use contract::soft::BITS_MAX;

/// Seals cells of one column.
pub struct Multiplicative(Masks);

/// What a cell was multiplied with.
#[derive(Clone, Copy)]
pub struct Mask(u128);

impl Multiplicative {
    /// For a column.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn new(keys: &ColumnKeys) -> Result<Multiplicative, Error> {
        Masks::new(keys, "multiplicative").map(Multiplicative)
    }

    /// The cell of a value under an identifier that no other cell has; 0 for 0.
    pub fn seal(&self, identifier: u64, value: i64) -> u128 {
        field::mul(field::from_signed(value.into()), self.mask(identifier).0)
    }

    /// The mask of a cell.
    pub fn mask(&self, identifier: u64) -> Mask {
        // Any number of the field but 0.
        Mask(self.0.mask(identifier) % (P - 1) + 1)
    }
}

/// The product of two cells, or of what was computed of them. Needs no key.
///
/// # Errors
/// [`Error::Malformed`] if one is no number of the field.
pub fn times(a: u128, b: u128) -> Result<u128, Error> {
    if a >= P || b >= P {
        return Err(Error::Malformed);
    }
    Ok(field::mul(a, b))
}

/// The value of a cell, or of a product, with the masks of its factors, whose sizes are at most 2 to the
/// power `bits` together. Of two values of 63 bits a product of 2^126 opens as another one of 126 bits.
///
/// # Errors
/// [`Error::Malformed`] if it is no number of the field, [`Error::Range`] if it has more bits: it was not
/// computed from these cells, or its factors can have too many.
pub fn open(product: u128, masks: &[Mask], bits: u16) -> Result<i128, Error> {
    if product >= P {
        return Err(Error::Malformed);
    }
    if bits > BITS_MAX {
        return Err(Error::Range);
    }
    let mask = masks.iter().fold(1, |all, mask| field::mul(all, mask.0));
    let value = field::mul(product, field::inverse(mask));
    let value = match value > P / 2 {
        true => -(P - value).cast_signed(),
        false => value.cast_signed(),
    };
    if value.unsigned_abs() > 1 << bits {
        return Err(Error::Range);
    }
    Ok(value)
}
