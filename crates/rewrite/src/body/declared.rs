//! Variables of types that PL/pgSQL's parser does not know, found from the tokens of the body.
//!
//! The parser knows only PostgreSQL's own types: it takes variables of protected types and of domains for
//! records, and drops their defaults.
//!
//! Invariant: a variable has a type here only if each of its declarations has that type.

use super::{Body, Piece, Variable};
use crate::relation::ColumnType;
use crate::tokens::{Tokens, identifier};
use contract::TypeCode;
use pg_query::protobuf::Token;
use std::borrow::Cow;

/// A declaration, by its tokens: those of the name and of the type.
struct Declaration {
    name: String,
    ty: ColumnType,
    at: usize,
}

impl Body<'_> {
    /// Adds them, and what their defaults assign.
    pub(super) fn declared(&mut self, text: &str) {
        let Ok(tokens) = Tokens::scan(text) else {
            return;
        };
        let found: Vec<Declaration> = (1..tokens.len())
            .filter_map(|at| self.declaration(text, &tokens, at))
            .collect();
        for one in &found {
            let alike = found.iter().filter(|d| d.name == one.name);
            if alike.clone().any(|d| d.ty != one.ty) {
                continue;
            }
            let records = self.variables.iter().filter(|v| v.name == one.name);
            let plain = !one.ty.protected();
            if plain && records.filter(|v| v.ty.is_none()).count() > alike.count() {
                continue;
            }
            self.variables.retain(|v| v.name != one.name);
            self.variables.push(Variable {
                name: one.name.clone(),
                ty: Some(one.ty.clone()),
                argument: false,
            });
            self.pieces.extend(default(text, &tokens, one));
        }
    }

    /// The declaration whose type is this token.
    fn declaration(&self, text: &str, tokens: &Tokens, at: usize) -> Option<Declaration> {
        let protected = TypeCode::from_protected_name(&word(text, tokens, at));
        let ty = match protected {
            Some(code) => ColumnType::Enc(code),
            None => self.schema.scalar_type(&word(text, tokens, at))?,
        };
        let constant =
            tokens.kind(at - 1) == Token::Ident && word(text, tokens, at - 1) == "constant";
        let name = at.checked_sub(if constant { 2 } else { 1 })?;
        let starts = || {
            let before = name.checked_sub(1)?;
            let declare = word(text, tokens, before) == "declare";
            (declare || tokens.kind(before) == Token::Ascii59).then_some(())
        };
        if protected.is_none() {
            starts()?;
        }
        tokens.is_name(name).then(|| Declaration {
            name: word(text, tokens, name).into_owned(),
            ty,
            at,
        })
    }
}

fn word<'t>(text: &'t str, tokens: &Tokens, at: usize) -> Cow<'t, str> {
    identifier(text.get(tokens.range(at)).unwrap_or_default())
}

/// What a declaration assigns.
fn default(text: &str, tokens: &Tokens, declaration: &Declaration) -> Option<Piece> {
    let rest = declaration.at + 1..tokens.len();
    let end = rest.clone().find(|i| tokens.kind(*i) == Token::Ascii59)?;
    let given = |i: &usize| {
        let kind = tokens.kind(*i);
        matches!(kind, Token::ColonEquals | Token::Ascii61 | Token::Default)
    };
    let start = rest.clone().find(given).filter(|start| *start < end)?;
    let expr = text.get(tokens.range(start).end..tokens.range(end).start)?;
    Some(Piece {
        sql: format!("SELECT {expr}"),
        target: Some(declaration.name.clone()),
        ..Piece::default()
    })
}
