//! What the statements of a text leave uncertain for later statements in the same text: names that
//! may have a different meaning by then. A statement with plain constants that could be combined
//! with such an object is refused; sent separately, it would be analysed anew.
//!
//! Invariant: a statement is analysed under the schema that holds when it runs, or has no plain
//! constants, or is refused.

use crate::edit::Piece;
use crate::effect::Effect;
use crate::infer::Res;
use crate::refusal::Refusal;
use crate::schema::Schema;
use crate::statement::{Statement, StatementKind, Transaction};
use crate::tokens::{Tokens, identifier};
use std::collections::HashSet;

/// What earlier statements have left uncertain.
#[derive(Default)]
pub(crate) struct Past {
    /// The search path may have changed.
    path: bool,
    /// A schema was renamed, or the like.
    lost: bool,
    names: HashSet<String>,
}

impl Past {
    /// Refuses a statement that may be executed under a different schema than it was analysed for.
    pub fn check(&self, s: &Statement, sql: &str, tokens: &Tokens) -> Res<()> {
        if !s.clear_values || !s.kind.uses_names() {
            return Ok(());
        }
        let named = || {
            (tokens.next_from(s.range.start)..tokens.next_from(s.range.end)).any(|at| {
                tokens.is_name(at)
                    && self
                        .names
                        .contains(identifier(&sql[tokens.range(at)]).as_ref())
            })
        };
        if (self.lost && !s.apart)
            || (self.path && s.depends_on_search_path)
            || (!self.names.is_empty() && named())
        {
            return Err(unfollowed(s));
        }
        Ok(())
    }

    /// Takes over those effects of a statement that the schema cannot represent.
    pub fn take(&mut self, s: &Statement, effects: &mut Vec<Effect>, schema: &Schema) {
        self.path |= s.changes_search_path;
        if let StatementKind::TransactionControl(kind) = s.kind {
            // Temporary tables that hid others may disappear; SET LOCAL ends.
            self.path |= !matches!(kind, Transaction::Begin | Transaction::Savepoint);
        }
        effects.retain(|effect| match effect {
            Effect::Unsure(name) => {
                self.names.insert(name.clone());
                false
            }
            Effect::Lost => {
                self.lost = true;
                false
            }
            // It may have been created in a different schema than assumed.
            Effect::Relation(new) if self.path && !new.protected() => {
                let hides = schema.relation(Some(&new.schema), &new.name);
                if hides.is_none_or(|old| !old.protected()) {
                    return true;
                }
                self.names.insert(new.name.clone());
                false
            }
            _ => true,
        });
    }
}

/// The first statement with constants after one that reverts schema changes, unless it is known what
/// they meet then. `before`: there were earlier changes in the same transaction.
///
/// What is sealed for a column that is plain again would be stored as an envelope, which nobody can
/// open after the session.
pub fn undone(statements: &[Statement], before: bool) -> Option<Refusal> {
    let (mut back, mut changed) = (false, before);
    let mut seals = Reverted {
        changed: before,
        ..Reverted::default()
    };
    for s in statements {
        // The snapshot does not tell what preceded those changes.
        let apart = s.apart && !before;
        let clear = back && s.clear_values && !apart;
        if s.kind.uses_names() && (clear || seals.unknown && has_envelopes(s)) {
            return Some(unfollowed(s));
        }
        changed |= s.changes_schema;
        back |= changed
            && matches!(
                s.kind,
                StatementKind::TransactionControl(Transaction::Rollback | Transaction::RollbackTo)
            );
        seals.follow(s);
    }
    None
}

/// Whether the schema is another one than a statement was analysed for, because of reverted changes.
#[derive(Default)]
struct Reverted {
    /// The open transaction has changed the schema.
    changed: bool,
    /// It began in this text, before its first change: `ROLLBACK` leads to a known schema.
    begun: bool,
    unknown: bool,
}

impl Reverted {
    fn follow(&mut self, s: &Statement) {
        self.changed |= s.changes_schema;
        let StatementKind::TransactionControl(kind) = s.kind else {
            return;
        };
        match kind {
            Transaction::Begin => self.begun = !self.changed,
            Transaction::Rollback => self.unknown |= self.changed && !self.begun,
            Transaction::RollbackTo => self.unknown |= self.changed,
            _ => {}
        }
        if matches!(kind, Transaction::Rollback | Transaction::Commit) {
            (self.changed, self.begun) = (false, false);
        }
    }
}

fn has_envelopes(s: &Statement) -> bool {
    let mut pieces = s.edits.iter().flat_map(|edit| &edit.pieces);
    pieces.any(|piece| matches!(piece, Piece::Envelope(_)))
}

fn unfollowed(s: &Statement) -> Refusal {
    Refusal::unsupported(
        "cannot tell what a name means behind an earlier statement of the same text",
    )
    .at(i32::try_from(s.range.start).unwrap_or(-1))
    .detail("A constant of it would be sent in the clear.")
    .hint("Send it as a statement of its own.")
    .for_good()
}
