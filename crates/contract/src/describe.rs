//! What stands in messages, as data: from it the C header, the golden vectors and the page of
//! layouts are generated (crate `catalog`).

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

/// What something in a message is.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// A number.
    Number(Number),
    /// So many bytes.
    Array(usize),
    /// A record or structure.
    Structure(&'static Structure),
    /// Elements of a fixed size.
    List(&'static Form),
    /// Elements that each have a size of their own.
    Each(&'static Form),
    /// Bytes.
    Bytes,
    /// A text that a zero byte ends.
    Text,
    /// Columns of a batch ([`crate::message::column`]).
    Columns,
    /// Something at the end that need not be there.
    Optional(&'static Form),
}

/// A part of a structure that has a fixed size.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// What it is.
    pub form: Form,
    /// Zero bytes that follow it.
    pub zeros: usize,
}

/// A part of a structure behind its fields, whose size may vary.
#[derive(Clone, Copy, Debug)]
pub struct Tail {
    /// Name.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// What it is.
    pub form: Form,
    /// The fields that tell its size; none: it ends by itself, or at the message's end.
    pub counts: &'static [&'static str],
}

/// Fields, and what follows them.
#[derive(Clone, Copy, Debug)]
pub struct Structure {
    /// Name.
    pub name: &'static str,
    /// What it is.
    pub doc: &'static str,
    /// What has a fixed size.
    pub fields: &'static [Field],
    /// What follows.
    pub tails: &'static [Tail],
    /// Whether bytes are one, and are the same when they are read and written again.
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
    /// Size in bytes of what has a fixed one; otherwise of its fixed part.
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
    /// Name, which is that of its kind.
    pub name: &'static str,
    /// Code of its kind.
    pub code: u16,
    /// What it is for.
    pub doc: &'static str,
    /// Its body.
    pub body: &'static Structure,
    /// The body of its answer, if it is answered.
    pub answer: Option<&'static Structure>,
}
