//! Checkpoints: the size and root of a log in the text form that transparency logs
//! use (C2SP tlog-checkpoint), signed as a note (C2SP signed-note), so that anybody's
//! tools can keep and compare them.
//!
//! ```text
//! confide/3f2a…/public.account      origin: keeper and table
//! 1204                              number of leaves
//! 6sB1Yz…=                          root
//!
//! — confide/3f2a…/public.account 9x0aGg…=
//! ```
//!
//! Invariant: a text parses in one way only, the one in which it was written.

use crate::sign::SIGNATURE_BYTES;
use crate::{Error, Hash, SigningKey, VerifyingKey};
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Begins the line of a signature.
const DASH: &str = "\u{2014} ";
/// Ed25519, in key names of notes.
const ALGORITHM: u8 = 1;
/// Of a key's name in a signature.
const KEY_ID_BYTES: usize = 4;

/// Size and root of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// Which log it is: no white space, no `+`.
    pub origin: String,
    /// Number of leaves.
    pub size: u64,
    /// Root of these leaves.
    pub root: Hash,
}

impl Checkpoint {
    /// The note: text, empty line, signature.
    ///
    /// # Errors
    /// [`Error::Malformed`] if the origin is not one, [`Error::Library`].
    pub fn sign(&self, key: &SigningKey) -> Result<String, Error> {
        check_origin(&self.origin)?;
        let text = self.text();
        let id = key_id(&self.origin, &key.verifying_key()?);
        let signature = [&id[..], &key.sign(text.as_bytes())?].concat();
        Ok(format!(
            "{text}\n{DASH}{} {}\n",
            self.origin,
            STANDARD.encode(signature)
        ))
    }

    /// The checkpoint in a note, if this key has signed it. Signatures of others
    /// (witnesses) may stand beside it.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::OtherLog`], [`Error::OtherKey`], [`Error::Signature`].
    pub fn verify(note: &str, origin: &str, key: &VerifyingKey) -> Result<Checkpoint, Error> {
        let end = note
            .find("\n\n")
            .ok_or(Error::Malformed("a note without signatures"))?;
        let (text, rest) = note.split_at(end + 1);
        let checkpoint = parse(text)?;
        if checkpoint.origin != origin {
            return Err(Error::OtherLog);
        }
        let lines = rest
            .strip_prefix('\n')
            .and_then(|lines| lines.strip_suffix('\n'));
        let lines = lines.ok_or(Error::Malformed("a note ends with a line end"))?;
        let id = key_id(origin, key);
        for line in lines.split('\n') {
            let (name, signature) = signature_line(line)?;
            if name == origin
                && let Some((found, signature)) = signature.split_first_chunk::<KEY_ID_BYTES>()
                && *found == id
            {
                let signature: &[u8; SIGNATURE_BYTES] =
                    signature.try_into().map_err(|_| Error::Signature)?;
                key.verify(text.as_bytes(), signature)?;
                return Ok(checkpoint);
            }
        }
        Err(Error::OtherKey)
    }

    fn text(&self) -> String {
        let root = STANDARD.encode(self.root.0);
        format!("{}\n{}\n{root}\n", self.origin, self.size)
    }
}

fn check_origin(origin: &str) -> Result<(), Error> {
    if origin.is_empty() || origin.contains(|c: char| c.is_whitespace() || c == '+') {
        return Err(Error::Malformed("an origin has no white space and no plus"));
    }
    Ok(())
}

fn parse(text: &str) -> Result<Checkpoint, Error> {
    const FORM: Error = Error::Malformed("a checkpoint has an origin, a size and a root");
    let mut lines = text.split('\n');
    let (Some(origin), Some(size), Some(root), Some(""), None) = (
        lines.next(),
        lines.next(),
        lines.next(),
        lines.next(),
        lines.next(),
    ) else {
        return Err(FORM);
    };
    check_origin(origin)?;
    let bytes = STANDARD.decode(root).map_err(|_| FORM)?;
    let checkpoint = Checkpoint {
        origin: origin.to_owned(),
        size: size.parse().map_err(|_| FORM)?,
        root: Hash(bytes.try_into().map_err(|_| FORM)?),
    };
    // `007` is a number, too.
    if checkpoint.text() != text {
        return Err(FORM);
    }
    Ok(checkpoint)
}

fn signature_line(line: &str) -> Result<(&str, Vec<u8>), Error> {
    const FORM: Error = Error::Malformed("a signature has a dash, a name and base64");
    let (name, signature) = line
        .strip_prefix(DASH)
        .and_then(|rest| rest.split_once(' '))
        .ok_or(FORM)?;
    Ok((name, STANDARD.decode(signature).map_err(|_| FORM)?))
}

/// The first bytes of a hash of name and key.
fn key_id(name: &str, key: &VerifyingKey) -> [u8; KEY_ID_BYTES] {
    let hashed = [name.as_bytes(), b"\n", &[ALGORITHM], &key.0].concat();
    let hash = digest(&SHA256, &hashed);
    hash.as_ref().first_chunk().copied().unwrap_or_default()
}
