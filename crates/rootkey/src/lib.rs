//! The root key at rest. A [`RootKeyFile`] holds it wrapped by a [`KeySource`]: a file
//! (development), a passphrase, or a key in a PKCS#11 token. Another source can take
//! over by wrapping it again: nothing that is sealed under the root key changes.
//!
//! Not here: what is derived from the root key (the keeper, crates `vault`, `redo`).
//!
//! Invariants: the root key's file is replaced as a whole or not at all; secrets come
//! from files, file descriptors and credentials, never from arguments; no error
//! carries a secret.
#![forbid(unsafe_code)]

mod error;
mod fetched;
mod file;
mod format;
mod passphrase;
mod pkcs11;
mod seal;
mod secret;
mod source;
mod sources;
mod wrapfile;

pub use error::Error;
pub use fetched::{Fetch, Fetched};
pub use file::RootKeyFile;
pub use source::{KeySource, Source, Wrapped};

use aws_lc_rs::{hkdf, rand};
use zeroize::Zeroizing;

/// Size of the root key in bytes.
pub const KEY_BYTES: usize = 32;
/// Size of its name in bytes.
pub const ID_BYTES: usize = 16;

/// The root key.
#[derive(Clone)]
pub struct RootKey(Zeroizing<[u8; KEY_BYTES]>);

struct IdLength;

impl hkdf::KeyType for IdLength {
    fn len(&self) -> usize {
        ID_BYTES
    }
}

impl RootKey {
    /// A new key.
    pub fn generate() -> Result<RootKey, Error> {
        random().map(|bytes| RootKey(Zeroizing::new(bytes)))
    }

    /// The key with these bytes.
    pub fn from_bytes(bytes: Zeroizing<[u8; KEY_BYTES]>) -> RootKey {
        RootKey(bytes)
    }

    /// Its bytes.
    pub fn expose(&self) -> &Zeroizing<[u8; KEY_BYTES]> {
        &self.0
    }

    /// A name that tells root keys apart and says nothing about them.
    pub fn id(&self) -> [u8; ID_BYTES] {
        let mut id = [0; ID_BYTES];
        let filled = hkdf::Salt::new(hkdf::HKDF_SHA256, b"confide")
            .extract(self.0.as_slice())
            .expand(&[b"confide root id 1"], IdLength)
            .and_then(|okm| okm.fill(&mut id));
        debug_assert!(filled.is_ok(), "HKDF gives up to 255 blocks");
        id
    }

    /// [`RootKey::id`] in hexadecimal.
    pub fn name(&self) -> String {
        format::hex(&self.id())
    }
}

impl std::fmt::Debug for RootKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RootKey(..)")
    }
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    rand::fill(&mut bytes).map_err(|_| Error::Unavailable {
        source_name: "random numbers".into(),
        what: "the system has none".into(),
    })?;
    Ok(bytes)
}
