//! Hashes of leaves and inner nodes (RFC 9162, section 2.1.1), and of the wide nodes of results.
//!
//! By RustCrypto's implementation, which uses the processor's instructions for SHA-256 and has less
//! cost for each call than aws-lc-rs, which counts for contents as short as a node's.

use sha2::{Digest, Sha256};

/// Prefix of a leaf's content, so a leaf cannot be passed off as an inner node.
const LEAF: u8 = 0;
/// Prefix of an inner node's two hashes.
const NODE: u8 = 1;
/// Prefix of the hashes below a wide node, which are of a tree of another kind.
const WIDE_NODE: u8 = 2;
/// Maximum number of children of a wide node.
pub(crate) const CHILDREN: usize = 8;

const HASH_BYTES: usize = 32;

/// A SHA-256 hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Hash(pub [u8; HASH_BYTES]);

impl Hash {
    /// The root of a log without leaves.
    pub fn empty() -> Hash {
        Hash(Sha256::digest([]).into())
    }

    /// The hash of a leaf.
    pub fn leaf(content: &[u8]) -> Hash {
        let mut hash = Sha256::new_with_prefix([LEAF]);
        hash.update(content);
        Hash(hash.finalize().into())
    }

    /// The hash of an inner node.
    pub fn node(left: &Hash, right: &Hash) -> Hash {
        // In one piece, so that its first block is not copied before it is hashed.
        let mut content = [NODE; 1 + 2 * HASH_BYTES];
        content[1..=HASH_BYTES].copy_from_slice(&left.0);
        content[1 + HASH_BYTES..].copy_from_slice(&right.0);
        Hash(Sha256::digest(content).into())
    }

    /// The hash of an inner node with up to [`CHILDREN`] children.
    pub(crate) fn wide_node(children: &[Hash]) -> Hash {
        let mut content = [WIDE_NODE; 1 + CHILDREN * HASH_BYTES];
        let mut length = 1;
        for (place, child) in content[1..].chunks_exact_mut(HASH_BYTES).zip(children) {
            place.copy_from_slice(&child.0);
            length += HASH_BYTES;
        }
        Hash(Sha256::digest(&content[..length]).into())
    }
}
