//! The ring that is always on: the last minutes are recorded from the keeper's start on, if the
//! configuration says so (docs/maintenance.md).
//!
//! The keeper makes the key, and puts it beside the recording, as `NAME.key`: whoever reads the
//! keeper's files may read what the database was told. An administrator's recording takes the
//! ring's place; when it ends, another ring begins.
//!
//! Invariant: there are two rings at most, the one that runs and the one before, which is there
//! after a crash; recordings that were ordered stay.

use crate::keeper::Keeper;
use recording::{Key, Scope};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Begins a ring, if one is wanted and nothing is recorded. Returns whether all is as it should be.
pub fn keep_on(keeper: &Keeper) -> bool {
    let config = &keeper.config;
    if config.record_ring_seconds == 0 || keeper.recorder.runs() {
        return true;
    }
    let directory = config.recordings();
    if directory.as_os_str().is_empty() {
        return true;
    }
    match begin(keeper, &directory) {
        Ok(()) => {
            keeper.reconsider();
            true
        }
        Err(what) => {
            tracing::error!("cannot record: {what}");
            false
        }
    }
}

fn begin(keeper: &Keeper, directory: &Path) -> Result<(), String> {
    let config = &keeper.config;
    let at = |e: io::Error| format!("{}: {e}", directory.display());
    let key = Key::generate().map_err(|e| e.to_string())?;
    fs::create_dir_all(directory).map_err(at)?;
    remove_older(directory).map_err(at)?;
    write_key(directory, &key).map_err(at)?;
    let scope = Scope {
        key,
        database: 0,
        role: 0,
        seconds: 0,
        bytes: config.record_ring_bytes,
        ring: config.record_ring_seconds,
        principal: String::new(),
        statements: Vec::new(),
        calls: false,
    };
    let name = keeper.recorder.start_standing(scope);
    let name = name.map_err(|e| e.to_string())?;
    keeper
        .audit
        .mention("recording", "-", format!("ring begins: {name}"));
    tracing::info!(name, "the last minutes are recorded");
    Ok(())
}

fn write_key(directory: &Path, key: &Key) -> io::Result<()> {
    let mut file = File::options()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(directory.join(key.name()).with_extension(KEY))?;
    writeln!(file, "{}", key.to_text().as_str())
}

/// What the name of a ring's key ends with. Keys of recordings that were ordered are not here.
const KEY: &str = "key";

/// Removes all rings but the newest.
fn remove_older(directory: &Path) -> io::Result<()> {
    let mut rings: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_some_and(|end| end == KEY) {
            rings.push((entry.metadata()?.modified()?, path));
        }
    }
    rings.sort();
    rings.pop();
    for (_, key) in rings {
        let files = key.with_extension("");
        if files.is_dir() {
            for file in fs::read_dir(&files)? {
                fs::remove_file(file?.path())?;
            }
            fs::remove_dir(&files)?;
        }
        fs::remove_file(&key)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> usize {
        fs::read_dir(directory).map_or(0, Iterator::count)
    }

    /// The newest ring stays with its key, and a recording without a key here does.
    #[test]
    fn older_ones_go() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        fs::create_dir(path.join("ordered")).expect("a recording");
        let mut last = None;
        for second in 1..4 {
            let key = Key::generate().expect("a key");
            write_key(path, &key).expect("its file");
            let file = File::options()
                .append(true)
                .open(path.join(key.name()).with_extension(KEY));
            let then = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(second);
            file.and_then(|file| file.set_modified(then))
                .expect("its time");
            let files = path.join(key.name());
            fs::create_dir(&files).expect("a ring");
            fs::write(files.join("000000000000.rec"), b"x").expect("a file");
            last = Some(files);
        }
        remove_older(path).expect("removed");
        assert_eq!(names(path), 3);
        assert!(path.join("ordered").is_dir());
        assert!(last.is_some_and(|files| files.is_dir() && files.with_extension(KEY).is_file()));
    }
}
