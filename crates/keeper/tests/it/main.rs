//! The keeper as a backend meets it: over a real channel, with a real handshake.

mod aggregates;
mod aggregations;
mod batches;
mod belonging;
mod columns;
mod common;
mod delivery;
mod equality;
mod grants;
mod hostile;
mod ledger;
mod load;
mod process;
mod programs;
mod recorded;
mod recovery;
mod secrecy;
mod sessions;
mod signed;
mod structured;
mod tokens;
mod values;
