//! Copies of the store for backups, and the operator's confirmation that a copy is the newest.
//!
//! Invariant: what leaves the keeper is sealed, as it is on disk.

use super::lineage::Sent;
use super::{Durable, Place};
use crate::audit::Audit;
use crate::config::Config;
use crate::keys::Keys;
use values::Error;
use vault::{Checkpoint, Copy, Directory, Vault};

/// Number of bytes of a file read at a time.
const PART_BYTES: usize = 1024 * 1024;

fn failed(what: &impl std::fmt::Display) -> Error {
    Error::new(b"58030", "confide: the keeper's store cannot be copied").detail(what.to_string())
}

impl Durable {
    /// Starts a copy of the last checkpoint. Returns it with its LSN and timeline.
    pub fn copy(&self) -> Result<(Copy, u64, u32), Error> {
        let state = self.state();
        let vault = state.vault.as_ref();
        let vault = vault.ok_or_else(|| failed(&"the last checkpoint failed"))?;
        let meta = super::Meta::decode(vault.meta()).ok_or_else(|| failed(&"malformed meta"))?;
        // The audit log first: what it knows of the others is not newer than they are.
        let beside = [
            crate::audit::FILE,
            crate::grants::FILE,
            crate::tickets::FILE,
            crate::told::FILE,
            crate::viewers::FILE,
        ];
        let copy = vault.copy(&beside);
        let copy = copy.map_err(|e| failed(&e))?;
        Ok((copy, meta.position, meta.timeline))
    }

    /// Bytes of a file of a copy; none at its end.
    pub fn read_copy(&self, copy: &Copy, number: usize, offset: u64) -> Result<Vec<u8>, Error> {
        let state = self.state();
        let vault = state.vault.as_ref();
        let vault = vault.ok_or_else(|| failed(&"a checkpoint failed meanwhile"))?;
        let bytes = vault.read_copy(copy, number, offset, PART_BYTES);
        bytes.map_err(|e| failed(&e))
    }
}

/// Declares the files in the data directory to be the newest, which the freshness counter would
/// otherwise deny. Returns a message for the log.
///
/// # Errors
/// If the files are not authentic, or are in use by a keeper.
pub fn accept_backup(config: &Config, keys: &Keys) -> Result<String, String> {
    let root = keys.root();
    let place = Place::of(config, root)?;
    let accept = || -> Result<String, String> {
        let _held = super::lock(&place.directory)?;
        let files = Directory::open(&place.directory).map_err(|e| e.to_string())?;
        let counter = place.freshness.open();
        let (from, to) = Vault::accept(Box::new(files), counter, place.vault.clone())
            .map_err(|e| e.to_string())?;
        let (mut vault, mut meta) = place.open()?;
        // From now on records of other runs belong to this store, too.
        if meta.run.take().is_some() {
            meta.sent = Sent::default();
            let done = vault.commit(Checkpoint::new(), meta.encode());
            done.map_err(|e| e.to_string())?;
        }
        Audit::accept(&place.directory, keys.signing.clone(), meta.audit)?;
        Ok(format!(
            "the copy of version {from} is now the newest, as version {to}"
        ))
    };
    accept().map_err(|e| format!("data directory {}: {e}", config.data_dir.display()))
}
