//! Where a passphrase or PIN is read from: a private file, a file descriptor that
//! the process was started with, or a systemd credential. Never an argument, which
//! everybody on the machine can read.

use crate::Error;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Longer secrets are refused.
const SECRET_MAX: u64 = 4096;

/// Where a secret is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Secret {
    File(PathBuf),
    Descriptor(u32),
    Credential(String),
}

impl Secret {
    /// From `file=PATH`, `fd=N`, `credential=NAME` (also with a colon).
    pub(crate) fn parse(text: &str) -> Option<Secret> {
        let (kind, rest) = text.split_once(['=', ':'])?;
        match kind {
            _ if rest.is_empty() => None,
            "file" => Some(Secret::File(rest.into())),
            "fd" => rest.parse().ok().map(Secret::Descriptor),
            "credential" => {
                let plain = !rest.contains('/') && rest != "." && rest != "..";
                plain.then(|| Secret::Credential(rest.to_owned()))
            }
            _ => None,
        }
    }

    /// What to call it.
    pub(crate) fn name(&self) -> String {
        match self {
            Secret::File(path) => path.display().to_string(),
            Secret::Descriptor(n) => format!("file descriptor {n}"),
            Secret::Credential(name) => format!("systemd credential {name}"),
        }
    }

    /// Its text, without the line's end.
    pub(crate) fn read(&self) -> Result<Zeroizing<Vec<u8>>, Error> {
        let io = || Error::io(self.name());
        let mut text = Zeroizing::new(Vec::new());
        match self {
            Secret::File(path) => {
                let file = private(path)?;
                file.take(SECRET_MAX).read_to_end(&mut text).map_err(io())?;
            }
            Secret::Descriptor(0) => {
                let input = std::io::stdin();
                input
                    .take(SECRET_MAX)
                    .read_to_end(&mut text)
                    .map_err(io())?;
            }
            Secret::Descriptor(n) => {
                let file = File::open(format!("/proc/self/fd/{n}")).map_err(io())?;
                file.take(SECRET_MAX).read_to_end(&mut text).map_err(io())?;
            }
            Secret::Credential(name) => {
                let folder = std::env::var_os("CREDENTIALS_DIRECTORY");
                let folder = folder.ok_or_else(|| Error::Unavailable {
                    source_name: self.name(),
                    what: "CREDENTIALS_DIRECTORY is not set: not started by systemd".into(),
                })?;
                let file = File::open(Path::new(&folder).join(name)).map_err(io())?;
                file.take(SECRET_MAX).read_to_end(&mut text).map_err(io())?;
            }
        }
        if text.last() == Some(&b'\n') {
            text.pop();
        }
        if text.is_empty() {
            return Err(Error::Unavailable {
                source_name: self.name(),
                what: "is empty".into(),
            });
        }
        Ok(text)
    }
}

/// Opens a file that nobody else may read.
pub(crate) fn private(path: &Path) -> Result<File, Error> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(Error::io(&name))?;
    let meta = file.metadata().map_err(Error::io(&name))?;
    match meta.is_file() && meta.mode() & 0o077 != 0 {
        true => Err(Error::Mode { file: name }),
        false => Ok(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        assert_eq!(
            Secret::parse("file=/a b"),
            Some(Secret::File("/a b".into()))
        );
        assert_eq!(Secret::parse("fd:3"), Some(Secret::Descriptor(3)));
        assert_eq!(
            Secret::parse("credential=root"),
            Some(Secret::Credential("root".into()))
        );
        for bad in [
            "",
            "file",
            "file=",
            "fd=x",
            "fd=-1",
            "credential=../x",
            "hunter2",
        ] {
            assert_eq!(Secret::parse(bad), None, "{bad}");
        }
    }
}
