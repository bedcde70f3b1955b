//! The clients that may hold a session: a file with one line per client, consisting of public key
//! and name. It is reread when it has changed.
//!
//! Invariant: a file that cannot be read or parsed authorises nobody.

use envelope::PublicKey;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Maximum size of the file.
const FILE_MAX: u64 = 16 * 1024 * 1024;

/// The authorised clients.
pub struct Clients {
    path: PathBuf,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// Device, inode, size, and time of change in seconds and nanoseconds.
    stamp: Option<[u64; 5]>,
    names: HashMap<PublicKey, String>,
    /// A client was withdrawn, and [`Clients::has_withdrawn`] has not reported it yet.
    withdrawn: bool,
}

impl Known {
    /// Rereads the file if it has changed.
    fn look(&mut self, path: &Path) {
        let stamp = stamp(path);
        if stamp.is_some() && stamp == self.stamp {
            return;
        }
        let names = read(path);
        self.withdrawn |= self
            .names
            .iter()
            .any(|(key, name)| names.get(key) != Some(name));
        self.names = names;
        self.stamp = stamp;
    }
}

impl Clients {
    /// The clients in a file, which is read on demand.
    pub fn new(path: &Path) -> Clients {
        Clients {
            path: path.to_owned(),
            known: Mutex::new(Known::default()),
        }
    }

    /// The name of an authorised client.
    pub fn name(&self, key: &PublicKey) -> Option<String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.look(&self.path);
        known.names.get(key).cloned()
    }

    /// Whether a client was withdrawn or renamed since the last call.
    pub fn has_withdrawn(&self) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if stamp(&self.path) != known.stamp {
            known.look(&self.path);
        }
        std::mem::take(&mut known.withdrawn)
    }

    /// Rereads the file on the next call.
    pub fn reload(&self) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.stamp = None;
    }
}

fn stamp(path: &Path) -> Option<[u64; 5]> {
    let data = std::fs::metadata(path).ok()?;
    let (seconds, nanos) = (data.ctime() as u64, data.ctime_nsec() as u64);
    Some([data.dev(), data.ino(), data.size(), seconds, nanos])
}

fn read(path: &Path) -> HashMap<PublicKey, String> {
    match parse(path) {
        Ok(names) => {
            tracing::info!(clients = names.len(), "read the authorised clients");
            names
        }
        Err(what) => {
            tracing::error!(file = %path.display(), "no client is authorised: {what}");
            HashMap::new()
        }
    }
}

fn parse(path: &Path) -> Result<HashMap<PublicKey, String>, String> {
    let size = std::fs::metadata(path).map_err(|e| e.to_string())?.len();
    if size > FILE_MAX {
        return Err("the file is too large".into());
    }
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let mut names = HashMap::new();
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, name) = entry(line).ok_or(format!("line {number} is not a key and a name"))?;
        names.insert(key, name);
    }
    Ok(names)
}

/// Parses `BASE64 name`, or the line of a public key file followed by a name.
fn entry(line: &str) -> Option<(PublicKey, String)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (key, name) = match words.as_slice() {
        ["confide-key-v1", "client", "public", key, name @ ..] => (key, name),
        [key, name @ ..] => (key, name),
        [] => return None,
    };
    Some((key.parse().ok()?, name.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key added or taken away counts at once, and a broken line authorises
    /// nobody; with the bug a revoked client goes on until a restart.
    #[test]
    fn changes_count() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("clients");
        let clients = Clients::new(&path);
        let (a, b) = (PublicKey([1; 32]), PublicKey([2; 32]));
        assert_eq!(clients.name(&a), None);
        std::fs::write(&path, format!("# people\n\n{a} alice smith\n"))?;
        assert_eq!(clients.name(&a).as_deref(), Some("alice smith"));
        assert!(!clients.has_withdrawn()); // nobody was there before
        std::fs::write(&path, format!("confide-key-v1 client public {b} bob\n"))?;
        assert_eq!(clients.name(&a), None);
        assert_eq!(clients.name(&b).as_deref(), Some("bob"));
        assert_eq!(
            (clients.has_withdrawn(), clients.has_withdrawn()),
            (true, false)
        );
        std::fs::write(&path, format!("{a} alice\nnonsense here\n"))?;
        assert_eq!(clients.name(&a), None);
        Ok(())
    }
}
