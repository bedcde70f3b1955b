//! The client side of Confide as a library without I/O. The caller (our proxy, or the driver of a
//! Rust program) speaks the PostgreSQL protocol, passes SQL results and message bodies to this
//! crate, and receives what to send.
//!
//! - [`Handshake`]: establishes the session with the keeper through SQL.
//! - [`Session`]: seals literals and parameters, opens results.
//! - [`TypeMap`]: OIDs of protected types and the plain types shown to the client.
//! - [`description`]: rewrites RowDescription and ParameterDescription.
//! - [`copy`]: rewrites COPY data in both directions, as a stream.
//! - [`soft`]: values of the family `soft_`, which do not require a keeper.
//! - [`blame`]: finds the value that an input error is about.
//!
//! Invariant: a value leaves this crate towards the server only in an envelope. Data for the
//! application may contain its values ([`blame`], [`Session::open_quoted`], the message of a
//! literal that [`Session::seal_literal`] refuses) and must not be logged.
#![forbid(unsafe_code)]

mod array;
pub mod blame;
mod carried;
pub mod copy;
mod delivered;
pub mod description;
mod encodable;
mod encode;
mod error;
mod fitted;
mod handshake;
mod lease;
mod product;
mod quoted;
mod session;
pub mod soft;
mod types;

pub use error::Failure;
pub use handshake::{Handshake, Offer};
pub use lease::Due;
pub use session::{LiteralCache, Session, TEXT};
pub use types::{Protected, Shown, TypeMap, element_of};
