//! `Handshake`: the client proves which key it holds, and the keeper proves its identity.
//!
//! Invariant: the session's keys change only after a complete handshake with an authorised client
//! has succeeded.

use super::Connection;
use crate::fail::{self, Ended, Failure};
use crate::session::Client;
use channel::hidden;
use contract::{answer, body};
use envelope::handshake::Responder;
use envelope::{Evidence, Opener};
use evidence::Purpose;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::Instant;
use values::Error;

impl Connection {
    pub(super) fn handshake(&mut self, body: body::Handshake<'_>) -> Result<(), Failure> {
        let step = body.step;
        let done = match step {
            1 => self.respond(body.message),
            3 => self.finish(body.message),
            _ => Err(fail::malformed("There is no such step of a handshake.")),
        };
        let counters = &self.keeper.counters;
        match &done {
            Ok(()) if step == 3 => counters.handshakes_total.fetch_add(1, Relaxed),
            Ok(()) => 0,
            Err(_) => counters.handshakes_failed_total.fetch_add(1, Relaxed),
        };
        Ok(done?)
    }

    fn respond(&mut self, message: &[u8]) -> Result<(), Error> {
        let failed = |e: envelope::Error| fail::handshake(&e);
        let full = |_| fail::no_hidden_memory();
        let begun = hidden::keys(|| {
            let mut responder = Responder::new(&self.keeper.keys.secret)?;
            let asks = responder.receive(message)?;
            Ok((responder, asks))
        });
        let (mut responder, asks) = begun.map_err(full)?.map_err(failed)?;
        let document = match asks {
            true => self.keeper.zone.show(Purpose::Session, message)?,
            false => Vec::new(),
        };
        let evidence = Evidence::new(self.session.id, document)
            .with_lease(self.keeper.config.session_lease_seconds);
        let made = Instant::now();
        let answer = hidden::keys(|| responder.respond(&evidence));
        let answer = answer.map_err(full)?.map_err(failed)?;
        self.responder = Some((responder, made));
        self.answer(&answer::Handshake { message: &answer });
        Ok(())
    }

    fn finish(&mut self, message: &[u8]) -> Result<(), Error> {
        let failed = |e: envelope::Error| fail::handshake(&e);
        let full = |_| fail::no_hidden_memory();
        let responder = self.responder.take();
        let (responder, made) =
            responder.ok_or_else(|| failed(envelope::Error::Handshake("message out of order")))?;
        let finished = hidden::keys(|| {
            let (key, keys) = responder.finish(message)?;
            let storing = keys.storing()?;
            let stored = (Opener::storing(&storing)?, storing);
            Ok((key, keys.echo()?, stored, keys.into_keeper()?))
        });
        let (key, echo, (opens_fitted, storing), (sealer, opener)) =
            finished.map_err(full)?.map_err(failed)?;
        let name = self.keeper.clients.name(&key);
        self.keeper.withdrawn.ring();
        let Some(name) = name else {
            let what = format!(
                "28000 key {key} is not authorised (session {})",
                self.session.id
            );
            self.keeper.audit.mention("refused", "-", what);
            tracing::warn!(%key, session = self.session.id, "client is not authorised");
            return Err(Error::new(b"28000", "confide: client is not authorised")
                .detail(format!("Its public key is {key}."))
                .hint("Add the key to the keeper's file of authorised clients."));
        };
        self.keeper.audit.key_used(&name, &key);
        tracing::info!(%key, name, session = self.session.id, "client session");
        let client = Client {
            name,
            key,
            sealer,
            opener,
            echo,
            storing: Arc::new(storing),
            opens_fitted,
        };
        let session = &self.session;
        self.keeper.collect_from(session);
        session.tallies().begin(&client.name);
        session.change(|shared| {
            let grants = session.grants.write();
            grants.unwrap_or_else(PoisonError::into_inner).clear();
            shared.client = Some(Arc::new(client));
            if shared.ended != Some(Ended::LeaderGone) {
                shared.ended = None;
            }
        });
        session.begin_lease(made, self.keeper.config.session_lease_seconds);
        Ok(())
    }
}
