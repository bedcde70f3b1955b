//! The keeper's mapping store (Fedb, section 4): from identifiers to values.
//!
//! A [`Partition`] holds one protected column in packed arrays, with access by index in constant
//! time. An [`Arena`] holds the temporary values of one channel in ascending slots, of which a
//! window is alive. [`Store`] numbers the partitions. Sessions, policy, messages, files and
//! cryptography are unknown here. Values are converted to bytes and back by [`encode`], [`decode`]
//! and a partition's segments.
//!
//! Values that have not been used lately may be evicted from memory. A [`Backing`] reads them back,
//! in advance where they are read in order.
//!
//! Invariants: a FID that does not resolve is an error, never another value; no input makes this
//! crate panic; memory is charged to a [`Budget`] before it is allocated.
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
pub use scalar::{Scalar, int_value};
pub use segment::Backing;
