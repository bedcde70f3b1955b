//! Turns a text of the client into the text for the server: classification, refreshing the schema
//! where necessary, a session with the keeper, sealing.
use client::{Failure, LiteralCache};
use grant::{Command, Verb};
use rewrite::{Piece, PositionMap, StatementKind, Transaction};
use zeroize::Zeroizing;

use super::encoding::{self, ClientEncoding};
use super::internal::Purpose;
use super::policy;
use super::statement::Effect;
use super::{Core, Step, Wait};
use crate::databases::State;
use crate::shared::Stats;
use crate::wire::frontend;

/// The result of processing a text.
pub(super) enum Outcome {
    /// Try again later.
    Wait,
    /// Answer with this error.
    Refuse(Failure),
    /// Send this.
    Send(Box<Text>),
    /// Change the family of a column.
    Recode(Box<rewrite::Recoding>),
}

/// A text that may be sent.
pub(super) struct Text {
    /// The text.
    pub(super) sql: String,
    /// The text differs from the client's.
    pub(super) changed: bool,
    /// The analysed statements.
    pub(super) statements: Vec<rewrite::Statement>,
    /// The position mapping, if anything was changed.
    pub(super) positions: Option<PositionMap>,
    /// It contains envelopes.
    pub(super) sealed: bool,
    /// One of its statements touches something protected.
    pub(super) touches: bool,
}

impl Text {
    /// Whether it ends what the session has.
    pub(super) fn discards(&self) -> bool {
        let all = |s: &rewrite::Statement| s.kind == StatementKind::Discard { all: true };
        self.statements.iter().any(all)
    }
}

type Analysed = Result<Vec<rewrite::Statement>, rewrite::Refusal>;

/// What must be obtained before a statement can be classified.
enum Missing {
    Nothing,
    /// Answers to earlier messages, which report what those have changed.
    Answers,
    /// The changes since the server's last report.
    Report,
}

/// Whether protected values can be transferred.
enum Carries {
    Yes,
    /// After a handshake.
    Later,
    No(Failure),
}

impl Core {
    /// Analyses and seals a text. `handle` says that it is for Parse.
    pub(super) fn analyse(&mut self, sql: &str, handle: bool) -> Step<Outcome> {
        if let Some(failure) = self.tried.failure.take() {
            return Ok(Outcome::Refuse(failure));
        }
        if self.must_drain && !self.queue.is_empty() {
            return Ok(self.drain());
        }
        self.must_drain = false;
        let failed = self.status == b'E' && !self.pipeline && self.queue.is_empty();
        // Without a backslash both modes read strings in the same way.
        let escapes = sql.contains('\\') && (self.escapes || self.escapes_stale);
        if escapes && self.escapes_stale && self.pipeline {
            return Ok(Outcome::Refuse(unsure_of_strings()));
        }
        if let Some(command) = policy::read(sql) {
            return match command.verb {
                Verb::TransferKey => self.transfer(command),
                _ => self.tell_policy(&command.encode()),
            };
        }
        match policy::order(sql) {
            Some(Ok(order)) => return self.tell_policy(&order.encode()),
            Some(Err(failure)) => return Ok(Outcome::Refuse(failure)),
            None => {}
        }
        let state = self.adopt();
        if self.meets(sql)? {
            return Ok(Outcome::Wait);
        }
        let sealing = std::mem::take(&mut self.sealing);
        let analysed = match escapes {
            true => rewrite::analyze_escaped(sql, &self.schema, &self.registry),
            false if !sealing.is_empty() => {
                rewrite::analyze_sealing(sql, &self.schema, &self.registry, &sealing)
            }
            false => {
                let (analysed, reused) = self.memo.look(sql, &self.schema, &self.registry);
                Stats::add(&self.shared.stats.analyses_reused, u64::from(reused));
                analysed
            }
        };
        Stats::add(&self.shared.stats.analyses, 1);
        if failed && !ends_transaction(&analysed) {
            return Ok(Outcome::Refuse(aborted()));
        }
        match self.missing(&analysed, &state) {
            Missing::Nothing => self.classified(sql, analysed, handle, failed),
            Missing::Answers => Ok(self.drain()),
            Missing::Report if failed => Ok(Outcome::Refuse(
                aborted().hint("Send what follows the end of the transaction by itself."),
            )),
            Missing::Report => {
                self.tried.refresh = true;
                self.start(Purpose::Ask)?;
                Ok(Outcome::Wait)
            }
        }
    }

    /// Gives the key of a column to the keeper, once the column is known.
    fn transfer(&mut self, mut command: Command) -> Step<Outcome> {
        let state = self.adopt();
        let probe = policy::probe(&command.column);
        let (analysed, _) = self.memo.look(&probe, &self.schema, &self.registry);
        match self.missing(&analysed, &state) {
            Missing::Nothing => {}
            Missing::Answers => return Ok(self.drain()),
            Missing::Report => {
                self.tried.refresh = true;
                self.start(Purpose::Ask)?;
                return Ok(Outcome::Wait);
            }
        }
        match self.transferred(&command.column) {
            Err(failure) => Ok(Outcome::Refuse(failure)),
            Ok(key) => {
                command.word.push_str(&key);
                let bytes = Zeroizing::new(command.encode());
                self.tell_policy(&bytes)
            }
        }
    }

    /// Processes a text after everything that its analysis depends on is known.
    fn classified(
        &mut self,
        sql: &str,
        analysed: Analysed,
        handle: bool,
        failed: bool,
    ) -> Step<Outcome> {
        let checked = analysed.and_then(|statements| {
            match rewrite::undone(&statements, self.view.changed()) {
                Some(refusal) => Err(refusal),
                None => Ok(statements),
            }
        });
        match checked {
            Ok(statements) if self.is_stand_in(&statements) => {
                Ok(Outcome::Refuse(must_be_prepared_again()))
            }
            Ok(mut statements) => {
                if let Some(recoding) = statements.iter().find_map(|s| s.recoding.as_ref()) {
                    return Ok(match statements.len() == 1 && !handle {
                        true => Outcome::Recode(Box::new(recoding.clone())),
                        false => Outcome::Refuse(super::recode::alone()),
                    });
                }
                if !handle && self.too_early(&statements) {
                    return Ok(self.drain());
                }
                if self.plain_catalogs && self.enabled {
                    rewrite::show_plain(sql, &mut statements);
                }
                self.seal_text(sql, statements, handle, failed)
            }
            Err(refusal) => Ok(Outcome::Refuse(Failure::from_refusal(&refusal, sql))),
        }
    }

    /// Whether EXECUTE names a statement that has not been prepared on this connection yet.
    fn is_stand_in(&self, statements: &[rewrite::Statement]) -> bool {
        statements.iter().any(|s| match &s.kind {
            StatementKind::Execute { name } => {
                let known = self.statements.get(name);
                known.is_some_and(|known| known.link != self.link)
            }
            _ => false,
        })
    }

    /// Makes the text wait for all answers. Within a pipeline the server is told to send them.
    fn drain(&mut self) -> Outcome {
        if self.pipeline {
            frontend::bare(&mut self.to_server, b'H');
        }
        self.wait = Wait::Drain;
        Outcome::Wait
    }

    fn missing(&self, analysed: &Analysed, state: &State) -> Missing {
        let by_path = |s: &rewrite::Statement| s.depends_on_search_path;
        let (named, depends, unknown) = match analysed {
            Ok(all) => {
                let named = all.iter().any(|s| s.kind.uses_names() || by_path(s));
                let unknown = all.iter().any(|s| s.unresolved);
                (named, all.iter().any(by_path), unknown)
            }
            Err(refusal) => (true, false, refusal.needs_schema_refresh),
        };
        // A function executed before it may have changed the path or created the table.
        if (depends || unknown) && !self.queue.is_empty() {
            return Missing::Answers;
        }
        if !self.tried.refresh && (unknown || (named && self.view.behind(state))) {
            return Missing::Report;
        }
        Missing::Nothing
    }

    /// Whether the connection can transfer protected values.
    fn may_carry(&mut self, failed: bool) -> Step<Carries> {
        if matches!(self.encoding, ClientEncoding::Other) {
            return Ok(Carries::No(encoding::needs_utf8("protected columns")));
        }
        if self.session.is_open() || failed || self.shared.config.software {
            return Ok(Carries::Yes);
        }
        if self.tried.handshake {
            return Ok(Carries::No(Failure::no_session()));
        }
        self.tried.handshake = true;
        self.start(Purpose::Handshake)?;
        Ok(Carries::Later)
    }

    fn seal_text(
        &mut self,
        sql: &str,
        statements: Vec<rewrite::Statement>,
        handle: bool,
        failed: bool,
    ) -> Step<Outcome> {
        let touches = statements.iter().any(|s| s.touches_protected);
        if self.shared.config.software && wants_keeper(&statements) {
            return Ok(Outcome::Refuse(no_keeper()));
        }
        let edits: Vec<_> = statements
            .iter()
            .flat_map(|s| s.edits.iter().cloned())
            .collect();
        // Encodings do not require a session with the keeper, and outlive it.
        let sealed = wants_keeper(&statements);
        let binary = |s: &rewrite::Statement| {
            let copy = s.copy.as_ref();
            copy.is_some_and(|c| c.format == rewrite::Format::Binary)
        };
        if touches && self.encoding.charset().is_some() && statements.iter().any(binary) {
            let what = "COPY of protected columns in binary format";
            return Ok(Outcome::Refuse(encoding::needs_utf8(what)));
        }
        if touches || sealed {
            match self.may_carry(failed)? {
                Carries::Yes => {}
                Carries::Later => return Ok(Outcome::Wait),
                Carries::No(failure) => return Ok(Outcome::Refuse(failure)),
            }
        }
        let grants = match self.session.grants(&statements) {
            Ok(grants) => grants,
            Err(failure) => return Ok(Outcome::Refuse(failure)),
        };
        let made = match edits.is_empty() {
            true => Ok((sql.to_owned(), None)),
            false => self
                .seal_literals(sql, &statements, &edits, handle)
                .map(|(sql, positions)| (sql, Some(positions))),
        };
        Ok(match made {
            Err(failure) => Outcome::Refuse(failure),
            Ok((sql, positions)) => Outcome::Send(Box::new(Text {
                sql: sql + &grants,
                changed: positions.is_some() || !grants.is_empty(),
                statements,
                positions,
                sealed,
                touches,
            })),
        })
    }

    /// Returns the text after applying its edits.
    fn seal_literals(
        &self,
        sql: &str,
        statements: &[rewrite::Statement],
        edits: &[rewrite::Edit],
        handle: bool,
    ) -> Result<(String, PositionMap), Failure> {
        let mut caches: Vec<Option<LiteralCache>> = statements
            .iter()
            .map(|s| compares_expressions(sql.get(s.range.clone())?).then(LiteralCache::default))
            .collect();
        let mut count = 0;
        let made = rewrite::apply_edits(sql, edits, |secret| {
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
        made
    }

    /// A statement has been sent: its effects are known when it is answered.
    pub(super) fn sent(&mut self, statement: &rewrite::Statement, sql: &str) {
        let text = sql.get(statement.range.clone()).unwrap_or_default();
        self.restore.sent(statement, text);
        self.kept(statement, text);
        self.session.restoring = self.restore.is_on();
        let sets = matches!(&statement.kind, StatementKind::Set { name } if name == "standard_conforming_strings");
        let control = match statement.kind {
            StatementKind::TransactionControl(kind) => Some(kind),
            _ => None,
        };
        self.escapes_stale |=
            sets || statement.changes_search_path || (control.is_some() && self.escaped_once);
        let begins = |t: Transaction| {
            matches!(
                t,
                Transaction::Begin | Transaction::Savepoint | Transaction::Release
            )
        };
        self.must_drain |= sets
            || statement.changes_schema
            || statement.changes_search_path
            || control.is_some_and(|t| !begins(t))
            || Effect::of(statement).is_some();
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
                self.cursors.clear();
            }
            Effect::Declare(name, cursor) => self.cursors.insert(name, cursor),
            Effect::Open(cursors) => self.cursors.opened(cursors),
            Effect::Close(Some(name)) => self.cursors.remove(&name),
            Effect::Close(None) => self.cursors.clear(),
            Effect::End(true) => self.cursors.end(),
            Effect::End(false) => self.cursors.doubt(),
        }
    }
}

/// Whether a literal would have to be sealed for a keeper.
fn wants_keeper(statements: &[rewrite::Statement]) -> bool {
    let sealed = |piece: &Piece| match piece {
        Piece::Envelope(secret) => !matches!(secret.form, rewrite::Form::Soft(..)),
        Piece::Text(_) => false,
    };
    let edits = statements.iter().flat_map(|s| &s.edits);
    edits.flat_map(|e| &e.pieces).any(sealed)
}

fn must_be_prepared_again() -> Failure {
    Failure::new("26000", "confide: the statement is not prepared any more")
        .detail("The server was restarted, and the statement was prepared by a message of the protocol.")
        .hint("Prepare it again, or execute it by a message.")
}

fn no_keeper() -> Failure {
    Failure::new("0A000", "confide: there is no keeper").detail(
        "The proxy runs with software = true: only columns of the family soft_ can be used.",
    )
}

/// Whether a text may be sent in a failed transaction.
fn ends_transaction(analysed: &Analysed) -> bool {
    let ends = |s: &rewrite::Statement| matches!(s.kind, StatementKind::TransactionControl(t) if t != Transaction::Begin);
    analysed
        .as_ref()
        .is_ok_and(|all| all.first().is_none_or(ends))
}

/// Whether PostgreSQL may have to recognise two expressions of a statement as equal. Then equal
/// literals get one envelope, which tells the server that they are equal. For the values of an
/// `INSERT` the server must not learn that. A false positive does no harm.
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
