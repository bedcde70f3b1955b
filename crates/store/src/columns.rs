//! A segment's values as bytes, arranged so that they compress well: the first bytes of all values,
//! then the second bytes of all, and so on (*planes*); or all lengths, then all strings.
//!
//! - Types of fixed width: one plane per byte.
//! - `numeric` as integers in units of 10^-scale: eight planes, with the smallest `i64` standing
//!   for other values, which follow as strings.
//! - Everything else: lengths as varints, then the bytes.
//!
//! Which slots the values are in is not stored here (`image`), and compression is done elsewhere
//! (crate `vault`).
//!
//! Invariant: what was written is read back as indistinguishable values; any other bytes yield some
//! values or none, without a panic, and without allocating more than the input warrants.

use crate::codec;
use crate::layout::Layout;
use crate::scalar::Scalar;
use contract::TypeCode;
use values::Error;

/// Marks, in the planes of integers, a value that is stored among the strings.
const ASIDE: i64 = i64::MIN;
/// Size of an integer in bytes.
const WHOLE: usize = size_of::<i64>();
/// Size of the widest type of fixed width.
const WIDTH_MAX: usize = 16;

fn put_length(out: &mut Vec<u8>, mut n: usize) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn take_length(bytes: &mut &[u8]) -> Option<usize> {
    let mut n = 0usize;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        n |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(n);
        }
    }
    None
}

/// Appends values of a layout.
pub(crate) fn write<'a, I>(layout: Layout, values: I, out: &mut Vec<u8>)
where
    I: Iterator<Item = Scalar<'a>> + Clone,
{
    let t = layout.stored_type();
    if let Layout::Scaled(scale) = layout {
        let whole = |value: &Scalar<'_>| match value {
            Scalar::Scaled(v, s) if *s == scale => *v,
            _ => ASIDE,
        };
        let planes = values.clone().map(|value| whole(&value).to_le_bytes());
        write_planes(&planes.collect::<Vec<_>>(), WHOLE, out);
        let aside = values.filter(|value| whole(value) == ASIDE);
        write_strings(t, aside, out);
    } else if let Some(width) = codec::width(t) {
        let mut scratch = Vec::with_capacity(WIDTH_MAX);
        let encoded = values.map(|value| {
            scratch.clear();
            codec::encode(&value, t, &mut scratch);
            let mut bytes = [0; WIDTH_MAX];
            bytes.iter_mut().zip(&scratch).for_each(|(to, b)| *to = *b);
            bytes
        });
        write_planes(&encoded.collect::<Vec<_>>(), width, out);
    } else {
        write_strings(t, values, out);
    }
}

/// The first `width` bytes of each value, by planes.
fn write_planes<const N: usize>(values: &[[u8; N]], width: usize, out: &mut Vec<u8>) {
    for plane in 0..width {
        out.extend(values.iter().filter_map(|v| v.get(plane)));
    }
}

/// Lengths are counted first, so that the bytes, which may be many, are written to where they stay.
fn write_strings<'a, I>(t: TypeCode, values: I, out: &mut Vec<u8>)
where
    I: Iterator<Item = Scalar<'a>> + Clone,
{
    let mut scratch = Vec::new();
    let mut bytes = 0;
    for value in values.clone() {
        scratch.clear();
        codec::encode(&value, t, &mut scratch);
        put_length(out, scratch.len());
        bytes += scratch.len();
    }
    out.reserve_exact(bytes);
    values.for_each(|value| codec::encode(&value, t, out));
}

/// Decodes `count` values and passes them to `set` in order. Returns `None` if the bytes do not
/// encode that many values.
pub(crate) fn read(
    layout: Layout,
    count: usize,
    mut bytes: &[u8],
    mut set: impl FnMut(&Scalar<'_>) -> Result<(), Error>,
) -> Option<Result<(), Error>> {
    let t = layout.stored_type();
    if let Layout::Scaled(scale) = layout {
        let (planes, rest) = bytes.split_at_checked(count.checked_mul(WHOLE)?)?;
        let whole = |at| i64::from_le_bytes(gather(planes, count, at));
        let aside = (0..count).filter(|at| whole(*at) == ASIDE).count();
        let mut strings = Strings::new(rest, aside)?;
        for at in 0..count {
            let value = match whole(at) {
                ASIDE => codec::decode(t, strings.next()?)?,
                v => Scalar::Scaled(v, scale),
            };
            if let Err(error) = set(&value) {
                return Some(Err(error));
            }
        }
        return strings.is_empty().then_some(Ok(()));
    }
    if let Some(width) = codec::width(t) {
        let planes = bytes.split_off(..count.checked_mul(width)?)?;
        for at in 0..count {
            let value: [u8; WIDTH_MAX] = gather(planes, count, at);
            if let Err(error) = set(&codec::decode(t, value.get(..width)?)?) {
                return Some(Err(error));
            }
        }
        return bytes.is_empty().then_some(Ok(()));
    }
    let mut strings = Strings::new(bytes, count)?;
    for _ in 0..count {
        if let Err(error) = set(&codec::decode(t, strings.next()?)?) {
            return Some(Err(error));
        }
    }
    strings.is_empty().then_some(Ok(()))
}

/// Collects the bytes of one value from the planes, padded with zeros.
fn gather<const N: usize>(planes: &[u8], count: usize, at: usize) -> [u8; N] {
    let mut out = [0; N];
    for (plane, to) in out.iter_mut().enumerate() {
        *to = planes.get(plane * count + at).copied().unwrap_or(0);
    }
    out
}

/// An iterator over strings.
struct Strings<'a> {
    lengths: &'a [u8],
    bytes: &'a [u8],
}

impl<'a> Strings<'a> {
    fn new(all: &'a [u8], count: usize) -> Option<Strings<'a>> {
        let mut bytes = all;
        for _ in 0..count {
            take_length(&mut bytes)?;
        }
        let lengths = all.get(..all.len() - bytes.len())?;
        Some(Strings { lengths, bytes })
    }

    fn next(&mut self) -> Option<&'a [u8]> {
        let length = take_length(&mut self.lengths)?;
        self.bytes.split_off(..length)
    }

    fn is_empty(&self) -> bool {
        self.lengths.is_empty() && self.bytes.is_empty()
    }
}
