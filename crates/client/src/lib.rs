//! The client side of Confide as a library without I/O: whoever speaks the
//! PostgreSQL protocol (our proxy, or a Rust program's own driver) hands over
//! SQL results and message bodies and gets back what to send on.
//!
//! - [`Handshake`]: the session with the keeper, through SQL.
//! - [`Session`]: seals literals and parameters, opens results.
//! - [`TypeMap`]: OIDs of protected types and what the client is told instead.
//! - [`description`]: rewrites RowDescription and ParameterDescription.
//! - [`copy`]: rewrites COPY data in both directions, as a stream.
//! - [`soft`]: values of the family `soft_`, which need no keeper.
//! - [`blame`]: which value an error of input is about.
//!
//! Invariant: a value leaves this crate towards the server in an envelope only. What is
//! for the application may have its values in it ([`blame`], [`Session::open_quoted`], the
//! message of a literal that [`Session::seal_literal`] refuses): nothing of that is to be logged.
#![forbid(unsafe_code)]

mod array;
pub mod blame;
mod carried;
pub mod copy;
mod delivered;
pub mod description;
mod error;
mod handshake;
mod lease;
mod session;
pub mod soft;
mod types;

pub use error::Failure;
pub use handshake::{Handshake, Offer};
pub use lease::Due;
pub use session::{LiteralCache, Session, TEXT};
pub use types::{Protected, Shown, TypeMap};
