//! Statements that fail when the client's side opens their rows. A product of encodings that
//! overflows is such a row (`rewrite::Late`): the server cannot tell, and may have completed the
//! statement.
//!
//! The client gets the error as that of the statement, and nothing that the server still says about
//! it. The server's transaction fails, too:
//! - In a transaction block, the server gets a statement that fails.
//! - Otherwise, a statement that only reads has nothing to undo. What may have changed something is
//!   not committed before its rows have been opened: of the extended protocol, Sync waits; a Query is
//!   sent in a transaction block of the proxy, and its completion is told after COMMIT.
//!
//! Whatever the client sends behind such a statement waits until its rows have been opened.
//!
//! Invariant: if the server's work can no longer be undone, the connection ends (a text with COMMIT
//! in it).
use bytes::Bytes;
use client::Failure;
use rewrite::{Late as Lateness, StatementKind};

use super::queue::{Expect, InternalState, QueryState};
use super::refuse::FAILS;
use super::{Core, Flow, Step, Stop, Wait};
use crate::wire::{backend, frontend};

/// What is known of the statement whose rows are awaited.
#[derive(Default)]
pub(super) struct Late {
    /// The client's messages wait for the answers to what was sent.
    waits: bool,
    /// ... but for Sync, which ends nothing that might have to be undone.
    syncs: bool,
    /// Number of executions since the last Sync.
    executed: usize,
    /// The client was told that the statement has failed, and the server was not.
    failed: bool,
}

/// How a Query of the proxy, or one that it has enclosed in a transaction, ends.
#[derive(Default)]
pub(super) enum End {
    /// As the server says.
    #[default]
    Told,
    /// It was sent behind BEGIN; its completion, when it has come, waits for COMMIT.
    Enclosed(Option<Bytes>),
    /// It is that COMMIT: the client gets the completion of its own statement instead.
    Commit(Bytes),
    /// The client gets ReadyForQuery only.
    Silent,
}

impl Core {
    fn lateness(&self, statement: &rewrite::Statement) -> Lateness {
        match &statement.kind {
            StatementKind::Fetch { name } => self.cursors.late(name),
            StatementKind::Declare { .. } | StatementKind::Prepare { .. } => Lateness::Never,
            _ => statement.late,
        }
    }

    /// Whether a Query must wait for the answers to what was sent before, so that it is known
    /// whether it begins in a transaction.
    pub(super) fn too_early(&self, statements: &[rewrite::Statement]) -> bool {
        let late = |s: &rewrite::Statement| self.lateness(s) != Lateness::Never;
        !self.queue.is_empty() && statements.iter().any(late)
    }

    /// A Query is about to be sent.
    pub(super) fn enclose(&mut self, statements: &[rewrite::Statement]) -> End {
        self.late.executed = 0;
        let ends = |s: &rewrite::Statement| {
            use StatementKind::{Call, Do, TransactionControl};
            matches!(s.kind, TransactionControl(_) | Call | Do)
        };
        let all = || statements.iter().map(|s| self.lateness(s));
        if all().all(|l| l == Lateness::Never) || statements.iter().any(ends) {
            return End::Told;
        }
        let reads = statements.len() == 1 && all().all(|l| l == Lateness::Reads);
        self.late.waits = true;
        self.late.syncs = false;
        if reads || self.status != b'I' {
            return End::Told;
        }
        frontend::query(&mut self.to_server, "BEGIN");
        self.queue
            .push_back(Expect::Internal(Box::new(InternalState {
                sync: true,
                unawaited: true,
                ..InternalState::default()
            })));
        End::Enclosed(None)
    }

    /// Execute has been sent.
    pub(super) fn executes(&mut self, statement: Option<&super::Statement>) {
        self.late.executed += 1;
        let late = match statement.map(|s| (s, &s.analysed)) {
            Some((_, Some(analysed))) => self.lateness(analysed),
            Some((statement, None)) => statement.late,
            None => Lateness::Never,
        };
        if late == Lateness::Never {
            return;
        }
        let before = |e: &Expect| matches!(e, Expect::Sync | Expect::Query(_));
        let inside = self.status == b'T' && !self.queue.iter().any(before);
        self.late.waits = true;
        self.late.syncs = self.late.executed == 1 && (late == Lateness::Reads || inside);
    }

    /// A pipeline has ended.
    pub(super) fn synced(&mut self) {
        self.late.executed = 0;
    }

    /// Lets a message of the client wait for rows that are to be opened.
    pub(super) fn awaits_rows(&mut self, tag: u8) -> Flow {
        self.late.waits &= !self.queue.is_empty();
        let passes = matches!(tag, b'd' | b'c' | b'f' | b'H');
        if !self.late.waits || passes || tag == b'S' && std::mem::take(&mut self.late.syncs) {
            return Flow::Done;
        }
        if self.pipeline {
            frontend::bare(&mut self.to_server, b'H');
        }
        self.wait_for(Wait::Drain)
    }

    /// A row that answers the first entry cannot be opened.
    pub(super) fn fails_late(&mut self, failure: Failure) -> Step {
        let of_value = failure.sqlstate.starts_with("22") || failure.sqlstate == "0A000";
        let only = match self.queue.len() {
            1 => true,
            2 => matches!(self.queue.back(), Some(Expect::Sync)),
            _ => false,
        };
        if !of_value || !only || !self.late.waits {
            // The server's data is invalid, or what it did stands.
            return Err(Stop::Fatal(failure));
        }
        backend::error(&mut self.to_client, "ERROR", &failure);
        self.copy_out = None;
        if let Some(front @ Expect::Execute { .. }) = self.queue.front_mut() {
            *front = Expect::Failed;
            if self.queue.len() == 1 {
                // As if it were the server's: it skips what comes before Sync.
                frontend::parse(&mut self.to_server, FAILS, FAILS, &[]);
                frontend::bare(&mut self.to_server, b'H');
                self.queue.push_back(Expect::Failed);
                self.pipeline = true;
                self.discarding = true;
                return Ok(());
            }
        }
        self.late.failed = true;
        Ok(())
    }

    /// An answer of the server to a statement that has failed here, or to one of this module: true if
    /// the client does not get it.
    pub(super) fn is_mute(&mut self, tag: u8) -> bool {
        match self.queue.front_mut() {
            Some(Expect::Failed) => {
                if matches!(tag, b'C' | b'I' | b's') {
                    self.queue.pop_front();
                }
                true
            }
            Some(Expect::Query(state)) => {
                if self.late.failed && tag == b'G' {
                    frontend::copy_fail(&mut self.to_server, "confide: refused");
                }
                self.late.failed || matches!(state.end, End::Silent)
            }
            _ => false,
        }
    }

    /// The same for an error.
    pub(super) fn is_mute_error(&mut self) -> bool {
        let skipping = matches!(self.queue.front(), Some(Expect::Failed));
        if skipping {
            // The server skips up to Sync.
            self.queue.retain(|e| !matches!(e, Expect::Failed));
        }
        skipping || self.is_mute(b'E')
    }

    /// The completion that the client gets for the server's, if any yet.
    pub(super) fn completion(&mut self, message: &[u8]) -> Option<Bytes> {
        let Some(Expect::Query(state)) = self.queue.front_mut() else {
            return None;
        };
        let over = state.results.is_empty();
        match &mut state.end {
            End::Enclosed(last) if over => {
                *last = Some(Bytes::copy_from_slice(message));
                None
            }
            End::Commit(own) => Some(std::mem::take(own)),
            _ => Some(Bytes::copy_from_slice(message)),
        }
    }

    /// Before ReadyForQuery is told: whether the server's transaction has to end first, or fail.
    pub(super) fn is_unfinished(&mut self, ended: Expect) -> bool {
        let end = match ended {
            Expect::Query(state) => state.end,
            _ => End::Told,
        };
        let failed = std::mem::take(&mut self.late.failed);
        let (sql, end) = match (end, self.status) {
            (End::Enclosed(Some(last)), b'T') if !failed => ("COMMIT", End::Commit(last)),
            (End::Enclosed(_), b'T' | b'E') => ("ROLLBACK", End::Silent),
            (_, b'T') if failed => (FAILS, End::Silent),
            _ => return false,
        };
        frontend::query(&mut self.to_server, sql);
        self.queue.push_back(Expect::Query(Box::new(QueryState {
            end,
            ..QueryState::default()
        })));
        true
    }
}
