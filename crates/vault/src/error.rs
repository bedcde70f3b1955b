//! Errors of a vault; each names the file.

/// Version of the formats of manifest and data files.
pub(crate) const FORMAT: u32 = 2;

/// An error of a vault.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system failed.
    #[error("{name}: {source}")]
    Io {
        /// The file.
        name: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file is not as it was written: modified, exchanged, truncated, or written with another
    /// root key.
    #[error("{name}: altered, incomplete, or written under another root key ({what})")]
    Altered {
        /// The file.
        name: String,
        /// Which check failed.
        what: &'static str,
    },
    /// The files are an older copy of themselves.
    #[error("{name}: an older copy (version {found}, the freshness counter says {expected})")]
    Stale {
        /// The file.
        name: String,
        /// Version of the copy.
        found: u64,
        /// Version that the counter requires.
        expected: u64,
    },
    /// The counter does not belong to these files.
    #[error(
        "freshness counter: it says {expected}, but {name} is of version {found}: exchanged, cleared, or put back"
    )]
    Counter {
        /// The file.
        name: String,
        /// Version of the file.
        found: u64,
        /// Value of the counter.
        expected: u64,
    },
    /// A file is missing, although the counter says that there was one.
    #[error("{name}: missing (the freshness counter says {expected})")]
    Gone {
        /// The file.
        name: String,
        /// Value of the counter.
        expected: u64,
    },
    /// This version does not read the file's format.
    #[error("{name}: format version {found} is not supported, only {known}", known = FORMAT)]
    Version {
        /// The file.
        name: String,
        /// Version of the format.
        found: u32,
    },
    /// After an earlier error the vault's state is uncertain; it must be reopened.
    #[error("the vault failed before and must be opened anew")]
    Failed,
    /// A limit was exceeded, or a cryptographic library failed.
    #[error("{0}")]
    Refused(&'static str),
}

impl Error {
    pub(crate) fn altered(name: &str, what: &'static str) -> Error {
        Error::Altered {
            name: name.to_owned(),
            what,
        }
    }

    /// Adds the file's name to an error of the operating system.
    pub(crate) fn io(name: &str) -> impl FnOnce(std::io::Error) -> Error {
        move |source| Error::Io {
            name: name.to_owned(),
            source,
        }
    }
}
