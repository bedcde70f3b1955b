//! Sealing of envelopes.
use std::sync::atomic::{AtomicU64, Ordering};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use contract::envelope::{
    COUNT_BYTES, EPOCH_BYTES, FLAG_BATCH, FLAG_FITTED, FLAG_HANDLE, FLAG_HOME, FLAG_KEYED,
    HEADER_BYTES, HOME_BYTES, MAGIC, NONCE_BYTES, Origin, PLAINTEXT_MAX, TAG_BYTES,
};

use crate::format::{Home, Target};
use crate::keys::{ColumnKey, Key, StoringKey};
use crate::{Error, ExportKey, format};
use zeroize::Zeroizing;

/// Seals values with one key and owns the key's nonces. A key must have only one sealer, so making
/// one consumes the key.
pub struct Sealer {
    key: LessSafeKey,
    next: AtomicU64,
    origin: Origin,
    epoch: Option<[u8; EPOCH_BYTES]>,
}

impl Sealer {
    pub(crate) fn new(key: &Key, origin: Origin) -> Result<Sealer, Error> {
        Ok(Sealer {
            key: aead_key(key)?,
            next: AtomicU64::new(0),
            origin,
            epoch: None,
        })
    }

    /// Seals values that fit a column. A session must have only one such sealer.
    pub fn storing(key: &StoringKey) -> Result<Sealer, Error> {
        Sealer::new(&key.0, Origin::Client)
    }

    /// Seals export envelopes. The epoch must be new and random for each run of the keeper;
    /// otherwise nonces would repeat.
    pub fn export(key: ExportKey) -> Result<Sealer, Error> {
        Ok(Sealer {
            epoch: Some(key.epoch),
            ..Sealer::new(&key.key, Origin::Export)?
        })
    }

    /// Seals delivery envelopes. A key must have only one sealer.
    pub fn delivery(key: &ColumnKey) -> Result<Sealer, Error> {
        Ok(Sealer {
            epoch: Some(key.number),
            ..Sealer::new(&key.key, Origin::Delivery)?
        })
    }

    /// Appends an envelope with a column's key in front of the value.
    pub fn seal_keyed(
        &self,
        type_code: u8,
        key: &ColumnKey,
        plaintext: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if self.origin != Origin::Keeper {
            return Err(Error::WrongOrigin);
        }
        let both = Zeroizing::new([key.expose().as_slice(), plaintext].concat());
        self.seal_with(type_code, FLAG_KEYED, &[], &both, out)
    }

    /// Appends a binary envelope to `out`. `type_code` may be 0 only with
    /// [`contract::envelope::FLAG_TEXT`]. On error `out` is unchanged.
    pub fn seal(
        &self,
        type_code: u8,
        flags: u8,
        plaintext: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let flags = flags & !(FLAG_BATCH | FLAG_HOME | FLAG_KEYED | FLAG_FITTED);
        self.seal_with(type_code, flags, &[], plaintext, out)
    }

    /// Appends an export envelope that names the database and column of its value.
    pub fn seal_home(
        &self,
        type_code: u8,
        home: &Home,
        plaintext: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if self.origin != Origin::Export {
            return Err(Error::WrongOrigin);
        }
        self.seal_with(type_code, FLAG_HOME, home, plaintext, out)
    }

    /// Appends a binary batch of `count` values, in the format of [`contract::envelope`].
    pub fn seal_batch(
        &self,
        type_code: u8,
        flags: u8,
        count: u32,
        plaintext: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let flags = (flags | FLAG_BATCH) & !(FLAG_HOME | FLAG_KEYED | FLAG_FITTED);
        self.seal_with(type_code, flags, &count.to_le_bytes(), plaintext, out)
    }

    /// Appends the envelope of a value in binary format that fits a column. Of the flags only
    /// [`FLAG_HANDLE`] counts.
    pub fn seal_fitted(
        &self,
        type_code: u8,
        flags: u8,
        target: &Target,
        plaintext: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let flags = flags & FLAG_HANDLE | FLAG_FITTED;
        self.seal_with(type_code, flags, &target.bytes(), plaintext, out)
    }

    fn seal_with(
        &self,
        type_code: u8,
        flags: u8,
        more: &[u8],
        plaintext: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if plaintext.len() > PLAINTEXT_MAX {
            return Err(Error::TooLong);
        }
        let counter = self.next.fetch_add(1, Ordering::Relaxed);
        if counter == u64::MAX {
            // Stays exhausted: the counter must not wrap around.
            self.next.store(u64::MAX, Ordering::Relaxed);
            return Err(Error::Exhausted);
        }
        let mut nonce = [0; NONCE_BYTES];
        nonce[4..].copy_from_slice(&counter.to_le_bytes());

        let start = out.len();
        let around = HEADER_BYTES + EPOCH_BYTES + HOME_BYTES.max(COUNT_BYTES) + NONCE_BYTES;
        out.reserve(around + plaintext.len() + TAG_BYTES);
        out.extend_from_slice(&[MAGIC, self.origin as u8, type_code, flags]);
        if let Some(epoch) = &self.epoch {
            out.extend_from_slice(epoch);
        }
        out.extend_from_slice(more);
        let associated_end = out.len();
        out.extend_from_slice(&nonce);
        let plain_start = out.len();
        out.extend_from_slice(plaintext);
        let (head, plain) = out.split_at_mut(plain_start);
        let tag = self.key.seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(&head[start..associated_end]),
            plain,
        );
        match tag {
            Ok(tag) => {
                out.extend_from_slice(tag.as_ref());
                Ok(())
            }
            Err(_) => {
                out.truncate(start);
                Err(Error::TooLong)
            }
        }
    }

    /// Appends an envelope in text format to `out`.
    pub fn seal_text(
        &self,
        type_code: u8,
        flags: u8,
        plaintext: &[u8],
        out: &mut String,
    ) -> Result<(), Error> {
        let mut binary = Vec::new();
        self.seal(type_code, flags, plaintext, &mut binary)?;
        format::to_text(&binary, out);
        Ok(())
    }
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer")
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

pub(crate) fn aead_key(key: &Key) -> Result<LessSafeKey, Error> {
    UnboundKey::new(&AES_256_GCM, key.bytes())
        .map(LessSafeKey::new)
        .map_err(|_| Error::KeyFormat("wrong size"))
}
