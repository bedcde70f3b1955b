//! The keeper: the trusted daemon that holds the values of protected columns and
//! computes with them (design, sections 2, 7 and 10).
//!
//! `server` accepts channels and gives each a thread; `dispatch` carries out
//! requests, one file for each family of messages, within the policy of
//! `dispatch::policy`; `program` evaluates, `aggregation`
//! groups and aggregates; `space` resolves identifiers; `provenance` and `grants` say what a
//! client has let a session do with what;
//! `session` is what the channels of one session share; `logs` are those of ledger tables; `durable` makes values
//! outlive the keeper. Values lie in crate
//! `store`, what operations compute is in crate `values`.
//!
//! Invariants: whatever a backend sends, the keeper neither panics nor gives out
//! anything but envelopes, and what programs declassify; values are never in logs
//! or errors.
#![forbid(unsafe_code)]

mod account;
mod aggregation;
mod ahead;
mod aliases;
mod arenas;
mod audit;
mod background;
mod brokered;
mod cells;
mod clients;
mod config;
mod copies;
mod delivery;
mod derived;
mod dispatch;
mod durable;
mod ends;
mod fail;
mod fault;
mod fitted;
mod generations;
mod grants;
pub mod harden;
mod herald;
mod keeper;
mod keys;
mod lease;
mod leases;
mod limits;
pub mod logging;
mod logs;
mod lru;
mod machine;
mod masks;
mod named;
mod numbers;
mod operators;
mod probe;
mod program;
mod provenance;
mod published;
mod quick;
mod random;
mod rank;
mod recorder;
mod ring;
mod room;
mod rotation;
mod rules;
mod said;
pub mod sandbox;
mod scribe;
mod sealed_file;
pub mod secrecy;
mod server;
mod session;
mod signatures;
mod space;
mod tape;
mod teller;
mod term;
mod tickets;
mod told;
mod transferred;
mod used;
mod viewers;
mod witness;
mod zone;

/// Values that were freed are not in memory any more.
#[global_allocator]
static HEAP: channel::heap::Wiping = channel::heap::Wiping::new();

pub use clients::Clients;
pub use config::{Bytes, Config, Mode};
pub use dispatch::Connection;
pub use durable::accept_backup;
pub use keeper::Keeper;
pub use keys::{Keys, Trouble, disk_key};
pub use server::{Server, device, user_ids};
