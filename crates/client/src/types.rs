//! OIDs of protected types in this database, and what is shown to the client instead: OID and
//! length of the plain type.
use std::collections::HashMap;

use contract::TypeCode;
use contract::soft;

/// What a client sees of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// The bytes that were appended.
    Value,
    /// NULL: there is a value, but the column's owner hides it from this client.
    Null,
}

/// OID of the plain type `text`.
pub(crate) const TEXT_OID: u32 = TypeCode::Text.plain_oid();

/// The kinds of values transferred in envelopes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Protected {
    /// A protected type.
    Scalar(TypeCode),
    /// Encodings, which open to values of this type; with their column, if it is known.
    Soft(TypeCode, Option<soft::Column>),
    /// An array of encodings.
    SoftArray(TypeCode),
    /// An array of a protected type: each element is an envelope.
    Array(TypeCode),
    /// Plain `text` that quotes envelopes of the session: a plan, or a definition.
    Quoting,
}

impl Protected {
    /// OID of the plain type.
    pub fn plain_oid(self) -> u32 {
        match self {
            Protected::Scalar(code) | Protected::Soft(code, _) => code.plain_oid(),
            Protected::Array(code) | Protected::SoftArray(code) => plain_array_oid(code),
            Protected::Quoting => TEXT_OID,
        }
    }

    /// `pg_type.typlen` of the plain type.
    pub fn plain_length(self) -> i16 {
        match self {
            Protected::Scalar(code) | Protected::Soft(code, _) => plain_length(code),
            Protected::Array(_) | Protected::SoftArray(_) | Protected::Quoting => -1,
        }
    }

    /// The kind of a column in COPY.
    pub fn of_column(ty: &rewrite::ColumnType) -> Option<Protected> {
        match ty {
            rewrite::ColumnType::Enc(code) => Some(Protected::Scalar(*code)),
            rewrite::ColumnType::Soft(code, modifier) => {
                Some(Protected::Soft(*code, soft::Column::of(*code, *modifier)))
            }
            rewrite::ColumnType::EncArray(code) => Some(Protected::Array(*code)),
            rewrite::ColumnType::SoftArray(code) => Some(Protected::SoftArray(*code)),
            _ => None,
        }
    }
}

/// The protected types of a database.
#[derive(Clone, Debug, Default)]
pub struct TypeMap {
    by_oid: HashMap<u32, Protected>,
    twins: HashMap<u32, u32>,
    /// OIDs of the types of the family `soft_` by their code.
    soft: HashMap<u8, u32>,
}

impl TypeMap {
    /// Creates the map from protected types and their arrays with their OIDs, as listed by
    /// [`rewrite::Catalog`].
    pub fn new(types: &[(u32, rewrite::ColumnType)]) -> TypeMap {
        let mut map = TypeMap::default();
        for (oid, ty) in types {
            if let Some(protected) = Protected::of_column(ty) {
                map.insert(*oid, protected);
            }
        }
        map
    }

    fn insert(&mut self, oid: u32, protected: Protected) {
        self.by_oid.insert(oid, protected);
        match protected {
            Protected::SoftArray(_) => return,
            // The type of columns comes before that of sums.
            Protected::Soft(code, _) => {
                self.soft.entry(code as u8).or_insert(oid);
                return;
            }
            _ => {}
        }
        // Later entries are other names of the first.
        self.twins.entry(protected.plain_oid()).or_insert(oid);
    }

    /// Whether the database has no protected types.
    pub fn is_empty(&self) -> bool {
        self.by_oid.is_empty()
    }

    /// Returns what the type with this OID protects, if anything.
    pub fn get(&self, oid: u32) -> Option<Protected> {
        self.by_oid.get(&oid).copied()
    }

    /// The OID of a type of the family `soft_`.
    pub(crate) fn soft(&self, code: TypeCode) -> Option<u32> {
        self.soft.get(&(code as u8)).copied()
    }

    /// The OID of the protected counterpart of a plain type.
    pub fn twin(&self, plain: u32) -> Option<u32> {
        self.twins.get(&plain).copied()
    }
}

fn plain_length(code: TypeCode) -> i16 {
    match code {
        TypeCode::Bool => 1,
        TypeCode::Int2 => 2,
        TypeCode::Int4 | TypeCode::Float4 | TypeCode::Date => 4,
        TypeCode::Int8
        | TypeCode::Float8
        | TypeCode::Time
        | TypeCode::Timestamp
        | TypeCode::Timestamptz => 8,
        TypeCode::Interval | TypeCode::Uuid => 16,
        TypeCode::Numeric
        | TypeCode::Text
        | TypeCode::Varchar
        | TypeCode::Bpchar
        | TypeCode::Bytea
        | TypeCode::Json
        | TypeCode::Jsonb => -1,
    }
}

/// The type of a plain array's elements.
pub fn element_of(array: u32) -> Option<TypeCode> {
    let all = TypeCode::ALL.iter().copied();
    all.into_iter().find(|t| plain_array_oid(*t) == array)
}

fn plain_array_oid(code: TypeCode) -> u32 {
    match code {
        TypeCode::Bool => 1000,
        TypeCode::Int2 => 1005,
        TypeCode::Int4 => 1007,
        TypeCode::Int8 => 1016,
        TypeCode::Float4 => 1021,
        TypeCode::Float8 => 1022,
        TypeCode::Numeric => 1231,
        TypeCode::Text => 1009,
        TypeCode::Varchar => 1015,
        TypeCode::Bpchar => 1014,
        TypeCode::Bytea => 1001,
        TypeCode::Date => 1182,
        TypeCode::Time => 1183,
        TypeCode::Timestamp => 1115,
        TypeCode::Timestamptz => 1185,
        TypeCode::Interval => 1187,
        TypeCode::Uuid => 2951,
        TypeCode::Json => 199,
        TypeCode::Jsonb => 3807,
    }
}
