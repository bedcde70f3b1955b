//! Envelopes and their keys.
//!
//! Seals and opens envelopes in the format of [`contract::envelope`], derives the keys (a Noise
//! handshake for sessions, HKDF for exports), and reads and writes key files. Does not know values:
//! plaintexts are bytes.
//!
//! Invariant: each key has one [`Sealer`], and a sealer never reuses a nonce.
#![forbid(unsafe_code)]

mod error;
pub mod format;
pub mod handshake;
mod keyfile;
mod keys;
mod open;
mod seal;
mod session;
mod ticket;

pub use error::Error;
pub use format::{Envelope, Fitted, Home, Target};
pub use handshake::Evidence;
pub use keyfile::Role;
pub use keys::{ColumnKey, ExportKey, PublicKey, SecretKey, StoringKey};
pub use open::Opener;
pub use seal::Sealer;
pub use session::SessionKeys;
pub use ticket::{Issuer, SealedTicket};
