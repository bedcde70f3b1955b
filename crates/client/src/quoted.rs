//! Texts of the server that quote values: errors, plans, definitions.

use contract::envelope::{CUT, DETAIL_VALUE_BYTES, TEXT_PREFIX};
use envelope::{Envelope, format};

use crate::session::{Session, TEXT};
use crate::{Failure, Shown};

/// What PostgreSQL puts behind a value that it has cut.
const ELLIPSIS: &[u8] = b"...";
/// Stands for a value that cannot be shown.
const NOT_SHOWN: &[u8] = b"(not shown)";

impl Session {
    /// Appends a text of the server (an error, a plan), opening the envelopes that it quotes if
    /// they belong to this session, are complete, and are meant for a text. `cells` says whether
    /// values of the family `soft_` are opened, too.
    pub fn open_quoted(&self, text: &[u8], cells: bool, out: &mut Vec<u8>) {
        let prefixes = [TEXT_PREFIX, contract::soft::TEXT_PREFIX].map(str::as_bytes);
        let prefix_at = |rest: &[u8], at: usize| {
            let from = rest.get(at..).unwrap_or_default();
            prefixes.into_iter().find(|prefix| from.starts_with(prefix))
        };
        let next = |rest: &[u8]| {
            (0..rest.len()).find_map(|at| prefix_at(rest, at).map(|prefix| (at, prefix)))
        };
        let mut rest = text;
        while let Some((at, prefix)) = next(rest) {
            let (before, from) = rest.split_at(at);
            let body = from.get(prefix.len()..).unwrap_or_default();
            let letters = body.iter().take_while(|b| is_base64url(**b)).count();
            let (quoted, after) = from.split_at(prefix.len() + letters);
            out.extend_from_slice(before);
            let mut value = Vec::new();
            let opened = match prefix == TEXT_PREFIX.as_bytes() {
                true => self.open_message(quoted, &mut value),
                false if !cells => Err(Failure::protocol("a cell in a message")),
                false => self.decode_any(quoted, &mut value).map(|()| Shown::Value),
            };
            let (end, after) = Cut::of(quoted, after);
            match opened {
                Ok(Shown::Value) => {}
                Ok(Shown::Null) => value = b"NULL".to_vec(),
                Err(_) if end != Cut::No => value = NOT_SHOWN.to_vec(),
                Err(_) => value = quoted.to_vec(),
            }
            if end == Cut::Value {
                shorten(&mut value);
            }
            // Within a literal double the quotes, as the server would have done.
            let literal = before.last() == Some(&b'\'');
            for byte in value {
                out.push(byte);
                if literal && byte == b'\'' {
                    out.push(byte);
                }
            }
            rest = after;
        }
        out.extend_from_slice(rest);
    }

    /// Appends the value of an envelope that the keeper has made for a message. One made for a row
    /// stays closed: the database could quote it where others read it.
    fn open_message(&self, text: &[u8], out: &mut Vec<u8>) -> Result<Shown, Failure> {
        let mut binary = Vec::new();
        format::from_text(text, &mut binary)?;
        let envelope = Envelope::parse(&binary)?;
        match envelope.type_code {
            Some(code) if envelope.is_quoted() || envelope.is_null() => {
                self.open_envelope(code, &binary, TEXT, out)
            }
            _ => Err(Failure::protocol("an envelope of a row in a message")),
        }
    }
}

/// Whether PostgreSQL has cut a value in the detail of an error about a row.
#[derive(PartialEq, Eq)]
enum Cut {
    No,
    /// The value is to be cut: the extension has put the whole envelope there.
    Value,
    /// The envelope was cut, so it cannot be opened.
    Envelope,
}

impl Cut {
    /// What follows an envelope tells it. Also returns what comes after that.
    fn of<'a>(quoted: &[u8], after: &'a [u8]) -> (Cut, &'a [u8]) {
        if let Some(after) = after.strip_prefix(&[CUT]) {
            return (Cut::Value, after);
        }
        let cut = quoted.len() == DETAIL_VALUE_BYTES;
        match after.strip_prefix(ELLIPSIS) {
            Some(after) if cut => (Cut::Envelope, after),
            _ => (Cut::No, after),
        }
    }
}

/// Cuts a value as PostgreSQL cuts those of plain columns.
fn shorten(value: &mut Vec<u8>) {
    if value.len() <= DETAIL_VALUE_BYTES {
        return;
    }
    let within_character = |byte: &u8| byte & 0xC0 == 0x80;
    let mut length = DETAIL_VALUE_BYTES;
    while length > 0 && value.get(length).is_some_and(within_character) {
        length -= 1;
    }
    value.truncate(length);
    value.extend_from_slice(ELLIPSIS);
}

fn is_base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}
