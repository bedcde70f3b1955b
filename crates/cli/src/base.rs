//! The base of clones: a base backup that is made before a recording begins, and the WAL from then
//! until it has ended. A clone of it has the rows that one statement of the recording saw
//! (docs/maintenance.md).
//!
//! Meanwhile a replication slot keeps the WAL at the server.
//!
//! Invariant: nothing starts in a base, and it is only read once it is complete.

use crate::psql::{Place, literal};
use crate::snapshots::{self, Commit};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// File that names the slot while the base is incomplete.
const SLOT: &str = "slot";
/// Directory of the WAL.
const WAL: &str = "wal";
/// The backup's list of files, which says what WAL it needs.
const MANIFEST: &str = "backup_manifest";
/// How often, and how far apart, the slot is tried to be dropped.
const ATTEMPTS: u32 = 200;
const POLL: Duration = Duration::from_millis(50);
/// Name of a segment of which the end is missing.
const PARTIAL: &str = "partial";

fn at(path: &Path) -> impl Fn(std::io::Error) -> String {
    let path = path.display().to_string();
    move |e| format!("{path}: {e}")
}

/// Begins a base in a directory that exists: what remains is its WAL.
pub fn begin(place: &Place, directory: &Path) -> Result<String, String> {
    let slot = format!("confide_clone_{}", std::process::id());
    let file = directory.join(SLOT);
    fs::write(&file, &slot).map_err(at(&file))?;
    copy(place, directory, &["--create-slot", "--slot", &slot])?;
    Ok(format!(
        "slot {slot} keeps the WAL until the base is complete"
    ))
}

/// Makes a base backup in pgdata/ of a directory.
pub fn copy(place: &Place, directory: &Path, more: &[&str]) -> Result<(), String> {
    let mut copying = place.program("pg_basebackup");
    copying.args(more);
    copying.args(["--checkpoint=fast", "--wal-method=stream", "--pgdata"]);
    copying.arg(directory.join("pgdata"));
    if !place.dbname.is_empty() {
        copying.args(["--dbname", &place.dbname]);
    }
    let done = copying.stdin(Stdio::null()).status();
    let done = done.map_err(|e| format!("pg_basebackup: {e}"))?;
    match done.success() {
        true => Ok(()),
        false => Err(format!("pg_basebackup failed: {done}")),
    }
}

/// Fetches the WAL until now, and gives the slot back.
pub fn complete(place: &Place, directory: &Path) -> Result<String, String> {
    let file = directory.join(SLOT);
    let slot = fs::read_to_string(&file).map_err(at(&file))?;
    // Something that is flushed behind all that was recorded.
    let until = place.ask("SELECT pg_logical_emit_message(true, 'confide', 'clone');\n")?;
    let until = until.trim();
    let wal = directory.join(WAL);
    fs::create_dir_all(&wal).map_err(at(&wal))?;
    let mut fetching = place.program("pg_receivewal");
    fetching.arg("--directory").arg(&wal);
    fetching.args(["--no-loop", "--no-password", "--slot", &slot]);
    fetching.args(["--endpos", until]);
    if !place.dbname.is_empty() {
        fetching.args(["--dbname", &place.dbname]);
    }
    let fetched = fetching.stdin(Stdio::null()).stdout(Stdio::null()).status();
    let fetched = fetched.map_err(|e| format!("pg_receivewal: {e}"))?;
    if !fetched.success() {
        return Err(format!("pg_receivewal failed: {fetched}"));
    }
    join(&directory.join("pgdata").join("pg_wal"), &wal)?;
    give_back(place, &slot)?;
    fs::remove_file(&file).map_err(at(&file))?;
    Ok(format!("the base has the WAL until {until}"))
}

/// Drops the slot, once the server has noticed that nobody uses it.
fn give_back(place: &Place, slot: &str) -> Result<(), String> {
    let drop = format!(
        "SELECT pg_drop_replication_slot(slot_name) IS NULL FROM pg_replication_slots \
         WHERE slot_name = {} AND NOT active;\n",
        literal(slot)
    );
    for _ in 0..ATTEMPTS {
        if !place.ask(&drop)?.trim().is_empty() {
            return Ok(());
        }
        std::thread::sleep(POLL);
    }
    Err(format!("the slot {slot} is in use: drop it when it is not"))
}

/// Adds the backup's own WAL to what was fetched, and names all segments alike.
fn join(own: &Path, wal: &Path) -> Result<(), String> {
    for entry in fs::read_dir(wal).map_err(at(wal))? {
        let path = entry.map_err(at(wal))?.path();
        if path.extension().is_some_and(|ending| ending == PARTIAL) {
            fs::rename(&path, path.with_extension("")).map_err(at(&path))?;
        }
    }
    for entry in fs::read_dir(own).map_err(at(own))? {
        let entry = entry.map_err(at(own))?;
        let to = wal.join(entry.file_name());
        if entry.path().is_file() && !to.exists() {
            fs::copy(entry.path(), &to).map_err(at(&to))?;
        }
    }
    Ok(())
}

/// A base that is complete.
pub struct Base {
    directory: PathBuf,
    begin: u64,
    end: u64,
}

impl Base {
    /// Opens it.
    pub fn open(directory: &Path) -> Result<Base, String> {
        let directory = fs::canonicalize(directory).map_err(at(directory))?;
        if directory.join(SLOT).exists() || !directory.join(WAL).exists() {
            return Err(format!(
                "{}: the base is not complete: say --complete when the recording has ended",
                directory.display()
            ));
        }
        let manifest = directory.join("pgdata").join(MANIFEST);
        let text = fs::read_to_string(&manifest).map_err(at(&manifest))?;
        let of = |name: &str| {
            let (_, rest) = text.split_once(&format!("\"{name}\": \""))?;
            snapshots::position(rest.split_once('"')?.0)
        };
        match (of("Start-LSN"), of("End-LSN")) {
            (Some(begin), Some(end)) => Ok(Base {
                directory,
                begin,
                end,
            }),
            _ => Err(format!("{}: no positions", manifest.display())),
        }
    }

    /// The commits in its WAL before a position.
    fn commits(&self, place: &Place, until: u64) -> Result<Vec<Commit>, String> {
        let mut dumping = place.program("pg_waldump");
        dumping.arg("--path").arg(self.directory.join(WAL));
        dumping.args(["--rmgr", "Transaction"]);
        dumping.args(["--start", &snapshots::shown(self.begin)]);
        dumping.args(["--end", &snapshots::shown(until)]);
        let dumped = dumping.stdin(Stdio::null()).output();
        let dumped = dumped.map_err(|e| format!("pg_waldump: {e}"))?;
        if !dumped.status.success() {
            let said = String::from_utf8_lossy(&dumped.stderr);
            return Err(format!("pg_waldump failed: {}", said.trim()));
        }
        Ok(snapshots::commits(&String::from_utf8_lossy(&dumped.stdout)))
    }

    /// Where recovery of a copy must stop so that it has the rows that a run of a statement saw.
    pub fn stop(&self, place: &Place, seen: &snapshots::Seen) -> Result<u64, String> {
        let early = |position| {
            format!(
                "the statement saw the rows of {}, before the base is consistent at {}",
                snapshots::shown(position),
                snapshots::shown(self.end)
            )
        };
        if seen.position < self.end {
            return Err(early(seen.position));
        }
        let stop = seen.stop(&self.commits(place, seen.position)?)?;
        match stop < self.end {
            true => Err(early(stop)),
            false => Ok(stop),
        }
    }

    /// Copies it, with blocks that are shared until they change if the file system can. Returns
    /// whether they are.
    pub fn copy(&self, directory: &Path) -> Result<bool, String> {
        let from = self.directory.join("pgdata");
        let probe = directory.join("probe");
        let shares = copied("always", &from.join("PG_VERSION"), &probe)?;
        let _ = fs::remove_file(&probe);
        match copied("auto", &from, &directory.join("pgdata"))? {
            true => Ok(shares),
            false => Err(format!("{} cannot be copied", from.display())),
        }
    }

    /// Settings with which a copy recovers up to there, and is a server of its own then.
    pub fn recovery(&self, stop: u64) -> String {
        let wal = self.directory.join(WAL).display().to_string();
        let wal = wal.replace('%', "%%").replace('\'', "'\\''");
        let command = format!("cp '{wal}'/%f '%p'")
            .replace('\\', "\\\\")
            .replace('\'', "''");
        format!(
            "restore_command = '{command}'\nrecovery_target_lsn = '{}'\n\
             recovery_target_inclusive = off\nrecovery_target_timeline = current\n\
             recovery_target_action = promote\nhot_standby = off\n",
            snapshots::shown(stop)
        )
    }
}

/// Copies a file or a directory, with or without shared blocks.
fn copied(reflink: &str, from: &Path, to: &Path) -> Result<bool, String> {
    let mut copying = std::process::Command::new("cp");
    copying.arg("-a").arg(format!("--reflink={reflink}"));
    let done = copying.arg(from).arg(to).stdin(Stdio::null());
    let done = match reflink {
        // It is an answer, too, that this file system cannot.
        "always" => done.stderr(Stdio::null()).status(),
        _ => done.status(),
    };
    Ok(done.map_err(|e| format!("cp: {e}"))?.success())
}
