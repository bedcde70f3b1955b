//! Salts of cells: HMAC-SHA-256 (RFC 2104) of the cell's number with the seed as the key, truncated to
//! half.
//!
//! The hash of each padded key is made once for a result.

use super::{SALT_BYTES, SEED_BYTES};
use sha2::{Digest, Sha256};

const HMAC_BLOCK_BYTES: usize = 64;

/// A result's salts.
pub(super) struct Salts {
    inner: Sha256,
    outer: Sha256,
}

impl Salts {
    pub(super) fn new(seed: &[u8; SEED_BYTES]) -> Salts {
        let padded = |pad: u8| {
            let mut block = [pad; HMAC_BLOCK_BYTES];
            block.iter_mut().zip(seed).for_each(|(to, key)| *to ^= key);
            Sha256::new_with_prefix(block)
        };
        Salts {
            inner: padded(0x36),
            outer: padded(0x5c),
        }
    }

    pub(super) fn salt(&self, index: u64) -> [u8; SALT_BYTES] {
        let hash = self.inner.clone().chain_update(index.to_le_bytes());
        let tag = self.outer.clone().chain_update(hash.finalize());
        tag.finalize().first_chunk().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::hmac;

    /// Those of the library: else no result could be verified that an earlier version has signed.
    #[test]
    fn salts() {
        for byte in [0, 0x36, 0x5c, 0xff] {
            let seed = [byte; SEED_BYTES];
            let key = hmac::Key::new(hmac::HMAC_SHA256, &seed);
            for index in [0, 1, 255, 256, u64::MAX] {
                let tag = hmac::sign(&key, &index.to_le_bytes());
                assert_eq!(Salts::new(&seed).salt(index), tag.as_ref()[..SALT_BYTES]);
            }
        }
    }
}
