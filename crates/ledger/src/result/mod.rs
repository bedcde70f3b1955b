//! Signed results: a client can prove to others that this is the answer to its statement, with all
//! cells or a single one (SecuDB, section 6.4, but with a Merkle tree over the cells instead of one
//! digest, and without trust in the database).
//!
//! The keeper signs a [`Header`] and the root of a tree whose leaves are the cells, row by row.
//! Each leaf has its own salt, derived from a seed, so that whoever is shown one cell cannot guess
//! its neighbours from their hashes.
//!
//! The signed header says of each column whether the keeper *vouches* for its cells, or the
//! database merely *asserts* them.
//!
//! Invariant: the signature covers names, types, positions, NULLs, and the number of rows and
//! columns.

mod binary;
mod cell;
mod cells;
mod json;
mod salts;
mod tree;
mod version;

pub use cell::SignedCell;
pub use cells::Cells;
pub use version::{Ledger, Version};

use crate::codec::Writer;
use crate::sign::SIGNATURE_BYTES;
use crate::{Error, Hash, SigningKey, VerifyingKey};
use cell::Shown;
use salts::{salt, salts};
use tree::Tree;

/// Size in bytes of the seed for a result's salts.
pub const SEED_BYTES: usize = 32;
/// Size in bytes of a cell's salt.
pub const SALT_BYTES: usize = 16;
/// Maximum size of a nonce.
pub const NONCE_MAX: usize = 64;
/// Prefix of what is signed, so that no other signature is valid for a result. (1 and 2 had salts
/// that were hashes, 3 and 4 a binary tree.)
const MAGIC: &[u8; 8] = b"cfdres 5";
/// Prefix for results with row versions of ledger tables.
const LEDGER_MAGIC: &[u8; 8] = b"cfdres 6";
/// First byte of a leaf's content: what it is of.
const NULL: u8 = 0;
const TEXT: u8 = 1;
const VERSION: u8 = 2;

/// Describes a result; all of it is signed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The statement without its constants.
    pub statement: String,
    /// Nonce of the client, so that no older answer can be passed off as this one.
    pub nonce: Vec<u8>,
    /// When it was signed, by the keeper's clock: microseconds since 2000-01-01 UTC.
    pub time: i64,
    /// Name of the principal who asked.
    pub principal: String,
    /// The result's columns.
    pub columns: Vec<Column>,
    /// Number of its rows.
    pub rows: u64,
    /// Evidence that the signing key belongs to a keeper (empty if none was requested).
    pub evidence: Vec<u8>,
    /// Ledger tables whose versions the rows show.
    pub ledgers: Vec<Ledger>,
}

/// A column of a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its name in the result.
    pub name: String,
    /// Its plain type, as `format_type` displays it.
    pub type_name: String,
    /// The table column that it shows: schema, table, column; none for an expression.
    pub origin: Option<[String; 3]>,
    /// Whether the keeper vouches for its cells: they are protected values, or from a ledger.
    /// Otherwise the database asserts them.
    pub vouched: bool,
    /// The ledger that its cells are from, if they were compared with the rows' versions.
    pub ledger: Option<usize>,
}

/// A cell in text format; `None` is NULL.
pub type Cell = Option<String>;

/// A result with its signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignedResult {
    header: Header,
    seed: [u8; SEED_BYTES],
    cells: Cells,
    versions: Vec<Version>,
    root: Hash,
    signature: [u8; SIGNATURE_BYTES],
}

impl SignedResult {
    /// Signs a result. It needs the cells row by row, for each row its version in each of the
    /// header's ledgers, and a seed that was never used before.
    ///
    /// # Errors
    /// [`Error::Range`] if the number of cells or versions does not match rows and columns,
    /// [`Error::Malformed`] if the nonce is too long, [`Error::Library`].
    pub fn sign(
        header: Header,
        cells: Cells,
        versions: Vec<Version>,
        seed: [u8; SEED_BYTES],
        key: &SigningKey,
    ) -> Result<SignedResult, Error> {
        header.check(cells.len(), versions.len())?;
        let root = tree(&header, &seed, &cells, &versions)?.root();
        let signature = key.sign(&header.signed_bytes(&root))?;
        Ok(SignedResult {
            header,
            seed,
            cells,
            versions,
            root,
            signature,
        })
    }

    /// Checks that this key signed the result as it is, for this nonce if one is given.
    ///
    /// # Errors
    /// [`Error::Nonce`], [`Error::Signature`] (of header and root), [`Error::Cells`], and those of
    /// [`Version::verify`].
    pub fn verify(&self, key: &VerifyingKey, nonce: Option<&[u8]>) -> Result<(), Error> {
        self.header.check(self.cells.len(), self.versions.len())?;
        check_signature(&self.header, &self.root, &self.signature, key, nonce)?;
        if self.tree()?.root() != self.root {
            return Err(Error::Cells);
        }
        for (version, ledger) in self.versions.iter().zip(self.header.ledgers.iter().cycle()) {
            version.verify(ledger)?;
        }
        Ok(())
    }

    fn tree(&self) -> Result<Tree, Error> {
        tree(&self.header, &self.seed, &self.cells, &self.versions)
    }

    /// Returns the version that a row shows of one of the ledgers.
    ///
    /// # Errors
    /// [`Error::Range`] if there is none.
    pub fn version(&self, row: u64, ledger: usize) -> Result<&Version, Error> {
        let of = self.versions.chunks(self.header.ledgers.len().max(1));
        let at = usize::try_from(row).map_err(|_| Error::Range)?;
        let row = of.into_iter().nth(at).ok_or(Error::Range)?;
        row.get(ledger).ok_or(Error::Range)
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the cells, row by row.
    pub fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Returns one cell with its proof, which can be shown without the others.
    ///
    /// # Errors
    /// [`Error::Range`] if there is no such cell.
    pub fn cell(&self, row: u64, column: usize) -> Result<SignedCell, Error> {
        let index = self.header.index(row, column)?;
        let tree = self.tree()?;
        let at = usize::try_from(row).map_err(|_| Error::Range)?;
        let cell = self.cells.row(at, self.header.columns.len()).nth(column);
        let value = cell.ok_or(Error::Range)?.map(str::to_owned);
        let of = self.header.columns.get(column).and_then(|c| c.ledger);
        let shown = of
            .map(|ledger| self.shown(&tree, row, ledger))
            .transpose()?;
        Ok(SignedCell {
            shown,
            header: self.header.clone(),
            root: self.root,
            signature: self.signature,
            row,
            column,
            value,
            salt: salt(&self.seed, index)?,
            path: tree.path(index)?,
        })
    }
}

impl SignedResult {
    fn shown(&self, tree: &Tree, row: u64, ledger: usize) -> Result<Shown, Error> {
        let index = self
            .header
            .leaf_index(row, self.header.columns.len() + ledger)?;
        Ok(Shown {
            version: self.version(row, ledger)?.clone(),
            salt: salt(&self.seed, index)?,
            path: tree.path(index)?,
        })
    }
}

impl Header {
    /// Number of leaves of a row: its cells, then its versions.
    fn width(&self) -> u64 {
        self.columns.len() as u64 + self.ledgers.len() as u64
    }

    /// Number of all leaves.
    fn leaves(&self) -> Result<u64, Error> {
        self.rows.checked_mul(self.width()).ok_or(Error::Range)
    }

    fn check(&self, cells: usize, versions: usize) -> Result<(), Error> {
        if self.nonce.len() > NONCE_MAX {
            return Err(Error::Malformed("the nonce is too long"));
        }
        if self.columns.is_empty() && self.rows > 0 {
            return Err(Error::Malformed("rows without columns"));
        }
        let from_ledgers = self
            .columns
            .iter()
            .filter_map(|c| Some((c.ledger?, c.vouched)));
        if from_ledgers
            .into_iter()
            .any(|(ledger, vouched)| ledger >= self.ledgers.len() || !vouched)
        {
            return Err(Error::Malformed("a column is of no ledger of the result"));
        }
        let times = |n: usize| self.rows.checked_mul(n as u64);
        let right = times(self.columns.len()) == Some(cells as u64)
            && times(self.ledgers.len()) == Some(versions as u64);
        right.then_some(()).ok_or(Error::Range)
    }

    /// Position of a cell among the leaves.
    fn index(&self, row: u64, column: usize) -> Result<u64, Error> {
        match column < self.columns.len() {
            true => self.leaf_index(row, column),
            false => Err(Error::Range),
        }
    }

    /// Position of a cell, or of a version, which follows the cells of its row.
    fn leaf_index(&self, row: u64, leaf: usize) -> Result<u64, Error> {
        if row >= self.rows || leaf as u64 >= self.width() {
            return Err(Error::Range);
        }
        let before = row.checked_mul(self.width());
        before
            .and_then(|leaves| leaves.checked_add(leaf as u64))
            .ok_or(Error::Range)
    }

    fn signed_bytes(&self, root: &Hash) -> Vec<u8> {
        let mut out = Writer::default();
        out.fixed(match self.ledgers.is_empty() {
            true => MAGIC,
            false => LEDGER_MAGIC,
        });
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

fn tree(
    header: &Header,
    seed: &[u8; SEED_BYTES],
    cells: &Cells,
    versions: &[Version],
) -> Result<Tree, Error> {
    let (columns, ledgers) = (header.columns.len(), header.ledgers.len());
    let count = cells.len() + versions.len();
    let salts = salts(seed, 0, count)?;
    let mut salts = salts.iter();
    let mut leaves = Vec::with_capacity(count);
    let mut out = Writer::default();
    let mut versions = versions.chunks(ledgers.max(1));
    // A result without columns has no rows.
    for row in 0..cells.len() / columns.max(1) {
        let shown = versions.next().unwrap_or_default();
        let contents = cells.row(row, columns).map(Content::Cell);
        for content in contents.chain(shown.iter().map(Content::Version)) {
            let salt = salts.next().ok_or(Error::Range)?;
            leaves.push(leaf(&mut out, salt, content));
        }
    }
    Ok(Tree::of(leaves))
}

/// What a leaf is of.
enum Content<'a> {
    Cell(Option<&'a str>),
    Version(&'a Version),
}

/// The hash of a leaf. Its position is not in its content: the path leads to no other one.
/// `out`: where its bytes are written, instead of what is there.
fn leaf(out: &mut Writer, salt: &[u8; SALT_BYTES], content: Content<'_>) -> Hash {
    out.clear();
    out.fixed(salt);
    match content {
        Content::Cell(None) => out.u8(NULL),
        Content::Cell(Some(text)) => {
            out.u8(TEXT);
            out.fixed(text.as_bytes());
        }
        Content::Version(version) => {
            out.u8(VERSION);
            version.write_signed(out);
        }
    }
    Hash::leaf(out.written())
}
