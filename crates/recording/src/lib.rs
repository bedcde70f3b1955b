//! Recordings: what backends asked a keeper, what it answered, when, and how long that took
//! (docs/maintenance.md). The keeper writes them, a replayer reads them.
//!
//! A recording is a directory of files with frames. A frame holds messages of some channels,
//! compressed, then sealed by AES-256-GCM under a key of the recording's own; its number and the
//! tag of the frame before are authenticated with it, and the last frame says which is the first
//! that was kept. So a frame that was altered, left out, repeated or moved is found, and so is a
//! recording that was cut at either end.
//!
//! What stands in it is what the database was told anyway: requests and answers as they stood
//! in a channel. This crate does not know what they mean.
//!
//! Invariants: no bytes make this crate panic; what is read is what was written, all of it and in
//! order, or an error.
#![forbid(unsafe_code)]

mod event;
mod frame;
mod narrow;
mod order;
mod reader;
mod writer;

pub use event::{CALL, CAME, Chunk, Event, FREED, Outcome};
pub use order::{KEY_BYTES, Key, Order, STATEMENTS_MAX, Scope};
pub use reader::{Recorded, read};
pub use writer::{End, Writer};

/// Why a recording cannot be read, or an order not be understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error(pub String);

impl Error {
    fn new(what: impl Into<String>) -> Error {
        Error(what.into())
    }

    fn at(path: &std::path::Path, what: impl std::fmt::Display) -> Error {
        Error(format!("{}: {what}", path.display()))
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
