//! Strings that are parsed as SQL later: arguments of `query_to_xml`, of `dblink`, and of functions
//! that `EXECUTE` them. No envelope can be inserted into one, since it may be stored.
//!
//! A string is analysed as if it were sent as a statement: if a constant in it would be sealed, or
//! if that cannot be determined, the string is not sent. Prose is not taken for SQL.
//!
//! So are the strings that may result when a statement composes several (`composed`).

mod composed;

use crate::edit::Piece;
use crate::reach::Reach;
use crate::refusal::Refusal;
use crate::schema::Schema;
use crate::statement::{Prepared, Statement};
use crate::tokens::{Tokens, identifier};
use pg_query::protobuf::Token;
use std::ops::Range;

/// The words with which a statement with constants can begin.
const FIRST_WORDS: [&str; 19] = [
    "alter", "analyze", "begin", "call", "copy", "create", "declare", "delete", "do", "execute",
    "explain", "insert", "merge", "prepare", "select", "start", "update", "values", "with",
];

/// Analyses a text as if it were sent.
pub(crate) type Analyze = fn(&str, &Schema) -> Result<Vec<Statement>, Refusal>;

/// Refuses constants of the statement in this byte range that are sent in the clear and are SQL
/// with constants that must not be.
pub(crate) fn check(
    sql: &str,
    tokens: &Tokens,
    range: &Range<usize>,
    sealed: impl Fn(&Range<usize>) -> bool,
    schema: &Schema,
    analyze: Analyze,
) -> Result<(), Refusal> {
    let strings = tokens
        .values(range)
        .filter(|(token, r)| matches!(token, Token::Sconst | Token::Usconst) && !sealed(r));
    let strings: Vec<Range<usize>> = strings.map(|(_, r)| r).collect();
    for r in &strings {
        if hides_secrets(&content(&sql[r.clone()]), schema, analyze) {
            return Err(refusal(i32::try_from(r.start).unwrap_or(-1)));
        }
    }
    for (text, r) in composed::put_together(sql, tokens, range, &strings) {
        if hides_secrets(&text, schema, analyze) {
            return Err(refusal(i32::try_from(r.start).unwrap_or(-1)));
        }
    }
    Ok(())
}

fn refusal(at: i32) -> Refusal {
    Refusal::unsupported("a string holds SQL that names something protected, with constants in it")
        .at(at)
        .detail("Whatever parses it later would get the constants in the clear.")
        .hint("Send the statement itself, or pass the values as arguments of protected types.")
        .for_good()
}

/// Whether the text is SQL that must not be sent to the server as a value.
pub(crate) fn hides_secrets(text: &str, schema: &Schema, analyze: Analyze) -> bool {
    may_be_sql(text)
        && match pg_query::parse(text, 0) {
            Ok(_) => must_not_leave(text, schema, analyze),
            Err(_) => expression(text, schema),
        }
}

fn trimmed(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '(' | ';'))
}

/// Whether it begins as a statement with constants does.
fn begins(text: &str) -> bool {
    let word = trimmed(text).split(|c: char| !c.is_ascii_alphabetic());
    let word = word.into_iter().next().unwrap_or_default();
    FIRST_WORDS.iter().any(|w| w.eq_ignore_ascii_case(word))
}

/// Whether a closer examination is necessary.
pub(crate) fn may_be_sql(text: &str) -> bool {
    let text = trimmed(text);
    let constant = |c: char| c.is_ascii_digit() || matches!(c, '\'' | '$' | '"');
    (begins(text) && text.contains(constant))
        || (text.contains('\'') && text.contains(['=', '<', '>', '(', '~', 'L', 'l']))
        || text.starts_with("--")
        || text.starts_with("/*")
        || ["enc_", "ENC_", "rnd_", "RND_", "soft_", "SOFT_"]
            .iter()
            .any(|f| text.contains(f))
}

/// Whether the text, as a statement, contains a constant that would or might have to be sealed.
fn must_not_leave(text: &str, schema: &Schema, analyze: Analyze) -> bool {
    match analyze(text, schema) {
        Ok(list) => list.iter().flat_map(|s| &s.edits).any(|edit| {
            let sealed = |piece: &Piece| matches!(piece, Piece::Envelope(_));
            edit.pieces.iter().any(sealed)
        }),
        Err(refusal) if refusal.certain => true,
        Err(refusal) if matches!(refusal.sqlstate, "42601" | "22021") => false,
        Err(_) => constants_beside(text, |tokens| names_protected(text, tokens, schema)),
    }
}

/// Whether the text, as an expression (a condition to be appended after WHERE), contains a constant
/// as well as the name of something protected.
fn expression(text: &str, schema: &Schema) -> bool {
    let query = format!("SELECT ({text}\n)");
    if pg_query::parse(&query, 0).is_err() {
        return false;
    }
    let columns = schema.protected_columns();
    constants_beside(&query, |tokens| {
        let names = (0..tokens.len()).filter(|index| tokens.is_name(*index));
        let named = |index| columns.contains(identifier(&query[tokens.range(index)]).as_ref());
        names_protected(&query, tokens, schema) || names.into_iter().any(named)
    })
}

fn names_protected(text: &str, tokens: &Tokens, schema: &Schema) -> bool {
    Reach::of(&[schema], &Prepared::default()).tokens(text, tokens, &(0..text.len()))
}

fn constants_beside(text: &str, protected: impl Fn(&Tokens) -> bool) -> bool {
    let Ok(tokens) = Tokens::scan(text) else {
        return false;
    };
    let constant = tokens
        .values(&(0..text.len()))
        .any(|(token, _)| token != Token::Param);
    constant && protected(&tokens)
}

/// The contents of a string literal, as far as they matter here.
pub(crate) fn content(literal: &str) -> String {
    if let Some(tag) = literal.strip_prefix('$').and_then(|rest| rest.find('$')) {
        let tag = tag + 2;
        let inner = literal.get(tag..literal.len().saturating_sub(tag));
        return inner.unwrap_or_default().to_owned();
    }
    let open = literal.find('\'').map_or(0, |at| at + 1);
    let inner = literal
        .get(open..literal.len().saturating_sub(1))
        .unwrap_or_default();
    let inner = inner.replace("\'\'", "\'");
    match literal.starts_with(['e', 'E']) {
        true => inner.replace("\\\'", "\'").replace("\\n", "\n"),
        false => inner,
    }
}
