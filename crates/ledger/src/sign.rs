//! Ed25519 keys that sign checkpoints and results.

use crate::Error;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

/// Size of a signature in bytes.
pub(crate) const SIGNATURE_BYTES: usize = 64;

/// A keeper's signing key.
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// The key that follows from a secret of 32 bytes, such as one derived from the root key.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn from_seed(seed: &[u8; 32]) -> Result<SigningKey, Error> {
        let key = Ed25519KeyPair::from_seed_unchecked(seed);
        key.map(SigningKey).map_err(|_| Error::Library)
    }

    /// What verifies its signatures.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn verifying_key(&self) -> Result<VerifyingKey, Error> {
        let bytes = self.0.public_key().as_ref().try_into();
        bytes.map(VerifyingKey).map_err(|_| Error::Library)
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Result<[u8; SIGNATURE_BYTES], Error> {
        let signature = self.0.try_sign(message).map_err(|_| Error::Library)?;
        signature.as_ref().try_into().map_err(|_| Error::Library)
    }
}

/// The public half of a [`SigningKey`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VerifyingKey(pub [u8; 32]);

impl VerifyingKey {
    pub(crate) fn verify(
        &self,
        message: &[u8],
        signature: &[u8; SIGNATURE_BYTES],
    ) -> Result<(), Error> {
        UnparsedPublicKey::new(&ED25519, &self.0)
            .verify(message, signature)
            .map_err(|_| Error::Signature)
    }
}
