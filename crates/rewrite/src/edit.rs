//! Text edits, and the map of positions that they leave behind.
//!
//! Invariant: a [`Secret`] shows its value to nobody but the caller's sealing
//! function; its `Debug` output has none.

use contract::TypeCode;
use contract::soft::Column;
use std::fmt;
use std::ops::Range;

/// Replaces `range` of the original text by `pieces`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// Bytes of the original text; empty for an insertion.
    pub range: Range<usize>,
    /// What stands there instead.
    pub pieces: Vec<Piece>,
}

/// A part of a replacement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    /// SQL text, as is.
    Text(String),
    /// A value: the caller seals it and writes the envelope as a quoted SQL
    /// string literal.
    Envelope(Secret),
}

/// A value that must leave the client in an envelope only.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// The value, and how it is written down.
    pub form: Form,
    /// Byte offset of the literal in the original text.
    pub position: usize,
    /// The type whose input function reads the text, where that is known for sure: only
    /// to tell which literal an error is about, never sent.
    pub meets: Option<TypeCode>,
}

/// How a value is written down.
#[derive(Clone, PartialEq, Eq)]
pub enum Form {
    /// Text for the input function of the type that it meets, or of the given
    /// type: an envelope with `FLAG_TEXT`.
    Text(Vec<u8>, Option<TypeCode>),
    /// Text that the client reads with the input function of this type and this
    /// type modifier (-1: none): numbers, booleans, intervals with fields.
    Typed(TypeCode, i32, Vec<u8>),
    /// Text that the client encodes for this column, to be stored there or (false) compared:
    /// of the given type, or of the column's.
    Soft(Column, bool, Vec<u8>, Option<TypeCode>),
}

impl Secret {
    /// The value as text.
    pub fn text(&self) -> &[u8] {
        let (Form::Text(text, _) | Form::Typed(_, _, text) | Form::Soft(_, _, text, _)) =
            &self.form;
        text
    }

    pub(crate) fn set_text(&mut self, new: Vec<u8>) {
        let (Form::Text(text, _) | Form::Typed(_, _, text) | Form::Soft(_, _, text, _)) =
            &mut self.form;
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
            Form::Text(_, code) => write!(f, "Text(***, {code:?})"),
            Form::Typed(code, typmod, _) => write!(f, "Typed({code:?}, {typmod}, ***)"),
            Form::Soft(column, store, _, said) => {
                write!(f, "Soft({column:?}, {store}, ***, {said:?})")
            }
        }
    }
}

/// Maps positions in the edited text back to the original.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PositionMap {
    /// For each edit: original range and new range, both in characters.
    spans: Vec<(Range<usize>, Range<usize>)>,
}

impl PositionMap {
    /// The 1-based character position in the original text for a 1-based
    /// character position in the new text (as PostgreSQL's error field `P` has
    /// it). What lies in a replacement maps to the beginning of what it replaced.
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

/// Carries out the edits. `sql` is the whole text that was analysed, `edits` are
/// sorted and do not overlap; `seal` gives the envelope's text, which is quoted
/// here.
pub fn apply_edits<E>(
    sql: &str,
    edits: &[Edit],
    seal: impl FnMut(&Secret) -> Result<String, E>,
) -> Result<(String, PositionMap), E> {
    apply_edits_in(sql, 0..sql.len(), edits, seal)
}

/// As [`apply_edits`], for a part of the text (a statement of several): gives
/// the new text of `range` only; positions of the map count from its beginning.
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

/// The 1-based character position of a byte offset, as the protocol's error field
/// `P` wants it.
pub fn character_position(sql: &str, offset: usize) -> usize {
    sql.char_indices()
        .take_while(|(at, _)| *at < offset)
        .count()
        + 1
}
