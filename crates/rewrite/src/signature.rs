//! `SELECT ... WITH SIGNATURE ['nonce']` (SecuDB, section 3.4.2): the statement without these words
//! is analysed like any other, and then becomes an argument of `confide.signed_result`, which
//! returns a single protected text.
//!
//! What the keeper signs as the statement's shape, and the nonce, are sent to it in envelopes, so
//! the database cannot choose them.
//!
//! `SELECT FROM t WITH SIGNATURE`, as written in the paper, means all columns, because a result
//! without columns would contain nothing to sign.
//!
//! Invariant: the words are removed only at the end of a text that is a single SELECT without
//! parameters; any other text with them is refused.

use crate::analysis::Analysis;
use crate::edit::{Edit, Form, Piece, Secret};
use crate::refusal::Refusal;
use crate::statement::StatementKind;
use crate::tokens::Tokens;
use contract::TypeCode;
use grant::{Entry, Grant, family, origin};
use pg_query::protobuf::Token;
use std::ops::Range;
use std::sync::Arc;

/// These words at the end of a text.
pub(crate) struct Signature {
    /// Their range.
    clause: Range<usize>,
    /// Range of the nonce's literal, if there is one.
    nonce: Option<Range<usize>>,
    /// The blank after the SELECT of `SELECT FROM t`, where a star is inserted.
    star: Option<Range<usize>>,
    /// The text with blanks in their place, so that positions do not change.
    pub plain: String,
}

impl Signature {
    /// Finds the words if the text ends with them.
    pub fn of(sql: &str, tokens: &Tokens) -> Option<Signature> {
        let mut last = tokens.len().checked_sub(1)?;
        while tokens.kind(last) == Token::Ascii59 {
            last = last.checked_sub(1)?;
        }
        let nonce = (tokens.kind(last) == Token::Sconst).then(|| tokens.range(last));
        let name = last.checked_sub(usize::from(nonce.is_some()))?;
        let with = name.checked_sub(1)?;
        let says = |at: usize, word: &str| {
            let said = sql.get(tokens.range(at));
            said.is_some_and(|said| said.eq_ignore_ascii_case(word))
        };
        if !says(name, "signature") || !says(with, "with") {
            return None;
        }
        let clause = tokens.range(with).start..tokens.range(last).end;
        let mut plain = sql.get(..clause.start)?.to_owned();
        plain.extend(std::iter::repeat_n(' ', clause.len()));
        plain.push_str(sql.get(clause.end..)?);
        let star = (says(0, "select") && says(1, "from")).then(|| tokens.range(0).end);
        let star = star.filter(|at| {
            plain
                .as_bytes()
                .get(*at)
                .is_some_and(u8::is_ascii_whitespace)
        });
        let star = star.map(|at| at..at + 1);
        if let Some(star) = &star {
            plain.replace_range(star.clone(), "*");
        }
        Some(Signature {
            clause,
            nonce,
            star,
            plain,
        })
    }

    /// The analysis of the plain text, wrapped in the call.
    pub fn wrap(&self, sql: &str, mut list: Vec<Analysis>) -> Result<Vec<Analysis>, Refusal> {
        let at = i32::try_from(self.clause.start).unwrap_or(-1);
        let [analysis] = list.as_mut_slice() else {
            return Err(unsupported("one statement at a time").at(at));
        };
        let statement = &mut analysis.statement;
        if statement.kind != StatementKind::Select || statement.changes_schema {
            return Err(unsupported("SELECT").at(at));
        }
        if !statement.params.is_empty() {
            return Err(unsupported("statements without parameters")
                .hint("Write the values into the statement.")
                .at(at));
        }
        let tag = tag(sql);
        let shape = shape(&self.plain)?;
        // Of another text with this shape, the shape that is signed may still be another one.
        analysis.unique = tag != TAG || self.with_others(&analysis.free).as_ref() != Some(&shape);
        analysis.absent = Some(TAG);
        analysis.free.extend(self.nonce.clone());
        let start = statement.range.start;
        statement.edits.insert(
            0,
            Edit {
                range: start..start,
                pieces: vec![Piece::Text(format!("SELECT confide.signed_result({tag}"))],
            },
        );
        if let Some(star) = &self.star {
            statement.edits.insert(
                1,
                Edit {
                    range: star.clone(),
                    pieces: vec![Piece::Text("*".into())],
                },
            );
        }
        let nonce_at = self.nonce.clone();
        let nonce_at = nonce_at.unwrap_or(self.clause.end..self.clause.end);
        statement.edits.push(Edit {
            range: self.clause.start..nonce_at.start,
            pieces: vec![
                Piece::Text(format!("{tag}, ")),
                self.secret(Form::Text(shape.into_bytes(), Some(TypeCode::Text))),
                Piece::Text("::pg_catalog.enc_text, ".into()),
            ],
        });
        statement.edits.push(Edit {
            range: nonce_at,
            pieces: vec![
                self.secret(Form::Bytes(self.nonce(sql)?.into_bytes())),
                Piece::Text("::pg_catalog.enc_bytea) AS signed_result".into()),
            ],
        });
        statement.range.end = self.clause.end;
        statement.results = Some(vec![true]);
        statement.touches_protected = true;
        statement.grant = Some(shown(statement.grant.as_deref()));
        Ok(list)
    }

    fn secret(&self, form: Form) -> Piece {
        let meets = match form {
            Form::Bytes(_) => TypeCode::Bytea,
            _ => TypeCode::Text,
        };
        Piece::Envelope(Secret {
            form,
            position: self.clause.start,
            meets: Some(meets),
            fits: None,
        })
    }

    /// The shape of the text with other literals in place of those whose values do not matter.
    fn with_others(&self, free: &[Range<usize>]) -> Option<String> {
        let mut text = self.plain.clone();
        let mut free = free.to_vec();
        free.sort_by_key(|range| std::cmp::Reverse(range.start));
        free.dedup();
        for range in free {
            let other = match text.get(range.clone())?.ends_with('\'') {
                true => "'another'",
                false => "2147483",
            };
            text.replace_range(range, other);
        }
        shape(&text).ok()
    }

    /// The nonce, without quotes.
    fn nonce(&self, sql: &str) -> Result<String, Refusal> {
        let Some(range) = self.nonce.clone() else {
            return Ok(String::new());
        };
        let quoted = sql.get(range.clone()).unwrap_or_default();
        let simple = quoted.strip_prefix('\'').and_then(|q| q.strip_suffix('\''));
        let text = simple.ok_or_else(|| {
            let at = i32::try_from(range.start).unwrap_or(-1);
            unsupported("a nonce in simple quotes").at(at)
        })?;
        Ok(text.replace("''", "'"))
    }
}

/// A statement without its constants.
fn shape(plain: &str) -> Result<String, Refusal> {
    let shape = pg_query::normalize(plain.trim());
    let shape = shape.map_err(|_| unsupported("statements that have a shape"))?;
    Ok(shape.trim_end_matches([';', ' ']).to_owned())
}

/// The statement's grant, extended to show its shape and the nonce: these are constants of the
/// client, and the result is computed from them.
fn shown(grant: Option<&[u8]>) -> Arc<[u8]> {
    let grant = grant.and_then(|bytes| Grant::decode(bytes).ok());
    let mut grant = grant.unwrap_or_default();
    if !grant.entries.iter().any(|entry| !entry.standing) {
        grant.entries.push(Entry::default());
    }
    for entry in grant.entries.iter_mut().filter(|entry| !entry.standing) {
        entry.origins |= origin::CLIENT;
        entry.families |= family::SHOW;
    }
    Arc::from(grant.encode())
}

/// The dollar quote of most texts.
const TAG: &str = "$signed$";

/// A dollar quote that does not occur in the text.
fn tag(sql: &str) -> String {
    let mut tag = String::from(TAG);
    let mut number = 0;
    while sql.contains(&tag) {
        number += 1;
        tag = format!("$signed{number}$");
    }
    tag
}

fn unsupported(what: &str) -> Refusal {
    Refusal::unsupported(format!("confide: WITH SIGNATURE is for {what}"))
}
