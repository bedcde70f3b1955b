//! Hashes of leaves and inner nodes (RFC 9162, section 2.1.1).

use aws_lc_rs::digest::{SHA256, digest};

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
        of(&[])
    }

    /// The hash of a leaf.
    pub fn leaf(content: &[u8]) -> Hash {
        of(&[&[LEAF], content].concat())
    }

    /// The hash of an inner node.
    pub fn node(left: &Hash, right: &Hash) -> Hash {
        let mut bytes = [NODE; 1 + 2 * HASH_BYTES];
        let (_, rest) = bytes.split_at_mut(1);
        let (into_left, into_right) = rest.split_at_mut(HASH_BYTES);
        into_left.copy_from_slice(&left.0);
        into_right.copy_from_slice(&right.0);
        of(&bytes)
    }
}

/// In one step: a context of the library's takes longer than the hash of a node.
fn of(bytes: &[u8]) -> Hash {
    let mut hash = [0; HASH_BYTES];
    // SHA-256 has 32 bytes; if a library returned fewer, the rest would stay zero.
    for (to, from) in hash.iter_mut().zip(digest(&SHA256, bytes).as_ref()) {
        *to = *from;
    }
    Hash(hash)
}
