//! The freshness counter: a number that only grows. It is kept where it cannot be reset by an
//! attacker who can put back older copies of the vault's files.
//!
//! [`CounterFile`] is for development: such an attacker may be able to put back this file, too. For
//! a TPM's NV counter see `tpm`.

use std::io;
use std::path::PathBuf;

/// A counter that survives restarts.
pub trait Freshness: Send {
    /// Returns the counter's value; 0 if it was never advanced.
    fn read(&self) -> io::Result<u64>;
    /// Creates the counter before it is first advanced; returns its value.
    fn create(&mut self) -> io::Result<u64> {
        Ok(0)
    }
    /// Advances the counter to `value`, which must be its present value plus one.
    fn advance(&mut self, value: u64) -> io::Result<()>;
}

/// A counter in a separate file.
pub struct CounterFile {
    path: PathBuf,
}

impl CounterFile {
    /// Uses this file, which need not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> CounterFile {
        CounterFile { path: path.into() }
    }
}

impl Freshness for CounterFile {
    fn read(&self) -> io::Result<u64> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => text
                .trim()
                .parse()
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not a number")),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(e) => Err(e),
        }
    }

    fn advance(&mut self, value: u64) -> io::Result<()> {
        let next = self.path.with_extension("new");
        std::fs::write(&next, format!("{value}\n"))?;
        std::fs::File::open(&next)?.sync_all()?;
        std::fs::rename(&next, &self.path)?;
        match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => {
                std::fs::File::open(folder)?.sync_all()
            }
            _ => Ok(()),
        }
    }
}
