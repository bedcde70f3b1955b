//! The replayer: answers a clone's backends in a keeper's place from a recording
//! (docs/maintenance.md). It has no values and no keys of clients; what it knows is what the database was told
//! while the recording ran, and what follows from that.
//!
//! Operands are recognised by what they were made of ([`term`]), not by identifiers that change
//! with each run. A request that the recording does not answer is refused, and the refusal says
//! what was asked.
//!
//! Not here: plans and statements, which are PostgreSQL's, and the clone, which `confide clone` makes.
#![forbid(unsafe_code)]

pub mod answer;
mod ask;
pub mod facts;
pub mod here;
pub mod observe;
pub mod order;
mod pages;
pub mod program;
mod rank;
pub mod server;
pub mod session;
pub mod stored;
pub mod term;
