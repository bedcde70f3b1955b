//! Ed25519 keys that sign checkpoints and results.

use crate::Error;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Start of the line in which a key is published.
const LINE: [&str; 3] = ["confide-key-v1", "keeper", "signing"];

/// Size of a signature in bytes.
pub(crate) const SIGNATURE_BYTES: usize = 64;

/// A keeper's signing key.
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// Makes the key from a secret of 32 bytes, such as one derived from the root key.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn from_seed(seed: &[u8; 32]) -> Result<SigningKey, Error> {
        let key = Ed25519KeyPair::from_seed_unchecked(seed);
        key.map(SigningKey).map_err(|_| Error::Library)
    }

    /// Returns the key that verifies its signatures.
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

/// The public part of a [`SigningKey`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VerifyingKey(pub [u8; 32]);

impl VerifyingKey {
    /// Returns the line in which this key is published.
    pub fn to_line(&self) -> String {
        format!("{} {self}", LINE.join(" "))
    }

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

impl std::fmt::Display for VerifyingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl std::str::FromStr for VerifyingKey {
    type Err = Error;

    /// Parses base64, alone or as the last word of a key's line.
    fn from_str(text: &str) -> Result<VerifyingKey, Error> {
        const FORM: Error = Error::Malformed("a signing key is 32 bytes in base64");
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let body = match words.as_slice() {
            [body] => body,
            [line @ .., body] if *line == LINE => body,
            _ => return Err(FORM),
        };
        let bytes = STANDARD.decode(body).map_err(|_| FORM)?;
        bytes.try_into().map(VerifyingKey).map_err(|_| FORM)
    }
}
