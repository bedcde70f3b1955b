//! Client encodings other than UTF-8, of those with one byte a character, as PostgreSQL converts
//! them.
//!
//! The server converts what it sends and receives; the proxy converts what it seals and opens.
//! Not here: encodings with several bytes a character, with which nothing protected is used.
//!
//! Invariant: bytes that are decoded and encoded again are the same, so what only passes through
//! the proxy is what the server and the client have sent.
mod tables;

use std::borrow::Cow;
use std::fmt::Write;

use client::Failure;

/// The lowest byte that is not ASCII.
const HIGH: u8 = 0x80;

/// An encoding with one byte a character.
#[derive(Clone, Copy, Debug)]
pub struct Charset {
    name: &'static str,
    /// The characters of the bytes from 0x80 on; 0 where there is none.
    high: &'static [u16; 128],
}

impl Charset {
    /// The encoding with this name, as the server reports it.
    pub fn named(name: &str) -> Option<Charset> {
        tables::ALL
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(name, high)| Charset { name, high })
    }

    fn character(self, byte: u8) -> Option<char> {
        let Some(at) = byte.checked_sub(HIGH) else {
            return Some(char::from(byte));
        };
        let code = self.high.get(usize::from(at)).copied()?;
        (code != 0).then(|| char::from_u32(code.into())).flatten()
    }

    fn byte(self, character: char) -> Option<u8> {
        if character.is_ascii() {
            return u8::try_from(character).ok();
        }
        let code = u16::try_from(u32::from(character)).ok()?;
        let at = self.high.iter().position(|known| *known == code)?;
        Some(HIGH + u8::try_from(at).ok()?)
    }

    /// Converts to UTF-8.
    ///
    /// # Errors
    /// 22P05 for a byte that is no character.
    pub fn decode(self, bytes: &[u8]) -> Result<Cow<'_, [u8]>, Failure> {
        if bytes.is_ascii() {
            return Ok(Cow::Borrowed(bytes));
        }
        let mut text = String::with_capacity(bytes.len() * 2);
        for byte in bytes {
            let character = self.character(*byte);
            text.push(character.ok_or_else(|| no_equivalent(&[*byte], self.name, "UTF8"))?);
        }
        Ok(Cow::Owned(text.into_bytes()))
    }

    /// Converts from UTF-8.
    ///
    /// # Errors
    /// 22P05 for a character that the encoding does not have, 22021 if this is not UTF-8.
    pub fn encode(self, text: &[u8]) -> Result<Cow<'_, [u8]>, Failure> {
        if text.is_ascii() {
            return Ok(Cow::Borrowed(text));
        }
        let text = std::str::from_utf8(text)
            .map_err(|_| Failure::new("22021", "invalid byte sequence for encoding \"UTF8\""))?;
        let bytes = text.chars().map(|character| {
            let mut utf8 = [0; 4];
            self.byte(character).ok_or_else(|| {
                no_equivalent(
                    character.encode_utf8(&mut utf8).as_bytes(),
                    "UTF8",
                    self.name,
                )
            })
        });
        bytes.collect::<Result<Vec<u8>, Failure>>().map(Cow::Owned)
    }

    /// Converts from UTF-8 what is only read by people: a character that the encoding does not
    /// have becomes a question mark.
    pub fn encode_message(self, text: &[u8]) -> Cow<'_, [u8]> {
        if text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let text = String::from_utf8_lossy(text);
        Cow::Owned(text.chars().map(|c| self.byte(c).unwrap_or(b'?')).collect())
    }
}

/// The error of a character that the other encoding does not have, in PostgreSQL's words.
fn no_equivalent(bytes: &[u8], from: &str, to: &str) -> Failure {
    let mut sequence = String::new();
    for byte in bytes {
        let _ = write!(sequence, " 0x{byte:02x}");
    }
    let what = format!(
        "character with byte sequence{sequence} in encoding \"{from}\" has no equivalent in encoding \"{to}\""
    );
    Failure::new("22P05", what)
}

#[cfg(test)]
mod tests {
    use super::Charset;

    /// Every byte that is a character comes back as itself. A bug would change what passes through.
    #[test]
    fn back_and_forth() {
        for (name, _) in super::tables::ALL {
            let charset = Charset::named(name).unwrap();
            for byte in 0..=u8::MAX {
                let Ok(text) = charset.decode(&[byte]).map(|t| t.into_owned()) else {
                    assert!(byte >= 0x80);
                    continue;
                };
                assert_eq!(charset.encode(&text).unwrap().as_ref(), [byte], "{name}");
            }
        }
    }

    /// What one side does not have is an error in PostgreSQL's words, and a question mark in messages.
    #[test]
    fn no_equivalents() {
        let latin1 = Charset::named("LATIN1").unwrap();
        let failure = latin1.encode("5 €".as_bytes()).unwrap_err();
        assert_eq!(failure.sqlstate, "22P05");
        assert_eq!(
            failure.message,
            "character with byte sequence 0xe2 0x82 0xac in encoding \"UTF8\" has no equivalent in encoding \"LATIN1\""
        );
        assert_eq!(latin1.encode_message("ä €".as_bytes()).as_ref(), b"\xe4 ?");
        let failure = Charset::named("win1252")
            .unwrap()
            .decode(b"a\x81")
            .unwrap_err();
        assert_eq!(failure.sqlstate, "22P05");
        assert!(Charset::named("SJIS").is_none() && Charset::named("UTF8").is_none());
    }
}
