//! The keeper's mapping store (Fedb, section 4): from identifiers to values.
//!
//! A [`Partition`] holds one protected column: packed arrays, a value by index in
//! constant time. An [`Arena`] holds the temporary values of one channel: slots
//! that count up, a window of them alive. [`Store`] numbers the partitions.
//! Nothing here knows sessions, policy, messages or cryptography; at-rest pages
//! and redo records will hang on [`Journal`].
//!
//! Invariants: a FID that does not resolve is an error, never another value; no
//! input makes this crate panic; whatever is allocated is charged to a [`Budget`]
//! first.
#![forbid(unsafe_code)]

mod arena;
mod budget;
mod chunks;
mod data;
mod error;
mod journal;
mod layout;
mod lock;
mod occupancy;
mod partition;
mod registry;
mod scalar;
mod slabs;

pub use arena::{Arena, Entry, State, Window};
pub use budget::Budget;
pub use error::{gone, no_such_value, out_of_memory, unresolved};
pub use journal::{Journal, NoJournal};
pub use layout::{Layout, PartitionKey};
pub use partition::{Partition, PartitionStatistics, Reader, Revealed};
pub use registry::Store;
pub use scalar::Scalar;
