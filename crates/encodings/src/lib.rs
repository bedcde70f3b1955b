//! Encodings for the family `soft_`: what stands in a row when there is no keeper, so
//! that PostgreSQL alone can tell equality or order, or add and multiply (Enc2DB,
//! sections 3.1 and 4.1).
//!
//! | encoding | what the database can do with cells alone | from |
//! |---|---|---|
//! | [`det`] | tell whether two are equal | AES-SIV, RFC 5297 |
//! | [`ore`] | tell which of two is less | Lewi and Wu, CCS 2016, section 4 |
//! | [`additive`] | add, subtract, multiply by a number that it knows | Seabed, OSDI 2016, section 4; Symmetria, VLDB 2020 |
//! | [`multiplicative`] | multiply | Symmetria, VLDB 2020 |
//!
//! All keys stay on the client ([`ColumnKeys`]). Not here: where cells are stored, which
//! encodings a column has, SQL.
//!
//! Invariants: a cell opens to what was sealed, or is an error where the scheme can tell;
//! what is computed on cells is exact, and refused where it could not be.
#![forbid(unsafe_code)]

pub mod additive;
pub mod det;
mod error;
mod field;
mod key;
mod mask;
pub mod multiplicative;
pub mod ore;
mod weights;

pub use error::Error;
pub use key::ColumnKeys;
