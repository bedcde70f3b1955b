//! Casts between protected types, as `pg_cast` has them between plain ones, and
//! casts from plain types to protected ones.

use contract::TypeCode;

use TypeCode::*;

/// Where PostgreSQL applies a cast by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Context {
    /// Anywhere.
    Implicit,
    /// In assignments.
    Assignment,
    /// Nowhere.
    Explicit,
}

impl Context {
    /// The clause of `CREATE CAST`.
    pub const fn clause(self) -> &'static str {
        match self {
            Context::Implicit => " AS IMPLICIT",
            Context::Assignment => " AS ASSIGNMENT",
            Context::Explicit => "",
        }
    }
}

/// How a cast is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CastMethod {
    /// The FID stays as it is.
    Binary,
    /// By evaluation of [`contract::Op::Cast`].
    Function,
}

/// A cast between protected types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cast {
    /// The type that is cast.
    pub from: TypeCode,
    /// The type that comes out.
    pub to: TypeCode,
    /// Where it is applied.
    pub context: Context,
    /// How it is done.
    pub method: CastMethod,
}

const STRINGS: [TypeCode; 3] = [Text, Varchar, Bpchar];

/// The casts of `pg_cast` between different types.
const LATTICE: &[(TypeCode, TypeCode, Context)] = {
    use Context::{Assignment as A, Explicit as E, Implicit as I};
    &[
        (Int2, Int4, I),
        (Int2, Int8, I),
        (Int2, Float4, I),
        (Int2, Float8, I),
        (Int2, Numeric, I),
        (Int4, Int2, A),
        (Int4, Int8, I),
        (Int4, Float4, I),
        (Int4, Float8, I),
        (Int4, Numeric, I),
        (Int8, Int2, A),
        (Int8, Int4, A),
        (Int8, Float4, I),
        (Int8, Float8, I),
        (Int8, Numeric, I),
        (Float4, Int2, A),
        (Float4, Int4, A),
        (Float4, Int8, A),
        (Float4, Float8, I),
        (Float4, Numeric, A),
        (Float8, Int2, A),
        (Float8, Int4, A),
        (Float8, Int8, A),
        (Float8, Float4, A),
        (Float8, Numeric, A),
        (Numeric, Int2, A),
        (Numeric, Int4, A),
        (Numeric, Int8, A),
        (Numeric, Float4, I),
        (Numeric, Float8, I),
        (Int4, Bool, E),
        (Bool, Int4, E),
        (Bpchar, Text, I),
        (Bpchar, Varchar, I),
        (Date, Timestamp, I),
        (Date, Timestamptz, I),
        (Time, Interval, I),
        (Timestamp, Date, A),
        (Timestamp, Time, A),
        (Timestamp, Timestamptz, I),
        (Timestamptz, Date, A),
        (Timestamptz, Time, A),
        (Timestamptz, Timestamp, A),
        (Interval, Time, A),
        (Json, Jsonb, A),
        (Jsonb, Json, A),
        (Jsonb, Bool, E),
        (Jsonb, Int2, E),
        (Jsonb, Int4, E),
        (Jsonb, Int8, E),
        (Jsonb, Float4, E),
        (Jsonb, Float8, E),
        (Jsonb, Numeric, E),
    ]
};

/// The casts that need no work. Text that becomes `char(n)` would change its
/// kind in the keeper, so these two are functions although PostgreSQL has none.
const BINARY: &[(TypeCode, TypeCode)] = &[(Text, Varchar), (Varchar, Text)];
const TO_BPCHAR: &[(TypeCode, TypeCode)] = &[(Text, Bpchar), (Varchar, Bpchar)];

/// All casts between protected types.
pub fn casts() -> Vec<Cast> {
    let mut all: Vec<Cast> = BINARY
        .iter()
        .map(|&(from, to)| Cast {
            from,
            to,
            context: Context::Implicit,
            method: CastMethod::Binary,
        })
        .collect();
    let by_function = |from, to, context| Cast {
        from,
        to,
        context,
        method: CastMethod::Function,
    };
    all.extend(
        TO_BPCHAR
            .iter()
            .map(|&(from, to)| by_function(from, to, Context::Implicit)),
    );
    all.extend(LATTICE.iter().map(|&(f, t, c)| by_function(f, t, c)));
    // PostgreSQL converts between strings and everything else through the
    // types' text formats: to a string in assignments, from one when told to.
    for &other in TypeCode::ALL.iter().filter(|t| !STRINGS.contains(t)) {
        for string in STRINGS {
            all.push(by_function(other, string, Context::Assignment));
            all.push(by_function(string, other, Context::Explicit));
        }
    }
    all
}

/// Pairs of types with a cast by function.
pub(crate) fn functional() -> Vec<(TypeCode, TypeCode)> {
    casts()
        .iter()
        .filter(|c| c.method == CastMethod::Function)
        .map(|c| (c.from, c.to))
        .collect()
}

/// Casts from plain types to protected ones: implicit to the twin, and from
/// integers to the types that have no mixed operators with integers; in
/// assignments along PostgreSQL's lattice.
pub fn plain_casts() -> Vec<(TypeCode, TypeCode, Context)> {
    let mut all: Vec<_> = TypeCode::ALL
        .iter()
        .map(|&t| (t, t, Context::Implicit))
        .collect();
    for &(from, to, context) in LATTICE {
        let beyond_integers = matches!(from, Int2 | Int4 | Int8) && matches!(to, Numeric | Float8);
        all.push(match context {
            Context::Implicit if beyond_integers => (from, to, Context::Implicit),
            Context::Implicit => (from, to, Context::Assignment),
            other => (from, to, other),
        });
    }
    all.push((Text, Varchar, Context::Assignment));
    all.push((Text, Bpchar, Context::Assignment));
    all.push((Varchar, Text, Context::Implicit));
    all.push((Varchar, Bpchar, Context::Assignment));
    all
}

/// Casts from `name`, the type of `current_user` and of most columns of catalogs, as `pg_cast` has
/// them to the twins.
pub const NAME_CASTS: [(TypeCode, Context); 3] = [
    (Text, Context::Implicit),
    (Varchar, Context::Assignment),
    (Bpchar, Context::Assignment),
];
