//! Redirects catalog queries to views in which protected types appear as their plain counterparts
//! (the extension's `core_twins.sql`), for clients that know only PostgreSQL's own types.
//!
//! The caller decides whether a client wants that. Names inside strings are left alone.
//!
//! Invariant: only statements that read are edited, and only names of catalogs in them.

use crate::edit::{Edit, Piece};
use crate::statement::{Statement, StatementKind};
use crate::tokens::{Tokens, identifier};
use pg_query::protobuf::Token;

/// Words in a text that asks about the types of columns.
const WORDS: [&str; 4] = ["pg_attribute", "information_schema", "pg_typeof", BASE];
/// Who asks for this of `pg_type` asks what a domain is over.
const BASE: &str = "typbasetype";

/// Replaces the catalogs by the views.
pub fn show_plain(sql: &str, statements: &mut [Statement]) {
    if !WORDS.iter().any(|word| has(sql, word)) {
        return;
    }
    let Ok(tokens) = Tokens::scan(sql) else {
        return;
    };
    let edits = (0..tokens.len()).flat_map(|at| edits_at(sql, &tokens, at));
    for edit in edits {
        let place = |s: &&mut Statement| {
            reads(&s.kind) && s.range.start <= edit.range.start && edit.range.end <= s.range.end
        };
        if let Some(statement) = statements.iter_mut().find(place) {
            insert(&mut statement.edits, edit);
        }
    }
}

fn reads(kind: &StatementKind) -> bool {
    use StatementKind::{Declare, Explain, Prepare, Select};
    matches!(kind, Select | Declare { .. } | Explain | Prepare { .. })
}

fn has(sql: &str, word: &str) -> bool {
    let mut windows = sql.as_bytes().windows(word.len());
    windows.any(|w| w.eq_ignore_ascii_case(word.as_bytes()))
}

/// Inserts an edit in order of position, unless it overlaps with an existing one.
fn insert(edits: &mut Vec<Edit>, edit: Edit) {
    let apart = |e: &Edit| e.range.end <= edit.range.start || edit.range.end <= e.range.start;
    if edits.iter().all(apart) {
        let place = edits.partition_point(|e| e.range.start < edit.range.start);
        edits.insert(place, edit);
    }
}

/// The edits that start at this token.
fn edits_at(sql: &str, tokens: &Tokens, at: usize) -> Vec<Edit> {
    let dot = |index: usize| tokens.kind(index) == Token::Ascii46;
    let behind = |token: Token| at > 0 && tokens.kind(at - 1) == token;
    if !tokens.is_name(at) || behind(Token::Ascii46) || behind(Token::As) {
        return Vec::new();
    }
    let name = |index: usize| identifier(sql.get(tokens.range(index)).unwrap_or_default());
    let (schema, last) = match dot(at + 1) {
        true => (Some(name(at)), at + 2),
        false => (None, at),
    };
    let range = tokens.range(at).start..tokens.range(last).end;
    let named = |text: &str| {
        let pieces = vec![Piece::Text(text.to_owned())];
        let range = range.clone();
        vec![Edit { range, pieces }]
    };
    match (schema.as_deref(), &*name(last)) {
        (None | Some("pg_catalog"), "pg_attribute") => named("confide.pg_attribute"),
        (None | Some("pg_catalog"), "pg_type") if has(sql, BASE) => named("confide.pg_type"),
        (Some("information_schema"), "columns") => named("confide.columns"),
        (None | Some("pg_catalog"), "pg_typeof") => called(tokens, last, range.start),
        _ => Vec::new(),
    }
}

/// A call of `pg_typeof` is wrapped in one that finds the plain counterpart.
fn called(tokens: &Tokens, name: usize, start: usize) -> Vec<Edit> {
    let open = (tokens.kind(name + 1) == Token::Ascii40).then_some(name + 1);
    let Some(close) = open.and_then(|open| tokens.closing(open)) else {
        return Vec::new();
    };
    let written = |at: usize, text: &str| Edit {
        range: at..at,
        pieces: vec![Piece::Text(text.to_owned())],
    };
    let end = tokens.range(close).end;
    vec![written(start, "confide.pg_typeof("), written(end, ")")]
}
