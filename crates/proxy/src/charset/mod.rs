//! Client encodings other than UTF-8, as PostgreSQL converts them.
//!
//! The server converts what it sends and receives; the proxy converts what it seals and opens.
//! Not here: JIS X 0213 and MULE_INTERNAL, with which nothing protected is used.
//!
//! Invariant: text that is decoded and encoded again is the same text for the server, so what only
//! passes through the proxy is what the server and the client have sent.
mod tables;
mod wide;

use std::borrow::Cow;
use std::fmt::Write;

use client::Failure;

use wide::{Read, Wide};

/// The lowest byte that is not ASCII.
const HIGH: u8 = 0x80;

/// An encoding whose bytes below 0x80 are ASCII where a character begins.
#[derive(Clone, Copy, Debug)]
pub struct Charset {
    name: &'static str,
    table: Table,
}

#[derive(Clone, Copy, Debug)]
enum Table {
    /// One byte a character: the characters of the bytes from 0x80 on; 0 where there is none.
    Narrow(&'static [u16; 128]),
    Wide(&'static Wide),
}

impl Charset {
    /// The encoding with this name, as the server reports it.
    pub fn named(name: &str) -> Option<Charset> {
        let narrow = tables::ALL.iter().map(|(name, high)| Charset {
            name,
            table: Table::Narrow(high),
        });
        let wide = wide::ALL.iter().map(|wide| Charset {
            name: wide.name,
            table: Table::Wide(wide),
        });
        narrow
            .chain(wide)
            .find(|known| known.name.eq_ignore_ascii_case(name))
    }

    /// The number of bytes of the character at the beginning, which may be cut short.
    fn length(self, bytes: &[u8]) -> usize {
        match self.table {
            Table::Wide(wide) if !bytes.first().is_none_or(u8::is_ascii) => wide.length(bytes),
            _ => 1,
        }
    }

    /// Reads one character of this length.
    fn read(self, sequence: &[u8]) -> Read {
        match (self.table, sequence) {
            (_, [byte]) if byte.is_ascii() => Read::Character(char::from(*byte)),
            (Table::Narrow(high), [byte]) => {
                let code = high.get(usize::from(byte - HIGH)).copied();
                let code = code.filter(|code| *code != 0);
                let character = code.and_then(|code| char::from_u32(code.into()));
                character.map_or(Read::Nothing, Read::Character)
            }
            (Table::Narrow(_), _) => Read::Invalid,
            (Table::Wide(wide), _) => wide.read(sequence),
        }
    }

    /// Appends a character; `None` if the encoding does not have it.
    fn write(self, character: char, out: &mut Vec<u8>) -> Option<()> {
        if character.is_ascii() {
            out.push(u8::try_from(character).ok()?);
            return Some(());
        }
        match self.table {
            Table::Narrow(high) => {
                let code = u16::try_from(u32::from(character)).ok()?;
                let at = high.iter().position(|known| *known == code)?;
                out.push(HIGH + u8::try_from(at).ok()?);
                Some(())
            }
            Table::Wide(wide) => wide.write(character, out),
        }
    }

    /// How many bytes at the beginning are whole characters, valid or not.
    pub fn whole(self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let length = self.length(rest);
            if length > rest.len() {
                break;
            }
            at += length;
        }
        at
    }

    /// Converts to UTF-8.
    ///
    /// # Errors
    /// 22021 for bytes that are not valid, 22P05 for a character that UTF-8 does not have.
    pub fn decode(self, bytes: &[u8]) -> Result<Cow<'_, [u8]>, Failure> {
        if bytes.is_ascii() {
            return Ok(Cow::Borrowed(bytes));
        }
        let mut text = String::with_capacity(bytes.len() * 2);
        let mut rest = bytes;
        while !rest.is_empty() {
            let length = self.length(rest);
            let (sequence, behind) = rest.split_at(length.min(rest.len()));
            match self.read(sequence) {
                _ if sequence.len() < length => return Err(invalid(sequence, self.name)),
                Read::Character(character) => text.push(character),
                Read::Nothing => return Err(no_equivalent(sequence, self.name, "UTF8")),
                Read::Invalid => return Err(invalid(sequence, self.name)),
            }
            rest = behind;
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
        let mut out = Vec::with_capacity(text.len());
        for character in text.chars() {
            self.write(character, &mut out).ok_or_else(|| {
                let mut utf8 = [0; 4];
                let bytes = character.encode_utf8(&mut utf8).as_bytes();
                no_equivalent(bytes, "UTF8", self.name)
            })?;
        }
        Ok(Cow::Owned(out))
    }

    /// Converts from UTF-8 what is only read by people: a character that the encoding does not
    /// have becomes a question mark.
    pub fn encode_message(self, text: &[u8]) -> Cow<'_, [u8]> {
        if text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let mut out = Vec::with_capacity(text.len());
        for character in String::from_utf8_lossy(text).chars() {
            if self.write(character, &mut out).is_none() {
                out.push(b'?');
            }
        }
        Cow::Owned(out)
    }
}

fn listed(bytes: &[u8]) -> String {
    let mut sequence = String::new();
    for byte in bytes {
        let _ = write!(sequence, " 0x{byte:02x}");
    }
    sequence
}

/// The error of bytes that are no character at all, in PostgreSQL's words.
fn invalid(bytes: &[u8], name: &str) -> Failure {
    let sequence = listed(bytes);
    let what = format!("invalid byte sequence for encoding \"{name}\":{sequence}");
    Failure::new("22021", what)
}

/// The error of a character that the other encoding does not have, in PostgreSQL's words.
fn no_equivalent(bytes: &[u8], from: &str, to: &str) -> Failure {
    let sequence = listed(bytes);
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
        assert!(Charset::named("EUC_JIS_2004").is_none() && Charset::named("UTF8").is_none());
    }

    /// Several bytes a character: a backslash within one is none, and what is cut short or no
    /// character has PostgreSQL's errors.
    #[test]
    fn several_bytes() {
        let sjis = Charset::named("SJIS").unwrap();
        let text = b"'\x95\x5c' \xb1";
        let utf8 = sjis.decode(text).unwrap().into_owned();
        assert_eq!(utf8, "'\u{8868}' \u{ff71}".as_bytes());
        assert_eq!(sjis.encode(&utf8).unwrap().as_ref(), text);
        assert_eq!((sjis.whole(b"a\x95"), sjis.whole(text)), (1, text.len()));
        for (bytes, sqlstate, message) in [
            (
                &b"a\x95"[..],
                "22021",
                "invalid byte sequence for encoding \"SJIS\": 0x95",
            ),
            (
                b"\x95\x20a",
                "22021",
                "invalid byte sequence for encoding \"SJIS\": 0x95 0x20",
            ),
            (
                b"\xfc\xfc",
                "22P05",
                "character with byte sequence 0xfc 0xfc in encoding \"SJIS\" has no equivalent in encoding \"UTF8\"",
            ),
        ] {
            let failure = sjis.decode(bytes).unwrap_err();
            assert_eq!(failure.sqlstate, sqlstate);
            assert_eq!(failure.message, message);
        }
        // Half a character of four bytes is no whole one of two.
        let gb18030 = Charset::named("GB18030").unwrap();
        assert_eq!(gb18030.whole(b"a\x81\x30\x81"), 1);
        assert_eq!(
            gb18030.encode("\u{1f600}".as_bytes()).unwrap().as_ref(),
            b"\x94\x39\xfc\x36"
        );
    }
}
