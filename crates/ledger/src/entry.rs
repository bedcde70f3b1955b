//! Entries of a table's log: what happened to a row version, or to the log itself.
//!
//! The hash of an entry's bytes is a leaf of the tree, so a proof covers the whole entry. The
//! entries that a transaction writes together are a *group*. The log learns later whether the
//! group's transaction committed; if not, a later entry says so.
//!
//! Bytes ([`crate::codec`]): version, kind, then the fields in order.
//!
//! Invariant: bytes decode in one way only; an unknown version is an error.

use crate::codec::{Reader, Writer};
use crate::{Error, Hash};

const VERSION: u8 = 1;

/// Kind of entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// The log begins. `other`: number of earlier logs of tables with this name.
    Begin = 0,
    /// A row version was written. `other`: the version that it replaces, or 0.
    Write = 1,
    /// A row version was deleted.
    End = 2,
    /// An ended row version was erased: its values are deleted, its hash remains.
    Erase = 3,
    /// A group was rolled back after it had been logged. `sn`: its first entry; `other`: the number
    /// of its entries.
    Void = 4,
    /// The group's outcome was never reported, because the keeper or PostgreSQL stopped.
    Doubt = 5,
    /// A version of a dump's history was restored; `time` is its end. Its hash covers its author
    /// and who ended it, as in the dump; the entry's principal restored it.
    Restore = 6,
}

impl Kind {
    fn from_u8(code: u8) -> Option<Kind> {
        Some(match code {
            0 => Kind::Begin,
            1 => Kind::Write,
            2 => Kind::End,
            3 => Kind::Erase,
            4 => Kind::Void,
            5 => Kind::Doubt,
            6 => Kind::Restore,
            _ => return None,
        })
    }
}

/// An entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its kind.
    pub kind: Kind,
    /// Number of the first entry in its group.
    pub group: u64,
    /// Groups that begin before this entry number are settled when this entry is written: they
    /// committed, unless an entry says otherwise.
    pub settled: u64,
    /// Number of the row version.
    pub sn: u64,
    /// Meaning depends on [`Kind`].
    pub other: u64,
    /// When it happened, by the database's clock, in microseconds since 2000-01-01 UTC. The keeper
    /// has compared it with its own clock.
    pub time: i64,
    /// When the keeper received it, by its own clock; never less than in the previous entry.
    pub sealed: i64,
    /// Its author.
    pub principal: String,
    /// For [`Kind::Begin`]: the table's schema and name, separated by a period.
    pub names: String,
    /// Hash of the row version ([`crate::row::RowVersion`]); zero if there is none.
    pub row: Hash,
}

impl Entry {
    /// Encodes the entry as the bytes that the log stores.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(128 + self.principal.len() + self.names.len());
        self.encode_over(&mut bytes);
        bytes
    }

    /// The same, in place of what is there, whose memory is used.
    pub fn encode_over(&self, bytes: &mut Vec<u8>) {
        let mut out = Writer::over(std::mem::take(bytes));
        out.u8(VERSION);
        out.u8(self.kind as u8);
        for number in [self.group, self.settled, self.sn, self.other] {
            out.u64(number);
        }
        out.u64(self.time.cast_unsigned());
        out.u64(self.sealed.cast_unsigned());
        out.bytes(self.principal.as_bytes());
        out.bytes(self.names.as_bytes());
        out.fixed(&self.row.0);
        *bytes = out.finish();
    }

    /// Decodes an entry.
    ///
    /// # Errors
    /// [`Error::Version`], [`Error::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Entry, Error> {
        let mut from = Reader::new(bytes);
        let version = from.u8()?;
        if version != VERSION {
            return Err(Error::Version(version.into()));
        }
        let kind = Kind::from_u8(from.u8()?).ok_or(Error::Malformed("an unknown kind of entry"))?;
        let entry = Entry {
            kind,
            group: from.u64()?,
            settled: from.u64()?,
            sn: from.u64()?,
            other: from.u64()?,
            time: from.u64()?.cast_signed(),
            sealed: from.u64()?.cast_signed(),
            principal: from.text()?,
            names: from.text()?,
            row: Hash(from.fixed()?),
        };
        from.end()?;
        Ok(entry)
    }

    /// Returns the leaf for an entry with these bytes.
    pub fn leaf(bytes: &[u8]) -> Hash {
        Hash::leaf(bytes)
    }
}
