//! From a text of the client to the text for the server: classification, a fresh
//! schema where it matters, a session with the keeper, sealing.
use client::{Failure, LiteralCache};
use rewrite::{Piece, PositionMap, StatementKind, Transaction};

use super::internal::Purpose;
use super::statement::Effect;
use super::{Core, Step, Wait};
use crate::shared::Stats;

/// What became of a text.
pub(super) enum Outcome {
    /// Try again later.
    Wait,
    /// Answer with this error.
    Refuse(Failure),
    /// Send this.
    Send(Box<Text>),
}

/// A text that may be sent.
pub(super) struct Text {
    /// The text.
    pub(super) sql: String,
    /// What its statements are.
    pub(super) statements: Vec<rewrite::Statement>,
    /// Positions, if anything was changed.
    pub(super) positions: Option<PositionMap>,
    /// It has envelopes.
    pub(super) sealed: bool,
    /// A statement of it touches something protected.
    pub(super) touches: bool,
}

impl Core {
    /// Analyses and seals. `handle`: the text is for Parse.
    pub(super) fn analyse(&mut self, sql: &str, handle: bool) -> Step<Outcome> {
        if let Some(failure) = self.tried.failure.take() {
            return Ok(Outcome::Refuse(failure));
        }
        if !self.pipeline && self.must_drain && !self.queue.is_empty() {
            self.wait = Wait::Drain;
            return Ok(Outcome::Wait);
        }
        if self.queue.is_empty() {
            self.must_drain = false;
        }
        let failed = self.status == b'E' && !self.pipeline && self.queue.is_empty();
        let schema = self.schema.clone().unwrap_or_default();
        // Without a backslash strings read the same either way.
        let escapes = sql.contains('\\') && (self.escapes || self.escapes_stale);
        if escapes && self.escapes_stale && self.pipeline {
            return Ok(Outcome::Refuse(unsure_of_strings()));
        }
        let analysed = match escapes {
            true => rewrite::analyze_escaped(sql, &schema, &self.registry),
            false => self.memo.analyze(sql, &schema, &self.registry),
        };
        if failed {
            let ends = |s: &rewrite::Statement| matches!(s.kind, StatementKind::TransactionControl(t) if t != Transaction::Begin);
            if !analysed
                .as_ref()
                .is_ok_and(|all| all.first().is_none_or(ends))
            {
                return Ok(Outcome::Refuse(aborted()));
            }
        }
        let fresh = match &analysed {
            Err(_) => false,
            Ok(all) => all
                .iter()
                .all(|s| !s.kind.uses_names() && !s.depends_on_search_path),
        };
        // A function may have changed the path, unless the server would have said so.
        let told = self.path_reported && !self.pipeline && self.queue.is_empty();
        let depends = !told
            && analysed
                .as_ref()
                .is_ok_and(|all| all.iter().any(|s| s.depends_on_search_path));
        let unknown = match &analysed {
            Err(refusal) => refusal.needs_schema_refresh,
            Ok(all) => all.iter().any(|s| s.unresolved),
        };
        if !self.tried.refresh && ((!fresh && self.is_stale()) || depends || unknown) {
            if failed {
                return Ok(Outcome::Refuse(
                    aborted().hint("Send what follows the end of the transaction by itself."),
                ));
            }
            self.tried.refresh = true;
            self.stale |= unknown;
            self.start(Purpose::Refresh)?;
            return Ok(Outcome::Wait);
        }
        let statements = match analysed {
            Ok(statements) => statements,
            Err(refusal) => return Ok(Outcome::Refuse(Failure::from_refusal(&refusal, sql))),
        };
        if let Some(refusal) = rewrite::undone(&statements, self.changed_schema) {
            return Ok(Outcome::Refuse(Failure::from_refusal(&refusal, sql)));
        }
        self.seal_text(sql, statements, handle, failed)
    }

    fn seal_text(
        &mut self,
        sql: &str,
        statements: Vec<rewrite::Statement>,
        handle: bool,
        failed: bool,
    ) -> Step<Outcome> {
        let touches = statements.iter().any(|s| s.touches_protected);
        let edits: Vec<_> = statements
            .iter()
            .flat_map(|s| s.edits.iter().cloned())
            .collect();
        let sealed = edits
            .iter()
            .flat_map(|e| &e.pieces)
            .any(|p| matches!(p, Piece::Envelope(_)));
        if (touches || sealed) && !self.utf8 {
            return Ok(Outcome::Refuse(
                Failure::new(
                    "0A000",
                    "confide: client_encoding must be UTF8 for protected columns",
                )
                .hint("SET client_encoding TO 'UTF8'."),
            ));
        }
        if (touches || sealed) && !self.session.is_open() && !failed {
            if !self.tried.handshake {
                self.tried.handshake = true;
                self.start(Purpose::Handshake)?;
                return Ok(Outcome::Wait);
            }
            return Ok(Outcome::Refuse(Failure::no_session()));
        }
        if edits.is_empty() {
            return Ok(Outcome::Send(Box::new(Text {
                sql: sql.to_owned(),
                statements,
                positions: None,
                sealed,
                touches,
            })));
        }
        let mut caches: Vec<Option<LiteralCache>> = statements
            .iter()
            .map(|s| compares_expressions(sql.get(s.range.clone())?).then(LiteralCache::default))
            .collect();
        let mut count = 0;
        let made = rewrite::apply_edits(sql, &edits, |secret| {
            let at = statements
                .iter()
                .position(|s| s.range.contains(&secret.position))
                .unwrap_or(0);
            let handle = handle
                || statements
                    .get(at)
                    .is_some_and(|s| matches!(s.kind, StatementKind::Prepare { .. }));
            let mut own = LiteralCache::default();
            let cache = caches.get_mut(at).and_then(Option::as_mut);
            count += 1;
            self.session
                .seal_literal(secret, handle, cache.unwrap_or(&mut own))
                .map_err(|failure| Failure {
                    position: Some(rewrite::character_position(sql, secret.position)),
                    ..failure
                })
        });
        Stats::add(&self.shared.stats.sealed, count);
        Ok(match made {
            Err(failure) => Outcome::Refuse(failure),
            Ok((sql, positions)) => Outcome::Send(Box::new(Text {
                sql,
                statements,
                positions: Some(positions),
                sealed,
                touches,
            })),
        })
    }

    /// Whether the snapshot may be out of date.
    pub(super) fn is_stale(&self) -> bool {
        self.stale
            || self.path_stale
            || self.schema.is_none()
            || self.shared.generation(&self.key.0) != self.generation
    }

    /// A statement is on its way: what it may change is no longer known.
    pub(super) fn sent(&mut self, statement: &rewrite::Statement) {
        if statement.changes_schema {
            self.stale = true;
            self.changed_schema = true;
            self.must_drain = true;
        }
        let sets = matches!(&statement.kind, StatementKind::Set { name } if name == "standard_conforming_strings");
        if sets || statement.changes_search_path {
            self.escapes_stale = true;
            self.must_drain = true;
        }
        if statement.changes_search_path {
            self.path_stale = true;
            self.changed_path = true;
            self.must_drain = true;
        }
        if let StatementKind::TransactionControl(kind) = statement.kind {
            self.must_drain = true;
            self.escapes_stale |= self.escaped_once;
            if kind == Transaction::RollbackTo {
                self.stale |= self.changed_schema;
                self.path_stale |= self.changed_path;
            }
        }
        if Effect::of(statement).is_some() {
            self.must_drain = true;
        }
    }

    /// A statement has succeeded.
    pub(super) fn succeeded(&mut self, effect: Effect) {
        match effect {
            Effect::Prepare(name, info) => {
                self.statements.remove(&name);
                self.registry.insert(name, info);
            }
            Effect::Deallocate(Some(name)) => {
                self.statements.remove(&name);
                self.registry.remove(&name);
            }
            Effect::Deallocate(None) | Effect::DiscardAll => {
                self.statements.clear();
                self.registry.clear();
            }
        }
    }

    /// No transaction is open any more.
    pub(super) fn transaction_over(&mut self) {
        self.portals.clear();
        if std::mem::take(&mut self.changed_schema) {
            // Committed or rolled back: either way what we know may be wrong.
            self.shared.bump(&self.key.0);
            self.stale = true;
        }
        if std::mem::take(&mut self.changed_path) {
            self.path_stale = true;
        }
    }
}

/// Whether PostgreSQL may have to recognise two expressions of a statement as the same:
/// then equal literals get one envelope, by which the server knows that they are equal.
/// The values of an `INSERT` it shall not know that of. A word too many does no harm.
fn compares_expressions(statement: &str) -> bool {
    let has = |word: &str| {
        let mut windows = statement.as_bytes().windows(word.len());
        windows.any(|w| w.eq_ignore_ascii_case(word.as_bytes()))
    };
    ["group", "order", "distinct", "partition"]
        .into_iter()
        .any(has)
}

fn unsure_of_strings() -> Failure {
    Failure::new(
        "0A000",
        "confide: cannot tell how backslashes are read behind a setting in the same pipeline",
    )
    .hint("Send Sync before it, or leave standard_conforming_strings on.")
}

fn aborted() -> Failure {
    Failure::new(
        "25P02",
        "current transaction is aborted, commands ignored until end of transaction block",
    )
}
