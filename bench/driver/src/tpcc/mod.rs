//! TPC-C: tables, their data, the five transactions. Written after the standard's
//! clauses (revision 5.11); keying and think times are zero.
pub mod data;
pub mod schema;
pub mod transactions;
