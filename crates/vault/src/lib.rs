//! A vault keeps the keeper's pages at rest: numbered *segments* of any content,
//! sealed, versioned, and fresh.
//!
//! A checkpoint writes the segments that changed, one after the other, into one
//! new *data file*, then a new *manifest* that says where each segment's newest
//! block is. The order makes it atomic:
//!
//! 1. data file written and synced,
//! 2. manifest with version `v + 1` written under another name and synced,
//! 3. freshness counter advanced to `v + 1`,
//! 4. manifest renamed over the old one, names synced,
//! 5. data files that hold nothing current removed.
//!
//! A crash before 3 leaves the old state, a crash after 3 the new one: opening
//! finishes the rename when the counter says so. Anything changed, exchanged, cut
//! short or put back from an older copy is an error that names the file. After a
//! failed operation the vault refuses to go on: what a failed sync has done is
//! unknown.
//!
//! A manifest that was written but never became current (a crash before 3) must not
//! become so later, when the counter has come to its number: so the first checkpoint
//! after opening publishes the current state once more, which uses that number up.
//!
//! Segments are compressed before they are sealed, unless the vault is told not to.
//!
//! Data files that are mostly outdated are rewritten along with a checkpoint, so
//! that the space stays within a factor of two of the content.
//!
//! Not here: what is in a segment, and when to write one (the keeper).
//!
//! Invariant: what [`Vault::read`] returns is what the last finished checkpoint
//! wrote, or it is an error.
#![forbid(unsafe_code)]

mod backup;
mod crypt;
mod error;
mod files;
mod freshness;
mod manifest;
mod reader;
mod tpm;

pub use backup::Copy;
pub use error::Error;
pub use files::{Directory, Files};
pub use freshness::{CounterFile, Freshness};
pub use reader::{Index, Reader};
pub use tpm::TpmCounter;

pub use crypt::VaultKey;
use manifest::{HEADER_BYTES, Manifest, Place};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Name of the current manifest.
const MANIFEST: &str = "manifest";
/// Name of the next manifest before it becomes current.
const NEXT_MANIFEST: &str = "manifest.next";
/// Magic number of a data file.
const DATA_MAGIC: &[u8; 4] = b"CFDB";

/// A segment of a partition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SegmentId {
    /// The partition.
    pub partition: u32,
    /// Number of the segment within the partition.
    pub number: u32,
}

/// Sealed segments in files.
pub struct Vault {
    files: Box<dyn Files>,
    freshness: Box<dyn Freshness>,
    key: VaultKey,
    current: Manifest,
    /// Whether anything was published since it was opened.
    published: bool,
    failed: bool,
    compress: bool,
    /// Shared with copies: while a copy exists, no data file is removed.
    hold: Arc<()>,
    /// Kept up to date for concurrent readers.
    index: Option<Arc<Index>>,
}

/// The changes of a checkpoint.
#[derive(Default)]
pub struct Checkpoint {
    written: BTreeMap<SegmentId, Vec<u8>>,
    removed: BTreeSet<SegmentId>,
}

impl Checkpoint {
    /// Starts without changes.
    pub fn new() -> Checkpoint {
        Checkpoint::default()
    }

    /// Sets a segment's content.
    pub fn write(&mut self, id: SegmentId, content: Vec<u8>) {
        self.removed.remove(&id);
        self.written.insert(id, content);
    }

    /// Removes a segment.
    pub fn remove(&mut self, id: SegmentId) {
        self.written.remove(&id);
        self.removed.insert(id);
    }
}

fn data_name(file: u64) -> String {
    format!("data-{file:016x}")
}

/// What a block is bound to, besides its file (by the key) and its position (by the nonce): its
/// segment, and the version of the manifest that it was written for, which is the file's number.
fn bound(id: SegmentId, file: u64) -> [u8; 20] {
    let mut out = [0; 20];
    out[..4].copy_from_slice(DATA_MAGIC);
    out[4..8].copy_from_slice(&id.partition.to_le_bytes());
    out[8..12].copy_from_slice(&id.number.to_le_bytes());
    out[12..].copy_from_slice(&file.to_le_bytes());
    out
}

impl Vault {
    /// Opens the vault in these files, or creates one if there is none.
    ///
    /// # Errors
    /// [`Error::Altered`], [`Error::Stale`] and [`Error::Version`] name the file.
    pub fn open(
        files: Box<dyn Files>,
        freshness: Box<dyn Freshness>,
        root_key: impl Into<VaultKey>,
    ) -> Result<Vault, Error> {
        let key = root_key.into();
        let mut vault = Vault {
            files,
            freshness,
            key,
            current: Manifest::default(),
            published: false,
            failed: false,
            compress: true,
            hold: Arc::new(()),
            index: None,
        };
        let expected = vault
            .freshness
            .read()
            .map_err(Error::io("freshness counter"))?;
        vault.current = match vault.load(MANIFEST)? {
            Some(m) if m.version == expected => m,
            older => vault.finish_rename(expected, older)?,
        };
        vault.sweep()?;
        Ok(vault)
    }

    fn load(&self, name: &str) -> Result<Option<Manifest>, Error> {
        let file = self.files.read(name).map_err(Error::io(name))?;
        file.map(|bytes| Manifest::open(name, &self.key, &bytes))
            .transpose()
    }

    /// The counter and the manifest differ: either there was a crash between steps 3 and 4, or
    /// somebody put back an older manifest.
    fn finish_rename(&mut self, expected: u64, older: Option<Manifest>) -> Result<Manifest, Error> {
        if expected == 0 && older.is_none() {
            return Ok(Manifest::default());
        }
        match self.load(NEXT_MANIFEST) {
            Ok(Some(next)) if next.version == expected => {
                self.files
                    .rename(NEXT_MANIFEST, MANIFEST)
                    .and_then(|()| self.files.sync_names())
                    .map_err(Error::io(MANIFEST))?;
                Ok(next)
            }
            _ => {
                let name = MANIFEST.to_owned();
                Err(match older.map(|m| m.version) {
                    None => Error::Gone { name, expected },
                    Some(found) if found > expected => Error::Counter {
                        name,
                        found,
                        expected,
                    },
                    Some(found) => Error::Stale {
                        name,
                        found,
                        expected,
                    },
                })
            }
        }
    }

    /// Version of the last checkpoint; 0 before the first.
    pub fn version(&self) -> u64 {
        self.current.version
    }

    /// The meta data of the last checkpoint.
    pub fn meta(&self) -> &[u8] {
        &self.current.meta
    }

    /// Whether data is compressed from now on; the default is yes.
    pub fn compress(&mut self, on: bool) {
        self.compress = on;
    }

    /// From now on publishes the positions of segments to readers.
    pub fn serve(&mut self, index: &Arc<Index>) {
        self.index = Some(Arc::clone(index));
        self.tell_readers();
    }

    /// Must be called before data files that readers may use are removed.
    fn tell_readers(&self) {
        if let Some(index) = &self.index {
            index.set(self.current.places.clone());
        }
    }

    /// Returns all segments.
    pub fn segments(&self) -> impl Iterator<Item = SegmentId> {
        self.current.places.keys().copied()
    }

    /// Returns the content of a segment; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Altered`] names the file.
    pub fn read(&self, id: SegmentId) -> Result<Option<Vec<u8>>, Error> {
        self.current
            .places
            .get(&id)
            .map(|&place| self.read_block(id, place))
            .transpose()
    }

    fn read_block(&self, id: SegmentId, place: Place) -> Result<Vec<u8>, Error> {
        reader::read_block(&*self.files, &self.key, id, place)
    }

    /// Makes changes durable, together with meta data that replaces the previous.
    ///
    /// # Errors
    /// After an error the state on disk is the old or the new one, and the vault refuses everything
    /// until it is reopened.
    pub fn commit(&mut self, change: Checkpoint, meta: Vec<u8>) -> Result<(), Error> {
        if self.failed {
            return Err(Error::Failed);
        }
        let result = self.try_commit(change, meta);
        self.failed = result.is_err();
        result
    }

    fn try_commit(&mut self, mut change: Checkpoint, meta: Vec<u8>) -> Result<(), Error> {
        self.begin()?;
        self.rewrite_outdated(&mut change)?;
        let mut next = self.current.clone();
        next.version += 1;
        next.meta = meta;
        for id in &change.removed {
            next.places.remove(id);
        }
        if !change.written.is_empty() {
            self.write_data(next.version, change.written, &mut next.places)?;
        }
        self.publish(next)?;
        self.sweep()
    }

    /// Before the first checkpoint: creates the counter, or skips the number that an unfinished
    /// checkpoint may have used.
    fn begin(&mut self) -> Result<(), Error> {
        if self.published {
            return Ok(());
        }
        if self.current.version == 0 {
            let made = self.freshness.create();
            self.current.version = made.map_err(Error::io("freshness counter"))?;
        } else {
            let mut again = self.current.clone();
            again.version += 1;
            self.publish(again)?;
        }
        self.published = true;
        Ok(())
    }

    /// Step 1.
    fn write_data(
        &mut self,
        file: u64,
        written: BTreeMap<SegmentId, Vec<u8>>,
        places: &mut BTreeMap<SegmentId, Place>,
    ) -> Result<(), Error> {
        let salt = crypt::salt()?;
        let key = self.key.file(&salt)?;
        let header = manifest::header(DATA_MAGIC, &salt);
        let mut offset = HEADER_BYTES as u64;
        let mut blocks = Vec::with_capacity(written.len());
        let mut room = pack::Room::default();
        for (number, (id, content)) in (0..).zip(written) {
            let content = Zeroizing::new(content);
            let packed = room.pack(&content, self.compress, crypt::TAG_BYTES);
            let sealed = key.seal(number, &bound(id, file), packed)?;
            let length = u32::try_from(sealed.len());
            let length = length.map_err(|_| Error::Refused("a segment is too long"))?;
            let place = Place {
                file,
                offset,
                length,
                number,
                hash: crypt::hash(&sealed),
            };
            places.insert(id, place);
            offset += u64::from(length);
            blocks.push(sealed);
        }
        let name = data_name(file);
        let parts: Vec<&[u8]> = std::iter::once(header.as_slice())
            .chain(blocks.iter().map(Vec::as_slice))
            .collect();
        self.files
            .write(&name, &parts)
            .and_then(|()| self.files.sync(&name))
            .map_err(Error::io(&name))
    }

    /// Steps 2 to 4.
    fn publish(&mut self, next: Manifest) -> Result<(), Error> {
        let sealed = next.seal(&self.key)?;
        self.files
            .write(NEXT_MANIFEST, &[&sealed])
            .and_then(|()| self.files.sync(NEXT_MANIFEST))
            .and_then(|()| self.files.sync_names())
            .map_err(Error::io(NEXT_MANIFEST))?;
        self.freshness
            .advance(next.version)
            .map_err(Error::io("freshness counter"))?;
        self.files
            .rename(NEXT_MANIFEST, MANIFEST)
            .and_then(|()| self.files.sync_names())
            .map_err(Error::io(MANIFEST))?;
        self.current = next;
        self.tell_readers();
        Ok(())
    }

    /// Adds the segments of mostly outdated data files to a change.
    fn rewrite_outdated(&self, change: &mut Checkpoint) -> Result<(), Error> {
        let mut sizes: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (id, place) in &self.current.places {
            let (all, live) = sizes.entry(place.file).or_default();
            *all = (*all).max(place.offset + u64::from(place.length));
            if !change.written.contains_key(id) && !change.removed.contains(id) {
                *live += u64::from(place.length);
            }
        }
        for (&id, &place) in &self.current.places {
            let mostly_outdated = sizes
                .get(&place.file)
                .is_some_and(|(all, live)| live * 2 < *all);
            let untouched = !change.written.contains_key(&id) && !change.removed.contains(&id);
            if mostly_outdated && untouched {
                let content = self.read_block(id, place)?;
                change.written.insert(id, content);
            }
        }
        Ok(())
    }

    /// Step 5: removes data files without current blocks.
    fn sweep(&mut self) -> Result<(), Error> {
        if Arc::strong_count(&self.hold) > 1 {
            return Ok(());
        }
        let current: BTreeSet<String> = self
            .current
            .places
            .values()
            .map(|p| data_name(p.file))
            .collect();
        for name in self.files.names().map_err(Error::io("directory"))? {
            if name.starts_with("data-") && !current.contains(&name) {
                self.files.remove(&name).map_err(Error::io(&name))?;
            }
        }
        Ok(())
    }
}
