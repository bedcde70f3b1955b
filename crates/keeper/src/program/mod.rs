//! Programs: parsing ([`parse`]), type check ([`check`]), evaluation of single rows ([`scalar`])
//! and of vectors ([`eval`], [`vector`], [`logic`]), and the form of a row for lookups
//! ([`rowform`], [`strings`]). The operations themselves are in crate `values`; the fast paths here
//! for frequent ones leave unusual cases to it.
//!
//! Invariants: a result is a FID or of one declassified kind, as determined by the type check; a
//! fast path computes the same as `values`.

mod among;
pub mod batch;
mod check;
pub mod column;
pub mod encoded;
pub mod eval;
pub mod groups;
pub mod load;
pub mod logic;
mod parse;
pub mod pure;
pub mod rowform;
pub mod scalar;
pub mod strings;
pub mod tokens;
pub mod vector;

pub use check::Program;
pub use parse::Instruction;
