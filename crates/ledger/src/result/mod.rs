//! Signed results: what a client can show to others as the answer to its statement,
//! whole or a single cell of it (SecuDB, section 6.4, with a Merkle tree over the cells
//! in place of one digest, and without trust in the database).
//!
//! The keeper signs a [`Header`] and the root of a tree whose leaves are the cells, row
//! by row. A leaf has a salt of its own, derived from a seed, so that who is shown one
//! cell cannot guess those beside it from their hashes.
//!
//! What is signed says of each column whether the keeper *vouches* for its cells, or the
//! database merely *asserts* them.
//!
//! Invariant: names, types, places, NULL and the number of rows and columns are
//! under the signature: none can change unnoticed.

mod binary;
mod cell;
mod json;

pub use cell::SignedCell;

use crate::codec::Writer;
use crate::sign::SIGNATURE_BYTES;
use crate::tree::Tree;
use crate::{Error, Hash, SigningKey, VerifyingKey};
use aws_lc_rs::hmac;

/// Size of the seed of a result's salts in bytes.
pub const SEED_BYTES: usize = 32;
/// Size of a cell's salt in bytes.
pub const SALT_BYTES: usize = 16;
/// Longer nonces are refused.
pub const NONCE_MAX: usize = 64;
/// Begins what is signed: a signature of anything else is none of a result.
const MAGIC: &[u8; 8] = b"cfdres 1";

/// What a result is of; all of it is signed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The statement without its constants.
    pub statement: String,
    /// What the client sent along, so that no older answer can stand for this one.
    pub nonce: Vec<u8>,
    /// When it was signed, by the keeper's clock: microseconds since 2000-01-01 UTC.
    pub time: i64,
    /// Name of the principal who asked.
    pub principal: String,
    /// The result's columns.
    pub columns: Vec<Column>,
    /// Number of its rows.
    pub rows: u64,
    /// What proves that the signing key is a keeper's (empty: none was asked for).
    pub evidence: Vec<u8>,
}

/// A column of a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its name in the result.
    pub name: String,
    /// Its type, as `format_type` shows the plain one.
    pub type_name: String,
    /// The table's column that it shows: schema, table, column. Empty for an expression.
    pub origin: Option<[String; 3]>,
    /// Whether the keeper vouches for its cells: they are protected values, or rows of a
    /// ledger. Else the database asserts them.
    pub vouched: bool,
}

/// A cell in text format; `None` is NULL.
pub type Cell = Option<String>;

/// A result with its signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignedResult {
    header: Header,
    seed: [u8; SEED_BYTES],
    cells: Vec<Cell>,
    root: Hash,
    signature: [u8; SIGNATURE_BYTES],
}

impl SignedResult {
    /// Signs a result: its cells row by row, and a seed that was never used before.
    ///
    /// # Errors
    /// [`Error::Range`] if the cells are not as many as rows and columns say,
    /// [`Error::Malformed`] for a nonce that is too long, [`Error::Library`].
    pub fn sign(
        header: Header,
        cells: Vec<Cell>,
        seed: [u8; SEED_BYTES],
        key: &SigningKey,
    ) -> Result<SignedResult, Error> {
        header.check(cells.len())?;
        let root = tree(&header, &seed, &cells).root();
        let signature = key.sign(&header.signed_bytes(&root))?;
        Ok(SignedResult {
            header,
            seed,
            cells,
            root,
            signature,
        })
    }

    /// Whether this key signed the result as it stands, for this nonce if one is given.
    ///
    /// # Errors
    /// [`Error::Nonce`], [`Error::Signature`] (of header and root), [`Error::Cells`].
    pub fn verify(&self, key: &VerifyingKey, nonce: Option<&[u8]>) -> Result<(), Error> {
        self.header.check(self.cells.len())?;
        check_signature(&self.header, &self.root, &self.signature, key, nonce)?;
        match tree(&self.header, &self.seed, &self.cells).root() == self.root {
            true => Ok(()),
            false => Err(Error::Cells),
        }
    }

    /// What it is of.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Its rows.
    pub fn rows(&self) -> impl Iterator<Item = &[Cell]> {
        // A result without columns has no rows, and `chunks` wants a size.
        self.cells.chunks(self.header.columns.len().max(1))
    }

    /// One cell with its proof, to be shown without the others.
    ///
    /// # Errors
    /// [`Error::Range`] if there is no such cell.
    pub fn cell(&self, row: u64, column: usize) -> Result<SignedCell, Error> {
        let index = self.header.index(row, column)?;
        let tree = tree(&self.header, &self.seed, &self.cells);
        let place = usize::try_from(index).map_err(|_| Error::Range)?;
        let value = self.cells.get(place).ok_or(Error::Range)?.clone();
        Ok(SignedCell {
            header: self.header.clone(),
            root: self.root,
            signature: self.signature,
            row,
            column,
            value,
            salt: Salts::new(&self.seed).salt(index),
            path: crate::tree::prove_inclusion(&tree, index, tree.size())?.path,
        })
    }
}

impl Header {
    /// Number of cells.
    fn cells(&self) -> Result<u64, Error> {
        let columns = self.columns.len() as u64;
        self.rows.checked_mul(columns).ok_or(Error::Range)
    }

    fn check(&self, cells: usize) -> Result<(), Error> {
        if self.nonce.len() > NONCE_MAX {
            return Err(Error::Malformed("the nonce is too long"));
        }
        if self.columns.is_empty() && self.rows > 0 {
            return Err(Error::Malformed("rows without columns"));
        }
        match self.cells()? == cells as u64 {
            true => Ok(()),
            false => Err(Error::Range),
        }
    }

    /// Place of a cell among the leaves.
    fn index(&self, row: u64, column: usize) -> Result<u64, Error> {
        if row >= self.rows || column >= self.columns.len() {
            return Err(Error::Range);
        }
        let before = row.checked_mul(self.columns.len() as u64);
        before
            .and_then(|cells| cells.checked_add(column as u64))
            .ok_or(Error::Range)
    }

    fn signed_bytes(&self, root: &Hash) -> Vec<u8> {
        let mut out = Writer::default();
        out.fixed(MAGIC);
        binary::write_header(&mut out, self);
        out.fixed(&root.0);
        out.finish()
    }
}

fn check_signature(
    header: &Header,
    root: &Hash,
    signature: &[u8; SIGNATURE_BYTES],
    key: &VerifyingKey,
    nonce: Option<&[u8]>,
) -> Result<(), Error> {
    if nonce.is_some_and(|nonce| nonce != header.nonce) {
        return Err(Error::Nonce);
    }
    key.verify(&header.signed_bytes(root), signature)
}

fn tree(header: &Header, seed: &[u8; SEED_BYTES], cells: &[Cell]) -> Tree {
    let salts = Salts::new(seed);
    let columns = header.columns.len().max(1);
    let mut tree = Tree::new();
    for (index, cell) in cells.iter().enumerate() {
        let salt = salts.salt(index as u64);
        let (row, column) = ((index / columns) as u64, index % columns);
        tree.push(leaf(&salt, row, column, cell));
    }
    tree
}

fn leaf(salt: &[u8; SALT_BYTES], row: u64, column: usize, cell: &Cell) -> Hash {
    let mut out = Writer::default();
    out.fixed(salt);
    out.u64(row);
    out.u64(column as u64);
    out.optional(cell.as_deref().map(str::as_bytes));
    Hash::leaf(&out.finish())
}

/// Salts of cells: HMAC-SHA-256 of their number under the seed, cut to half.
struct Salts(hmac::Key);

impl Salts {
    fn new(seed: &[u8; SEED_BYTES]) -> Salts {
        Salts(hmac::Key::new(hmac::HMAC_SHA256, seed))
    }

    fn salt(&self, index: u64) -> [u8; SALT_BYTES] {
        let tag = hmac::sign(&self.0, &index.to_le_bytes());
        tag.as_ref().first_chunk().copied().unwrap_or_default()
    }
}
