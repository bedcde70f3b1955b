//! Reads JSON as PostgreSQL 15 does: the same texts are taken, and what is wrong has the same SQLSTATE.
//!
//! Invariants: nothing is nested deeper than [`DEPTH_MAX`]; no error has a part of the text.

use super::{Node, object};
use crate::{Error, Numeric, Result};

/// How deep arrays and objects may be nested. PostgreSQL has its stack's size as the limit.
pub(super) const DEPTH_MAX: usize = 1000;

/// The tree of a `jsonb`.
pub(crate) fn parse(text: &[u8]) -> Result<Node> {
    let mut parser = Parser::new(text, Mode::Tree);
    let node = parser.value(0)?;
    parser.end()?;
    Ok(node)
}

/// Whether a text is a `json`, which need not have a tree: `\u0000` may be in it.
pub(crate) fn check(text: &[u8]) -> Result<()> {
    let mut parser = Parser::new(text, Mode::Check);
    parser.value(0)?;
    parser.end()
}

/// A value of a `json`, as it is written, and what is directly in it.
pub(crate) struct Raw<'a> {
    pub text: &'a [u8],
    pub parts: Parts<'a>,
}

/// What is directly in a value.
pub(crate) enum Parts<'a> {
    Scalar(Node),
    Array(Vec<&'a [u8]>),
    Object(Vec<(Vec<u8>, &'a [u8])>),
}

/// The parts of a `json`.
pub(crate) fn raw(text: &[u8]) -> Result<Raw<'_>> {
    let mut parser = Parser::new(text, Mode::Decode);
    parser.space();
    let start = parser.at;
    let mut array = Vec::new();
    let mut pairs = Vec::new();
    let parts = match parser.peek() {
        Some(b'[') => {
            parser.array(0, |span, _| array.push(span))?;
            let slices = array.into_iter().map(|(a, b)| slice(text, a, b));
            Parts::Array(slices.collect())
        }
        Some(b'{') => {
            parser.object(0, |key, span, _| pairs.push((key, span)))?;
            let slices = pairs.into_iter().map(|(k, (a, b))| (k, slice(text, a, b)));
            Parts::Object(slices.collect())
        }
        _ => Parts::Scalar(parser.value(0)?),
    };
    let stop = parser.at;
    parser.end()?;
    Ok(Raw {
        text: slice(text, start, stop),
        parts,
    })
}

fn slice(text: &[u8], from: usize, to: usize) -> &[u8] {
    text.get(from..to).unwrap_or_default()
}

/// How much is made of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Nothing.
    Check,
    /// Strings are decoded, so that what cannot be is an error; numbers are not read.
    Decode,
    /// A tree.
    Tree,
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    mode: Mode,
}

fn wrong(detail: &'static str) -> Error {
    Error::new(b"22P02", "invalid input syntax for type json").detail(detail)
}

const INVALID_TOKEN: &str = "A token is invalid.";
const ENDED: &str = "The input string ended unexpectedly.";

impl<'a> Parser<'a> {
    fn new(text: &'a [u8], mode: Mode) -> Parser<'a> {
        Parser { text, at: 0, mode }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// The next character that is no white space, if it is this one, is gone past.
    fn takes(&mut self, b: u8) -> bool {
        self.space();
        let found = self.peek() == Some(b);
        self.at += usize::from(found);
        found
    }

    /// An error, which a text that has ended has another one for.
    fn expected(&mut self, what: &'static str) -> Error {
        self.space();
        match self.peek() {
            None => wrong(ENDED),
            Some(b'"') => match self.string() {
                Ok(_) => wrong(what),
                Err(e) => e,
            },
            Some(b'{' | b'}' | b'[' | b']' | b',' | b':') => wrong(what),
            Some(_) => match self.word() {
                Ok(_) => wrong(what),
                Err(e) => e,
            },
        }
    }

    fn end(&mut self) -> Result<()> {
        self.space();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected("Expected end of input.")),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node> {
        self.space();
        match self.peek() {
            Some(b'"') => Ok(Node::String(self.string()?)),
            Some(b'[') => {
                let mut items = Vec::new();
                self.array(depth, |_, item| items.push(item))?;
                Ok(Node::Array(items))
            }
            Some(b'{') => {
                let mut pairs = Vec::new();
                self.object(depth, |key, _, value| pairs.push((key, value)))?;
                Ok(match self.mode {
                    Mode::Tree => object(pairs),
                    _ => Node::Null,
                })
            }
            None | Some(b'}' | b']' | b',' | b':') => Err(self.expected("Expected JSON value.")),
            Some(_) => self.word(),
        }
    }

    fn deeper(&self, depth: usize) -> Result<usize> {
        match depth < DEPTH_MAX {
            true => Ok(depth + 1),
            false => Err(Error::new(b"54001", "stack depth limit exceeded")
                .detail("Arrays and objects are nested too deeply.")),
        }
    }

    fn array(&mut self, depth: usize, mut each: impl FnMut((usize, usize), Node)) -> Result<()> {
        let depth = self.deeper(depth)?;
        self.at += 1;
        if self.takes(b']') {
            return Ok(());
        }
        self.space();
        if matches!(self.peek(), Some(b'}' | b',' | b':')) {
            return Err(self.expected("Expected array element or \"]\"."));
        }
        loop {
            self.space();
            let start = self.at;
            let item = self.value(depth)?;
            each((start, self.at), item);
            if self.takes(b']') {
                return Ok(());
            }
            if !self.takes(b',') {
                return Err(self.expected("Expected \",\" or \"]\"."));
            }
        }
    }

    fn object(
        &mut self,
        depth: usize,
        mut each: impl FnMut(Vec<u8>, (usize, usize), Node),
    ) -> Result<()> {
        let depth = self.deeper(depth)?;
        self.at += 1;
        if self.takes(b'}') {
            return Ok(());
        }
        let mut first = true;
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.expected(match first {
                    true => "Expected string or \"}\".",
                    false => "Expected string.",
                }));
            }
            first = false;
            let key = self.string()?;
            if !self.takes(b':') {
                return Err(self.expected("Expected \":\"."));
            }
            self.space();
            let start = self.at;
            let value = self.value(depth)?;
            each(key, (start, self.at), value);
            if self.takes(b'}') {
                return Ok(());
            }
            if !self.takes(b',') {
                return Err(self.expected("Expected \",\" or \"}\"."));
            }
        }
    }

    /// A number, or `true`, `false`, `null`.
    fn word(&mut self) -> Result<Node> {
        let start = self.at;
        let within = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80;
        if matches!(self.peek(), Some(b'-' | b'0'..=b'9')) {
            return self.number();
        }
        while self.peek().is_some_and(within) {
            self.at += 1;
        }
        match slice(self.text, start, self.at) {
            b"null" => Ok(Node::Null),
            b"true" => Ok(Node::Bool(true)),
            b"false" => Ok(Node::Bool(false)),
            _ => Err(wrong(INVALID_TOKEN)),
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Result<Node> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        let whole = match self.peek() {
            Some(b'0') => {
                self.at += 1;
                true
            }
            _ => self.digits() > 0,
        };
        let mut right = whole;
        if self.peek() == Some(b'.') {
            self.at += 1;
            right &= self.digits() > 0;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            right &= self.digits() > 0;
        }
        let behind = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80;
        if !right || self.peek().is_some_and(behind) {
            return Err(wrong(INVALID_TOKEN));
        }
        match self.mode {
            Mode::Tree => Numeric::parse(slice(self.text, start, self.at), -1)
                .map(Node::Number)
                // A number of JSON is no input of the user's type numeric.
                .map_err(|e| Error::new(&e.sqlstate, e.message)),
            _ => Ok(Node::Number(Numeric::from_i64(0))),
        }
    }

    /// A string without its quotes; nothing of it where strings are not decoded.
    fn string(&mut self) -> Result<Vec<u8>> {
        self.at += 1;
        let decode = self.mode != Mode::Check;
        let mut out = Vec::new();
        let mut high = None;
        loop {
            let b = self.peek().ok_or_else(|| wrong(INVALID_TOKEN))?;
            self.at += 1;
            if high.is_some() && !(b == b'\\' && self.peek() == Some(b'u')) {
                return Err(wrong(LOW));
            }
            match b {
                b'"' => return Ok(out),
                0..=31 => {
                    return Err(wrong("A control character in a string must be escaped."));
                }
                b'\\' => self.escape(decode, &mut high, &mut out)?,
                _ if decode => out.push(b),
                _ => {}
            }
        }
    }

    /// What is behind a backslash.
    fn escape(&mut self, decode: bool, high: &mut Option<u32>, out: &mut Vec<u8>) -> Result<()> {
        let b = self.peek().ok_or_else(|| wrong(INVALID_TOKEN))?;
        self.at += 1;
        let plain = match b {
            b'"' | b'\\' | b'/' => b,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.unicode(decode, high, out),
            _ => return Err(wrong("An escape sequence is invalid.")),
        };
        if decode {
            out.push(plain);
        }
        Ok(())
    }

    fn unicode(&mut self, decode: bool, high: &mut Option<u32>, out: &mut Vec<u8>) -> Result<()> {
        let digits = slice(self.text, self.at, self.at + 4);
        let mut point = 0;
        for b in digits {
            let digit = char::from(*b).to_digit(16);
            point = point * 16 + digit.ok_or_else(|| wrong(FORMAT))?;
        }
        if digits.len() < 4 {
            return Err(wrong(match self.text.len() > self.at + digits.len() {
                true => FORMAT,
                false => INVALID_TOKEN,
            }));
        }
        self.at += 4;
        if !decode {
            return Ok(());
        }
        let point = match (point, high.take()) {
            (0xd800..=0xdbff, None) => {
                *high = Some(point);
                return Ok(());
            }
            (0xd800..=0xdbff, Some(_)) => {
                return Err(wrong(
                    "Unicode high surrogate must not follow a high surrogate.",
                ));
            }
            (0xdc00..=0xdfff, Some(high)) => 0x10000 + ((high & 0x3ff) << 10) + (point & 0x3ff),
            (0xdc00..=0xdfff, None) | (_, Some(_)) => return Err(wrong(LOW)),
            (0, None) => {
                return Err(Error::new(b"22P05", "unsupported Unicode escape sequence")
                    .detail("\\u0000 cannot be converted to text."));
            }
            (point, None) => point,
        };
        let c = char::from_u32(point).ok_or_else(|| wrong(LOW))?;
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }
}

const LOW: &str = "Unicode low surrogate must follow a high surrogate.";
const FORMAT: &str = "\"\\u\" must be followed by four hexadecimal digits.";
