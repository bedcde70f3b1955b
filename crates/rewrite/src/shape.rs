//! The shape of a text: the text with marks in place of the literals that are written in the
//! simplest way, and the positions of these literals.
//!
//! A literal is marked only if PostgreSQL's scanner reads it as a single constant of one kind,
//! whatever its contents: `'...'` without a quote in it, and integers of type `int4` that do not
//! start with 0. Everything else is part of the shape.
//!
//! Invariant: texts of the same shape have the same tokens, except for the values of the marked
//! ones.

use crate::reach::in_word;
use std::collections::BTreeSet;
use std::ops::Range;

/// Longer texts have no shape.
const TEXT_MAX: usize = 4096;
/// The largest number that is scanned and typed as `int4`.
const NUMBER_MAX: &[u8] = b"2147483647";
/// Longer names are shortened by PostgreSQL.
const NAME_MAX: usize = 63;
/// A byte that occurs in no text.
const MARK: char = '\0';

/// See the module documentation.
pub(crate) struct Shape {
    pub key: String,
    /// Ranges of the marked literals, including quotes.
    pub literals: Vec<Range<usize>>,
}

impl Shape {
    /// `None` for texts with comments, dollar quotes or strings of other kinds, and for texts that
    /// are too long; these are analysed individually.
    pub fn of(sql: &str) -> Option<Shape> {
        let bytes = sql.as_bytes();
        if bytes.len() > TEXT_MAX || bytes.contains(&0) {
            return None;
        }
        let (mut key, mut literals) = (String::with_capacity(bytes.len()), Vec::new());
        // Everything before `kept` is in the key.
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

    /// All words outside of the marked literals, as PostgreSQL reads names, and quoted names. `None` if
    /// one of them may mean another name than it shows.
    pub fn names(&self) -> Option<Vec<String>> {
        let mut names = BTreeSet::new();
        let mut rest = self.key.as_str();
        while let Some(first) = rest.chars().next() {
            let length = match first {
                MARK => 2,
                '"' => {
                    let quoted = rest.get(1..)?;
                    let end = quoted.find('"')?;
                    names.insert(quoted.get(..end)?.to_owned());
                    let behind = quoted.get(end + 1..)?;
                    if behind.starts_with('"') {
                        return None;
                    }
                    end + 2
                }
                '&' if rest.starts_with("&\"") => return None,
                c if in_word(c) => {
                    let end = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
                    names.insert(rest.get(..end)?.to_ascii_lowercase());
                    end
                }
                c => c.len_utf8(),
            };
            rest = rest.get(length..)?;
        }
        let long = names.iter().any(|name| name.len() > NAME_MAX);
        (!long).then(|| names.into_iter().collect())
    }
}

/// End of the string that starts here; `None` if it is not of the simplest kind (`E'...'`,
/// `U&'...'` and the like, or quotes inside).
fn string_end(bytes: &[u8], at: usize, before: Option<u8>) -> Option<usize> {
    if within_word(before) || before == Some(b'&') {
        return None;
    }
    let end = at + 1 + bytes.get(at + 1..)?.iter().position(|b| *b == b'\'')?;
    (bytes.get(end + 1) != Some(&b'\'')).then_some(end + 1)
}

/// End of the number that starts here; `None` if it may be more than an integer.
fn number_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let (digits, behind) = rest.split_at(rest.iter().take_while(|b| b.is_ascii_digit()).count());
    let next = behind.first().copied();
    let fits = (digits.len(), digits) <= (NUMBER_MAX.len(), NUMBER_MAX);
    let whole = fits && !within_word(next) && next != Some(b'.');
    whole.then_some(at + digits.len())
}

/// Whether the byte can be part of a name, a parameter or a number.
fn within_word(byte: Option<u8>) -> bool {
    byte.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$') || !b.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names are what PostgreSQL reads; where that differs from what is written, there are none.
    #[test]
    fn names_of_a_text() {
        let names = |sql: &str| Shape::of(sql).and_then(|s| s.names());
        assert_eq!(
            names("SELECT A.b2, \"C d\" FROM Ä$1.x WHERE y = 'not' AND z=5").unwrap(),
            [
                "C d", "a", "and", "b2", "from", "select", "where", "x", "y", "z", "Ä$1"
            ]
        );
        for odd in ["SELECT \"a\"\"b\"", "SELECT U&\"a\""] {
            assert_eq!(names(odd), None, "{odd}");
        }
        assert_eq!(names(&format!("SELECT {}", "x".repeat(64))), None);
    }

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
