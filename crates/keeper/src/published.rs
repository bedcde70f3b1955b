//! Publication of checkpoints of ledger tables' logs, in a directory for anybody to fetch and keep.
//! Each has a proof that it continues from the one previously in the directory.
//!
//! Checkpoints on demand are in `dispatch::ledger`; the calling thread is in `herald`.
//!
//! Invariants: a checkpoint covers only entries whose transactions have ended and that are in the
//! WAL, so that no crash invalidates it; a checkpoint that the log does not continue from is left
//! in place.

use crate::config::Config;
use crate::keys::Keys;
use crate::logs::{Log, Logs};
use ledger::checkpoint::Checkpoint;
use ledger::tree::{self, Tree};
use ledger::{Hash, VerifyingKey};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use store::{PartitionKey, Store};

/// State and destination of the publication.
pub struct Published {
    directory: PathBuf,
    interval: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    when: Option<Instant>,
    /// The last checkpoint of each log.
    last: HashMap<u32, Checkpoint>,
}

/// Input for checkpoints.
pub struct Sources<'a> {
    /// The logs.
    pub logs: &'a Logs,
    /// Storage of their entries.
    pub store: &'a Store,
    /// Identifier of the store.
    pub id: u64,
    /// Keys for the signature.
    pub keys: &'a Keys,
}

impl Published {
    /// Opens the configured directory, creating it if necessary. Must be called before the sandbox
    /// is set up.
    pub fn open(config: &Config) -> Result<Published, String> {
        let directory = config.ledger_publish_dir.clone();
        if !directory.as_os_str().is_empty() {
            let made = fs::create_dir_all(&directory);
            made.map_err(|e| format!("{}: {e}", directory.display()))?;
        }
        Ok(Published {
            directory,
            interval: Duration::from_secs(config.ledger_publish_seconds),
            state: Mutex::default(),
        })
    }

    /// Whether checkpoints are to be published.
    pub fn wanted(&self) -> bool {
        !self.directory.as_os_str().is_empty()
    }

    /// Publishes new checkpoints, if they are due. Failures are logged.
    pub fn write(&self, from: &Sources<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state
            .when
            .is_some_and(|when| when.elapsed() < self.interval)
        {
            return;
        }
        state.when = Some(Instant::now());
        for log in from.logs.used() {
            if let Err(why) = self.publish(from, log, &mut state) {
                tracing::error!(log, error = why, "a checkpoint was not published");
            }
        }
    }

    fn publish(&self, from: &Sources<'_>, log: u32, state: &mut State) -> Result<(), String> {
        let key = from.store.get(log).and_then(|p| p.key());
        let Some(key) = key.filter(PartitionKey::is_log) else {
            return Ok(()); // dropped
        };
        let name = format!("{}-{}.checkpoint", key.database, key.relation);
        let path = self.directory.join(name);
        let act = |log: &mut Log| Ok(next(from, key, log, state, &path));
        let made = from.logs.with(from.store, log, false, act);
        let Some((checkpoint, text)) = made.map_err(|e| format!("{e:?}"))?? else {
            return Ok(());
        };
        replace(&path, text.as_bytes()).map_err(|e| format!("{}: {e}", path.display()))?;
        state.last.insert(log, checkpoint);
        Ok(())
    }
}

/// The name of a log in its checkpoints: store, database, table's OID and name.
pub fn origin(store: u64, key: PartitionKey, names: &str) -> String {
    let mut origin = format!("confide/{store:016x}/{}/{}/", key.database, key.relation);
    for c in names.chars() {
        let plain = !c.is_whitespace() && !c.is_control() && !['+', '%', '/'].contains(&c);
        match plain {
            true => origin.push(c),
            false => c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| {
                let _ = write!(origin, "%{byte:02X}");
            }),
        }
    }
    origin
}

/// The next checkpoint of a log and its file, if there are new entries.
fn next(
    from: &Sources<'_>,
    key: PartitionKey,
    log: &Log,
    state: &State,
    path: &Path,
) -> Result<Option<(Checkpoint, String)>, String> {
    let size = log.settled();
    let signing = &from.keys.signing;
    let verifying = signing.verifying_key().map_err(|e| e.to_string())?;
    let origin = origin(from.id, key, &log.names);
    let before = match state.last.get(&log.partition()) {
        Some(last) => Some(last.clone()),
        None => read(path, &origin, &verifying),
    };
    let old = before.as_ref().map_or(0, |b| b.size);
    if !goes_on(&log.tree, before.as_ref()) {
        return Err(format!(
            "{} has {old} entries, and the log does not go on from them: it is an older copy, or \
             its past was changed",
            path.display()
        ));
    }
    // Entries whose transactions may be running delay later ones, not those published before.
    if size <= old {
        return Ok(None);
    }
    let root = tree::root(&log.tree, size).map_err(|e| e.to_string())?;
    let checkpoint = Checkpoint { origin, size, root };
    let mut text = checkpoint.sign(signing).map_err(|e| e.to_string())?;
    if old > 0 {
        let proof = tree::prove_consistency(&log.tree, old, size).map_err(|e| e.to_string())?;
        let _ = write!(text, "\nconsistency {old}\n");
        for Hash(hash) in &proof.path {
            let _ = writeln!(text, "{}", ledger::base64(hash));
        }
    }
    Ok(Some((checkpoint, text)))
}

/// Whether a log continues from a checkpoint.
fn goes_on(tree: &Tree, before: Option<&Checkpoint>) -> bool {
    let same = |before: &Checkpoint| {
        before.size <= tree.size() && tree::root(tree, before.size) == Ok(before.root)
    };
    before.is_none_or(same)
}

/// The checkpoint left by an earlier run; `None` if it belongs to another table or keeper.
fn read(path: &Path, origin: &str, key: &VerifyingKey) -> Option<Checkpoint> {
    let text = fs::read_to_string(path).ok()?;
    let mut blocks = text.splitn(3, "\n\n");
    let note = format!("{}\n\n{}\n", blocks.next()?, blocks.next()?.trim_end());
    Checkpoint::verify(&note, origin, key).ok()
}

/// Replaces the file atomically, so that a reader sees one complete checkpoint or the other.
fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let fresh = path.with_extension("new");
    let mut file = fs::File::create(&fresh)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&fresh, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An older copy of a log is shorter, or differs where it was written on.
    #[test]
    fn older_copies() {
        let log = |leaves: &[u8]| {
            let mut tree = Tree::new();
            leaves.iter().for_each(|leaf| tree.push(Hash([*leaf; 32])));
            tree
        };
        let published = log(&[1, 2, 3]);
        let before = Checkpoint {
            origin: "o".into(),
            size: 3,
            root: published.root(),
        };
        assert!(goes_on(&log(&[]), None));
        assert!(goes_on(&log(&[1, 2, 3]), Some(&before)));
        assert!(goes_on(&log(&[1, 2, 3, 4]), Some(&before)));
        assert!(!goes_on(&log(&[1, 2]), Some(&before)));
        assert!(!goes_on(&log(&[1, 2, 4, 5]), Some(&before)));
    }
}
