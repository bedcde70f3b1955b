//! The parts of messages as data. The crate `catalog` generates the C header, the golden vectors
//! and the page of layouts from it.

/// A number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Number {
    /// `u8`
    U8,
    /// `u16`
    U16,
    /// `u32`
    U32,
    /// `u64`
    U64,
    /// `i32`
    I32,
    /// `i64`
    I64,
    /// A FID, 8 bytes.
    Fid,
    /// The code of a type, one byte.
    Type,
    /// The code of a type, or 0.
    TypeOrNone,
}

impl Number {
    /// Size in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Number::U8 | Number::Type | Number::TypeOrNone => 1,
            Number::U16 => 2,
            Number::U32 | Number::I32 => 4,
            Number::U64 | Number::I64 | Number::Fid => 8,
        }
    }
}

/// Form of a part of a message.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// A number.
    Number(Number),
    /// A fixed number of bytes.
    Array(usize),
    /// A record or structure.
    Structure(&'static Structure),
    /// Elements of a fixed size.
    List(&'static Form),
    /// Elements of variable size.
    Each(&'static Form),
    /// Bytes.
    Bytes,
    /// A zero-terminated text.
    Text,
    /// Columns of a batch ([`crate::message::column`]).
    Columns,
    /// An optional part at the end.
    Optional(&'static Form),
}

/// A part of a structure with a fixed size.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// Form.
    pub form: Form,
    /// Number of zero bytes after it.
    pub zeros: usize,
}

/// A part of a structure after its fields; its size may vary.
#[derive(Clone, Copy, Debug)]
pub struct Tail {
    /// Name.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// Form.
    pub form: Form,
    /// The fields whose product is its size; if there are none, it has a terminator or extends to
    /// the end of the message.
    pub counts: &'static [&'static str],
}

/// Fields and the tails after them.
#[derive(Clone, Copy, Debug)]
pub struct Structure {
    /// Name.
    pub name: &'static str,
    /// Description.
    pub doc: &'static str,
    /// Parts of fixed size.
    pub fields: &'static [Field],
    /// Parts after them.
    pub tails: &'static [Tail],
    /// Whether bytes can be decoded, and encode to the same bytes again.
    pub same: fn(&[u8]) -> bool,
}

impl Structure {
    /// Size of the fields in bytes.
    pub fn bytes(&self) -> usize {
        let field = |f: &Field| f.form.bytes() + f.zeros;
        self.fields.iter().map(field).sum()
    }
}

impl Form {
    /// Size in bytes if it is fixed; otherwise the size of the fixed part.
    pub fn bytes(&self) -> usize {
        match self {
            Form::Number(number) => number.bytes(),
            Form::Array(bytes) => *bytes,
            Form::Structure(structure) => structure.bytes(),
            _ => 0,
        }
    }
}

/// A kind of message.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Name of its kind.
    pub name: &'static str,
    /// Code of its kind.
    pub code: u16,
    /// Description.
    pub doc: &'static str,
    /// Its body.
    pub body: &'static Structure,
    /// The body of its answer, if it has one.
    pub answer: Option<&'static Structure>,
}
