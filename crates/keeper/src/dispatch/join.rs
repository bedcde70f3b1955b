//! Who joins a session: channels of parallel workers, which its leader announces; and what its
//! client says of it as a whole.
//!
//! Invariant: a pass is what one leader has drawn for one statement, and is good for as long as
//! that runs.

use super::Connection;
use crate::fail::{self, Failure};
use contract::body;
use grant::Lease;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

impl Connection {
    /// Lets channels join.
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

    /// Lets no more of them join.
    pub(super) fn withdraw(&mut self) {
        if self.leads {
            self.set_pass(None);
        }
    }

    fn set_pass(&self, pass: Option<[u8; 16]>) {
        let known = self.session.pass.lock();
        *known.unwrap_or_else(PoisonError::into_inner) = pass;
    }

    /// What the client says of its session.
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
