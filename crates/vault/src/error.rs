//! What can go wrong with a vault; each names the file.

/// Version of the formats of manifest and data files that are read.
pub(crate) const FORMAT: u32 = 2;

/// An error of a vault.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system failed.
    #[error("{name}: {source}")]
    Io {
        /// The file.
        name: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file is not what was written: changed, exchanged, cut short, or
    /// written under another root key.
    #[error("{name}: altered, incomplete, or written under another root key ({what})")]
    Altered {
        /// The file.
        name: String,
        /// Where the check failed.
        what: &'static str,
    },
    /// The files are an older copy of themselves.
    #[error("{name}: an older copy (version {found}, the freshness counter says {expected})")]
    Stale {
        /// The file.
        name: String,
        /// Version of the copy.
        found: u64,
        /// Version that the counter demands.
        expected: u64,
    },
    /// The counter is not the one that the files were written with.
    #[error(
        "freshness counter: it says {expected}, but {name} is of version {found}: exchanged, cleared, or put back"
    )]
    Counter {
        /// The file.
        name: String,
        /// Its version.
        found: u64,
        /// What the counter says.
        expected: u64,
    },
    /// There is no file, although the counter says that there was.
    #[error("{name}: missing (the freshness counter says {expected})")]
    Gone {
        /// The file.
        name: String,
        /// What the counter says.
        expected: u64,
    },
    /// The file has a format that this version does not read.
    #[error("{name}: format version {found} is not supported, only {known}", known = FORMAT)]
    Version {
        /// The file.
        name: String,
        /// Its version.
        found: u32,
    },
    /// An earlier error made the vault's state uncertain; it must be opened anew.
    #[error("the vault failed before and must be opened anew")]
    Failed,
    /// A limit or a cryptographic library refused.
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
