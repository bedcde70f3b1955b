//! Key files: one line of text, `confide-key-v1 ROLE secret BASE64`, mode 0600.
//! Empty lines and lines that begin with `#` are skipped.
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::{Zeroize, Zeroizing};

use crate::keys::KEY_BYTES;
use crate::{Error, PublicKey, SecretKey};

/// First word of every key in text.
const MAGIC: &str = "confide-key-v1";
/// Maximum size of a key file.
const FILE_MAX: u64 = 16 * 1024;

/// The owner of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// An application's or a data owner's.
    Client,
    /// A keeper's.
    Keeper,
    /// A broker's: its static key, or the secret from which wrapping keys are derived.
    Broker,
}

impl Role {
    /// The role's name in a file.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Keeper => "keeper",
            Role::Broker => "broker",
        }
    }

    fn from_name(name: &str) -> Option<Role> {
        [Role::Client, Role::Keeper, Role::Broker]
            .into_iter()
            .find(|role| role.name() == name)
    }
}

impl PublicKey {
    /// Returns the line in which this key is published.
    pub fn to_line(&self, role: Role) -> String {
        format!("{MAGIC} {} public {self}", role.name())
    }
}

impl std::str::FromStr for PublicKey {
    type Err = Error;

    /// Parses base64, alone or as the last word of a public key's line (`confide-key-v1 keeper
    /// public …`).
    fn from_str(text: &str) -> Result<PublicKey, Error> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let body = match words.as_slice() {
            [body] => body,
            [MAGIC, _, "public", body] => body,
            _ => return Err(Error::KeyFormat("not a public key")),
        };
        let bytes = STANDARD
            .decode(body)
            .map_err(|_| Error::KeyFormat("not base64"))?;
        PublicKey::from_slice(&bytes)
    }
}

impl SecretKey {
    /// Writes a new file. Never overwrites an existing one.
    pub fn write_file(&self, role: Role, path: &Path) -> Result<(), Error> {
        let io = |e: std::io::Error| Error::KeyFile(e.kind());
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(io)?;
        let body = Zeroizing::new(STANDARD.encode(self.expose()));
        let line = Zeroizing::new(format!("{MAGIC} {} secret {}\n", role.name(), *body));
        file.write_all(line.as_bytes()).map_err(io)?;
        file.sync_all().map_err(io)
    }

    /// Reads a file, regardless of the role.
    pub fn read_any(path: &Path) -> Result<(Role, SecretKey), Error> {
        let io = |e: std::io::Error| Error::KeyFile(e.kind());
        let file = File::open(path).map_err(io)?;
        let meta = file.metadata().map_err(io)?;
        // Like PostgreSQL for its keys: 0600, or 0640 if root owns the file.
        let forbidden = if meta.uid() == 0 { 0o037 } else { 0o077 };
        if meta.mode() & forbidden != 0 {
            return Err(Error::KeyFileMode);
        }
        let mut text = Zeroizing::new(String::new());
        file.take(FILE_MAX).read_to_string(&mut text).map_err(io)?;
        parse(&text)
    }

    /// Reads the key file of a role.
    pub fn read_file(role: Role, path: &Path) -> Result<SecretKey, Error> {
        match SecretKey::read_any(path)? {
            (found, key) if found == role => Ok(key),
            _ => Err(Error::KeyFormat("the key is for another role")),
        }
    }
}

fn parse(text: &str) -> Result<(Role, SecretKey), Error> {
    let mut lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return Err(Error::KeyFormat("a key file has one line"));
    };
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [MAGIC, role, "secret", body] = words.as_slice() else {
        return Err(Error::KeyFormat(
            "expected \"confide-key-v1 ROLE secret ...\"",
        ));
    };
    let role = Role::from_name(role).ok_or(Error::KeyFormat("unknown role"))?;
    let bytes = Zeroizing::new(
        STANDARD
            .decode(body)
            .map_err(|_| Error::KeyFormat("not base64"))?,
    );
    let mut key: [u8; KEY_BYTES] = bytes
        .as_slice()
        .try_into()
        .map_err(|_| Error::KeyFormat("a key has 32 bytes"))?;
    let secret = SecretKey::from_bytes(key);
    key.zeroize();
    Ok((role, secret))
}
