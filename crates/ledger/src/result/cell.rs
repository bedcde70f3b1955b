//! A cell of a signed result, alone.

use super::{Cell, Header, SALT_BYTES, check_signature, leaf};
use crate::proof::Inclusion;
use crate::sign::SIGNATURE_BYTES;
use crate::{Error, Hash, VerifyingKey};

/// One cell with what proves its place in a signed result. Of the other cells it has
/// hashes only, which are salted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignedCell {
    pub(super) header: Header,
    pub(super) root: Hash,
    pub(super) signature: [u8; SIGNATURE_BYTES],
    pub(super) row: u64,
    pub(super) column: usize,
    pub(super) value: Cell,
    pub(super) salt: [u8; SALT_BYTES],
    pub(super) path: Vec<Hash>,
}

impl SignedCell {
    /// Whether this key signed a result with this cell at its place, for this nonce if
    /// one is given.
    ///
    /// # Errors
    /// [`Error::Nonce`], [`Error::Signature`], [`Error::Proof`], [`Error::Range`].
    pub fn verify(&self, key: &VerifyingKey, nonce: Option<&[u8]>) -> Result<(), Error> {
        check_signature(&self.header, &self.root, &self.signature, key, nonce)?;
        let proof = Inclusion {
            index: self.header.index(self.row, self.column)?,
            size: self.header.cells()?,
            path: self.path.clone(),
        };
        let leaf = leaf(&self.salt, self.row, self.column, &self.value);
        proof.verify(&leaf, &self.root)
    }

    /// What the whole result is of.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Its row and column, from 0.
    pub fn place(&self) -> (u64, usize) {
        (self.row, self.column)
    }

    /// Its value.
    pub fn value(&self) -> &Cell {
        &self.value
    }
}
