//! Whether a text can reach anything protected: by its words alone.
//!
//! What the binder does not understand goes on to PostgreSQL, which says what is wrong with it, if
//! nothing protected can be reached by it: no word of it, also within its strings, is the name of a
//! protected relation, type or function, of something pinned, or begins as protected types do, and it
//! runs no prepared statement that meets something protected. Names are compared without their
//! schemas, so that the search path does not matter.
//!
//! Not found: what routines, triggers and rules do with values that they are given (see the crate's
//! description); that is so for statements that the binder understands, too.

use crate::schema::Schema;
use crate::statement::Prepared;
use crate::tokens::{Tokens, identifier};
use pg_query::protobuf::Token;
use std::cell::OnceCell;
use std::ops::Range;

/// Everything protected, by name: found in the snapshots when it is asked for, since most texts have
/// few words.
pub(crate) struct Reach<'s> {
    schemas: Vec<&'s Schema>,
    prepared: &'s Prepared,
    /// The names that consist of more than one word.
    odd: OnceCell<Vec<&'s str>>,
}

/// Whether the character can be part of a word.
pub(crate) fn in_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}

/// Beginnings of names of the extension's schema and types, of the words that make a ledger table and a
/// signed result, and of a name that may be written in escapes.
const OURS: [&str; 8] = [
    "confide",
    "enc_",
    "rnd_",
    "soft_",
    "ledger_",
    "tee",
    "signature",
    "u&",
];

/// Whether a text may be about the extension: it has the beginning of one of its names or words in it.
pub fn mentions_us(text: &str) -> bool {
    let begins = |at: usize| {
        let rest = text.as_bytes().get(at..).unwrap_or_default();
        let is = |name: &str| {
            let here = rest.get(..name.len());
            here.is_some_and(|here| here.eq_ignore_ascii_case(name.as_bytes()))
        };
        OURS.iter().any(|name| is(name))
    };
    let first = |b: u8| {
        OURS.iter()
            .any(|name| name.as_bytes().first() == Some(&(b | 0x20)))
    };
    let mut all = text.bytes().enumerate().filter(|(_, b)| first(*b));
    all.any(|(at, _)| begins(at))
}

impl<'s> Reach<'s> {
    /// Combines several snapshots: whatever is protected in any of them.
    pub fn of(schemas: &[&'s Schema], prepared: &'s Prepared) -> Reach<'s> {
        Reach {
            schemas: schemas.to_vec(),
            prepared,
            odd: OnceCell::new(),
        }
    }

    /// Whether these tokens can reach anything protected.
    pub fn tokens(&self, sql: &str, tokens: &Tokens, range: &Range<usize>) -> bool {
        (tokens.next_from(range.start)..tokens.next_from(range.end)).any(|at| {
            let text = &sql[tokens.range(at)];
            match tokens.kind(at) {
                // The token's text differs from its meaning.
                Token::Uident if tokens.kind(at + 1) == Token::Uescape => true,
                Token::Uident => unicode(text).is_none_or(|name| self.name(&name)),
                Token::Sconst | Token::Usconst => self.words(text),
                Token::Execute => self.executed(sql, tokens, at + 1),
                _ => tokens.is_name(at) && self.name(identifier(text).as_ref()),
            }
        })
    }

    /// Whether a text without tokens, or one in another language, can reach anything protected.
    pub fn words(&self, text: &str) -> bool {
        let named = |text: &str| text.split(|c| !in_word(c)).any(|word| self.name(word));
        named(text)
            || named(&text.to_ascii_lowercase())
            || self.odd().iter().any(|name| text.contains(*name))
    }

    fn odd(&self) -> &[&'s str] {
        self.odd.get_or_init(|| {
            let all = self.schemas.iter().flat_map(|s| s.protected_names());
            all.filter(|name| name.contains(|c| !in_word(c))).collect()
        })
    }

    fn name(&self, name: &str) -> bool {
        let families = ["enc_", "_enc_", "rnd_", "_rnd_", "soft_", "_soft_"];
        families.iter().any(|f| name.starts_with(f))
            || self.schemas.iter().any(|s| s.is_protected_name(name))
    }

    /// Handles `EXECUTE name`.
    fn executed(&self, sql: &str, tokens: &Tokens, at: usize) -> bool {
        if matches!(tokens.kind(at), Token::Function | Token::Procedure) {
            return false;
        }
        let name = identifier(&sql[tokens.range(at)]);
        match self.prepared.get(name.as_ref()) {
            Some(known) => known.touches_protected,
            // The PREPARE may have been in the body of a routine.
            None => self.schemas.iter().any(|s| s.protects_anything()),
        }
    }
}

/// Decodes `U&"..."`; `None` if it contains anything but numeric escapes.
fn unicode(token: &str) -> Option<String> {
    let quoted = token.get(2..)?.strip_prefix('"')?.strip_suffix('"')?;
    let mut parts = quoted.split('\\');
    let mut name = parts.next()?.to_owned();
    for part in parts {
        let (digits, rest) = match part.strip_prefix('+') {
            Some(long) => long.split_at_checked(6)?,
            None => part.split_at_checked(4)?,
        };
        name.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
        name.push_str(rest);
    }
    Some(name.replace("\"\"", "\""))
}
