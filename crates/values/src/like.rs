//! `LIKE` and `ILIKE` with the default escape character.
//!
//! A `%` makes a place to come back to; only the last one is ever needed, so
//! memory is constant and time at worst pattern × text.

use crate::text::char_width;
use crate::{Error, Result};
use memchr::memmem::Finder;

/// How text is divided into characters.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Units {
    Utf8,
    Bytes,
}

fn bad_escape() -> Error {
    Error::new(b"22025", "LIKE pattern must not end with escape character")
}

/// Whether `text` matches `pattern`.
pub(crate) fn like(text: &[u8], pattern: &[u8], units: Units) -> Result<bool> {
    let mut matcher = Matcher {
        text,
        pattern,
        retry: None,
        units,
    };
    loop {
        if let Some(matches) = matcher.step()? {
            return Ok(matches);
        }
    }
}

/// What is left of text and pattern.
struct Matcher<'a> {
    text: &'a [u8],
    pattern: &'a [u8],
    /// Where to go on after a mismatch: the pattern after the last run of wildcards, its
    /// first literal byte, and the text where it was tried.
    retry: Option<(&'a [u8], u8, &'a [u8])>,
    units: Units,
}

impl<'a> Matcher<'a> {
    /// The text after its first character.
    #[inline]
    fn behind(&self, text: &'a [u8]) -> &'a [u8] {
        let width = match self.units {
            Units::Utf8 => char_width(text),
            Units::Bytes => 1,
        };
        text.get(width..).unwrap_or_default()
    }

    /// One character of the pattern; the answer, once it is known.
    #[inline]
    fn step(&mut self) -> Result<Option<bool>> {
        match (self.text.split_first(), self.pattern.split_first()) {
            (None, None) => return Ok(Some(true)),
            (None, Some(_)) => return Ok(Some(self.pattern.iter().all(|&b| b == b'%'))),
            (Some(_), None) => {}
            (Some(_), Some((b'%', _))) => return self.wildcards(),
            (Some(_), Some((b'_', rest))) => {
                self.text = self.behind(self.text);
                self.pattern = rest;
                return Ok(None);
            }
            (Some((text_byte, text_rest)), Some((pattern_byte, pattern_rest))) => {
                let (literal, rest) = if *pattern_byte == b'\\' {
                    pattern_rest.split_first().ok_or_else(bad_escape)?
                } else {
                    (pattern_byte, pattern_rest)
                };
                if literal == text_byte {
                    (self.text, self.pattern) = (text_rest, rest);
                    return Ok(None);
                }
            }
        }
        Ok(self.go_back())
    }

    /// Passes a run of wildcards, and finds the first place for what follows it.
    fn wildcards(&mut self) -> Result<Option<bool>> {
        loop {
            match self.pattern.split_first() {
                Some((b'%', rest)) => self.pattern = rest,
                Some((b'_', rest)) => {
                    if self.text.is_empty() {
                        return Ok(Some(false));
                    }
                    self.text = self.behind(self.text);
                    self.pattern = rest;
                }
                _ => break,
            }
        }
        let first = match *self.pattern {
            [] => return Ok(Some(true)),
            [b'\\'] => return Err(bad_escape()),
            [b'\\', literal, ..] => literal,
            [literal, ..] => literal,
        };
        Ok(self.try_from(self.text, self.pattern, first))
    }

    /// Tries the next place for what follows the last run of wildcards.
    fn go_back(&mut self) -> Option<bool> {
        let Some((pattern, first, place)) = self.retry else {
            return Some(false);
        };
        self.try_from(self.behind(place), pattern, first)
    }

    fn try_from(&mut self, text: &'a [u8], pattern: &'a [u8], first: u8) -> Option<bool> {
        let Some(place) = seek(text, first) else {
            return Some(false);
        };
        self.retry = Some((pattern, first, place));
        (self.text, self.pattern) = (place, pattern);
        None
    }
}

/// The first place from `t` on with the byte `first`. It starts a character of
/// the pattern, so it starts one of the text.
fn seek(t: &[u8], first: u8) -> Option<&[u8]> {
    t.get(t.iter().position(|&b| b == first)?..)
}

/// The pattern with the default escape character that means what this one does with its own.
/// An empty one: none escapes.
pub(crate) fn escape(pattern: &[u8], escape: &[u8]) -> Result<Box<[u8]>> {
    if !escape.is_empty() && char_width(escape) < escape.len() {
        return Err(Error {
            hint: Some("Escape string must be empty or one character.".into()),
            ..Error::new(b"22025", "invalid escape string")
        });
    }
    if escape == b"\\" {
        return Ok(pattern.into());
    }
    let mut out = Vec::with_capacity(pattern.len().saturating_mul(2));
    let (mut rest, mut escaped) = (pattern, false);
    while !rest.is_empty() {
        let width = char_width(rest).clamp(1, rest.len());
        let (character, after) = rest.split_at(width);
        rest = after;
        if character == escape && !escaped {
            out.push(b'\\');
            escaped = true;
            continue;
        }
        if character == b"\\" && !escaped {
            out.push(b'\\');
        }
        out.extend_from_slice(character);
        escaped = false;
    }
    Ok(out.into())
}

/// A pattern of `LIKE` on characters (not `bytea`), prepared for many texts.
pub struct Pattern<'a> {
    whole: &'a [u8],
    parts: Option<Parts>,
}

/// The parts between the `%` of a pattern that has no `_` and does not end with an escape. A UTF-8
/// part can be found in a UTF-8 text only at the start of a character, so bytes can be compared.
struct Parts {
    first: Vec<u8>,
    between: Vec<Finder<'static>>,
    /// `None` if there is no `%`; then the text is the first part.
    last: Option<Vec<u8>>,
}

impl Parts {
    fn of(pattern: &[u8]) -> Option<Parts> {
        let mut parts = vec![Vec::new()];
        let mut bytes = pattern.iter();
        while let Some(byte) = bytes.next() {
            match byte {
                b'_' => return None,
                b'%' => parts.push(Vec::new()),
                b'\\' => parts.last_mut()?.push(*bytes.next()?),
                _ => parts.last_mut()?.push(*byte),
            }
        }
        let last = if parts.len() > 1 { parts.pop() } else { None };
        let mut parts = parts.into_iter();
        let first = parts.next()?;
        let between = parts.filter(|part| !part.is_empty());
        Some(Parts {
            first,
            between: between.map(|p| Finder::new(&p).into_owned()).collect(),
            last,
        })
    }

    /// The earliest place is the best one for each part but the last.
    fn matches(&self, text: &[u8]) -> bool {
        let Some(last) = &self.last else {
            return text == self.first;
        };
        let rest = text.strip_prefix(&*self.first);
        let Some(mut rest) = rest.and_then(|rest| rest.strip_suffix(&**last)) else {
            return false;
        };
        for part in &self.between {
            let after = part.find(rest).map(|at| at + part.needle().len());
            match after.and_then(|after| rest.get(after..)) {
                Some(later) => rest = later,
                None => return false,
            }
        }
        true
    }
}

impl<'a> Pattern<'a> {
    /// Prepares a pattern.
    pub fn new(pattern: &'a [u8]) -> Pattern<'a> {
        Pattern {
            whole: pattern,
            parts: Parts::of(pattern),
        }
    }

    /// Whether a text matches.
    ///
    /// # Errors
    /// If the pattern ends with an escape character, and matching reaches it.
    #[inline]
    pub fn matches(&self, text: &[u8]) -> Result<bool> {
        match &self.parts {
            Some(parts) => Ok(parts.matches(text)),
            None => like(text, self.whole, Units::Utf8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A prepared pattern matches the same texts as an unprepared one. Bug: LIKE in batches
        /// finds other rows than LIKE row by row.
        #[test]
        fn looked_at_once(text in "[abé%\\\\]{0,8}", pattern in "[abé%_\\\\]{0,6}") {
            let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
            let right = like(text, pattern, Units::Utf8).ok();
            prop_assert_eq!(Pattern::new(pattern).matches(text).ok(), right);
        }
    }

    fn matches(s: &str, p: &str) -> Option<bool> {
        like(s.as_bytes(), p.as_bytes(), Units::Utf8).ok()
    }

    #[test]
    fn patterns() {
        for (s, p, expected) in [
            ("abc", "a%c", true),
            ("abc", "a_", false),
            ("日本語", "日_語", true),
            ("日本語", "___", true),
            ("a%c", "a\\%c", true),
            ("abc", "a\\%c", false),
            ("ababac", "%ab%ac", true),
            ("ababa", "%ab%ac", false),
            ("", "%", true),
            ("", "_", false),
            ("xaxb", "%_b", true),
        ] {
            assert_eq!(matches(s, p), Some(expected), "{s} LIKE {p}");
        }
    }

    /// Like PostgreSQL's `like_escape`, which returns the same texts on plaintext.
    #[test]
    fn escapes() {
        for (pattern, with, expected) in [
            ("a#%b%", "#", "a\\%b%"),
            ("a##", "#", "a\\#"),
            ("a\\b", "#", "a\\\\b"),
            ("a#\\b", "#", "a\\\\b"),
            ("a\\%", "", "a\\\\%"),
            ("a\\%", "\\", "a\\%"),
            ("aé%", "é", "a\\%"),
            ("a#", "#", "a\\"),
        ] {
            let found = escape(pattern.as_bytes(), with.as_bytes()).expect(pattern);
            assert_eq!(&*found, expected.as_bytes(), "{pattern} ESCAPE {with}");
        }
        let error = escape(b"a", b"##").expect_err("two characters");
        assert_eq!(&error.sqlstate, b"22025");
    }

    /// A pattern that ends with the escape is an error only where PostgreSQL gets
    /// that far.
    #[test]
    fn escape_at_the_end() {
        assert_eq!(matches("a", "a\\"), Some(false));
        assert_eq!(matches("ab", "a\\"), None);
        assert_eq!(matches("b", "a\\"), Some(false));
        assert_eq!(matches("a", "%\\"), None);
        assert_eq!(matches("", "%\\"), Some(false));
    }

    /// Many wildcards take neither stack nor exponential time.
    #[test]
    fn many_wildcards() {
        let text = "a".repeat(3000);
        assert_eq!(matches(&text, &("%a".repeat(1000) + "b")), Some(false));
    }
}
