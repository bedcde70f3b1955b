//! Signed notes (C2SP signed-note): a text, an empty line, and lines with signatures.
//!
//! Invariant: a text that verifies was signed as it is, under that name and with that key.

use crate::sign::SIGNATURE_BYTES;
use crate::{Error, SigningKey, VerifyingKey};
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Start of a signature line.
const DASH: &str = "\u{2014} ";
/// Number of Ed25519 in note keys.
const ALGORITHM: u8 = 1;
/// Size of the key ID in a signature.
const KEY_ID_BYTES: usize = 4;

/// Checks that a name has no white space or plus sign.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == '+') {
        return Err(Error::Malformed("an origin has no white space and no plus"));
    }
    Ok(())
}

/// Signs a text, which must end with a line end; returns the note.
pub(crate) fn sign(text: &str, name: &str, key: &SigningKey) -> Result<String, Error> {
    check_name(name)?;
    let id = key_id(name, &key.verifying_key()?);
    let signature = [&id[..], &key.sign(text.as_bytes())?].concat();
    Ok(format!(
        "{text}\n{DASH}{name} {}\n",
        STANDARD.encode(signature)
    ))
}

/// Splits a note into its text, not yet verified, and its signature lines.
pub(crate) fn split(note: &str) -> Result<(&str, &str), Error> {
    let end = note
        .find("\n\n")
        .ok_or(Error::Malformed("a note without signatures"))?;
    let (text, rest) = note.split_at(end + 1);
    let lines = rest
        .strip_prefix('\n')
        .and_then(|lines| lines.strip_suffix('\n'));
    let lines = lines.ok_or(Error::Malformed("a note ends with a line end"))?;
    Ok((text, lines))
}

/// Checks that one of the lines is this key's signature of the text. There may be other signatures
/// (of witnesses).
pub(crate) fn verify(text: &str, lines: &str, name: &str, key: &VerifyingKey) -> Result<(), Error> {
    let id = key_id(name, key);
    for line in lines.split('\n') {
        let (found, signature) = signature_line(line)?;
        if found == name
            && let Some((found, signature)) = signature.split_first_chunk::<KEY_ID_BYTES>()
            && *found == id
        {
            let signature: &[u8; SIGNATURE_BYTES] =
                signature.try_into().map_err(|_| Error::Signature)?;
            return key.verify(text.as_bytes(), signature);
        }
    }
    Err(Error::OtherKey)
}

fn signature_line(line: &str) -> Result<(&str, Vec<u8>), Error> {
    const FORM: Error = Error::Malformed("a signature has a dash, a name and base64");
    let (name, signature) = line
        .strip_prefix(DASH)
        .and_then(|rest| rest.split_once(' '))
        .ok_or(FORM)?;
    Ok((name, STANDARD.decode(signature).map_err(|_| FORM)?))
}

/// First bytes of the hash of name and key.
fn key_id(name: &str, key: &VerifyingKey) -> [u8; KEY_ID_BYTES] {
    let hashed = [name.as_bytes(), b"\n", &[ALGORITHM], &key.0].concat();
    let hash = digest(&SHA256, &hashed);
    hash.as_ref().first_chunk().copied().unwrap_or_default()
}
