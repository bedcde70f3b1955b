//! The contract between Confide's parts: identifiers, type codes, operations, messages, ring
//! layout, envelope format and their version.
//!
//! Everything that the C extension, the keeper and the client must agree on is defined only here;
//! the crate `catalog` generates the C header from it. No I/O, no allocation, no dependency.
//!
//! Invariant: a change to any number in this crate changes [`VERSION`].
#![no_std]
#![forbid(unsafe_code)]

pub mod cell;
pub mod codec;
mod coded;
pub mod describe;
pub mod envelope;
pub mod error;
pub mod fid;
pub mod hello;
pub mod message;
pub mod op;
pub mod report;
pub mod ring;
pub mod soft;
pub mod types;

pub use coded::{Aggregate, Arguments, Unit};
pub use error::Code;
pub use fid::Fid;
pub use message::{Header, Kind, answer, body};
pub use op::{Flag, Named, Op, Result as OpResult};
pub use types::TypeCode;

/// Bits of the immediate operand of [`Op::InRange`].
pub mod range {
    /// The bound precedes the current row.
    pub const PRECEDING: i32 = 1;
    /// Rows up to the bound are within, not those from it on.
    pub const UP_TO: i32 = 2;
}

/// Version of the whole contract. Peers with different versions refuse each other in the channel's
/// handshake ([`hello`]).
pub const VERSION: u32 = 49;
