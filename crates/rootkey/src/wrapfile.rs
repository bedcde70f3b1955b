//! The key source for development: the wrapping key lies in a file, by default
//! beside the root key's. Whoever can read one can mostly read both.

use crate::format::{decode, encode};
use crate::seal;
use crate::secret::private;
use crate::source::{KeySource, Wrapped};
use crate::{Error, KEY_BYTES, RootKey, random};
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const MAGIC: &str = "confide-wrapping-key-v1";
const FILE_MAX: u64 = 4096;

/// A wrapping key in a file.
pub(crate) struct WrapFile {
    path: PathBuf,
}

impl WrapFile {
    pub(crate) fn new(path: &str, root_file: &Path) -> WrapFile {
        let mut beside = root_file.as_os_str().to_owned();
        beside.push(".wrap");
        WrapFile {
            path: match path {
                "" => beside.into(),
                path => path.into(),
            },
        }
    }

    fn key(&self) -> Result<Zeroizing<[u8; KEY_BYTES]>, Error> {
        let name = || self.path.display().to_string();
        if !self.path.exists() {
            return Err(Error::Unavailable {
                source_name: self.name(),
                what: "missing".into(),
            });
        }
        let mut text = Zeroizing::new(String::new());
        private(&self.path)?
            .take(FILE_MAX)
            .read_to_string(&mut text)
            .map_err(Error::io(name()))?;
        let mut words = text.split_ascii_whitespace();
        let body = (words.next() == Some(MAGIC))
            .then(|| words.next())
            .flatten();
        let bytes = body.and_then(decode).map(Zeroizing::new);
        let key = bytes.and_then(|b| b.as_slice().try_into().ok());
        key.map(Zeroizing::new).ok_or_else(|| Error::Unavailable {
            source_name: self.name(),
            what: "damaged: not a wrapping key".into(),
        })
    }
}

impl KeySource for WrapFile {
    fn kind(&self) -> &'static str {
        "file"
    }

    fn name(&self) -> String {
        format!("wrapping key file {}", self.path.display())
    }

    fn prepare(&self) -> Result<(), Error> {
        let io = || Error::io(self.path.display().to_string());
        if self.path.exists() {
            return Ok(());
        }
        let key = Zeroizing::new(random::<KEY_BYTES>()?);
        let line = Zeroizing::new(format!("{MAGIC} {}\n", encode(key.as_slice())));
        // Under another name first: half a key must not be taken for one.
        let mut next = self.path.as_os_str().to_owned();
        next.push(".new");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&next)
            .map_err(io())?;
        file.write_all(line.as_bytes()).map_err(io())?;
        file.sync_all().map_err(io())?;
        std::fs::rename(&next, &self.path).map_err(io())?;
        let folder = self.path.parent().filter(|p| !p.as_os_str().is_empty());
        std::fs::File::open(folder.unwrap_or(Path::new(".")))
            .and_then(|f| f.sync_all())
            .map_err(io())
    }

    fn wrap(&self, root: &RootKey, bound: &[u8]) -> Result<Wrapped, Error> {
        Ok(Wrapped {
            parameters: String::new(),
            sealed: seal::seal(&*self.key()?, bound, root)?,
        })
    }

    fn unwrap(&self, wrapped: &Wrapped, bound: &[u8]) -> Result<Option<RootKey>, Error> {
        Ok(seal::open(&*self.key()?, bound, &wrapped.sealed))
    }

    fn is_weak(&self) -> bool {
        true
    }
}
