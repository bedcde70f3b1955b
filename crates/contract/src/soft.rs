//! Cells of the family `soft_`: encodings that PostgreSQL computes on without a keeper
//! (docs/families.md). The schemes are in the crate `encodings`.
//!
//! A *value* is [`VALUE`] at 0, type code at 1, its [encodings](EQ) at 2, the shape of the
//! column at 3, the number of the column's key at 4 (`u32`, little-endian); then the length of
//! the sealed value (`u32`) and the sealed value; then, if it has them, the order (a left half
//! and a right half, [`digits`] long), the addition: identifier (`u64`) and masked value (`u128`),
//! and the multiplication: the same.
//!
//! A *sum* is [`SUM`] or, to be divided by its count, [`AVERAGE`]; type, encodings, shape and key
//! as above; the count (`u64`), the masked value (`u128`), and for each mask its number (`u64`)
//! and weight (`i64`), by number.
//!
//! A *product* is [`PRODUCT`], the type of the result, and a part; a *quotient* [`QUOTIENT`], the type,
//! and two parts, the first of which is divided by the second. A part has the number of its factors
//! (`u8`, at most [`FACTORS_MAX`]), which of them is the first that is zero (`u8`, from 1; 0: none), the
//! product of the masked values before that (`u128`), and for each factor, from left to right, its type,
//! its shape, two bytes 0, the number of its key (`u32`) and its identifier (`u64`).
//!
//! In text all are [`TEXT_PREFIX`] followed by unpadded URL-safe base64.
//!
//! A column's type modifier has its encodings, its shape and the number of its key.

use crate::TypeCode;

/// First byte of a value.
pub const VALUE: u8 = 0x51;
/// First byte of a sum.
pub const SUM: u8 = 0x52;
/// First byte of a sum that is to be divided by its count.
pub const AVERAGE: u8 = 0x53;
/// First byte of a product.
pub const PRODUCT: u8 = 0x54;
/// First byte of a quotient.
pub const QUOTIENT: u8 = 0x55;
/// What a cell in text begins with.
pub const TEXT_PREFIX: &str = "soft1.";
/// Bytes before the length of the sealed value.
pub const HEADER_BYTES: usize = 8;
/// Bytes of the length of the sealed value.
pub const LENGTH_BYTES: usize = 4;
/// Bytes of the addition.
pub const ADD_BYTES: usize = 24;
/// Bytes of the multiplication.
pub const MUL_BYTES: usize = 24;
/// Bytes of a product or quotient before its parts.
pub const PRODUCT_BYTES: usize = 2;
/// Bytes of a part before its factors.
pub const PART_BYTES: usize = 18;
/// Bytes of a factor.
pub const FACTOR_BYTES: usize = 16;
/// The most factors of a part; their types limit it further when it is opened.
pub const FACTORS_MAX: u8 = 126;
/// The most bits of a part: its value is told from a number modulo 2^127 - 1.
pub const BITS_MAX: u16 = 126;
/// Bytes of a digit in a left half: key, and place in the permutation.
pub const LEFT_BYTES: usize = 17;
/// Bytes of a digit in a right half: two bits for each place.
pub const RIGHT_BYTES: usize = 4;
/// Bytes before the digits of a right half.
pub const NONCE_BYTES: usize = 16;
/// The key of the hash that hides a right half; no secret.
pub const ORDER_HASH_KEY: &[u8; 16] = b"confide order 01";

/// Equality: equal values have equal sealed values.
pub const EQ: u8 = 1;
/// Order.
pub const ORD: u8 = 2;
/// Sums.
pub const ADD: u8 = 4;
/// Products and quotients.
pub const MUL: u8 = 8;
/// Names of the encodings in type modifiers.
pub const NAMES: [(&str, u8); 4] = [("eq", EQ), ("ord", ORD), ("add", ADD), ("mul", MUL)];

/// Bytes of a text that have an order, if its column says no other number.
pub const ORDER_BYTES: u8 = 8;
/// The most bytes of a text that have an order.
pub const ORDER_BYTES_MAX: u8 = 32;
/// What the order of a text is called in type modifiers, before the number of its bytes.
pub const ORDER_NAME: &str = "ord_";

/// Bits of the number of a key in a type modifier; 0: none yet.
pub const KEY_BITS: u32 = 19;
/// Where the shape begins in a type modifier.
pub const SHAPE_SHIFT: u32 = KEY_BITS;
/// Where the encodings begin in a type modifier.
pub const ENCODINGS_SHIFT: u32 = SHAPE_SHIFT + 8;
/// The most digits of a `soft_numeric`.
pub const PRECISION_MAX: u8 = 18;

/// The types of the family.
pub const TYPES: [TypeCode; 8] = [
    TypeCode::Bool,
    TypeCode::Int2,
    TypeCode::Int4,
    TypeCode::Int8,
    TypeCode::Numeric,
    TypeCode::Text,
    TypeCode::Date,
    TypeCode::Timestamp,
];

/// The types of sums.
pub const SUMS: [TypeCode; 2] = [TypeCode::Int8, TypeCode::Numeric];

/// The types of factors, products and quotients: of two the later one is the type of the result.
pub const FACTORS: [TypeCode; 4] = [
    TypeCode::Int2,
    TypeCode::Int4,
    TypeCode::Int8,
    TypeCode::Numeric,
];

/// The place of a type among [`FACTORS`].
pub fn factor_rank(code: TypeCode) -> Option<usize> {
    FACTORS.iter().position(|factor| *factor == code)
}

/// The type of a product or quotient.
pub fn product_type(a: TypeCode, b: TypeCode) -> Option<TypeCode> {
    let rank = factor_rank(a)?.max(factor_rank(b)?);
    FACTORS.get(rank).copied()
}

/// The size of a factor of this type and shape is at most 2 to this power.
pub fn factor_bits(code: TypeCode, shape: u8) -> Option<u16> {
    match code {
        TypeCode::Int2 => Some(15),
        TypeCode::Int4 => Some(31),
        TypeCode::Int8 => Some(63),
        TypeCode::Numeric => {
            let (precision, _) = precision_and_scale(shape)?;
            let most = 10_u64.pow(precision.into()) - 1;
            u16::try_from(u64::BITS - most.leading_zeros()).ok()
        }
        _ => None,
    }
}

/// Digits of four bits in the order of a column; 0: it has none. Of a text the shape is the number
/// of bytes that have an order.
pub const fn digits_of(code: TypeCode, shape: u8) -> usize {
    match code {
        TypeCode::Text => 2 * shape as usize,
        other => digits(other),
    }
}

/// Digits of four bits in a type's order, if they are the same for all columns; otherwise 0.
pub const fn digits(code: TypeCode) -> usize {
    match code {
        TypeCode::Bool => 2,
        TypeCode::Int2 => 4,
        TypeCode::Int4 | TypeCode::Date => 8,
        TypeCode::Int8 | TypeCode::Numeric | TypeCode::Timestamp => 16,
        _ => 0,
    }
}

/// What a type can have.
pub const fn possible(code: TypeCode) -> u8 {
    let order = match code {
        TypeCode::Text => ORD,
        other if digits(other) > 0 => ORD,
        _ => 0,
    };
    let numbers = match code {
        TypeCode::Int2 | TypeCode::Int4 | TypeCode::Int8 | TypeCode::Numeric => ADD | MUL,
        _ => 0,
    };
    EQ | order | numbers
}

/// What a column has that names nothing. Products tell which values are zero, so they must be named.
pub const fn usual(code: TypeCode) -> u8 {
    match code {
        TypeCode::Bool | TypeCode::Text => EQ,
        other => possible(other) & !MUL,
    }
}

/// What a value is encoded for: what it has of its column's encodings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Purpose {
    /// To be compared with the column.
    Compare,
    /// To be compared with the column by order.
    Order,
    /// An array, whose elements are to be compared with the column.
    Each,
    /// To be stored in the column.
    Store,
    /// A factor beside the column: of the type that is named in place of the column's, with its key.
    Multiply,
}

impl Purpose {
    /// Of a value that has both; nothing if there is none.
    pub fn and(self, other: Purpose) -> Option<Purpose> {
        match (self, other) {
            (a, b) if a == b => Some(a),
            (Purpose::Compare, Purpose::Store) | (Purpose::Store, Purpose::Compare) => {
                Some(Purpose::Store)
            }
            (Purpose::Compare, Purpose::Order) | (Purpose::Order, Purpose::Compare) => {
                Some(Purpose::Order)
            }
            _ => None,
        }
    }
}

/// A column, as its type modifier says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct Column {
    /// Its type.
    pub code: TypeCode,
    /// Its encodings.
    pub encodings: u8,
    /// Its shape: 0, precision and scale, or how many bytes of a text have an order.
    pub shape: u8,
    /// The number of its key.
    pub key: u32,
}

impl Column {
    /// Of a type and its modifier; nothing if that names no key.
    pub const fn of(code: TypeCode, modifier: i32) -> Option<Column> {
        if modifier < 0 {
            return None;
        }
        let bits = modifier.cast_unsigned();
        let key = bits & ((1 << KEY_BITS) - 1);
        if key == 0 {
            return None;
        }
        Some(Column {
            code,
            encodings: (bits >> ENCODINGS_SHIFT) as u8,
            shape: (bits >> SHAPE_SHIFT) as u8,
            key,
        })
    }

    /// Precision and scale, if it is a `soft_numeric`.
    pub const fn precision_and_scale(&self) -> Option<(u8, u8)> {
        match self.code {
            TypeCode::Numeric => precision_and_scale(self.shape),
            _ => None,
        }
    }

    /// Whether cells of both can be compared.
    pub fn comparable(&self, other: &Column) -> bool {
        (self.code, self.shape, self.key) == (other.code, other.shape, other.key)
    }
}

/// Precision and scale of a shape.
pub const fn precision_and_scale(shape: u8) -> Option<(u8, u8)> {
    let Some(index) = shape.checked_sub(1) else {
        return None;
    };
    let mut precision = 1;
    let mut first = 0;
    while precision <= PRECISION_MAX {
        if index - first <= precision {
            return Some((precision, index - first));
        }
        first += precision + 1;
        precision += 1;
    }
    None
}

/// The shape of a precision and a scale.
pub const fn shape(precision: u8, scale: u8) -> Option<u8> {
    if precision == 0 || precision > PRECISION_MAX || scale > precision {
        return None;
    }
    // At most 189; the product has more than eight bits.
    Some((precision as u16 * (precision as u16 + 1) / 2) as u8 + scale)
}
