//! Programs: what they are ([`parse`]), that they fit together ([`check`]), and
//! their evaluation, by one row ([`scalar`]) or in vectors ([`eval`], [`vector`],
//! [`logic`]), and the form of a row for look-ups ([`rowform`], [`strings`]). Operations
//! themselves are in crate `values`; here are fast paths for the frequent ones, which give up
//! where anything is unusual.
//!
//! Invariants: a result is a FID or one declassified kind, as the type check found
//! it; whatever a fast path computes is what `values` computes.

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
pub mod rowform;
pub mod scalar;
pub mod strings;
pub mod tokens;
pub mod vector;

pub use check::Program;
pub use parse::Instruction;
