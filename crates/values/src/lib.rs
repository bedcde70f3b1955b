//! Values and operators with PostgreSQL 15's exact semantics: input, output,
//! arithmetic, comparison, hashing, casts, aggregates.
//!
//! No I/O (the time zone database excepted, which is read when a session names a
//! zone) and no knowledge of sessions, storage or the channel.
//!
//! Invariants: no function panics on any input; no value, nor any part of one,
//! appears in an [`Error`] or in the `Debug` output of any type.
#![forbid(unsafe_code)]

mod aggregate;
mod apply;
mod calendar;
mod cast;
mod compare;
mod datetime;
mod encoded;
mod env;
mod error;
mod float;
mod hash;
mod integer;
mod io;
mod json;
mod like;
mod list;
mod numeric;
mod pairs;
mod regex;
mod scalar;
mod scan;
mod text;
mod value;
mod within;

pub use aggregate::{AggregateState, replaces_extreme};
pub use apply::apply;
pub use compare::{compare, test};
pub use encoded::decode_encoded;
pub use env::Env;
pub use error::Error;
pub use hash::{hash, key, token};
pub use io::{apply_typmod, decode_binary, encode_binary, format_text, into_text, parse_text};
pub use like::Pattern;
pub use numeric::Numeric;
pub use value::{Interval, Value};
pub use within::in_range;

/// What the functions of this crate give back.
pub type Result<T> = std::result::Result<T, Error>;
