//! Decides, for every literal and parameter of a statement, whether it meets a
//! protected expression, and gives the text edits that put it into an envelope.
//!
//! Input: SQL text and a [`Schema`], a snapshot of the relations, types and
//! functions that the session sees. Output: one [`Statement`] for each statement
//! of the text, or a [`Refusal`]. No I/O, no cryptography, no `unsafe`.
//!
//! Invariant: a literal or parameter that the analysis has not seen, or whose
//! meeting with something protected it cannot rule out, is never passed on as it
//! is: the statement is refused.

#![forbid(unsafe_code)]

mod copy;
mod edit;
mod refusal;
mod schema;
mod statement;

pub use copy::{CopyColumn, CopyPlan, Direction, Endpoint, Format, Header, Options, Source};
pub use edit::{
    Edit, Form, Piece, PositionMap, Secret, apply_edits, apply_edits_in, character_position,
};
pub use refusal::Refusal;
pub use schema::{Column, ColumnType, Relation, Row, SCHEMA_QUERIES, Schema, UserFunction};
pub use statement::{ParamUse, Prepared, PreparedInfo, Statement, StatementKind, Transaction};

/// Analyses a text of one or more statements.
pub fn analyze(sql: &str, schema: &Schema) -> Result<Vec<Statement>, Refusal> {
    analyze_with(sql, schema, &Prepared::default())
}

/// As [`analyze`], with the session's prepared statements, for `EXECUTE`.
pub fn analyze_with(
    _sql: &str,
    _schema: &Schema,
    _prepared: &Prepared,
) -> Result<Vec<Statement>, Refusal> {
    Err(Refusal::unsupported("not built yet"))
}
