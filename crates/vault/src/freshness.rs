//! The freshness counter: a number that only grows, kept where an attacker who
//! can put back older copies of the vault's files cannot put it back.
//!
//! [`CounterFile`] is for development: a file elsewhere, which such an attacker
//! may well put back, too. A TPM's NV counter is in `tpm`.

use std::io;
use std::path::PathBuf;

/// A counter that survives restarts.
pub trait Freshness: Send {
    /// The counter's value; 0 when it has never been advanced.
    fn read(&self) -> io::Result<u64>;
    /// Makes the counter, before it is advanced for the first time; its value.
    fn create(&mut self) -> io::Result<u64> {
        Ok(0)
    }
    /// Moves the counter to `value`, which is one more than it was.
    fn advance(&mut self, value: u64) -> io::Result<()>;
}

/// A counter in a file of its own.
pub struct CounterFile {
    path: PathBuf,
}

impl CounterFile {
    /// The counter in this file, which need not exist yet.
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
