//! Determines for every literal and parameter of a statement whether it is combined with a
//! protected expression, and returns the text edits that put it into an envelope.
//!
//! Input: SQL text and a [`Schema`], a snapshot of the relations, types and functions that are
//! visible to the session. Output: one [`Statement`] for each statement of the text, or a
//! [`Refusal`]. There is no I/O, no cryptography and no `unsafe`.
//!
//! Method: a text is scanned and parsed by PostgreSQL's own parser (`tokens`, `analyze`); the
//! expressions of each statement are found (`utility`, `ddl`, `routine`, `copy_plan`,
//! `infer/{select,from,dml,merge}`) and classified bottom-up (`infer/{expr,oper,func,cast,column}`)
//! by the rules of `infer/meet`; `finish` converts what became protected into edits, and refuses
//! the statement if a constant of it was not examined. Meanwhile `authority` collects what the
//! statement may do.
//!
//! The following cannot be detected and is allowed: literals in calls of users' plain functions
//! that are stored parsed, or execute strings, and store the literals somewhere protected
//! (`infer/others` examines other function bodies); routines and `DO` blocks that compose the name
//! of a protected table at run time; literals that were combined with a plain value in a plain
//! function before the result was combined with something protected (`salary = f(id, 5)`).
//!
//! Invariant: a literal or parameter that the analysis has not examined, or that might be combined
//! with something protected, is never sent unchanged: the statement is refused, unless no word of
//! it names anything protected (`reach`).

#![forbid(unsafe_code)]

mod analysis;
mod analyze;
mod array;
mod authorise;
mod authority;
mod body;
mod called;
mod catalog;
mod copy;
mod copy_plan;
mod ddl;
mod depth;
mod domain;
mod edit;
mod effect;
mod escaped;
mod finish;
mod fit;
mod immutable;
mod infer;
mod kind;
mod known;
mod later;
mod memo;
mod naming;
mod others;
mod partitioned;
mod past;
mod pin;
mod reach;
mod recode;
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
pub use fit::{Fit, widens};
pub use infer::key;
pub use memo::Memo;
pub use past::undone;
pub use pin::{Pin, Pins};
pub use reach::mentions_us;
pub use refusal::Refusal;
pub use relation::{Column, ColumnType, Relation};
pub use schema::{RoutineBody, Row, Schema, UserFunction};
pub use statement::{
    Late, ParamUse, Prepared, PreparedInfo, RECODING, Recoding, Statement, StatementKind,
    Transaction,
};
pub use twins::show_plain;
