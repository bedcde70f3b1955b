//! Functions of strings, by character.

use super::{int4, keywords, text};
use crate::error::{no_such_operation, out_of_range, too_large};
use crate::text as chars;
use crate::{Error, Result, Value};
use contract::Op;

/// The largest size that PostgreSQL allocates.
const ALLOCATION: i64 = 0x3fff_ffff;

pub(super) fn apply(op: Op, args: &[&Value]) -> Result<Value> {
    use Value::{Bytea, Int4, Int8, Text};
    match (op, args) {
        (Op::Initcap, [Text(s)]) => text(initcap(s)),
        (Op::Lpad | Op::Rpad, [Text(s), Int4(n)]) => pad(op, s, *n, b" "),
        (Op::Lpad | Op::Rpad, [Text(s), Int4(n), Text(fill)]) => pad(op, s, *n, fill),
        (Op::SplitPart, [Text(s), Text(at), Int4(n)]) => text(split_part(s, at, *n)?),
        (Op::Translate, [Text(s), Text(from), Text(to)]) => text(translate(s, from, to)),
        (Op::Overlay, [Text(s), Text(new), Int4(from), rest @ ..]) => {
            let count = counted(rest, || chars::char_count(new))?;
            let (before, after) = around(*from, count)?;
            let before = chars::substring(s, 1, Some(before))?;
            let after = chars::substring(s, after, None)?;
            text([before, new, after].concat())
        }
        (Op::Overlay, [Bytea(s), Bytea(new), Int4(from), rest @ ..]) => {
            let count = counted(rest, || new.len())?;
            let (before, after) = around(*from, count)?;
            let before = chars::substring_bytes(s, 1, Some(before))?;
            let after = chars::substring_bytes(s, after, None)?;
            super::bytea([before, new, after].concat())
        }
        (Op::Repeat, [Text(s), Int4(n)]) => repeat(s, *n),
        (Op::Ascii, [Text(s)]) => Ok(Int4(first_char(s).map_or(0, |c| c as i32))),
        (Op::Chr, [Int4(n)]) => chr(*n),
        (Op::QuoteIdent, [Text(s)]) => text(quote_ident(s)),
        (Op::QuoteLiteral, [Text(s)]) => text(quote_literal(s)),
        (Op::BitLength, [Text(s) | Bytea(s)]) => int4(s.len().saturating_mul(8)),
        (Op::ToHex, [Int4(n)]) => text(format!("{n:x}").into_bytes()),
        (Op::ToHex, [Int8(n)]) => text(format!("{n:x}").into_bytes()),
        _ => Err(no_such_operation()),
    }
}

/// A letter after a letter or digit is small, another one large; ASCII only, as in locale C.
fn initcap(s: &[u8]) -> Vec<u8> {
    let mut within = false;
    let mut out = Vec::with_capacity(s.len());
    for b in s {
        out.push(match within {
            true => b.to_ascii_lowercase(),
            false => b.to_ascii_uppercase(),
        });
        within = b.is_ascii_alphanumeric();
    }
    out
}

fn pad(op: Op, s: &[u8], n: i32, fill: &[u8]) -> Result<Value> {
    let wanted = usize::try_from(n).unwrap_or(0);
    let kept = chars::char_count(s).min(wanted);
    let missing = if fill.is_empty() { 0 } else { wanted - kept };
    // PostgreSQL reserves four bytes for each character.
    let room = i64::try_from(kept + missing).unwrap_or(i64::MAX);
    if room.saturating_mul(4).saturating_add(4) > ALLOCATION {
        return Err(too_large());
    }
    let head = s.get(..chars::char_offset(s, kept)).unwrap_or(s);
    let mut padding = Vec::new();
    let length = chars::char_count(fill).max(1);
    for _ in 0..missing / length {
        padding.extend_from_slice(fill);
    }
    let part = chars::char_offset(fill, missing % length);
    padding.extend_from_slice(fill.get(..part).unwrap_or_default());
    text(match op {
        Op::Lpad => [padding.as_slice(), head].concat(),
        _ => [head, padding.as_slice()].concat(),
    })
}

/// The parts of `s` between occurrences of `at`, which is not empty.
fn parts<'a>(s: &'a [u8], at: &[u8]) -> Vec<&'a [u8]> {
    let finder = memchr::memmem::Finder::new(at);
    let mut found = Vec::new();
    let mut start = 0;
    while let Some(next) = s.get(start..).and_then(|rest| finder.find(rest)) {
        found.push(s.get(start..start + next).unwrap_or_default());
        start += next + at.len();
    }
    found.push(s.get(start..).unwrap_or_default());
    found
}

fn split_part<'a>(s: &'a [u8], at: &[u8], n: i32) -> Result<&'a [u8]> {
    if n == 0 {
        return Err(Error::new(b"22023", "field position must not be zero"));
    }
    if at.is_empty() {
        return Ok(if n.unsigned_abs() == 1 { s } else { b"" });
    }
    let parts = parts(s, at);
    let index = (n.unsigned_abs() - 1) as usize;
    let found = match n > 0 {
        true => parts.get(index),
        false => parts.iter().rev().nth(index),
    };
    Ok(found.copied().unwrap_or_default())
}

fn translate(s: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let from: Vec<&[u8]> = chars::chars(from).collect();
    let to: Vec<&[u8]> = chars::chars(to).collect();
    let mut out = Vec::with_capacity(s.len());
    for c in chars::chars(s) {
        match from.iter().position(|f| *f == c) {
            None => out.extend_from_slice(c),
            Some(at) => out.extend_from_slice(to.get(at).copied().unwrap_or_default()),
        }
    }
    out
}

/// The number of characters that `overlay` replaces: as given, or the length of the new part.
fn counted(said: &[&Value], new: impl Fn() -> usize) -> Result<i32> {
    match said {
        [] => i32::try_from(new()).map_err(|_| out_of_range("integer")),
        [Value::Int4(n)] => Ok(*n),
        _ => Err(no_such_operation()),
    }
}

/// How many characters `overlay` keeps at the start, and from which on it keeps the rest.
fn around(from: i32, count: i32) -> Result<(i32, i32)> {
    if from <= 0 {
        return Err(Error::new(
            b"22011",
            "negative substring length not allowed",
        ));
    }
    let after = from
        .checked_add(count)
        .ok_or_else(|| out_of_range("integer"))?;
    Ok((from - 1, after))
}

fn repeat(s: &[u8], n: i32) -> Result<Value> {
    let times = usize::try_from(n).unwrap_or(0);
    match s.len().checked_mul(times) {
        Some(bytes) if bytes <= chars::MAX_BYTES => text(s.repeat(times)),
        _ => Err(too_large()),
    }
}

fn first_char(s: &[u8]) -> Option<char> {
    let first = s.get(..chars::char_width(s))?;
    std::str::from_utf8(first).ok()?.chars().next()
}

fn chr(n: i32) -> Result<Value> {
    let limit = |message: &'static str| Error::new(b"54000", message);
    let code =
        u32::try_from(n).map_err(|_| Error::new(b"22023", "character number must be positive"))?;
    if code == 0 {
        return Err(limit("null character not permitted"));
    }
    let c = char::from_u32(code)
        .ok_or_else(|| limit("requested character is not valid for the encoding"))?;
    text(c.to_string().into_bytes())
}

/// In double quotes where an identifier needs them.
pub(super) fn quote_ident(s: &[u8]) -> Vec<u8> {
    let plain = |b: &u8| b.is_ascii_lowercase() || *b == b'_';
    let safe = s.first().is_some_and(plain)
        && s.iter().all(|b| plain(b) || b.is_ascii_digit())
        && !keywords::needs_quotes(s);
    if safe {
        return s.to_vec();
    }
    let mut out = vec![b'"'];
    for b in s {
        if *b == b'"' {
            out.push(b'"');
        }
        out.push(*b);
    }
    out.push(b'"');
    out
}

/// As a literal of SQL.
pub(super) fn quote_literal(s: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(s.len() + 2);
    if s.contains(&b'\\') {
        out.push(b'E');
    }
    out.push(b'\'');
    for b in s {
        if matches!(b, b'\'' | b'\\') {
            out.push(*b);
        }
        out.push(*b);
    }
    out.push(b'\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn t(s: &str) -> Value {
        Value::Text(s.as_bytes().into())
    }

    fn run(op: Op, args: &[Value]) -> String {
        let args: Vec<&Value> = args.iter().collect();
        match apply(op, &args) {
            Ok(Value::Text(s)) => String::from_utf8(s.into()).unwrap(),
            Ok(Value::Int4(n)) => n.to_string(),
            Ok(_) => "other".into(),
            Err(e) => e.sqlstate_str().into(),
        }
    }

    #[test]
    fn padding() {
        let n = Value::Int4;
        assert_eq!(run(Op::Lpad, &[t("äb"), n(5), t("xyü")]), "xyüäb");
        assert_eq!(run(Op::Rpad, &[t("äb"), n(6), t("xü")]), "äbxüxü");
        assert_eq!(run(Op::Lpad, &[t("äbc"), n(2)]), "äb");
        assert_eq!(run(Op::Rpad, &[t("ab"), n(-1)]), "");
        assert_eq!(run(Op::Lpad, &[t("ab"), n(5), t("")]), "ab");
        assert_eq!(run(Op::Lpad, &[t("ab"), n(i32::MAX)]), "54000");
        assert_eq!(run(Op::Lpad, &[t("ab"), n(i32::MAX), t("")]), "ab");
    }

    #[test]
    fn parts_of_strings() {
        let n = Value::Int4;
        for (s, at, number, expected) in [
            ("a,b,c", ",", 2, "b"),
            ("a,b,c", ",", -1, "c"),
            ("a,b,c", ",", 4, ""),
            ("a,b,c", ",", -4, ""),
            ("abc", "", 1, "abc"),
            ("abc", "", 2, ""),
            ("a,b", ";", -1, "a,b"),
            ("a", ",", i32::MIN, ""),
            ("", ",", 1, ""),
        ] {
            assert_eq!(run(Op::SplitPart, &[t(s), t(at), n(number)]), expected);
        }
        assert_eq!(run(Op::SplitPart, &[t("a"), t(","), n(0)]), "22023");
        assert_eq!(run(Op::Overlay, &[t("äöü"), t("x"), n(2)]), "äxü");
        assert_eq!(run(Op::Overlay, &[t("abc"), t("x"), n(2), n(0)]), "axbc");
        assert_eq!(run(Op::Overlay, &[t("abc"), t("x"), n(0)]), "22011");
        assert_eq!(
            run(Op::Overlay, &[t("abc"), t("x"), n(2), n(i32::MAX)]),
            "22003"
        );
        assert_eq!(run(Op::Translate, &[t("äbca"), t("aäb"), t("xy")]), "ycx");
    }

    #[test]
    fn characters() {
        let n = Value::Int4;
        assert_eq!(
            run(Op::Initcap, &[t("hELLO wORLD äx 1ab")]),
            "Hello World äX 1ab"
        );
        assert_eq!(run(Op::Ascii, &[t("€")]), "8364");
        assert_eq!(run(Op::Ascii, &[t("")]), "0");
        assert_eq!(run(Op::Chr, &[n(8364)]), "€");
        for bad in [0, 0x11_0000, 0xd800] {
            assert_eq!(run(Op::Chr, &[n(bad)]), "54000");
        }
        assert_eq!(run(Op::Chr, &[n(-1)]), "22023");
        assert_eq!(run(Op::Repeat, &[t("ab"), n(3)]), "ababab");
        assert_eq!(run(Op::Repeat, &[t("ab"), n(-3)]), "");
        assert_eq!(run(Op::Repeat, &[t("ab"), n(i32::MAX)]), "54000");
        assert_eq!(run(Op::ToHex, &[n(-1)]), "ffffffff");
    }

    #[test]
    fn quotes() {
        assert_eq!(run(Op::QuoteIdent, &[t("abc_1")]), "abc_1");
        assert_eq!(run(Op::QuoteIdent, &[t("select")]), "\"select\"");
        assert_eq!(run(Op::QuoteIdent, &[t("A\"b")]), "\"A\"\"b\"");
        assert_eq!(run(Op::QuoteIdent, &[t("")]), "\"\"");
        assert_eq!(run(Op::QuoteLiteral, &[t("it's")]), "'it''s'");
        assert_eq!(run(Op::QuoteLiteral, &[t("a\\b")]), "E'a\\\\b'");
    }
}
