//! Errors: PostgreSQL's SQLSTATE and message, with the value left out.
//!
//! Invariant: no constructor here takes a value or anything derived from one.

use contract::{Code, TypeCode};
use std::borrow::Cow;
use std::fmt;

/// An error as PostgreSQL would raise it, without the value in its message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// The five characters of the SQLSTATE.
    pub sqlstate: [u8; 5],
    /// The primary message.
    pub message: Cow<'static, str>,
    /// The detail, if there is one.
    pub detail: Option<Cow<'static, str>>,
    /// The hint, if there is one.
    pub hint: Option<Cow<'static, str>>,
    /// What it is, apart from its texts.
    pub code: Code,
    /// The type that a text or value should have been of, if it is about one.
    pub t: Option<TypeCode>,
}

impl Error {
    /// An error with a primary message only.
    pub fn new(sqlstate: &[u8; 5], message: impl Into<Cow<'static, str>>) -> Error {
        Error {
            sqlstate: *sqlstate,
            message: message.into(),
            detail: None,
            hint: None,
            code: Code::Other,
            t: None,
        }
    }

    /// This error with a code.
    pub fn code(mut self, code: Code) -> Error {
        self.code = code;
        self
    }

    /// This error with a detail.
    pub fn detail(mut self, detail: impl Into<Cow<'static, str>>) -> Error {
        self.detail = Some(detail.into());
        self
    }

    /// This error with a hint.
    pub fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    /// This error, about a type, unless it is about one already.
    pub fn of(mut self, t: TypeCode) -> Error {
        self.t = self.t.or(Some(t));
        self
    }

    /// Not an error, but a null result: some operations of PostgreSQL return null for values that
    /// are not null (`extract(day from date 'infinity')`, an aggregate without input).
    pub fn null() -> Error {
        Error::new(b"00000", "null")
    }

    /// Whether the result is null ([`Error::null`]).
    pub fn is_null(&self) -> bool {
        self.sqlstate == *b"00000"
    }

    /// The SQLSTATE as text.
    pub fn sqlstate_str(&self) -> &str {
        std::str::from_utf8(&self.sqlstate).unwrap_or("XX000")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (SQLSTATE {})", self.message, self.sqlstate_str())
    }
}

impl std::error::Error for Error {}

/// 22003 for an integer type by PostgreSQL's name.
pub(crate) fn out_of_range(name: &str) -> Error {
    Error::new(b"22003", format!("{name} out of range"))
}

/// 22P02 for a type by PostgreSQL's name.
pub(crate) fn invalid_syntax(name: &str) -> Error {
    Error::new(b"22P02", format!("invalid input syntax for type {name}")).code(Code::InvalidText)
}

/// 22012.
pub(crate) fn division_by_zero() -> Error {
    Error::new(b"22012", "division by zero")
}

/// 42883: no such operation on these types.
pub(crate) fn no_such_operation() -> Error {
    Error::new(b"42883", "operator does not exist")
}

/// 54000: a result would be larger than PostgreSQL allows.
pub(crate) fn too_large() -> Error {
    Error::new(b"54000", "requested length too large")
}
