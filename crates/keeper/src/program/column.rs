//! A column of a batch during evaluation: values of one type, or declassifiable results, with NULLs
//! and failures by row.
//!
//! Invariants: `data` has one element for each row, or a single one for all rows; a row that failed
//! is also marked in `nulls`; if a row is NULL, its element is meaningless.

use crate::fail::Failure;
use crate::witness::Source;
use contract::TypeCode;
use std::borrow::Cow;
use std::collections::BTreeMap;
use store::Scalar;
use values::Value;

/// Elements of a column.
pub enum Data {
    /// Values stored as integers: `bool`, integers, dates and times.
    Int(Vec<i64>),
    /// `float4`, `float8`.
    Float(Vec<f64>),
    /// `numeric` values with the same scale.
    Scaled(Vec<i64>, u16),
    /// Strings, concatenated, and their end offsets.
    Bytes(Vec<u8>, Vec<usize>),
    /// Values of any type.
    Values(Vec<Value>),
    /// Booleans that may be declassified: 0 or 1.
    Bool(Vec<u8>),
    /// Orders that may be declassified: -1, 0 or 1.
    Order(Vec<i8>),
    /// Hashes that may be declassified.
    Hash(Vec<u64>),
}

/// A column.
pub struct Column {
    /// Stored type of the values; meaningless for other kinds.
    pub t: TypeCode,
    /// The elements.
    pub data: Data,
    /// Which rows are NULL or failed; if empty, none.
    pub nulls: Vec<bool>,
    /// Which rows failed.
    pub failures: BTreeMap<u32, Failure>,
    /// What it was read from, if a log needs this (`witness`).
    pub source: Source,
}

/// Placeholder for a row that is NULL.
pub const FILLER: Value = Value::Bool(false);

impl Data {
    /// An empty container in the form suitable for a type.
    pub fn for_type(t: TypeCode, rows: usize) -> Data {
        use TypeCode::*;
        match t {
            Bool | Int2 | Int4 | Int8 | Date | Time | Timestamp | Timestamptz => {
                Data::Int(Vec::with_capacity(rows))
            }
            Float4 | Float8 => Data::Float(Vec::with_capacity(rows)),
            Text | Varchar | Bpchar | Bytea => Data::Bytes(Vec::new(), Vec::with_capacity(rows)),
            // The scale is determined by the first value.
            Numeric | Interval | Uuid | Json | Jsonb => Data::Values(Vec::new()),
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Data::Int(v) | Data::Scaled(v, _) => v.len(),
            Data::Float(v) => v.len(),
            Data::Bytes(_, ends) => ends.len(),
            Data::Values(v) => v.len(),
            Data::Bool(v) => v.len(),
            Data::Order(v) => v.len(),
            Data::Hash(v) => v.len(),
        }
    }
}

/// The string with this number.
pub fn string<'a>(bytes: &'a [u8], ends: &[usize], at: usize) -> &'a [u8] {
    let end = ends.get(at).copied().unwrap_or(0);
    let start = match at.checked_sub(1) {
        Some(before) => ends.get(before).copied().unwrap_or(0),
        None => 0,
    };
    bytes.get(start..end).unwrap_or(&[])
}

/// All strings.
pub fn strings<'a>(bytes: &'a [u8], ends: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let starts = std::iter::once(&0).chain(ends);
    starts
        .zip(ends)
        .map(|(start, end)| bytes.get(*start..*end).unwrap_or(&[]))
}

impl Column {
    /// A column without failures or NULLs.
    pub fn of(t: TypeCode, data: Data) -> Column {
        Column {
            t,
            data,
            nulls: Vec::new(),
            failures: BTreeMap::new(),
            source: Source::Nothing,
        }
    }

    /// Number of elements: rows, or 1.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether one element represents all rows.
    #[inline]
    pub fn is_constant(&self) -> bool {
        self.data.len() == 1
    }

    /// The index of the element for a row.
    #[inline]
    pub fn at(&self, row: usize) -> usize {
        if self.is_constant() { 0 } else { row }
    }

    /// Whether a row is NULL or failed.
    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.get(self.at(row)).is_some_and(|null| *null)
    }

    /// The failure of a row.
    pub fn failure(&self, row: usize) -> Option<&Failure> {
        if self.failures.is_empty() {
            return None;
        }
        self.failures.get(&(self.at(row) as u32))
    }

    /// The value of a row that is not NULL, without copying it.
    pub fn scalar(&self, row: usize) -> Option<Scalar<'_>> {
        let at = self.at(row);
        Some(match &self.data {
            Data::Int(v) => Scalar::Int(*v.get(at)?),
            Data::Float(v) => Scalar::Float(*v.get(at)?),
            Data::Scaled(v, scale) => Scalar::Scaled(*v.get(at)?, *scale),
            Data::Bytes(bytes, ends) => Scalar::Bytes(string(bytes, ends, at)),
            Data::Values(v) => Scalar::of(v.get(at)?),
            Data::Bool(_) | Data::Order(_) | Data::Hash(_) => return None,
        })
    }

    /// The value of a row that is not NULL, in the form used by crate `values`.
    pub fn value(&self, row: usize) -> Option<Cow<'_, Value>> {
        match &self.data {
            Data::Values(v) => v.get(self.at(row)).map(Cow::Borrowed),
            _ => self.scalar(row)?.to_value(self.t).map(Cow::Owned),
        }
    }

    /// The truth value of a row that is not NULL, for both kinds of booleans.
    #[inline]
    pub fn truth(&self, row: usize) -> bool {
        let at = self.at(row);
        match &self.data {
            Data::Bool(v) => v.get(at).is_some_and(|b| *b != 0),
            Data::Int(v) => v.get(at).is_some_and(|b| *b != 0),
            Data::Values(v) => matches!(v.get(at), Some(Value::Bool(true))),
            _ => false,
        }
    }

    /// Marks the last row as NULL.
    fn mark(&mut self) {
        let length = self.data.len();
        self.nulls.resize(length, false);
        if let Some(last) = self.nulls.last_mut() {
            *last = true;
        }
    }

    /// Appends a row to declassifiable booleans.
    pub fn push_truth(&mut self, truth: bool) {
        if let Data::Bool(v) = &mut self.data {
            v.push(u8::from(truth));
        }
        if !self.nulls.is_empty() {
            self.nulls.push(false);
        }
    }

    /// Appends a row that is NULL.
    pub fn push_null(&mut self) {
        match &mut self.data {
            Data::Int(v) | Data::Scaled(v, _) => v.push(0),
            Data::Float(v) => v.push(0.0),
            Data::Bytes(bytes, ends) => ends.push(bytes.len()),
            Data::Values(v) => v.push(FILLER),
            Data::Bool(v) => v.push(0),
            Data::Order(v) => v.push(0),
            Data::Hash(v) => v.push(0),
        }
        self.mark();
    }

    /// Appends a row that failed.
    pub fn push_failure(&mut self, failure: Failure) {
        self.push_null();
        self.failures.insert(self.data.len() as u32 - 1, failure);
    }

    /// Appends a value.
    pub fn push(&mut self, scalar: &Scalar<'_>) {
        let length = self.data.len();
        match (&mut self.data, scalar) {
            (Data::Int(v), Scalar::Int(x)) => v.push(*x),
            (Data::Float(v), Scalar::Float(x)) => v.push(*x),
            (Data::Scaled(v, scale), Scalar::Scaled(x, s)) if scale == s => v.push(*x),
            (Data::Bytes(bytes, ends), Scalar::Bytes(b)) => {
                bytes.extend_from_slice(b);
                ends.push(bytes.len());
            }
            (Data::Values(v), Scalar::Scaled(x, s)) if v.is_empty() => {
                self.data = Data::Scaled(vec![*x], *s);
            }
            _ => {
                self.make_values();
                if let (Data::Values(v), Some(value)) = (&mut self.data, scalar.to_value(self.t)) {
                    v.push(value);
                }
            }
        }
        if !self.nulls.is_empty() {
            self.nulls.resize(length + 1, false);
        }
    }

    /// Converts the elements into separate values.
    pub fn make_values(&mut self) {
        if matches!(self.data, Data::Values(_)) {
            return;
        }
        let values = (0..self.data.len())
            .map(|at| {
                let scalar = match &self.data {
                    Data::Int(v) => v.get(at).map(|x| Scalar::Int(*x)),
                    Data::Float(v) => v.get(at).map(|x| Scalar::Float(*x)),
                    Data::Scaled(v, s) => v.get(at).map(|x| Scalar::Scaled(*x, *s)),
                    Data::Bytes(bytes, ends) => Some(Scalar::Bytes(string(bytes, ends, at))),
                    _ => None,
                };
                scalar.and_then(|s| s.to_value(self.t)).unwrap_or(FILLER)
            })
            .collect();
        self.data = Data::Values(values);
    }
}
