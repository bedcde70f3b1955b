//! Copies of a vault's files for backups, and accepting a copy as the latest one on an operator's
//! word.
//!
//! Invariants: a copy is of one checkpoint; no copy becomes the latest unless all of its blocks are
//! authentic.

use crate::{Error, Files, Freshness, MANIFEST, Manifest, Vault, VaultKey, data_name};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The files of one checkpoint; they are retained as long as this object exists.
pub struct Copy {
    /// Files that were read when the copy started.
    read: BTreeMap<String, Vec<u8>>,
    files: Vec<(String, u64)>,
    _hold: Arc<()>,
}

impl Copy {
    /// Names and lengths; the manifest comes last.
    pub fn files(&self) -> impl ExactSizeIterator<Item = (&str, u64)> {
        self.files
            .iter()
            .map(|(name, length)| (name.as_str(), *length))
    }
}

impl Vault {
    /// Starts a copy of what the last finished checkpoint wrote, and of these other files if they
    /// exist.
    ///
    /// # Errors
    /// If there has been no checkpoint, or the manifest cannot be read.
    pub fn copy(&self, beside: &[&str]) -> Result<Copy, Error> {
        let manifest = self.files.read(MANIFEST).map_err(Error::io(MANIFEST))?;
        let manifest = manifest.ok_or(Error::Refused("there was no checkpoint yet"))?;
        let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
        for place in self.current.places.values() {
            let end = place.offset.saturating_add(u64::from(place.length));
            let size = sizes.entry(place.file).or_default();
            *size = (*size).max(end);
        }
        let mut files: Vec<(String, u64)> = sizes
            .into_iter()
            .map(|(file, size)| (data_name(file), size))
            .collect();
        let mut read = BTreeMap::new();
        for name in beside {
            if let Some(bytes) = self.files.read(name).map_err(Error::io(name))? {
                files.push(((*name).to_owned(), bytes.len() as u64));
                read.insert((*name).to_owned(), bytes);
            }
        }
        files.push((MANIFEST.to_owned(), manifest.len() as u64));
        read.insert(MANIFEST.to_owned(), manifest);
        Ok(Copy {
            read,
            files,
            _hold: Arc::clone(&self.hold),
        })
    }

    /// Reads at most `most` bytes of a file of a copy.
    ///
    /// # Errors
    /// If there is no such file, or it cannot be read.
    pub fn read_copy(
        &self,
        copy: &Copy,
        number: usize,
        offset: u64,
        most: usize,
    ) -> Result<Vec<u8>, Error> {
        let found = copy.files.get(number);
        let (name, size) = found.ok_or(Error::Refused("no such file in the copy"))?;
        let left = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let length = left.min(most);
        if let Some(bytes) = copy.read.get(name) {
            let offset = usize::try_from(offset).unwrap_or(usize::MAX);
            let rest = bytes.get(offset..).unwrap_or_default();
            return Ok(rest.get(..length).unwrap_or_default().to_vec());
        }
        self.files
            .read_at(name, offset, length)
            .map_err(Error::io(name))
    }

    /// Accepts the present files as the latest: sets the counter accordingly. Returns the version
    /// before and after.
    ///
    /// # Errors
    /// If there is nothing, or any of it is not authentic; then nothing is changed.
    pub fn accept(
        files: Box<dyn Files>,
        freshness: Box<dyn Freshness>,
        root_key: impl Into<VaultKey>,
    ) -> Result<(u64, u64), Error> {
        let mut vault = Vault {
            files,
            freshness,
            key: root_key.into(),
            current: Manifest::default(),
            failed: false,
            compress: true,
            published: false,
            hold: Arc::new(()),
            index: None,
        };
        let found = vault.load(MANIFEST)?;
        vault.current = found.ok_or(Error::Refused("there is no manifest"))?;
        for id in vault.segments().collect::<Vec<_>>() {
            vault.read(id)?;
        }
        let counter = match vault.freshness.read() {
            Ok(0) => vault.freshness.create(),
            other => other,
        };
        let counter = counter.map_err(Error::io("freshness counter"))?;
        let version = vault.current.version;
        for next in counter.saturating_add(1)..=version {
            let advanced = vault.freshness.advance(next);
            advanced.map_err(Error::io("freshness counter"))?;
        }
        if counter > version {
            let mut next = vault.current.clone();
            next.version = counter.saturating_add(1);
            vault.publish(next)?;
        }
        Ok((version, vault.current.version))
    }
}
