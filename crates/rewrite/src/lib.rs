//! Decides, for every literal and parameter of a statement, whether it meets a
//! protected expression, and gives the text edits that put it into an envelope.
//!
//! Input: SQL text and a [`Schema`], a snapshot of the relations, types and
//! functions that the session sees. Output: one [`Statement`] for each statement
//! of the text, or a [`Refusal`]. No I/O, no cryptography, no `unsafe`.
//!
//! How: a text is scanned and parsed by PostgreSQL's own parser (`tokens`,
//! `analyze`); each statement's expressions are found (`utility`, `ddl`,
//! `routine`, `copy_plan`, `infer/{select,from,dml,merge}`) and classified bottom-up
//! (`infer/{expr,oper,func,cast,column}`) by the rules of `infer/meet`; `finish`
//! turns what became protected into edits, and refuses the statement when a
//! constant of it was not looked at. `authority` gathers meanwhile what the statement may do.
//!
//! What it cannot know, and lets pass: literals in calls of plain functions of
//! users that are kept parsed, or follow strings, and store them somewhere protected (`infer/others` looks at
//! the other bodies); routines and `DO` blocks that make
//! up the name of a protected table at run time; literals that met a plain value
//! in a plain function before the result met something protected
//! (`salary = f(id, 5)`).
//!
//! Invariant: a literal or parameter that the analysis has not seen, or whose
//! meeting with something protected it cannot rule out, is never passed on as it
//! is: the statement is refused, unless no word of it names anything protected (`reach`).

#![forbid(unsafe_code)]

mod analysis;
mod analyze;
mod authorise;
mod authority;
mod body;
mod catalog;
mod copy;
mod copy_plan;
mod ddl;
mod depth;
mod edit;
mod effect;
mod escaped;
mod finish;
mod immutable;
mod infer;
mod kind;
mod known;
mod later;
mod memo;
mod naming;
mod others;
mod past;
mod pin;
mod reach;
mod refusal;
mod relation;
pub mod report;
mod routine;
mod schema;
mod scope;
mod secret;
mod shape;
mod shards;
mod signature;
mod soft_type;
mod statement;
mod tokens;
mod tree;
mod twins;
mod utility;
mod value;

pub use analyze::{analyze, analyze_sealing, analyze_with, hides_secrets};
pub use catalog::Catalog;
pub use copy::{CopyColumn, CopyPlan, Direction, Endpoint, Format, Header, Options, Source};
pub use edit::{
    Edit, Form, Piece, PositionMap, Secret, apply_edits, apply_edits_in, character_position,
};
pub use escaped::analyze_escaped;
pub use infer::key;
pub use memo::Memo;
pub use past::undone;
pub use pin::{Pin, Pins};
pub use refusal::Refusal;
pub use relation::{Column, ColumnType, Relation};
pub use schema::{RoutineBody, Row, Schema, UserFunction};
pub use statement::{ParamUse, Prepared, PreparedInfo, Statement, StatementKind, Transaction};
pub use twins::show_plain;
