//! What the server still owes: one entry for each message sent to it that is
//! answered, in order. Responses made by the proxy ride on entries, so that no
//! error overtakes a response.
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use client::Failure;
use rewrite::{CopyPlan, PositionMap, Row};

use super::statement::{Effect, Portal, Statement};
use client::description::Column;

/// One answer to come.
pub(super) enum Expect {
    /// All answers to a Query, up to ReadyForQuery.
    Query(Box<QueryState>),
    /// ParseComplete.
    Parse(Box<ParseState>),
    /// BindComplete.
    Bind(Option<Arc<Portal>>),
    /// ParameterDescription, then RowDescription or NoData.
    DescribeStatement {
        /// What it describes, if we know.
        statement: Option<Arc<Statement>>,
        /// Asked by the proxy: not for the client.
        hidden: bool,
    },
    /// RowDescription or NoData.
    DescribePortal {
        /// What it describes, if we know.
        portal: Option<Arc<Portal>>,
        /// Asked by the proxy: not for the client.
        hidden: bool,
    },
    /// Rows or COPY, then CommandComplete or a relative of it.
    Execute {
        /// What runs, if we know.
        portal: Option<Arc<Portal>>,
        /// COPY plans left.
        copies: VecDeque<CopyPlan>,
    },
    /// CloseComplete.
    Close {
        /// Sent by the proxy: not for the client.
        hidden: bool,
    },
    /// ReadyForQuery.
    Sync,
    /// A statement of the proxy's that fails: the client gets our error.
    Refusal(Box<Failure>),
    /// The answers to a query of the proxy's own.
    Internal(Box<InternalState>),
}

/// A Query under way.
#[derive(Default)]
pub(super) struct QueryState {
    /// Our error in the place of the server's.
    pub(super) refusal: Option<Failure>,
    /// Positions of the text that was sent.
    pub(super) positions: Option<PositionMap>,
    /// The client's message and the literals of each statement, if there are sealed ones.
    pub(super) literals: Option<(Bytes, Vec<Literals>)>,
    /// Effects of the statements that have not completed.
    pub(super) effects: VecDeque<Option<Effect>>,
    /// COPY plans left.
    pub(super) copies: VecDeque<CopyPlan>,
    /// For each statement that has not completed, which columns of its rows may be protected.
    pub(super) results: VecDeque<Option<Vec<bool>>>,
    /// Columns of the rows that come.
    pub(super) columns: Option<Vec<Column>>,
}

/// The literals of a statement.
pub(super) struct Literals {
    /// Bytes of the statement.
    pub(super) range: Range<usize>,
    pub(super) edits: Vec<rewrite::Edit>,
}

/// A Parse under way.
pub(super) struct ParseState {
    /// Name of the statement.
    pub(super) name: String,
    /// What we know about it.
    pub(super) statement: Option<Arc<Statement>>,
    /// What had the name before: restored when Parse fails.
    pub(super) previous: Option<Arc<Statement>>,
    /// Sent by the proxy: not for the client.
    pub(super) hidden: bool,
}

/// A query of the proxy's own.
#[derive(Default)]
pub(super) struct InternalState {
    /// It ends with Sync; otherwise with Flush, within the client's pipeline.
    pub(super) sync: bool,
    /// No task waits for the answers.
    pub(super) unawaited: bool,
    /// How many CloseComplete are to come.
    pub(super) closes: u8,
    /// Rows so far.
    pub(super) rows: Vec<Row>,
    /// The server's error.
    pub(super) error: Option<Failure>,
}
