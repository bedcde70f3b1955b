//! One key column of a set of rows, in a form that sorts fast: if the type permits, integers with
//! the order of the values.
//!
//! Directions are handled by the caller.
//!
//! Invariant: two rows compare like their values in crate `values`; the elements of NULL rows are
//! meaningless.

use crate::program::column::{Column, Data, string};
use crate::program::scalar::without_blanks;
use contract::TypeCode;
use std::cmp::Ordering;
use values::{Env, Numeric, Value};

/// The values of a column in comparable form.
pub enum Elements {
    /// Nothing yet.
    Empty,
    /// Integers in the order of the values.
    Whole(Vec<u64>),
    /// The same for numerics of one scale.
    Scaled(Vec<u64>, u16),
    /// Concatenated strings, and where each ends.
    Bytes(Vec<u8>, Vec<usize>),
    /// Anything else.
    Values(Vec<Value>),
}

/// Flips the sign bit: the order of `i64` becomes that of `u64`.
fn whole(v: i64) -> u64 {
    (v as u64) ^ (1 << 63)
}

fn signed(v: u64) -> i64 {
    (v ^ (1 << 63)) as i64
}

/// PostgreSQL's order of floats: -0 equals 0, NaN is greater than everything else.
fn float(v: f64) -> u64 {
    if v.is_nan() {
        return u64::MAX;
    }
    let bits = (v + 0.0).to_bits();
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

/// The first bytes of a string, as a number with the same order.
pub fn prefix(bytes: &[u8]) -> u64 {
    let mut head = [0; 8];
    for (to, from) in head.iter_mut().zip(bytes) {
        *to = *from;
    }
    u64::from_be_bytes(head)
}

impl Elements {
    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Elements::Empty => 0,
            Elements::Whole(v) | Elements::Scaled(v, _) => v.capacity() * 8,
            Elements::Bytes(b, ends) => b.capacity() + ends.capacity() * 8,
            Elements::Values(v) => v.capacity() * size_of::<Value>(),
        }
    }

    /// Appends numbers known to the database.
    pub fn push_numbers(&mut self, numbers: impl Iterator<Item = u64>) {
        if matches!(self, Elements::Empty) {
            *self = Elements::Whole(Vec::new());
        }
        if let Elements::Whole(v) = self {
            v.extend(numbers);
        }
    }

    /// Appends the rows of a column.
    pub fn push(&mut self, column: &Column) {
        if matches!(self, Elements::Empty) {
            *self = Elements::like(column);
        }
        let rows = column.len();
        match (&mut *self, &column.data) {
            (Elements::Whole(out), Data::Int(v)) => out.extend(v.iter().map(|v| whole(*v))),
            (Elements::Whole(out), Data::Float(v)) => out.extend(v.iter().map(|v| float(*v))),
            (Elements::Scaled(out, s), Data::Scaled(v, scale)) if s == scale => {
                out.extend(v.iter().map(|v| whole(*v)));
            }
            (Elements::Bytes(out, out_ends), Data::Bytes(bytes, ends)) => {
                for row in 0..rows {
                    let value = string(bytes, ends, row);
                    let value = match column.t {
                        TypeCode::Bpchar => without_blanks(value),
                        _ => value,
                    };
                    out.extend_from_slice(value);
                    out_ends.push(out.len());
                }
            }
            _ => {
                self.generalise();
                if let Elements::Values(out) = self {
                    let filler = || Value::Bool(false);
                    let values = (0..rows).map(|row| match column.value(row) {
                        Some(value) => value.into_owned(),
                        None => filler(),
                    });
                    out.extend(values);
                }
            }
        }
    }

    fn like(column: &Column) -> Elements {
        match &column.data {
            Data::Int(_) | Data::Float(_) => Elements::Whole(Vec::new()),
            Data::Scaled(_, scale) => Elements::Scaled(Vec::new(), *scale),
            Data::Bytes(..) => Elements::Bytes(Vec::new(), Vec::new()),
            _ => Elements::Values(Vec::new()),
        }
    }

    /// Switches representation because numerics have different scales.
    fn generalise(&mut self) {
        if let Elements::Scaled(v, scale) = self {
            let scale = *scale;
            let values = v
                .iter()
                .map(|v| Value::Numeric(Numeric::from_scaled(signed(*v), scale)));
            *self = Elements::Values(values.collect());
        }
    }

    /// The order of two rows that are not NULL.
    pub fn compare(&self, a: u32, b: u32, env: &Env) -> Ordering {
        let (a, b) = (a as usize, b as usize);
        match self {
            Elements::Empty => Ordering::Equal,
            Elements::Whole(v) | Elements::Scaled(v, _) => v.get(a).cmp(&v.get(b)),
            Elements::Bytes(bytes, ends) => string(bytes, ends, a).cmp(string(bytes, ends, b)),
            Elements::Values(v) => match (v.get(a), v.get(b)) {
                (Some(a), Some(b)) => values::compare(a, b, env).unwrap_or(Ordering::Equal),
                _ => Ordering::Equal,
            },
        }
    }

    /// Sorts row numbers of rows that are not NULL; the sort is stable.
    pub fn sort(&self, rows: &mut [u32], descending: bool, env: &Env) {
        let turn = |order: Ordering| if descending { order.reverse() } else { order };
        match self {
            Elements::Empty => {}
            Elements::Whole(v) | Elements::Scaled(v, _) => {
                let key = |row: u32| {
                    let v = v.get(row as usize).copied().unwrap_or_default();
                    if descending { !v } else { v }
                };
                let mut pairs: Vec<(u64, u32)> = rows.iter().map(|r| (key(*r), *r)).collect();
                pairs.sort_unstable();
                for (to, (_, row)) in rows.iter_mut().zip(pairs) {
                    *to = row;
                }
            }
            Elements::Bytes(bytes, ends) => {
                let text = |row: u32| string(bytes, ends, row as usize);
                let mut pairs: Vec<(u64, u32)> =
                    rows.iter().map(|r| (prefix(text(*r)), *r)).collect();
                pairs.sort_unstable_by(|(pa, a), (pb, b)| {
                    let order = pa.cmp(pb).then_with(|| text(*a).cmp(text(*b)));
                    turn(order).then(a.cmp(b))
                });
                for (to, (_, row)) in rows.iter_mut().zip(pairs) {
                    *to = row;
                }
            }
            Elements::Values(_) => {
                rows.sort_unstable_by(|a, b| turn(self.compare(*a, *b, env)).then(a.cmp(b)));
            }
        }
    }
}

/// Heap size of the values in addition to their elements.
pub fn beside(column: &Column) -> usize {
    match &column.data {
        Data::Values(v) => v.iter().map(Value::heap_bytes).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Order of floats as numbers. With the sign taken as it lies, negative numbers
    /// would come out in reverse, and -0 before 0.
    #[test]
    fn floats_keep_their_order() {
        let ascending = [
            f64::NEG_INFINITY,
            -1e300,
            -1.0,
            -1e-300,
            0.0,
            1e-300,
            1.0,
            f64::INFINITY,
            f64::NAN,
        ];
        assert!(ascending.windows(2).all(|w| match w {
            [a, b] => float(*a) < float(*b),
            _ => false,
        }));
        assert_eq!(float(-0.0), float(0.0));
        assert_eq!(float(-f64::NAN), float(f64::NAN));
    }

    /// A prefix must not order strings otherwise than their bytes do: where
    /// prefixes are equal (zeros!) the bytes decide.
    #[test]
    fn strings_with_equal_prefixes() {
        let mut all = Elements::Bytes(Vec::new(), Vec::new());
        if let Elements::Bytes(bytes, ends) = &mut all {
            for text in ["a\0\0", "a", "abcdefghi", "abcdefgh", ""] {
                bytes.extend_from_slice(text.as_bytes());
                ends.push(bytes.len());
            }
        }
        let mut rows = [0, 1, 2, 3, 4];
        all.sort(&mut rows, false, &Env::default());
        assert_eq!(rows, [4, 1, 0, 3, 2]);
        all.sort(&mut rows, true, &Env::default());
        assert_eq!(rows, [2, 3, 0, 1, 4]);
    }
}
