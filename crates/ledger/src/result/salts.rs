//! Salts of cells: HMAC-SHA-256 (RFC 2104) of the cell's number with the seed as the key, truncated to
//! half.
//!
//! Both hashes are made in one step each: to copy a context of the library's takes longer than they do.

use super::{SALT_BYTES, SEED_BYTES};
use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

const HMAC_BLOCK_BYTES: usize = 64;

/// A result's salts.
pub(super) struct Salts {
    inner: [u8; HMAC_BLOCK_BYTES],
    outer: [u8; HMAC_BLOCK_BYTES],
}

impl Salts {
    pub(super) fn new(seed: &[u8; SEED_BYTES]) -> Salts {
        let padded = |pad: u8| {
            let mut block = [pad; HMAC_BLOCK_BYTES];
            block.iter_mut().zip(seed).for_each(|(to, key)| *to ^= key);
            block
        };
        Salts {
            inner: padded(0x36),
            outer: padded(0x5c),
        }
    }

    pub(super) fn salt(&self, index: u64) -> [u8; SALT_BYTES] {
        let mut first = [0; HMAC_BLOCK_BYTES + size_of::<u64>()];
        let (block, number) = first.split_at_mut(HMAC_BLOCK_BYTES);
        block.copy_from_slice(&self.inner);
        number.copy_from_slice(&index.to_le_bytes());
        let hash = digest(&SHA256, &first);
        let mut second = [0; HMAC_BLOCK_BYTES + SHA256_OUTPUT_LEN];
        let (block, within) = second.split_at_mut(HMAC_BLOCK_BYTES);
        block.copy_from_slice(&self.outer);
        within.copy_from_slice(hash.as_ref());
        let tag = digest(&SHA256, &second);
        tag.as_ref().first_chunk().copied().unwrap_or_default()
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
