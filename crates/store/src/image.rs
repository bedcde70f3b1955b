//! A partition at rest: its values in segments of [`SEGMENT_SLOTS`] slots, each a string of bytes
//! that can be stored and read back independently.
//!
//! Layout of a segment: format version `u8`, zeros 1..4, code of the layout `u32`, number of words
//! `u32`; then a bitmap of the taken slots in that many words `u64`; then the values in slot order
//! (module `columns`).
//!
//! Where and when segments are stored is up to the keeper.
//!
//! Invariants: reading back what was written yields the same partition; reading back twice, or
//! after redo records of the same values, changes nothing.

use crate::columns;
use crate::error;
use crate::layout::Layout;
use crate::scalar::Scalar;
use values::Error;

/// Number of bits for the slot within its segment.
pub(crate) const SEGMENT_BITS: u32 = 16;
/// Slots per segment.
pub const SEGMENT_SLOTS: u64 = 1 << SEGMENT_BITS;
/// Number of words in a full segment's bitmap.
const WORDS: usize = (SEGMENT_SLOTS / 64) as usize;
const VERSION: u8 = 2;
const HEADER_BYTES: usize = 12;

/// The segment that contains a slot.
#[inline]
pub(crate) fn segment_of(slot: u64) -> u32 {
    (slot / SEGMENT_SLOTS) as u32
}

/// The first slot of a segment.
#[inline]
pub(crate) fn first_slot(segment: u32) -> u64 {
    u64::from(segment) * SEGMENT_SLOTS
}

/// Segments changed since they were last written.
#[derive(Default)]
pub(crate) struct Dirty(Vec<u64>);

impl Dirty {
    #[inline]
    pub(crate) fn mark(&mut self, slot: u64) {
        let segment = segment_of(slot) as usize;
        if segment / 64 >= self.0.len() {
            self.0.resize(segment / 64 + 1, 0);
        }
        if let Some(word) = self.0.get_mut(segment / 64) {
            *word |= 1 << (segment % 64);
        }
    }

    /// Whether a segment is among them.
    pub(crate) fn has(&self, segment: u32) -> bool {
        let word = self.0.get(segment as usize / 64);
        word.is_some_and(|w| w >> (segment % 64) & 1 == 1)
    }

    /// Returns their numbers and clears the set.
    pub(crate) fn take(&mut self) -> Vec<u32> {
        let words = std::mem::take(&mut self.0);
        let set = |(at, word): (usize, u64)| {
            let bits = (0..64u32).filter(move |bit| word >> bit & 1 == 1);
            bits.map(move |bit| at as u32 * 64 + bit)
        };
        words.into_iter().enumerate().flat_map(set).collect()
    }
}

/// Encodes a segment; `None` if no slot of it is taken. `words` is its bitmap; `value` returns the
/// value in a slot of the partition.
pub(crate) fn write<'a>(
    layout: Layout,
    segment: u32,
    words: &[u64],
    value: impl Fn(u64) -> Scalar<'a> + Clone,
) -> Option<Vec<u8>> {
    let used = words.len() - words.iter().rev().take_while(|w| **w == 0).count();
    let words = words.get(..used.min(WORDS)).filter(|w| !w.is_empty())?;
    let mut out = vec![VERSION, 0, 0, 0];
    out.extend_from_slice(&layout.code().to_le_bytes());
    out.extend_from_slice(&(words.len() as u32).to_le_bytes());
    out.extend(words.iter().flat_map(|w| w.to_le_bytes()));
    columns::write(layout, slots(segment, words).map(value), &mut out);
    Some(out)
}

/// The slots of the partition that are taken according to a segment's bitmap.
fn slots(segment: u32, words: &[u64]) -> impl Iterator<Item = u64> + Clone {
    let first = u64::from(segment) * SEGMENT_SLOTS;
    words.iter().enumerate().flat_map(move |(at, word)| {
        let mut left = *word;
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| u64::from(left.trailing_zeros()))?;
            left &= left - 1;
            Some(first + at as u64 * 64 + bit)
        })
    })
}

/// Decodes a segment, passing each slot and its value to `set`.
pub(crate) fn read(
    layout: Layout,
    segment: u32,
    bytes: &[u8],
    mut set: impl FnMut(u64, &Scalar<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let (words, values) = header(layout, bytes).ok_or_else(error::bad_segment)?;
    let count = words.iter().map(|w| w.count_ones() as usize).sum();
    let mut slots = slots(segment, &words);
    let read = columns::read(layout, count, values, |value| {
        set(slots.next().ok_or_else(error::bad_segment)?, value)
    });
    read.unwrap_or_else(|| Err(error::bad_segment()))
}

/// The slots of the partition that are taken according to a segment.
pub(crate) fn taken(layout: Layout, segment: u32, bytes: &[u8]) -> Result<Vec<u64>, Error> {
    let (words, _) = header(layout, bytes).ok_or_else(error::bad_segment)?;
    Ok(slots(segment, &words).collect())
}

fn header(layout: Layout, bytes: &[u8]) -> Option<(Vec<u64>, &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let [VERSION, 0, 0, 0, a, b, c, d, e, f, g, h] = *header else {
        return None;
    };
    let count = u32::from_le_bytes([e, f, g, h]) as usize;
    if u32::from_le_bytes([a, b, c, d]) != layout.code() || count > WORDS {
        return None;
    }
    let (bitmap, rest) = rest.split_at_checked(count * 8)?;
    let (words, _) = bitmap.as_chunks::<8>();
    Some((words.iter().map(|w| u64::from_le_bytes(*w)).collect(), rest))
}
