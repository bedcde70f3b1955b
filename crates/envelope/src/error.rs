//! What can be wrong with an envelope, a key or a handshake. No error carries
//! content.
use std::fmt;

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The bytes or the text are not an envelope.
    NotAnEnvelope,
    /// It begins as an envelope and ends too early.
    Truncated,
    /// It is of a version, or uses flags or types, that this version lacks.
    UnsupportedVersion,
    /// It was made by somebody else than the key's owner (by its own account).
    WrongOrigin,
    /// It is under another key, or was changed.
    WrongKeyOrAltered,
    /// The plaintext is longer than an envelope may hold.
    TooLong,
    /// A sealer has used up its nonces.
    Exhausted,
    /// A handshake message is malformed, out of order or altered.
    Handshake(&'static str),
    /// The keeper's evidence is of a version or kind that is not known.
    Evidence(&'static str),
    /// A key or a key file is not in the right form.
    KeyFormat(&'static str),
    /// A key file could not be read or written.
    KeyFile(std::io::ErrorKind),
    /// A key file may be read by others.
    KeyFileMode,
    /// No random numbers.
    Random,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotAnEnvelope => f.write_str("not an envelope"),
            Error::Truncated => f.write_str("envelope is truncated"),
            Error::UnsupportedVersion => {
                f.write_str("envelope is of a version that is not supported")
            }
            Error::WrongOrigin => f.write_str("envelope has another origin"),
            Error::WrongKeyOrAltered => f.write_str("envelope is under another key or was altered"),
            Error::TooLong => f.write_str("value is too long for an envelope"),
            Error::Exhausted => f.write_str("session has sealed too many values"),
            Error::Handshake(what) => write!(f, "handshake failed: {what}"),
            Error::Evidence(what) => write!(f, "keeper's evidence: {what}"),
            Error::KeyFormat(what) => write!(f, "invalid key: {what}"),
            Error::KeyFile(kind) => write!(f, "key file: {kind}"),
            Error::KeyFileMode => {
                f.write_str("key file may be read by group or others: use mode 0600")
            }
            Error::Random => f.write_str("no random numbers available"),
        }
    }
}

impl std::error::Error for Error {}
