//! Input errors as PostgreSQL reports them: with the value and its position, which the server does
//! not know. The result is only for the client and is not logged.
//!
//! Literals are checked first, since PostgreSQL reads them while parsing, then the portal's
//! parameters, then the data of a COPY. If it is uncertain which value caused the error, the
//! server's message is not changed.
use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use client::blame::Told;
use client::{Protected, copy};
use contract::{Code, TypeCode};

use super::Core;
use super::copy::Refused;
use super::queue::{Expect, Literals};
use super::statement::{Portal, Statement};
use crate::wire::{frame, frontend};

/// Messages shorter than this are copied.
const COPIED_MAX: usize = 16 * 1024;

type Fields<'a> = Vec<(u8, &'a [u8])>;

/// What the client sees instead of the server's message, position and CONTEXT.
pub(super) struct Explained {
    message: String,
    context: Option<String>,
    /// Set if PostgreSQL would report the error while reading the statement: at this position of
    /// its text, if any, and not where the server noticed it.
    place: Option<Option<String>>,
}

impl Explained {
    /// Returns the server's fields with these replacing the original ones.
    pub(super) fn fields<'a>(&'a self, fields: &[(u8, &'a [u8])]) -> Fields<'a> {
        let shown = |(tag, text): &(u8, &'a [u8])| match tag {
            b'M' => Some((*tag, self.message.as_bytes())),
            b'W' => None,
            b'P' | b'p' | b'q' if self.place.is_some() => None,
            _ => Some((*tag, *text)),
        };
        let position = self.place.as_ref().and_then(Option::as_ref);
        let more = [(b'W', self.context.as_ref()), (b'P', position)];
        let more = more
            .into_iter()
            .filter_map(|(tag, text)| Some((tag, text?.as_bytes())));
        fields.iter().filter_map(shown).chain(more).collect()
    }
}

impl Core {
    /// Returns a more precise description of an error from the server, if there is one.
    pub(super) fn explain(&self, fields: &[(u8, &[u8])]) -> Option<Explained> {
        let text = |tag: u8| {
            let (_, text) = fields.iter().find(|(t, _)| *t == tag)?;
            std::str::from_utf8(text).ok()
        };
        let context = text(b'W');
        let told = Told {
            sqlstate: text(b'C')?,
            code: Code::from_name(text(b'n').unwrap_or_default()),
            t: text(b'd').and_then(TypeCode::from_protected_name),
        };
        let input = told.sqlstate.starts_with("22");
        let of_values = || match self.queue.front()? {
            Expect::Query(state) => {
                let (message, list) = state.literals.as_ref()?;
                let at = list.len().checked_sub(state.effects.len())?;
                let sql = frontend::query_text(frame::body(message)).ok()?;
                self.literal(told, sql, list.get(at)?)
            }
            Expect::Parse(state) => self.of_statement(told, state.statement.as_ref()?),
            Expect::DescribeStatement { statement, .. } => {
                self.of_statement(told, statement.as_ref()?)
            }
            Expect::Bind(portal)
            | Expect::DescribePortal { portal, .. }
            | Expect::Execute { portal, .. } => {
                let portal = portal.as_ref()?;
                let statement = portal.statement.as_ref()?;
                self.of_statement(told, statement)
                    .or_else(|| self.parameter(told, portal))
            }
            _ => None,
        };
        let found = input.then(of_values).flatten();
        found.or_else(|| self.of_copy(told, text(b'M')?, context?))
    }

    fn of_statement(&self, told: Told<'_>, statement: &Arc<Statement>) -> Option<Explained> {
        let (sql, analysed) = (statement.sql.as_ref()?, statement.analysed.as_ref()?);
        let literals = Literals {
            range: analysed.range.clone(),
            edits: analysed.edits.clone(),
        };
        self.literal(told, sql, &literals)
    }

    fn literal(&self, told: Told<'_>, sql: &str, literals: &Literals) -> Option<Explained> {
        let (edits, env) = (&literals.edits, &self.session.env);
        let in_order = in_order(sql.get(literals.range.clone())?);
        let (at, message) = told.of_literals(edits, in_order, env)?;
        Some(Explained {
            message,
            context: None,
            place: Some(Some(rewrite::character_position(sql, at).to_string())),
        })
    }

    /// Finds the first parameter that fails with this error. PostgreSQL shows as much of it in the
    /// CONTEXT as `log_parameter_max_length_on_error` allows, which by default is nothing.
    fn parameter(&self, told: Told<'_>, portal: &Portal) -> Option<Explained> {
        let charset = self.charset_of_values();
        let oids = portal.statement.as_ref()?.params.get()?;
        let bind = frontend::Bind::read(frame::body(portal.bind.as_ref()?)).ok()?;
        bind.values.iter().enumerate().find_map(|(at, value)| {
            let Some(Protected::Scalar(code)) = self.session.types.get(*oids.get(at)?) else {
                return None;
            };
            let value = value.filter(|_| bind.format(at) == client::TEXT)?;
            let utf8 = charset.and_then(|charset| charset.decode(value).ok());
            let value = utf8.as_deref().unwrap_or(value);
            let message = told.of(code, -1, value, &self.session.env)?;
            let name: Cow<'_, str> = match bind.portal {
                "" => "unnamed portal".into(),
                name => format!("portal \"{name}\"").into(),
            };
            let dots = if value.is_empty() { "" } else { "..." };
            Some(Explained {
                message,
                place: Some(None),
                context: Some(format!("{name} parameter ${} = '{dots}'", at + 1)),
            })
        })
    }

    /// Explains an error that occurred while the server was reading the data of a COPY.
    fn of_copy(&self, told: Told<'_>, message: &str, context: &str) -> Option<Explained> {
        let Refused::Sealed(refused) = &self.copy_refused else {
            return None;
        };
        let of_value = |r: &copy::Refused| r.explain(told, context, &self.session.env);
        let shortened = || Some((message.to_owned(), copy::without_data(context)?));
        let (message, context) = refused.as_ref().and_then(of_value).or_else(shortened)?;
        Some(Explained {
            message,
            context: Some(context),
            place: None,
        })
    }
}

/// Whether a field of an error says to the proxy what was wrong with a value. PostgreSQL names no
/// constraint and no type where it cannot read one.
pub(super) fn is_for_us(field: u8, text: &[u8]) -> bool {
    let text = std::str::from_utf8(text).unwrap_or_default();
    match field {
        b'n' => matches!(
            Code::from_name(text),
            Code::InvalidText | Code::OutOfRange | Code::InvalidDigit
        ),
        b'd' => TypeCode::from_protected_name(text).is_some(),
        _ => false,
    }
}

/// Keeps the client's message for inspection in case of an error. A long one is not copied,
/// although it keeps its whole buffer allocated.
pub(super) fn kept(message: &Bytes) -> Bytes {
    match message.len() {
        0..COPIED_MAX => Bytes::copy_from_slice(message),
        _ => message.clone(),
    }
}

/// Whether PostgreSQL reads the literals of this statement from left to right, as in the rows of
/// VALUES.
fn in_order(statement: &str) -> bool {
    let begins = |word: &str| {
        let begin = statement.get(..word.len());
        begin.is_some_and(|t| t.eq_ignore_ascii_case(word))
    };
    let has = |word: &str| {
        let mut windows = statement.as_bytes().windows(word.len());
        windows.any(|w| w.eq_ignore_ascii_case(word.as_bytes()))
    };
    begins("insert") && !has("select") && !has("conflict")
}
