//! The manifest: which blocks there are, where, in which version, with their
//! hashes. One sealed block under a header.
//!
//! ```text
//! file:  magic "CFDM" 0..4, format u32 4..8, salt 8..24, sealed body
//! body:  version u64, length of the meta u32, meta,
//!        count u32, then for each block, ordered by segment:
//!          partition u32, number u32, file u64, offset u64, length u32,
//!          place in file u32, SHA-256 of the sealed block
//! ```
//! All integers are little-endian. The body's hashes make the manifest a hash tree
//! of depth one over all blocks; its version is bound to the freshness counter.

use crate::SegmentId;
use crate::crypt::{self, SALT_BYTES, VaultKey};
use crate::error::{Error, FORMAT};
use std::collections::BTreeMap;

/// Magic number of a manifest.
const MAGIC: &[u8; 4] = b"CFDM";
/// Size of the header of manifest and data files in bytes.
pub(crate) const HEADER_BYTES: usize = 8 + SALT_BYTES;
/// Maximum size of the meta data in bytes.
const META_MAX: usize = 1 << 26;

/// Position of a segment's block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) file: u64,
    pub(crate) offset: u64,
    pub(crate) length: u32,
    pub(crate) number: u32,
    pub(crate) hash: [u8; 32],
}

/// The state of a vault.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Manifest {
    pub(crate) version: u64,
    pub(crate) meta: Vec<u8>,
    pub(crate) places: BTreeMap<SegmentId, Place>,
}

/// Header of a manifest or data file.
pub(crate) fn header(magic: &[u8; 4], salt: &[u8; SALT_BYTES]) -> [u8; HEADER_BYTES] {
    let mut out = [0; HEADER_BYTES];
    out[..4].copy_from_slice(magic);
    out[4..8].copy_from_slice(&FORMAT.to_le_bytes());
    out[8..].copy_from_slice(salt);
    out
}

/// Returns the salt of a header, after checking its magic number and format.
pub(crate) fn check_header(
    name: &str,
    magic: &[u8; 4],
    bytes: &[u8],
) -> Result<[u8; SALT_BYTES], Error> {
    let mut reader = Reader(bytes);
    if reader.take::<4>() != Some(*magic) {
        return Err(Error::altered(name, "magic number"));
    }
    match reader.u32() {
        Some(FORMAT) => reader.take().ok_or_else(|| Error::altered(name, "header")),
        Some(found) => Err(Error::Version {
            name: name.to_owned(),
            found,
        }),
        None => Err(Error::altered(name, "header")),
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn bytes(&mut self, length: usize) -> Option<Vec<u8>> {
        let (head, tail) = self.0.split_at_checked(length)?;
        self.0 = tail;
        Some(head.to_vec())
    }
}

impl Manifest {
    /// Encodes and seals the manifest as a file.
    pub(crate) fn seal(&self, key: &VaultKey) -> Result<Vec<u8>, Error> {
        let mut body = Vec::with_capacity(64 + self.meta.len() + self.places.len() * 64);
        body.extend_from_slice(&self.version.to_le_bytes());
        let meta = u32::try_from(self.meta.len())
            .ok()
            .filter(|&n| n as usize <= META_MAX);
        let meta = meta.ok_or(Error::Refused("the meta is too long"))?;
        body.extend_from_slice(&meta.to_le_bytes());
        body.extend_from_slice(&self.meta);
        let count = u32::try_from(self.places.len());
        let count = count.map_err(|_| Error::Refused("too many segments"))?;
        body.extend_from_slice(&count.to_le_bytes());
        for (id, place) in &self.places {
            body.extend_from_slice(&id.partition.to_le_bytes());
            body.extend_from_slice(&id.number.to_le_bytes());
            body.extend_from_slice(&place.file.to_le_bytes());
            body.extend_from_slice(&place.offset.to_le_bytes());
            body.extend_from_slice(&place.length.to_le_bytes());
            body.extend_from_slice(&place.number.to_le_bytes());
            body.extend_from_slice(&place.hash);
        }
        let salt = crypt::salt()?;
        let mut out = header(MAGIC, &salt).to_vec();
        out.extend(key.file(&salt)?.seal(0, MAGIC, body)?);
        Ok(out)
    }

    /// Opens and decodes a manifest file.
    pub(crate) fn open(name: &str, key: &VaultKey, file: &[u8]) -> Result<Manifest, Error> {
        let salt = check_header(name, MAGIC, file)?;
        let sealed = file.get(HEADER_BYTES..).unwrap_or_default().to_vec();
        let body = key
            .file(&salt)?
            .open(0, MAGIC, sealed)
            .ok_or_else(|| Error::altered(name, "seal"))?;
        Self::decode(&body).ok_or_else(|| Error::altered(name, "content"))
    }

    fn decode(body: &[u8]) -> Option<Manifest> {
        let mut reader = Reader(body);
        let version = reader.u64()?;
        let meta_length = usize::try_from(reader.u32()?).ok()?;
        let meta = reader.bytes(meta_length)?;
        let mut places = BTreeMap::new();
        for _ in 0..reader.u32()? {
            let id = SegmentId {
                partition: reader.u32()?,
                number: reader.u32()?,
            };
            let place = Place {
                file: reader.u64()?,
                offset: reader.u64()?,
                length: reader.u32()?,
                number: reader.u32()?,
                hash: reader.take()?,
            };
            places.insert(id, place);
        }
        reader.0.is_empty().then_some(Manifest {
            version,
            meta,
            places,
        })
    }
}
