//! The proxy's own requests to the server on the application's connection: schema changes, and the
//! handshake with the keeper.
//!
//! The former is a Parse that is never executed: the server reports changes while it analyses the
//! statement. So nothing is executed in the client's transaction, and no snapshot is taken. The
//! handshake is a query, but it normally takes place before the client's first message, and later
//! only if the keeper no longer knows the session, or if nothing was protected before. Within a
//! client's pipeline requests end with Flush, because Sync would commit.
//!
//! Invariant: none of the proxy's objects remain on the server when the client's next message
//! reaches it.
use std::sync::Arc;
use std::time::Duration;

use client::{Failure, Handshake, Offer, TypeMap};
use contract::report;
use rewrite::{ColumnType, Row};

use super::queue::{Expect, InternalState};
use super::{Core, Phase, Step, Stop, Wait};
use crate::databases::State;
use crate::shared::Stats;
use crate::wire::{backend, frontend};

/// Name of the proxy's statement and portal.
pub(super) const NAME: &str = "confide_internal";

/// Query for a server that does not send reports: it returns no rows without Confide.
const PROTECTED_TYPES: &str = "SELECT oid FROM pg_catalog.pg_type \
     WHERE typnamespace OPERATOR(pg_catalog.=) 11 \
     AND pg_catalog.starts_with(typname::pg_catalog.text, 'enc_') LIMIT 1";

/// The purpose of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// The session is starting.
    Startup,
    /// The schema may have changed.
    Ask,
    /// There is no session with the keeper.
    Handshake,
    /// The same, where the client's statement does not need one yet.
    Meeting,
    /// The session continues on another connection.
    Settings,
}

/// A task: a few requests, one after another.
pub(super) struct Task {
    purpose: Purpose,
    at: At,
}

/// The answer that a task is waiting for.
enum At {
    Begin,
    Schema,
    Types,
    Settings,
    First(Box<Handshake>),
    Second(Box<Offer>),
}

/// What a task sends next.
enum Next {
    Question,
    Query(String),
    Nothing,
}

impl Core {
    /// Starts a task. The client's frame waits for it; if the connection is not ready for a task,
    /// the frame is retried.
    pub(super) fn start(&mut self, purpose: Purpose) -> Step {
        if !self.pipeline && !self.queue.is_empty() {
            self.tried = super::Tried::default();
            self.wait = Wait::Drain;
            return Ok(());
        }
        self.wait = Wait::Task;
        let at = At::Begin;
        self.task = Some(Task { purpose, at });
        self.advance(Ok(Vec::new()))
    }

    /// The answer to the task's request has arrived.
    pub(super) fn advance(&mut self, answer: Result<Vec<Row>, Failure>) -> Step {
        let Some(mut task) = self.task.take() else {
            return Ok(());
        };
        match self.next(&mut task, answer) {
            Ok(Next::Nothing) => self.finished(&task, None),
            Ok(next) => {
                self.task = Some(task);
                match next {
                    Next::Query(sql) => self.query(&sql),
                    _ => self.question(),
                }
                Ok(())
            }
            Err(Stop::Fatal(failure))
                if !matches!(task.purpose, Purpose::Startup | Purpose::Settings) =>
            {
                self.finished(&task, Some(failure))
            }
            Err(stop) => Err(stop),
        }
    }

    /// Determines from the last answer what a task sends next.
    fn next(&mut self, task: &mut Task, answer: Result<Vec<Row>, Failure>) -> Step<Next> {
        match std::mem::replace(&mut task.at, At::Begin) {
            At::Begin if matches!(task.purpose, Purpose::Handshake | Purpose::Meeting) => {
                self.first_message(task)
            }
            At::Begin if task.purpose == Purpose::Settings => {
                task.at = At::Settings;
                Ok(Next::Query(self.settings()))
            }
            At::Settings => answer.map_err(Stop::Fatal).map(|_| Next::Nothing),
            At::Begin => {
                task.at = At::Schema;
                Ok(Next::Question)
            }
            At::Schema => {
                answer.map_err(Stop::Fatal)?;
                self.adopt();
                match task.purpose {
                    Purpose::Startup if self.shared.config.software => Ok(Next::Nothing),
                    Purpose::Startup if self.enabled && self.puts_off() => Ok(Next::Nothing),
                    Purpose::Startup if self.enabled => self.first_message(task),
                    Purpose::Startup if !self.view.reports() => {
                        task.at = At::Types;
                        Ok(Next::Query(PROTECTED_TYPES.to_owned()))
                    }
                    _ => Ok(Next::Nothing),
                }
            }
            At::Types => match answer.map_err(Stop::Fatal)?.is_empty() {
                true => Ok(Next::Nothing),
                false => Err(Stop::Fatal(no_reports())),
            },
            At::First(handshake) => match answer {
                Err(failure) => self.no_keeper(task, failure),
                Ok(rows) => self.second_message(task, *handshake, &rows),
            },
            At::Second(offer) => match answer {
                Err(failure) => self.no_keeper(task, failure),
                Ok(_) => {
                    tracing::debug!(
                        session = offer.keeper.evidence.session,
                        "session with the keeper"
                    );
                    Stats::add(&self.shared.stats.handshakes, 1);
                    self.session.begin(*offer);
                    self.unmet = false;
                    Ok(Next::Nothing)
                }
            },
        }
    }

    /// Whether the session with the keeper may begin when it is needed: nothing is protected yet, and
    /// no evidence is demanded.
    fn puts_off(&mut self) -> bool {
        let asks = self.shared.attestation.as_ref().is_some_and(|a| a.asks());
        self.unmet = !asks && !self.view.needs_keeper() && !self.is_reviving();
        self.unmet
    }

    /// Begins the session with the keeper that was put off, if something is protected by now or the
    /// text may be about something that will be. Returns whether the client's frame waits for it.
    pub(super) fn meets(&mut self, sql: &str) -> Step<bool> {
        if !self.unmet || self.status == b'E' {
            return Ok(false);
        }
        if !rewrite::mentions_us(sql) && !self.view.needs_keeper() {
            return Ok(false);
        }
        let purpose = match self.status == b'I' && !self.pipeline {
            true => Purpose::Meeting,
            // An error is that of the client's transaction.
            false => Purpose::Handshake,
        };
        self.start(purpose)?;
        self.unmet = self.task.is_none();
        Ok(true)
    }

    fn first_message(&mut self, task: &mut Task) -> Step<Next> {
        let asks = self.shared.attestation.as_ref().is_some_and(|a| a.asks());
        let live = self.shared.live();
        let secret = live.principals.get(&self.user);
        let secret = secret.unwrap_or(&self.shared.secret);
        let handshake = Handshake::begin(secret, asks).map_err(Stop::Fatal)?;
        let sql = handshake.first_sql();
        task.at = At::First(Box::new(handshake));
        Ok(Next::Query(sql))
    }

    fn second_message(
        &mut self,
        task: &mut Task,
        handshake: Handshake,
        rows: &[Row],
    ) -> Step<Next> {
        let field = match rows {
            [row] => row.first().and_then(Option::as_deref),
            _ => None,
        };
        let field = field.ok_or(Stop::Fatal(Failure::protocol("handshake")))?;
        let offer = handshake.offer(field).map_err(Stop::Fatal)?;
        if !self.shared.trusts(&offer.keeper.key) {
            tracing::error!(
                found = %offer.keeper.key,
                pinned = self.shared.pinned(),
                "the keeper is not the one that is trusted"
            );
            return Err(Stop::Fatal(
                Failure::new("28000", "confide: the keeper is not the one that is trusted")
                    .detail("It shows another public key than the proxy's configuration or than it did before.")
                    .hint("If the keeper's key was changed on purpose, set keeper_key and restart the proxy."),
            ));
        }
        if let Some(attestation) = &self.shared.attestation {
            attestation.check(&offer.keeper).map_err(Stop::Fatal)?;
        }
        let sql = offer.sql();
        task.at = At::Second(Box::new(offer));
        Ok(Next::Query(sql))
    }

    /// The keeper does not answer. A session may start without it: statements that touch nothing
    /// protected work.
    fn no_keeper(&mut self, task: &Task, failure: Failure) -> Step<Next> {
        tracing::warn!(sqlstate = %failure.sqlstate, "no session with the keeper");
        if self.is_reviving() {
            return Ok(Next::Nothing);
        }
        if matches!(task.purpose, Purpose::Startup | Purpose::Meeting) {
            backend::notice(
                &mut self.to_client,
                "WARNING",
                "01000",
                "confide: no session with the keeper yet; protected columns are not available",
            );
            return Ok(Next::Nothing);
        }
        Err(Stop::Fatal(failure))
    }

    /// All answers have arrived, or one has failed.
    fn finished(&mut self, task: &Task, failure: Option<Failure>) -> Step {
        if let Some(failure) = failure {
            self.tried.failure = Some(failure);
        }
        if task.purpose == Purpose::Startup && !self.enabled {
            self.check_without()?;
        }
        match self.phase {
            Phase::Preparing if !self.is_reviving() => self.release(),
            Phase::Preparing if task.purpose == Purpose::Startup => return self.restore(),
            Phase::Preparing => self.revived(),
            _ => {}
        }
        Ok(())
    }

    /// Checks whether a database without Confide may be served.
    fn check_without(&self) -> Step {
        let failure = Failure::new("55000", "confide: the database does not have Confide");
        if self.shared.config.require_confide {
            return Err(Stop::Fatal(
                failure.hint("Unset require_confide to reach it through the proxy."),
            ));
        }
        if self.shared.pin_of(&self.database).is_some() {
            return Err(Stop::Fatal(
                failure
                    .detail("Columns of it are pinned.")
                    .hint("Take its columns out of pin_file to reach it through the proxy."),
            ));
        }
        Ok(())
    }

    /// Adopts what is now known about the schema.
    pub(super) fn adopt(&mut self) -> State {
        let state = self.shared.databases.state(self.view.identity());
        match self.view.schema(&state) {
            Some(schema) if Arc::ptr_eq(&self.schema, &schema) => {}
            Some(schema) => {
                self.schema = schema;
                self.memo = self.view.memo().clone();
                self.known_types.clear();
                let types = self.view.protected().cloned().unwrap_or_default();
                self.adopt_types(types);
            }
            // The extension has been dropped.
            None if !state.identity.is_empty() => self.adopt_types(Arc::default()),
            None => {}
        }
        state
    }

    fn adopt_types(&mut self, types: Arc<Vec<(u32, ColumnType)>>) {
        if !Arc::ptr_eq(&self.types, &types) {
            self.session.types = TypeMap::new(&types);
            self.enabled = !types.is_empty();
            self.types = types;
        }
    }

    /// Asks for the changes since the known version.
    fn question(&mut self) {
        Stats::add(&self.shared.stats.schema_questions, 1);
        let databases = &self.shared.databases;
        let age = Duration::from_secs(self.shared.config.schema_max_age_seconds);
        let known = match self.view.reports() {
            true => databases.state(self.view.identity()),
            false => databases.latest(&self.database, age),
        };
        let pid = match self.pooled() {
            true => String::new(),
            false => self.key.pid().to_string(),
        };
        let sql = format!(
            "SET {} TO '{}', '{}', '{pid}', '{}'",
            report::REQUEST,
            known.identity.replace(['\'', '\\'], ""),
            known.version,
            self.name
        );
        let out = &mut self.to_server;
        frontend::targeted(out, b'C', b'S', NAME);
        frontend::parse(out, NAME, &sql, &[]);
        frontend::targeted(out, b'C', b'S', NAME);
        self.expect_own(2);
    }

    /// Sends a query of the proxy.
    fn query(&mut self, sql: &str) {
        let named = [sql, self.signature(false)].concat();
        let out = &mut self.to_server;
        frontend::targeted(out, b'C', b'S', NAME);
        frontend::parse(out, NAME, &named, &[]);
        frontend::bind(out, NAME, NAME, &[], &[], &[]);
        frontend::execute(out, NAME);
        frontend::targeted(out, b'C', b'P', NAME);
        frontend::targeted(out, b'C', b'S', NAME);
        self.expect_own(3);
    }

    /// Removes what a failed request has left behind.
    pub(super) fn sweep(&mut self) {
        let out = &mut self.to_server;
        frontend::targeted(out, b'C', b'P', NAME);
        frontend::targeted(out, b'C', b'S', NAME);
        frontend::bare(out, b'S');
        self.expect(true, 2);
    }

    fn expect_own(&mut self, closes: u8) {
        let sync = !self.pipeline;
        frontend::bare(&mut self.to_server, if sync { b'S' } else { b'H' });
        self.expect(sync, closes);
    }

    fn expect(&mut self, sync: bool, closes: u8) {
        let state = InternalState {
            sync,
            closes,
            ..InternalState::default()
        };
        self.queue.push_back(Expect::Internal(Box::new(state)));
    }
}

fn no_reports() -> Failure {
    Failure::new("55000", "confide: the server does not report its schema")
        .detail("The database has Confide, and the server's library is not there or older than the proxy.")
        .hint("Install the extension of the proxy's version and restart the server.")
}
