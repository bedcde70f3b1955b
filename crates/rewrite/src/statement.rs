//! What the analysis says about a statement.

use crate::copy::CopyPlan;
use crate::edit::{Edit, Piece};
use contract::TypeCode;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// One statement of the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement {
    /// Its bytes in the text, without the semicolon.
    pub range: Range<usize>,
    /// What it is.
    pub kind: StatementKind,
    /// What to change in the text: sorted, not overlapping, offsets into the
    /// whole text.
    pub edits: Vec<Edit>,
    /// The parameters `$n` that it uses.
    pub params: BTreeMap<u32, ParamUse>,
    /// Parameters that are plain, and only compared: see [`crate::analyze_sealing`].
    pub compared: Vec<u32>,
    /// It has constants that go to the server as they are.
    pub clear_values: bool,
    /// It reads, writes or defines something protected.
    pub touches_protected: bool,
    /// The snapshot of the schema may be stale once it has run.
    pub changes_schema: bool,
    /// The search path may be another once it has run.
    pub changes_search_path: bool,
    /// It has an unqualified name that several schemas have, with different
    /// protection: the caller makes sure of the search path and analyses again.
    pub depends_on_search_path: bool,
    /// For each column of the rows that the client gets, whether it may be protected; `None`
    /// where that is not known.
    pub results: Option<Vec<bool>>,
    /// It names what the snapshot does not have, and nothing protected: the caller loads
    /// the schema again and analyses once more before it is sent.
    pub unresolved: bool,
    /// Nothing protected can be reached by it, whatever the statements of the text before it do.
    /// Looked at in texts of several statements only.
    pub apart: bool,
    /// For `COPY`.
    pub copy: Option<CopyPlan>,
    /// What it may do with protected values (the bytes of a [`grant::Grant`]); none if it touches nothing protected.
    pub grant: Option<Arc<[u8]>>,
    /// For `PREPARE`: what to remember under the name, once it has succeeded.
    pub prepare: Option<PreparedInfo>,
}

impl Statement {
    /// Says all places of another text.
    pub(crate) fn moved(&mut self, place: impl Fn(usize) -> usize) {
        let moved = |range: &Range<usize>| place(range.start)..place(range.end);
        self.range = moved(&self.range);
        for edit in &mut self.edits {
            edit.range = moved(&edit.range);
            for piece in &mut edit.pieces {
                if let Piece::Envelope(secret) = piece {
                    secret.position = place(secret.position);
                }
            }
        }
    }
}

/// Kinds of statements, as far as the caller must tell them apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StatementKind {
    /// `SELECT`, `VALUES`, `TABLE`.
    Select,
    /// `INSERT`, `UPDATE`, `DELETE`, `MERGE`.
    Dml,
    /// `COPY`; see [`Statement::copy`].
    Copy,
    /// Changes the schema.
    Ddl,
    /// `BEGIN`, `COMMIT`, `ROLLBACK`, savepoints, two-phase commit.
    TransactionControl(Transaction),
    /// `SET`, `RESET`, with the name of the setting in lower case (empty for
    /// `RESET ALL`).
    Set {
        /// The setting.
        name: String,
    },
    /// `SHOW`.
    Show,
    /// `PREPARE`.
    Prepare {
        /// Name of the statement.
        name: String,
    },
    /// `EXECUTE`.
    Execute {
        /// Name of the statement.
        name: String,
    },
    /// `DEALLOCATE`; `None` for `ALL`.
    Deallocate {
        /// Name of the statement.
        name: Option<String>,
    },
    /// `DECLARE CURSOR`.
    Declare {
        /// Name of the cursor.
        name: String,
    },
    /// `FETCH`, `MOVE`.
    Fetch,
    /// `CLOSE`.
    Close,
    /// `EXPLAIN`.
    Explain,
    /// `DISCARD`.
    Discard {
        /// `DISCARD ALL`: prepared statements and settings are gone.
        all: bool,
    },
    /// `CALL`.
    Call,
    /// `DO`.
    Do,
    /// An empty statement.
    Empty,
    /// Anything else that is let through.
    Other,
}

impl StatementKind {
    /// Whether what such a statement means depends on the schema.
    #[must_use]
    pub fn uses_names(&self) -> bool {
        !matches!(
            self,
            StatementKind::TransactionControl(_)
                | StatementKind::Set { .. }
                | StatementKind::Show
                | StatementKind::Deallocate { .. }
                | StatementKind::Fetch
                | StatementKind::Close
                | StatementKind::Discard { .. }
                | StatementKind::Empty
        )
    }
}

/// Kinds of transaction control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transaction {
    /// `BEGIN`, `START TRANSACTION`.
    Begin,
    /// `COMMIT`, `END`.
    Commit,
    /// `ROLLBACK`, `ABORT`.
    Rollback,
    /// `SAVEPOINT`.
    Savepoint,
    /// `RELEASE`.
    Release,
    /// `ROLLBACK TO`.
    RollbackTo,
    /// `PREPARE TRANSACTION`, `COMMIT PREPARED`, `ROLLBACK PREPARED`.
    TwoPhase,
}

/// What a parameter meets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParamUse {
    /// A protected expression. The declared type, if the client gave one in
    /// Parse, must become its twin.
    Protected {
        /// The type that a cast in the statement says (`$1::date`).
        declared: Option<TypeCode>,
    },
    /// An array of protected values (`= ANY ($1)`): each element must be an
    /// envelope, the declared type the twin's array type.
    ProtectedArray {
        /// The element type that a cast in the statement says.
        declared: Option<TypeCode>,
    },
    /// A column of the family `soft_`: the client encodes the value for it.
    Soft {
        /// The column.
        column: contract::soft::Column,
        /// To be stored there, not only compared.
        store: bool,
        /// The type that a cast in the statement says.
        said: Option<TypeCode>,
    },
    /// Something plain.
    Plain,
    /// Nothing that has a type (`SELECT $1`).
    Undecided,
}

/// What a prepared statement's parameters meet, for `EXECUTE`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PreparedInfo {
    /// By number.
    pub params: BTreeMap<u32, ParamUse>,
    /// It reads, writes or defines something protected.
    pub touches_protected: bool,
}

/// The prepared statements of the session that `EXECUTE` can name: those of SQL
/// `PREPARE` and the named ones of the protocol share one name space.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Prepared {
    statements: BTreeMap<String, PreparedInfo>,
}

impl Prepared {
    /// Remembers a statement.
    pub fn insert(&mut self, name: impl Into<String>, info: PreparedInfo) {
        self.statements.insert(name.into(), info);
    }

    /// Forgets a statement.
    pub fn remove(&mut self, name: &str) {
        self.statements.remove(name);
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.statements.clear();
    }

    /// The statement of this name.
    pub fn get(&self, name: &str) -> Option<&PreparedInfo> {
        self.statements.get(name)
    }
}
