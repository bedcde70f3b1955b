//! Row versions of ledger tables in a result: for each row and ledger, the version's entry with the
//! proof that the table's log contains it.
//!
//! The keeper signs which version a row shows, and the size and root of the log; anybody can verify
//! that the log contains the version. So if a published checkpoint (`crate::checkpoint`) is
//! consistent with this root, everybody was shown the same log.
//!
//! Invariant: a version verifies only for the row for which it was signed.

use crate::codec::{Reader, Writer};
use crate::entry::{Entry, Kind};
use crate::proof::Inclusion;
use crate::{Error, Hash};

const HASH_BYTES: usize = 32;

/// A ledger table whose versions the rows of a result show.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ledger {
    /// Origin of its checkpoints.
    pub origin: String,
    /// Number of entries in the log.
    pub size: u64,
    /// Root of the log at that size.
    pub root: Hash,
}

/// The version that a row shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Version {
    /// Number of its entry in the log.
    pub index: u64,
    /// Whether it was replaced or deleted before the result was signed.
    pub ended: bool,
    /// Bytes of the entry ([`Entry`]).
    pub entry: Vec<u8>,
    /// Sibling hashes on the path from the entry to the log's root.
    pub path: Vec<Hash>,
}

impl Version {
    /// What the result's signature covers of it. The entry follows from its number and the log's
    /// root, which the header has.
    pub(super) fn write_signed(&self, out: &mut Writer) {
        out.u64(self.index);
        out.u8(u8::from(self.ended));
    }

    /// Returns the entry, after verifying that the log contains it.
    ///
    /// # Errors
    /// [`Error::Proof`], [`Error::Range`], [`Error::Malformed`], [`Error::Version`].
    pub fn verify(&self, ledger: &Ledger) -> Result<Entry, Error> {
        let entry = Entry::decode(&self.entry)?;
        if entry.kind != Kind::Write {
            return Err(Error::Malformed("an entry is of no row version"));
        }
        let proof = Inclusion {
            index: self.index,
            size: ledger.size,
            path: self.path.clone(),
        };
        proof.verify(&Entry::leaf(&self.entry), &ledger.root)?;
        Ok(entry)
    }

    pub(super) fn write(&self, out: &mut Writer) {
        self.write_signed(out);
        out.bytes(&self.entry);
        out.u64(self.path.len() as u64);
        for hash in &self.path {
            out.fixed(&hash.0);
        }
    }

    pub(super) fn read(from: &mut Reader<'_>) -> Result<Version, Error> {
        let (index, ended) = (from.u64()?, from.boolean()?);
        let entry = from.bytes()?.to_vec();
        let count = from.count(HASH_BYTES)?;
        let path = (0..count).map(|_| Ok(Hash(from.fixed()?)));
        Ok(Version {
            index,
            ended,
            entry,
            path: path.collect::<Result<_, Error>>()?,
        })
    }
}

impl Ledger {
    pub(super) fn write(&self, out: &mut Writer) {
        out.bytes(self.origin.as_bytes());
        out.u64(self.size);
        out.fixed(&self.root.0);
    }

    pub(super) fn read(from: &mut Reader<'_>) -> Result<Ledger, Error> {
        Ok(Ledger {
            origin: from.text()?,
            size: from.u64()?,
            root: Hash(from.fixed()?),
        })
    }
}
