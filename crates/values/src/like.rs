//! `LIKE` and `ILIKE` with the default escape character.
//!
//! A `%` makes a place to come back to; only the last one is ever needed, so
//! memory is constant and time at worst pattern × text.

use crate::text::char_width;
use crate::{Error, Result};

/// How the text is cut into characters.
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
    let next_char = |t: &'_ [u8]| match units {
        Units::Utf8 => char_width(t),
        Units::Bytes => 1,
    };
    let (mut t, mut p) = (text, pattern);
    // Where to go on after a mismatch: the pattern after the last run of
    // wildcards, its first literal byte, and the text where it was tried.
    let mut retry: Option<(&[u8], u8, &[u8])> = None;
    loop {
        let matched = match (t.split_first(), p.split_first()) {
            (None, Some(_)) => return Ok(p.iter().all(|&b| b == b'%')),
            (Some(_), Some((b'%', rest))) => {
                p = rest;
                loop {
                    match p.split_first() {
                        Some((b'%', rest)) => p = rest,
                        Some((b'_', rest)) => {
                            if t.is_empty() {
                                return Ok(false);
                            }
                            t = t.get(next_char(t)..).unwrap_or_default();
                            p = rest;
                        }
                        _ => break,
                    }
                }
                let first = match *p {
                    [] => return Ok(true),
                    [b'\\'] => return Err(bad_escape()),
                    [b'\\', literal, ..] => literal,
                    [literal, ..] => literal,
                };
                match seek(t, first) {
                    None => return Ok(false),
                    Some(place) => {
                        t = place;
                        retry = Some((p, first, place));
                    }
                }
                true
            }
            (None, None) => return Ok(true),
            (Some(_), None) => false,
            (Some(_), Some((b'_', rest))) => {
                t = t.get(next_char(t)..).unwrap_or_default();
                p = rest;
                true
            }
            (Some((text_byte, text_rest)), Some((pattern_byte, pattern_rest))) => {
                let (literal, rest) = if *pattern_byte == b'\\' {
                    pattern_rest.split_first().ok_or_else(bad_escape)?
                } else {
                    (pattern_byte, pattern_rest)
                };
                if literal == text_byte {
                    t = text_rest;
                    p = rest;
                    true
                } else {
                    false
                }
            }
        };
        if matched {
            continue;
        }
        let Some((pattern, first, place)) = retry else {
            return Ok(false);
        };
        let onward = place.get(next_char(place)..).unwrap_or_default();
        match seek(onward, first) {
            None => return Ok(false),
            Some(place) => {
                retry = Some((pattern, first, place));
                (t, p) = (place, pattern);
            }
        }
    }
}

/// The first place from `t` on with the byte `first`. It starts a character of
/// the pattern, so it starts one of the text.
fn seek(t: &[u8], first: u8) -> Option<&[u8]> {
    t.get(t.iter().position(|&b| b == first)?..)
}

#[cfg(test)]
mod tests {
    use super::*;

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
