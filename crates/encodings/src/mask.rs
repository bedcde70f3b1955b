//! Pseudorandom masks by number: AES-128 of the number.

use crate::{ColumnKeys, Error};
use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};

/// Gives the masks of one column and purpose.
pub(crate) struct Masks(Aes128);

impl Masks {
    pub(crate) fn new(keys: &ColumnKeys, purpose: &str) -> Result<Masks, Error> {
        let key = keys.derive::<16>(purpose)?;
        Ok(Masks(Aes128::new((&*key).into())))
    }

    pub(crate) fn mask(&self, number: u64) -> u128 {
        let mut block = u128::from(number).to_le_bytes().into();
        self.0.encrypt_block(&mut block);
        u128::from_le_bytes(block.into())
    }
}
