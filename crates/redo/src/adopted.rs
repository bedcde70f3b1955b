//! Records of values that a client has sealed: leases of FIDs, and the values that took them.
//!
//! A lease is sealed by the keeper, as other records are: the session's storing key (32 bytes), then
//! runs of a first FID (`u64`) and a number (`u32`).
//!
//! An adoption is made by the database. Bytes: format version `u8`, kind `u8`, then for each
//! value FID `u64`, type modifier `u32`, counter (6 bytes), type code `u8`, flags `u8`, length `u32`, and so many
//! bytes: what the client sealed, with the tag. It has no place in the history of its own, but that
//! of the lease.
//!
//! Not here: keys, and what an envelope is (crate `envelope`).

use crate::{Error, Kind, VERSION};

/// FIDs in one lease at most.
const LEASE_MAX: u64 = 1 << 20;
const KEY_BYTES: usize = 32;
const RUN_BYTES: usize = 12;
const COUNTER_BYTES: usize = 6;

/// FIDs that a session's client may give values.
#[derive(Clone, PartialEq, Eq)]
pub struct Lease {
    /// The session's storing key.
    pub key: [u8; KEY_BYTES],
    /// Runs of a first FID and a number.
    pub runs: Vec<(u64, u64)>,
}

impl Lease {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = self.key.to_vec();
        for (first, count) in &self.runs {
            out.extend_from_slice(&first.to_le_bytes());
            out.extend_from_slice(&(*count as u32).to_le_bytes());
        }
        out
    }

    pub(crate) fn parse(body: &[u8]) -> Result<Lease, Error> {
        let (key, runs) = body.split_first_chunk().ok_or(Error::Malformed)?;
        let (runs, rest) = runs.as_chunks::<RUN_BYTES>();
        let run = |bytes: &[u8; RUN_BYTES]| {
            let (first, count) = bytes.split_first_chunk()?;
            let count = u64::from(u32::from_le_bytes(*count.first_chunk()?));
            Some((u64::from_le_bytes(*first), count))
        };
        let runs: Option<Vec<(u64, u64)>> = runs.iter().map(run).collect();
        let runs = runs.filter(|_| rest.is_empty()).ok_or(Error::Malformed)?;
        let total = runs.iter().map(|(_, count)| *count).sum::<u64>();
        if total > LEASE_MAX
            || runs
                .iter()
                .any(|(first, count)| *count == 0 || first.checked_add(*count).is_none())
        {
            return Err(Error::Malformed);
        }
        Ok(Lease { key: *key, runs })
    }
}

/// A value that a client has sealed, and the FID that it gets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Item<'a> {
    /// The FID.
    pub fid: u64,
    /// Type modifier of the column, according to the client.
    pub typmod: i32,
    /// Number of the envelope.
    pub counter: u64,
    /// Code of its type.
    pub type_code: u8,
    /// Flags of the envelope.
    pub flags: u8,
    /// Ciphertext and tag.
    pub sealed: &'a [u8],
}

/// The values of a record of adopted ones.
#[derive(Clone, Copy)]
pub struct Adopted<'a>(&'a [u8]);

impl<'a> Adopted<'a> {
    /// Whether a record is one of adopted values.
    pub fn is_one(record: &[u8]) -> bool {
        matches!(record, [VERSION, kind, ..] if *kind == Kind::Adopted as u8)
    }

    /// Checks that a record is well formed.
    ///
    /// # Errors
    /// If it is not.
    pub fn parse(record: &'a [u8]) -> Result<Adopted<'a>, Error> {
        if !Adopted::is_one(record) {
            return Err(Error::Malformed);
        }
        let body = record.get(2..).unwrap_or_default();
        let mut rest = body;
        while !rest.is_empty() {
            take_item(&mut rest).ok_or(Error::Malformed)?;
        }
        Ok(Adopted(body))
    }

    /// The values.
    pub fn items(self) -> impl Iterator<Item = Item<'a>> {
        let mut rest = self.0;
        std::iter::from_fn(move || take_item(&mut rest))
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}

fn take_item<'a>(rest: &mut &'a [u8]) -> Option<Item<'a>> {
    let fid = u64::from_le_bytes(take(rest)?);
    let typmod = i32::from_le_bytes(take(rest)?);
    let mut counter = [0; 8];
    let low: [u8; COUNTER_BYTES] = take(rest)?;
    counter.first_chunk_mut().map(|bytes| *bytes = low)?;
    let [type_code, flags] = take(rest)?;
    let length = usize::try_from(u32::from_le_bytes(take(rest)?)).ok()?;
    let sealed = rest.split_off(..length)?;
    Some(Item {
        fid,
        typmod,
        counter: u64::from_le_bytes(counter),
        type_code,
        flags,
        sealed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the database writes (extension/src/value/adopt.c) is read; what is cut off is not.
    #[test]
    fn items() {
        let mut record = vec![VERSION, 8];
        record.extend_from_slice(&((1_u64 << 44) + 9).to_le_bytes());
        record.extend_from_slice(&(-1_i32).to_le_bytes());
        record.extend_from_slice(&[5, 1, 0, 0, 0, 0, 3, 128]);
        record.extend_from_slice(&2_u32.to_le_bytes());
        record.extend_from_slice(b"xy");
        let item = Adopted::parse(&record).map(|a| a.items().collect::<Vec<_>>());
        let expected = Item {
            fid: (1 << 44) + 9,
            typmod: -1,
            counter: 261,
            type_code: 3,
            flags: 128,
            sealed: b"xy",
        };
        assert!(item == Ok(vec![expected]));
        for length in 3..record.len() {
            assert!(Adopted::parse(&record[..length]).is_err());
        }
        assert!(Adopted::parse(&[VERSION, 1]).is_err() && !Adopted::is_one(&[VERSION]));
    }

    proptest! {
        #[test]
        fn leases(key: [u8; 32], runs in proptest::collection::vec((0u64..1 << 60, 1u64..99), 0..9)) {
            let lease = Lease { key, runs };
            prop_assert!(Lease::parse(&lease.encode()) == Ok(lease));
        }

        #[test]
        fn any_bytes(bytes: Vec<u8>) {
            let _ = (Lease::parse(&bytes), Adopted::parse(&bytes).map(|a| a.items().count()));
        }
    }
}
