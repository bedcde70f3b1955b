//! The one interface of what makes reports.

use crate::{DATA_BYTES, Kind};
use std::fmt;

/// A report and what came with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quote {
    /// What it is from.
    pub kind: Kind,
    /// The report.
    pub report: Vec<u8>,
    /// Certificates, if there were any.
    pub certificates: Vec<u8>,
}

/// Makes reports.
pub trait Provider: Send + Sync {
    /// A new report with these data in it.
    ///
    /// # Errors
    /// [`Error`].
    fn quote(&self, data: &[u8; DATA_BYTES]) -> Result<Quote, Error>;

    /// Whether its reports prove nothing.
    fn is_simulated(&self) -> bool {
        false
    }
}

/// Why there is no report.
#[derive(Debug)]
pub enum Error {
    /// The setting names no provider.
    Setting(String),
    /// A file of the provider, and why not.
    Io(String, std::io::Error),
    /// What the system says cannot be used.
    Provider(String),
    /// The document would be longer than a message of the handshake takes.
    TooLong,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Setting(text) => {
                write!(
                    f,
                    "evidence \"{text}\": neither simulated, tsm nor tsm:DIRECTORY"
                )
            }
            Error::Io(file, error) => write!(f, "{file}: {error}"),
            Error::Provider(what) => f.write_str(what),
            Error::TooLong => f.write_str("the report is too long"),
        }
    }
}

impl std::error::Error for Error {}
