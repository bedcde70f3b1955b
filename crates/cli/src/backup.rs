//! `confide backup`: a base backup of the cluster and a copy of the keeper's store that
//! belong together, taken over a database connection with pg_basebackup and psql.
//!
//! The store's checkpoint must lie between the backup's begin and its end: then the
//! backup has the WAL since the checkpoint, and whatever is restored has come as far. So
//! pg_basebackup is stopped once the server has begun the backup, until the copy of the
//! store has begun.
//!
//! Not here: the root key, which is no part of a backup.
//!
//! Invariant: a directory that was finished holds a pair that belongs together.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Arguments {
    /// The directory to create: pgdata/ is the cluster, keeper/data/ the keeper's store.
    directory: PathBuf,
    /// Connection string of the database that has the extension.
    #[arg(long, value_name = "CONNSTR", default_value = "")]
    dbname: String,
    /// Directory of psql and pg_basebackup (default: search PATH).
    #[arg(long, value_name = "DIR")]
    bindir: Option<PathBuf>,
    /// Further arguments for pg_basebackup, such as --write-recovery-conf.
    #[arg(last = true)]
    more: Vec<String>,
}

/// Number of attempts if pg_basebackup finishes before it can be stopped.
const ATTEMPTS: usize = 3;
const POLL: Duration = Duration::from_millis(5);

/// Returns the store's files in parts; the second function continues where the first started.
const COPY: &str = "COPY (SELECT f.name, f.length, f.checkpoint_lsn, f.timeline, o.at, \
    encode(confide.store_read(f.number, o.at), 'hex') FROM confide.store_copy() f, \
    generate_series(0, greatest(f.length - 1, 0), 1048576) o(at) \
    ORDER BY f.number, o.at) TO STDOUT";

enum Outcome {
    Done(String),
    TooLate,
}

/// Makes the backup; returns a summary.
pub fn run(arguments: &Arguments) -> Result<String, String> {
    for _ in 0..ATTEMPTS {
        make_directory(&arguments.directory)?;
        match attempt(arguments) {
            Ok(Outcome::Done(what)) => return Ok(what),
            Ok(Outcome::TooLate) => remove(&arguments.directory)?,
            Err(what) => {
                remove(&arguments.directory)?;
                return Err(what);
            }
        }
    }
    Err("pg_basebackup ended each time before the store's copy began; try again".to_owned())
}

fn at(path: &Path) -> impl Fn(std::io::Error) -> String + '_ {
    move |e| format!("{}: {e}", path.display())
}

fn make_directory(path: &Path) -> Result<(), String> {
    let mut builder = fs::DirBuilder::new();
    builder.mode(0o700);
    builder.create(path).map_err(at(path))?;
    let keeper = path.join("keeper");
    builder.create(&keeper).map_err(at(&keeper))?;
    let data = keeper.join("data");
    builder.create(&data).map_err(at(&data))
}

fn remove(path: &Path) -> Result<(), String> {
    fs::remove_dir_all(path).map_err(at(path))
}

fn attempt(arguments: &Arguments) -> Result<Outcome, String> {
    let name = format!("confide backup {}", std::process::id());
    let pgdata = arguments.directory.join("pgdata");
    let mut base = command(arguments, "pg_basebackup");
    base.env("PGAPPNAME", &name).arg("--pgdata").arg(&pgdata);
    base.args(["--checkpoint=fast", "--wal-method=stream", "--format=plain"]);
    base.args(&arguments.more);
    let mut base = base.spawn().map_err(|e| format!("pg_basebackup: {e}"))?;
    let begun = await_begin(arguments, &name, &mut base);
    let copied = begun.and_then(|begun| match begun {
        true => copy_store(arguments, &base).map(Some),
        false => Ok(None),
    });
    if copied.is_err() {
        signal(&base, "KILL");
    }
    let ended = base.wait().map_err(|e| format!("pg_basebackup: {e}"))?;
    let Some((checkpoint, timeline)) = copied? else {
        return failed_or(ended, Outcome::TooLate);
    };
    failed_or(ended, ())?;
    let (from, until) = wal_range(&pgdata.join("backup_manifest"))?;
    if lsn(&checkpoint)? < from || lsn(&checkpoint)? > until {
        return Ok(Outcome::TooLate);
    }
    Ok(Outcome::Done(format!(
        "{}: cluster and store, at {checkpoint} on timeline {timeline}\nTo restore, see \
         docs/operations.md; the root key is not in the backup.",
        arguments.directory.display()
    )))
}

fn failed_or<T>(ended: ExitStatus, otherwise: T) -> Result<T, String> {
    match ended.success() {
        true => Ok(otherwise),
        false => Err(format!("pg_basebackup failed: {ended}")),
    }
}

fn command(arguments: &Arguments, name: &str) -> Command {
    let path = arguments.bindir.as_ref();
    let mut command = Command::new(path.map_or(PathBuf::from(name), |dir| dir.join(name)));
    if !arguments.dbname.is_empty() {
        command.args(["--dbname", &arguments.dbname]);
    }
    command.stdin(Stdio::null());
    command
}

fn psql(arguments: &Arguments, queries: &[&str]) -> Command {
    let mut command = command(arguments, "psql");
    command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
    for query in queries {
        command.args(["-c", query]);
    }
    command
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    let _ = Command::new("kill").args(["-s", name, &pid]).status();
}

/// Waits until the server has started the backup, and stops pg_basebackup there. Returns false if
/// it has ended.
fn await_begin(arguments: &Arguments, name: &str, base: &mut Child) -> Result<bool, String> {
    let query = format!(
        "SELECT count(*) FROM pg_stat_progress_basebackup b JOIN pg_stat_activity a USING (pid) \
         WHERE a.application_name = '{name}' \
         AND b.phase NOT IN ('initializing', 'waiting for checkpoint to finish')"
    );
    loop {
        let output = psql(arguments, &[&query]).stderr(Stdio::inherit()).output();
        let output = output.map_err(|e| format!("psql: {e}"))?;
        if !output.status.success() {
            return Err(format!("psql failed: {}", output.status));
        }
        if base.try_wait().map_err(|e| e.to_string())?.is_some() {
            return Ok(false);
        }
        if output.stdout.starts_with(b"1") {
            signal(base, "STOP");
            return Ok(true);
        }
        std::thread::sleep(POLL);
    }
}

/// Copies the store as of a new checkpoint; lets pg_basebackup continue once the copy has started.
/// Returns the checkpoint's LSN and timeline.
fn copy_store(arguments: &Arguments, base: &Child) -> Result<(String, String), String> {
    let data = arguments.directory.join("keeper/data");
    let mut psql = psql(arguments, &["SELECT confide.checkpoint()", COPY]);
    let mut psql = psql.stdout(Stdio::piped()).spawn();
    let psql = psql.as_mut().map_err(|e| format!("psql: {e}"))?;
    let lines = psql.stdout.take().map(BufReader::new);
    let mut place = None;
    let written = lines
        .into_iter()
        .flat_map(BufRead::lines)
        .try_for_each(|line| {
            let line = line.map_err(|e| format!("psql: {e}"))?;
            let fields: Vec<&str> = line.split('\t').collect();
            let [name, _, checkpoint, timeline, offset, hex] = fields.as_slice() else {
                return Ok(()); // the checkpoint's answer
            };
            if place.is_none() {
                signal(base, "CONT");
                place = Some((checkpoint.to_string(), timeline.to_string()));
            }
            write_part(&data, name, offset, hex)
        });
    signal(base, "CONT");
    let ended = psql.wait().map_err(|e| format!("psql: {e}"))?;
    written?;
    if !ended.success() {
        return Err(format!("psql failed: {ended}"));
    }
    sync(&data)?;
    place.ok_or_else(|| "the store has no files".to_owned())
}

fn write_part(data: &Path, name: &str, offset: &str, hex: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || !name.chars().all(plain) {
        return Err(format!("the store has a file of the strange name {name:?}"));
    }
    let path = data.join(name);
    let mut file = File::options()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(at(&path))?;
    let length = file.metadata().map_err(at(&path))?.len();
    if offset.parse() != Ok(length) {
        return Err(format!("{name}: a part is missing"));
    }
    let bytes = unhex(hex).ok_or_else(|| format!("{name}: a part is malformed"))?;
    file.write_all(&bytes).map_err(at(&path))
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: &u8| char::from(*c).to_digit(16);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let byte = |[high, low]: &[u8; 2]| u8::try_from(digit(high)? * 16 + digit(low)?).ok();
    rest.is_empty().then(|| pairs.iter().map(byte).collect())?
}

fn sync(data: &Path) -> Result<(), String> {
    for entry in fs::read_dir(data).map_err(at(data))? {
        let path = entry.map_err(at(data))?.path();
        let file = File::open(&path).map_err(at(&path))?;
        file.sync_all().map_err(at(&path))?;
    }
    let directory = File::open(data).map_err(at(data))?;
    directory.sync_all().map_err(at(data))
}

fn lsn(text: &str) -> Result<u64, String> {
    let halves = text.split_once('/').and_then(|(high, low)| {
        let high = u64::from_str_radix(high, 16).ok()?;
        Some(high << 32 | u64::from_str_radix(low, 16).ok()?)
    });
    halves.ok_or_else(|| format!("{text:?} is no LSN"))
}

/// The range of WAL that the backup has in its last timeline.
fn wal_range(manifest: &Path) -> Result<(u64, u64), String> {
    let text = fs::read_to_string(manifest).map_err(at(manifest))?;
    let value = |key: &str| {
        let rest = text.rsplit_once(key)?.1;
        rest.split('"').nth(1)
    };
    match (value("\"Start-LSN\""), value("\"End-LSN\"")) {
        (Some(from), Some(until)) => Ok((lsn(from)?, lsn(until)?)),
        _ => Err(format!("{}: no WAL ranges", manifest.display())),
    }
}
