//! Why there is no root key: what is wrong with what, and what to do.

/// Why there is no root key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The source's description is malformed.
    #[error("key source \"{text}\": {what}")]
    Source {
        /// The description.
        text: String,
        /// What is wrong with it.
        what: String,
    },
    /// There is no file, although something was written under its key.
    #[error("root key file {file}: missing")]
    Missing {
        /// The file.
        file: String,
    },
    /// The operating system failed.
    #[error("{file}: {error}")]
    Io {
        /// The file.
        file: String,
        /// What it said.
        error: std::io::Error,
    },
    /// Others may read what must be secret.
    #[error("{file}: may be read by group or others")]
    Mode {
        /// The file.
        file: String,
    },
    /// The file is not what was written.
    #[error("root key file {file}: damaged ({what})")]
    Damaged {
        /// The file.
        file: String,
        /// Where the check failed.
        what: &'static str,
    },
    /// The file has a format that this version does not read.
    #[error("root key file {file}: format \"{found}\" is not supported")]
    Version {
        /// The file.
        file: String,
        /// Its first word.
        found: String,
    },
    /// The file is wrapped by another kind of source.
    #[error("root key file {file}: wrapped by \"{found}\", configured is \"{configured}\"")]
    OtherSource {
        /// The file.
        file: String,
        /// The source in the file.
        found: String,
        /// The one that was asked for.
        configured: &'static str,
    },
    /// The source's secret is not the one that wrapped the root key.
    #[error("{source_name} does not open root key file {file}: mistyped, or exchanged")]
    Wrong {
        /// The file.
        file: String,
        /// The source.
        source_name: String,
    },
    /// The source does not answer, or lacks what it had.
    #[error("{source_name}: {what}")]
    Unavailable {
        /// The source.
        source_name: String,
        /// What is missing.
        what: String,
    },
    /// The root key is not the one that the store was written under.
    #[error("root key {found} is not that of data directory {directory}, which is {expected}")]
    OtherKey {
        /// The directory.
        directory: String,
        /// Name of the key that there is.
        found: String,
        /// Name of the one that is needed.
        expected: String,
    },
}

impl Error {
    /// What to do.
    pub fn hint(&self) -> &'static str {
        match self {
            Error::Source { .. } => {
                "Write file:PATH, passphrase:file=PATH, passphrase:fd=N, passphrase:credential=NAME, \
                 or pkcs11:token=T;object=O?module-path=M&pin-source=file:PATH."
            }
            Error::Missing { .. } => {
                "Put the file back from its backup: without it the values cannot be read."
            }
            Error::Io { .. } => "Check the path and its permissions.",
            Error::Mode { .. } => "Use mode 0600.",
            Error::Damaged { .. } => "Put the file back from its backup.",
            Error::Version { .. } => "Use the version of Confide that wrote it, or a later one.",
            Error::OtherSource { .. } => {
                "Set root_key_source to what wrapped it, or run confide root-key rotate."
            }
            Error::Wrong { .. } => {
                "Give the passphrase, wrapping file or token that the root key was last wrapped with."
            }
            Error::Unavailable { .. } => "Make the key source available and start again.",
            Error::OtherKey { .. } => {
                "Put back the root key file that belongs to this data directory."
            }
        }
    }

    pub(crate) fn io(file: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
        let file = file.into();
        move |error| Error::Io { file, error }
    }
}
