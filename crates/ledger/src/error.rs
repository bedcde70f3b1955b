//! What can be wrong with something that shall be verified.

/// Why something does not verify, or does not decode.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The bytes or the text are not of the format; says of which part.
    #[error("malformed: {0}")]
    Malformed(&'static str),
    /// A version of the format that this program does not know.
    #[error("unknown version {0}")]
    Version(u16),
    /// The signature is not that of the key over these bytes.
    #[error("the signature does not match")]
    Signature,
    /// Signed by another key than the one that was asked for.
    #[error("signed by another key")]
    OtherKey,
    /// Another origin than the one that was asked for.
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
    /// A leaf, size, row or column that is not there.
    #[error("out of range")]
    Range,
    /// The library that signs and verifies failed.
    #[error("the cryptographic library failed")]
    Library,
}
