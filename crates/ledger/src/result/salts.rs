//! Salts of cells: the keystream of AES-256 in counter mode with the seed as the key, a block for each
//! cell. So a salt tells nothing of another one, and all of a result take one call: they were two
//! fifths of a signature when each was a hash of its own.

use super::{SALT_BYTES, SEED_BYTES};
use crate::Error;
use aws_lc_rs::cipher::{AES_256, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::iv::FixedLength;

/// The salts of so many cells, beginning with the cell of this number.
pub(super) fn salts(
    seed: &[u8; SEED_BYTES],
    first: u64,
    count: usize,
) -> Result<Vec<[u8; SALT_BYTES]>, Error> {
    let key = UnboundCipherKey::new(&AES_256, seed).and_then(EncryptingKey::ctr);
    let key = key.map_err(|_| Error::Library)?;
    let bytes = count.checked_mul(SALT_BYTES).ok_or(Error::Range)?;
    let mut stream = vec![0; bytes];
    let counter = FixedLength::from(u128::from(first).to_be_bytes());
    key.less_safe_encrypt(&mut stream, EncryptionContext::Iv128(counter))
        .map_err(|_| Error::Library)?;
    Ok(stream.as_chunks().0.to_vec())
}

/// The salt of one cell.
pub(super) fn salt(seed: &[u8; SEED_BYTES], index: u64) -> Result<[u8; SALT_BYTES], Error> {
    salts(seed, index, 1)?
        .first()
        .copied()
        .ok_or(Error::Library)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each is the same alone as among all, else a cell shown alone would not verify; no two are the
    /// same, else equal neighbours of a shown cell could be seen to be equal.
    #[test]
    fn one_and_all() -> Result<(), Error> {
        let seed = [7; SEED_BYTES];
        let all = salts(&seed, 0, 300)?;
        for (index, of_all) in (0..).zip(&all) {
            assert_eq!(salt(&seed, index)?, *of_all);
        }
        let different: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(different.len(), 300);
        assert_ne!(salts(&[8; SEED_BYTES], 0, 300)?, all);
        assert_eq!(salts(&seed, 0, 0)?.len(), 0);
        Ok(())
    }
}
