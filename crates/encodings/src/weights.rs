//! How often each mask is in a result: a sorted list of numbers and weights other than 0.
//!
//! The cell with identifier `i` has mask `i` once and mask `i - 1` minus once. So the
//! masks of consecutive rows cancel, and a sum over any number of them has two.

use crate::Error;
use std::cmp::Ordering;

/// Numbers of masks and their weights.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Weights(Vec<(u64, i64)>);

/// Bytes of a number and its weight.
const ENTRY_BYTES: usize = 16;

impl Weights {
    /// Those of a single cell, whose identifier is not 0.
    pub(crate) fn of(identifier: u64) -> Result<Weights, Error> {
        let before = identifier.checked_sub(1).ok_or(Error::Range)?;
        Ok(Weights(vec![(before, -1), (identifier, 1)]))
    }

    /// These, and the others `times` times.
    pub(crate) fn plus(&self, other: &Weights, times: i64) -> Result<Weights, Error> {
        let mut sum = Vec::with_capacity(self.0.len() + other.0.len());
        let (mut left, mut right) = (self.0.as_slice(), other.0.as_slice());
        loop {
            let order = match (left.first(), right.first()) {
                (None, None) => return Ok(Weights(sum)),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(a), Some(b)) => a.0.cmp(&b.0),
            };
            let mut entry = (0, 0_i64);
            if order.is_le()
                && let Some((first, rest)) = left.split_first()
            {
                (entry, left) = (*first, rest);
            }
            if order.is_ge()
                && let Some((first, rest)) = right.split_first()
            {
                let added = first.1.checked_mul(times).ok_or(Error::Range)?;
                entry = (first.0, entry.1.checked_add(added).ok_or(Error::Range)?);
                right = rest;
            }
            if entry.1 != 0 {
                sum.push(entry);
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, i64)> {
        self.0.iter().copied()
    }

    /// How many there are: what opening costs.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Appends them: number `u64` and weight `i64` of each.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for (number, weight) in &self.0 {
            out.extend_from_slice(&number.to_le_bytes());
            out.extend_from_slice(&weight.to_le_bytes());
        }
    }

    /// What `write` wrote, and nothing else.
    pub(crate) fn read(bytes: &[u8]) -> Result<Weights, Error> {
        let (entries, []) = bytes.as_chunks::<ENTRY_BYTES>() else {
            return Err(Error::Malformed);
        };
        let mut weights: Vec<(u64, i64)> = Vec::with_capacity(entries.len());
        for entry in entries {
            let (number, weight) = entry.split_at(ENTRY_BYTES / 2);
            let number = number.try_into().map_err(|_| Error::Malformed)?;
            let weight = weight.try_into().map_err(|_| Error::Malformed)?;
            let (number, weight) = (u64::from_le_bytes(number), i64::from_le_bytes(weight));
            let sorted = weights.last().is_none_or(|(last, _)| *last < number);
            if weight == 0 || !sorted {
                return Err(Error::Malformed);
            }
            weights.push((number, weight));
        }
        Ok(Weights(weights))
    }
}
