//! Keys: the static ones of clients and keepers, and those of export envelopes.
use aws_lc_rs::agreement::{PrivateKey, X25519};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use contract::envelope::{EPOCH_BYTES, KEYED_BYTES};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::Error;

/// Size of every key in bytes.
pub const KEY_BYTES: usize = 32;

/// 32 secret bytes; zeroed when dropped, never printed. They are on the heap, so that a key that is
/// moved leaves no copy behind, and the keeper's allocator decides where they are.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Key(Box<[u8; KEY_BYTES]>);

impl Key {
    pub(crate) fn new(bytes: [u8; KEY_BYTES]) -> Key {
        Key(Box::new(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

/// The key of export envelopes of one epoch.
pub struct ExportKey {
    pub(crate) key: Key,
    pub(crate) epoch: [u8; EPOCH_BYTES],
}

struct Length;

impl KeyType for Length {
    fn len(&self) -> usize {
        KEY_BYTES
    }
}

impl ExportKey {
    /// HKDF-SHA256 of the root key, salted with the epoch. For sealing, the epoch must never have
    /// been used before (8 random bytes).
    pub fn derive(root: &[u8; KEY_BYTES], epoch: [u8; EPOCH_BYTES]) -> ExportKey {
        let mut key = [0; KEY_BYTES];
        let filled = Salt::new(HKDF_SHA256, &epoch)
            .extract(root)
            .expand(&[b"confide export 1"], Length)
            .and_then(|okm| okm.fill(&mut key));
        debug_assert!(filled.is_ok(), "HKDF gives up to 255 blocks");
        let made = ExportKey {
            key: Key::new(key),
            epoch,
        };
        key.zeroize();
        made
    }

    /// Returns a new random epoch.
    pub fn fresh_epoch() -> Result<[u8; EPOCH_BYTES], Error> {
        let mut epoch = [0; EPOCH_BYTES];
        rand::fill(&mut epoch).map_err(|_| Error::Random)?;
        Ok(epoch)
    }
}

impl std::fmt::Debug for ExportKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ExportKey(..)")
    }
}

/// A column's key for delivery envelopes, with its number. Both are random. Nothing that must be
/// opened later is sealed with them, so their owner decides how long they live.
pub struct ColumnKey {
    pub(crate) key: Key,
    pub(crate) number: [u8; EPOCH_BYTES],
}

impl ColumnKey {
    /// Generates a key.
    pub fn generate() -> Result<ColumnKey, Error> {
        let mut both = Zeroizing::new([0; KEYED_BYTES]);
        rand::fill(&mut *both).map_err(|_| Error::Random)?;
        ColumnKey::read(&both).ok_or(Error::Random)
    }

    /// Reads a key from the bytes of [`ColumnKey::expose`].
    pub fn read(bytes: &[u8; KEYED_BYTES]) -> Option<ColumnKey> {
        let (number, key) = bytes.split_first_chunk()?;
        Some(ColumnKey {
            key: Key::new(key.try_into().ok()?),
            number: *number,
        })
    }

    /// Returns the key's number.
    pub fn number(&self) -> [u8; EPOCH_BYTES] {
        self.number
    }

    /// Returns number and key, for a client who may see the column.
    pub fn expose(&self) -> Zeroizing<[u8; KEYED_BYTES]> {
        let mut both = Zeroizing::new([0; KEYED_BYTES]);
        let (number, key) = both.split_at_mut(EPOCH_BYTES);
        number.copy_from_slice(&self.number);
        key.copy_from_slice(self.key.bytes());
        both
    }
}

impl std::fmt::Debug for ColumnKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ColumnKey(..)")
    }
}

/// The key of a session under which its client seals values that fit a column. The keeper puts it
/// into redo records, so that recovery can open these values without the session; nothing else is
/// sealed with it.
pub struct StoringKey(pub(crate) Key);

impl StoringKey {
    /// HKDF-SHA256 of the key from client to keeper.
    pub(crate) fn derive(session: &Key) -> Result<StoringKey, Error> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        Salt::new(HKDF_SHA256, b"confide")
            .extract(session.bytes())
            .expand(&[b"confide storing 1"], Length)
            .and_then(|okm| okm.fill(&mut *bytes))
            .map_err(|_| Error::KeyFormat("cannot derive"))?;
        Ok(StoringKey(Key::new(*bytes)))
    }

    /// Makes a key from its bytes.
    pub fn read(bytes: [u8; KEY_BYTES]) -> StoringKey {
        StoringKey(Key::new(bytes))
    }

    /// Returns the bytes, for a redo record.
    pub fn expose(&self) -> &[u8; KEY_BYTES] {
        self.0.bytes()
    }
}

impl std::fmt::Debug for StoringKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoringKey(..)")
    }
}

/// A static X25519 secret key of a client or a keeper.
#[derive(Clone)]
pub struct SecretKey(pub(crate) Key);

impl SecretKey {
    /// Generates a key.
    pub fn generate() -> Result<SecretKey, Error> {
        let mut bytes = [0; KEY_BYTES];
        rand::fill(&mut bytes).map_err(|_| Error::Random)?;
        let key = SecretKey(Key::new(bytes));
        bytes.zeroize();
        Ok(key)
    }

    /// Makes a key from its bytes.
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> SecretKey {
        SecretKey(Key::new(bytes))
    }

    /// Returns the bytes, to be stored.
    pub fn expose(&self) -> &[u8; KEY_BYTES] {
        self.0.bytes()
    }

    /// Returns the seed of the keeper's signing key (crate `ledger`). Since it is derived from the
    /// static secret, the file with that secret determines the signing key, too.
    pub fn signing_seed(&self) -> Result<Zeroizing<[u8; KEY_BYTES]>, Error> {
        let mut seed = Zeroizing::new([0; KEY_BYTES]);
        Salt::new(HKDF_SHA256, b"confide")
            .extract(self.0.bytes())
            .expand(&[b"confide signing 1"], Length)
            .and_then(|okm| okm.fill(&mut *seed))
            .map_err(|_| Error::KeyFormat("cannot derive"))?;
        Ok(seed)
    }

    /// Returns the public key.
    pub fn public(&self) -> Result<PublicKey, Error> {
        let bad = |_| Error::KeyFormat("not an X25519 key");
        let key = PrivateKey::from_private_key(&X25519, self.0.bytes())
            .map_err(|_| Error::KeyFormat("not an X25519 key"))?;
        let public = key.compute_public_key().map_err(bad)?;
        PublicKey::from_slice(public.as_ref())
    }
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretKey(..)")
    }
}

/// A static X25519 public key, in text as standard base64.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicKey(pub [u8; KEY_BYTES]);

impl PublicKey {
    /// Makes a key from its bytes.
    pub fn from_slice(bytes: &[u8]) -> Result<PublicKey, Error> {
        bytes
            .try_into()
            .map(PublicKey)
            .map_err(|_| Error::KeyFormat("a key has 32 bytes"))
    }

    /// Returns its bytes.
    pub fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl std::fmt::Display for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl std::fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PublicKey({self})")
    }
}
