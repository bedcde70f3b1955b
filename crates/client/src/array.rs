//! Arrays of protected values: every element is an envelope. The structure (bounds, dimensions,
//! NULLs) is not changed.
use crate::{Failure, Shown};

/// Maps the elements of an array in its text format (`{1,NULL,"a b"}`).
pub(crate) fn map_text(
    text: &[u8],
    out: &mut Vec<u8>,
    mut map: impl FnMut(&[u8], &mut Vec<u8>) -> Result<Shown, Failure>,
) -> Result<(), Failure> {
    let bad = || Failure::new("22P02", "malformed array literal");
    let mut at = 0;
    // Bounds: [1:3]=
    if text.first() == Some(&b'[') {
        at = text.iter().position(|b| *b == b'=').ok_or_else(bad)? + 1;
        out.extend_from_slice(text.get(..at).ok_or_else(bad)?);
    }
    let mut element = Vec::new();
    let mut mapped = Vec::new();
    while let Some(&byte) = text.get(at) {
        match byte {
            b'{' | b'}' | b',' | b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => {
                out.push(byte);
                at += 1;
            }
            _ => {
                element.clear();
                let (next, quoted) = read_element(text, at, &mut element).ok_or_else(bad)?;
                if !quoted && element.eq_ignore_ascii_case(b"null") {
                    out.extend_from_slice(&element);
                } else {
                    mapped.clear();
                    match map(&element, &mut mapped)? {
                        Shown::Value => write_element(&mapped, out),
                        Shown::Null => out.extend_from_slice(b"NULL"),
                    }
                }
                at = next;
            }
        }
    }
    Ok(())
}

/// Reads one element; returns the offset after it and whether it was quoted.
fn read_element(text: &[u8], start: usize, out: &mut Vec<u8>) -> Option<(usize, bool)> {
    let mut at = start;
    if text.get(at) == Some(&b'"') {
        at += 1;
        loop {
            match *text.get(at)? {
                b'"' => return Some((at + 1, true)),
                b'\\' => {
                    out.push(*text.get(at + 1)?);
                    at += 2;
                }
                byte => {
                    out.push(byte);
                    at += 1;
                }
            }
        }
    }
    let mut kept = 0;
    let mut escaped = false;
    while let Some(&byte) = text.get(at) {
        match byte {
            b',' | b'}' | b'{' => break,
            b'"' => return None,
            b'\\' => {
                out.push(*text.get(at + 1)?);
                at += 2;
                escaped = true;
                kept = out.len();
            }
            byte => {
                out.push(byte);
                at += 1;
                if !byte.is_ascii_whitespace() {
                    kept = out.len();
                }
            }
        }
    }
    out.truncate(kept);
    Some((at, escaped))
}

/// Writes an element as PostgreSQL does.
fn write_element(element: &[u8], out: &mut Vec<u8>) {
    let special = |b: &u8| {
        matches!(
            b,
            b'"' | b'\\' | b'{' | b'}' | b',' | b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c
        )
    };
    let quote =
        element.is_empty() || element.eq_ignore_ascii_case(b"null") || element.iter().any(special);
    if !quote {
        out.extend_from_slice(element);
        return;
    }
    out.push(b'"');
    for &byte in element {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Maps the elements of an array in its binary format; `element_oid` is the element type of the
/// result.
pub(crate) fn map_binary(
    bytes: &[u8],
    element_oid: u32,
    out: &mut Vec<u8>,
    mut map: impl FnMut(&[u8], &mut Vec<u8>) -> Result<Shown, Failure>,
) -> Result<(), Failure> {
    let bad = || Failure::new("22P03", "invalid array in binary format");
    let (head, mut rest) = bytes.split_at_checked(12).ok_or_else(bad)?;
    let dimensions = head
        .first_chunk::<4>()
        .map(|b| i32::from_be_bytes(*b))
        .and_then(|n| usize::try_from(n).ok())
        .filter(|n| *n <= 6)
        .ok_or_else(bad)?;
    out.extend_from_slice(head.get(..8).ok_or_else(bad)?);
    out.extend_from_slice(&element_oid.to_be_bytes());
    let (dims, tail) = rest.split_at_checked(dimensions * 8).ok_or_else(bad)?;
    out.extend_from_slice(dims);
    rest = tail;
    while !rest.is_empty() {
        let (length, tail) = rest.split_first_chunk::<4>().ok_or_else(bad)?;
        let length = i32::from_be_bytes(*length);
        rest = tail;
        if length == -1 {
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            continue;
        }
        let length = usize::try_from(length).map_err(|_| bad())?;
        let (element, tail) = rest.split_at_checked(length).ok_or_else(bad)?;
        rest = tail;
        let at = out.len();
        let mut shown = Shown::Value;
        with_length(out, |out| {
            shown = map(element, out)?;
            Ok(())
        })?;
        if shown == Shown::Null {
            out.truncate(at);
            out.extend_from_slice(&(-1_i32).to_be_bytes());
        }
    }
    Ok(())
}

/// Appends what `fill` appends, preceded by its length.
pub(crate) fn with_length(
    out: &mut Vec<u8>,
    fill: impl FnOnce(&mut Vec<u8>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    fill(out)?;
    let length = i32::try_from(out.len() - at - 4)
        .map_err(|_| Failure::new("54000", "confide: field is too long"))?;
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upper(text: &str) -> String {
        let mut out = Vec::new();
        map_text(text.as_bytes(), &mut out, |e, out| {
            out.extend_from_slice(&e.to_ascii_uppercase());
            Ok(match e {
                b"hidden" => Shown::Null,
                _ => Shown::Value,
            })
        })
        .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_arrays() {
        assert_eq!(
            upper("{a,NULL,\"b c\",\"null\"}"),
            "{A,NULL,\"B C\",\"NULL\"}"
        );
        assert_eq!(upper("[0:1]={{a},{b}}"), "[0:1]={{A},{B}}");
        assert_eq!(upper("{\"x\\\"y\", z }"), "{\"X\\\"Y\", Z}");
        assert_eq!(upper("{a,hidden,{hidden}}"), "{A,NULL,{NULL}}");
        assert_eq!(upper("{}"), "{}");
        assert_eq!(upper("{\"\"}"), "{\"\"}");
    }

    #[test]
    fn binary_arrays() {
        let mut bytes = Vec::new();
        for word in [1_i32, 1, 23, 2, 1, 1] {
            bytes.extend_from_slice(&word.to_be_bytes());
        }
        bytes.push(b'a');
        bytes.extend_from_slice(&(-1_i32).to_be_bytes());
        let mut out = Vec::new();
        map_binary(&bytes, 77, &mut out, |e, out| {
            out.extend_from_slice(e);
            out.push(b'!');
            Ok(Shown::Value)
        })
        .unwrap();
        assert_eq!(out[8..12], 77_u32.to_be_bytes());
        assert_eq!(out[20..26], [0, 0, 0, 2, b'a', b'!']);
        assert_eq!(out[26..], (-1_i32).to_be_bytes());
        let mut out = Vec::new();
        map_binary(&bytes, 77, &mut out, |_, _| Ok(Shown::Null)).unwrap();
        assert_eq!(out[20..], [255; 8]);
        for length in 0..bytes.len() - 4 {
            let mut out = Vec::new();
            let _ = map_binary(&bytes[..length], 77, &mut out, |_, _| Ok(Shown::Value));
        }
    }
}
