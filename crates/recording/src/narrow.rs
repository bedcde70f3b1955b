//! Shortens bytes before they are compressed. Messages consist of numbers of eight bytes that differ
//! little from one to the next (identifiers, keys of groups): of each the difference to the one before
//! is written, without the zeros at its high end. That is faster than what finds repetitions, which then
//! has less to search.
//!
//! Bytes: for each eight numbers their lengths, four bits each, as `u32`, then their differences; then
//! what is left, as it is. A difference is written so that small ones are short whatever their sign.
//!
//! Invariants: [`widen`] undoes [`narrow`]; no bytes make it panic.

use crate::order::take;

const WORD: usize = 8;
/// Less than this stays as it is.
const LEAST: usize = 8 * WORD;
/// Size of the lengths of a group.
const LENGTHS_BYTES: usize = 4;

/// Appends the bytes, shortened.
pub(crate) fn narrow(bytes: &[u8], out: &mut Vec<u8>) {
    let (groups, rest) = bytes.as_chunks::<LEAST>();
    let mut before = 0_u64;
    // The last difference is written with the zeros that it is shortened by.
    let mut room = [0; LENGTHS_BYTES + LEAST + WORD];
    for group in groups {
        let (mut lengths, mut used) = (0, LENGTHS_BYTES);
        for (n, eight) in group.as_chunks::<WORD>().0.iter().enumerate() {
            let this = u64::from_le_bytes(*eight);
            let difference = this.wrapping_sub(before).cast_signed();
            let short = (difference << 1 ^ difference >> 63).cast_unsigned();
            before = this;
            if let Some(place) = room.get_mut(used..used + WORD) {
                place.copy_from_slice(&short.to_le_bytes());
            }
            let length = WORD as u32 - short.leading_zeros() / 8;
            lengths |= length << (4 * n);
            used += length as usize;
        }
        if let Some(first) = room.first_chunk_mut() {
            *first = lengths.to_le_bytes();
        }
        out.extend_from_slice(room.get(..used).unwrap_or_default());
    }
    out.extend_from_slice(rest);
}

/// Takes so many bytes, as they were given to [`narrow`], and appends them.
pub(crate) fn widen(rest: &mut &[u8], length: usize, out: &mut Vec<u8>) -> Option<()> {
    let mut before = 0_u64;
    for _ in 0..length / LEAST {
        let mut lengths: u32 = u32::from_le_bytes(take(rest)?);
        for _ in 0..LEAST / WORD {
            let (short, tail) = rest.split_at_checked((lengths & 0xf) as usize)?;
            (*rest, lengths) = (tail, lengths >> 4);
            let mut eight = [0; WORD];
            eight.get_mut(..short.len())?.copy_from_slice(short);
            let short = u64::from_le_bytes(eight);
            let difference = short >> 1 ^ (short & 1).wrapping_neg();
            before = before.wrapping_add(difference);
            out.extend_from_slice(&before.to_le_bytes());
        }
    }
    let (left, tail) = rest.split_at_checked(length % LEAST)?;
    out.extend_from_slice(left);
    *rest = tail;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrowed(bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![7];
        narrow(bytes, &mut out);
        assert_eq!(out.remove(0), 7);
        out
    }

    /// All lengths; numbers that count up or down become short. With a bug what is read is not what
    /// was written, or takes more room.
    #[test]
    fn there_and_back() {
        let noise: Vec<u8> = (0..2000u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 21) as u8)
            .collect();
        for length in (0..400).chain([1999, 2000]) {
            let bytes = &noise[..length];
            let narrow = narrowed(bytes);
            assert!(narrow.len() <= length + length / 16, "{length}");
            let (mut rest, mut wide) = (narrow.as_slice(), vec![8]);
            assert_eq!(widen(&mut rest, length, &mut wide), Some(()));
            assert_eq!((rest.len(), &wide[1..]), (0, bytes), "{length}");
            let mut short = &narrow[..length.saturating_sub(1)];
            assert_eq!(widen(&mut short, length, &mut wide).is_none(), length > 0);
        }
        let numbers = (0..512u64).map(|i| 0x0123_4567_0000_0000 + 3 * i);
        let up: Vec<u8> = numbers.clone().flat_map(u64::to_le_bytes).collect();
        let down: Vec<u8> = numbers.rev().flat_map(u64::to_le_bytes).collect();
        let ends: Vec<u8> = [0, u64::MAX, 1 << 63, 1, 0, (1 << 63) - 1, 7, u64::MAX - 7]
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect();
        for (bytes, most) in [(up, 800), (down, 800), (ends, 68)] {
            let narrow = narrowed(&bytes);
            assert!(narrow.len() <= most, "{}", narrow.len());
            let mut wide = Vec::new();
            let done = widen(&mut narrow.as_slice(), bytes.len(), &mut wide);
            assert_eq!((done, wide), (Some(()), bytes));
        }
    }

    /// A length of more than eight bytes is refused.
    #[test]
    fn too_long() {
        let bytes = [[0x9f; 4].as_slice(), &[1; 200]].concat();
        assert_eq!(widen(&mut bytes.as_slice(), 64, &mut Vec::new()), None);
    }
}
