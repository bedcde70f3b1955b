//! The shape of a text: the text with a mark in the place of each literal that is
//! written in the simplest way, and where these literals stand.
//!
//! Only literals that PostgreSQL's scanner reads as one constant of one kind, whatever
//! is in them, are marked: `'…'` without a quote in it, and whole numbers of type `int4`
//! that do not begin with 0. All else is part of the shape.
//!
//! Invariant: texts of the same shape have the same tokens, but for the values of the
//! marked ones.

use std::ops::Range;

/// Longer texts have no shape.
const TEXT_MAX: usize = 4096;
/// The largest number that the scanner, and whoever types it, take for `int4`.
const NUMBER_MAX: &[u8] = b"2147483647";
/// No text has this byte.
const MARK: char = '\0';

/// See the module.
pub(crate) struct Shape {
    pub key: String,
    /// Bytes of the marked literals, quotes included.
    pub literals: Vec<Range<usize>>,
}

impl Shape {
    /// None for a text with comments, dollar quotes or strings of other kinds, and for
    /// one that is too long: it is analysed by itself.
    pub fn of(sql: &str) -> Option<Shape> {
        let bytes = sql.as_bytes();
        if bytes.len() > TEXT_MAX || bytes.contains(&0) {
            return None;
        }
        let (mut key, mut literals) = (String::with_capacity(bytes.len()), Vec::new());
        // What is before `kept` is in the key.
        let (mut at, mut kept) = (0, 0);
        while let Some(byte) = bytes.get(at) {
            let before = at.checked_sub(1).and_then(|b| bytes.get(b)).copied();
            let next = bytes.get(at + 1).copied();
            let end = match byte {
                b'\'' => string_end(bytes, at, before)?,
                b'"' => {
                    at += 1 + bytes.get(at + 1..)?.iter().position(|b| *b == b'"')? + 1;
                    continue;
                }
                b'1'..=b'9' if !within_word(before) && before != Some(b'.') => {
                    match number_end(bytes, at) {
                        Some(end) => end,
                        None => {
                            at += 1;
                            continue;
                        }
                    }
                }
                b'-' if next == Some(b'-') => return None,
                b'/' if next == Some(b'*') => return None,
                b'$' if !next.is_some_and(|b| b.is_ascii_digit()) => return None,
                _ => {
                    at += 1;
                    continue;
                }
            };
            key.push_str(sql.get(kept..at)?);
            key.push(MARK);
            key.push(if *byte == b'\'' { 's' } else { 'n' });
            literals.push(at..end);
            (at, kept) = (end, end);
        }
        key.push_str(sql.get(kept..)?);
        Some(Shape { key, literals })
    }
}

/// Behind the string that begins here; none if it is not of the simplest kind
/// (`E'…'`, `U&'…'` and their like, quotes within).
fn string_end(bytes: &[u8], at: usize, before: Option<u8>) -> Option<usize> {
    if within_word(before) || before == Some(b'&') {
        return None;
    }
    let end = at + 1 + bytes.get(at + 1..)?.iter().position(|b| *b == b'\'')?;
    (bytes.get(end + 1) != Some(&b'\'')).then_some(end + 1)
}

/// Behind the number that begins here; none if it may be more than a whole number.
fn number_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let (digits, behind) = rest.split_at(rest.iter().take_while(|b| b.is_ascii_digit()).count());
    let next = behind.first().copied();
    let fits = (digits.len(), digits) <= (NUMBER_MAX.len(), NUMBER_MAX);
    let whole = fits && !within_word(next) && next != Some(b'.');
    whole.then_some(at + digits.len())
}

/// The byte can be part of a name, a parameter or a number.
fn within_word(byte: Option<u8>) -> bool {
    byte.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$') || !b.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str) -> Option<String> {
        Shape::of(sql).map(|s| s.key.replace(MARK, "?"))
    }

    #[test]
    fn marks_only_the_simplest() {
        for (sql, shape) in [
            (
                "INSERT INTO t1 VALUES (5, -7,'a b')",
                "INSERT INTO t1 VALUES (?n, -?n,?s)",
            ),
            (
                "SELECT 0, 07, 1.5, .5, 1e3, 0x1F, 12a",
                "SELECT 0, 07, 1.5, .5, 1e3, 0x1F, 12a",
            ),
            (
                "SELECT 999, 2147483647, 2147483648",
                "SELECT ?n, ?n, 2147483648",
            ),
            (
                "SELECT $1, t2, \"a'5\"\"\", 3",
                "SELECT $1, t2, \"a'5\"\"\", ?n",
            ),
            ("SELECT 'a'\n'b'", "SELECT ?s\n?s"),
            ("", ""),
        ] {
            assert_eq!(shown(sql).as_deref(), Some(shape), "{sql}");
        }
        for sql in [
            "SELECT 5 -- x",
            "SELECT /* 5 */ 5",
            "SELECT $$5$$",
            "SELECT $q$5$q$",
            "SELECT E'\\''",
            "SELECT U&'5'",
            "SELECT 'it''s'",
            "SELECT N'5'",
            "SELECT 'open",
            "SELECT \"open",
            "SELECT \0",
        ] {
            assert_eq!(shown(sql), None, "{sql}");
        }
    }
}
