//! Opening of envelopes.
use aws_lc_rs::aead::{Aad, LessSafeKey, Nonce};
use contract::envelope::{EPOCH_BYTES, Origin, TAG_BYTES};

use crate::format::Fitted;
use crate::keys::{ColumnKey, Key, StoringKey};
use crate::seal::aead_key;
use crate::{Envelope, Error, ExportKey};

/// Opens envelopes sealed with one key.
pub struct Opener {
    key: LessSafeKey,
    origin: Origin,
    epoch: Option<[u8; EPOCH_BYTES]>,
}

impl Opener {
    pub(crate) fn new(key: &Key, origin: Origin) -> Result<Opener, Error> {
        Ok(Opener {
            key: aead_key(key)?,
            origin,
            epoch: None,
        })
    }

    /// Opens values that fit a column.
    pub fn storing(key: &StoringKey) -> Result<Opener, Error> {
        Opener::new(&key.0, Origin::Client)
    }

    /// Opens export envelopes of the key's epoch.
    pub fn export(key: &ExportKey) -> Result<Opener, Error> {
        Ok(Opener {
            epoch: Some(key.epoch),
            ..Opener::new(&key.key, Origin::Export)?
        })
    }

    /// Opens delivery envelopes sealed with a column's key.
    pub fn delivery(key: &ColumnKey) -> Result<Opener, Error> {
        Ok(Opener {
            epoch: Some(key.number),
            ..Opener::new(&key.key, Origin::Delivery)?
        })
    }

    /// Opens a binary envelope and replaces the content of `out` with the plaintext. After an error
    /// `out` is empty.
    pub fn open<'a>(&self, binary: &'a [u8], out: &mut Vec<u8>) -> Result<Envelope<'a>, Error> {
        let envelope = Envelope::parse(binary)?;
        self.open_parsed(&envelope, out)?;
        Ok(envelope)
    }

    /// Replaces the content of `out` with a value that fits a column, from the parts of its envelope.
    pub fn open_fitted(&self, fitted: &Fitted<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        let associated = fitted.associated();
        let envelope = Envelope::parse_fitted(fitted, &associated)?;
        self.open_parsed(&envelope, out)
    }

    /// Like [`Opener::open`], for a parsed envelope.
    pub fn open_parsed(&self, envelope: &Envelope<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        out.clear();
        if envelope.origin != self.origin {
            return Err(Error::WrongOrigin);
        }
        if envelope.epoch != self.epoch {
            return Err(Error::WrongKeyOrAltered);
        }
        let length = envelope
            .sealed
            .len()
            .checked_sub(TAG_BYTES)
            .ok_or(Error::Truncated)?;
        let (cipher, tag) = envelope.sealed.split_at(length);
        out.resize(length, 0);
        let opened = self.key.open_separate_gather(
            Nonce::assume_unique_for_key(envelope.nonce),
            Aad::from(envelope.associated),
            cipher,
            tag,
            out,
        );
        if opened.is_err() {
            out.clear();
            return Err(Error::WrongKeyOrAltered);
        }
        Ok(())
    }
}

impl std::fmt::Debug for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opener")
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}
