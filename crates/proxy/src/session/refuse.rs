//! Refusals: errors of the proxy, at the position in the order of responses and with the effect on
//! the transaction that an error of the server would have.
//!
//! The server gets a failing statement instead of the refused one; the client gets our error
//! instead of the server's.
use client::Failure;

use super::queue::{Expect, QueryState};
use super::{Core, Flow};
use crate::shared::Stats;
use crate::wire::frontend;

/// Neither a valid statement nor a value.
pub(super) const FAILS: &str = "confide_refused";

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

    /// Refuses a message of the extended protocol; the client's messages up to its next Sync are
    /// dropped, as the server would do.
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
