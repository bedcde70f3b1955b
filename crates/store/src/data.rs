//! The values of one segment, in the arrays that its layout requires. Slots count from the
//! segment's first. The caller knows which slots are taken.

use crate::budget::Account;
use crate::chunks::Chunks;
use crate::layout::Layout;
use crate::occupancy::Occupancy;
use crate::scalar::Scalar;
use crate::slabs::Slabs;
use contract::{Fid, TypeCode};
use std::borrow::Cow;
use std::collections::BTreeMap;
use values::{Error, Interval, Numeric, Value};

pub(crate) enum Data {
    Byte(Chunks<u8>),
    Int2(Chunks<i16>),
    Int4(Chunks<i32>),
    Int8(Chunks<i64>),
    Float4(Chunks<f32>),
    Float8(Chunks<f64>),
    Interval(Chunks<Interval>),
    Uuid(Chunks<[u8; 16]>),
    Scaled(Scaled),
    Bytes(Slabs),
    Numeric(Slabs, Side),
}

/// Integers in units of 10^-scale.
pub(crate) struct Scaled {
    scale: u16,
    values: Chunks<i64>,
    side: Side,
}

/// Values that do not fit into the arrays.
#[derive(Default)]
pub(crate) struct Side(BTreeMap<u64, Numeric>);

/// Marks an array element whose value is in the side table.
const ASIDE: i64 = i64::MIN;
/// Size of a side table entry without the number's own heap memory.
const SIDE_BYTES: usize = 64;

impl Side {
    fn put(&mut self, slot: u64, n: Numeric, account: &mut Account) -> Result<(), Error> {
        account.take(SIDE_BYTES + n.heap_bytes())?;
        self.0.insert(slot, n);
        Ok(())
    }

    fn clear(&mut self, slot: u64, account: &mut Account) {
        if let Some(n) = self.0.remove(&slot) {
            account.give(SIDE_BYTES + n.heap_bytes());
        }
    }
}

fn mismatch() -> Error {
    Error::new(b"XX000", "confide: value is not of the partition's type")
}

/// Makes room for a slot.
fn reserve<T: Copy + Default>(
    chunks: &mut Chunks<T>,
    slot: u64,
    account: &mut Account,
) -> Result<(), Error> {
    let missing = chunks.missing(slot);
    if missing > 0 {
        account.take(missing * (Chunks::<T>::CHUNK_BYTES + Occupancy::BYTES_PER_CHUNK))?;
        chunks.grow(missing);
    }
    Ok(())
}

/// Makes room for a slot and stores a value there.
fn put<T: Copy + Default>(
    chunks: &mut Chunks<T>,
    slot: u64,
    value: T,
    account: &mut Account,
) -> Result<(), Error> {
    reserve(chunks, slot, account)?;
    chunks.set(slot, value);
    Ok(())
}

fn narrow<T: TryFrom<i64>>(v: i64) -> Result<T, Error> {
    T::try_from(v).map_err(|_| mismatch())
}

impl Data {
    pub(crate) fn new(layout: Layout) -> Data {
        match layout {
            Layout::Scaled(scale) => Data::Scaled(Scaled {
                scale,
                values: Chunks::default(),
                side: Side::default(),
            }),
            Layout::Numeric => Data::Numeric(Slabs::default(), Side::default()),
            Layout::Bytes(_) => Data::Bytes(Slabs::default()),
            Layout::Fixed(t) => match t {
                TypeCode::Bool => Data::Byte(Chunks::default()),
                TypeCode::Int2 => Data::Int2(Chunks::default()),
                TypeCode::Int4 | TypeCode::Date => Data::Int4(Chunks::default()),
                TypeCode::Float4 => Data::Float4(Chunks::default()),
                TypeCode::Float8 => Data::Float8(Chunks::default()),
                TypeCode::Interval => Data::Interval(Chunks::default()),
                TypeCode::Uuid => Data::Uuid(Chunks::default()),
                _ => Data::Int8(Chunks::default()),
            },
        }
    }

    /// Stores a value in a free slot.
    pub(crate) fn put(
        &mut self,
        slot: u64,
        value: &Scalar<'_>,
        account: &mut Account,
    ) -> Result<(), Error> {
        match (self, value) {
            (Data::Byte(c), Scalar::Int(v)) => put(c, slot, u8::from(*v != 0), account),
            (Data::Int2(c), Scalar::Int(v)) => put(c, slot, narrow(*v)?, account),
            (Data::Int4(c), Scalar::Int(v)) => put(c, slot, narrow(*v)?, account),
            (Data::Int8(c), Scalar::Int(v)) => put(c, slot, *v, account),
            (Data::Float4(c), Scalar::Float(v)) => put(c, slot, *v as f32, account),
            (Data::Float8(c), Scalar::Float(v)) => put(c, slot, *v, account),
            (Data::Interval(c), Scalar::Interval(v)) => put(c, slot, *v, account),
            (Data::Uuid(c), Scalar::Uuid(v)) => put(c, slot, *v, account),
            (Data::Bytes(slabs), Scalar::Bytes(b)) => {
                slabs.reserve(slot, account)?;
                slabs.set(slot, b, account)
            }
            (Data::Scaled(s), Scalar::Scaled(..) | Scalar::Numeric(_)) => {
                s.put(slot, value, account)
            }
            (Data::Numeric(slabs, side), Scalar::Scaled(v, scale)) => {
                put_numeric(slabs, side, slot, *v, *scale, account)
            }
            (Data::Numeric(slabs, side), Scalar::Numeric(n)) => {
                slabs.reserve(slot, account)?;
                side.put(slot, n.as_ref().clone(), account)?;
                slabs.set(slot, &[], account)
            }
            _ => Err(mismatch()),
        }
    }

    /// The value in a taken slot.
    #[inline]
    pub(crate) fn get(&self, slot: u64) -> Scalar<'_> {
        match self {
            Data::Byte(c) => Scalar::Int(i64::from(c.get(slot))),
            Data::Int2(c) => Scalar::Int(i64::from(c.get(slot))),
            Data::Int4(c) => Scalar::Int(i64::from(c.get(slot))),
            Data::Int8(c) => Scalar::Int(c.get(slot)),
            Data::Float4(c) => Scalar::Float(f64::from(c.get(slot))),
            Data::Float8(c) => Scalar::Float(c.get(slot)),
            Data::Interval(c) => Scalar::Interval(c.get(slot)),
            Data::Uuid(c) => Scalar::Uuid(c.get(slot)),
            Data::Scaled(s) => s.get(slot),
            Data::Bytes(slabs) => Scalar::Bytes(slabs.get(slot)),
            Data::Numeric(slabs, side) => get_numeric(slabs, side, slot),
        }
    }

    /// The bytes in a taken slot, if the layout stores strings.
    #[inline]
    pub(crate) fn string(&self, slot: u64) -> Option<&[u8]> {
        match self {
            Data::Bytes(slabs) => Some(slabs.get(slot)),
            _ => None,
        }
    }

    /// The value in a taken slot, if the layout stores integers.
    #[inline]
    pub(crate) fn int(&self, slot: u64) -> Option<i64> {
        match self {
            Data::Byte(c) => Some(i64::from(c.get(slot))),
            Data::Int2(c) => Some(i64::from(c.get(slot))),
            Data::Int4(c) => Some(i64::from(c.get(slot))),
            Data::Int8(c) => Some(c.get(slot)),
            _ => None,
        }
    }

    /// Like [`Data::int`], for two slots.
    #[inline]
    pub(crate) fn two_ints(&self, slots: [u64; 2]) -> Option<[i64; 2]> {
        fn both<T: Copy + Default + Into<i64>>(c: &Chunks<T>, slots: [u64; 2]) -> [i64; 2] {
            slots.map(|slot| c.get(slot).into())
        }
        match self {
            Data::Byte(c) => Some(both(c, slots)),
            Data::Int2(c) => Some(both(c, slots)),
            Data::Int4(c) => Some(both(c, slots)),
            Data::Int8(c) => Some(both(c, slots)),
            _ => None,
        }
    }

    /// Clears a slot.
    pub(crate) fn clear(&mut self, slot: u64, account: &mut Account) {
        match self {
            Data::Byte(c) => c.set(slot, 0),
            Data::Int2(c) => c.set(slot, 0),
            Data::Int4(c) => c.set(slot, 0),
            Data::Int8(c) => c.set(slot, 0),
            Data::Float4(c) => c.set(slot, 0.0),
            Data::Float8(c) => c.set(slot, 0.0),
            Data::Interval(c) => c.set(slot, Interval::default()),
            Data::Uuid(c) => c.set(slot, [0; 16]),
            Data::Scaled(s) => {
                s.values.set(slot, 0);
                s.side.clear(slot, account);
            }
            Data::Bytes(slabs) => slabs.clear(slot, account),
            Data::Numeric(slabs, side) => {
                slabs.clear(slot, account);
                side.clear(slot, account);
            }
        }
    }

    /// Appends the values under the FIDs, if the layout stores integers.
    pub(crate) fn ints(
        &self,
        fids: &[Fid],
        at: (u64, usize),
        taken: &Occupancy,
        out: &mut Vec<i64>,
        missing: &mut Vec<u32>,
    ) -> bool {
        match self {
            Data::Byte(c) => c.gather(fids, at, taken, i64::from, out, missing),
            Data::Int2(c) => c.gather(fids, at, taken, i64::from, out, missing),
            Data::Int4(c) => c.gather(fids, at, taken, i64::from, out, missing),
            Data::Int8(c) => c.gather(fids, at, taken, |v| v, out, missing),
            Data::Scaled(s) if s.side.0.is_empty() => {
                s.values.gather(fids, at, taken, |v| v, out, missing);
            }
            _ => return false,
        }
        true
    }

    /// Appends the values under the FIDs, if the layout stores floats.
    pub(crate) fn floats(
        &self,
        fids: &[Fid],
        at: (u64, usize),
        taken: &Occupancy,
        out: &mut Vec<f64>,
        missing: &mut Vec<u32>,
    ) -> bool {
        match self {
            Data::Float4(c) => c.gather(fids, at, taken, f64::from, out, missing),
            Data::Float8(c) => c.gather(fids, at, taken, |v| v, out, missing),
            _ => return false,
        }
        true
    }
}

impl Scaled {
    fn put(&mut self, slot: u64, value: &Scalar<'_>, account: &mut Account) -> Result<(), Error> {
        reserve(&mut self.values, slot, account)?;
        let aside = match value {
            Scalar::Scaled(v, scale) if *scale == self.scale && *v != ASIDE => {
                self.values.set(slot, *v);
                return Ok(());
            }
            Scalar::Scaled(v, scale) => Numeric::from_scaled(*v, *scale),
            Scalar::Numeric(n) => n.as_ref().clone(),
            _ => return Err(mismatch()),
        };
        self.side.put(slot, aside, account)?;
        self.values.set(slot, ASIDE);
        Ok(())
    }

    #[inline]
    fn get(&self, slot: u64) -> Scalar<'_> {
        let v = self.values.get(slot);
        if v == ASIDE
            && let Some(n) = self.side.0.get(&slot)
        {
            return Scalar::Numeric(Cow::Borrowed(n));
        }
        Scalar::Scaled(v, self.scale)
    }
}

/// Stores a `numeric` as bytes: the scale (up to 254), then the significant bytes of the integer in
/// units of 10^-scale. Other values are stored in the side table, and an empty string in the slot.
fn put_numeric(
    slabs: &mut Slabs,
    side: &mut Side,
    slot: u64,
    v: i64,
    scale: u16,
    account: &mut Account,
) -> Result<(), Error> {
    slabs.reserve(slot, account)?;
    let Ok(scale_byte) = u8::try_from(scale) else {
        side.put(slot, Numeric::from_scaled(v, scale), account)?;
        return slabs.set(slot, &[], account);
    };
    let mut bytes = [0; 9];
    let length = significant(v);
    bytes[0] = scale_byte;
    for (to, from) in bytes.iter_mut().skip(1).zip(v.to_le_bytes()) {
        *to = from;
    }
    slabs.set(slot, bytes.get(..=length).unwrap_or(&[]), account)
}

/// Number of significant bytes; the others repeat the sign.
pub(crate) fn significant(v: i64) -> usize {
    let bits = 65 - (v ^ (v >> 63)).leading_zeros();
    (bits as usize).div_ceil(8)
}

fn get_numeric<'a>(slabs: &'a Slabs, side: &'a Side, slot: u64) -> Scalar<'a> {
    let Some((scale, rest)) = slabs.get(slot).split_first() else {
        return match side.0.get(&slot) {
            Some(n) => Scalar::Numeric(Cow::Borrowed(n)),
            None => Scalar::Numeric(Cow::Owned(Numeric::NAN)),
        };
    };
    let fill = match rest.last() {
        Some(b) if *b & 0x80 != 0 => 0xff,
        _ => 0,
    };
    let mut bytes = [fill; 8];
    for (to, from) in bytes.iter_mut().zip(rest) {
        *to = *from;
    }
    Scalar::Scaled(i64::from_le_bytes(bytes), u16::from(*scale))
}

/// The value in owned form, for tests and slow paths.
pub(crate) fn to_value(scalar: &Scalar<'_>, layout: Layout) -> Result<Value, Error> {
    scalar.to_value(layout.stored_type()).ok_or_else(mismatch)
}
