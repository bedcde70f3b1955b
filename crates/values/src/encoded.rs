//! Values of the family `soft_` in the form that their encodings seal.

use crate::{Numeric, Value};
use contract::TypeCode;

/// The value in these bytes; `scale` is that of a numeric. `None` if they are none.
pub fn decode_encoded(code: TypeCode, scale: u8, bytes: &[u8]) -> Option<Value> {
    Some(match code {
        TypeCode::Bool => Value::Bool(<[u8; 1]>::try_from(bytes).ok()? != [0]),
        TypeCode::Int2 => Value::Int2(i16::from_be_bytes(bytes.try_into().ok()?)),
        TypeCode::Int4 => Value::Int4(i32::from_be_bytes(bytes.try_into().ok()?)),
        TypeCode::Int8 => Value::Int8(i64::from_be_bytes(bytes.try_into().ok()?)),
        TypeCode::Date => Value::Date(i32::from_be_bytes(bytes.try_into().ok()?)),
        TypeCode::Timestamp => Value::Timestamp(i64::from_be_bytes(bytes.try_into().ok()?)),
        TypeCode::Text => Value::Text(bytes.into()),
        TypeCode::Numeric => {
            let number = i64::from_be_bytes(bytes.try_into().ok()?);
            Value::Numeric(Numeric::from_scaled(number, u16::from(scale)))
        }
        _ => return None,
    })
}
