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
