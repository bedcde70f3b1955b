//! What a value must fit that goes into a column and nowhere else.

use contract::TypeCode;

/// The column that a value is only assigned to, so that the client may give it the column's type and
/// modifier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fit {
    /// Its identity ([`grant::Column::id`]).
    pub column: [u8; 16],
    /// Its type.
    pub code: TypeCode,
    /// Its type modifier.
    pub typmod: i32,
}

/// Whether PostgreSQL assigns a value of one type to a column of another by a cast that cannot fail and
/// depends on no setting: so the client may apply it, and errors remain those of the statement.
#[must_use]
pub fn widens(from: TypeCode, to: TypeCode) -> bool {
    use TypeCode::{Bpchar, Float4, Float8, Int2, Int4, Int8, Numeric, Text, Varchar};
    match from {
        Int2 => matches!(to, Int4 | Int8 | Float4 | Float8 | Numeric),
        Int4 => matches!(to, Int8 | Float4 | Float8 | Numeric),
        Int8 => matches!(to, Float4 | Float8 | Numeric),
        Float4 => to == Float8,
        Text | Varchar => from != to && matches!(to, Text | Varchar | Bpchar),
        _ => false,
    }
}
