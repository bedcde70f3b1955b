//! Anonymised calls of operators (docs/maintenance.md): a log of calls with their operands goes in,
//! and one comes out whose operands obey masking rules, while each call takes the path through the
//! operator's code that it took, and has the answer that it had.
//!
//! A solver proposes operands (`solver.rs`) for constraints of rules (`rules.rs`) and of the call
//! (`relations.rs`). None of what it proposes is trusted: each proposal is run by the operators
//! themselves, instrumented, in a process of its own (`machine.rs`), and goes out only if the
//! edges that it passes are the same in the same order.
//!
//! Does not read recordings, nor know a keeper: a log of calls is a text (`crates/calls`). Runs where
//! values may be seen.
//!
//! Invariants: an operand goes out only if rules and path were checked, by this code and not by the
//! solver; an error names calls by their numbers, and no value.

pub use calls as call;

pub mod machine;
pub mod relations;
pub mod rules;
pub mod search;
pub mod shape;
pub mod solver;
pub mod statements;
pub mod trace;
