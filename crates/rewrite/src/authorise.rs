//! `SELECT confide.authorise('CREATE VIEW ...')`: grants what the definition in the literal needs,
//! as if the client created it now (docs/security.md). Meant for existing definitions: those of a
//! superuser, of a dump restored without a client, or from the time before grants.
//!
//! The literal itself stays with the client; the server gets the number of entries.
//!
//! Invariant: only definitions are authorised; permissions of other statements end with the
//! session.

use crate::analysis::Analysis;
use crate::edit::{Edit, Piece};
use crate::refusal::Refusal;
use crate::tokens::Tokens;
use grant::Grant;
use pg_query::NodeEnum;
use pg_query::protobuf::{Token, a_const};
use std::ops::Range;
use std::sync::Arc;

/// A text of this form.
pub(crate) struct Authorise {
    range: Range<usize>,
    literal: Range<usize>,
    /// The contents of the literal.
    pub definition: String,
}

impl Authorise {
    /// Recognises the call if it is the whole text.
    pub fn of(sql: &str, tokens: &Tokens) -> Option<Authorise> {
        let mut count = tokens.len();
        while count > 0 && tokens.kind(count - 1) == Token::Ascii59 {
            count -= 1;
        }
        let says = |at: usize, word: &str| {
            let said = sql.get(tokens.range(at));
            said.is_some_and(|said| said.eq_ignore_ascii_case(word))
        };
        let words = ["select", "confide", ".", "authorise", "("];
        let called = count == words.len() + 2
            && (0..).zip(words).all(|(at, word)| says(at, word))
            && tokens.kind(words.len()) == Token::Sconst
            && tokens.kind(words.len() + 1) == Token::Ascii41;
        if !called {
            return None;
        }
        Some(Authorise {
            range: tokens.range(0).start..tokens.range(count - 1).end,
            literal: tokens.range(words.len()),
            definition: literal(sql)?,
        })
    }

    /// The call in the form sent to the server, with the grant of the definition.
    pub fn analysis(&self, grant: Result<Grant, Refusal>) -> Result<Vec<Analysis>, Refusal> {
        let grant = grant.map_err(|refusal| {
            // Its positions refer to the definition, not to this text.
            Refusal {
                position: None,
                ..refusal
            }
        })?;
        let mut one = Analysis::of_select(self.range.clone());
        let text = grant.entries.len().to_string();
        one.statement.edits.push(Edit {
            range: self.literal.clone(),
            pieces: vec![Piece::Text(text)],
        });
        one.statement.touches_protected = true;
        one.statement.grant = (!grant.is_empty()).then(|| Arc::from(grant.encode()));
        Ok(vec![one])
    }
}

/// The only argument of the only call.
fn literal(sql: &str) -> Option<String> {
    let parsed = pg_query::parse(sql, 0).ok()?;
    let select = match parsed
        .protobuf
        .stmts
        .first()?
        .stmt
        .as_ref()?
        .node
        .as_ref()?
    {
        NodeEnum::SelectStmt(select) => select,
        _ => return None,
    };
    let call = match select.target_list.first()?.node.as_ref()? {
        NodeEnum::ResTarget(target) => target.val.as_ref()?.node.as_ref()?,
        _ => return None,
    };
    let argument = match call {
        NodeEnum::FuncCall(call) => call.args.first()?.node.as_ref()?,
        _ => return None,
    };
    match argument {
        NodeEnum::AConst(constant) => match constant.val.as_ref()? {
            a_const::Val::Sval(text) => Some(text.sval.clone()),
            _ => None,
        },
        _ => None,
    }
}
