//! AES-256-GCM under a wrapping key of 32 bytes: nonce, ciphertext, tag.

use crate::{Error, KEY_BYTES, RootKey, random};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use zeroize::Zeroizing;

fn key(bytes: &[u8; KEY_BYTES]) -> Option<LessSafeKey> {
    UnboundKey::new(&AES_256_GCM, bytes)
        .ok()
        .map(LessSafeKey::new)
}

/// Seals a root key. Nonces are random: a wrapping key seals a handful of times.
pub(crate) fn seal(
    wrapping: &[u8; KEY_BYTES],
    bound: &[u8],
    root: &RootKey,
) -> Result<Vec<u8>, Error> {
    let failed = || Error::Unavailable {
        source_name: "AES-256-GCM".into(),
        what: "cannot seal".into(),
    };
    let nonce: [u8; NONCE_LEN] = random()?;
    let mut body = root.expose().to_vec();
    key(wrapping)
        .ok_or_else(failed)?
        .seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(bound),
            &mut body,
        )
        .map_err(|_| failed())?;
    Ok([nonce.as_slice(), &body].concat())
}

/// The root key, `None` when it was sealed under another key or bound to other bytes.
pub(crate) fn open(wrapping: &[u8; KEY_BYTES], bound: &[u8], sealed: &[u8]) -> Option<RootKey> {
    let (nonce, body) = sealed.split_first_chunk::<NONCE_LEN>()?;
    let mut body = Zeroizing::new(body.to_vec());
    let nonce = Nonce::assume_unique_for_key(*nonce);
    let plain = key(wrapping)?
        .open_in_place(nonce, Aad::from(bound), &mut body)
        .ok()?;
    root_key(plain)
}

/// A root key from bytes that were just unwrapped.
pub(crate) fn root_key(plain: &[u8]) -> Option<RootKey> {
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    if plain.len() != KEY_BYTES {
        return None;
    }
    bytes.copy_from_slice(plain);
    Some(RootKey::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bug: what another key, other parameters or a changed text give is taken for a root key.
    #[test]
    fn only_what_was_sealed() {
        let root = RootKey::from_bytes(Zeroizing::new([7; KEY_BYTES]));
        let key = [1; KEY_BYTES];
        let sealed = seal(&key, b"bound", &root).unwrap();
        let opened = open(&key, b"bound", &sealed).unwrap();
        assert_eq!(opened.expose(), root.expose());
        assert!(open(&[2; KEY_BYTES], b"bound", &sealed).is_none());
        assert!(open(&key, b"other", &sealed).is_none());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(open(&key, b"bound", &changed).is_none(), "byte {at}");
        }
    }
}
