//! The keeper's mapping store (Fedb, section 4): from identifiers to values.
//!
//! A [`Partition`] holds one protected column: packed arrays, a value by index in
//! constant time. An [`Arena`] holds the temporary values of one channel: slots
//! that count up, a window of them alive. [`Store`] numbers the partitions.
//! Nothing here knows sessions, policy, messages, files or cryptography; values
//! become bytes and come back by [`encode`], [`decode`] and a partition's segments.
//!
//! Values that were not used lately may be out of memory; a [`Backing`] reads them back,
//! before they are needed where they are read in order.
//!
//! Invariants: a FID that does not resolve is an error, never another value; no
//! input makes this crate panic; whatever is allocated is charged to a [`Budget`]
//! first.
#![forbid(unsafe_code)]

mod ahead;
mod arena;
mod budget;
mod chunks;
mod codec;
mod columns;
mod data;
mod error;
mod image;
mod journal;
mod layout;
mod lock;
mod marks;
mod occupancy;
mod partition;
mod registry;
mod resident;
mod scalar;
mod segment;
mod slabs;

pub use arena::{Arena, Entry, Label, State, Window};
pub use budget::Budget;
pub use codec::{decode, encode};
pub use error::{bad_segment, gone, no_such_value, out_of_memory, unresolved};
pub use image::SEGMENT_SLOTS;
pub use journal::{Journal, NoJournal};
pub use layout::{ColumnId, Layout, PartitionKey};
pub use partition::{Partition, PartitionStatistics, Reader, Revealed};
pub use registry::{Listed, Paging, Store};
pub use scalar::Scalar;
pub use segment::Backing;
