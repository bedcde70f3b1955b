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

    fn cipher(&self) -> Aes256Siv {
        Aes256Siv::new((&*self.key).into())
    }
}
