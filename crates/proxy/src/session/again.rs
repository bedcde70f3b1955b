//! Sends a client's statement a second time when the keeper no longer knew the session, or the server
//! was shut down (`revive`): the client gets the answer of the second attempt, and no error.
//!
//! The first attempt has failed as a whole, because it was not part of a transaction and nothing of
//! it was completed. The frames that the client has sent since the last ReadyForQuery are kept for
//! this; answers that the client has already received (ParseComplete, descriptions) are not
//! repeated.
//!
//! Not here: the handshake, which the analysis of the repeated frames requests like that of any
//! others.
//!
//! Invariant: what is sent again had no effect: it began outside of a transaction, contained
//! nothing that ends one by itself, and the client has received neither rows nor a completion.
use std::collections::VecDeque;
use std::mem::take;

use bytes::Bytes;
use client::Failure;
use rewrite::StatementKind;

use super::queue::Expect;
use super::{Core, Step, Stop, Wait};
use crate::wire::{frame, frontend};

/// Maximum number of bytes that are kept.
const KEPT_MAX: usize = 256 * 1024;

/// How the server reports that the keeper no longer knows the session.
const NO_SESSION: &[u8] = b"confide: no client session";

/// The same with its SQLSTATE, and that the keeper has just ended.
const LOST: [(&[u8], &[u8]); 2] = [
    (b"08003", NO_SESSION),
    (b"08006", b"Confide's keeper is gone"),
];

/// What is kept of the current statement or pipeline.
#[derive(Default)]
pub(super) struct Again {
    state: State,
    /// The client's frames.
    frames: Vec<Bytes>,
    size: usize,
    /// Answers that the client has received.
    told: VecDeque<Bytes>,
    /// What is sent again and has not been processed yet.
    rest: VecDeque<Bytes>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
enum State {
    /// Nothing has been sent since the last ReadyForQuery.
    #[default]
    Idle,
    /// Everything since then is kept.
    Kept,
    /// Something cannot be sent twice.
    No,
    /// The first attempt has failed; its ReadyForQuery is still to come.
    Failed,
    /// The second attempt.
    Second,
}

impl Again {
    /// Whether frames of the client wait for the second attempt.
    pub(super) fn waits(&self) -> bool {
        self.state == State::Failed
    }

    /// Whether everything that was sent is kept, and nothing of it is known to have had an effect.
    pub(super) fn is_whole(&self) -> bool {
        self.state == State::Kept && !self.frames.is_empty()
    }

    /// The first attempt has failed.
    pub(super) fn fail(&mut self) {
        self.state = State::Failed;
    }

    /// Whether what is sent now is sent for the second time.
    pub(super) fn is_second(&self) -> bool {
        self.state == State::Second
    }

    /// Whether anything is left to be sent again.
    pub(super) fn has_rest(&self) -> bool {
        !self.rest.is_empty()
    }

    /// The next frame to be sent again.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        self.rest.pop_front()
    }

    /// The statement must not be sent twice.
    pub(super) fn forbid(&mut self) {
        if self.state == State::Kept || self.state == State::Idle {
            self.state = State::No;
            self.frames.clear();
            self.told.clear();
        }
    }

    fn keep(&mut self, frame: &Bytes, first: bool, fits: bool) {
        if self.state == State::Idle && first {
            self.state = State::Kept;
        }
        if self.state == State::Idle {
            self.state = State::No;
        }
        if self.state != State::Kept {
            return;
        }
        self.size += frame.len();
        if !fits || self.size > KEPT_MAX {
            return self.forbid();
        }
        self.frames.push(frame.clone());
    }

    fn over(&mut self) {
        self.state = State::Idle;
        self.size = 0;
        self.frames.clear();
        self.told.clear();
    }
}

/// Whether a statement that failed outside of a transaction has done nothing.
fn undone(statement: &rewrite::Statement, text: &str) -> bool {
    match statement.kind {
        StatementKind::TransactionControl(_)
        | StatementKind::Call
        | StatementKind::Do
        | StatementKind::Other => false,
        // VACUUM and the like, and what is done CONCURRENTLY, commit in between.
        StatementKind::Ddl => {
            let text = text.to_ascii_lowercase();
            let begins = |word| text.trim_start().starts_with(word);
            let words = ["create", "alter", "drop", "select", "grant"];
            words.into_iter().any(begins) && !text.contains("concurrently")
        }
        _ => true,
    }
}

impl Core {
    /// A frame of the client is processed: keeps it, if it can be sent twice.
    pub(super) fn keep(&mut self, frame: &Bytes) {
        if !self.enabled || self.again.is_second() {
            return;
        }
        let first = self.queue.is_empty() && !self.pipeline && self.status == b'I';
        let tag = frame.first().copied().unwrap_or(0);
        // What comes after the end of a pipeline may already have been executed.
        let behind = self.again.state == State::Kept
            && matches!(self.queue.back(), Some(Expect::Sync | Expect::Query(_)));
        // There is nothing left to flush.
        if behind && tag == b'H' {
            return;
        }
        let fits = matches!(tag, b'Q' | b'P' | b'B' | b'D' | b'E' | b'C' | b'H' | b'S') && !behind;
        self.again.keep(frame, first, fits && self.script.is_none());
    }

    /// A statement is being sent.
    pub(super) fn kept(&mut self, statement: &rewrite::Statement, text: &str) {
        if !undone(statement, text) {
            self.again.forbid();
        }
    }

    /// Messages for the client have been appended behind `before`; those that it already has are
    /// taken back.
    pub(super) fn told(&mut self, before: usize) -> Step {
        let second = self.again.is_second() && !self.again.told.is_empty();
        if self.again.state != State::Kept && !second {
            return Ok(());
        }
        let mut at = before;
        while let Some(length) =
            frame::first(self.to_client.get(at..).unwrap_or_default(), usize::MAX)?
        {
            let Some(one) = self.to_client.get(at..at + length) else {
                break;
            };
            match one.first() {
                Some(b'N' | b'S' | b'A') => {}
                Some(b'1' | b'2' | b'3' | b't' | b'T' | b'n') if second => {
                    match self.again.told.pop_front() {
                        Some(had) if had == one => {
                            let behind = self.to_client.split_off(at + length);
                            self.to_client.truncate(at);
                            self.to_client.unsplit(behind);
                            continue;
                        }
                        Some(_) => {
                            self.to_client.truncate(at);
                            return Err(different());
                        }
                        None => {}
                    }
                }
                Some(b'1' | b'2' | b'3' | b't' | b'T' | b'n') => {
                    self.again.told.push_back(Bytes::copy_from_slice(one));
                }
                _ => self.again.forbid(),
            }
            at += length;
        }
        Ok(())
    }

    /// The server reports an error: whether the statement will be sent again instead of reporting
    /// it to the client.
    pub(super) fn repeats(&mut self, fields: &[(u8, &[u8])]) -> bool {
        let field = |tag: u8| fields.iter().find(|(t, _)| *t == tag).map(|(_, v)| *v);
        let (code, text) = (field(b'C'), field(b'M').unwrap_or_default());
        if text.starts_with(NO_SESSION) {
            self.session.lose();
        }
        let lost = LOST
            .iter()
            .any(|(c, t)| code == Some(c) && text.starts_with(t));
        let front = !matches!(
            self.queue.front(),
            None | Some(Expect::Internal(_) | Expect::Sync)
        );
        if !lost || !front || self.again.state != State::Kept || self.status != b'I' {
            return false;
        }
        self.session.lose();
        self.again.fail();
        self.held = None;
        self.wait = Wait::Nothing;
        if !matches!(self.queue.front(), Some(Expect::Query(_))) {
            self.drop_until_sync();
            if self.queue.is_empty() {
                frontend::bare(&mut self.to_server, b'S');
                self.queue.push_back(Expect::Sync);
            }
        }
        true
    }

    /// ReadyForQuery has arrived, or the session goes on on another connection: whether it belongs to
    /// a failed first attempt, which the client does not learn about.
    pub(super) fn repeat(&mut self) -> bool {
        if self.again.state != State::Failed {
            self.again.over();
            return false;
        }
        self.again.state = State::Second;
        self.again.rest = take(&mut self.again.frames).into();
        self.pipeline = false;
        self.discarding = false;
        true
    }
}

fn different() -> Stop {
    Stop::Fatal(
        Failure::new(
            "55000",
            "confide: the schema has changed while the keeper was restarted",
        )
        .hint("Connect again."),
    )
}
