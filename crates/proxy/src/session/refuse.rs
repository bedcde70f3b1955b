//! Refusals: errors of the proxy's own, at the place in the order of responses and
//! with the effect on the transaction that an error of the server would have.
//!
//! The server gets a statement that fails in the place of the refused one; the
//! client gets our error in the place of the server's.
use client::Failure;

use super::queue::{Expect, QueryState};
use super::{Core, Flow};
use crate::shared::Stats;
use crate::wire::frontend;

/// Not a statement, and not a value.
const FAILS: &str = "confide_refused";

impl Core {
    /// Refuses a Query.
    pub(super) fn refuse_query(&mut self, failure: Failure) -> Flow {
        self.count_refusal(&failure);
        frontend::query(&mut self.to_server, FAILS);
        self.pipeline = false;
        self.queue.push_back(Expect::Query(Box::new(QueryState {
            refusal: Some(failure),
            ..QueryState::default()
        })));
        Flow::Done
    }

    /// Refuses a message of the extended protocol; what the client sends up to
    /// its next Sync is dropped, as the server would.
    pub(super) fn refuse_extended(&mut self, failure: Failure) -> Flow {
        self.count_refusal(&failure);
        frontend::parse(&mut self.to_server, FAILS, FAILS, &[]);
        self.pipeline = true;
        self.discarding = true;
        self.queue.push_back(Expect::Refusal(Box::new(failure)));
        // The client may wait for the error without sending Sync.
        frontend::bare(&mut self.to_server, b'H');
        Flow::Done
    }

    fn count_refusal(&self, failure: &Failure) {
        Stats::add(&self.shared.stats.refused, 1);
        tracing::debug!(sqlstate = %failure.sqlstate, "refused a statement");
    }
}
