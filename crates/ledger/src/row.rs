//! The hash of a row version, which any change of the version changes.
//!
//! Bytes ([`crate::codec`]): magic, schema, table, sequence number, time, principal, number of
//! columns; for each column its name, type and value (NULL, or its form and bytes). So renaming a column, changing its type, or moving a value to another column changes the leaf.
//!
//! Invariant: different row versions have different bytes.

use crate::Hash;
use crate::codec::Writer;

const MAGIC: &[u8; 8] = b"cfdrow 1";
/// Bytes of a length.
const LENGTH: usize = size_of::<u64>();

/// One version of one row of a ledger table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowVersion<'a> {
    /// Schema of the table.
    pub schema: &'a str,
    /// Name of the table.
    pub table: &'a str,
    /// Number of the version: `sn` (SecuDB, section 6.2).
    pub sn: u64,
    /// Start of its validity, in microseconds since 2000-01-01 UTC.
    pub valid_from: i64,
    /// Its author.
    pub principal: &'a str,
    /// Its columns, in table order. The keeper omits NULLs, so a column can be added later.
    pub columns: &'a [Column<'a>],
}

/// A column of a row version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its type, as `format_type` displays it.
    pub type_name: &'a [u8],
    /// Its value; `None` for NULL.
    pub value: Option<(Form, &'a [u8])>,
}

/// A column's name and type as they are hashed, encoded once for many versions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heading {
    bytes: Box<[u8]>,
    /// Length of the name.
    name: usize,
}

impl Heading {
    /// Of a column with this name and type.
    pub fn new(name: &[u8], type_name: &[u8]) -> Heading {
        let mut out = Writer::with_capacity(2 * LENGTH + name.len() + type_name.len());
        put_heading(&mut out, name, type_name);
        Heading {
            bytes: out.finish().into(),
            name: name.len(),
        }
    }

    /// The column's name.
    pub fn name(&self) -> &[u8] {
        let name = self.bytes.get(LENGTH..LENGTH + self.name);
        name.unwrap_or_default()
    }

    /// Its type, as `format_type` displays it.
    pub fn type_name(&self) -> &[u8] {
        let type_name = self.bytes.get(2 * LENGTH + self.name..);
        type_name.unwrap_or_default()
    }
}

fn put_heading(out: &mut Writer, name: &[u8], type_name: &[u8]) {
    out.bytes(name);
    out.bytes(type_name);
}

/// What the bytes of a value are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Form {
    /// The value's own.
    Plain = 0,
    /// A hash of the value's own.
    Hashed = 1,
    /// A MAC of a protected value.
    Protected = 2,
}

impl RowVersion<'_> {
    /// Returns the hash for the log's entry ([`crate::entry`]).
    pub fn leaf(&self) -> Hash {
        let mut hasher = Hasher::default();
        hasher.begin(self);
        hasher.leaf()
    }
}

/// Hashes row versions one after the other, in memory that it keeps.
#[derive(Default)]
pub struct Hasher {
    out: Writer,
    /// Where the number of columns stands.
    counted: usize,
    columns: u64,
}

impl Hasher {
    /// Begins a version, with the columns that it has. More may follow.
    pub fn begin(&mut self, version: &RowVersion<'_>) {
        self.out.clear();
        self.out.fixed(MAGIC);
        self.out.bytes(version.schema.as_bytes());
        self.out.bytes(version.table.as_bytes());
        self.out.u64(version.sn);
        self.out.u64(version.valid_from.cast_unsigned());
        self.out.bytes(version.principal.as_bytes());
        self.counted = self.out.written().len();
        self.columns = 0;
        self.out.u64(0);
        for column in version.columns {
            self.column(column);
        }
    }

    /// Adds a column.
    pub fn column(&mut self, column: &Column<'_>) {
        put_heading(&mut self.out, column.name, column.type_name);
        self.value(column.value);
    }

    /// Adds a column with this heading.
    pub fn headed(&mut self, heading: &Heading, form: Form, bytes: &[u8]) {
        self.out.fixed(&heading.bytes);
        self.value(Some((form, bytes)));
    }

    fn value(&mut self, value: Option<(Form, &[u8])>) {
        let out = &mut self.out;
        out.u8(u8::from(value.is_some()));
        if let Some((form, bytes)) = value {
            out.u64(1 + bytes.len() as u64);
            out.u8(form as u8);
            out.fixed(bytes);
        }
        self.columns += 1;
    }

    /// The hash of the version.
    pub fn leaf(&mut self) -> Hash {
        self.out.put_u64(self.counted, self.columns);
        Hash::leaf(self.out.written())
    }
}
