//! Hashes of leaves and inner nodes (RFC 9162, section 2.1.1).

use sha2::{Digest, Sha256};

/// Prefix of a leaf's content, so a leaf cannot be passed off as an inner node.
const LEAF: u8 = 0;
/// Prefix of an inner node's two hashes.
const NODE: u8 = 1;

const HASH_BYTES: usize = 32;

/// A SHA-256 hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Hash(pub [u8; HASH_BYTES]);

impl Hash {
    /// The root of a log without leaves.
    pub fn empty() -> Hash {
        of([])
    }

    /// The hash of a leaf.
    pub fn leaf(content: &[u8]) -> Hash {
        of([&[LEAF], content])
    }

    /// The hash of an inner node.
    pub fn node(left: &Hash, right: &Hash) -> Hash {
        of([[NODE].as_slice(), &left.0, &right.0])
    }
}

/// By RustCrypto's implementation, which uses the processor's instructions for SHA-256 and has less
/// cost for each call than aws-lc-rs, which counts for contents as short as a node's.
fn of<const N: usize>(parts: [&[u8]; N]) -> Hash {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    Hash(hash.finalize().into())
}
