//! The file that holds the wrapped root key: made, opened, wrapped anew.

use crate::format::{self, Content, Sealed};
use crate::seal;
use crate::secret::private;
use crate::source::{KeySource, Source};
use crate::sources;
use crate::{Error, RootKey};
use std::io::Read;
use std::path::{Path, PathBuf};
use vault::{Directory, Files};
use zeroize::Zeroizing;

const FILE_MAX: u64 = 16 * 1024;

/// A root key's file.
pub struct RootKeyFile {
    path: PathBuf,
}

impl RootKeyFile {
    /// The file at this path, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> RootKeyFile {
        RootKeyFile { path: path.into() }
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Whether there is one.
    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// The key source that a text describes.
    ///
    /// # Errors
    /// [`Error::Source`] says what is wrong with it.
    pub fn source(&self, text: &str) -> Result<Source, Error> {
        sources::parse(text, &self.path)
    }

    fn read(&self) -> Result<Content, Error> {
        if !self.exists() {
            return Err(Error::Missing { file: self.name() });
        }
        let mut text = Zeroizing::new(String::new());
        private(&self.path)?
            .take(FILE_MAX)
            .read_to_string(&mut text)
            .map_err(Error::io(self.name()))?;
        format::parse(&self.name(), &text)
    }

    /// Makes the file with a new root key.
    ///
    /// # Errors
    /// Also when there is a file.
    pub fn create(&self, source: &dyn KeySource) -> Result<RootKey, Error> {
        if self.exists() {
            let exists = std::io::ErrorKind::AlreadyExists.into();
            return Err(Error::io(self.name())(exists));
        }
        let root = RootKey::generate()?;
        self.write(&root, source)?;
        Ok(root)
    }

    /// The root key. A file of version 1, which has no source, is wrapped by the
    /// source for development on the way.
    ///
    /// # Errors
    /// Each names the file or the source.
    pub fn open(&self, source: &dyn KeySource) -> Result<RootKey, Error> {
        let sealed = match self.read()? {
            Content::Sealed(sealed) => sealed,
            Content::Bare(bytes) => {
                self.expect(source, "file")?;
                let root = self.bare(&bytes)?;
                self.write(&root, source)?;
                return Ok(root);
            }
        };
        self.expect(source, &sealed.kind)?;
        self.unseal(&sealed, source)
    }

    /// Wraps the root key anew, by another source or another secret. The file holds
    /// the old or the new wrapping, whatever happens.
    ///
    /// # Errors
    /// Each names the file or the source; the file is as before.
    pub fn rotate(&self, from: &dyn KeySource, to: &dyn KeySource) -> Result<RootKey, Error> {
        let root = self.open(from)?;
        self.write(&root, to)?;
        Ok(root)
    }

    /// Name of the root key and kind of its source, without opening anything.
    ///
    /// # Errors
    /// When it is no root key file.
    pub fn describe(&self) -> Result<(String, String), Error> {
        match self.read()? {
            Content::Sealed(sealed) => Ok((sealed.id, sealed.kind)),
            Content::Bare(bytes) => Ok((self.bare(&bytes)?.name(), "none".into())),
        }
    }

    fn expect(&self, source: &dyn KeySource, found: &str) -> Result<(), Error> {
        if source.kind() == found {
            return Ok(());
        }
        Err(Error::OtherSource {
            file: self.name(),
            found: found.to_owned(),
            configured: source.kind(),
        })
    }

    fn bare(&self, bytes: &[u8]) -> Result<RootKey, Error> {
        seal::root_key(bytes).ok_or_else(|| Error::Damaged {
            file: self.name(),
            what: "a root key has 32 bytes",
        })
    }

    fn unseal(&self, sealed: &Sealed, source: &dyn KeySource) -> Result<RootKey, Error> {
        let bound = format::bound(&sealed.id, &sealed.kind);
        let root = source.unwrap(&sealed.wrapped, &bound)?;
        root.filter(|root| root.name() == sealed.id)
            .ok_or_else(|| Error::Wrong {
                file: self.name(),
                source_name: source.name(),
            })
    }

    fn write(&self, root: &RootKey, source: &dyn KeySource) -> Result<(), Error> {
        let folder = self.path.parent().filter(|p| !p.as_os_str().is_empty());
        let mut files =
            Directory::open(folder.unwrap_or(Path::new("."))).map_err(Error::io(self.name()))?;
        self.write_in(&mut files, root, source)
    }

    /// Wraps, opens again what was wrapped, and only then lets go of the old file.
    pub(crate) fn write_in(
        &self,
        files: &mut dyn Files,
        root: &RootKey,
        source: &dyn KeySource,
    ) -> Result<(), Error> {
        source.prepare()?;
        let id = root.name();
        let sealed = Sealed {
            wrapped: source.wrap(root, &format::bound(&id, source.kind()))?,
            kind: source.kind().to_owned(),
            id,
        };
        self.unseal(&sealed, source)?;
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let next = format!("{name}.new");
        files
            .write(&next, &[sealed.print().as_bytes()])
            .and_then(|()| files.sync(&next))
            .and_then(|()| files.rename(&next, &name))
            .and_then(|()| files.sync_names())
            .map_err(Error::io(self.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// A directory that dies after some operations.
    struct Dying(Directory, usize);

    impl Dying {
        fn step(&mut self) -> io::Result<&mut Directory> {
            self.1 = self.1.checked_sub(1).ok_or(io::ErrorKind::Other)?;
            Ok(&mut self.0)
        }
    }

    impl Files for Dying {
        fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
            self.0.read(name)
        }
        fn read_at(&self, name: &str, offset: u64, length: usize) -> io::Result<Vec<u8>> {
            self.0.read_at(name, offset, length)
        }
        fn write(&mut self, name: &str, content: &[&[u8]]) -> io::Result<()> {
            let whole = content.concat();
            match self.step() {
                Ok(files) => files.write(name, content),
                Err(error) => {
                    // Torn.
                    let half = whole.get(..whole.len() / 2).unwrap_or_default();
                    self.0.write(name, &[half])?;
                    Err(error)
                }
            }
        }
        fn sync(&mut self, name: &str) -> io::Result<()> {
            self.step()?.sync(name)
        }
        fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
            self.step()?.rename(from, to)
        }
        fn remove(&mut self, name: &str) -> io::Result<()> {
            self.step()?.remove(name)
        }
        fn sync_names(&mut self) -> io::Result<()> {
            self.step()?.sync_names()
        }
        fn names(&self) -> io::Result<Vec<String>> {
            self.0.names()
        }
    }

    /// A rotation that ends anywhere leaves one wrapping that works: the old one
    /// before the rename, the new one after it. Bug (writing in place): neither.
    #[test]
    fn a_crash_in_a_rotation() -> Result<(), Box<dyn std::error::Error>> {
        for operations in 0..4 {
            let dir = tempfile::tempdir()?;
            let file = RootKeyFile::new(dir.path().join("root.key"));
            let other = dir.path().join("other.wrap");
            let old = file.source("file:")?;
            let new = file.source(&format!("file:{}", other.display()))?;
            let made = file.create(&*old)?;
            let mut files = Dying(Directory::open(dir.path())?, operations);
            assert!(file.write_in(&mut files, &made, &*new).is_err());
            let (works, does_not) = if operations < 3 {
                (old, new)
            } else {
                (new, old)
            };
            assert_eq!(file.open(&*works)?.name(), made.name(), "{operations}");
            assert!(file.open(&*does_not).is_err(), "{operations}");
            file.rotate(&*works, &*does_not)?;
        }
        Ok(())
    }
}
