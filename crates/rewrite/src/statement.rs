//! The result of analysing a statement.

use crate::copy::CopyPlan;
use crate::edit::{Edit, Piece};
use crate::fit::Fit;
use contract::TypeCode;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A statement of the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement {
    /// Its range in the text, without the semicolon.
    pub range: Range<usize>,
    /// Its kind.
    pub kind: StatementKind,
    /// Edits of the text: sorted, not overlapping, with offsets into the whole text.
    pub edits: Vec<Edit>,
    /// The parameters `$n` that it uses.
    pub params: BTreeMap<u32, ParamUse>,
    /// Parameters that are plain and only compared; see [`crate::analyze_sealing`].
    pub compared: Vec<u32>,
    /// Whether it has constants that are sent in clear text.
    pub clear_values: bool,
    /// Whether it reads, writes or defines something protected.
    pub touches_protected: bool,
    /// Whether the snapshot of the schema may be stale after it has run.
    pub changes_schema: bool,
    /// Whether the search path may be different after it has run.
    pub changes_search_path: bool,
    /// Whether it contains an unqualified name that exists in several schemas with different
    /// protection: the caller determines the search path and analyses again.
    pub depends_on_search_path: bool,
    /// For each column of its rows, or of the cursor's or prepared statement's that it makes,
    /// whether it may be protected; `None` if unknown.
    pub results: Option<Vec<bool>>,
    /// Whether the client may find when it opens these rows that the statement has failed.
    pub late: Late,
    /// [`Self::results`] for each cursor that the routines open which it calls.
    pub cursors: Vec<Vec<bool>>,
    /// Whether it names something that the snapshot does not have, and nothing protected: the
    /// caller reloads the schema and analyses again before sending it.
    pub unresolved: bool,
    /// Whether it cannot reach anything protected, whatever earlier statements of the text do.
    /// Determined only in texts with several statements.
    pub apart: bool,
    /// For `COPY`.
    pub copy: Option<CopyPlan>,
    /// For `ALTER TABLE`: a column's new type to which the values must pass the client.
    pub recoding: Option<Recoding>,
    /// What it may do with protected values (an encoded [`grant::Grant`]); `None` if it touches
    /// nothing protected.
    pub grant: Option<Arc<[u8]>>,
    /// For `PREPARE`: what to remember under the name after it has succeeded.
    pub prepare: Option<PreparedInfo>,
}

impl Statement {
    /// Converts all positions to those of another text.
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

/// Name of the temporary table with the new values, of the function that gives them, and of the
/// cursor that reads the old ones.
pub const RECODING: &str = "confide_recoding";

/// A change of the type of one column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recoding {
    /// Schema of the table.
    pub schema: String,
    /// Its name.
    pub table: String,
    /// The column.
    pub column: String,
    /// The new type, as it is written in the statement.
    pub target: String,
    /// Whether the new type is one whose values the keeper has or opens.
    pub to_keeper: bool,
    /// Whether the old one is.
    pub from_keeper: bool,
    /// Whether both types have the same plain type; otherwise values would be converted otherwise than
    /// by PostgreSQL.
    pub alike: bool,
}

/// Kinds of statements, as far as the caller must distinguish them.
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
    /// `SET`, `RESET`, with the name of the setting in lower case (empty for `RESET ALL`).
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
        /// `WITH HOLD`: it outlives its transaction.
        hold: bool,
    },
    /// `FETCH`, `MOVE`.
    Fetch {
        /// Name of the cursor.
        name: String,
    },
    /// `CLOSE`; `None` for `ALL`.
    Close {
        /// Name of the cursor.
        name: Option<String>,
    },
    /// `EXPLAIN`.
    Explain,
    /// `DISCARD`.
    Discard {
        /// `DISCARD ALL`: prepared statements and settings are discarded.
        all: bool,
    },
    /// `CALL`.
    Call,
    /// `DO`.
    Do,
    /// An empty statement.
    Empty,
    /// Any other statement that is passed on.
    Other,
}

impl StatementKind {
    /// Whether the meaning of such a statement depends on the schema.
    #[must_use]
    pub fn uses_names(&self) -> bool {
        !matches!(
            self,
            StatementKind::TransactionControl(_)
                | StatementKind::Set { .. }
                | StatementKind::Show
                | StatementKind::Deallocate { .. }
                | StatementKind::Fetch { .. }
                | StatementKind::Close { .. }
                | StatementKind::Discard { .. }
                | StatementKind::Empty
        )
    }
}

/// Whether the client may find when it opens the rows of a statement that it has failed: results
/// computed of encodings, such as a product, which only the client can open, may overflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Late {
    /// It cannot.
    #[default]
    Never,
    /// It may; the statement has changed nothing.
    Reads,
    /// It may, and the statement may have changed something.
    Writes,
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

/// What a parameter is combined with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParamUse {
    /// A protected expression. If the client declared a type in Parse, it must be replaced by its
    /// protected counterpart.
    Protected {
        /// The type of a cast in the statement (`$1::date`).
        declared: Option<TypeCode>,
        /// The column that it is assigned to, if that is its only use.
        fits: Option<Fit>,
    },
    /// An array of protected values (`= ANY ($1)`): each element must be an envelope, and the
    /// declared type the array of the protected counterpart.
    ProtectedArray {
        /// The element type of a cast in the statement.
        declared: Option<TypeCode>,
    },
    /// A column of the family `soft_`: the client encodes the value for it.
    Soft {
        /// The column.
        column: contract::soft::Column,
        /// What it is encoded for.
        purpose: contract::soft::Purpose,
        /// The type of a cast in the statement.
        said: Option<TypeCode>,
    },
    /// Something plain.
    Plain,
    /// Nothing that determines a type (`SELECT $1`).
    Undecided,
}

impl ParamUse {
    /// The column that the parameter is only assigned to.
    #[must_use]
    pub fn fits(&self) -> Option<&Fit> {
        match self {
            ParamUse::Protected { fits, .. } => fits.as_ref(),
            _ => None,
        }
    }

    /// The same for a parameter that is also used otherwise.
    pub(crate) fn elsewhere(self) -> ParamUse {
        match self {
            ParamUse::Protected { declared, .. } => ParamUse::Protected {
                declared,
                fits: None,
            },
            other => other,
        }
    }
}

/// What a prepared statement's parameters are combined with, for `EXECUTE`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PreparedInfo {
    /// By number.
    pub params: BTreeMap<u32, ParamUse>,
    /// Whether it reads, writes or defines something protected.
    pub touches_protected: bool,
    /// For each result column whether it may be protected; `None` if unknown.
    pub results: Option<Vec<bool>>,
    /// [`Statement::late`] of an execution.
    pub late: Late,
    /// [`Statement::cursors`] of an execution.
    pub cursors: Vec<Vec<bool>>,
}

/// The session's prepared statements that `EXECUTE` can name: those of SQL `PREPARE` and the named
/// ones of the protocol share a name space.
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
