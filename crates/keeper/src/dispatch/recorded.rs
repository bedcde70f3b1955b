//! Requests of a recorded channel, and the orders that start and stop recordings and logs of calls.
//!
//! Invariants: only a client whose name is in `administrators` can start or stop a recording; a log
//! of calls covers only the sessions of the client that starts it.

use super::Connection;
use super::viewing::no_owners;
use crate::ends;
use crate::fail::Failure;
use crate::keeper::Keeper;
use crate::session::{Client, Session};
use crate::tape::{self, Tape, Whose};
use crate::witness::{self, Source};
use contract::codec::Part;
use contract::message::search::NO_PAGE;
use contract::{Kind, answer, body};
use recording::{End, Order, Outcome};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use store::ColumnId;
use values::Error;

/// The origins of constants: what the client has sent, and what the database knows anyway.
const GIVEN: [u8; 3] = [
    grant::origin::CLIENT,
    grant::origin::PLAIN,
    grant::origin::CLIENT | grant::origin::PLAIN,
];

/// A request that is recorded once its answer was sent, so that no statement waits for that.
pub(super) struct Answered {
    /// When it came, and when its answer was ready, by [`tape::now`]. Not when that was sent: whoever
    /// was sent it may have committed by then, and others may have read what was stored.
    at: (u64, u64),
    /// The answer, if it is an error.
    error: Option<Vec<u8>>,
}

/// How often a recorded channel looks for what it was sent without being woken.
const LOOK: Duration = Duration::from_millis(200);

/// Replaces the name of a column in a log of calls if there is none.
const COMPUTED: &str = "computed";

/// Returns the tape of a channel, if it is recorded.
pub(super) fn tape(
    keeper: &Keeper,
    session: &Session,
    client: Option<&Client>,
    before: Option<Arc<Tape>>,
) -> Option<Arc<Tape>> {
    let whose = Whose {
        session: session.id,
        database: session.database,
        role: session.role,
        principal: client.map(|client| client.name.as_str()),
    };
    keeper.recorder.tape(before, whose)
}

impl Connection {
    /// Executes a request, and records it. If it is answered, that is done by
    /// [`Connection::answered_so`].
    #[inline(never)]
    pub(super) fn recorded(&mut self, kind: Kind, body: &[u8]) -> Option<Result<(), Error>> {
        let from = tape::now();
        if let Some(tape) = &self.tape {
            if tape.has_calls() {
                return self.witnessed(Arc::clone(tape), kind, body);
            }
            if tape.wants_programs() {
                self.tell_programs(tape, from);
            }
            if kind == Kind::Statement
                && let Ok(body::Statement { query }) = Part::decode(body)
            {
                tape.statement(query);
            }
        }
        let done = self.carry_out(kind, body);
        let at = (from, tape::now());
        if let Some(tape) = &self.tape {
            let error = match &done {
                None => {
                    tape.note(kind, body, at, Outcome::OneWay);
                    return done;
                }
                Some(Ok(())) => None,
                Some(Err(what)) => {
                    let mut error = Vec::new();
                    crate::fail::encode(what, &mut error);
                    Some(error)
                }
            };
            tape.begin_answer();
            self.answered = Some(Answered { at, error });
        }
        done
    }

    /// Whoever waits for an answer to be recorded need not any longer, also if it will never be.
    pub(super) fn end_answer(&self) {
        if let Some(tape) = &self.tape {
            tape.end_answer();
        }
    }

    /// In which intervals the channel looks at its ring while nobody wakes it: what is told for a
    /// recording, and the end of a transaction on ledger tables, wake nobody.
    #[inline]
    pub fn looks_every(&self) -> Option<Duration> {
        if self.ledger.awaited() {
            return Some(ends::LOOK);
        }
        match &self.tape {
            Some(_) => Some(LOOK),
            None => self.looks_for_values(),
        }
    }

    /// Records a request whose answer was sent.
    #[inline]
    pub fn answered_so(&mut self, kind: Kind, body: &[u8]) {
        if let Some(answered) = self.answered.take() {
            self.note_answered(&answered, kind, body);
        }
    }

    #[inline(never)]
    fn note_answered(&mut self, answered: &Answered, kind: Kind, body: &[u8]) {
        let at = answered.at;
        if kind == Kind::Descend
            && answered.error.is_none()
            && let Ok(body::Descend { page, columns, .. }) = Part::decode(body)
        {
            self.tell_pages(at, if columns > 0 { page } else { NO_PAGE });
        }
        let outcome = match &answered.error {
            Some(error) => Outcome::Error(error),
            None => Outcome::Answer(&self.reply),
        };
        if let Some(tape) = &self.tape {
            tape.note(kind, body, at, outcome);
            tape.end_answer();
        }
    }

    /// Records programs registered earlier as if they were registered now.
    fn tell_programs(&self, tape: &Tape, now: u64) {
        for (program, message) in self.session.programs() {
            let mut answer = Vec::new();
            answer::ProgramRegister { program }.put(&mut answer);
            let outcome = Outcome::Answer(&answer);
            tape.note(Kind::ProgramRegister, &message, (now, now), outcome);
        }
    }

    /// Executes a request, and logs the calls that it makes. Single rows are processed like
    /// batches, in which calls are logged.
    fn witnessed(&mut self, tape: Arc<Tape>, kind: Kind, body: &[u8]) -> Option<Result<(), Error>> {
        let (keeper, session) = (Arc::clone(&self.keeper), Arc::clone(&self.session));
        witness::begin(tape, Box::new(move |from| name(&keeper, &session, from)));
        let below = std::mem::take(&mut self.singles_below);
        let done = self.carry_out(kind, body);
        self.singles_below = below;
        witness::end();
        done
    }

    /// Executes an order about recordings.
    pub(super) fn record(&self, order: Order, by: &str) -> Result<(), Failure> {
        let recorder = &self.keeper.recorder;
        match order {
            Order::Start(mut scope) => {
                if scope.calls {
                    self.may_log_calls()?;
                    scope.principal = by.to_owned();
                } else {
                    self.may_record(by)?;
                }
                let (principal, calls) = (scope.principal.clone(), scope.calls);
                let (database, role, ring) = (scope.database, scope.role, scope.ring);
                let statements = scope.statements.len();
                let name = recorder.start(scope)?;
                let kind = if calls { "log of calls" } else { "recording" };
                let what = format!(
                    "{kind} begins: {name}, of {principal:?}, database {database:?}, role {role:?}, \
                     {statements} statements (0: all)"
                );
                self.keeper.audit.note("recording", by, what)?;
                tracing::info!(
                    by,
                    name,
                    principal,
                    database,
                    role,
                    ring,
                    statements,
                    calls,
                    "recording begins"
                );
            }
            Order::Stop => {
                if !recorder.is_log_of(by) {
                    self.may_record(by)?;
                }
                if !recorder.stop(End::Stopped)? {
                    return Err(Error::new(b"55000", "confide: nothing is recorded").into());
                }
                self.keeper.audit.note("recording", by, "stopped".into())?;
                tracing::info!(by, "recording stopped");
            }
        }
        self.keeper.reconsider();
        Ok(())
    }

    fn may_record(&self, by: &str) -> Result<(), Failure> {
        let administers = &self.keeper.config.administrators;
        match administers.iter().any(|name| name == by) {
            true => Ok(()),
            false => Err(
                Error::new(b"42501", "confide: only an administrator records")
                    .hint("See \"administrators\" in the keeper's configuration.")
                    .into(),
            ),
        }
    }

    /// A client can compute only with what it may see; if that is unknown, there is no log.
    fn may_log_calls(&self) -> Result<(), Failure> {
        match self.keeper.config.require_grants {
            true => Ok(()),
            false => Err(no_owners().into()),
        }
    }
}

/// The origin of an operand as shown in a log of calls. If it was computed from several columns,
/// one of them is named.
fn name(keeper: &Keeper, session: &Session, from: Source) -> Option<String> {
    let column = |id: &ColumnId| match keeper.standing.name_of(id) {
        Some(c) => format!("{}.{}.{}", c.schema, c.relation, c.column),
        None => COMPUTED.to_owned(),
    };
    match from {
        Source::Stored(id) => Some(column(&id)),
        Source::Nothing => Some(COMPUTED.to_owned()),
        Source::Made(label) => {
            let provenance = session.provenance.read();
            let provenance = provenance.unwrap_or_else(PoisonError::into_inner);
            let origin = provenance.set(label);
            match origin.columns.first() {
                Some(id) => Some(column(id)),
                None if GIVEN.contains(&origin.others) => None,
                None => Some(COMPUTED.to_owned()),
            }
        }
    }
}
