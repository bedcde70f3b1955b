//! Bodies of redo records: bytes in the clear, before sealing and after opening.
//!
//! A promotion is a list of items, as it is or compressed (crate `pack`): differences of
//! partition and slot of the FID to those of the one before (the first: to 0) as zigzag
//! varints, type code `u8`, length as a varint, bytes. A partition is its number and key in 20
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

/// The items of a promotion, checked to be well formed.
#[derive(Clone, PartialEq, Eq)]
pub struct Items(Vec<u8>);

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
        let (fid, last) = (Fid(fid), Fid(self.last));
        let [to, from] = [fid, last].map(|f| u64::from(f.partition()));
        put_zigzag(&mut self.body, to, from);
        put_zigzag(&mut self.body, fid.slot(), last.slot());
        self.last = fid.0;
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
    let last = Fid(last);
    let partition = take_zigzag(bytes, u64::from(last.partition()))?;
    let slot = take_zigzag(bytes, last.slot())?;
    let partition = u32::try_from(partition).ok();
    let partition = partition.filter(|p| *p < PARTITION_END)?;
    let (&type_code, rest) = bytes.split_first()?;
    *bytes = rest;
    let length = usize::try_from(take_varint(bytes)?).ok()?;
    let (value, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(Item {
        fid: Fid::new(partition, Some(slot).filter(|s| *s <= SLOT_MAX)?).0,
        type_code,
        bytes: value,
    })
}

impl Items {
    pub(crate) fn parse(packed: &[u8]) -> Result<Items, Error> {
        let body = pack::unpack(packed).ok_or(Error::Malformed)?;
        let mut rest = body.as_slice();
        let mut last = 0;
        while !rest.is_empty() {
            last = take_item(&mut rest, last).ok_or(Error::Malformed)?.fid;
        }
        Ok(Items(body))
    }

    /// The items in order.
    pub fn iter(&self) -> impl Iterator<Item = Item<'_>> {
        let mut rest = self.0.as_slice();
        let mut last = 0;
        std::iter::from_fn(move || {
            let item = take_item(&mut rest, last)?;
            last = item.fid;
            Some(item)
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
