//! Sealing of blocks: AES-256-GCM with a key of its own for each file, derived from the vault's key
//! and a random salt in the file's header. So the nonce can simply be the number of the block in
//! the file: no pair of key and nonce is used twice, even if an older copy of the vault is put back
//! and continued.

use crate::error::Error;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::{digest, hkdf, hmac, rand};
use std::sync::Arc;

/// Size of a file's salt in bytes.
pub(crate) const SALT_BYTES: usize = 16;
/// Size of a block's tag in bytes.
pub(crate) const TAG_BYTES: usize = 16;

/// The vault's key, from which files' keys are derived. It is on the heap, where the keeper's allocator
/// decides in which memory.
#[derive(Clone)]
pub struct VaultKey(Arc<hkdf::Prk>);

/// The key of one file.
pub(crate) struct FileKey(LessSafeKey);

impl From<&[u8; 32]> for VaultKey {
    fn from(root: &[u8; 32]) -> VaultKey {
        VaultKey::new(root)
    }
}

impl VaultKey {
    /// The key under this root key.
    pub fn new(root: &[u8; 32]) -> VaultKey {
        // What `Salt::extract` stands for, without a copy of the root key, which that keeps.
        let salt = hmac::Key::new(hmac::HMAC_SHA256, b"confide vault 1");
        let key = hmac::sign(&salt, root);
        let key = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, key.as_ref());
        VaultKey(Arc::new(key))
    }

    pub(crate) fn file(&self, salt: &[u8; SALT_BYTES]) -> Result<FileKey, Error> {
        let info = [b"file".as_slice(), salt];
        self.0
            .expand(&info, &AES_256_GCM)
            .map(|okm| FileKey(LessSafeKey::new(UnboundKey::from(okm))))
            .map_err(|_| Error::Refused("no key could be derived"))
    }
}

impl FileKey {
    fn nonce(number: u32) -> Nonce {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        Nonce::assume_unique_for_key(bytes)
    }

    /// Seals block `number` of the file in place; returns ciphertext and tag.
    pub(crate) fn seal(&self, number: u32, bound: &[u8], plain: Vec<u8>) -> Result<Vec<u8>, Error> {
        let mut sealed = plain;
        sealed.reserve_exact(TAG_BYTES);
        self.0
            .seal_in_place_append_tag(Self::nonce(number), Aad::from(bound), &mut sealed)
            .map_err(|_| Error::Refused("a block could not be sealed"))?;
        Ok(sealed)
    }

    /// Opens block `number`; `None` if it is not authentic.
    pub(crate) fn open(&self, number: u32, bound: &[u8], mut sealed: Vec<u8>) -> Option<Vec<u8>> {
        let length = self
            .0
            .open_in_place(Self::nonce(number), Aad::from(bound), &mut sealed)
            .ok()?
            .len();
        sealed.truncate(length);
        Some(sealed)
    }
}

/// Returns a new random salt.
pub(crate) fn salt() -> Result<[u8; SALT_BYTES], Error> {
    let mut salt = [0; SALT_BYTES];
    rand::fill(&mut salt).map_err(|_| Error::Refused("no randomness"))?;
    Ok(salt)
}

/// SHA-256.
pub(crate) fn hash(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    out
}
