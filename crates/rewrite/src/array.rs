//! Arrays in one literal (`'{a,NULL,"b c"}'`), which become `ARRAY[…]` with an envelope for each
//! element. Bounds are not supported.

use crate::edit::{Form, Piece, Secret};
use contract::TypeCode;
use std::iter::Peekable;
use std::str::Chars;

/// PostgreSQL's limit.
const DIMENSIONS_MAX: usize = 6;

/// An element, or the arrays within an array.
enum Item {
    Null,
    Value(String),
    Array(Vec<Item>),
}

/// `ARRAY[envelope, …]` for the text of an array; `None` if it is none.
pub(crate) fn pieces(
    text: &[u8],
    element: Option<TypeCode>,
    position: usize,
) -> Option<Vec<Piece>> {
    let code = element?;
    let text = std::str::from_utf8(text).ok()?;
    let mut rest = text.trim_matches(space).chars().peekable();
    let items = items(&mut rest, 1)?;
    if rest.next().is_some() {
        return None;
    }
    let mut pieces = vec![Piece::Text("ARRAY".into())];
    put(&items, code, position, &mut pieces);
    pieces.push(Piece::Text(format!("::pg_catalog.{}[]", code.enc_name())));
    Some(pieces)
}

fn put(items: &[Item], code: TypeCode, position: usize, out: &mut Vec<Piece>) {
    out.push(Piece::Text("[".into()));
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(Piece::Text(",".into()));
        }
        match item {
            Item::Null => out.push(Piece::Text("NULL".into())),
            Item::Array(items) => put(items, code, position, out),
            Item::Value(text) => {
                out.push(Piece::Envelope(Secret {
                    form: Form::Text(text.clone().into_bytes(), Some(code)),
                    position,
                    meets: None,
                    fits: None,
                }));
                out.push(Piece::Text(format!("::pg_catalog.{}", code.enc_name())));
            }
        }
    }
    out.push(Piece::Text("]".into()));
}

fn space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0b'
}

fn skip_space(rest: &mut Peekable<Chars>) {
    while rest.next_if(|c| space(*c)).is_some() {}
}

/// What stands between braces. Only the outermost may be empty.
fn items(rest: &mut Peekable<Chars>, depth: usize) -> Option<Vec<Item>> {
    rest.next_if_eq(&'{')?;
    let mut found = Vec::new();
    skip_space(rest);
    if depth == 1 && rest.next_if_eq(&'}').is_some() {
        return Some(found);
    }
    loop {
        skip_space(rest);
        found.push(match rest.peek()? {
            '{' if depth == DIMENSIONS_MAX => return None,
            '{' => Item::Array(items(rest, depth + 1)?),
            '"' => Item::Value(quoted(rest)?),
            _ => bare(rest)?,
        });
        skip_space(rest);
        match rest.next()? {
            '}' => return Some(found),
            ',' => {}
            _ => return None,
        }
    }
}

fn quoted(rest: &mut Peekable<Chars>) -> Option<String> {
    let mut text = String::new();
    rest.next();
    loop {
        match rest.next()? {
            '"' => return Some(text),
            '\\' => text.push(rest.next()?),
            c => text.push(c),
        }
    }
}

/// An element without quotes. Escapes in it are not supported.
fn bare(rest: &mut Peekable<Chars>) -> Option<Item> {
    let mut text = String::new();
    while let Some(c) = rest.next_if(|c| !matches!(c, ',' | '}')) {
        if matches!(c, '{' | '"' | '\\') {
            return None;
        }
        text.push(c);
    }
    text.truncate(text.trim_end_matches(space).len());
    match text.is_empty() {
        true => None,
        false if text.eq_ignore_ascii_case("null") => Some(Item::Null),
        false => Some(Item::Value(text)),
    }
}
