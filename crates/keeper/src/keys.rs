//! The keeper's own keys: the static key it proves itself with, and the root key
//! from which the keys of export envelopes and of hashes come.
//!
//! The root key's file is one line, `confide-root-key-v1 secret BASE64`, mode
//! 0600. It is a stand-in for a key that a TPM or a key service releases.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use envelope::{Error, ExportKey, Opener, PublicKey, Role, Sealer, SecretKey};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::Zeroizing;

const ROOT_MAGIC: &str = "confide-root-key-v1";
const FILE_MAX: u64 = 4096;
/// Epochs of export envelopes whose keys are kept.
const EPOCHS_MAX: usize = 64;

type Epoch = [u8; contract::envelope::EPOCH_BYTES];

/// The keeper's own keys.
pub struct Keys {
    /// Proves to clients who this keeper is.
    pub secret: SecretKey,
    /// What clients know it by.
    pub public: PublicKey,
    /// Seals export envelopes.
    pub export: Sealer,
    /// Under which values are hashed when a hash is declassified.
    pub hash: Zeroizing<[u8; 16]>,
    root: Zeroizing<[u8; 32]>,
    openers: Mutex<HashMap<Epoch, Arc<Opener>>>,
}

struct Length(usize);

impl aws_lc_rs::hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Equal in every run: hashes may end up in indexes.
fn hash_key(root: &[u8; 32]) -> Result<Zeroizing<[u8; 16]>, Error> {
    use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
    let mut key = Zeroizing::new([0; 16]);
    Salt::new(HKDF_SHA256, b"confide")
        .extract(root)
        .expand(&[b"confide hash 1"], Length(16))
        .and_then(|okm| okm.fill(&mut *key))
        .map_err(|_| Error::KeyFormat("cannot derive"))?;
    Ok(key)
}

impl Keys {
    /// Keys from a static key and a root key.
    pub fn new(secret: SecretKey, root: Zeroizing<[u8; 32]>) -> Result<Keys, Error> {
        let epoch = ExportKey::fresh_epoch()?;
        Ok(Keys {
            public: secret.public()?,
            secret,
            export: Sealer::export(ExportKey::derive(&root, epoch))?,
            hash: hash_key(&root)?,
            root,
            openers: Mutex::new(HashMap::new()),
        })
    }

    /// Reads both key files; makes the ones that are missing.
    pub fn load(key_file: &Path, root_file: &Path) -> Result<Keys, String> {
        let at = |path: &Path, error: Error| format!("{}: {error}", path.display());
        if !key_file.exists() {
            SecretKey::generate()
                .and_then(|key| key.write_file(Role::Keeper, key_file))
                .map_err(|e| at(key_file, e))?;
            tracing::info!(file = %key_file.display(), "made a new static key");
        }
        if !root_file.exists() {
            make_root(root_file).map_err(|e| at(root_file, e))?;
            tracing::warn!(
                file = %root_file.display(),
                "made a new root key in a file: a key source for development only"
            );
        }
        let secret = SecretKey::read_file(Role::Keeper, key_file).map_err(|e| at(key_file, e))?;
        let root = read_root(root_file).map_err(|e| at(root_file, e))?;
        Keys::new(secret, root).map_err(|e| e.to_string())
    }

    /// The root key, for those that derive keys of their own.
    pub fn root(&self) -> &[u8; 32] {
        &self.root
    }

    /// What opens export envelopes of an epoch.
    pub fn export_opener(&self, epoch: Epoch) -> Result<Arc<Opener>, Error> {
        let mut openers = self.openers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opener) = openers.get(&epoch) {
            return Ok(Arc::clone(opener));
        }
        let opener = Arc::new(Opener::export(&ExportKey::derive(&self.root, epoch))?);
        if openers.len() >= EPOCHS_MAX {
            openers.clear();
        }
        openers.insert(epoch, Arc::clone(&opener));
        Ok(opener)
    }
}

fn io(error: std::io::Error) -> Error {
    Error::KeyFile(error.kind())
}

fn make_root(path: &Path) -> Result<(), Error> {
    let root = Zeroizing::new(crate::keeper::random::<32>()?);
    let body = Zeroizing::new(STANDARD.encode(*root));
    let line = Zeroizing::new(format!("{ROOT_MAGIC} secret {}\n", *body));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(io)?;
    file.write_all(line.as_bytes()).map_err(io)?;
    file.sync_all().map_err(io)
}

fn read_root(path: &Path) -> Result<Zeroizing<[u8; 32]>, Error> {
    let file = File::open(path).map_err(io)?;
    let mode = file.metadata().map_err(io)?.mode();
    if mode & 0o077 != 0 {
        return Err(Error::KeyFileMode);
    }
    let mut text = Zeroizing::new(String::new());
    file.take(FILE_MAX).read_to_string(&mut text).map_err(io)?;
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [ROOT_MAGIC, "secret", body] = words.as_slice() else {
        return Err(Error::KeyFormat(
            "expected \"confide-root-key-v1 secret ...\"",
        ));
    };
    let bytes = STANDARD
        .decode(body)
        .map(Zeroizing::new)
        .map_err(|_| Error::KeyFormat("not base64"))?;
    let root: [u8; 32] = bytes
        .as_slice()
        .try_into()
        .map_err(|_| Error::KeyFormat("a root key has 32 bytes"))?;
    Ok(Zeroizing::new(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A keeper that starts again with the same files opens its old exports and
    /// hashes as before.
    #[test]
    fn keys_survive() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let (key, root) = (dir.path().join("k"), dir.path().join("r"));
        let first = Keys::load(&key, &root)?;
        let second = Keys::load(&key, &root)?;
        assert_eq!(first.public, second.public);
        assert_eq!(*first.hash, *second.hash);
        let mut sealed = Vec::new();
        first.export.seal(3, 0, b"abcd", &mut sealed)?;
        let epoch = envelope::Envelope::parse(&sealed)?.epoch.ok_or("epoch")?;
        let mut plain = Vec::new();
        second.export_opener(epoch)?.open(&sealed, &mut plain)?;
        assert_eq!(plain, b"abcd");
        std::fs::set_permissions(&root, std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
        assert!(Keys::load(&key, &root).is_err());
        Ok(())
    }
}
