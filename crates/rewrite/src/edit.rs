//! Text edits, and the map of positions between the two texts.
//!
//! Invariant: only the caller's sealing function sees the value of a [`Secret`]; its `Debug` output
//! does not contain it.

use crate::fit::Fit;
use contract::TypeCode;
use contract::soft::{Column, Purpose};
use std::fmt;
use std::ops::Range;

/// Replaces `range` of the original text by `pieces`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// Bytes of the original text; empty for an insertion.
    pub range: Range<usize>,
    /// The replacement.
    pub pieces: Vec<Piece>,
}

/// A part of a replacement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    /// SQL text, unchanged.
    Text(String),
    /// A value, which the caller seals. The envelope is written as an SQL string literal.
    Envelope(Secret),
}

/// A value that may leave the client only in an envelope.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// The value and its representation.
    pub form: Form,
    /// Byte offset of the literal in the original text.
    pub position: usize,
    /// The type whose input function will read the text, if that is certain. Used only to determine
    /// which literal an error is about, and never sent.
    pub meets: Option<TypeCode>,
    /// The column that it is assigned to, if that is its only use.
    pub fits: Option<Fit>,
}

/// The representation of a value.
#[derive(Clone, PartialEq, Eq)]
pub enum Form {
    /// Text for the input function of the type it is combined with, or of the given type: an
    /// envelope with `FLAG_TEXT`.
    Text(Vec<u8>, Option<TypeCode>),
    /// Text that the client reads with the input function of this type and type modifier (-1:
    /// none): numbers, booleans, intervals with fields.
    Typed(TypeCode, i32, Vec<u8>),
    /// Text that the client reads as the first type and casts to the second.
    Wider(TypeCode, TypeCode, Vec<u8>),
    /// Text that the client encodes for this column and purpose: of the given type, or of the
    /// column's type.
    Soft(Column, Purpose, Vec<u8>, Option<TypeCode>),
    /// The bytes of a `bytea`, as they are.
    Bytes(Vec<u8>),
}

impl Secret {
    /// The value as text.
    pub fn text(&self) -> &[u8] {
        let (Form::Text(text, _)
        | Form::Typed(_, _, text)
        | Form::Wider(_, _, text)
        | Form::Soft(_, _, text, _)
        | Form::Bytes(text)) = &self.form;
        text
    }

    pub(crate) fn set_text(&mut self, new: Vec<u8>) {
        let (Form::Text(text, _)
        | Form::Typed(_, _, text)
        | Form::Wider(_, _, text)
        | Form::Soft(_, _, text, _)
        | Form::Bytes(text)) = &mut self.form;
        *text = new;
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({:?} at {})", self.form, self.position)
    }
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Form::Bytes(_) => write!(f, "Bytes(***)"),
            Form::Text(_, code) => write!(f, "Text(***, {code:?})"),
            Form::Typed(code, typmod, _) => write!(f, "Typed({code:?}, {typmod}, ***)"),
            Form::Wider(code, to, _) => write!(f, "Wider({code:?}, {to:?}, ***)"),
            Form::Soft(column, purpose, _, said) => {
                write!(f, "Soft({column:?}, {purpose:?}, ***, {said:?})")
            }
        }
    }
}

/// Maps positions in the edited text back to the original.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PositionMap {
    /// For each edit, the original range and the new range, both in characters.
    spans: Vec<(Range<usize>, Range<usize>)>,
}

impl PositionMap {
    /// Maps a 1-based character position in the new text (as in PostgreSQL's error field `P`) to
    /// one in the original text. A position inside a replacement maps to the start of what was
    /// replaced.
    pub fn original(&self, position: usize) -> usize {
        let at = position.saturating_sub(1);
        let mut shift: isize = 0;
        for (old, new) in &self.spans {
            if at < new.start {
                break;
            }
            if at < new.end {
                return old.start + 1;
            }
            shift = old.end as isize - new.end as isize;
        }
        usize::try_from(at as isize + shift).unwrap_or(0) + 1
    }
}

/// Applies the edits. `sql` is the whole analysed text; `edits` are sorted and do not overlap;
/// `seal` returns the text of an envelope, which is quoted here.
pub fn apply_edits<E>(
    sql: &str,
    edits: &[Edit],
    seal: impl FnMut(&Secret) -> Result<String, E>,
) -> Result<(String, PositionMap), E> {
    apply_edits_in(sql, 0..sql.len(), edits, seal)
}

/// Like [`apply_edits`], for one statement of several: returns the new text of `range` only, and
/// positions in the map count from its start.
pub fn apply_edits_in<E>(
    sql: &str,
    range: Range<usize>,
    edits: &[Edit],
    mut seal: impl FnMut(&Secret) -> Result<String, E>,
) -> Result<(String, PositionMap), E> {
    let mut out = String::with_capacity(range.len() + 64 * edits.len());
    let mut map = PositionMap::default();
    let mut done = range.start;
    let (mut old_chars, mut new_chars) = (0, 0);
    for edit in edits {
        if edit.range.start < done || edit.range.end > range.end {
            continue;
        }
        let kept = sql.get(done..edit.range.start).unwrap_or_default();
        let kept_chars = kept.chars().count();
        out.push_str(kept);
        let begin = out.len();
        for piece in &edit.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Envelope(secret) => {
                    out.push('\'');
                    out.push_str(&seal(secret)?.replace('\'', "''"));
                    out.push('\'');
                }
            }
        }
        let old = sql.get(edit.range.clone()).unwrap_or_default();
        let old_start = old_chars + kept_chars;
        let new_start = new_chars + kept_chars;
        old_chars = old_start + old.chars().count();
        new_chars = new_start + out.get(begin..).unwrap_or_default().chars().count();
        map.spans.push((old_start..old_chars, new_start..new_chars));
        done = edit.range.end;
    }
    out.push_str(sql.get(done..range.end).unwrap_or_default());
    Ok((out, map))
}

/// The 1-based character position of a byte offset, as in the error field `P`.
pub fn character_position(sql: &str, offset: usize) -> usize {
    sql.char_indices()
        .take_while(|(at, _)| *at < offset)
        .count()
        + 1
}
