//! Grants: what a client's statement may do with protected values (docs/security.md).
//!
//! The binder (crate `rewrite`) derives a grant from a statement's text, the client seals
//! it under the session's key, the database carries it, and the keeper refuses what no
//! grant of the session covers.
//!
//! Here: what a grant is, and its bytes; the same for restore tickets. Not here: keys, how it is derived, and when it
//! counts.
//!
//! Invariants: no bytes make this crate panic; equal grants have equal bytes, so that
//! bytes can name a grant; what decodes is what was encoded, with nothing left over.
#![forbid(unsafe_code)]

mod codec;
mod lease;
mod policy;
mod ticket;

use std::collections::{BTreeMap, BTreeSet};

pub use codec::Malformed;
pub use lease::Lease;
pub use policy::{Command, GROUP, Verb};
pub use ticket::{NUMBER_BYTES, Place, Ticket};

/// Where the values of an operation may come from besides columns.
pub mod origin {
    /// The client: literals, parameters, COPY, constants that clients put into definitions.
    pub const CLIENT: u8 = 1;
    /// The database: plain values that were cast to a protected type.
    pub const PLAIN: u8 = 2;
    /// Envelopes that the keeper gave out before: from a dump, or from this session.
    pub const EXPORT: u8 = 4;
    /// All of these.
    pub const ALL: u8 = CLIENT | PLAIN | EXPORT;
}

/// What may be done with values. `&'static str` names are in [`family::name`].
pub mod family {
    /// Equality, order, hash, rank, token, truth: all that is declassified but patterns.
    pub const COMPARE: u8 = 1;
    /// LIKE and its relatives.
    pub const PATTERN: u8 = 2;
    /// Arithmetic, functions of text and of time.
    pub const COMPUTE: u8 = 4;
    /// Casts, and modifiers such as a length or a precision.
    pub const CAST: u8 = 8;
    /// Aggregates.
    pub const AGGREGATE: u8 = 16;
    /// Envelopes for the client.
    pub const SHOW: u8 = 32;
    /// Envelopes for messages to the client, which are not where the statement expects values.
    pub const QUOTE: u8 = 64;
    /// All of these.
    pub const ALL: u8 = COMPARE | PATTERN | COMPUTE | CAST | AGGREGATE | SHOW | QUOTE;

    /// What an error calls the first of these families.
    #[must_use]
    pub fn name(families: u8) -> &'static str {
        match families & families.wrapping_neg() {
            COMPARE => "compare",
            PATTERN => "match",
            COMPUTE => "compute with",
            CAST => "cast",
            AGGREGATE => "aggregate",
            SHOW => "show",
            QUOTE => "quote",
            _ => "use",
        }
    }
}

/// A column, by its names. Temporary tables are in the schema `pg_temp`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Column {
    /// Schema of the relation.
    pub schema: String,
    /// Table or view.
    pub relation: String,
    /// Column.
    pub column: String,
}

impl Column {
    /// A column by its names.
    #[must_use]
    pub fn new(schema: &str, relation: &str, column: &str) -> Column {
        let temporary = schema.starts_with("pg_temp");
        Column {
            schema: if temporary { "pg_temp" } else { schema }.to_owned(),
            relation: relation.to_owned(),
            column: column.to_owned(),
        }
    }

    /// Its identity in the keeper and in envelopes.
    #[must_use]
    pub fn id(&self) -> [u8; 16] {
        let mut text = Vec::new();
        for name in [&self.schema, &self.relation, &self.column] {
            text.extend_from_slice(name.as_bytes());
            text.push(0);
        }
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &text);
        digest.as_ref().first_chunk().copied().unwrap_or_default()
    }
}

impl std::fmt::Display for Column {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.schema, self.relation, self.column)
    }
}

/// Columns that may meet each other, and what may be done with them and what was made of
/// them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Entry {
    /// It holds for good and for all sessions: of a definition that the client made.
    pub standing: bool,
    /// What else may take part ([`origin`]).
    pub origins: u8,
    /// What may be done ([`family`]).
    pub families: u8,
    /// The columns that may be read.
    pub reads: BTreeSet<Column>,
    /// The columns that such values may be stored in.
    pub writes: BTreeSet<Column>,
}

impl std::fmt::Display for Entry {
    /// For people.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let listed = |columns: &BTreeSet<Column>| {
            let names: Vec<String> = columns.iter().map(ToString::to_string).collect();
            names.join(", ")
        };
        let families = (0..8)
            .map(|bit| 1 << bit)
            .filter(|b| self.families & b != 0);
        let names: Vec<&str> = families.map(family::name).collect();
        write!(
            f,
            "reads ({}) writes ({})",
            listed(&self.reads),
            listed(&self.writes)
        )?;
        write!(f, " may ({})", names.join(", "))?;
        for (bit, name) in [
            (origin::CLIENT, "constants"),
            (origin::PLAIN, "plain values"),
            (origin::EXPORT, "envelopes"),
        ] {
            if self.origins & bit != 0 {
                write!(f, " with {name}")?;
            }
        }
        Ok(())
    }
}

/// What a statement may do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Grant {
    /// Each operation must be covered by one of these.
    pub entries: Vec<Entry>,
    /// Columns by other names: who may use the first may use the others. For good, as what a
    /// standing entry allows: of a view's columns, and of what was renamed.
    pub aliases: BTreeMap<Column, BTreeSet<Column>>,
    /// Columns of a table that the statement creates: whose they are is the keeper's to say.
    pub creates: BTreeSet<Column>,
    /// Columns that it creates for its client, or not at all (`SECRET`).
    pub claims: BTreeSet<Column>,
}

impl std::fmt::Display for Grant {
    /// For people.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let entries = self.entries.iter().map(ToString::to_string);
        let also = |(column, names): (&Column, &BTreeSet<Column>)| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            format!("{column} is also {}", names.join(", "))
        };
        let all: Vec<String> = entries.chain(self.aliases.iter().map(also)).collect();
        f.write_str(&all.join("; "))
    }
}

impl Grant {
    /// Whether it allows nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.aliases.is_empty()
    }

    /// Takes in what another statement of the same text may do.
    pub fn extend(&mut self, other: &Grant) {
        for entry in &other.entries {
            if !self.entries.contains(entry) {
                self.entries.push(entry.clone());
            }
        }
        self.creates.extend(other.creates.iter().cloned());
        self.claims.extend(other.claims.iter().cloned());
        for (column, of) in &other.aliases {
            let all = self.aliases.entry(column.clone()).or_default();
            all.extend(of.iter().cloned());
        }
    }

    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// The grant with these bytes.
    pub fn decode(bytes: &[u8]) -> Result<Grant, Malformed> {
        codec::decode(bytes)
    }
}
