//! A single cell of a signed result.

use super::{Cell, Content, Header, SALT_BYTES, Version, check_signature, leaf, tree};
use crate::codec::Writer;
use crate::sign::SIGNATURE_BYTES;
use crate::{Error, Hash, VerifyingKey};

/// A cell with the proof of its position in a signed result. It contains only salted hashes of the
/// other cells.
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
    pub(super) shown: Option<Shown>,
}

/// The row version of a ledger that the cell is from, with the proof that the row is of this
/// version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Shown {
    pub(super) version: Version,
    pub(super) salt: [u8; SALT_BYTES],
    pub(super) path: Vec<Hash>,
}

impl SignedCell {
    /// Checks that this key signed a result with this cell at its position, for this nonce if one
    /// is given.
    ///
    /// # Errors
    /// [`Error::Nonce`], [`Error::Signature`], [`Error::Proof`], [`Error::Range`].
    pub fn verify(&self, key: &VerifyingKey, nonce: Option<&[u8]>) -> Result<(), Error> {
        check_signature(&self.header, &self.root, &self.signature, key, nonce)?;
        let index = self.header.index(self.row, self.column)?;
        self.lead(
            index,
            &self.salt,
            Content::Cell(self.value.as_deref()),
            &self.path,
        )?;
        let of = self.header.columns.get(self.column);
        match (of.and_then(|column| column.ledger), &self.shown) {
            (None, None) => Ok(()),
            (Some(ledger), Some(shown)) => self.verify_shown(ledger, shown),
            _ => Err(Error::Malformed("the cell and its row version do not fit")),
        }
    }

    fn verify_shown(&self, ledger: usize, shown: &Shown) -> Result<(), Error> {
        let at = self.header.columns.len() + ledger;
        let index = self.header.leaf_index(self.row, at)?;
        let content = Content::Version(&shown.version);
        self.lead(index, &shown.salt, content, &shown.path)?;
        let ledger = self.header.ledgers.get(ledger).ok_or(Error::Range)?;
        shown.version.verify(ledger).map(|_| ())
    }

    /// Checks that the path leads from a leaf to the root.
    fn lead(
        &self,
        index: u64,
        salt: &[u8; SALT_BYTES],
        content: Content<'_>,
        path: &[Hash],
    ) -> Result<(), Error> {
        let leaf = leaf(&mut Writer::default(), salt, content);
        tree::verify(leaf, index, self.header.leaves()?, path, &self.root)
    }

    /// Returns the row version of a ledger that it is from.
    pub fn version(&self) -> Option<&Version> {
        self.shown.as_ref().map(|shown| &shown.version)
    }

    /// Returns the header of the whole result.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns its row and column, from 0.
    pub fn place(&self) -> (u64, usize) {
        (self.row, self.column)
    }

    /// Returns its value.
    pub fn value(&self) -> &Cell {
        &self.value
    }
}
