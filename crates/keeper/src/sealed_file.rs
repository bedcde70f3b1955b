//! Small files of the keeper that are read at startup and written as a whole: standing grants, used
//! tickets, viewers.
//!
//! Invariants: a file is completely on disk before its writer continues; a file that was altered,
//! or written under another root key, is an error and does not count as empty.

use channel::hidden;
use contract::envelope::FLAG_TEXT;
use envelope::{Envelope, ExportKey, Opener, Sealer};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// A file that only this keeper can read and write.
pub struct SealedFile {
    path: Option<PathBuf>,
    root: Box<Zeroizing<[u8; 32]>>,
}

impl SealedFile {
    /// A file in a directory. Without a directory, nothing outlives the keeper.
    pub fn new(directory: &Path, name: &str, root: &Zeroizing<[u8; 32]>) -> SealedFile {
        // At the start there is room.
        let root =
            hidden::keys(|| Box::new(root.clone())).unwrap_or_else(|_| Box::new(root.clone()));
        let named = !directory.as_os_str().is_empty();
        SealedFile {
            path: named.then(|| directory.join(name)),
            root,
        }
    }

    /// Replaces the contents.
    pub fn write(&self, plain: &[u8]) -> Result<(), String> {
        let Some(file) = &self.path else {
            return Ok(());
        };
        let text = |e: envelope::Error| e.to_string();
        let epoch = ExportKey::fresh_epoch().map_err(text)?;
        let sealer = hidden::keys(|| Sealer::export(ExportKey::derive(&self.root, epoch)));
        let sealer = sealer.map_err(|full| full.to_string())?.map_err(text)?;
        let mut sealed = Vec::new();
        sealer
            .seal(0, FLAG_TEXT, plain, &mut sealed)
            .map_err(text)?;
        let fresh = file.with_extension("new");
        let write = || -> std::io::Result<()> {
            let mut out = fs::File::create(&fresh)?;
            out.write_all(&sealed)?;
            out.sync_all()?;
            fs::rename(&fresh, file)?;
            fs::File::open(file.parent().unwrap_or(Path::new("/")))?.sync_all()
        };
        write().map_err(|e| e.to_string())
    }

    /// Reads the contents; empty if there is no file.
    pub fn read(&self) -> Result<Vec<u8>, String> {
        let Some(file) = &self.path else {
            return Ok(Vec::new());
        };
        let sealed = match fs::read(file) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(format!("{}: {e}", file.display())),
        };
        let epoch = Envelope::parse(&sealed).ok().and_then(|e| e.epoch);
        let epoch = epoch.ok_or_else(|| self.altered())?;
        let opener = hidden::keys(|| Opener::export(&ExportKey::derive(&self.root, epoch)));
        let opener = opener.map_err(|full| full.to_string())?;
        let opener = opener.map_err(|_| self.altered())?;
        let mut plain = Vec::new();
        opener
            .open(&sealed, &mut plain)
            .map_err(|_| self.altered())?;
        Ok(plain)
    }

    /// The error message for a file whose contents were altered.
    pub fn altered(&self) -> String {
        let name = self.path.as_deref().unwrap_or(Path::new(""));
        format!("{}: not this keeper's, or altered", name.display())
    }
}
