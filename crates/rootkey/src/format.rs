//! The root key's file, format version 2: lines of text.
//!
//! ```text
//! confide-root-key-v2
//! id HEX                       name of the root key
//! source KIND PARAMETERS...    what wrapped it
//! sealed BASE64                the wrapped key
//! check HEX                    first 8 bytes of the SHA-256 of the lines above
//! ```
//! The wrapped key is bound to the first three lines. The check tells a damaged file
//! from a wrong secret; it protects against nobody.
//!
//! Version 1 was one line, `confide-root-key-v1 secret BASE64`: not wrapped at all.

use crate::source::Wrapped;
use crate::{Error, ID_BYTES};
use aws_lc_rs::digest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

pub(crate) const MAGIC: &str = "confide-root-key-v2";
const MAGIC_1: &str = "confide-root-key-v1";
/// Bytes of the check.
const CHECK_BYTES: usize = 8;

/// What a file holds.
pub(crate) enum Content {
    /// Version 1: the key itself.
    Bare(Zeroizing<Vec<u8>>),
    /// Version 2.
    Sealed(Sealed),
}

/// A wrapped root key and what is said about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sealed {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) wrapped: Wrapped,
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// What a wrapped key is bound to, besides its parameters.
pub(crate) fn bound(id: &str, kind: &str) -> Vec<u8> {
    format!("{MAGIC}\nid {id}\nsource {kind} ").into_bytes()
}

fn check(body: &str) -> String {
    let whole = digest::digest(&digest::SHA256, body.as_bytes());
    hex(whole.as_ref().get(..CHECK_BYTES).unwrap_or_default())
}

impl Sealed {
    /// The file's text.
    pub(crate) fn print(&self) -> String {
        let Wrapped { parameters, sealed } = &self.wrapped;
        let body = format!(
            "{MAGIC}\nid {}\nsource {} {parameters}\nsealed {}\n",
            self.id,
            self.kind,
            encode(sealed)
        );
        format!("{body}check {}\n", check(&body))
    }

    fn parse(text: &str) -> Option<Sealed> {
        let mut lines = text.lines().skip(1);
        let id = lines.next()?.strip_prefix("id ")?;
        let source = lines.next()?.strip_prefix("source ")?;
        let (kind, parameters) = source.split_once(' ')?;
        let sealed = decode(lines.next()?.strip_prefix("sealed ")?)?;
        (id.len() == 2 * ID_BYTES).then(|| Sealed {
            id: id.to_owned(),
            kind: kind.to_owned(),
            wrapped: Wrapped {
                parameters: parameters.to_owned(),
                sealed,
            },
        })
    }
}

/// Takes a file apart.
pub(crate) fn parse(file: &str, text: &str) -> Result<Content, Error> {
    let damaged = |what| Error::Damaged {
        file: file.to_owned(),
        what,
    };
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    match words.as_slice() {
        [MAGIC_1, "secret", body] => {
            let bytes = decode(body).ok_or_else(|| damaged("not base64"))?;
            return Ok(Content::Bare(Zeroizing::new(bytes)));
        }
        [MAGIC_1, ..] => return Err(damaged("not a key")),
        [MAGIC, ..] => {}
        [other, ..] if other.starts_with("confide-root-key-") => {
            return Err(Error::Version {
                file: file.to_owned(),
                found: (*other).to_owned(),
            });
        }
        _ => return Err(damaged("not a root key file")),
    }
    let (body, last) = match text.rfind("check ") {
        Some(at) => text.split_at(at),
        None => return Err(damaged("cut short")),
    };
    if last.strip_prefix("check ").map(str::trim_end) != Some(&check(body)) {
        return Err(damaged("checksum"));
    }
    Sealed::parse(body)
        .map(Content::Sealed)
        .ok_or_else(|| damaged("lines"))
}
