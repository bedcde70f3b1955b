//! Proof that rows were not changed behind their owner's back: a Merkle log of row
//! versions, checkpoints of it that anybody can keep, and results that are signed
//! with their cells (SecuDB, section 6; the tree is that of RFC 9162, section 2.1).
//!
//! - [`tree`]: the log itself and its proofs; [`proof`] verifies them.
//! - [`row`]: the bytes of a row version that are hashed; [`entry`]: those of the log's leaves.
//! - [`checkpoint`]: size and root of a log, as a signed note; [`report`]: what a walk over a
//!   table found, signed; [`receipt`]: what a transaction wrote, with its proofs.
//! - [`audit`]: the keeper's log of what was allowed and refused.
//! - [`result`]: a signed result, and a single cell of it.
//!
//! Not here: where hashes are stored, keys at rest, the evidence that a key belongs
//! to a keeper. No I/O, no clock.
//!
//! Invariant: what decodes or verifies was encoded or signed as it stands; any other
//! bytes are an error, without a panic, and with memory bounded by their length.
#![forbid(unsafe_code)]

pub mod audit;
pub mod checkpoint;
mod codec;
pub mod entry;
mod error;
mod hash;
mod note;
pub mod proof;
pub mod receipt;
pub mod report;
pub mod result;
pub mod row;
mod sign;
pub mod tree;

pub use error::Error;
pub use hash::Hash;
pub use sign::{SigningKey, VerifyingKey};

/// Base64, as used in notes and proofs.
pub fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
