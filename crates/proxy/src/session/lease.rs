//! The session's lease: renewed when due, before a message of the client, and returned when the
//! client disconnects (docs/security.md).
//!
//! Both use comments sealed by the client, appended to a text that is analysed but never executed.
//! Nothing waits for the answer.
//!
//! Invariant: a text of the proxy is sent only between complete messages of the client, never
//! within a pipeline or COPY of the client, and not where an error would abort a transaction.

use client::Due;

use super::internal::NAME;
use super::queue::{Expect, InternalState};
use super::{Core, Flow, Phase, Wait};
use crate::shared::Stats;
use crate::wire::frontend;

/// A statement without rows, columns and tables.
const NOTHING: &str = "SELECT";

impl Core {
    /// Renews the session's lease if due; the client's message waits if necessary.
    pub(super) fn renew(&mut self) -> Flow {
        if self.pipeline || self.copy_in.is_some() || self.status == b'E' {
            return Flow::Done;
        }
        match self.session.lease_due() {
            Due::No => Flow::Done,
            // An error would abort the transaction: send it only if the lease would otherwise
            // expire.
            Due::Soon if !self.queue.is_empty() || self.status != b'I' => Flow::Done,
            Due::Now if !self.queue.is_empty() => self.wait_for(Wait::Drain),
            Due::Soon | Due::Now => {
                if let Ok(text) = self.session.renew() {
                    self.say(&text);
                    frontend::targeted(&mut self.to_server, b'C', b'S', NAME);
                    frontend::bare(&mut self.to_server, b'S');
                    let state = InternalState {
                        sync: true,
                        closes: 2,
                        unawaited: true,
                        ..InternalState::default()
                    };
                    self.queue.push_back(Expect::Internal(Box::new(state)));
                    Stats::add(&self.shared.stats.renewals, 1);
                }
                Flow::Done
            }
        }
    }

    /// Tells the keeper that the client is disconnecting. Does not wait for an answer. A pooler would not use a
    /// connection again that owes one, and resets it (DISCARD ALL), which ends the session as well.
    pub fn leave(&mut self) {
        if self.pooled() {
            return;
        }
        if self.phase != Phase::Running || self.copy_in.is_some() || !self.session.is_open() {
            return;
        }
        if let Ok(text) = self.session.leave() {
            if self.status == b'E' {
                let rollback = ["ROLLBACK", self.signature(false)].concat();
                frontend::query(&mut self.to_server, &rollback);
            }
            self.say(&text);
        }
    }

    fn say(&mut self, text: &str) {
        let out = &mut self.to_server;
        frontend::targeted(out, b'C', b'S', NAME);
        frontend::parse(out, NAME, &[NOTHING, text].concat(), &[]);
    }
}
