//! Values that a client has fitted to a column and sealed under its storing key.
//!
//! The keeper takes one in when it is adopted, and again in recovery: here is what both do.
//!
//! Invariant: a value that was opened is of the column's type, was sealed for this column, and has the
//! modifier that its envelope says.

use crate::fail;
use contract::TypeCode;
use envelope::{Fitted, Opener, Target};
use redo::Item;
use store::ColumnId;
use values::{Env, Error, Value};
use zeroize::Zeroizing;

/// Opens a value for a column whose values are stored as this type.
///
/// # Errors
/// If it was sealed for another column or under another key, is of another type, or does not fit.
pub fn open(
    opener: &Opener,
    column: &ColumnId,
    t: TypeCode,
    item: &Item<'_>,
) -> Result<Value, Error> {
    let said = TypeCode::from_u8(item.type_code).ok_or_else(unfit)?;
    if *column == ColumnId::default() || said.stored() != t {
        return Err(unfit());
    }
    let parts = Fitted {
        type_code: item.type_code,
        flags: item.flags,
        target: Target {
            column: *column,
            typmod: item.typmod,
        },
        counter: item.counter,
        sealed: item.sealed,
    };
    let mut plain = Zeroizing::new(Vec::new());
    opener
        .open_fitted(&parts, &mut plain)
        .map_err(|_| unfit())?;
    let value = values::decode_binary(said, -1, &plain)?;
    if value.type_code() != t {
        return Err(unfit());
    }
    if item.typmod != -1 {
        let fitted = values::apply_typmod(value.clone(), said, item.typmod, false)?;
        // Bytes, because NaN does not equal itself.
        if values::encode_binary(&fitted) != values::encode_binary(&value) {
            return Err(unfit());
        }
    }
    Ok(value)
}

fn unfit() -> Error {
    fail::bad_envelope(
        "A value was not sealed for the column that the database put it into, or does not fit it.",
        "Send values through the Confide proxy.",
    )
}

/// What stands where a value did not open.
///
/// # Errors
/// If the type has no zero.
pub fn zero(t: TypeCode) -> Result<Value, Error> {
    use TypeCode::{Bool, Bpchar, Bytea, Date, Interval, Json, Jsonb, Text, Time, Timestamp};
    use TypeCode::{Timestamptz, Uuid, Varchar};
    let text: &[u8] = match t {
        Bool => b"f",
        Text | Varchar | Bpchar | Bytea => b"",
        Date | Timestamp => b"2000-01-01",
        Timestamptz => b"2000-01-01 00:00:00+00",
        Time | Interval => b"00:00:00",
        Uuid => b"00000000-0000-0000-0000-000000000000",
        Json | Jsonb => b"null",
        _ => b"0",
    };
    values::parse_text(t, -1, text, &Env::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros() {
        for t in TypeCode::ALL {
            let value = zero(t.stored()).map(|value| value.type_code());
            assert_eq!(value, Ok(t.stored()));
        }
    }
}
