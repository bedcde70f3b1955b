//! Bodies of redo records: bytes in the clear, before sealing and after opening.
//!
//! A promotion is a list of items, as it is or compressed (crate `pack`): differences of
//! partition and slot of the FID to those of the one before (the first: to 0) as zigzag
//! varints, type code `u8`, length as a varint, bytes. A promotion by runs, compressed or
//! not, is a list of runs of consecutive FIDs with values of one type: differences as above
//! (of the run's first FID to the last one before), number of values as a varint, type code
//! `u8`, then their length plus one as a varint if all have the same, and not 0; otherwise
//! 0, and each value's length as a varint before it; then the values. A partition is its
//! number and key in 20 bytes, and 16 bytes that say which column's it is, if that is known. A sweep is a list of runs: difference of the first FID to the end of the
//! run before (the first: to 0) as a zigzag varint, number of FIDs as a varint.
//! A drop is the number of a partition in 4 bytes.

use crate::Error;
use contract::Fid;
use contract::fid::{PARTITION_END, SLOT_MAX};

/// Values of one type, and the consecutive permanent FIDs that they got.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Run<'a> {
    /// The first FID.
    pub first: u64,
    /// How many there are; not 0.
    pub count: u64,
    /// Code of the values' type.
    pub type_code: u8,
    /// Length of each value plus one; 0: each has its own before it.
    width: u64,
    bytes: &'a [u8],
}

/// The body of a promotion while it is being written.
#[derive(Default)]
pub struct Promotion {
    last: u64,
    pub(crate) body: Vec<u8>,
}

/// The body of a promotion by runs while it is being written.
#[derive(Default)]
pub struct Runs {
    last: u64,
    pub(crate) body: Vec<u8>,
}

/// The values of a promotion, checked to be well formed.
#[derive(Clone, PartialEq, Eq)]
pub struct Promoted {
    body: Vec<u8>,
    by_runs: bool,
}

/// A column's partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Partition {
    /// Its number.
    pub number: u32,
    /// OID of the database.
    pub database: u32,
    /// OID of the relation.
    pub relation: u32,
    /// Number of the attribute.
    pub attribute: i32,
    /// Layout of the values, in a form that only the store knows.
    pub layout: u32,
    /// Which column's values it holds, by the hash of its name; zeros: not known.
    pub column: [u8; 16],
}

fn put_varint(out: &mut Vec<u8>, mut v: u64) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

/// A difference modulo 2^64, small where the two numbers are near each other.
fn put_zigzag(out: &mut Vec<u8>, to: u64, from: u64) {
    let delta = to.wrapping_sub(from) as i64;
    put_varint(out, ((delta << 1) ^ (delta >> 63)) as u64);
}

fn take_zigzag(bytes: &mut &[u8], from: u64) -> Option<u64> {
    let zigzag = take_varint(bytes)?;
    Some(from.wrapping_add((zigzag >> 1) ^ (zigzag & 1).wrapping_neg()))
}

fn put_fid(out: &mut Vec<u8>, fid: u64, last: u64) {
    let (fid, last) = (Fid(fid), Fid(last));
    let [to, from] = [fid, last].map(|f| u64::from(f.partition()));
    put_zigzag(out, to, from);
    put_zigzag(out, fid.slot(), last.slot());
}

fn take_fid(bytes: &mut &[u8], last: u64) -> Option<u64> {
    let last = Fid(last);
    let partition = take_zigzag(bytes, u64::from(last.partition()))?;
    let slot = take_zigzag(bytes, last.slot())?;
    let partition = u32::try_from(partition).ok();
    let partition = partition.filter(|p| *p < PARTITION_END)?;
    Some(Fid::new(partition, Some(slot).filter(|s| *s <= SLOT_MAX)?).0)
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut v = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if part << shift >> shift != part {
            return None;
        }
        v |= part << shift;
        if byte & 0x80 == 0 {
            return Some(v);
        }
    }
    None
}

impl Promotion {
    /// An empty one.
    pub fn new() -> Promotion {
        Promotion::default()
    }

    /// An empty one with room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Promotion {
        Promotion {
            last: 0,
            body: Vec::with_capacity(bytes),
        }
    }

    /// Adds a value.
    pub fn push(&mut self, fid: u64, type_code: u8, bytes: &[u8]) {
        put_fid(&mut self.body, fid, self.last);
        self.last = fid;
        self.body.push(type_code);
        put_varint(&mut self.body, bytes.len() as u64);
        self.body.extend_from_slice(bytes);
    }

    /// Length of the body in bytes.
    pub fn len(&self) -> usize {
        self.body.len()
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }
}

impl Runs {
    /// An empty one.
    pub fn new() -> Runs {
        Runs::default()
    }

    /// Adds values with consecutive FIDs. Takes as many bytes from `values` as `lengths`
    /// says.
    pub fn push(&mut self, first: u64, type_code: u8, lengths: &[u32], values: &mut &[u8]) {
        put_fid(&mut self.body, first, self.last);
        self.last = first.wrapping_add(lengths.len() as u64).wrapping_sub(1);
        put_varint(&mut self.body, lengths.len() as u64);
        self.body.push(type_code);
        let width = lengths.first().copied().unwrap_or(0);
        let even = width > 0 && lengths.iter().all(|length| *length == width);
        put_varint(&mut self.body, if even { u64::from(width) + 1 } else { 0 });
        for length in lengths {
            if !even {
                put_varint(&mut self.body, u64::from(*length));
            }
            let (value, rest) = values
                .split_at_checked(*length as usize)
                .unwrap_or((values, &[]));
            *values = rest;
            self.body.extend_from_slice(value);
        }
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }
}

impl<'a> Run<'a> {
    fn take(rest: &mut &'a [u8], last: u64, by_runs: bool) -> Option<Run<'a>> {
        let first = take_fid(rest, last)?;
        let count = if by_runs { take_varint(rest)? } else { 1 };
        let &type_code = rest.split_off_first()?;
        let width = take_varint(rest)?;
        let width = width.checked_add(u64::from(!by_runs))?;
        // Values without any bytes would cost nothing: a run of them is not written.
        let empty = by_runs && (count == 0 || width == 1);
        if empty || count - 1 > SLOT_MAX - Fid(first).slot() {
            return None;
        }
        let mut behind = *rest;
        if width > 0 {
            take_bytes(&mut behind, count.checked_mul(width - 1)?)?;
        } else {
            for _ in 0..count {
                let length = take_varint(&mut behind)?;
                take_bytes(&mut behind, length)?;
            }
        }
        let bytes = rest.split_off(..rest.len() - behind.len())?;
        Some(Run {
            first,
            count,
            type_code,
            width,
            bytes,
        })
    }

    /// The last FID.
    fn last(&self) -> u64 {
        self.first.wrapping_add(self.count).wrapping_sub(1)
    }

    /// The values in order, in a form that only the keeper knows.
    pub fn values(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (mut rest, width) = (self.bytes, self.width);
        (0..self.count).map_while(move |_| {
            let length = match width {
                0 => take_varint(&mut rest)?,
                width => width - 1,
            };
            take_bytes(&mut rest, length)
        })
    }
}

fn take_bytes<'a>(rest: &mut &'a [u8], length: u64) -> Option<&'a [u8]> {
    rest.split_off(..usize::try_from(length).ok()?)
}

impl Promoted {
    pub(crate) fn parse(packed: &[u8], by_runs: bool) -> Result<Promoted, Error> {
        let body = pack::unpack(packed).ok_or(Error::Malformed)?;
        let (mut rest, mut last) = (body.as_slice(), 0);
        while !rest.is_empty() {
            let run = Run::take(&mut rest, last, by_runs).ok_or(Error::Malformed)?;
            last = run.last();
        }
        Ok(Promoted { body, by_runs })
    }

    /// The values by runs, in order.
    pub fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        let (mut rest, mut last) = (self.body.as_slice(), 0);
        std::iter::from_fn(move || {
            let run = Run::take(&mut rest, last, self.by_runs)?;
            last = run.last();
            Some(run)
        })
    }
}

/// FIDs in one sweep at most.
const SWEEP_MAX: u64 = 1 << 20;

/// FIDs that name nothing any more: runs of a first one and a number.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sweep(Vec<(u64, u64)>);

impl Sweep {
    /// Adds a FID.
    pub fn push(&mut self, fid: u64) {
        match self.0.last_mut() {
            Some((first, count)) if first.wrapping_add(*count) == fid => *count += 1,
            _ => self.0.push((fid, 1)),
        }
    }

    /// The FIDs in order.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        let run = |(first, count): &(u64, u64)| {
            let first = *first;
            (0..*count).map(move |n| first.wrapping_add(n))
        };
        self.0.iter().flat_map(run)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut end = 0u64;
        for (first, count) in &self.0 {
            put_zigzag(&mut out, *first, end);
            put_varint(&mut out, *count);
            end = first.wrapping_add(*count);
        }
        out
    }

    pub(crate) fn parse(mut rest: &[u8]) -> Result<Sweep, Error> {
        let mut runs = Vec::new();
        let (mut end, mut total) = (0u64, 0u64);
        while !rest.is_empty() {
            let first = take_zigzag(&mut rest, end).ok_or(Error::Malformed)?;
            let count = take_varint(&mut rest).ok_or(Error::Malformed)?;
            total = total.saturating_add(count);
            if count == 0 || total > SWEEP_MAX {
                return Err(Error::Malformed);
            }
            runs.push((first, count));
            end = first.wrapping_add(count);
        }
        Ok(Sweep(runs))
    }
}

impl Partition {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let words = [
            self.number,
            self.database,
            self.relation,
            self.attribute as u32,
            self.layout,
        ];
        let mut out: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        if self.column != [0; 16] {
            out.extend_from_slice(&self.column);
        }
        out
    }

    pub(crate) fn parse(body: &[u8]) -> Result<Partition, Error> {
        let (key, column) = body.split_at_checked(20).ok_or(Error::Malformed)?;
        let column = match column {
            [] => [0; 16],
            bytes => bytes.try_into().map_err(|_| Error::Malformed)?,
        };
        let (words, rest) = key.as_chunks::<4>();
        match (words, rest) {
            ([number, database, relation, attribute, layout], []) => Ok(Partition {
                number: u32::from_le_bytes(*number),
                database: u32::from_le_bytes(*database),
                relation: u32::from_le_bytes(*relation),
                attribute: i32::from_le_bytes(*attribute),
                layout: u32::from_le_bytes(*layout),
                column,
            }),
            _ => Err(Error::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run in the clear: the difference to 0 of its first FID, then what is given.
    fn run(partition: u32, slot: u64, count: u64, width: u64, rest: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        put_fid(&mut body, Fid::new(partition, slot).0, 0);
        put_varint(&mut body, count);
        body.push(3);
        put_varint(&mut body, width);
        body.extend_from_slice(rest);
        body
    }

    fn parse(body: &[u8]) -> Result<Vec<u64>, Error> {
        let promoted = Promoted::parse(&pack::pack(body, false), true)?;
        let fids = |run: Run<'_>| {
            assert_eq!(run.values().count() as u64, run.count);
            run.first..=run.last()
        };
        Ok(promoted.runs().flat_map(fids).collect())
    }

    /// A body that ends early is refused, unless a run ends there. Bug: a run that says
    /// more values than it has loses the rest at a replay.
    #[test]
    fn runs_cut_short() {
        let mut runs = Runs::new();
        let mut ends = vec![0];
        runs.push(Fid::new(1, 0).0, 3, &[4, 4, 4], &mut [7; 12].as_slice());
        ends.push(runs.body.len());
        runs.push(Fid::new(9, 70).0, 8, &[2, 0, 3], &mut [7; 5].as_slice());
        ends.push(runs.body.len());
        runs.push(Fid::new(9, 73).0, 8, &[0, 0], &mut [].as_slice());
        for length in 0..runs.body.len() {
            let found = parse(&runs.body[..length]);
            assert_eq!(found.is_ok(), ends.contains(&length), "{length}");
        }
        assert_eq!(parse(&runs.body).map(|fids| fids.len()), Ok(8));
    }

    /// Numbers that do not fit what follows. Bug: a loop without end over values that have
    /// no bytes, or an overflow.
    #[test]
    fn runs_that_say_too_much() {
        assert!(parse(&run(1, 0, 1, 2, &[5])).is_ok());
        assert!(parse(&run(1, 0, 2, 0, &[0, 0])).is_ok());
        let wrong = [
            run(1, 0, 0, 2, &[]),
            run(1, 0, 0, 2, &[5]),
            run(1, 0, 5, 1, &[]),
            run(1, 0, 2, 2, &[5]),
            run(1, 0, u64::MAX, 2, &[5]),
            run(1, 0, 1 << 44, 2, &[5; 300]),
            run(1, 0, 1, 3, &[5]),
            run(1, 0, 1, u64::MAX, &[5]),
            run(1, 0, 3, 0, &[0, 0]),
            run(1, 0, 1, 0, &[2, 5]),
            run(1, 0, 1, 0, &[0xff; 9]),
            // One, and a bit that has no place.
            run(
                1,
                0,
                1,
                0,
                &[0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2, 5],
            ),
        ];
        for (n, body) in wrong.iter().enumerate() {
            assert_eq!(parse(body), Err(Error::Malformed), "{n}");
        }
    }

    /// A run ends in the partition where it begins. Bug: its last values would be put into
    /// the partition after it, or, after the last one, under the FID that names nothing.
    #[test]
    fn runs_stay_in_their_partition() {
        for partition in [1, PARTITION_END - 1] {
            let last = Fid::new(partition, SLOT_MAX).0;
            let found = parse(&run(partition, SLOT_MAX - 1, 2, 2, &[5; 2]));
            assert_eq!(found, Ok(vec![last - 1, last]));
            for (slot, count) in [(SLOT_MAX, 2), (SLOT_MAX - 1, 3)] {
                let beyond = run(partition, slot, count, 2, &[5; 3][..count as usize]);
                assert_eq!(parse(&beyond), Err(Error::Malformed), "{partition} {slot}");
                let empty = run(partition, slot, count, 0, &[0; 3][..count as usize]);
                assert_eq!(parse(&empty), Err(Error::Malformed), "{partition} {slot}");
            }
        }
        let mut beyond = Vec::new();
        put_zigzag(&mut beyond, u64::from(PARTITION_END), 0);
        beyond.extend_from_slice(&[0, 1, 3, 2, 5]);
        assert_eq!(parse(&beyond), Err(Error::Malformed));
        beyond.clear();
        put_zigzag(&mut beyond, 1, 0);
        put_zigzag(&mut beyond, SLOT_MAX + 1, 0);
        beyond.extend_from_slice(&[1, 3, 2, 5]);
        assert_eq!(parse(&beyond), Err(Error::Malformed));
    }
}
