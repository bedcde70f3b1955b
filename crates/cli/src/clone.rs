//! `confide clone`: makes a copy of a running cluster, beside a replayer, for administrators to
//! experiment with (docs/maintenance.md). Must run as PostgreSQL's operating system user.
//!
//! Invariant: the copy has no key and no connection to the keeper: its socket is the replayer's.

use crate::base::{self, Base};
use crate::psql::Place;
use crate::record::Opening;
use crate::snapshots::{self, Seen};
use recording::Recorded;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The extension's file that names the cluster's store.
const MARKER: &str = "confide.store";
/// Time limit for the replayer to read its recording.
const READY_TIMEOUT: Duration = Duration::from_secs(600);
/// Time limit in seconds for the copy to recover.
const RECOVERY_SECONDS: &str = "3600";

/// With these no recording is needed.
const NOTHING_RECORDED: [&str; 3] = ["stop", "base", "complete"];

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Arguments {
    /// The directory to create: pgdata/ is the copy.
    directory: PathBuf,
    /// The running cluster, with a role that has REPLICATION.
    #[command(flatten)]
    place: Place,
    /// Directory of the recording.
    #[arg(long, value_name = "DIR", required_unless_present_any = NOTHING_RECORDED)]
    recording: Option<PathBuf>,
    /// File of its key.
    #[arg(long, value_name = "FILE", required_unless_present_any = NOTHING_RECORDED)]
    key: Option<PathBuf>,
    /// Make a base for clones with the rows that statements saw; to be done before they are
    /// recorded. A replication slot keeps the WAL until --complete.
    #[arg(long, conflicts_with_all = ["complete", "of", "stop"])]
    base: bool,
    /// Complete the base in the directory, after the recording has ended: fetch the WAL.
    #[arg(long, conflicts_with_all = ["of", "stop"])]
    complete: bool,
    /// Copy this base instead of the running cluster.
    #[arg(long, value_name = "DIR", requires = "statement")]
    of: Option<PathBuf>,
    /// With --of: file with the statement whose rows the copy shall have.
    #[arg(long, value_name = "FILE", requires = "of")]
    statement: Option<PathBuf>,
    /// Which run of the statement, from 1 on, if the recording has several.
    #[arg(long, value_name = "N", requires = "statement")]
    run: Option<usize>,
    /// Accept a recording without an end.
    #[arg(long)]
    unfinished: bool,
    /// Port of the copy, which listens only in the directory.
    #[arg(long, default_value_t = 5433)]
    port: u16,
    /// Fraction of the recorded delays that is reproduced: 0 none, 1 as recorded.
    #[arg(long, value_name = "FACTOR", default_value_t = 0.0)]
    delay: f64,
    /// Stop the copy and the replayer in this directory.
    #[arg(long)]
    stop: bool,
}

fn at(path: &Path) -> impl Fn(std::io::Error) -> String {
    let path = path.display().to_string();
    move |e| format!("{path}: {e}")
}

/// Creates and starts a clone, or stops one; returns a summary.
pub fn run(arguments: &Arguments) -> Result<String, String> {
    let place = &arguments.place;
    if arguments.stop {
        return stop(arguments);
    }
    if arguments.complete {
        return base::complete(place, &arguments.directory);
    }
    if arguments.base {
        return base::begin(place, &make(&arguments.directory)?);
    }
    let (Some(recording), Some(key)) = (&arguments.recording, &arguments.key) else {
        return Err("say --recording and --key".into());
    };
    let opening = Opening {
        key: key.clone(),
        unfinished: arguments.unfinished,
    };
    // A recording that was altered is refused before anything is copied.
    let recorded = opening.read(recording)?;
    if recorded.has_calls() {
        return Err("it is a log of calls, which has values: no clone is made beside it".into());
    }
    let moment = moment(arguments, &recorded)?;
    drop(recorded);
    let directory = make(&arguments.directory)?;
    let (begin, recovery) = obtain(arguments, &directory, moment.as_ref())?;
    configure(arguments, &directory, &recovery)?;
    let stop = moment.map(|moment| moment.stop);
    let mut replayer = replay(arguments, (recording, stop), &opening, &directory)?;
    let log = directory.join("postgres.log");
    let started = pg_ctl(arguments, &directory)
        .args(["start", "-w", "-s", "-t", RECOVERY_SECONDS, "-l"])
        .arg(&log)
        .status()
        .map_err(|e| format!("pg_ctl: {e}"))?;
    if !started.success() {
        let _ = replayer.kill();
        return Err(format!("the copy does not start: see {}", log.display()));
    }
    ready(arguments, &directory)?;
    Ok(format!(
        "host={} port={}\n{begin}",
        directory.display(),
        arguments.port
    ))
}

/// Creates the directory; returns its full name.
fn make(directory: &Path) -> Result<PathBuf, String> {
    fs::DirBuilder::new()
        .mode(0o700)
        .create(directory)
        .map_err(at(directory))?;
    fs::canonicalize(directory).map_err(at(directory))
}

/// A run of a statement, and the base and position that have its rows.
struct Moment {
    base: Base,
    stop: u64,
}

/// The moment that the arguments ask for, if they ask for one.
fn moment(arguments: &Arguments, recorded: &Recorded) -> Result<Option<Moment>, String> {
    let (Some(directory), Some(file)) = (&arguments.of, &arguments.statement) else {
        return Ok(None);
    };
    let text = fs::read_to_string(file).map_err(at(file))?;
    let base = Base::open(directory)?;
    let runs = snapshots::runs(recorded, &text);
    let seen = match (runs.as_slice(), arguments.run) {
        ([], _) => return Err("the recording has no run of this statement".into()),
        ([one], None) => one,
        (_, Some(run)) => runs
            .get(run.wrapping_sub(1))
            .ok_or_else(|| format!("the recording has {} runs of this statement", runs.len()))?,
        (_, None) => return Err(listed(&runs)),
    };
    let stop = base.stop(&arguments.place, seen)?;
    Ok(Some(Moment { base, stop }))
}

fn listed(runs: &[Seen]) -> String {
    let mut text = format!("the statement ran {} times: say which --run", runs.len());
    for (n, seen) in runs.iter().enumerate() {
        let (seconds, micros) = (seen.at / 1_000_000, seen.at % 1_000_000);
        let position = snapshots::shown(seen.position);
        text += &format!("\n{}: rows of {seconds}.{micros:06} s, {position}", n + 1);
    }
    text
}

/// Copies the cluster, or a base. Returns what to say of it, and settings for its recovery.
fn obtain(
    arguments: &Arguments,
    directory: &Path,
    moment: Option<&Moment>,
) -> Result<(String, String), String> {
    let Some(Moment { base, stop }) = moment else {
        base::copy(&arguments.place, directory, &[])?;
        let begin = begin_of(&directory.join("pgdata"))?;
        return Ok((format!("begins at {begin}"), String::new()));
    };
    let files = match base.copy(directory)? {
        true => "share blocks with the base until they change",
        false => "are full copies: the file system cannot share blocks",
    };
    let signal = directory.join("pgdata").join("recovery.signal");
    File::create(&signal).map_err(at(&signal))?;
    let stopped = snapshots::shown(*stop);
    let said = format!("has the rows of {stopped}\nfiles {files}");
    Ok((said, base.recovery(*stop)))
}

/// The LSN at which the copy starts.
fn begin_of(pgdata: &Path) -> Result<String, String> {
    let label = pgdata.join("backup_label");
    let text = fs::read_to_string(&label).map_err(at(&label))?;
    let line = text.strip_prefix("START WAL LOCATION: ");
    let begin = line.and_then(|rest| rest.split_ascii_whitespace().next());
    begin
        .map(str::to_owned)
        .ok_or_else(|| format!("{}: no position", label.display()))
}

/// Quotes a path for a configuration file.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "''"))
}

/// Sets the copy's directory, who may log in, and the replayer as its keeper. Only the
/// administrator changes its statistics.
fn configure(arguments: &Arguments, directory: &Path, recovery: &str) -> Result<(), String> {
    let pgdata = directory.join("pgdata");
    // A replayer has no store, so the file that names it is removed.
    let marker = pgdata.join(MARKER);
    match fs::remove_file(&marker) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(at(&marker)(e)),
        _ => {}
    }
    let auto = pgdata.join("postgresql.auto.conf");
    let mut file = File::options()
        .append(true)
        .open(&auto)
        .map_err(at(&auto))?;
    let socket = directory.join("replayer.sock");
    let text = format!(
        "\nlisten_addresses = ''\nunix_socket_directories = {}\nport = {}\n\
         confide.keeper_socket = {}\narchive_mode = off\nprimary_conninfo = ''\nssl = off\n\
         logging_collector = off\nautovacuum = off\n{recovery}",
        quoted(directory),
        arguments.port,
        quoted(&socket),
    );
    file.write_all(text.as_bytes()).map_err(at(&auto))?;
    // Whoever can enter the directory owns the files anyway.
    let hba = pgdata.join("pg_hba.conf");
    fs::write(&hba, "local all all trust\n").map_err(at(&hba))?;
    fs::set_permissions(&hba, fs::Permissions::from_mode(0o600)).map_err(at(&hba))
}

/// Starts the replayer, which continues after this command has ended.
fn replay(
    arguments: &Arguments,
    (recording, position): (&Path, Option<u64>),
    opening: &Opening,
    directory: &Path,
) -> Result<Child, String> {
    let path = directory.join("replayer.log");
    let log = File::create(&path).map_err(at(&path))?;
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let program = own.with_file_name("confide-replayer");
    let socket = directory.join("replayer.sock");
    let mut command = Command::new(&program);
    command.arg(recording).arg("--key").arg(&opening.key);
    command.arg("--socket").arg(&socket);
    command.args(["--delay", &arguments.delay.to_string()]);
    if let Some(position) = position {
        command.args(["--position", &position.to_string()]);
    }
    if opening.unfinished {
        command.arg("--unfinished");
    }
    let errors = log.try_clone().map_err(at(&path))?;
    command.stdin(Stdio::null()).stdout(log).stderr(errors);
    let mut child = command.process_group(0).spawn().map_err(at(&program))?;
    let pid = directory.join("replayer.pid");
    fs::write(&pid, format!("{}\n", child.id())).map_err(at(&pid))?;
    let begun = Instant::now();
    while !socket.exists() {
        let ended = child.try_wait().map_err(|e| e.to_string())?;
        if ended.is_some() || begun.elapsed() > READY_TIMEOUT {
            let _ = child.kill();
            let said = fs::read_to_string(&path).unwrap_or_default();
            return Err(format!("the replayer does not start: {}", said.trim()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(child)
}

/// Waits until the copy has recovered and serves; `pg_ctl` takes one for ready that still recovers.
fn ready(arguments: &Arguments, directory: &Path) -> Result<(), String> {
    let begun = Instant::now();
    while begun.elapsed() < READY_TIMEOUT {
        let mut asking = arguments.place.program("pg_isready");
        asking.arg("-q").arg("-h").arg(directory);
        asking.args(["-p", &arguments.port.to_string()]);
        let serves = asking.stdin(Stdio::null()).status();
        if serves.map_err(|e| format!("pg_isready: {e}"))?.success() {
            return Ok(());
        }
        if !directory.join("pgdata").join("postmaster.pid").exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err("the copy does not recover: see postgres.log in its directory".into())
}

fn pg_ctl(arguments: &Arguments, directory: &Path) -> Command {
    let mut command = arguments.place.program("pg_ctl");
    command.arg("-D").arg(directory.join("pgdata"));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn stop(arguments: &Arguments) -> Result<String, String> {
    let directory = &arguments.directory;
    let stopped = pg_ctl(arguments, directory)
        // Nothing of it is kept; recovery after a crash would wait for a keeper.
        .args(["stop", "-m", "immediate", "-s", "-w"])
        .status();
    let pid = directory.join("replayer.pid");
    let number = fs::read_to_string(&pid).map_err(at(&pid))?;
    let killed = Command::new("kill").arg(number.trim()).status();
    let _ = fs::remove_file(&pid);
    for (what, done) in [("pg_ctl", stopped), ("kill", killed)] {
        let done = done.map_err(|e| format!("{what}: {e}"))?;
        if !done.success() {
            return Err(format!("{what} failed: {done}"));
        }
    }
    Ok("copy and replayer are stopped".into())
}
