//! The answers expected from the server: one entry, in order, for each message sent to it that is
//! answered. Responses created by the proxy are attached to entries, so that no error overtakes a
//! response.
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use client::Failure;
use rewrite::{CopyPlan, PositionMap, Row};

use super::Stop;
use super::late::End;
use super::statement::{Effect, Portal, Statement};
use client::description::Column;

/// One expected answer.
pub(super) enum Expect {
    /// All answers to a Query, up to ReadyForQuery.
    Query(Box<QueryState>),
    /// ParseComplete.
    Parse(Box<ParseState>),
    /// BindComplete.
    Bind(Option<Arc<Portal>>),
    /// ParameterDescription, then RowDescription or NoData.
    DescribeStatement {
        /// The described statement, if known.
        statement: Option<Arc<Statement>>,
        /// Requested by the proxy: not for the client.
        hidden: bool,
    },
    /// RowDescription or NoData.
    DescribePortal {
        /// The described portal, if known.
        portal: Option<Arc<Portal>>,
        /// Requested by the proxy: not for the client.
        hidden: bool,
    },
    /// Rows or COPY, then CommandComplete or a similar message.
    Execute {
        /// The executed portal, if known.
        portal: Option<Arc<Portal>>,
        /// Its COPY from or to the client, unless that has begun.
        copy: Option<Box<CopyPlan>>,
    },
    /// CloseComplete.
    Close {
        /// Sent by the proxy: not for the client.
        hidden: bool,
    },
    /// ReadyForQuery.
    Sync,
    /// A statement of the proxy that fails: the client gets our error.
    Refusal(Box<Failure>),
    /// The rest of what has failed here ([`super::late`]), which the client does not get.
    Failed,
    /// The answers to a query of the proxy.
    Internal(Box<InternalState>),
}

impl Expect {
    /// Whether it answers a statement that touches something protected.
    pub(super) fn touches(&self) -> bool {
        let of = |s: &Arc<Statement>| s.touches;
        match self {
            Expect::Query(state) => state.touches,
            Expect::Parse(state) => state.statement.as_ref().is_some_and(of),
            Expect::DescribeStatement { statement, .. } => statement.as_ref().is_some_and(of),
            Expect::Bind(portal)
            | Expect::DescribePortal { portal, .. }
            | Expect::Execute { portal, .. } => portal
                .as_ref()
                .and_then(|p| p.statement.as_ref())
                .is_some_and(of),
            _ => false,
        }
    }

    /// The kind of entry, for error messages.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Expect::Query(_) => "Query",
            Expect::Parse(_) => "Parse",
            Expect::Bind(_) => "Bind",
            Expect::DescribeStatement { .. } => "Describe (statement)",
            Expect::DescribePortal { .. } => "Describe (portal)",
            Expect::Execute { .. } => "Execute",
            Expect::Close { .. } => "Close",
            Expect::Sync => "Sync",
            Expect::Refusal(_) => "a refused message",
            Expect::Failed => "a failed message",
            Expect::Internal(_) => "a query of the proxy",
        }
    }
}

/// A Query in progress.
#[derive(Default)]
pub(super) struct QueryState {
    /// Our error, which replaces the server's.
    pub(super) refusal: Option<Failure>,
    /// Position mapping of the text that was sent.
    pub(super) positions: Option<PositionMap>,
    /// The client's message and the literals of each statement, if any are sealed.
    pub(super) literals: Option<(Bytes, Vec<Literals>)>,
    /// Effects of the statements that have not completed.
    pub(super) effects: VecDeque<Option<Effect>>,
    /// For each statement that has not completed, its COPY from or to the client, unless that has
    /// begun.
    pub(super) copies: VecDeque<Option<CopyPlan>>,
    /// For each statement that has not completed, the columns of its rows that may be protected.
    pub(super) results: VecDeque<Rows>,
    /// One of its statements touches something protected.
    pub(super) touches: bool,
    /// Columns of the current rows.
    pub(super) columns: Option<Vec<Column>>,
    /// How it ends.
    pub(super) end: End,
}

/// Which columns of a statement's rows may be protected.
pub(super) enum Rows {
    /// Those that the analysis says; `None` if it cannot tell.
    Analysed(Option<Vec<bool>>),
    /// Those of the cursor of this name.
    Cursor(String),
}

impl Rows {
    pub(super) fn of(statement: &rewrite::Statement) -> Rows {
        match &statement.kind {
            rewrite::StatementKind::Fetch { name } => Rows::Cursor(name.clone()),
            _ => Rows::Analysed(statement.results.clone()),
        }
    }
}

/// The literals of a statement.
pub(super) struct Literals {
    /// The statement's range of bytes.
    pub(super) range: Range<usize>,
    pub(super) edits: Vec<rewrite::Edit>,
}

/// A Parse in progress.
pub(super) struct ParseState {
    /// Name of the statement.
    pub(super) name: String,
    /// What is known about it.
    pub(super) statement: Option<Arc<Statement>>,
    /// The previous statement of that name, restored if Parse fails.
    pub(super) previous: Option<Arc<Statement>>,
    /// Sent by the proxy: not for the client.
    pub(super) hidden: bool,
}

/// A query of the proxy.
#[derive(Default)]
pub(super) struct InternalState {
    /// It ends with Sync; otherwise with Flush, within the client's pipeline.
    pub(super) sync: bool,
    /// No task waits for the answers.
    pub(super) unawaited: bool,
    /// Number of CloseComplete messages still expected.
    pub(super) closes: u8,
    /// Rows so far.
    pub(super) rows: Vec<Row>,
    /// The server's error.
    pub(super) error: Option<Failure>,
}

/// The server has sent a message with this tag, which does not answer the first entry.
pub(super) fn out_of_order(tag: u8, entry: Option<&Expect>) -> Stop {
    let expected = entry.map_or("no answer", Expect::name);
    Stop::Fatal(Failure::new(
        "08P01",
        format!(
            "confide: unexpected message \"{}\" from the server, which had to answer {expected}",
            char::from(tag)
        ),
    ))
}
