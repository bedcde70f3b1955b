//! Cells that multiply and divide: a value times a mask, modulo the prime 2^127 - 1
//! (Symmetria's multiplicative scheme).
//!
//! A cell is `value * mask(i) / mask(i - 1)`; the masks of consecutive rows cancel as in
//! [`crate::additive`]. The database knows how large a result can be from the types of
//! what is in it, and refuses what would not be exact.
//!
//! A row reveals at rest whether its value is zero, and nothing else; a result which rows
//! are in it. Not authenticated. Two cells with one identifier tell the quotient of their
//! values: never use one twice.

use crate::field::{self, P};
use crate::mask::Masks;
use crate::weights::Weights;
use crate::{ColumnKeys, Error};

/// A result has at most so many bits in numerator and denominator together, so that
/// both can be told from a number of the field.
const BITS_MAX: u16 = 125;
const HEAD_BYTES: usize = 20;

/// Seals and opens cells of one column.
pub struct Multiplicative(Masks);

/// One value, or what was computed of several. Needs no key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Product {
    value: u128,
    /// Most bits of the numerator and of the denominator.
    bits: [u16; 2],
    weights: Weights,
}

/// A fraction in lowest terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ratio {
    /// Numerator.
    pub numerator: i128,
    /// Denominator, not 0.
    pub denominator: u128,
}

impl Multiplicative {
    /// For a column.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn new(keys: &ColumnKeys) -> Result<Multiplicative, Error> {
        Masks::new(keys, "multiplicative").map(Multiplicative)
    }

    /// The cell of a value of at most `bits` bits and a sign, under an identifier other than 0
    /// that no other cell has.
    ///
    /// # Errors
    /// [`Error::Range`] for the identifier 0, and for a value of more bits.
    pub fn seal(&self, identifier: u64, value: i64, bits: u16) -> Result<Product, Error> {
        if bits > BITS_MAX || value.unsigned_abs().checked_shr(bits.into()).unwrap_or(0) != 0 {
            return Err(Error::Range);
        }
        let weights = Weights::of(identifier)?;
        let value = field::from_signed(value.into());
        Ok(Product {
            value: field::mul(value, self.mask(&weights)),
            bits: [bits, 0],
            weights,
        })
    }

    /// The value.
    ///
    /// # Errors
    /// [`Error::Range`] if there is none in the range that its bits tell: it was not computed
    /// from cells of this column.
    pub fn open(&self, product: &Product) -> Result<Ratio, Error> {
        let mask = self.mask(&product.weights);
        let value = field::mul(product.value, field::inverse(mask));
        ratio(value, product.bits)
    }

    fn mask(&self, weights: &Weights) -> u128 {
        weights.iter().fold(1, |product, (number, weight)| {
            // Any number of the field but 0.
            let mask = self.0.mask(number) % (P - 1) + 1;
            let mask = if weight < 0 {
                field::inverse(mask)
            } else {
                mask
            };
            field::mul(product, field::pow(mask, weight.unsigned_abs().into()))
        })
    }
}

impl Product {
    /// The product of both.
    ///
    /// # Errors
    /// [`Error::Range`] if it could have too many bits.
    pub fn times(&self, other: &Product) -> Result<Product, Error> {
        self.combine(
            other.value,
            other.bits,
            self.weights.plus(&other.weights, 1)?,
        )
    }

    /// The quotient.
    ///
    /// # Errors
    /// [`Error::DivisionByZero`], [`Error::Range`] if it could have too many bits.
    pub fn over(&self, other: &Product) -> Result<Product, Error> {
        if other.value == 0 {
            return Err(Error::DivisionByZero);
        }
        let [numerator, denominator] = other.bits;
        let inverse = field::inverse(other.value);
        // A denominator of no bits is 1.
        let bits = [denominator, numerator];
        self.combine(inverse, bits, self.weights.plus(&other.weights, -1)?)
    }

    fn combine(&self, value: u128, bits: [u16; 2], weights: Weights) -> Result<Product, Error> {
        let bits = [self.bits[0] + bits[0], self.bits[1] + bits[1]];
        if bits[0] + bits[1] > BITS_MAX {
            return Err(Error::Range);
        }
        Ok(Product {
            value: field::mul(self.value, value),
            bits,
            weights,
        })
    }

    /// Bytes: value `u128`, bits of numerator and denominator `u16` each; then the masks as
    /// in [`crate::additive::Sum::to_bytes`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.value.to_le_bytes().to_vec();
        for bits in self.bits {
            out.extend_from_slice(&bits.to_le_bytes());
        }
        self.weights.write(&mut out);
        out
    }

    /// What [`Product::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Product, Error> {
        let (head, weights) = bytes
            .split_first_chunk::<HEAD_BYTES>()
            .ok_or(Error::Malformed)?;
        let [value @ .., n0, n1, d0, d1] = *head;
        let value = u128::from_le_bytes(value);
        let bits = [u16::from_le_bytes([n0, n1]), u16::from_le_bytes([d0, d1])];
        let fits = bits[0]
            .checked_add(bits[1])
            .is_some_and(|all| all <= BITS_MAX);
        if value >= P || !fits {
            return Err(Error::Malformed);
        }
        Ok(Product {
            value,
            bits,
            weights: Weights::read(weights)?,
        })
    }
}

/// The fraction within these bits that a number of the field stands for: the extended
/// algorithm of Euclid, ended where the remainder is a numerator.
fn ratio(value: u128, bits: [u16; 2]) -> Result<Ratio, Error> {
    let largest = |bits: u16| (1_u128 << bits) - 1;
    let (most, denominator_most) = (largest(bits[0]), largest(bits[1]).max(1));
    let (mut before, mut rest) = (P, value);
    let (mut factor_before, mut factor) = (0_i128, 1_i128);
    while rest > most {
        let quotient = before / rest;
        (before, rest) = (rest, before % rest);
        let step = i128::try_from(quotient)
            .ok()
            .and_then(|q| q.checked_mul(factor));
        let next = step.and_then(|step| factor_before.checked_sub(step));
        (factor_before, factor) = (factor, next.ok_or(Error::Range)?);
    }
    // A negative number is near the prime: look there, too.
    let negative = P - value;
    if denominator_most == 1 && value != 0 && negative <= most {
        return signed(negative, -1, 1);
    }
    if factor == 0 || factor.unsigned_abs() > denominator_most {
        return Err(Error::Range);
    }
    signed(rest, factor.signum(), factor.unsigned_abs())
}

fn signed(size: u128, sign: i128, denominator: u128) -> Result<Ratio, Error> {
    let size = i128::try_from(size).map_err(|_| Error::Range)?;
    Ok(Ratio {
        numerator: sign * size,
        denominator,
    })
}
