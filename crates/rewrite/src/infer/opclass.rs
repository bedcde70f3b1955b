//! Operator classes of plain types that an index on a protected column names.
//!
//! A protected type has one operator class for each access method, and it orders text bytewise, as
//! `text_pattern_ops` does. So a statement that names the plain type's operator class means that
//! one, and the name is left out. Another operator class stays: the server refuses it.

use super::{Infer, names};
use crate::value::Val;
use contract::TypeCode;
use pg_query::protobuf::{IndexElem, IndexStmt, Token};
use std::ops::Range;

impl Infer<'_> {
    /// Leaves out the operator class of the index's element at this place (from 0), if it is that of
    /// the plain twin of `val`'s type.
    pub fn leave_out_operator_class(
        &mut self,
        index: &IndexStmt,
        place: usize,
        element: &IndexElem,
        val: Option<&Val>,
    ) {
        let Some(Some(code)) = val.and_then(|v| self.enc(v)) else {
            return;
        };
        let class = names(&element.opclass);
        let name = match class.as_slice() {
            [name] => *name,
            [schema, name] if *schema == "pg_catalog" => *name,
            _ => return,
        };
        if !belongs(name, code) || !element.opclassopts.is_empty() {
            return;
        }
        let start = index.relation.as_ref().map_or(0, |r| r.location);
        let start = usize::try_from(start).unwrap_or(0);
        if let Some(range) = self.operator_class(start, place, class.len(), name) {
            self.replace(range, "");
        }
    }

    /// The text of an element's operator class, whose name has so many parts, with the space before
    /// it; the index's table is named at `start`.
    fn operator_class(
        &self,
        start: usize,
        place: usize,
        parts: usize,
        name: &str,
    ) -> Option<Range<usize>> {
        let mut at = self.tokens.next_from(start);
        while self.tokens.kind(at) != Token::Ascii40 {
            at += 1;
            if at >= self.tokens.len() {
                return None;
            }
        }
        let close = self.tokens.closing(at)?;
        at += 1;
        for _ in 0..place {
            at = self.behind(at, close, |kind| kind == Token::Ascii44)?;
        }
        // What the index is on comes first; it may have the operator class's name.
        at = self.behind(at, close, |_| true)?;
        loop {
            let found = self.tokens.range(at);
            if self.sql.get(found.clone()).map(unquoted).as_deref() == Some(name) {
                let first = at.checked_sub(2 * parts - 1)?;
                return Some(self.tokens.range(first).end..found.end);
            }
            at = self.behind(at, close, |_| true)?;
        }
    }

    /// The index of the token behind the first one of this kind, from `at` on; what is in
    /// parentheses counts as one.
    fn behind(&self, mut at: usize, close: usize, is: impl Fn(Token) -> bool) -> Option<usize> {
        while at < close {
            let kind = self.tokens.kind(at);
            if kind == Token::Ascii40 {
                at = self.tokens.closing(at)?;
            }
            at += 1;
            if is(kind) {
                return Some(at);
            }
        }
        None
    }
}

/// Whether the default operator class of the plain type, or the one for patterns, has this name.
fn belongs(name: &str, code: TypeCode) -> bool {
    let text = matches!(code, TypeCode::Text | TypeCode::Varchar);
    match name.strip_suffix("_ops") {
        Some("text" | "varchar" | "text_pattern" | "varchar_pattern") => text,
        Some("bpchar_pattern") => code == TypeCode::Bpchar,
        Some(plain) => plain == code.plain_name(),
        None => false,
    }
}

/// An identifier as PostgreSQL reads it.
fn unquoted(token: &str) -> String {
    match token.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => token.to_ascii_lowercase(),
    }
}
