//! Bodies of redo records: bytes in the clear, before sealing and after opening.
//!
//! A promotion is a list of items, as it is or compressed (crate `pack`): differences of
//! partition and slot of the FID to those of the one before (the first: to 0) as zigzag
//! varints, type code `u8`, length as a varint, bytes. A promotion by runs, compressed or
//! not, is a list of runs of consecutive FIDs with values of one type: differences as above
//! (of the run's first FID to the last one before), number of values as a varint, type code
//! `u8`, then their length plus one as a varint if all have the same, and not 0; otherwise
//! 0, and each value's length as a varint before it; then the values. A partition is its
//! number and key in 20
//! bytes. A sweep is a list of runs: difference of the first FID to the end of the
//! run before (the first: to 0) as a zigzag varint, number of FIDs as a varint.
//! A drop is the number of a partition in 4 bytes.

use crate::Error;
use contract::Fid;
use contract::fid::{PARTITION_END, SLOT_MAX};

/// One value and the permanent FID that it got.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Item<'a> {
    /// The FID.
    pub fid: u64,
    /// Code of the value's type.
    pub type_code: u8,
    /// The value, in a form that only the keeper knows.
    pub bytes: &'a [u8],
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

/// The items of a promotion, checked to be well formed.
#[derive(Clone, PartialEq, Eq)]
pub struct Items {
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

fn take_item<'a>(bytes: &mut &'a [u8], last: u64) -> Option<Item<'a>> {
    let fid = take_fid(bytes, last)?;
    let (&type_code, rest) = bytes.split_first()?;
    *bytes = rest;
    let length = usize::try_from(take_varint(bytes)?).ok()?;
    let (value, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(Item {
        fid,
        type_code,
        bytes: value,
    })
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

/// What is left of a promotion's body.
struct Rest<'a> {
    bytes: &'a [u8],
    last: u64,
    by_runs: bool,
    /// Values left in the run, their type, and their length plus one or 0.
    run: (u64, u8, u64),
}

impl<'a> Rest<'a> {
    fn take(&mut self) -> Option<Item<'a>> {
        let item = if self.by_runs {
            self.take_of_run()?
        } else {
            take_item(&mut self.bytes, self.last)?
        };
        self.last = item.fid;
        Some(item)
    }

    fn take_of_run(&mut self) -> Option<Item<'a>> {
        let mut fid = self.last.wrapping_add(1);
        if self.run.0 == 0 {
            fid = take_fid(&mut self.bytes, self.last)?;
            let count = take_varint(&mut self.bytes)?;
            let (&type_code, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            let width = take_varint(&mut self.bytes)?;
            // Values without any bytes would cost nothing: 1 is not written.
            if count == 0 || width == 1 {
                return None;
            }
            self.run = (count, type_code, width);
        }
        self.run.0 -= 1;
        let length = match self.run.2 {
            0 => take_varint(&mut self.bytes)?,
            width => width - 1,
        };
        let (bytes, rest) = self.bytes.split_at_checked(usize::try_from(length).ok()?)?;
        self.bytes = rest;
        Some(Item {
            fid,
            type_code: self.run.1,
            bytes,
        })
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.run.0 == 0
    }
}

impl Items {
    pub(crate) fn parse(packed: &[u8], by_runs: bool) -> Result<Items, Error> {
        let body = pack::unpack(packed).ok_or(Error::Malformed)?;
        let items = Items { body, by_runs };
        let mut rest = items.rest();
        while !rest.is_empty() {
            rest.take().ok_or(Error::Malformed)?;
        }
        Ok(items)
    }

    fn rest(&self) -> Rest<'_> {
        Rest {
            bytes: &self.body,
            last: 0,
            by_runs: self.by_runs,
            run: (0, 0, 0),
        }
    }

    /// The items in order.
    pub fn iter(&self) -> impl Iterator<Item = Item<'_>> {
        let mut rest = self.rest();
        std::iter::from_fn(move || rest.take())
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
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    pub(crate) fn parse(body: &[u8]) -> Result<Partition, Error> {
        let (words, rest) = body.as_chunks::<4>();
        match (words, rest) {
            ([number, database, relation, attribute, layout], []) => Ok(Partition {
                number: u32::from_le_bytes(*number),
                database: u32::from_le_bytes(*database),
                relation: u32::from_le_bytes(*relation),
                attribute: i32::from_le_bytes(*attribute),
                layout: u32::from_le_bytes(*layout),
            }),
            _ => Err(Error::Malformed),
        }
    }
}
