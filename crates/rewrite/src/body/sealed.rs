//! Constants of a routine's body that are sealed: they become envelopes with a cast to their protected
//! type. The server replaces the session's envelopes by ones of the catalog's constants, which are
//! good in every client's session (`extension/src/hooks/bodies.c`).
//!
//! Only a constant whose type is certain, and that stands by itself or with `::text`
//! behind it: no other cast to a plain type, no array.
//!
//! A body between plain quotes is put between dollar quotes.
//!
//! Invariant: a constant is known by what it says, so it is sealed in all places or in none, and
//! with the same type.

use super::constants::{is_constant, said};
use crate::edit::{Edit, Form, Piece, Secret};
use crate::infer::Infer;
use crate::tokens::{Tokens, identifier};
use crate::value::{Leaf, LeafKind};
use contract::TypeCode;
use contract::envelope::TEXT_PREFIX;
use pg_query::protobuf::Token;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// How the text of an export envelope goes on behind the prefix: its first two bytes.
const EXPORTED: &str = "zw";
/// ... and the first letters of its third: the two bits that are left of the second, 3, and the type.
const ORIGIN: [char; 4] = ['M', 'N', 'O', 'P'];

/// Constants to be sealed, by what they say.
#[derive(Default)]
pub(crate) struct Sealed {
    forms: BTreeMap<String, (Form, TypeCode)>,
    /// How many of each there are.
    counts: HashMap<String, i64>,
}

impl Sealed {
    /// The constants of a piece that meet something protected; none if one of them cannot be sealed.
    pub(super) fn of(infer: &Infer<'_>, text: &str, tokens: &Tokens) -> Option<Sealed> {
        let mut sealed = Sealed::default();
        for id in 0..infer.leaves.len() {
            let leaf = infer.leaves.get(id);
            if leaf.soft.is_some() && super::is_constant(&leaf.kind) {
                return None;
            }
            if !infer.leaves.protected(id) {
                continue;
            }
            let at = tokens.at(leaf.range.start);
            if at.is_some_and(|at| is_exported(text, tokens, at)) {
                continue;
            }
            match &leaf.kind {
                LeafKind::Argument(_) | LeafKind::Param(..) | LeafKind::Null => continue,
                LeafKind::Cast(_) if leaf.range.is_empty() => continue,
                LeafKind::Cast(Some(_)) if at.is_some_and(|at| casts(text, tokens, at)) => continue,
                _ => {}
            }
            let form = form(leaf)?;
            let at = at.map(|at| at + usize::from(tokens.kind(at) == Token::Ascii45));
            let whole = |at: &usize| signed(tokens, *at, &form.0) == leaf.range;
            let at = at.filter(|at| is_constant(text, tokens, *at) && whole(at))?;
            let mut one = Sealed::default();
            let constant = said(text, tokens, at);
            one.counts.insert(constant.clone(), 1);
            one.forms.insert(constant, form);
            if !sealed.add(one) {
                return None;
            }
        }
        let undecided = infer.overtaken().is_some() || infer.check_torn().is_err();
        (sealed.is_empty() || !undecided).then_some(sealed)
    }

    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Takes in others; false if one of them has another type here.
    pub(super) fn add(&mut self, others: Sealed) -> bool {
        for (constant, form) in others.forms {
            if *self.forms.entry(constant).or_insert(form.clone()) != form {
                return false;
            }
        }
        for (constant, count) in others.counts {
            *self.counts.entry(constant).or_default() += count;
        }
        true
    }

    /// Whether they are sealed as often as the text says them.
    pub(super) fn says_all(&self, said: &HashMap<String, i64>) -> bool {
        let mut counts = self.counts.iter();
        counts.all(|(constant, count)| said.get(constant) == Some(count))
    }

    /// Whether this text has one of them.
    pub fn within(&self, text: &str, tokens: &Tokens, range: &Range<usize>) -> bool {
        let mut all = tokens.next_from(range.start)..tokens.next_from(range.end);
        all.any(|at| tokens.holds_value(at) && self.forms.contains_key(&said(text, tokens, at)))
    }

    /// The edits of the body, which starts at this offset of the statement.
    pub fn edits(&self, body: &str, start: usize) -> Option<Vec<Edit>> {
        let tokens = Tokens::scan(body).ok()?;
        let places = (0..tokens.len()).filter(|at| is_constant(body, &tokens, *at));
        let edits = places.filter_map(|at| {
            let (form, code) = self.forms.get(&said(body, &tokens, at))?;
            let cast_by = at + 2;
            let end = match casts(body, &tokens, cast_by) {
                true => tokens.range(cast_by).end,
                false => tokens.range(at).end,
            };
            let range = signed(&tokens, at, form).start..end;
            let position = start + range.start;
            let secret = Secret {
                form: form.clone(),
                position,
                meets: Some(*code),
                fits: None,
            };
            let cast = format!("::pg_catalog.{}", code.enc_name());
            Some(Edit {
                range: position..start + range.end,
                pieces: vec![Piece::Envelope(secret), Piece::Text(cast)],
            })
        });
        Some(edits.collect())
    }
}

/// The text between dollar quotes with these edits, for a literal in this range.
pub(crate) fn requoted(text: &str, literal: Range<usize>, edits: Vec<Edit>) -> Option<Edit> {
    let mark = (0..=text.len())
        .map(|n| format!("$body{n}$"))
        .find(|mark| !text.contains(mark.as_str()))?;
    let mut pieces = vec![Piece::Text(mark.clone())];
    let mut done = 0;
    for edit in edits {
        pieces.push(Piece::Text(text.get(done..edit.range.start)?.to_owned()));
        pieces.extend(edit.pieces.into_iter().map(|piece| match piece {
            Piece::Envelope(secret) => Piece::Envelope(Secret {
                position: literal.start,
                // What a body stores outlives the session.
                fits: None,
                ..secret
            }),
            piece => piece,
        }));
        done = edit.range.end;
    }
    pieces.push(Piece::Text(format!("{}{mark}", text.get(done..)?)));
    Some(Edit {
        range: literal,
        pieces,
    })
}

/// Whether a constant is cast by this word alone to a plain type: `'a'::text`.
fn casts(text: &str, tokens: &Tokens, at: usize) -> bool {
    let kind = |n: usize| at.checked_sub(n).map_or(Token::Nul, |at| tokens.kind(at));
    let word = identifier(text.get(tokens.range(at)).unwrap_or_default());
    let longer = [Token::Ascii40, Token::Ascii46, Token::Ascii91];
    kind(1) == Token::Typecast
        && at.checked_sub(2).is_some_and(|at| tokens.holds_value(at))
        && tokens.is_name(at)
        && TypeCode::from_protected_name(&word).is_none()
        && word != "pg_catalog"
        && !longer.contains(&tokens.kind(at + 1))
}

/// The range of a constant, with its sign if it is sealed with one.
fn signed(tokens: &Tokens, at: usize, form: &Form) -> Range<usize> {
    let range = tokens.range(at);
    match (form, at.checked_sub(1)) {
        (Form::Typed(_, _, number), Some(sign)) if number.starts_with(b"-") => {
            tokens.range(sign).start..range.end
        }
        _ => range,
    }
}

/// How it is sealed, and its type.
fn form(leaf: &Leaf) -> Option<(Form, TypeCode)> {
    match &leaf.kind {
        LeafKind::Str(text, cast) if leaf.array.is_none() => {
            let code = cast.or(leaf.typed).or(leaf.meets)?;
            Some((Form::Text(text.clone(), Some(code)), code))
        }
        LeafKind::Typed(code, typmod, text) => {
            Some((Form::Typed(*code, *typmod, text.clone()), *code))
        }
        _ => None,
    }
}

/// The text with spaces for its envelopes of constants and their casts.
pub(crate) fn without_exported(text: &str) -> String {
    let Ok(tokens) = Tokens::scan(text) else {
        return text.to_owned();
    };
    let mut open = text.to_owned();
    for at in (0..tokens.len()).filter(|at| is_exported(text, &tokens, *at)) {
        // String, `::`, schema, point, type.
        let range = tokens.range(at).start..tokens.range(at + 4).end;
        let spaces = " ".repeat(range.len());
        open.replace_range(range, &spaces);
    }
    open
}

/// An envelope of a constant, as the text of a routine has it: with a cast to its type.
pub(super) fn is_exported(text: &str, tokens: &Tokens, at: usize) -> bool {
    let written = |at: usize| text.get(tokens.range(at)).unwrap_or_default();
    let body = written(at)
        .strip_prefix('\'')
        .and_then(|t| t.strip_suffix('\''));
    let envelope = body.and_then(|t| t.strip_prefix(TEXT_PREFIX));
    let Some(rest) = envelope.and_then(|t| t.strip_prefix(EXPORTED)) else {
        return false;
    };
    let sealed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    let cast = tokens.kind(at + 1) == Token::Typecast
        && written(at + 2) == "pg_catalog"
        && TypeCode::from_protected_name(&identifier(written(at + 4))).is_some();
    rest.starts_with(ORIGIN) && rest.bytes().all(sealed) && cast
}
