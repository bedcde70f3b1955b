//! Redo records: what the keeper asks PostgreSQL to put into its WAL, so that
//! values survive the keeper (docs/durability.md). A record is opaque to
//! PostgreSQL.
//!
//! Bytes: format version `u8`, kind `u8`, counter (6 bytes), epoch (12 bytes),
//! generation `u32`; then the body in AES-256-GCM. The key comes from the root key
//! and the epoch, which is random for each run of the keeper; the nonce is the
//! counter, which counts the records of the run. Everything before the body is
//! authenticated with it, and so is the number of the store that the record is for.
//!
//! Records of adopted values are not sealed here: clients have sealed the values (`adopted`).
//!
//! Generation and counter are the record's place in the history of its store: a run
//! of the keeper, and a checkpoint, begin another generation.
//!
//! Not here: what is done with a record (the keeper), and what a value's bytes
//! mean (crate `values`).
//!
//! Invariants: no key and nonce are used twice; no bytes make this crate panic;
//! what opens is what was sealed.
#![forbid(unsafe_code)]

mod adopted;
mod body;
mod seal;

pub use adopted::{Adopted, Item, Lease};
pub use body::{Partition, Promoted, Promotion, Run, Runs, Sweep};
pub use seal::{Epoch, Opener, Order, Sealer};

/// Version of the format.
pub const VERSION: u8 = 3;

/// What a record is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Values got permanent FIDs.
    Promotion = 1,
    /// A column got its partition.
    Partition = 2,
    /// FIDs name nothing any more.
    Sweep = 3,
    /// A partition is no more, and nothing in it.
    Drop = 4,
    /// Values of many rows got permanent FIDs.
    Runs = 5,
    /// What owners of columns and definitions said.
    Policy = 6,
    /// A session's client may give these FIDs values.
    Lease = 7,
    /// A client's values, as it sealed them, with their FIDs. Not sealed by the keeper.
    Adopted = 8,
    /// What is used of restore tickets and budgets.
    Used = 9,
}

impl Kind {
    fn from_u8(code: u8) -> Option<Kind> {
        match code {
            1 => Some(Kind::Promotion),
            2 => Some(Kind::Partition),
            3 => Some(Kind::Sweep),
            4 => Some(Kind::Drop),
            5 => Some(Kind::Runs),
            6 => Some(Kind::Policy),
            7 => Some(Kind::Lease),
            9 => Some(Kind::Used),
            _ => None,
        }
    }
}

/// An opened record.
#[derive(Clone, PartialEq, Eq)]
pub enum Record {
    /// Values got permanent FIDs.
    Promotion(Promoted),
    /// A column got its partition.
    Partition(Partition),
    /// FIDs name nothing any more.
    Sweep(Sweep),
    /// The partition with this number is no more.
    Drop(u32),
    /// What owners of columns and definitions said, in a form that only the keeper knows.
    Policy(Vec<u8>),
    /// A session's client may give these FIDs values.
    Lease(Lease),
    /// What is used of restore tickets and budgets, in a form that only the keeper knows.
    Used(Vec<u8>),
}

/// Why a record is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// Written by a later version.
    #[error("format version {0} of a redo record is not supported, only {known}", known = VERSION)]
    Version(u8),
    /// Not a record of this root key, or changed.
    #[error("a redo record is altered, or was written under another root key or for another store")]
    Altered,
    /// Authentic, but not of the format.
    #[error("a redo record is malformed")]
    Malformed,
    /// The cryptographic library refused, or the counter has ended.
    #[error("a redo record could not be sealed")]
    Refused,
}
