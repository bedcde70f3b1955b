//! Keys of columns of the family `soft_` that their owners have given to this keeper, and cells that it
//! opens with them (docs/families.md).
//!
//! Not here: who may give and take them (`rotation`), where they are written down (`rules`).
//!
//! Invariants: without its key no cell is opened; a value has the column for which its key was given.

use crate::fail;
use contract::TypeCode;
use contract::soft::{EQ, HEADER_BYTES, LENGTH_BYTES, VALUE, precision_and_scale};
use encodings::det::Det;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use store::ColumnId;
use values::{Error, Value};
use zeroize::Zeroizing;

/// Which key: type, shape, number.
pub type Which = (TypeCode, u8, u32);

/// A key as its owner has given it.
#[derive(Clone, PartialEq, Eq)]
pub struct Given {
    which: Which,
    key: Zeroizing<[u8; 64]>,
}

/// All of them.
#[derive(Default)]
pub struct Transferred(RwLock<HashMap<Which, Arc<Key>>>);

struct Key {
    column: ColumnId,
    det: Det,
}

/// The parts of a cell.
struct Parts<'a> {
    which: Which,
    encodings: u8,
    sealed: &'a [u8],
}

fn parts(cell: &[u8]) -> Option<Parts<'_>> {
    let (head, rest) = cell.split_first_chunk::<HEADER_BYTES>()?;
    let [VALUE, code, encodings, shape, number @ ..] = *head else {
        return None;
    };
    let (length, rest) = rest.split_first_chunk::<LENGTH_BYTES>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    Some(Parts {
        which: (TypeCode::from_u8(code)?, shape, u32::from_le_bytes(number)),
        encodings,
        sealed: rest.get(..length)?,
    })
}

fn no_key() -> Error {
    Error::new(
        b"0A000",
        "confide: the keeper has no key for the encodings of this column",
    )
    .detail("The operation is none that the column's encodings allow, so the values would have to be opened.")
    .hint("Use the encodings of the column, or give its key to the keeper: \"confide transfer-key\".")
}

fn damaged() -> Error {
    Error::new(
        b"XX001",
        "confide: a cell of the family soft_ cannot be opened",
    )
    .detail("It was encoded under another key, or was altered.")
}

impl Given {
    /// The key in a command: type, shape, number, and 128 hexadecimal digits.
    pub fn read(text: &str) -> Option<Given> {
        let words: Vec<&str> = text.split(' ').collect();
        let [code, shape, number, digits] = words.as_slice() else {
            return None;
        };
        let mut key = Zeroizing::new([0; 64]);
        if digits.len() != 2 * key.len() || !digits.is_ascii() {
            return None;
        }
        for (place, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(digits.get(2 * place..2 * place + 2)?, 16).ok()?;
        }
        let code = TypeCode::from_u8(code.parse().ok()?)?;
        Some(Given {
            which: (code, shape.parse().ok()?, number.parse().ok()?),
            key,
        })
    }

    /// As text, for the sealed file.
    pub fn text(&self) -> String {
        let (code, shape, number) = self.which;
        let mut text = format!("{} {shape} {number} ", code as u8);
        for byte in self.key.iter() {
            text.push_str(&format!("{byte:02x}"));
        }
        text
    }

    /// Whether both open the same cells.
    pub fn same(&self, other: &Given) -> bool {
        self.which == other.which
    }
}

impl Transferred {
    /// Replaces all keys.
    pub fn set(&self, all: impl Iterator<Item = (ColumnId, Given)>) {
        let keyed = |(column, given): (ColumnId, Given)| {
            let det = Det::of(*given.key);
            (given.which, Arc::new(Key { column, det }))
        };
        let mut keys = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *keys = all.map(keyed).collect();
    }

    fn key(&self, which: Which) -> Result<Arc<Key>, Error> {
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        keys.get(&which).cloned().ok_or_else(no_key)
    }

    /// Whether there is a key.
    pub fn has(&self, which: Which) -> bool {
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        keys.contains_key(&which)
    }

    /// The column whose key opens a cell.
    pub fn column_of(&self, cell: &[u8]) -> Option<ColumnId> {
        let key = self.key(parts(cell)?.which).ok()?;
        Some(key.column)
    }

    /// Returns the value in a cell, and the column whose key has opened it. | | # Errors | There is no key, the cell has another type, or was
    /// altered.
    pub fn opened(&self, cell: &[u8], want: TypeCode) -> Result<(ColumnId, Value), Error> {
        let parts = parts(cell).ok_or_else(damaged)?;
        let (code, shape, _) = parts.which;
        if code.stored() != want.stored() {
            return Err(fail::wrong_type(code, want));
        }
        let key = self.key(parts.which)?;
        let plain = match parts.encodings & EQ {
            0 => key.det.open_fresh(code as u8, parts.sealed),
            _ => key.det.open(code as u8, parts.sealed),
        };
        let plain = Zeroizing::new(plain.map_err(|_| damaged())?);
        let scale = precision_and_scale(shape).map_or(0, |(_, scale)| scale);
        let scale = if code == TypeCode::Numeric { scale } else { 0 };
        let value = values::decode_encoded(code, scale, &plain).ok_or_else(damaged)?;
        Ok((key.column, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use encodings::ColumnKeys;

    /// A cell is opened with the key that its owner has given, and with no other one; what was given is
    /// read again from its text. The bug this guards against: a cell of another column is opened.
    #[test]
    fn given_and_taken() -> Result<(), Box<dyn std::error::Error>> {
        let det = Det::new(&ColumnKeys::numbered(&[7; 32], 17, TypeCode::Int4 as u8, 0))?;
        let digits: String = det.key().iter().map(|byte| format!("{byte:02x}")).collect();
        let text = format!("{} 0 17 {digits}", TypeCode::Int4 as u8);
        let given = Given::read(&text).ok_or("no key")?;
        assert_eq!(given.text(), text);
        let sealed = det.seal(TypeCode::Int4 as u8, &[0, 0, 0, 9])?;
        let mut cell = vec![VALUE, TypeCode::Int4 as u8, EQ, 0, 17, 0, 0, 0];
        cell.extend_from_slice(&(sealed.len() as u32).to_le_bytes());
        cell.extend_from_slice(&sealed);
        let keys = Transferred::default();
        assert!(keys.opened(&cell, TypeCode::Int4).is_err());
        keys.set([([1; 16], given)].into_iter());
        let opened = keys.opened(&cell, TypeCode::Int4);
        let (column, value) = opened.map_err(|e| e.message.to_string())?;
        assert_eq!(values::encode_binary(&value), [0, 0, 0, 9]);
        assert_eq!((column, keys.column_of(&cell)), ([1; 16], Some([1; 16])));
        for at in 1..cell.len() {
            let mut other = cell.clone();
            if let Some(byte) = other.get_mut(at) {
                *byte ^= 1;
            }
            assert!(keys.opened(&other, TypeCode::Int4).is_err(), "byte {at}");
            assert!(
                keys.opened(cell.get(..at).unwrap_or_default(), TypeCode::Int4)
                    .is_err()
            );
        }
        keys.set(std::iter::empty());
        assert!(keys.opened(&cell, TypeCode::Int4).is_err());
        Ok(())
    }
}
