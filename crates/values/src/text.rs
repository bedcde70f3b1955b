//! Strings: UTF-8 checks, functions by character, padding.
//!
//! Functions accept any bytes: invalid UTF-8 is divided at lead bytes and never panics.

use crate::error::too_large;
use crate::{Error, Result, scan};
use contract::Code;

/// The largest string, as PostgreSQL has it (1 GB less one header).
pub(crate) const MAX_BYTES: usize = 0x3fff_ffff - 4;

/// Refuses what is not UTF-8, and NUL.
pub(crate) fn check_utf8(s: &[u8]) -> Result<()> {
    if std::str::from_utf8(s).is_err() || s.contains(&0) {
        return Err(Error::new(
            b"22021",
            "invalid byte sequence for encoding \"UTF8\"",
        ));
    }
    Ok(())
}

/// Bytes of the character that starts with `lead`.
fn width(lead: u8) -> usize {
    match lead {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    }
}

/// Bytes of the first character of `s` (0 if there is none).
pub(crate) fn char_width(s: &[u8]) -> usize {
    s.first().map_or(0, |&lead| width(lead).min(s.len()))
}

/// The characters of `s`.
pub(crate) fn chars(mut s: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (head, tail) = s.split_at_checked(char_width(s))?;
        s = tail;
        (!head.is_empty()).then_some(head)
    })
}

/// Number of characters.
pub(crate) fn char_count(s: &[u8]) -> usize {
    if s.is_ascii() {
        s.len()
    } else {
        chars(s).count()
    }
}

/// Byte offset of character `n`, or the length if there are fewer.
pub(crate) fn char_offset(s: &[u8], n: usize) -> usize {
    if s.is_ascii() {
        return n.min(s.len());
    }
    chars(s).take(n).map(<[u8]>::len).sum()
}

fn skip(s: &[u8], n: usize) -> &[u8] {
    s.get(char_offset(s, n)..).unwrap_or_default()
}

fn keep(s: &[u8], n: usize) -> &[u8] {
    s.get(..char_offset(s, n)).unwrap_or(s)
}

/// Without blanks at the end, as `char(n)` compares.
pub(crate) fn trim_blanks(s: &[u8]) -> &[u8] {
    let n = s.iter().rev().take_while(|&&b| b == b' ').count();
    s.get(..s.len() - n).unwrap_or_default()
}

/// First position and count of a substring, 0-based; `None`: to the end.
fn window(from: i32, length: Option<i32>) -> Result<(usize, Option<usize>)> {
    let start = from.max(1);
    let skip = (start - 1) as usize;
    let Some(length) = length else {
        return Ok((skip, None));
    };
    if length < 0 {
        return Err(Error::new(
            b"22011",
            "negative substring length not allowed",
        ));
    }
    let Some(end) = from.checked_add(length) else {
        return Ok((skip, None));
    };
    Ok((
        skip,
        Some(usize::try_from(i64::from(end) - i64::from(start)).unwrap_or(0)),
    ))
}

/// `substring(s, from, length)` by characters.
pub(crate) fn substring(s: &[u8], from: i32, length: Option<i32>) -> Result<&[u8]> {
    let (from, count) = window(from, length)?;
    let rest = skip(s, from);
    Ok(count.map_or(rest, |n| keep(rest, n)))
}

/// `substring(s, from, length)` by bytes.
pub(crate) fn substring_bytes(s: &[u8], from: i32, length: Option<i32>) -> Result<&[u8]> {
    let (from, count) = window(from, length)?;
    let rest = s.get(from..).unwrap_or_default();
    Ok(count.and_then(|n| rest.get(..n)).unwrap_or(rest))
}

/// `left(s, n)`; a negative `n` leaves that many characters out.
pub(crate) fn left(s: &[u8], n: i32) -> &[u8] {
    keep(s, count_from(s, n))
}

/// `right(s, n)`; a negative `n` leaves that many characters out.
pub(crate) fn right(s: &[u8], n: i32) -> &[u8] {
    let count = char_count(s);
    skip(s, count - count_from(s, n).min(count))
}

fn count_from(s: &[u8], n: i32) -> usize {
    match usize::try_from(n) {
        Ok(n) => n,
        Err(_) => char_count(s).saturating_sub(n.unsigned_abs() as usize),
    }
}

/// Which ends [`trim`] works on.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum End {
    Both,
    Left,
    Right,
}

/// `btrim`, `ltrim`, `rtrim`: removes characters of `set`.
pub(crate) fn trim<'a>(s: &'a [u8], set: &[u8], end: End) -> &'a [u8] {
    let set: Vec<&[u8]> = chars(set).collect();
    let mut s = s;
    if end != End::Right {
        let n: usize = chars(s)
            .take_while(|c| set.contains(c))
            .map(<[u8]>::len)
            .sum();
        s = s.get(n..).unwrap_or_default();
    }
    if end != End::Left {
        let (mut kept, mut at) = (0, 0);
        for c in chars(s) {
            at += c.len();
            if !set.contains(&c) {
                kept = at;
            }
        }
        s = s.get(..kept).unwrap_or_default();
    }
    s
}

/// As [`trim`], by bytes.
pub(crate) fn trim_bytes<'a>(s: &'a [u8], set: &[u8], end: End) -> &'a [u8] {
    let mut s = s;
    while end != End::Right
        && let Some((b, rest)) = s.split_first()
        && set.contains(b)
    {
        s = rest;
    }
    while end != End::Left
        && let Some((b, rest)) = s.split_last()
        && set.contains(b)
    {
        s = rest;
    }
    s
}

/// Byte offset of the first occurrence.
fn find(s: &[u8], what: &[u8]) -> Option<usize> {
    let (&first, _) = what.split_first()?;
    let mut from = 0;
    loop {
        let rest = s.get(from..)?;
        let at = from + rest.iter().position(|&b| b == first)?;
        if s.get(at..)?.starts_with(what) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// `strpos`: 1-based, in characters; 0 if not found.
pub(crate) fn position(s: &[u8], what: &[u8]) -> usize {
    if what.is_empty() {
        return 1;
    }
    find(s, what).map_or(0, |at| char_count(s.get(..at).unwrap_or_default()) + 1)
}

/// As [`position`], in bytes.
pub(crate) fn position_bytes(s: &[u8], what: &[u8]) -> usize {
    if what.is_empty() {
        1
    } else {
        find(s, what).map_or(0, |at| at + 1)
    }
}

/// `replace(s, from, to)`
pub(crate) fn replace(s: &[u8], from: &[u8], to: &[u8]) -> Result<Box<[u8]>> {
    let mut out = Vec::with_capacity(s.len());
    let mut rest = s;
    while let Some(at) = find(rest, from) {
        let (head, tail) = rest.split_at_checked(at).unwrap_or((rest, b""));
        if out.len() + head.len() + to.len() > MAX_BYTES {
            return Err(too_large());
        }
        out.extend_from_slice(head);
        out.extend_from_slice(to);
        rest = tail.get(from.len()..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    if out.len() > MAX_BYTES {
        Err(too_large())
    } else {
        Ok(out.into())
    }
}

/// `a || b`
pub(crate) fn concat(a: &[u8], b: &[u8]) -> Result<Box<[u8]>> {
    if a.len() + b.len() > MAX_BYTES {
        return Err(too_large());
    }
    Ok([a, b].concat().into())
}

/// `reverse(s)` by characters.
pub(crate) fn reverse(s: &[u8]) -> Box<[u8]> {
    let mut out = vec![0; s.len()];
    let mut end = s.len();
    for c in chars(s) {
        let start = end - c.len();
        if let Some(place) = out.get_mut(start..end) {
            place.copy_from_slice(c);
        }
        end = start;
    }
    out.into()
}

/// The declared length of `varchar(n)` or `char(n)`, if there is one.
fn declared(typmod: i32) -> Option<usize> {
    typmod.checked_sub(4).and_then(|n| usize::try_from(n).ok())
}

fn too_long(kind: &str, n: usize) -> Error {
    Error::new(b"22001", format!("value too long for type {kind}({n})"))
}

/// `varchar(n)`: an assignment refuses what is too long unless only blanks are
/// lost; an explicit cast cuts.
pub(crate) fn varchar(s: Box<[u8]>, typmod: i32, explicit: bool) -> Result<Box<[u8]>> {
    let Some(n) = declared(typmod) else {
        return Ok(s);
    };
    cut(s, n, explicit, "character varying")
}

/// `char(n)`: as [`varchar`], and padded with blanks.
pub(crate) fn bpchar(s: Box<[u8]>, typmod: i32, explicit: bool) -> Result<Box<[u8]>> {
    let Some(n) = declared(typmod) else {
        return Ok(s);
    };
    let count = char_count(&s);
    if count >= n {
        return cut(s, n, explicit, "character");
    }
    let mut out = s.into_vec();
    if n - count > 10_485_760 {
        return Err(too_large());
    }
    out.resize(out.len() + n - count, b' ');
    Ok(out.into())
}

fn cut(s: Box<[u8]>, n: usize, explicit: bool, kind: &str) -> Result<Box<[u8]>> {
    if s.len() <= n {
        return Ok(s);
    }
    let (kept, lost) = s.split_at_checked(char_offset(&s, n)).unwrap_or((&s, b""));
    if lost.is_empty() {
        return Ok(s);
    }
    if !explicit && lost.iter().any(|&b| b != b' ') {
        return Err(too_long(kind, n));
    }
    Ok(kept.into())
}

/// Reads `bytea`: hex or escapes.
pub(crate) fn parse_bytea(s: &[u8]) -> Result<Box<[u8]>> {
    let Some(hex) = s.strip_prefix(b"\\x") else {
        return parse_escapes(s);
    };
    let digit = |b: u8| {
        (b as char).to_digit(16).map(|d| d as u8).ok_or_else(|| {
            Error::new(b"22023", "invalid hexadecimal digit").code(Code::InvalidDigit)
        })
    };
    let mut out = Vec::with_capacity(hex.len() / 2);
    let mut rest = hex.iter();
    while let Some(&b) = rest.next() {
        if matches!(b, b' ' | b'\n' | b'\t' | b'\r') {
            continue;
        }
        let high = digit(b)?;
        let low = rest.next().ok_or_else(|| {
            Error::new(b"22023", "invalid hexadecimal data: odd number of digits")
        })?;
        out.push(high << 4 | digit(*low)?);
    }
    Ok(out.into())
}

pub(crate) fn parse_escapes(s: &[u8]) -> Result<Box<[u8]>> {
    let mut out = Vec::with_capacity(s.len());
    let mut rest = s;
    while let Some((&b, tail)) = rest.split_first() {
        rest = tail;
        if b != b'\\' {
            out.push(b);
            continue;
        }
        match *rest {
            [b'\\', ref tail @ ..] => {
                out.push(b'\\');
                rest = tail;
            }
            [
                a @ b'0'..=b'3',
                b @ b'0'..=b'7',
                c @ b'0'..=b'7',
                ref tail @ ..,
            ] => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = tail;
            }
            _ => return Err(crate::error::invalid_syntax("bytea")),
        }
    }
    Ok(out.into())
}

/// Reads `bool`: unique prefixes of true, false, yes, no; on, off; 1, 0.
pub(crate) fn parse_bool(s: &[u8]) -> Result<bool> {
    let s = scan::trim(s).to_ascii_lowercase();
    let prefix = |word: &[u8], least| s.len() >= least && word.starts_with(&s);
    if prefix(b"true", 1) || prefix(b"yes", 1) || s == b"on" || s == b"1" {
        Ok(true)
    } else if prefix(b"false", 1) || prefix(b"no", 1) || prefix(b"off", 2) || s == b"0" {
        Ok(false)
    } else {
        Err(crate::error::invalid_syntax("boolean"))
    }
}

/// Reads `uuid`: hyphens after any group of four digits, optional braces.
pub(crate) fn parse_uuid(s: &[u8]) -> Result<[u8; 16]> {
    let invalid = || crate::error::invalid_syntax("uuid");
    let inner = match s {
        [b'{', inner @ .., b'}'] => inner,
        [b'{', ..] => return Err(invalid()),
        _ => s,
    };
    let mut out = [0u8; 16];
    let mut rest = inner;
    for (i, byte) in out.iter_mut().enumerate() {
        let (pair, tail) = rest.split_at_checked(2).ok_or_else(invalid)?;
        for &b in pair {
            let digit = (b as char).to_digit(16).ok_or_else(invalid)?;
            *byte = *byte << 4 | digit as u8;
        }
        rest = match tail {
            [b'-', tail @ ..] if i % 2 == 1 && i < 15 => tail,
            _ => tail,
        };
    }
    if rest.is_empty() {
        Ok(out)
    } else {
        Err(invalid())
    }
}

/// PostgreSQL's text format of `uuid`.
pub(crate) fn format_uuid(u: &[u8; 16]) -> String {
    let mut out = String::with_capacity(36);
    for (i, b) in u.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        push_hex(&mut out, *b);
    }
    out
}

/// PostgreSQL's hex format of `bytea`.
pub(crate) fn format_bytea(b: &[u8]) -> String {
    let mut out = String::with_capacity(b.len() * 2 + 2);
    out.push_str("\\x");
    for &b in b {
        push_hex(&mut out, b);
    }
    out
}

/// PostgreSQL's escape format of `bytea`.
pub(crate) fn escape_bytea(b: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(b.len());
    for &b in b {
        match b {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b' '..=b'~' => out.push(b),
            _ => out.extend_from_slice(format!("\\{b:03o}").as_bytes()),
        }
    }
    out
}

fn push_hex(out: &mut String, b: u8) {
    for digit in [b >> 4, b & 15] {
        out.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Positions are characters, not bytes.
    #[test]
    fn characters() {
        let s = "aä日😀b".as_bytes();
        assert_eq!(char_count(s), 5);
        assert_eq!(substring(s, 2, Some(2)).unwrap(), "ä日".as_bytes());
        assert_eq!(substring(s, -1, Some(3)).unwrap(), b"a");
        assert_eq!(substring(s, 4, None).unwrap(), "😀b".as_bytes());
        assert_eq!(
            substring(s, 2, Some(i32::MAX)).unwrap(),
            "ä日😀b".as_bytes()
        );
        assert_eq!(substring(s, 2, Some(-1)).unwrap_err().sqlstate, *b"22011");
        assert_eq!(left(s, -2), "aä日".as_bytes());
        assert_eq!(right(s, 2), "😀b".as_bytes());
        assert_eq!(position(s, "日".as_bytes()), 3);
        assert_eq!(&*reverse(s), "b😀日äa".as_bytes());
        assert_eq!(trim("ääxä".as_bytes(), "ä".as_bytes(), End::Both), b"x");
        assert_eq!(&*replace(b"aXbX", b"X", b"--").unwrap(), b"a--b--");
    }

    /// Bytes that are not UTF-8 are divided somehow, never out of bounds.
    #[test]
    fn broken_utf8() {
        let s = b"\xf0\x9f";
        assert_eq!(char_count(s), 1);
        assert_eq!(left(s, 1), s);
        assert_eq!(&*reverse(s), s);
        assert!(check_utf8(s).is_err() && check_utf8(b"a\0").is_err());
    }

    #[test]
    fn lengths() {
        let cut = |s: &str, n: i32, explicit| varchar(s.as_bytes().into(), n + 4, explicit);
        assert_eq!(&*cut("äöü", 2, true).unwrap(), "äö".as_bytes());
        assert_eq!(&*cut("ab   ", 2, false).unwrap(), b"ab");
        let e = cut("abc", 2, false).unwrap_err();
        assert_eq!(e.sqlstate, *b"22001");
        assert_eq!(e.message, "value too long for type character varying(2)");
        assert_eq!(&*bpchar((*b"ab").into(), 8, false).unwrap(), b"ab  ");
    }

    #[test]
    fn other_inputs() {
        assert_eq!(
            &*parse_bytea(b"\\x 0a Ff ").unwrap(),
            [0x0a, 0xff].as_slice()
        );
        assert_eq!(&*parse_bytea(b"a\\\\\\001").unwrap(), b"a\\\x01");
        assert_eq!(parse_bytea(b"\\x0").unwrap_err().sqlstate, *b"22023");
        assert_eq!(parse_bytea(b"\\9").unwrap_err().sqlstate, *b"22P02");
        assert!(parse_bool(b" YE ").unwrap() && !parse_bool(b"of").unwrap());
        assert!(parse_bool(b"o").is_err());
        let uuid = parse_uuid(b"{a0ee-bc999c0b4ef8bb6d-6bb9bd380a11}").unwrap();
        assert_eq!(format_uuid(&uuid), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11");
        assert!(parse_uuid(b"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1").is_err());
    }
}
