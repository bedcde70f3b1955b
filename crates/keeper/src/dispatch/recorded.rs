//! Requests of a channel that is recorded, and the orders that begin and end recordings.
//!
//! Invariant: only a client whose name is in `administrators` begins or ends one.

use super::Connection;
use crate::fail::Failure;
use crate::keeper::Keeper;
use crate::recorder::{Tape, Whose};
use crate::session::{Client, Session};
use contract::codec::Part;
use contract::{Kind, answer};
use recording::{End, Order, Outcome};
use std::sync::Arc;
use std::time::Instant;
use values::Error;

/// The tape of a channel, if it is recorded.
pub(super) fn tape(
    keeper: &Keeper,
    session: &Session,
    client: Option<&Client>,
    before: Option<Arc<Tape>>,
) -> Option<Arc<Tape>> {
    let whose = Whose {
        session: session.id,
        database: session.database,
        principal: client.map(|client| client.name.as_str()),
    };
    keeper.recorder.tape(before, whose)
}

impl Connection {
    /// Carries out a request, and keeps what was asked and answered.
    #[cold]
    #[inline(never)]
    pub(super) fn recorded(&mut self, kind: Kind, body: &[u8]) -> Option<Result<(), Error>> {
        let tape = self.tape.clone();
        let from = Instant::now();
        if let Some(tape) = tape.as_ref().filter(|tape| tape.wants_programs()) {
            self.tell_programs(tape, from);
        }
        let done = self.carry_out(kind, body);
        let mut error = Vec::new();
        let outcome = match &done {
            None => Outcome::OneWay,
            Some(Ok(())) => Outcome::Answer(&self.reply),
            Some(Err(what)) => {
                crate::fail::encode(what, &mut error);
                Outcome::Error(&error)
            }
        };
        if let Some(tape) = tape {
            tape.note(kind, body, from, outcome);
        }
        done
    }

    /// Programs that were registered before: as if they were now.
    fn tell_programs(&self, tape: &Tape, now: Instant) {
        for (program, message) in self.session.programs() {
            let mut answer = Vec::new();
            answer::ProgramRegister { program }.put(&mut answer);
            let outcome = Outcome::Answer(&answer);
            tape.note(Kind::ProgramRegister, &message, now, outcome);
        }
    }

    /// Carries out what somebody says about recordings.
    pub(super) fn record(&self, order: Order, by: &str) -> Result<(), Failure> {
        let administers = &self.keeper.config.administrators;
        if !administers.iter().any(|name| name == by) {
            return Err(
                Error::new(b"42501", "confide: only an administrator records")
                    .hint("See \"administrators\" in the keeper's configuration.")
                    .into(),
            );
        }
        let recorder = &self.keeper.recorder;
        match order {
            Order::Start(scope) => {
                let principal = scope.principal.clone();
                let (database, ring) = (scope.database, scope.ring);
                let name = recorder.start(scope)?;
                let what = format!("begins: {name}, of {principal:?}, database {database:?}");
                self.keeper.audit.note("recording", by, what)?;
                tracing::info!(by, name, principal, database, ring, "recording begins");
            }
            Order::Stop => {
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
}
