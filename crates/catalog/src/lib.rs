//! Everything SQL can do with protected values: types, signatures of
//! operations, operators, functions, casts, operator classes and aggregates,
//! each stated once, as data. The C wrappers, the SQL script, the operator table
//! in the documentation and the list for the generated tests come from here (see
//! [`generate`]); the keeper takes its table of one-instruction programs from
//! [`signatures`].
//!
//! Not here: what an operation computes (crate `values`).
//!
//! Invariant: every entry mirrors one of PostgreSQL's own on plain types, so that
//! operator resolution and result types are the same (docs/decisions.md).
#![forbid(unsafe_code)]

mod aggregates;
mod casts;
mod functions;
pub mod generate;
mod operators;
mod signatures;
mod types;

pub use aggregates::{AggregateSignature, aggregates};
pub use casts::{Cast, CastMethod, Context, NAME_CASTS, casts, plain_casts};
pub use functions::{Arg, Function, functions};
pub use operators::{Operator, OperatorClass, Symbol, operator_classes, operators, sort_supports};
pub use signatures::{Signature, Signatures, signatures, signatures_with};
pub use types::{TypeDefinition, Typmod, types};
