//! The broker's secret, from which all wrapping keys come.
//!
//! Who has it, and a root key's file, has the root key: it belongs where the keeper's disks do not.

use crate::{KEY_BYTES, WrappingKey, is_name};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use envelope::{Role, SecretKey};
use std::path::Path;
use zeroize::Zeroizing;

/// The secret.
pub struct Secret(SecretKey);

struct Length;

impl KeyType for Length {
    fn len(&self) -> usize {
        KEY_BYTES
    }
}

impl Secret {
    /// The one in a file (`confide keygen broker`).
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn read(path: &Path) -> Result<Secret, String> {
        let read = SecretKey::read_file(Role::Broker, path);
        read.map(Secret)
            .map_err(|e| format!("{}: {e}", path.display()))
    }

    /// One with these bytes.
    pub fn from_key(key: SecretKey) -> Secret {
        Secret(key)
    }

    /// The wrapping key of a name.
    ///
    /// # Errors
    /// If it is no name.
    pub fn wrapping_key(&self, name: &str) -> Result<WrappingKey, String> {
        if !is_name(name) {
            return Err("a key's name has letters, digits, \"-\", \"_\", \".\", at most 64".into());
        }
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        Salt::new(HKDF_SHA256, b"confide broker")
            .extract(self.0.expose())
            .expand(&[b"wrapping key 1 ", name.as_bytes()], Length)
            .and_then(|okm| okm.fill(&mut *key))
            .map_err(|_| "cannot derive a key")?;
        Ok(key)
    }
}
