//! `to_number`: reads a number by a template of digits. Separators and signs are those of locale C.
//!
//! Invariant: no part of the text is in an error.

use super::format_number::{Part, Place, Shape, parts};
use crate::text as chars;
use crate::{Error, Numeric, Result, Value};

/// A number on its way out of a text.
struct Scan<'s> {
    shape: Shape,
    text: &'s [u8],
    at: usize,
    sign: u8,
    digits: Vec<u8>,
    before: usize,
    after: usize,
    point: bool,
}

/// `to_number(s, template)`
pub(super) fn to_number(s: &[u8], template: &[u8]) -> Result<Value> {
    if template.is_empty() {
        return Err(Error::null());
    }
    let parts = parts(template);
    let shape = Shape::of(&parts)?;
    let unsupported =
        |what: &str| Error::new(b"0A000", format!("\"{what}\" not supported for input"));
    if shape.exponent {
        return Err(unsupported("EEEE"));
    }
    if shape.roman {
        return Err(unsupported("RN"));
    }
    let mut scan = Scan {
        shape,
        text: s,
        at: 0,
        sign: b' ',
        digits: Vec::new(),
        before: 0,
        after: 0,
        point: false,
    };
    for part in &parts {
        if scan.at >= s.len() {
            break;
        }
        match part {
            Part::Text(_) => scan.character(),
            Part::Field(pattern, _) => scan.field(pattern),
        }
    }
    scan.result()
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn character(&mut self) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        self.at += chars::char_width(rest).max(1);
    }

    /// Skips up to that many characters that cannot be part of a number.
    fn pass(&mut self, count: usize) {
        for _ in 0..count {
            match self.peek() {
                Some(b'0'..=b'9' | b'.' | b',' | b'+' | b'-') | None => break,
                Some(_) => self.character(),
            }
        }
    }

    fn field(&mut self, pattern: &str) {
        let next = self.peek();
        match pattern {
            "9" | "0" | "." | "D" => {
                self.digit(matches!(pattern, "9" | "0"));
                self.at += 1;
            }
            "," | "G" if next == Some(b',') && !self.shape.fill => self.at += 1,
            "L" => self.pass(1),
            "TH" if !self.shape.decimal => self.pass(2),
            "MI" | "PL" | "SG" => match next {
                Some(sign @ b'-') if pattern != "PL" => {
                    self.sign = sign;
                    self.at += 1;
                }
                Some(sign @ b'+') if pattern != "MI" => {
                    self.sign = sign;
                    self.at += 1;
                }
                _ => self.pass(1),
            },
            _ => {}
        }
    }

    /// Reads what a place for a digit, or for the point, gets.
    fn digit(&mut self, digit: bool) {
        if self.peek() == Some(b' ') {
            self.at += 1;
        }
        if self.sign == b' ' && digit && self.before + self.after == 0 {
            self.sign_before();
        }
        let Some(next) = self.peek() else {
            return;
        };
        let mut read = true;
        if next.is_ascii_digit() {
            if self.point && self.after == self.shape.after {
                return;
            }
            self.digits.push(next);
            match self.point {
                true => self.after += 1,
                false => self.before += 1,
            }
        } else if self.shape.decimal && !self.point && next == b'.' {
            self.digits.push(b'.');
            self.point = true;
        } else {
            read = false;
        }
        if self.sign == b' ' && self.before + self.after > 0 {
            self.sign_after(read);
        }
    }

    fn sign_before(&mut self) {
        let anchored = self.shape.locale_sign && self.shape.sign == Place::Before;
        match self.peek() {
            Some(sign @ (b'-' | b'+')) => self.sign = sign,
            Some(b'<') if self.shape.bracket && !anchored => self.sign = b'-',
            _ => return,
        }
        self.at += 1;
    }

    /// A sign may come before the place of the template that it has.
    fn sign_after(&mut self, read: bool) {
        let shape = &self.shape;
        let behind = self.text.get(self.at + 1).copied();
        if shape.locale_sign && read && behind.is_some_and(|b| !b.is_ascii_digit()) {
            if let Some(sign @ (b'-' | b'+')) = behind {
                self.sign = sign;
                self.at += 1;
            }
        } else if !read
            && !shape.locale_sign
            && (shape.plus || shape.minus)
            && let Some(sign @ (b'-' | b'+')) = self.peek()
        {
            self.sign = sign;
            self.at += 1;
        }
    }

    fn result(mut self) -> Result<Value> {
        if self.digits.last() == Some(&b'.') {
            self.digits.pop();
        }
        let mut number = vec![self.sign];
        number.append(&mut self.digits);
        let precision = self.shape.before + self.shape.moved + self.after;
        let (precision, scale) = (precision as i32, self.after as i32);
        let n = Numeric::parse(&number, (precision << 16 | scale) + 4)?;
        if !self.shape.multiplied {
            return Ok(Value::Numeric(n));
        }
        let moved = Numeric::from_i64(self.shape.moved as i64).neg();
        let factor = Numeric::from_i64(10).power(&moved)?;
        n.mul(&factor).map(Value::Numeric)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Env, format_text};

    fn run(s: &str, template: &str) -> String {
        match to_number(s.as_bytes(), template.as_bytes()) {
            Ok(v) => String::from_utf8(format_text(&v, &Env::default())).unwrap(),
            Err(e) => e.sqlstate_str().into(),
        }
    }

    /// Pairs from PostgreSQL's documentation and tests.
    #[test]
    fn numbers() {
        for (s, template, expected) in [
            ("12,454.8-", "99G999D9S", "-12454.8"),
            ("-34,338,492", "99G999G999", "-34338492"),
            (
                "-34,338,492.654,878",
                "99G999G999D999G999",
                "-34338492.654878",
            ),
            ("<564646.654564>", "999999.999999PR", "-564646.654564"),
            ("0.00001-", "9.999999S", "-0.00001"),
            ("5.01-", "FM9.999999S", "-5.01"),
            ("5.01-", "FM9.999999MI", "-5.01"),
            ("5 4 4 4 4 8 . 7 8", "9 9 9 9 9 9 . 9 9", "544448.78"),
            (".01", "FM9.99", "0.01"),
            ("34,50", "999,99", "3450"),
            ("123,000", "999G", "123"),
            ("123456", "999G999", "123456"),
            ("$1234.56", "L9,999.99", "1234.56"),
            ("42nd", "99th", "42"),
            ("1234", "99", "12"),
            ("", "99", "22P02"),
            ("1", "EEEE", "0A000"),
        ] {
            assert_eq!(run(s, template), expected, "{s} {template}");
        }
    }
}
