//! The channel between one PostgreSQL backend and the keeper: two byte rings in a sealed memfd, or on
//! a device that both map, and a Unix socket. The socket carries the first exchange and wake-up bytes, and its end of file
//! tells that the peer has gone.
//!
//! The keeper uses [`Listener`], [`Pending`] and [`KeeperEnd`]. [`BackendEnd`] is the other side in
//! Rust, for tests and benchmarks; the real one is written in C from the same [`contract`]. The
//! meaning of messages is unknown here.
//!
//! Invariant: whatever the peer does to the shared memory or the socket, this side copies each byte
//! once into private memory before it examines it, never accesses memory outside its mapping, never
//! allocates more than a small multiple of what the peer has actually sent, and fails only with
//! [`Error`].
//!
//! This is the only crate with `unsafe`: modules `mapping` and `device` (shared memory), `socket` (system
//! calls), [`heap`] and `pool` (the allocator), [`urgency`] (the scheduler), [`floor`]
//! (fork), [`secret`] and [`hidden`] (memory for keys).
#![deny(unsafe_op_in_unsafe_fn)]

pub mod floor;
pub mod ring;
pub mod secret;
pub mod urgency;

mod backend;
mod device;
pub mod heap;
pub mod hidden;
mod keeper;
mod linger;
mod listener;
mod mapping;
mod pool;
mod socket;
mod spin;

pub use backend::{Answer, BackendEnd, ConnectError};
pub use device::Device;
pub use keeper::{Backlog, KeeperEnd, Period, Reply, Shutdown};
pub use listener::{HelloError, Listener, PeerCred, Pending};

/// Why a channel cannot be used any more. [`Error::TooLong`] is an exception: the message was not
/// sent, but the channel remains usable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The peer has gone, or this side has shut the channel down.
    #[error("the channel is closed")]
    Closed,
    /// The peer violated the contract; the channel has been closed.
    #[error("the peer of the channel broke the contract: {0}")]
    Violation(Violation),
    /// The body is longer than [`contract::message::BODY_MAX`]. Nothing was sent.
    #[error("the message is longer than a channel takes")]
    TooLong,
}

/// How a peer violated the contract.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Violation {
    /// A position moved backwards, or further than the ring allows.
    #[error("impossible ring position")]
    Position,
    /// A header announces a body longer than [`contract::message::BODY_MAX`].
    #[error("message too long")]
    Length,
    /// A header has a kind that does not exist, or not in this direction.
    #[error("unknown kind of message")]
    Kind,
    /// The body is shorter than the fixed part of its kind.
    #[error("message too short for its kind")]
    Short,
    /// The answer belongs to another request.
    #[error("answer out of sequence")]
    Sequence,
}
