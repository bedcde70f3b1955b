//! Joining a session: the leader announces the channels of parallel workers. Also messages by which
//! the client controls its session as a whole.
//!
//! Invariant: a pass is drawn by one leader for one statement, and is valid while that statement
//! runs.

use super::Connection;
use crate::fail::{self, Failure};
use contract::body;
use grant::Lease;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

impl Connection {
    /// Permits channels to join.
    pub(super) fn announce(&mut self, body: &body::Announce) -> Result<(), Failure> {
        if !self.leads {
            return Err(fail::malformed("Only the session's leader announces others.").into());
        }
        let pass = u128::from(body.high) << 64 | u128::from(body.low);
        if pass == 0 {
            return Err(fail::malformed("The pass is empty.").into());
        }
        self.set_pass(Some(pass.to_le_bytes()));
        Ok(())
    }

    /// Withdraws that permission.
    pub(super) fn withdraw(&mut self) {
        if self.leads {
            self.set_pass(None);
        }
    }

    fn set_pass(&self, pass: Option<[u8; 16]>) {
        let known = self.session.pass.lock();
        *known.unwrap_or_else(PoisonError::into_inner) = pass;
    }

    /// Handles the client's message about its session.
    pub(super) fn lease(&self, said: &[u8]) -> Result<(), Failure> {
        let counters = &self.keeper.counters;
        match Lease::decode(said) {
            Ok(Lease::GoesOn(after)) => {
                counters.renewals_total.fetch_add(1, Relaxed);
                self.session.renew(after, Instant::now());
            }
            Ok(Lease::Over) => {
                counters.goodbyes_total.fetch_add(1, Relaxed);
                tracing::debug!(session = self.session.id, "the client has left");
                self.session.leave();
            }
            Err(grant::Malformed) => return Err(fail::malformed("The lease is malformed.").into()),
        }
        Ok(())
    }
}
