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

use crate::{Error, Hash, SigningKey, VerifyingKey, note};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Size and root of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// The log's name, without white space and `+`.
    pub origin: String,
    /// Number of leaves.
    pub size: u64,
    /// Root of the tree with these leaves.
    pub root: Hash,
}

impl Checkpoint {
    /// The note: text, empty line, signature.
    ///
    /// # Errors
    /// [`Error::Malformed`] if the origin is not one, [`Error::Library`].
    pub fn sign(&self, key: &SigningKey) -> Result<String, Error> {
        note::sign(&self.text(), &self.origin, key)
    }

    /// Returns the checkpoint in a note if it was signed with this key. The note may have other
    /// signatures (of witnesses).
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::OtherLog`], [`Error::OtherKey`], [`Error::Signature`].
    pub fn verify(note: &str, origin: &str, key: &VerifyingKey) -> Result<Checkpoint, Error> {
        let (text, lines) = note::split(note)?;
        let checkpoint = parse(text)?;
        if checkpoint.origin != origin {
            return Err(Error::OtherLog);
        }
        note::verify(text, lines, origin, key)?;
        Ok(checkpoint)
    }

    /// Returns the origin that a note claims, without verifying it.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn origin_of(note: &str) -> Result<String, Error> {
        let (text, _) = note::split(note)?;
        parse(text).map(|checkpoint| checkpoint.origin)
    }

    fn text(&self) -> String {
        let root = STANDARD.encode(self.root.0);
        format!("{}\n{}\n{root}\n", self.origin, self.size)
    }
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
    note::check_name(origin)?;
    let bytes = STANDARD.decode(root).map_err(|_| FORM)?;
    let checkpoint = Checkpoint {
        origin: origin.to_owned(),
        size: size.parse().map_err(|_| FORM)?,
        root: Hash(bytes.try_into().map_err(|_| FORM)?),
    };
    // For example, `007` parses as a number.
    if checkpoint.text() != text {
        return Err(FORM);
    }
    Ok(checkpoint)
}
