//! Errors of envelopes, keys and handshakes. No error carries content.
use std::fmt;

/// An error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The bytes or the text are not an envelope.
    NotAnEnvelope,
    /// It starts like an envelope but is too short.
    Truncated,
    /// Its version, flags or type are unknown to this version.
    UnsupportedVersion,
    /// According to its header it was made by somebody other than the key's owner.
    WrongOrigin,
    /// It was sealed with another key, or was altered.
    WrongKeyOrAltered,
    /// The plaintext is longer than an envelope may hold.
    TooLong,
    /// A sealer has no nonces left.
    Exhausted,
    /// A handshake message is malformed, out of order or altered.
    Handshake(&'static str),
    /// The version or kind of the keeper's evidence is unknown.
    Evidence(&'static str),
    /// A key or a key file is malformed.
    KeyFormat(&'static str),
    /// A key file could not be read or written.
    KeyFile(std::io::ErrorKind),
    /// Other users may read a key file.
    KeyFileMode,
    /// Random numbers are not available.
    Random,
    /// No memory of the kind that keys must be in is left.
    NoRoom,
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
            Error::NoRoom => f.write_str("no hidden memory is left for a key"),
        }
    }
}

impl std::error::Error for Error {}
