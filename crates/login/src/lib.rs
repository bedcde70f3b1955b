//! The proxy's own users: the file that names them (`users`), and SCRAM-SHA-256 as a server
//! and as a client (`scram`). No sockets.
//!
//! Invariant: no password and no key is in an error's text.
#![forbid(unsafe_code)]

pub mod scram;
pub mod users;

pub use scram::Verifier;
pub use users::{User, Users};
