//! `confide record`: begins and ends recordings through the proxy, as an administrator, and says
//! what stands in one (docs/maintenance.md).
//!
//! Invariant: the key that seals a recording is in its file and in what the proxy seals for the
//! keeper, nowhere else.

use crate::psql::{Place, literal};
use contract::Kind;
use recording::{Key, Recorded};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What to do.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Begins a recording; makes the key that seals it.
    Start(Start),
    /// Ends the recording that runs.
    Stop {
        #[command(flatten)]
        place: Place,
    },
    /// Verifies a log of calls, and writes it for `confide anonymise`. It has values: where these may
    /// be seen only.
    Calls {
        /// Its directory.
        directory: PathBuf,
        #[command(flatten)]
        opening: Opening,
        /// The log, made; it must not exist.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Verifies a recording, and says what stands in it.
    Show {
        /// Its directory.
        directory: PathBuf,
        #[command(flatten)]
        opening: Opening,
        /// Writes its messages there, opened, as they stood in the channels.
        #[arg(long, value_name = "FILE")]
        raw: Option<PathBuf>,
    },
}

/// What is recorded.
#[derive(clap::Args)]
pub struct Start {
    /// The proxy's database, where a principal logs in that is an administrator, or whose calls it
    /// shall be.
    #[command(flatten)]
    place: Place,
    /// File of the key, made.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Not a recording but a log of the calls of operators, with values: of the sessions of the
    /// principal who begins it.
    #[arg(long, conflicts_with = "principal")]
    calls: bool,
    /// Sessions of this principal only.
    #[arg(long, value_name = "NAME", default_value = "")]
    principal: String,
    /// Sessions of this database only.
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// For so many seconds at most.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seconds: u64,
    /// So many bytes on disk at most.
    #[arg(long, value_name = "N", default_value_t = 0)]
    bytes: u64,
    /// Keeps the last so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    ring: u64,
}

/// How a recording is read.
#[derive(clap::Args)]
pub struct Opening {
    /// File of its key.
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// It may lack its end, as when the keeper was killed; then nobody can tell whether it was
    /// cut.
    #[arg(long)]
    pub unfinished: bool,
}

impl Opening {
    /// The recording in a directory.
    pub fn read(&self, directory: &Path) -> Result<Recorded, String> {
        let text = std::fs::read_to_string(&self.key)
            .map_err(|e| format!("{}: {e}", self.key.display()))?;
        let key = Key::parse(&text).map_err(|e| e.to_string())?;
        recording::read(directory, &key, self.unfinished).map_err(|e| e.to_string())
    }
}

/// Does it; what was done.
pub fn run(command: &Command) -> Result<String, String> {
    match command {
        Command::Start(start) => begin(start),
        Command::Stop { place } => {
            place.ask("SELECT confide.record('stop');\n")?;
            Ok("the recording is complete".into())
        }
        Command::Calls {
            directory,
            opening,
            out,
        } => {
            let (text, count) = calls_of(&opening.read(directory)?)?;
            let at = |e| format!("{}: {e}", out.display());
            let mut file = File::options()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(out)
                .map_err(at)?;
            file.write_all(text.as_bytes()).map_err(at)?;
            Ok(format!("calls {count}"))
        }
        Command::Show {
            directory,
            opening,
            raw,
        } => {
            let recorded = opening.read(directory)?;
            if let Some(file) = raw {
                let events: Vec<&[u8]> = recorded.chunks.iter().map(|c| &*c.events).collect();
                std::fs::write(file, events.concat())
                    .map_err(|e| format!("{}: {e}", file.display()))?;
            }
            Ok(show(&recorded))
        }
    }
}

fn begin(start: &Start) -> Result<String, String> {
    let key = Key::generate().map_err(|e| e.to_string())?;
    let mut words = format!(
        "start key={} seconds={} bytes={} ring={}",
        *key.to_text(),
        start.seconds,
        start.bytes,
        start.ring
    );
    if start.principal.contains(char::is_whitespace) {
        return Err("names with blanks cannot be said here".into());
    }
    if !start.principal.is_empty() {
        words += &format!(" principal={}", start.principal);
    }
    if start.calls {
        words += " calls";
    }
    if let Some(name) = &start.database {
        let query = format!(
            "SELECT oid FROM pg_catalog.pg_database WHERE datname = {};\n",
            literal(name)
        );
        match start.place.ask(&query)?.trim() {
            "" => return Err(format!("there is no database {name}")),
            oid => words += &format!(" database={oid}"),
        }
    }
    let at = |e| format!("{}: {e}", start.key.display());
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&start.key)
        .map_err(at)?;
    writeln!(file, "{}", *key.to_text()).map_err(at)?;
    let asked = start
        .place
        .ask(&format!("SELECT confide.record({});\n", literal(&words)));
    if let Err(what) = asked {
        let _ = std::fs::remove_file(&start.key);
        return Err(what);
    }
    Ok(key.name())
}

/// The log of calls that was recorded, and how many there are. A call that was not seen to end
/// stays one whose outcome nobody knows.
fn calls_of(recorded: &Recorded) -> Result<(String, usize), String> {
    if recorded.lost() > 0 {
        let lost = recorded.lost();
        eprintln!("confide: {lost} lines are missing, there was no room for them");
    }
    let mut found: Vec<(u64, String)> = Vec::new();
    let mut last: BTreeMap<u32, usize> = BTreeMap::new();
    for chunk in &recorded.chunks {
        for event in chunk.events().unwrap_or_default() {
            let line = || String::from_utf8_lossy(event.body).into_owned();
            match event.kind {
                recording::CALL => {
                    last.insert(chunk.channel, found.len());
                    found.push((event.at, line()));
                }
                recording::CAME => {
                    let call = last.remove(&chunk.channel);
                    if let Some((_, call)) = call.and_then(|at| found.get_mut(at)) {
                        *call = calls::with_outcome(call, &line());
                    }
                }
                _ => return Err("it is no log of calls but a recording".into()),
            }
        }
    }
    // Those of one channel stay in their order.
    found.sort_by_key(|(at, _)| *at);
    let lines: Vec<&str> = found.iter().map(|(_, line)| line.as_str()).collect();
    let text = format!("{}\n{}", calls::HEADER, lines.join("\n"));
    Ok((format!("{}\n", text.trim_end()), found.len()))
}

/// What was recorded, in numbers.
fn show(recorded: &Recorded) -> String {
    let mut kinds: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let (mut events, mut transactions, mut until) = (0, 0, 0);
    for event in recorded.chunks.iter().filter_map(|c| c.events()).flatten() {
        let kind = Kind::from_u16(event.kind);
        let name = kind.map_or("?".into(), |kind| format!("{kind:?}"));
        let (count, bytes) = kinds.entry(name).or_default();
        *count += 1;
        *bytes += event.size() as u64;
        events += 1;
        transactions += u64::from(kind == Some(Kind::Clock));
        until = until.max(event.at);
    }
    let mut text = format!(
        "events {events}\nlost {}\ntransactions {transactions}\nbytes {}\nseconds {}.{:06}\nend {}",
        recorded.lost(),
        recorded.bytes,
        until / 1_000_000,
        until % 1_000_000,
        recorded
            .end
            .map_or("missing".into(), |end| format!("{end:?}").to_lowercase()),
    );
    for (name, (count, bytes)) in kinds {
        text += &format!("\nkind {name} {count} {bytes}");
    }
    text
}
