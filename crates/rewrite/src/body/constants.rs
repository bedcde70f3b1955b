//! Which constants a routine's body may have that names something protected: those that meet nothing
//! protected, for sure, which stay in the body as they are, and in the catalog, and those that can be
//! sealed (`sealed`).
//!
//! Each constant of the text must be in a piece that has been followed to its end, or be a message of
//! RAISE, an SQLSTATE or a type's modifier. Constants are counted: one that is in no piece, or in one
//! that nobody can follow (strings that are executed, arguments of cursors, WHEN behind `CASE x`),
//! refuses the routine. So does one that may have gone into a record, or into a variable that meets
//! something protected.
//!
//! A constant that is sealed somewhere is sealed wherever the text says it, or the routine is refused.
//!
//! Invariant: a row of a trigger may be of any table, so a field with the name of any protected
//! column is protected.

use super::definition::{definition, text_argument};
use super::sealed::{Sealed, is_exported};
use super::{Body, Variable, refuse_constants};
use crate::infer::{Meeting, Res};
use crate::later;
use crate::reach::{Reach, in_word};
use crate::relation::ColumnType;
use crate::schema::Schema;
use crate::scope::{Col, Cols, Entry};
use crate::statement::Prepared;
use crate::tokens::{Tokens, identifier};
use crate::value::Val;
use contract::TypeCode;
use pg_query::protobuf::Token;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// Types that can have modifiers, and that no function has the name of.
const MODIFIED: [&str; 11] = [
    "bit",
    "char",
    "character",
    "dec",
    "decimal",
    "float",
    "interval",
    "numeric",
    "time",
    "timestamp",
    "varchar",
];

/// What a trigger has besides its own variables.
const DECLARED: &str = "DECLARE new record; old record; tg_name text; tg_when text; tg_level text; \
    tg_op text; tg_relid oid; tg_relname text; tg_table_name text; tg_table_schema text; \
    tg_nargs int4; tg_argv text[];";

impl<'a> Body<'a> {
    /// The body of a trigger; none if it cannot be read. (What the parser makes of one that is called
    /// a trigger's is no JSON.)
    pub fn of_trigger(schema: &'a Schema, text: &str, meeting: Meeting) -> Option<Body<'a>> {
        let tokens = Tokens::scan(text).ok()?;
        let semicolon = |at: &usize| tokens.kind(*at) == Token::Ascii59;
        let last = (0..tokens.len()).rev().find(|at| !semicolon(at))?;
        let block = text.get(..tokens.range(last).end)?;
        let create = definition(
            &[],
            "RETURNS text",
            &format!("{DECLARED} BEGIN {block}; END"),
        )?;
        let mut body = Body::of_plpgsql(schema, &create, text, meeting)?;
        body.trigger = true;
        Some(body)
    }

    /// A body whose types the parser does not know (`RETURNS emp.name%TYPE`), with these arguments.
    pub fn of_unknown(
        schema: &'a Schema,
        arguments: &[Variable],
        text: &str,
        meeting: Meeting,
    ) -> Option<Body<'a>> {
        let arguments = arguments.iter().map(|a| text_argument(&a.name));
        let create = definition(&arguments.collect::<Vec<_>>(), "RETURNS text", text)?;
        Body::of_plpgsql(schema, &create, text, meeting)
    }

    /// Refuses the routine if a constant of its text meets something protected and cannot be sealed, or
    /// may meet it. To be called when the pieces have been looked at; `found` are the plain variables that
    /// meet something protected. Returns the constants to be sealed.
    pub(super) fn judge(&self, found: &BTreeSet<String>) -> Res<Sealed> {
        let refused = || Err(refuse_constants(-1));
        let tokens = Tokens::scan(&self.text)?;
        let mut left: HashMap<String, i64> = HashMap::new();
        for constant in constants(&self.text, &tokens) {
            *left.entry(constant).or_default() += 1;
        }
        let mut sealed = Sealed::default();
        if left.is_empty() {
            return Ok(sealed);
        }
        let said = left.clone();
        let carried = self.carried();
        for message in &self.messages {
            *left.entry(format!("'{message}")).or_default() -= 1;
        }
        for piece in &self.pieces {
            let Ok(tokens) = Tokens::scan(&piece.sql) else {
                continue;
            };
            let mine = constants(&piece.sql, &tokens);
            if mine.is_empty() || pg_query::parse(&piece.sql, 0).is_err() {
                continue;
            }
            let followed = self.follow(piece, &mut BTreeSet::new())?;
            let lost =
                followed.given && piece.flows && (self.keeps_anything() || !found.is_empty());
            let known = |t: &str| self.is_known(t) && !carried.contains(t);
            let target = piece.target.as_deref().is_none_or(known);
            if piece.loose || followed.meets || followed.unseen || lost || !target {
                return refused();
            }
            if !sealed.add(followed.sealed) {
                return refused();
            }
            if mine.iter().any(|constant| self.is_sql(constant)) {
                return refused();
            }
            for constant in mine {
                *left.entry(constant).or_default() -= 1;
            }
        }
        match sealed.says_all(&said) && left.values().all(|count| *count == 0) {
            true => Ok(sealed),
            false => refused(),
        }
    }

    /// A string that somebody may parse, and that names something protected.
    fn is_sql(&self, constant: &str) -> bool {
        let Some(text) = constant.strip_prefix('\'') else {
            return false;
        };
        let columns = self.schema.protected_columns();
        let lower = text.to_lowercase();
        let mut words = lower.split(|c| !in_word(c));
        later::may_be_sql(text)
            && (Reach::of(&[self.schema], &Prepared::default()).words(text)
                || words.any(|word| columns.contains(word)))
    }

    /// What is assigned to it goes nowhere else.
    fn is_known(&self, target: &str) -> bool {
        let variable = self.variables.iter().rev().find(|v| v.name == target);
        match variable {
            Some(variable) => variable.ty.is_some(),
            None => self.field_of_trigger(target).is_some(),
        }
    }

    /// There are variables that a statement may put something protected into, or whose fields may
    /// be anything.
    fn keeps_anything(&self) -> bool {
        let plain = |v: &Variable| v.ty.as_ref().is_some_and(|ty| !ty.protected());
        self.variables.iter().any(|v| !plain(v) && !self.is_row(v))
    }

    /// Plain variables whose values statements may put into such variables.
    fn carried(&self) -> BTreeSet<String> {
        let mut carried = BTreeSet::new();
        for _ in 0..=self.variables.len() {
            let before = carried.len();
            for piece in self.pieces.iter().filter(|_| self.keeps_anything()) {
                let target = piece
                    .target
                    .as_ref()
                    .filter(|t| !self.is_known(t) || carried.contains(*t));
                if !piece.flows && !piece.loose && target.is_none() {
                    continue;
                }
                match self.follow(piece, &mut BTreeSet::new()) {
                    Ok(followed) => carried.extend(followed.brought),
                    Err(_) => carried.extend(self.variables_in(piece)),
                }
            }
            if carried.len() == before {
                break;
            }
        }
        carried
    }

    /// It is NEW or OLD.
    pub(super) fn is_row(&self, variable: &Variable) -> bool {
        self.trigger && matches!(variable.name.as_str(), "new" | "old")
    }

    /// The name behind NEW or OLD.
    pub(super) fn field_of_trigger<'n>(&self, target: &'n str) -> Option<&'n str> {
        let (row, field) = target.split_once('.')?;
        (self.trigger && matches!(row, "new" | "old")).then_some(field)
    }

    /// A field of a row of any table, if it may be protected.
    pub(super) fn column_of_any(&self, name: &str) -> Option<Val> {
        if !self.schema.protected_columns().contains(name) {
            return None;
        }
        let columns = self.schema.protected_relations();
        let columns = columns.flat_map(|r| r.columns.iter().flatten());
        let types: Vec<&ColumnType> = columns
            .filter(|c| c.name == name && c.ty.protected())
            .map(|c| &c.ty)
            .collect();
        Some(match types.as_slice() {
            [ColumnType::Enc(code), rest @ ..] => {
                let same = rest.iter().all(|ty| **ty == ColumnType::Enc(*code));
                Val::enc(same.then_some(*code))
            }
            _ => Val::unknown(),
        })
    }

    /// NEW and OLD, which no query names.
    pub(super) fn rows_of_trigger(&self) -> Vec<Entry> {
        let names = self.schema.protected_columns();
        let column = |name: &&str| Col {
            name: (*name).to_owned(),
            val: self.column_of_any(name).unwrap_or_else(Val::unknown),
            own: false,
        };
        let cols = Rc::new(Cols {
            list: names.iter().map(column).collect(),
            open: Some(Val::plain(None)),
        });
        let row = |alias: &str| Entry {
            alias: alias.to_owned(),
            schema: None,
            cols: Rc::clone(&cols),
        };
        vec![row("new"), row("old")]
    }
}

/// The constants of a text, but for modifiers of types, SQLSTATEs and envelopes of constants: strings
/// as what they say.
fn constants(text: &str, tokens: &Tokens) -> Vec<String> {
    let all = (0..tokens.len()).filter(|at| is_constant(text, tokens, *at));
    all.map(|at| said(text, tokens, at)).collect()
}

pub(super) fn is_constant(text: &str, tokens: &Tokens, at: usize) -> bool {
    tokens.holds_value(at)
        && tokens.kind(at) != Token::Param
        && !is_modifier(text, tokens, at)
        && !is_sqlstate(text, tokens, at)
        && !is_exported(text, tokens, at)
}

/// What a constant says, by which it is known.
pub(super) fn said(text: &str, tokens: &Tokens, at: usize) -> String {
    let written = text.get(tokens.range(at)).unwrap_or_default();
    match tokens.kind(at) {
        Token::Sconst => format!("'{}", later::content(written)),
        _ => written.to_owned(),
    }
}

/// `numeric(10, 2)`: the number stands alone or second in parentheses behind a type's name.
fn is_modifier(text: &str, tokens: &Tokens, at: usize) -> bool {
    let back = |n: usize| at.checked_sub(n);
    let kind = |n: usize| back(n).map_or(Token::Nul, |at| tokens.kind(at));
    let name = match (kind(1), kind(2), kind(3)) {
        (Token::Ascii40, ..) => back(2),
        (Token::Ascii44, Token::Iconst, Token::Ascii40) => back(4),
        _ => None,
    };
    let Some(name) = name.filter(|_| tokens.kind(at) == Token::Iconst) else {
        return false;
    };
    let word = identifier(text.get(tokens.range(name)).unwrap_or_default());
    // Of protected types where nothing but a type can stand: there are functions of these names.
    let before = name.checked_sub(1).map_or(Token::Nul, |at| tokens.kind(at));
    let declared = matches!(before, Token::Ident | Token::Typecast);
    MODIFIED.contains(&word.as_ref())
        || tokens.kind(name) == Token::Varying
        || declared && TypeCode::from_protected_name(&word).is_some()
}

fn is_sqlstate(text: &str, tokens: &Tokens, at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| tokens.range(before));
    let before = before.and_then(|range| text.get(range)).unwrap_or_default();
    let code = later::content(text.get(tokens.range(at)).unwrap_or_default());
    before.eq_ignore_ascii_case("sqlstate")
        && code.len() == 5
        && code.bytes().all(|b| b.is_ascii_alphanumeric())
}
