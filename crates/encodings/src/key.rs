//! Keys of a column, one for each encoding, from the owner's master key (HKDF-SHA-256).

use crate::Error;
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use zeroize::Zeroizing;

const SALT: &[u8] = b"confide encodings 1";

/// Derives the keys of one column.
pub struct ColumnKeys {
    master: Zeroizing<[u8; 32]>,
    /// Schema, table, column and epoch, each with its length before it.
    column: Vec<u8>,
}

impl ColumnKeys {
    /// The keys of a column in an epoch: another epoch, other keys.
    pub fn new(master: &[u8; 32], name: [&str; 3], epoch: u32) -> ColumnKeys {
        let mut column = Vec::new();
        for part in name {
            column.extend_from_slice(&(part.len() as u64).to_le_bytes());
            column.extend_from_slice(part.as_bytes());
        }
        column.extend_from_slice(&epoch.to_le_bytes());
        ColumnKeys {
            master: Zeroizing::new(*master),
            column,
        }
    }

    /// The keys of columns that a schema knows by a number, of one type and shape.
    pub fn numbered(master: &[u8; 32], number: u32, type_code: u8, shape: u8) -> ColumnKeys {
        let mut column = number.to_le_bytes().to_vec();
        column.extend_from_slice(&[type_code, shape]);
        ColumnKeys {
            master: Zeroizing::new(*master),
            column,
        }
    }

    /// A key of `N` bytes for one purpose.
    pub(crate) fn derive<const N: usize>(
        &self,
        purpose: &str,
    ) -> Result<Zeroizing<[u8; N]>, Error> {
        let mut key = Zeroizing::new([0; N]);
        Salt::new(HKDF_SHA256, SALT)
            .extract(&*self.master)
            .expand(&[purpose.as_bytes(), b"\0", &self.column], Length(N))
            .and_then(|okm| okm.fill(&mut *key))
            .map_err(|_| Error::Library)?;
        Ok(key)
    }
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}
