//! The form of a row: a byte string that is the same for equal values, covering all columns of a
//! row, so that looking up a row allocates nothing.
//!
//! Invariant: values that are equal in PostgreSQL (NULL equals NULL, 1.0 equals 1.00, char(n)
//! without trailing blanks) have the same form, and other values have different ones.

use super::column::{Column, Data, string};
use contract::TypeCode;
use store::Scalar;
use values::Value;

/// Strings up to this length fit into a word.
const SHORT: usize = 7;

/// A short string as a word, with its length in the highest byte.
#[inline]
fn short(bytes: &[u8]) -> Option<u64> {
    if bytes.len() > SHORT {
        return None;
    }
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes) {
        *to = *from;
    }
    word[SHORT] = bytes.len() as u8;
    Some(u64::from_le_bytes(word))
}

#[inline]
fn float_word(v: f64) -> u64 {
    match v {
        _ if v.is_nan() => f64::NAN.to_bits(),
        0.0 => 0,
        _ => v.to_bits(),
    }
}

#[inline]
fn without_padding(t: TypeCode, bytes: &[u8]) -> &[u8] {
    if t != TypeCode::Bpchar {
        return bytes;
    }
    let blanks = bytes.iter().rev().take_while(|c| **c == b' ').count();
    bytes.get(..bytes.len() - blanks).unwrap_or(bytes)
}

/// Appends the self-delimiting form of a value.
pub fn encode(t: TypeCode, scalar: &Scalar<'_>, out: &mut Vec<u8>) {
    match scalar {
        Scalar::Int(v) => out.extend_from_slice(&v.to_le_bytes()),
        Scalar::Float(v) => out.extend_from_slice(&float_word(*v).to_le_bytes()),
        Scalar::Bytes(b) if t == TypeCode::Jsonb => document(b, out),
        Scalar::Bytes(b) => {
            let trimmed = without_padding(t, b);
            match short(trimmed) {
                Some(word) => out.extend_from_slice(&word.to_le_bytes()),
                None => {
                    let word = u64::MAX << 56 | trimmed.len() as u64;
                    out.extend_from_slice(&word.to_le_bytes());
                    out.extend_from_slice(trimmed);
                }
            }
        }
        Scalar::Uuid(v) => out.extend_from_slice(v),
        Scalar::Interval(v) => values::key(&Value::Interval(*v), out),
        Scalar::Scaled(v, scale) => {
            let (mut v, mut scale) = (*v, *scale);
            while scale > 0 && v % 10 == 0 {
                v /= 10;
                scale = if v == 0 { 0 } else { scale - 1 };
            }
            encode_reduced(v, scale, out);
        }
        Scalar::Numeric(n) => {
            // A value that has the reduced form must not have this one.
            if let Some((v, scale)) = n.reduced() {
                return encode_reduced(v, scale, out);
            }
            encode_reduced(0, u16::MAX, out);
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            values::key(&Value::Numeric(n.as_ref().clone()), out);
            let length = (out.len() - start - 4) as u32;
            if let Some(place) = out.get_mut(start..start + 4) {
                place.copy_from_slice(&length.to_le_bytes());
            }
        }
    }
}

/// The form of a `jsonb`, whose text differs between equal ones (1.0 and 1).
fn document(text: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 8]);
    values::key(&Value::Jsonb(text.into()), out);
    let length = (out.len() - start - 8) as u64;
    if let Some(place) = out.get_mut(start..start + 8) {
        place.copy_from_slice(&length.to_le_bytes());
    }
}

fn encode_reduced(v: i64, scale: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&v.to_le_bytes());
    out.extend_from_slice(&scale.to_le_bytes());
}

/// Appends the form of a row in a column. Returns false and appends nothing for NULL.
pub fn encode_row(column: &Column, row: usize, out: &mut Vec<u8>) -> bool {
    if let Data::Bool(_) = column.data {
        return encode_word(truth_word(column, row), out);
    }
    match column.scalar(row).filter(|_| !column.is_null(row)) {
        Some(scalar) => {
            encode(column.t, &scalar, out);
            true
        }
        None => false,
    }
}

/// A truth value as a raw value; `None` for NULL.
#[inline]
pub fn truth_word(column: &Column, row: usize) -> Option<u64> {
    (!column.is_null(row)).then(|| u64::from(column.truth(row)))
}

/// Appends a word. Returns false and appends nothing for NULL.
pub fn encode_word(word: Option<u64>, out: &mut Vec<u8>) -> bool {
    match word {
        Some(v) => {
            out.extend_from_slice(&v.to_le_bytes());
            true
        }
        None => false,
    }
}

/// The form of a row, in a reusable buffer.
#[derive(Default)]
pub struct RowForm(Vec<u8>);

impl RowForm {
    /// The form of a row, equal for equal rows including NULLs; and whether any column is NULL.
    pub fn of(&mut self, columns: &[&Column], row: usize) -> (&[u8], bool) {
        let form = &mut self.0;
        form.clear();
        form.resize(head_bytes(columns.len()), 0);
        let mut some_null = false;
        for (number, column) in columns.iter().enumerate() {
            if !encode_row(column, row, form) {
                mark_null(form, number);
                some_null = true;
            }
        }
        (form, some_null)
    }
}

/// Size of the words that tell which keys are NULL.
pub fn head_bytes(keys: usize) -> usize {
    keys.div_ceil(64) * 8
}

/// Marks a key as NULL in the head of a form.
pub fn mark_null(form: &mut [u8], key: usize) {
    if let Some(byte) = form.get_mut(key / 8) {
        *byte |= 1 << (key % 8);
    }
}

/// Writes a word into each row. Returns false if `word` fails for a row that is not NULL.
#[inline]
pub fn put_words<'f>(
    rows: impl Iterator<Item = &'f mut [u8]>,
    at: usize,
    key: usize,
    word: impl Fn(usize) -> Option<Option<u64>>,
) -> bool {
    for (row, form) in rows.enumerate() {
        match word(row) {
            Some(Some(word)) => {
                if let Some(place) = form.get_mut(at..at + 8) {
                    place.copy_from_slice(&word.to_le_bytes());
                }
            }
            Some(None) => mark_null(form, key),
            None => return false,
        }
    }
    true
}

/// Writes a column into each row, one word each. Returns false if a value is not a single word.
pub fn column_words<'f>(
    rows: impl Iterator<Item = &'f mut [u8]>,
    at: usize,
    key: usize,
    column: &Column,
) -> bool {
    let there = |row| !column.is_null(row);
    match &column.data {
        Data::Int(v) => put_words(rows, at, key, |row| {
            Some(
                v.get(column.at(row))
                    .filter(|_| there(row))
                    .map(|v| *v as u64),
            )
        }),
        Data::Float(v) => put_words(rows, at, key, |row| {
            Some(
                v.get(column.at(row))
                    .filter(|_| there(row))
                    .map(|v| float_word(*v)),
            )
        }),
        Data::Bool(_) => put_words(rows, at, key, |row| Some(truth_word(column, row))),
        Data::Bytes(bytes, ends) => put_words(rows, at, key, |row| {
            if !there(row) {
                return Some(None);
            }
            let bytes = string(bytes, ends, column.at(row));
            short(without_padding(column.t, bytes)).map(Some)
        }),
        _ => false,
    }
}
