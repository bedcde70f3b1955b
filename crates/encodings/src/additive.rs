//! Cells that add: a value plus a mask that only the client can make (Seabed's additive
//! scheme, with Symmetria's weights for differences and multiples).
//!
//! A cell is `value + mask(i) - mask(i - 1)` modulo 2^128 for its identifier `i`. A
//! column's identifiers count up, so that sums over consecutive rows open with two
//! masks, however many rows they have.
//!
//! A row reveals at rest nothing of its value; a result reveals which rows are in it. Not
//! authenticated: a database can compute other sums than it was asked to. Two cells with
//! one identifier tell the difference of their values: never use one twice.

use crate::mask::Masks;
use crate::weights::Weights;
use crate::{ColumnKeys, Error};

const VALUE_BYTES: usize = 16;

/// Seals and opens cells of one column.
pub struct Additive(Masks);

/// One value, or what was computed of several. Needs no key.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sum {
    value: u128,
    weights: Weights,
}

impl Additive {
    /// For a column.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn new(keys: &ColumnKeys) -> Result<Additive, Error> {
        Masks::new(keys, "additive").map(Additive)
    }

    /// The cell of a value, under an identifier other than 0 that no other cell has.
    ///
    /// # Errors
    /// [`Error::Range`] for the identifier 0.
    pub fn seal(&self, identifier: u64, value: i64) -> Result<Sum, Error> {
        let weights = Weights::of(identifier)?;
        let value = i128::from(value).cast_unsigned();
        let value = value.wrapping_add(self.mask(&weights));
        Ok(Sum { value, weights })
    }

    /// The value. Exact as long as no intermediate result left the range of `i128`, which
    /// takes more than 2^63 values.
    pub fn open(&self, sum: &Sum) -> i128 {
        let mask = self.mask(&sum.weights);
        sum.value.wrapping_sub(mask).cast_signed()
    }

    fn mask(&self, weights: &Weights) -> u128 {
        let masks = weights.iter().map(|(number, weight)| {
            let weight = i128::from(weight).cast_unsigned();
            self.0.mask(number).wrapping_mul(weight)
        });
        masks.fold(0, u128::wrapping_add)
    }
}

impl Sum {
    /// The sum of both.
    ///
    /// # Errors
    /// [`Error::Range`] if one value is in it more than 2^63 times.
    pub fn plus(&self, other: &Sum) -> Result<Sum, Error> {
        self.plus_times(other, 1)
    }

    /// The difference.
    ///
    /// # Errors
    /// As [`Sum::plus`].
    pub fn minus(&self, other: &Sum) -> Result<Sum, Error> {
        self.plus_times(other, -1)
    }

    /// The product with a number that the database knows.
    ///
    /// # Errors
    /// As [`Sum::plus`].
    pub fn times(&self, factor: i64) -> Result<Sum, Error> {
        Sum::default().plus_times(self, factor)
    }

    /// How many masks opening it takes.
    pub fn masks(&self) -> usize {
        self.weights.len()
    }

    fn plus_times(&self, other: &Sum, times: i64) -> Result<Sum, Error> {
        let factor = i128::from(times).cast_unsigned();
        Ok(Sum {
            value: self.value.wrapping_add(other.value.wrapping_mul(factor)),
            weights: self.weights.plus(&other.weights, times)?,
        })
    }

    /// Bytes: value `u128`; then for each mask its number `u64` and weight `i64`, by number.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.value.to_le_bytes().to_vec();
        self.weights.write(&mut out);
        out
    }

    /// What [`Sum::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Sum, Error> {
        let (value, weights) = bytes
            .split_first_chunk::<VALUE_BYTES>()
            .ok_or(Error::Malformed)?;
        Ok(Sum {
            value: u128::from_le_bytes(*value),
            weights: Weights::read(weights)?,
        })
    }
}
