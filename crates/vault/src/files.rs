//! The few file operations that a vault needs. They are a trait, so tests can make each of them
//! fail, write partially, or lose what was not synced.
//!
//! Names are plain file names in one directory.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// A directory of files.
pub trait Files: Send {
    /// Reads a whole file; `None` if it does not exist.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;
    /// Reads `length` bytes of a file from `offset`; fails if the file is shorter.
    fn read_at(&self, name: &str, offset: u64, length: usize) -> io::Result<Vec<u8>>;
    /// Creates or replaces a file with this content, which is not yet durable.
    fn write(&mut self, name: &str, content: &[&[u8]]) -> io::Result<()>;
    /// Makes a file's content durable.
    fn sync(&mut self, name: &str) -> io::Result<()>;
    /// Renames a file over another; this is not yet durable.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file; ignores a missing one.
    fn remove(&mut self, name: &str) -> io::Result<()>;
    /// Makes the directory's names durable.
    fn sync_names(&mut self) -> io::Result<()>;
    /// The names of all files.
    fn names(&self) -> io::Result<Vec<String>>;
}

/// A directory of the operating system.
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// Opens a directory, creating it if it does not exist.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Directory> {
        let path = path.into();
        std::fs::create_dir_all(&path)?;
        Ok(Directory { path })
    }
}

fn unless_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

impl Files for Directory {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        unless_missing(std::fs::read(self.path.join(name)))
    }

    fn read_at(&self, name: &str, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut file = File::open(self.path.join(name))?;
        file.seek(SeekFrom::Start(offset))?;
        let mut out = Vec::new();
        let wanted = u64::try_from(length).unwrap_or(u64::MAX);
        file.take(wanted).read_to_end(&mut out)?;
        if out.len() == length {
            Ok(out)
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }

    fn write(&mut self, name: &str, content: &[&[u8]]) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(self.path.join(name))?;
        content.iter().try_for_each(|part| file.write_all(part))
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        File::open(self.path.join(name))?.sync_all()
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        unless_missing(std::fs::remove_file(self.path.join(name))).map(|_| ())
    }

    fn sync_names(&mut self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }
}
