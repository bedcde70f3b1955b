//! Relations and their columns, as used by [`crate::Schema`] and the pin.

use contract::TypeCode;

/// The type of a column or argument.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ColumnType {
    /// A plain type: OID and `typname`.
    Plain(u32, String),
    /// A protected type.
    Enc(TypeCode),
    /// A type of the family `soft_`, or of its sums, with its modifier.
    Soft(TypeCode, i32),
    /// An array of a protected type.
    EncArray(TypeCode),
    /// An array of a type of the family `soft_`.
    SoftArray(TypeCode),
    /// A type that contains protected ones: domain, composite, range, or an array of these. OID and
    /// `typname`.
    Opaque(u32, String),
}

impl ColumnType {
    /// Whether values of this type are, or contain, protected ones.
    pub fn protected(&self) -> bool {
        !matches!(self, ColumnType::Plain(..))
    }
}

/// A column of a relation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Attribute number.
    pub attnum: i16,
    /// Its type.
    pub ty: ColumnType,
    /// Type modifier, -1 for none.
    pub typmod: i32,
    /// `GENERATED ALWAYS AS (...) STORED`: by default not part of `COPY`.
    pub generated: bool,
    /// An identity column.
    pub identity: bool,
    /// The domain over a protected type that its type is, as [`domain`] names it.
    pub domain: Option<grant::Column>,
}

/// A domain in grants: what stands for all columns of its type.
pub(crate) fn domain(schema: &str, name: &str) -> grant::Column {
    grant::Column::new(schema, &format!("{name}::"), "*")
}

/// A table, view, materialized view, foreign table, sequence or composite type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Relation {
    /// OID; 0 for a relation created by an earlier statement of the same text.
    pub oid: u32,
    /// Schema.
    pub schema: String,
    /// Name.
    pub name: String,
    /// `pg_class.relkind`.
    pub kind: char,
    /// Columns; `None` for system relations, which are plain.
    pub columns: Option<Vec<Column>>,
}

/// Additional columns of a ledger table (docs/ledger.md).
pub(crate) const LEDGER_COLUMNS: [&str; 3] = ["sn", "valid_from", "by"];
/// The type that identifies a ledger table.
const LEDGER_TYPE: &str = "ledger_sn";

impl Relation {
    /// Whether it is a ledger table.
    pub(crate) fn is_ledger(&self) -> bool {
        let number =
            |c: &Column| matches!(&c.ty, ColumnType::Plain(_, name) if name == LEDGER_TYPE);
        self.columns.iter().flatten().any(number)
    }

    /// Whether a column is protected.
    pub fn protected(&self) -> bool {
        self.columns
            .iter()
            .flatten()
            .any(|column| column.ty.protected())
    }
}
