//! Compares this crate with a running PostgreSQL 15 on generated inputs.
//!
//! Mechanism: each case is an SQL expression and what this crate makes of the
//! same; `psql` evaluates all expressions of a batch, and text or SQLSTATE and
//! message (without quoted values) must agree. The right answer is PostgreSQL's;
//! a bug shows as a list of expressions with both answers.
//!
//! Needs `CONFIDE_ORACLE` (a libpq URL of a superuser); without it the tests say
//! so and do nothing. `CONFIDE_ORACLE_CASES` scales the number of generated
//! cases, `CONFIDE_ORACLE_SEED` varies them.

mod datetime;
mod formats;
mod harness;
mod inputs;
mod operators;
