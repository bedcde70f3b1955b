//! `CREATE TABLE ... IMMUTABLE YES WITH TYPE TEE` (SecuDB, section 3.4.2): these words are replaced
//! by `WITH (confide.ledger = on)`, which the extension understands.
//!
//! Invariant: the words are replaced only at the end of a text whose last statement changes the
//! schema; PostgreSQL reports what is wrong with any other text.

use crate::analysis::Analysis;
use crate::edit::{Edit, Piece};
use crate::tokens::Tokens;
use pg_query::protobuf::Token;
use std::ops::Range;

const WORDS: [&str; 5] = ["immutable", "yes", "with", "type", "tee"];

/// These words at the end of a text.
pub(crate) struct Immutable {
    clause: Range<usize>,
    /// The text with blanks in their place, so that positions do not change.
    pub plain: String,
}

impl Immutable {
    /// Finds the words if the text ends with them.
    pub fn of(sql: &str, tokens: &Tokens) -> Option<Immutable> {
        let mut last = tokens.len().checked_sub(1)?;
        while tokens.kind(last) == Token::Ascii59 {
            last = last.checked_sub(1)?;
        }
        let first = (last + 1).checked_sub(WORDS.len())?;
        let said = |(at, word): (usize, &&str)| {
            let said = sql.get(tokens.range(first + at));
            said.is_some_and(|said| said.eq_ignore_ascii_case(word))
        };
        if !WORDS.iter().enumerate().all(said) {
            return None;
        }
        let clause = tokens.range(first).start..tokens.range(last).end;
        let mut plain = sql.get(..clause.start)?.to_owned();
        plain.extend(std::iter::repeat_n(' ', clause.len()));
        plain.push_str(sql.get(clause.end..)?);
        Some(Immutable { clause, plain })
    }

    /// The analysis of the plain text, with the option in place of the words.
    pub fn replace(&self, mut list: Vec<Analysis>) -> Vec<Analysis> {
        let last = list.last_mut().filter(|last| last.statement.changes_schema);
        if let Some(analysis) = last {
            analysis.unique = true;
            let statement = &mut analysis.statement;
            statement.edits.push(Edit {
                range: self.clause.clone(),
                pieces: vec![Piece::Text("WITH (confide.ledger = on)".into())],
            });
            statement.range.end = self.clause.end;
        }
        list
    }
}
