//! Sealed restore tickets: a text that a client or an operator hands to whoever restores, and
//! that only the keeper opens.
//!
//! Bytes: version (1), who issued it (a client's public key, or zeros: the operator), a salt,
//! the ciphertext, the tag. All before the ciphertext is authenticated. The AES-256-GCM key,
//! used once, is HKDF-SHA256 with this salt of what the issuer and the keeper both know: the
//! X25519 secret of their static keys, or the root key.
//!
//! Not here: what a ticket says (crate `grant`), and how often it is taken (the keeper).
//!
//! Invariant: what opens was sealed by the holder of the issuer's key for this keeper.

use crate::keys::KEY_BYTES;
use crate::{Error, PublicKey, SecretKey};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use contract::envelope::{NONCE_BYTES, TAG_BYTES};
use zeroize::{Zeroize, Zeroizing};

/// Prefix of every ticket.
const PREFIX: &str = "cft1.";
const VERSION: u8 = 1;
const SALT_BYTES: usize = 16;
const HEAD_BYTES: usize = 1 + KEY_BYTES + SALT_BYTES;
/// Maximum size of a ticket.
const TEXT_MAX: usize = 64 * 1024;

/// The issuer of a ticket.
pub enum Issuer<'k> {
    /// A client, for the keeper with this key.
    Client(&'k SecretKey, &'k PublicKey),
    /// Anyone who has the root key.
    Operator(&'k [u8; KEY_BYTES]),
}

/// A ticket that has not been opened yet.
pub struct SealedTicket {
    bytes: Vec<u8>,
    issuer: Option<PublicKey>,
}

struct Length;

impl KeyType for Length {
    fn len(&self) -> usize {
        KEY_BYTES
    }
}

fn key(shared: &[u8], salt: &[u8]) -> Result<LessSafeKey, Error> {
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    Salt::new(HKDF_SHA256, salt)
        .extract(shared)
        .expand(&[b"confide restore ticket 1"], Length)
        .and_then(|okm| okm.fill(&mut *bytes))
        .and_then(|()| UnboundKey::new(&AES_256_GCM, &*bytes))
        .map(LessSafeKey::new)
        .map_err(|_| Error::KeyFormat("cannot derive"))
}

/// The key shared by two static keys.
fn between(own: &SecretKey, other: &PublicKey, salt: &[u8]) -> Result<LessSafeKey, Error> {
    let bad = Error::KeyFormat("not an X25519 key");
    let own = PrivateKey::from_private_key(&X25519, own.expose()).map_err(|_| bad.clone())?;
    let other = UnparsedPublicKey::new(&X25519, other.0);
    agree(&own, other, bad, |shared| key(shared, salt))
}

fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_BYTES])
}

impl SealedTicket {
    /// Returns the text of a ticket.
    pub fn seal(issuer: &Issuer<'_>, content: &[u8]) -> Result<String, Error> {
        let mut salt = [0; SALT_BYTES];
        rand::fill(&mut salt).map_err(|_| Error::Random)?;
        let (public, key) = match issuer {
            Issuer::Client(own, keeper) => (own.public()?, between(own, keeper, &salt)?),
            Issuer::Operator(root) => (PublicKey([0; KEY_BYTES]), key(*root, &salt)?),
        };
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&public.0);
        bytes.extend_from_slice(&salt);
        let mut sealed = content.to_vec();
        key.seal_in_place_append_tag(nonce(), Aad::from(bytes.as_slice()), &mut sealed)
            .map_err(|_| Error::TooLong)?;
        bytes.append(&mut sealed);
        Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(&bytes)))
    }

    /// Parses a text, without authenticating it.
    pub fn parse(text: &[u8]) -> Result<SealedTicket, Error> {
        let body = text.strip_prefix(PREFIX.as_bytes());
        let body = body
            .filter(|b| b.len() <= TEXT_MAX)
            .ok_or(Error::NotAnEnvelope)?;
        let bytes = URL_SAFE_NO_PAD
            .decode(body)
            .map_err(|_| Error::NotAnEnvelope)?;
        let head = bytes.get(..HEAD_BYTES).ok_or(Error::Truncated)?;
        if bytes.len() < HEAD_BYTES + TAG_BYTES {
            return Err(Error::Truncated);
        }
        if head.first() != Some(&VERSION) {
            return Err(Error::UnsupportedVersion);
        }
        let public = PublicKey::from_slice(head.get(1..=KEY_BYTES).unwrap_or_default())?;
        let issuer = (public.0 != [0; KEY_BYTES]).then_some(public);
        Ok(SealedTicket { bytes, issuer })
    }

    /// The client that it claims as its issuer; none for the operator.
    pub fn issuer(&self) -> Option<PublicKey> {
        self.issuer
    }

    /// Returns its content if it is of its issuer and for this keeper.
    pub fn open(&self, keeper: &SecretKey, root: &[u8; KEY_BYTES]) -> Result<Vec<u8>, Error> {
        let (head, sealed) = self
            .bytes
            .split_at_checked(HEAD_BYTES)
            .ok_or(Error::Truncated)?;
        let salt = head.get(1 + KEY_BYTES..).unwrap_or_default();
        let key = match &self.issuer {
            Some(client) => between(keeper, client, salt)?,
            None => key(root, salt)?,
        };
        let mut content = sealed.to_vec();
        let opened = key.open_in_place(nonce(), Aad::from(head), &mut content);
        let length = match opened {
            Ok(plain) => plain.len(),
            Err(_) => {
                content.zeroize();
                return Err(Error::WrongKeyOrAltered);
            }
        };
        content.truncate(length);
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Right: a ticket opens only for the keeper it was made for, and as its issuer's. Bug: whoever
    /// restores makes tickets of his own.
    #[test]
    fn only_as_sealed() -> Result<(), Error> {
        let (client, keeper, other) = (
            SecretKey::generate()?,
            SecretKey::generate()?,
            SecretKey::generate()?,
        );
        let root = [3; KEY_BYTES];
        let text = SealedTicket::seal(&Issuer::Client(&client, &keeper.public()?), b"all")?;
        let sealed = SealedTicket::parse(text.as_bytes())?;
        assert_eq!(sealed.issuer(), Some(client.public()?));
        assert_eq!(sealed.open(&keeper, &root)?, b"all");
        assert!(sealed.open(&other, &root).is_err());
        for at in 0..sealed.bytes.len() {
            let mut bytes = sealed.bytes.clone();
            bytes[at] ^= 1;
            let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(&bytes));
            let opened = SealedTicket::parse(text.as_bytes());
            assert!(
                opened.and_then(|t| t.open(&keeper, &root)).is_err(),
                "byte {at}"
            );
        }
        let text = SealedTicket::seal(&Issuer::Operator(&root), b"all")?;
        let sealed = SealedTicket::parse(text.as_bytes())?;
        assert_eq!(sealed.issuer(), None);
        assert_eq!(sealed.open(&keeper, &root)?, b"all");
        assert!(sealed.open(&keeper, &[4; KEY_BYTES]).is_err());
        assert!(SealedTicket::parse(b"cft1.AQ").is_err());
        assert!(SealedTicket::parse(b"cfd1.AQ").is_err());
        Ok(())
    }
}
