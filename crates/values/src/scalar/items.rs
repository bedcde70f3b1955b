//! `concat_ws` and `format`: functions of any number of values, which come as one list in a text.
//!
//! An item of the list is a value as its type's output function shows it, behind its length in bytes and
//! a colon, or `-` for NULL. SQL puts items one behind another with `||`.
//!
//! Invariant: what is no list is refused; an item is never read beyond the list's end.

use super::strings::{quote_ident, quote_literal};
use super::text;
use crate::error::{no_such_operation, too_large};
use crate::list::items;
use crate::text as chars;
use crate::{Env, Error, Result, Value, format_text};
use contract::Op;

pub(super) fn apply(op: Op, args: &[&Value], env: &Env) -> Result<Value> {
    match (op, args) {
        (Op::Output, [v]) => text(format_text(v, env)),
        (Op::Item, [v]) => {
            let shown = format_text(v, env);
            let mut item = format!("{}:", shown.len()).into_bytes();
            item.extend(shown);
            text(sized(item)?)
        }
        (Op::ConcatWs, [Value::Text(between), Value::Text(list)]) => {
            let values: Vec<&[u8]> = items(list)?.into_iter().flatten().collect();
            text(sized(values.join(&between[..]))?)
        }
        (Op::Format, [Value::Text(template), Value::Text(list)]) => {
            text(sized(format(template, &items(list)?)?)?)
        }
        _ => Err(no_such_operation()),
    }
}

fn sized(s: Vec<u8>) -> Result<Vec<u8>> {
    match s.len() > chars::MAX_BYTES {
        true => Err(too_large()),
        false => Ok(s),
    }
}

fn wrong(message: &'static str) -> Error {
    Error::new(b"22023", message)
}

fn too_few() -> Error {
    wrong("too few arguments for format()")
}

fn unterminated() -> Error {
    wrong("unterminated format() type specifier").hint("For a single \"%\" use \"%%\".")
}

/// What is between `%` and the letter.
#[derive(Default)]
struct Directive {
    /// Number of the argument, from 1.
    argument: Option<i32>,
    /// The width is this argument's value; 0 is the next one.
    width_from: Option<i32>,
    width: i32,
    left: bool,
}

/// Where in the template, and in the arguments, `format` is.
struct Reader<'a> {
    template: &'a [u8],
    at: usize,
    next: usize,
    values: &'a [Option<&'a [u8]>],
}

fn format(template: &[u8], values: &[Option<&[u8]>]) -> Result<Vec<u8>> {
    let mut reader = Reader {
        template,
        at: 0,
        next: 0,
        values,
    };
    let mut out = Vec::new();
    while let Some(b) = reader.take() {
        if b != b'%' {
            out.push(b);
        } else if reader.peek() == Some(b'%') {
            reader.at += 1;
            out.push(b'%');
        } else {
            reader.directive(&mut out)?;
        }
        if out.len() > chars::MAX_BYTES {
            return Err(too_large());
        }
    }
    Ok(out)
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.template.get(self.at).copied()
    }

    fn take(&mut self) -> Option<u8> {
        let b = self.peek()?;
        self.at += 1;
        Some(b)
    }

    fn digits(&mut self) -> Result<Option<i32>> {
        let mut number: Option<i32> = None;
        while let Some(b) = self.peek().filter(u8::is_ascii_digit) {
            let before = number.unwrap_or(0).checked_mul(10);
            let more = before.and_then(|n| n.checked_add(i32::from(b - b'0')));
            number = Some(more.ok_or_else(|| Error::new(b"22003", "number is out of range"))?);
            self.at += 1;
        }
        Ok(number)
    }

    /// Checks that the template does not end here.
    fn inside(&self) -> Result<()> {
        self.peek().map(|_| ()).ok_or_else(unterminated)
    }

    fn parse(&mut self) -> Result<Directive> {
        let mut d = Directive::default();
        self.inside()?;
        if let Some(n) = self.digits()? {
            self.inside()?;
            if self.peek() != Some(b'$') {
                d.width = n;
                return Ok(d);
            }
            if n == 0 {
                return Err(wrong(
                    "format specifies argument 0, but arguments are numbered from 1",
                ));
            }
            d.argument = Some(n);
            self.at += 1;
            self.inside()?;
        }
        while self.peek() == Some(b'-') {
            d.left = true;
            self.at += 1;
            self.inside()?;
        }
        if self.peek() == Some(b'*') {
            self.at += 1;
            self.inside()?;
            d.width_from = Some(0);
            if let Some(n) = self.digits()? {
                self.inside()?;
                if self.peek() != Some(b'$') {
                    return Err(wrong("width argument position must be ended by \"$\""));
                }
                if n == 0 {
                    return Err(wrong(
                        "format specifies argument 0, but arguments are numbered from 1",
                    ));
                }
                d.width_from = Some(n);
                self.at += 1;
                self.inside()?;
            }
        } else if let Some(n) = self.digits()? {
            d.width = n;
            self.inside()?;
        }
        Ok(d)
    }

    /// An argument by its number, or the next one.
    fn value(&mut self, number: i32) -> Result<Option<&'a [u8]>> {
        if let Some(at) = usize::try_from(number).ok().and_then(|n| n.checked_sub(1)) {
            self.next = at;
        }
        let value = self.values.get(self.next).copied().ok_or_else(too_few)?;
        self.next += 1;
        Ok(value)
    }

    fn directive(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let mut d = self.parse()?;
        let letter = self.peek().ok_or_else(unterminated)?;
        if !matches!(letter, b's' | b'I' | b'L') {
            return Err(wrong("unrecognized format() type specifier")
                .hint("For a single \"%\" use \"%%\"."));
        }
        self.at += 1;
        if let Some(from) = d.width_from {
            d.width = match self.value(from)? {
                None => 0,
                Some(n) => std::str::from_utf8(n)
                    .ok()
                    .and_then(|s| s.trim().parse().ok())
                    .ok_or_else(|| crate::error::invalid_syntax("integer"))?,
            };
            if d.width < 0 {
                d.left = true;
                d.width = d
                    .width
                    .checked_neg()
                    .ok_or_else(|| Error::new(b"22003", "number is out of range"))?;
            }
        }
        let value = self.value(d.argument.unwrap_or(0))?;
        let shown = match (letter, value) {
            (b'I', None) => {
                return Err(Error::new(
                    b"22004",
                    "null values cannot be formatted as an SQL identifier",
                ));
            }
            (b'I', Some(s)) => quote_ident(s),
            (b'L', None) => b"NULL".to_vec(),
            (b'L', Some(s)) => quote_literal(s),
            (_, value) => value.unwrap_or_default().to_vec(),
        };
        padded(out, &shown, &d)
    }
}

fn padded(out: &mut Vec<u8>, shown: &[u8], d: &Directive) -> Result<()> {
    let width = usize::try_from(d.width).unwrap_or(0);
    let missing = width.saturating_sub(chars::char_count(shown));
    if missing > chars::MAX_BYTES {
        return Err(too_large());
    }
    let blanks = std::iter::repeat_n(b' ', missing);
    if d.left {
        out.extend_from_slice(shown);
        out.extend(blanks);
    } else {
        out.extend(blanks);
        out.extend_from_slice(shown);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(values: &[Option<&str>]) -> Value {
        let item = |v: &Option<&str>| match v {
            Some(s) => format!("{}:{s}", s.len()),
            None => "-".into(),
        };
        let all: String = values.iter().map(item).collect();
        Value::Text(all.into_bytes().into())
    }

    fn run(op: Op, first: &str, values: &[Option<&str>]) -> String {
        let first = Value::Text(first.as_bytes().into());
        match apply(op, &[&first, &list(values)], &Env::default()) {
            Ok(Value::Text(s)) => String::from_utf8(s.into()).unwrap(),
            Ok(_) => "?".into(),
            Err(e) => e.sqlstate_str().into(),
        }
    }

    #[test]
    fn joined() {
        let values = [Some("a:b"), None, Some(""), Some("3:-")];
        assert_eq!(run(Op::ConcatWs, ", ", &values), "a:b, , 3:-");
        assert_eq!(run(Op::ConcatWs, ", ", &[None]), "");
    }

    #[test]
    fn formatted() {
        let values = [Some("Ab"), None, Some("7")];
        for (template, expected) in [
            ("%s|%s|%%", "Ab||%"),
            ("%L %L", "'Ab' NULL"),
            ("%1$I %1$s", "\"Ab\" Ab"),
            ("%5s|%-5s|", "   Ab|     |"),
            ("%3$s %1$s %s", "7 Ab "),
            ("%*3$s|", "22023"),
            ("%1$-*3$s|", "Ab     |"),
            ("%2$I", "22004"),
            ("%4$s", "22023"),
            ("%x", "22023"),
            ("%", "22023"),
            ("%0$s", "22023"),
        ] {
            assert_eq!(run(Op::Format, template, &values), expected, "{template}");
        }
    }

    /// What is no list is refused, and does not reach beyond its end.
    #[test]
    fn no_list() {
        for bad in ["9:ab", "x", "2", "99999999999999999999:a", ":"] {
            let bad = Value::Text(bad.as_bytes().into());
            let first = Value::Text(b" "[..].into());
            assert!(apply(Op::ConcatWs, &[&first, &bad], &Env::default()).is_err());
        }
    }
}
