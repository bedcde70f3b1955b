//! List membership: whether a value equals an element of a list, as in `= ANY`, for many rows.
//!
//! Invariants: the result is that of OR over the elements, including NULL; a failure of the list
//! counts for rows that none of its values decides.

use super::column::{Column, Data};
use super::rowform::encode_row;
use super::strings::Strings;
use super::vector::Meter;
use crate::fail::Failure;
use contract::TypeCode;

/// Whether equal values of two types have the same row form.
pub fn comparable(a: TypeCode, b: TypeCode) -> bool {
    use TypeCode::{Float4, Float8, Int2, Int4, Int8};
    let whole = |t| matches!(t, Int2 | Int4 | Int8);
    let float = |t| matches!(t, Float4 | Float8);
    a == b || (whole(a) && whole(b)) || (float(a) && float(b))
}

/// A list prepared for lookups.
struct Sought<'a> {
    forms: Strings,
    failure: Option<&'a Failure>,
    null: bool,
    empty: bool,
}

impl<'a> Sought<'a> {
    fn new(list: &'a Column, meter: &Meter<'_>) -> Result<Sought<'a>, Failure> {
        let mut sought = Sought {
            forms: Strings::default(),
            failure: list.failures.values().next(),
            null: false,
            empty: list.len() == 0,
        };
        let mut form = Vec::new();
        for row in 0..list.len() {
            form.clear();
            if !encode_row(list, row, &mut form) {
                sought.null |= list.failure(row).is_none();
            } else if let Err(hash) = sought.forms.find(&form) {
                meter.take(sought.forms.cost(&form))?;
                sought.forms.add(hash, &form);
            }
        }
        Ok(sought)
    }
}

/// For each row, whether its value is in the list.
pub fn among(
    value: &Column,
    list: &Column,
    rows: usize,
    meter: &Meter<'_>,
) -> Result<Column, Failure> {
    let sought = Sought::new(list, meter)?;
    let rows = if value.is_constant() { 1 } else { rows };
    let mut out = Column::of(TypeCode::Bool, Data::Bool(Vec::with_capacity(rows)));
    let mut form = Vec::new();
    for row in 0..rows {
        form.clear();
        if let Some(failure) = value.failure(row) {
            out.push_failure(failure.clone());
        } else if sought.empty {
            out.push_truth(false);
        } else if !encode_row(value, row, &mut form) {
            out.push_null();
        } else if sought.forms.find(&form).is_ok() {
            out.push_truth(true);
        } else if let Some(failure) = sought.failure {
            out.push_failure(failure.clone());
        } else if sought.null {
            out.push_null();
        } else {
            out.push_truth(false);
        }
    }
    Ok(out)
}
