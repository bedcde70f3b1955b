//! Finds the value that an input error is about. The keeper reports what is wrong but not the
//! value; the client knows the values that it has sealed, parses them again, and finds the one that
//! fails in the same way. The result is for the application only.
//!
//! Invariant: a value is blamed only if PostgreSQL would reject it with the same error.
use contract::{Code, TypeCode};
use rewrite::{Edit, Form, Piece, Secret};
use values::{Env, Error};

/// What the server reported.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// SQLSTATE.
    pub sqlstate: &'a str,
    /// The code that distinguishes errors with the same SQLSTATE.
    pub code: Code,
    /// The type that the error is about.
    pub t: Option<TypeCode>,
}

impl Told<'_> {
    /// Returns PostgreSQL's message for this text of this type if its input function rejects the
    /// text as the server reported.
    pub fn of(&self, code: TypeCode, typmod: i32, text: &[u8], env: &Env) -> Option<String> {
        let error = values::parse_text(code, typmod, text, env).err()?;
        self.is(&error).then(|| with_value(&error, text))
    }

    /// Whether `error` is the reported error.
    pub(crate) fn is(&self, error: &Error) -> bool {
        error.sqlstate_str() == self.sqlstate && (error.code, error.t) == (self.code, self.t)
    }

    /// Returns the byte offset of the literal that the error is about, and PostgreSQL's message.
    /// `in_order` says that PostgreSQL reads the literals of the statement from left to right.
    /// Otherwise no literal is named if several fail in the same way.
    pub fn of_literals<'e>(
        &self,
        edits: impl IntoIterator<Item = &'e Edit>,
        in_order: bool,
        env: &Env,
    ) -> Option<(usize, String)> {
        let mut found = edits
            .into_iter()
            .flat_map(|edit| &edit.pieces)
            .filter_map(|piece| match piece {
                Piece::Envelope(secret) => Some((secret.position, self.of_literal(secret, env)?)),
                Piece::Text(_) => None,
            });
        let first = found.next()?;
        (in_order || found.next().is_none()).then_some(first)
    }

    fn of_literal(&self, secret: &Secret, env: &Env) -> Option<String> {
        match &secret.form {
            Form::Text(text, said) => self.of((*said).or(secret.meets)?, -1, text, env),
            // The client has already parsed the others.
            Form::Typed(code, -1, text) => self.of(*code, -1, text, env),
            Form::Typed(..) | Form::Wider(..) | Form::Soft(..) | Form::Bytes(_) => None,
        }
    }
}

/// PostgreSQL's message: ours with the value inserted, if the message contains one.
pub(crate) fn with_value(error: &Error, text: &[u8]) -> String {
    let message = &*error.message;
    let Ok(text) = std::str::from_utf8(text) else {
        return message.to_owned();
    };
    match (error.code, error.t) {
        (Code::InvalidText, _) => format!("{message}: \"{text}\""),
        (Code::OutOfRange, Some(TypeCode::Float4 | TypeCode::Float8)) => {
            message.replacen("value", &format!("\"{}\"", number(text)), 1)
        }
        (Code::OutOfRange, _) => message.replacen("value", &format!("value \"{text}\""), 1),
        (Code::InvalidDigit, _) => match wrong_digit(text) {
            Some(digit) => format!("{message}: \"{digit}\""),
            None => message.to_owned(),
        },
        _ => message.to_owned(),
    }
}

/// The part of a text that `strtod` accepts as a number.
fn number(text: &str) -> &str {
    let text = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let part = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    text.split(|c| !part(c)).next().unwrap_or_default()
}

/// The first character of a bytea in hexadecimal that is not a digit; white space is allowed
/// between bytes.
fn wrong_digit(text: &str) -> Option<char> {
    let mut half = false;
    for c in text.strip_prefix("\\x")?.chars() {
        if !half && matches!(c, ' ' | '\n' | '\t' | '\r') {
            continue;
        }
        if !c.is_ascii_hexdigit() {
            return Some(c);
        }
        half = !half;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_INTEGER: Told<'static> = Told {
        sqlstate: "22P02",
        code: Code::InvalidText,
        t: Some(TypeCode::Int4),
    };

    #[test]
    fn values_in_their_places() {
        let env = Env::default();
        for (t, text, shown) in [
            (
                TypeCode::Date,
                "it's",
                "invalid input syntax for type date: \"it's\"",
            ),
            (
                TypeCode::Int4,
                " 9999999999 ",
                "value \" 9999999999 \" is out of range for type integer",
            ),
            (
                TypeCode::Float4,
                "\t-1e400",
                "\"-1e400\" is out of range for type real",
            ),
            (
                TypeCode::Bytea,
                "\\xab c d☃",
                "invalid hexadecimal digit: \" \"",
            ),
            (
                TypeCode::Bytea,
                "\\xab cd☃",
                "invalid hexadecimal digit: \"☃\"",
            ),
        ] {
            let error = values::parse_text(t, -1, text.as_bytes(), &env).unwrap_err();
            assert_eq!(with_value(&error, text.as_bytes()), shown);
        }
        let other = Error::new(b"22008", "interval out of range");
        assert_eq!(with_value(&other, b"x"), "interval out of range");
        let error = values::parse_text(TypeCode::Date, -1, b"x", &env).unwrap_err();
        assert_eq!(with_value(&error, b"\xff"), error.message);
    }

    /// A value that does not fail, or fails with another error, is not blamed.
    #[test]
    fn the_same_error_only() {
        let env = Env::default();
        let of = |code, text: &str| NO_INTEGER.of(code, -1, text.as_bytes(), &env);
        assert!(of(TypeCode::Int4, "x").is_some());
        assert_eq!(of(TypeCode::Int4, "5"), None);
        assert_eq!(of(TypeCode::Int4, "9999999999"), None);
        assert_eq!(of(TypeCode::Int8, "x"), None);
        assert_eq!(of(TypeCode::Text, "x"), None);
    }

    #[test]
    fn literals() {
        let env = Env::default();
        let edit = |text: &str, position, meets| Edit {
            range: position..position + 1,
            pieces: vec![Piece::Envelope(Secret {
                form: Form::Text(text.into(), None),
                position,
                meets,
                fits: None,
            })],
        };
        let int4 = Some(TypeCode::Int4);
        let found = |edits: &[Edit], in_order| {
            let found = NO_INTEGER.of_literals(edits, in_order, &env);
            found.map(|(at, _)| at)
        };
        let one = [edit("5", 1, int4), edit("x", 2, int4), edit("y", 3, None)];
        assert_eq!(found(&one, false), Some(2));
        let two = [edit("x", 1, int4), edit("y", 2, int4)];
        assert_eq!(found(&two, false), None);
        assert_eq!(found(&two, true), Some(1));
    }
}
