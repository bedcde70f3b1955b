//! Hashes of leaves and inner nodes (RFC 9162, section 2.1.1).

use aws_lc_rs::digest::{Context, SHA256};

/// Prefix of a leaf's content, so a leaf cannot be passed off as an inner node.
const LEAF: u8 = 0;
/// Prefix of an inner node's two hashes.
const NODE: u8 = 1;

/// A SHA-256 hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The root of a log without leaves.
    pub fn empty() -> Hash {
        of(&[])
    }

    /// The hash of a leaf.
    pub fn leaf(content: &[u8]) -> Hash {
        of(&[&[LEAF], content])
    }

    /// The hash of an inner node.
    pub fn node(left: &Hash, right: &Hash) -> Hash {
        of(&[&[NODE], &left.0, &right.0])
    }
}

fn of(parts: &[&[u8]]) -> Hash {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(part);
    }
    let mut hash = [0; 32];
    // SHA-256 has 32 bytes; if a library returned fewer, the rest would stay zero.
    for (to, from) in hash.iter_mut().zip(context.finish().as_ref()) {
        *to = *from;
    }
    Hash(hash)
}
