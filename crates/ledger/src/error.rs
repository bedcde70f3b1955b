//! Errors of verification and decoding.

/// Why something does not verify, or does not decode.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The bytes or the text violate the format; names the part.
    #[error("malformed: {0}")]
    Malformed(&'static str),
    /// Unknown version of the format.
    #[error("version {0} of the format, which is not read here")]
    Version(u16),
    /// The signature does not match these bytes and the key.
    #[error("the signature does not match")]
    Signature,
    /// Signed by a key other than the expected one.
    #[error("signed by another key")]
    OtherKey,
    /// The origin is not the expected one.
    #[error("a checkpoint of another log")]
    OtherLog,
    /// The nonce is not the one that the client sent.
    #[error("the nonce is not the one that was sent: an answer to another request")]
    Nonce,
    /// The proof does not lead from the leaf, or the old root, to the root.
    #[error("the proof does not lead to the root")]
    Proof,
    /// The cells do not have the root that was signed.
    #[error("the cells are not those that were signed")]
    Cells,
    /// A leaf, size, row or column does not exist.
    #[error("out of range")]
    Range,
    /// The library that signs and verifies failed.
    #[error("the cryptographic library failed")]
    Library,
}
