//! The broker of root keys: it gives a keeper the key that wraps its root key, if the keeper's
//! evidence is good enough. Both sides of the conversation, over a byte stream.
//!
//! The broker begins: message 1 of a handshake (crate `envelope`), to which the keeper's evidence is
//! bound in message 2. Message 3 shows the keeper the broker's static key. Then the keeper names the
//! key that it wants, and gets it, both sealed under the session's keys.
//!
//! Not here: what good evidence is (crate `attest`, handed in as a function: the keeper does not link
//! it), and what is wrapped (crate `rootkey`).
//!
//! Invariants: nothing is given out before evidence was accepted and the release is on disk, in the
//! log; a keeper takes a key from the broker that it was told of and no other.
#![forbid(unsafe_code)]

mod ask;
mod audit;
mod frame;
mod release;
mod secret;

pub use ask::{Asking, Document, ask};
pub use audit::{Audit, Entry};
pub use release::{Broker, Judge};
pub use secret::Secret;

use zeroize::Zeroizing;

/// Size of a wrapping key in bytes.
pub const KEY_BYTES: usize = 32;
/// No name of a key is longer.
const NAME_MAX: usize = 64;

/// A key that wraps a root key.
pub type WrappingKey = Zeroizing<[u8; KEY_BYTES]>;

/// Whether a key can have this name: letters, digits, `-`, `_`, `.`.
pub fn is_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    !name.is_empty() && name.len() <= NAME_MAX && name.bytes().all(fits)
}
