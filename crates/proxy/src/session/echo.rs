//! Parameters whose values equal that of a sealed parameter.
//!
//! Drivers without named parameters send `note = $1 OR name = $2` with the same value twice.
//! Equality of the values is known only at Bind; then the statement is prepared again with the
//! plain parameter sealed as well, and stays that way.
//!
//! Invariant: a string that is only compared is not sent both plain and sealed in the parameters of
//! one Bind.
use std::collections::HashSet;

use contract::TypeCode;
use rewrite::{Piece, key};

use super::Core;
use super::statement::Statement;

/// PostgreSQL's OIDs of `text`, `varchar`, `bpchar`, `name`, `unknown`.
const STRINGS: [u32; 5] = [
    TypeCode::Text.plain_oid(),
    TypeCode::Varchar.plain_oid(),
    TypeCode::Bpchar.plain_oid(),
    19,
    705,
];

impl Core {
    /// Returns the numbers of the parameters that must also be sealed.
    pub(super) fn echoes(
        &self,
        values: &[Option<&[u8]>],
        sealed: &[Option<Vec<u8>>],
        oids: &[u32],
        statement: &Statement,
    ) -> Vec<u32> {
        let Some(analysed) = &statement.analysed else {
            return Vec::new();
        };
        let compared = &analysed.compared;
        if compared.is_empty() {
            return Vec::new();
        }
        let pairs = values.iter().zip(sealed);
        let given = pairs.filter_map(|(given, sealed)| given.filter(|_| sealed.is_some()));
        let literals = analysed.edits.iter().flat_map(|e| &e.pieces);
        let literals = literals.filter_map(|piece| match piece {
            Piece::Envelope(secret) => key(secret.text()),
            Piece::Text(_) => None,
        });
        let secrets: HashSet<String> = given.filter_map(key).chain(literals).collect();
        let echo = |number: &&u32| {
            let at = (**number as usize).wrapping_sub(1);
            let string = oids.get(at).is_some_and(|oid| STRINGS.contains(oid));
            let plain = sealed.get(at).is_some_and(Option::is_none);
            let value = values.get(at).copied().flatten().and_then(key);
            string && plain && value.is_some_and(|value| secrets.contains(&value))
        };
        compared.iter().filter(echo).copied().collect()
    }
}
