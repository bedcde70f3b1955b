//! Texts of sessions with `standard_conforming_strings` off, where `'...'` has escapes like
//! `E'...'`.
//!
//! Each such string with a backslash is prefixed with `E` before the text is analysed. Positions in
//! the result are mapped back to the original text, which is what the server reads.
//!
//! Invariant: the modified text has, with `standard_conforming_strings = on`, the same tokens as
//! the original text with it off; a text for which this is not certain is refused.

use crate::analyze::analyze_with;
use crate::refusal::Refusal;
use crate::schema::Schema;
use crate::statement::{Prepared, Statement};

/// Inserted before a string. The space is needed because a word may directly precede the string.
const MARK: &str = " E";

/// Like [`analyze_with`], for a text of such a session.
pub fn analyze_escaped(
    sql: &str,
    schema: &Schema,
    prepared: &Prepared,
) -> Result<Vec<Statement>, Refusal> {
    let marks = Scan::new(sql).marks().ok_or_else(unclear)?;
    let mut text = String::with_capacity(sql.len() + MARK.len() * marks.len());
    let mut done = 0;
    for mark in &marks {
        text.push_str(sql.get(done..*mark).unwrap_or_default());
        text.push_str(MARK);
        done = *mark;
    }
    text.push_str(sql.get(done..).unwrap_or_default());
    let back = |at: usize| original(&marks, at);
    match analyze_with(&text, schema, prepared) {
        Ok(mut statements) => {
            statements.iter_mut().for_each(|s| s.moved(back));
            Ok(statements)
        }
        Err(mut refusal) => {
            refusal.position = refusal.position.map(back);
            Err(refusal)
        }
    }
}

/// The position in the original text.
fn original(marks: &[usize], at: usize) -> usize {
    let mut added = 0;
    for mark in marks {
        if at < mark + added + MARK.len() {
            return (at - added).min(*mark);
        }
        added += MARK.len();
    }
    at - added
}

fn unclear() -> Refusal {
    Refusal::unsupported("cannot tell where the strings of this text end")
        .detail("standard_conforming_strings is off.")
        .hint("SET standard_conforming_strings TO on, or use E'…' where backslashes are escapes.")
        .for_good()
}

/// Finds strings in the same way as PostgreSQL's scanner.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    fn new(sql: &'a str) -> Scan<'a> {
        Scan {
            bytes: sql.as_bytes(),
            at: 0,
        }
    }

    fn here(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    /// Positions of strings that need an `E`; `None` if that is uncertain.
    fn marks(mut self) -> Option<Vec<usize>> {
        let mut marks = Vec::new();
        while let Some(byte) = self.here(0) {
            let start = self.at;
            match byte {
                b'\'' if self.string(true)? => marks.push(start),
                b'\'' => {}
                b'"' => self.skip_to(1, b"\"")?,
                b'-' if self.here(1) == Some(b'-') => self.line(),
                b'/' if self.here(1) == Some(b'*') => self.comment()?,
                b'$' => self.dollar()?,
                _ if part(byte) => self.word()?,
                _ => self.at += 1,
            }
        }
        Some(marks)
    }

    /// Scans a string with its continuations on other lines. Returns whether it contains a
    /// backslash.
    fn string(&mut self, escapes: bool) -> Option<bool> {
        let mut found = false;
        loop {
            self.at += 1;
            loop {
                match self.here(0)? {
                    b'\\' if escapes => {
                        found = true;
                        self.at += 2;
                    }
                    b'\'' if self.here(1) == Some(b'\'') => self.at += 2,
                    b'\'' => break,
                    _ => self.at += 1,
                }
            }
            self.at += 1;
            let end = self.at;
            if !self.continues() {
                self.at = end;
                return Some(found);
            }
        }
    }

    /// Whether another quote follows after white space with a newline.
    fn continues(&mut self) -> bool {
        let mut lines = 0;
        while let Some(byte) = self.here(0) {
            match byte {
                b'\n' | b'\r' => lines += 1,
                b' ' | b'\t' | 0x0b | 0x0c => {}
                b'-' if self.here(1) == Some(b'-') => {
                    self.line();
                    continue;
                }
                _ => break,
            }
            self.at += 1;
        }
        lines > 0 && self.here(0) == Some(b'\'')
    }

    /// Scans a name or number, or a string preceded by a letter.
    fn word(&mut self) -> Option<()> {
        let start = self.at;
        while self.here(0).is_some_and(part) {
            self.at += 1;
        }
        let word = self.bytes.get(start..self.at)?;
        // The server refuses these, wherever they end.
        if matches!(word, b"u" | b"U") && (self.here(0), self.here(1)) == (Some(b'&'), Some(b'\''))
        {
            self.at += 1;
            return self.string(false).map(drop);
        }
        if self.here(0) != Some(b'\'') {
            return Some(());
        }
        match word {
            b"e" | b"E" => self.string(true).map(drop),
            b"b" | b"B" | b"x" | b"X" => self.string(false).map(drop),
            // NCHAR strings: the letter would remain a word.
            b"n" | b"N" => None,
            _ => Some(()),
        }
    }

    fn line(&mut self) {
        while self.here(0).is_some_and(|b| !matches!(b, b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn comment(&mut self) -> Option<()> {
        let mut depth = 0;
        loop {
            match (self.here(0)?, self.here(1)) {
                (b'/', Some(b'*')) => {
                    depth += 1;
                    self.at += 2;
                }
                (b'*', Some(b'/')) => {
                    depth -= 1;
                    self.at += 2;
                }
                _ => self.at += 1,
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    /// Scans `$tag$...$tag$`, a parameter, or a single dollar sign.
    fn dollar(&mut self) -> Option<()> {
        let rest = self.bytes.get(self.at + 1..)?;
        let length = rest.iter().take_while(|b| part(**b) && **b != b'$').count();
        let digit = rest.first().is_some_and(u8::is_ascii_digit);
        if digit || rest.get(length) != Some(&b'$') {
            self.at += 1;
            return Some(());
        }
        let tag = self.bytes.get(self.at..self.at + length + 2)?;
        self.skip_to(tag.len(), tag)
    }

    /// Moves past the next occurrence of these bytes, starting `ahead` bytes from here.
    fn skip_to(&mut self, ahead: usize, end: &[u8]) -> Option<()> {
        let from = self.at + ahead;
        let mut windows = self.bytes.get(from..)?.windows(end.len());
        self.at = from + windows.position(|w| w == end)? + end.len();
        Some(())
    }
}

fn part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wrong scanner takes the end of a string for its middle, and a literal behind it for a name.
    #[test]
    fn strings() {
        let marked = |sql: &str| {
            Scan::new(sql).marks().map(|marks| {
                let mut text = sql.to_owned();
                marks.iter().rev().for_each(|at| text.insert_str(*at, MARK));
                text
            })
        };
        for (sql, expected) in [
            ("SELECT 'a', 'b''c'", "SELECT 'a', 'b''c'"),
            (r"SELECT 'a\'b', 'c'", r"SELECT  E'a\'b', 'c'"),
            (r"SELECT'a\\', 'c'", r"SELECT E'a\\', 'c'"),
            (r"SELECT E'a\'b', 'c\d'", r"SELECT E'a\'b',  E'c\d'"),
            (
                "SELECT 'a' -- it's\n 'b\\n'",
                "SELECT  E'a' -- it's\n 'b\\n'",
            ),
            (
                r"SELECT 1 /* ' /* */ \ */, '\x'",
                r"SELECT 1 /* ' /* */ \ */,  E'\x'",
            ),
            (
                r"SELECT $$it's \$$, $1, $a$'\'$a$",
                r"SELECT $$it's \$$, $1, $a$'\'$a$",
            ),
            (r#"SELECT "it's \", '\'"#, r#""#),
            (r#"SELECT "it's \", '\\'"#, r#"SELECT "it's \",  E'\\'"#),
            (
                r"SELECT U&' \' UESCAPE '!', '\n'",
                r"SELECT U&' \' UESCAPE '!',  E'\n'",
            ),
            (r"SELECT N'\'", ""),
            (r"SELECT X'1F', B'0', '\'", ""),
        ] {
            let wanted = (!expected.is_empty()).then(|| expected.to_owned());
            assert_eq!(marked(sql), wanted, "{sql}");
        }
    }

    #[test]
    fn places() {
        let marks = [7, 12];
        for (at, was) in [
            (0, 0),
            (7, 7),
            (8, 7),
            (9, 7),
            (13, 11),
            (14, 12),
            (16, 12),
            (17, 13),
        ] {
            assert_eq!(original(&marks, at), was, "{at}");
        }
    }
}
