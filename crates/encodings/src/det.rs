//! Deterministic cells: equal values of a column have equal cells, so PostgreSQL's own
//! `=`, hash joins, GROUP BY and unique indexes work on the bytes (AES-SIV, RFC 5297).
//!
//! A row reveals at rest which rows of the column are equal, hence how often each value
//! occurs, and the length of the value.

use crate::{ColumnKeys, Error};
use aes_siv::KeyInit;
use aes_siv::siv::Aes256Siv;

/// Bytes that a cell is longer than its value.
pub const OVERHEAD: usize = 16;

/// Bytes of the nonce of cells whose equality is hidden.
pub const NONCE_BYTES: usize = 16;

/// Seals and opens cells of one column.
pub struct Det {
    key: zeroize::Zeroizing<[u8; 64]>,
}

impl Det {
    /// For a column.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn new(keys: &ColumnKeys) -> Result<Det, Error> {
        let key = keys.derive("det")?;
        Ok(Det { key })
    }

    /// For a column whose key somebody has passed on.
    pub fn of(key: [u8; 64]) -> Det {
        let key = zeroize::Zeroizing::new(key);
        Det { key }
    }

    /// The key, to be passed on to who may open all cells of the column.
    pub fn key(&self) -> &[u8; 64] {
        &self.key
    }

    /// The cell of a value; `type_code` tells types apart whose values have the same bytes.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn seal(&self, type_code: u8, value: &[u8]) -> Result<Vec<u8>, Error> {
        let sealed = self.cipher().encrypt([[type_code]], value);
        sealed.map_err(|_| Error::Library)
    }

    /// The value of a cell.
    ///
    /// # Errors
    /// [`Error::NotAuthentic`] if it was not sealed for this column and type.
    pub fn open(&self, type_code: u8, cell: &[u8]) -> Result<Vec<u8>, Error> {
        let opened = self.cipher().decrypt([[type_code]], cell);
        opened.map_err(|_| Error::NotAuthentic)
    }

    /// As [`Det::seal`], but equal values have different cells: with a nonce that is never
    /// used twice, which comes first.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn seal_fresh(
        &self,
        type_code: u8,
        nonce: [u8; NONCE_BYTES],
        value: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let context: [&[u8]; 2] = [&[type_code], &nonce];
        let sealed = self.cipher().encrypt(context, value);
        let mut cell = nonce.to_vec();
        cell.extend_from_slice(&sealed.map_err(|_| Error::Library)?);
        Ok(cell)
    }

    /// The value of a cell of [`Det::seal_fresh`].
    ///
    /// # Errors
    /// As [`Det::open`], and [`Error::Malformed`].
    pub fn open_fresh(&self, type_code: u8, cell: &[u8]) -> Result<Vec<u8>, Error> {
        let (nonce, sealed) = cell
            .split_first_chunk::<NONCE_BYTES>()
            .ok_or(Error::Malformed)?;
        let context: [&[u8]; 2] = [&[type_code], nonce];
        let opened = self.cipher().decrypt(context, sealed);
        opened.map_err(|_| Error::NotAuthentic)
    }

    fn cipher(&self) -> Aes256Siv {
        Aes256Siv::new((&*self.key).into())
    }
}
