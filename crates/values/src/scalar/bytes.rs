//! Functions of `bytea`: digests, text forms of bytes, single bytes and bits.

use super::hash::md5;
use super::{bytea, text};
use crate::error::{no_such_operation, too_large};
use crate::text as chars;
use crate::{Error, Result, Value};
use contract::Op;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Characters of base64 in a line.
const LINE: usize = 76;

pub(super) fn apply(op: Op, args: &[&Value]) -> Result<Value> {
    use Value::{Bytea, Int4, Int8, Text};
    match (op, args) {
        (Op::Md5, [Text(b) | Bytea(b)]) => text(hex(&md5(b))),
        (Op::Sha224, [Bytea(b)]) => bytea(Sha224::digest(b).to_vec()),
        (Op::Sha256, [Bytea(b)]) => bytea(Sha256::digest(b).to_vec()),
        (Op::Sha384, [Bytea(b)]) => bytea(Sha384::digest(b).to_vec()),
        (Op::Sha512, [Bytea(b)]) => bytea(Sha512::digest(b).to_vec()),
        (Op::Encode, [Bytea(b), Text(form)]) => encode(b, form),
        (Op::Decode, [Text(s), Text(form)]) => decode(s, form),
        (Op::ConvertTo, [Text(s), Text(name)]) => {
            only_utf8(name)?;
            bytea(s.clone())
        }
        (Op::ConvertFrom, [Bytea(b), Text(name)]) => {
            only_utf8(name)?;
            chars::check_utf8(b)?;
            text(b.clone())
        }
        (Op::GetByte, [Bytea(b), Int4(n)]) => {
            let at = index(i64::from(*n), b.len())?;
            Ok(Int4(b.get(at).copied().map_or(0, i32::from)))
        }
        (Op::SetByte, [Bytea(b), Int4(n), Int4(new)]) => {
            let at = index(i64::from(*n), b.len())?;
            let mut out = b.clone();
            if let Some(byte) = out.get_mut(at) {
                *byte = *new as u8;
            }
            Ok(Bytea(out))
        }
        (Op::GetBit, [Bytea(b), Int8(n)]) => {
            let at = index(*n, b.len().saturating_mul(8))?;
            let byte = b.get(at / 8).copied().unwrap_or(0);
            Ok(Int4(i32::from(byte >> (at % 8) & 1)))
        }
        (Op::SetBit, [Bytea(b), Int8(n), Int4(new)]) => set_bit(b, *n, *new),
        (Op::BitCount, [Bytea(b)]) => Ok(Int8(b.iter().map(|b| i64::from(b.count_ones())).sum())),
        _ => Err(no_such_operation()),
    }
}

fn hex(b: &[u8]) -> Vec<u8> {
    let digit = |n: u8| {
        *b"0123456789abcdef"
            .get(usize::from(n & 15))
            .unwrap_or(&b'0')
    };
    b.iter().flat_map(|b| [digit(b >> 4), digit(*b)]).collect()
}

fn index(n: i64, length: usize) -> Result<usize> {
    let at = usize::try_from(n).ok().filter(|at| *at < length);
    at.ok_or_else(|| Error::new(b"2202E", "index out of valid range"))
}

fn set_bit(b: &[u8], n: i64, new: i32) -> Result<Value> {
    let at = index(n, b.len().saturating_mul(8))?;
    if !matches!(new, 0 | 1) {
        return Err(Error::new(b"22023", "new bit must be 0 or 1"));
    }
    let mut out: Box<[u8]> = b.into();
    if let Some(byte) = out.get_mut(at / 8) {
        *byte = *byte & !(1 << (at % 8)) | (new as u8) << (at % 8);
    }
    Ok(Value::Bytea(out))
}

fn unknown_form() -> Error {
    Error::new(b"22023", "unrecognized encoding")
}

fn encode(b: &[u8], form: &[u8]) -> Result<Value> {
    if b.len() > chars::MAX_BYTES / 4 {
        return Err(too_large());
    }
    match form.to_ascii_lowercase().as_slice() {
        b"hex" => text(hex(b)),
        b"base64" => text(to_base64(b)),
        b"escape" => text(escape(b)),
        _ => Err(unknown_form()),
    }
}

fn decode(s: &[u8], form: &[u8]) -> Result<Value> {
    match form.to_ascii_lowercase().as_slice() {
        b"hex" => Ok(Value::Bytea(chars::parse_bytea(&[b"\\x", s].concat())?)),
        b"base64" => bytea(from_base64(s)?),
        b"escape" => Ok(Value::Bytea(chars::parse_escapes(s)?)),
        _ => Err(unknown_form()),
    }
}

/// Bytes beyond ASCII and NUL as octal numbers.
fn escape(b: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(b.len());
    for b in b {
        match b {
            0 | 0x80.. => out.extend_from_slice(format!("\\{b:03o}").as_bytes()),
            b'\\' => out.extend_from_slice(b"\\\\"),
            _ => out.push(*b),
        }
    }
    out
}

fn to_base64(b: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(b.len() * 3 / 2);
    let mut end = LINE;
    for group in b.chunks(3) {
        let word =
            group.iter().fold(0u32, |v, b| v << 8 | u32::from(*b)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let code = (word >> (18 - 6 * place) & 63) as usize;
            out.push(match place > group.len() {
                true => b'=',
                false => BASE64.get(code).copied().unwrap_or(b'='),
            });
        }
        // PostgreSQL ends a full line, also the last one, but not after padding.
        if group.len() == 3 && out.len() >= end {
            out.push(b'\n');
            end = out.len() + LINE;
        }
    }
    out
}

fn from_base64(s: &[u8]) -> Result<Vec<u8>> {
    let bad = |message: &'static str| Error::new(b"22023", message);
    let (mut out, mut word, mut held, mut ended) = (Vec::new(), 0u32, 0, 0);
    for b in s.iter().filter(|b| !b" \t\n\r".contains(b)) {
        let code = if *b == b'=' {
            if ended == 0 {
                if !(held == 2 || held == 3) {
                    return Err(bad("unexpected \"=\" while decoding base64 sequence"));
                }
                ended = held - 1;
            }
            0
        } else {
            let code = BASE64.iter().position(|c| c == b);
            code.ok_or_else(|| bad("invalid symbol found while decoding base64 sequence"))? as u32
        };
        word = word << 6 | code;
        held += 1;
        if held == 4 {
            let bytes = word.to_be_bytes();
            let count = if ended == 0 { 3 } else { ended };
            out.extend(bytes.iter().skip(1).take(count));
            (word, held) = (0, 0);
        }
    }
    if held != 0 {
        return Err(bad("invalid base64 end sequence")
            .hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
    }
    Ok(out)
}

/// Values are UTF-8; other encodings are not kept here.
fn only_utf8(name: &[u8]) -> Result<()> {
    let plain: Vec<u8> = name
        .iter()
        .filter(|b| b.is_ascii_alphanumeric())
        .map(u8::to_ascii_lowercase)
        .collect();
    match plain.as_slice() {
        b"utf8" | b"unicode" => Ok(()),
        _ => Err(Error::new(
            b"0A000",
            "protected values are converted to and from UTF8 only",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64() {
        for (plain, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v")] {
            assert_eq!(to_base64(plain.as_bytes()), coded.as_bytes());
            assert_eq!(from_base64(coded.as_bytes()).unwrap(), plain.as_bytes());
        }
        assert_eq!(to_base64(&[0; 57]).last(), Some(&b'\n'));
        assert_eq!(
            to_base64(&[0; 58]).iter().filter(|b| **b == b'\n').count(),
            1
        );
        for bad in ["Zg", "Z===", "=", "Z$==", "Zm9"] {
            assert_eq!(from_base64(bad.as_bytes()).unwrap_err().sqlstate, *b"22023");
        }
    }

    #[test]
    fn bits() {
        assert_eq!(index(8, 8).unwrap_err().sqlstate, *b"2202E");
        assert_eq!(index(-1, 8).unwrap_err().sqlstate, *b"2202E");
        let Ok(Value::Bytea(b)) = set_bit(&[0, 0], 9, 1) else {
            panic!("no bytes");
        };
        assert_eq!(&*b, [0, 2].as_slice());
        assert_eq!(set_bit(&[0], 0, 2).unwrap_err().sqlstate, *b"22023");
        assert_eq!(escape(b"a\0\\\xff"), b"a\\000\\\\\\377");
    }
}
