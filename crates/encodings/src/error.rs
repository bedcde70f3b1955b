//! What can be wrong with a cell.

/// Why something does not encode, compute or open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The bytes are not a cell of this encoding.
    #[error("malformed cell")]
    Malformed,
    /// The cell is not authentic, or of another column.
    #[error("the cell is not authentic")]
    NotAuthentic,
    /// A result would not be exact any more.
    #[error("out of range")]
    Range,
    /// Two cells of different lengths, hence of different types.
    #[error("cells of different types")]
    OtherType,
    /// The library that derives keys and encrypts failed.
    #[error("the cryptographic library failed")]
    Library,
}
