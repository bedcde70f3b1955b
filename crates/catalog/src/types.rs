//! The protected types as PostgreSQL sees them.

use contract::TypeCode;

/// How a type's modifier is read and written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Typmod {
    /// The type takes no modifier.
    None,
    /// By PostgreSQL's own functions with this prefix (`numeric` for
    /// `numerictypmodin` and `numerictypmodout`).
    Functions(&'static str),
}

/// A protected type.
#[derive(Clone, Copy, Debug)]
pub struct TypeDefinition {
    /// Its code.
    pub code: TypeCode,
    /// Category: the lower-case letter of the plain type's.
    pub category: char,
    /// Whether it is the preferred type of its category.
    pub preferred: bool,
    /// Its modifier.
    pub typmod: Typmod,
}

/// All protected types.
pub fn types() -> Vec<TypeDefinition> {
    use TypeCode::*;
    TypeCode::ALL
        .iter()
        .map(|&code| TypeDefinition {
            code,
            category: match code {
                Bool => 'b',
                Int2 | Int4 | Int8 | Float4 | Float8 | Numeric => 'n',
                Text | Varchar | Bpchar => 's',
                Date | Time | Timestamp | Timestamptz => 'd',
                Interval => 't',
                Bytea | Uuid | Json | Jsonb => 'u',
            },
            preferred: matches!(code, Bool | Float8 | Text | Timestamptz | Interval),
            typmod: match code {
                Numeric => Typmod::Functions("numeric"),
                Varchar => Typmod::Functions("varchar"),
                Bpchar => Typmod::Functions("bpchar"),
                Time => Typmod::Functions("time"),
                Timestamp => Typmod::Functions("timestamp"),
                Timestamptz => Typmod::Functions("timestamptz"),
                Interval => Typmod::Functions("interval"),
                _ => Typmod::None,
            },
        })
        .collect()
}
