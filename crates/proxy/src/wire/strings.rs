//! Where messages have strings in the client's encoding, and how these are replaced.
//!
//! Not here: values of parameters, rows and COPY, which have types and formats; names of columns, which
//! only pass through.
use std::borrow::Cow;

use bytes::{BufMut, BytesMut};

use super::frame::{HEADER, body, cstr, first, write};
use super::{Malformed, Reader};

/// A part of a message's body.
#[derive(Clone, Copy)]
pub enum Part {
    /// Up to a zero byte, in the client's encoding.
    Text,
    /// So many bytes.
    Bytes(usize),
    /// A code and a text each, up to a zero byte.
    Fields,
    /// Whatever follows.
    Rest,
}

/// The parts of a client's message that has strings.
pub fn of_frontend(tag: u8) -> Option<&'static [Part]> {
    use Part::{Bytes, Rest, Text};
    Some(match tag {
        b'Q' | b'f' => &[Text],
        b'P' | b'B' => &[Text, Text, Rest],
        b'D' | b'C' => &[Bytes(1), Text],
        b'E' => &[Text, Rest],
        _ => return None,
    })
}

/// The parts of a server's message that has strings.
pub fn of_backend(tag: u8) -> Option<&'static [Part]> {
    use Part::{Bytes, Fields, Text};
    Some(match tag {
        b'E' | b'N' => &[Fields],
        b'S' => &[Text, Text],
        b'A' => &[Bytes(4), Text, Text],
        _ => return None,
    })
}

/// Appends a message with its strings converted.
fn convert<'a, E: From<Malformed>>(
    message: &'a [u8],
    parts: &[Part],
    out: &mut BytesMut,
    mut text: impl FnMut(&'a [u8]) -> Result<Cow<'a, [u8]>, E>,
) -> Result<(), E> {
    let mut reader = Reader::new(body(message), "strings of a message");
    let mut made = Ok(());
    write(out, message.first().copied().unwrap_or_default(), |out| {
        let mut part = |part: &Part| -> Result<(), E> {
            match part {
                Part::Text => cstr(out, &text(reader.cstr()?)?),
                Part::Bytes(n) => out.put_slice(reader.bytes(*n)?),
                Part::Fields => loop {
                    let code = reader.u8()?;
                    out.put_u8(code);
                    match code {
                        0 => break,
                        _ => cstr(out, &text(reader.cstr()?)?),
                    }
                },
                Part::Rest => out.put_slice(reader.rest()),
            }
            Ok(())
        };
        made = parts.iter().try_for_each(&mut part);
    });
    made
}

/// Returns one message with its strings converted; `None` if nothing changes.
///
/// # Errors
/// Those of `text`, or the message is malformed.
pub fn converted<'a, E: From<Malformed>>(
    message: &'a [u8],
    parts: fn(u8) -> Option<&'static [Part]>,
    text: impl FnMut(&'a [u8]) -> Result<Cow<'a, [u8]>, E>,
) -> Result<Option<BytesMut>, E> {
    let parts = message.first().and_then(|tag| parts(*tag));
    let Some(parts) = parts.filter(|_| !body(message).is_ascii()) else {
        return Ok(None);
    };
    let mut out = BytesMut::with_capacity(message.len() * 2);
    convert(message, parts, &mut out, text)?;
    Ok(Some(out))
}

/// Converts the strings of all messages in a buffer from this position on.
///
/// # Errors
/// Those of `text`, or a message is malformed. Then the messages are gone from that position on.
pub fn convert_from<E: From<Malformed>>(
    buffer: &mut BytesMut,
    from: usize,
    parts: fn(u8) -> Option<&'static [Part]>,
    mut text: impl FnMut(&[u8]) -> Result<Vec<u8>, E>,
) -> Result<(), E> {
    if buffer.get(from..).is_none_or(<[u8]>::is_ascii) {
        return Ok(());
    }
    let tail = buffer.split_off(from);
    let mut rest: &[u8] = &tail;
    while let Some(length) = first(rest, usize::MAX)? {
        let (message, behind) = rest.split_at_checked(length).ok_or(Malformed("length"))?;
        let own = |t: &[u8]| text(t).map(Cow::Owned);
        match converted(message, parts, own)? {
            Some(made) => buffer.extend_from_slice(&made),
            None => buffer.extend_from_slice(message),
        }
        rest = behind;
    }
    buffer.extend_from_slice(rest);
    debug_assert!(rest.len() < HEADER);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{backend, frontend};

    fn capitals(text: &[u8]) -> Result<Vec<u8>, Malformed> {
        Ok(text.to_ascii_uppercase())
    }

    /// Strings are converted, and only these; lengths follow.
    #[test]
    fn strings_only() {
        let mut buffer = BytesMut::new();
        frontend::query(&mut buffer, "left alone \u{e4}");
        let before = buffer.len();
        frontend::parse(&mut buffer, "name\u{e4}", "select a", &[0x6161_6161]);
        frontend::copy_data(&mut buffer, b"data\xff");
        frontend::targeted(&mut buffer, b'D', b'S', "name\u{e4}");
        convert_from(&mut buffer, before, of_frontend, capitals).unwrap();
        let mut wanted = BytesMut::new();
        frontend::query(&mut wanted, "left alone \u{e4}");
        frontend::parse(&mut wanted, "NAME\u{e4}", "SELECT A", &[0x6161_6161]);
        frontend::copy_data(&mut wanted, b"data\xff");
        frontend::targeted(&mut wanted, b'D', b'S', "NAME\u{e4}");
        assert_eq!(buffer, wanted);
    }

    /// The codes of an error's fields are none of its strings.
    #[test]
    fn fields() {
        let mut buffer = BytesMut::new();
        backend::write_fields(&mut buffer, b'E', &[(b'c', b"a\xc3\xa4"), (b'm', b"b")]);
        convert_from(&mut buffer, 0, of_backend, capitals).unwrap();
        let mut wanted = BytesMut::new();
        backend::write_fields(&mut wanted, b'E', &[(b'c', b"A\xc3\xa4"), (b'm', b"B")]);
        assert_eq!(buffer, wanted);
    }
}
