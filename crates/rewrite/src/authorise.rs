//! `SELECT confide.authorise('CREATE VIEW …')`: what the definition in the literal says stands,
//! as if the client made it now (docs/security.md). For definitions that are there already: of
//! a superuser, of a dump that was restored without a client, of a time without grants.
//!
//! The literal itself stays with the client: the server gets the number of entries.
//!
//! Invariant: nothing but definitions is authorised; what a statement of another kind may do
//! ends with the session.

use crate::analysis::Analysis;
use crate::analyze::authorised;
use crate::edit::{Edit, Piece};
use crate::refusal::Refusal;
use crate::schema::Schema;
use crate::tokens::Tokens;
use pg_query::NodeEnum;
use pg_query::protobuf::{Token, a_const};
use std::ops::Range;
use std::sync::Arc;

/// A text of this form.
pub(crate) struct Authorise {
    range: Range<usize>,
    literal: Range<usize>,
    definition: String,
}

impl Authorise {
    /// The call, if the text is one and nothing else.
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

    /// The call as the server gets it, with the grant of the definition.
    pub fn analysis(&self, schema: &Schema) -> Result<Vec<Analysis>, Refusal> {
        let grant = authorised(&self.definition, schema).map_err(|refusal| {
            // Its places are those of the definition, not of this text.
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

/// What the only argument of the only call says.
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
