//! Entries of a table's log: what happened to a row version, or to the log itself.
//!
//! The hash of an entry's bytes is a leaf of the tree, so a proof is about all that an
//! entry says. Entries that were written together by one transaction are a *group*: whether it
//! committed, the log learns later. A group that did not is named by a later entry.
//!
//! Bytes ([`crate::codec`]): version, kind, then the fields in their order.
//!
//! Invariant: bytes decode in one way only; another version is an error.

use crate::codec::{Reader, Writer};
use crate::{Error, Hash};

const VERSION: u8 = 1;

/// What an entry is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// The log begins. `other`: how many logs of tables of this name were there before.
    Begin = 0,
    /// A row version was written. `other`: the version that it replaces, or 0.
    Write = 1,
    /// A row version was deleted.
    End = 2,
    /// An ended row version was erased: its values are no more, its hash stays.
    Erase = 3,
    /// A group was rolled back after it had been logged: `sn` is its first entry, `other`
    /// their number.
    Void = 4,
    /// Nobody has said whether a group committed: the keeper or PostgreSQL stopped.
    Doubt = 5,
    /// A version of a dump's history was restored, with its end: `time`. Who wrote and ended it is in its hash, as
    /// the dump said; the principal restored it.
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
    /// What it is about.
    pub kind: Kind,
    /// Number of the first entry of its group.
    pub group: u64,
    /// Groups that begin before this entry are settled when this one is written: they
    /// committed, unless an entry names them.
    pub settled: u64,
    /// Number of the row version.
    pub sn: u64,
    /// See [`Kind`].
    pub other: u64,
    /// When it happened, by the database's clock, which the keeper has compared with its
    /// own: microseconds since 2000-01-01 UTC.
    pub time: i64,
    /// When the keeper took it in, by its own clock; never less than in the entry before.
    pub sealed: i64,
    /// Who did it.
    pub principal: String,
    /// Of [`Kind::Begin`]: the table's schema and name, with a point between them.
    pub names: String,
    /// Hash of the row version ([`crate::row::RowVersion`]); zeros where there is none.
    pub row: Hash,
}

impl Entry {
    /// The bytes that the log keeps.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
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
        out.finish()
    }

    /// The entry that bytes are.
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

    /// The leaf that an entry with these bytes is.
    pub fn leaf(bytes: &[u8]) -> Hash {
        Hash::leaf(bytes)
    }
}
