//! Values that are only in the vault: reading them back, and writing changed values early, so that
//! they can be evicted from memory.
//!
//! Such a write resembles a piece of a checkpoint other than the last one: it keeps the LSN of the
//! previous checkpoint, and applying redo records again changes nothing.
//!
//! Invariant: a segment counts as stored only after the commit that wrote it.

use super::checkpoint::{Writer, failed};
use super::meta::Meta;
use super::{Durable, Place};
use store::{Backing, Store};
use values::Error;
use vault::{Directory, Reader, SegmentId};

/// Reads segments from the vault.
pub(super) struct Pages(Reader);

impl Pages {
    pub(super) fn of(place: &Place) -> Result<Pages, String> {
        let files = Directory::open(&place.directory).map_err(|e| e.to_string())?;
        let index = std::sync::Arc::clone(&place.index);
        Ok(Pages(Reader::new(files, place.vault.clone(), index)))
    }
}

impl Backing for Pages {
    fn read(&self, partition: u32, segment: u32) -> Result<Vec<u8>, Error> {
        let id = SegmentId {
            partition,
            number: segment,
        };
        let lost = |what: String| {
            tracing::error!(partition, segment, what, "values cannot be read back");
            Error::new(b"58030", "confide: values cannot be read back into memory")
                .detail(what)
                .hint("Check the keeper's data directory; restore it from a backup if need be.")
        };
        let found = self.0.read(id).map_err(|e| lost(e.to_string()))?;
        found.ok_or_else(|| lost("the segment is not in the vault".into()))
    }
}

impl Durable {
    /// Writes changed segments until about this many bytes can be evicted. Does nothing before the
    /// first checkpoint, or after a failure.
    ///
    /// # Errors
    /// If the vault fails; the next checkpoint reopens it and writes everything.
    pub fn spill(&self, store: &Store, bytes: usize) -> Result<(), Error> {
        let mut state = self.state();
        let Some(vault) = state.vault.as_mut() else {
            return Ok(());
        };
        let meta = Meta::decode(vault.meta()).ok_or_else(|| failed(&"malformed meta"))?;
        if meta.position == 0 {
            return Ok(());
        }
        let now = store.list();
        let mut between = meta;
        between.partitions.retain(|l| now.contains(l));
        let mut writer = Writer::new(vault, between.encode());
        let mut enough = bytes;
        let mut written = Vec::new();
        for listed in now {
            let Some(partition) = store.get(listed.number).filter(|_| enough > 0) else {
                continue;
            };
            for number in partition.take_dirty() {
                let id = SegmentId {
                    partition: listed.number,
                    number,
                };
                let content = partition.write_segment(number)?;
                if let Some(content) = &content {
                    enough = enough.saturating_sub(content.len());
                    written.push(id);
                }
                writer.segment(id, content).map_err(|e| failed(&e))?;
            }
        }
        let result = writer.finish(None);
        if let Err(error) = result {
            state.vault = None;
            return Err(failed(&error));
        }
        tracing::debug!(segments = written.len(), "changed values written early");
        stored(store, &written);
        Ok(())
    }
}

/// Marks segments as written, unless they have changed meanwhile.
pub(super) fn stored(store: &Store, written: &[SegmentId]) {
    for id in written {
        if let Some(partition) = store.get(id.partition) {
            partition.set_stored(id.number);
        }
    }
}
