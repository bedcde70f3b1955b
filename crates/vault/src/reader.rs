//! Reads segments while checkpoints are written: a checkpoint takes seconds and must not block a
//! query.
//!
//! Invariant: [`Reader::read`] returns what a finished checkpoint wrote, and not an older one than
//! the last that was finished before the call.

use crate::crypt::{self, VaultKey};
use crate::manifest::{self, HEADER_BYTES, Place};
use crate::{DATA_MAGIC, Directory, Error, Files, SegmentId, bound, data_name};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use zeroize::Zeroizing;

/// A file may be removed after a segment was looked up and before it is read.
const TRIES: u32 = 5;

/// Positions of the segments, as of the last finished checkpoint.
#[derive(Default)]
pub struct Index(RwLock<BTreeMap<SegmentId, Place>>);

impl Index {
    pub(crate) fn set(&self, places: BTreeMap<SegmentId, Place>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = places;
    }

    fn get(&self, id: SegmentId) -> Option<Place> {
        let places = self.0.read().unwrap_or_else(PoisonError::into_inner);
        places.get(&id).copied()
    }
}

/// Reads segments.
pub struct Reader {
    files: Directory,
    key: VaultKey,
    index: Arc<Index>,
}

impl Reader {
    /// Reads the vault in this directory; the index is kept up to date by the vault.
    pub fn new(files: Directory, root_key: impl Into<VaultKey>, index: Arc<Index>) -> Reader {
        Reader {
            files,
            key: root_key.into(),
            index,
        }
    }

    /// Returns the content of a segment; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Altered`] names the file.
    pub fn read(&self, id: SegmentId) -> Result<Option<Vec<u8>>, Error> {
        let mut tries = 0;
        loop {
            let Some(place) = self.index.get(id) else {
                return Ok(None);
            };
            tries += 1;
            match read_block(&self.files, &self.key, id, place) {
                Err(_) if tries < TRIES && self.index.get(id) != Some(place) => {}
                result => return result.map(Some),
            }
        }
    }
}

/// Reads a block and verifies that it belongs at its position.
pub(crate) fn read_block(
    files: &dyn Files,
    key: &VaultKey,
    id: SegmentId,
    place: Place,
) -> Result<Vec<u8>, Error> {
    let name = data_name(place.file);
    let altered = |what| Error::altered(&name, what);
    let read = |offset, length| {
        files
            .read_at(&name, offset, length)
            .map_err(|e| match e.kind() {
                std::io::ErrorKind::UnexpectedEof => altered("cut short"),
                std::io::ErrorKind::NotFound => altered("missing"),
                _ => Error::io(&name)(e),
            })
    };
    let salt = manifest::check_header(&name, DATA_MAGIC, &read(0, HEADER_BYTES)?)?;
    let length = usize::try_from(place.length).map_err(|_| altered("length"))?;
    let sealed = read(place.offset, length)?;
    if crypt::hash(&sealed) != place.hash {
        return Err(altered("hash of a block"));
    }
    let packed = key
        .file(&salt)?
        .open(place.number, &bound(id, place.file), sealed)
        .ok_or_else(|| altered("seal of a block"))?;
    pack::unpack(&Zeroizing::new(packed)).ok_or_else(|| altered("content of a block"))
}
