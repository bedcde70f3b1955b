//! `confide record`: starts and stops recordings through the proxy, as an administrator, and shows
//! their content (docs/maintenance.md).
//!
//! Invariant: the key that seals a recording is only in its file, and in what the proxy seals for
//! the keeper.

use crate::psql::{Place, literal};
use contract::codec::Part;
use contract::{Kind, body};
use recording::{Key, Recorded, STATEMENTS_MAX};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Subcommands.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Start a recording; creates the key that seals it.
    Start(Start),
    /// Stop the current recording.
    Stop {
        #[command(flatten)]
        place: Place,
    },
    /// Verify a log of calls, and write it for `confide anonymise`. It contains values, so do this
    /// only where they may be seen.
    Calls {
        /// Directory of the log.
        directory: PathBuf,
        #[command(flatten)]
        opening: Opening,
        /// The file to create; it must not exist.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Verify a recording, and show what it contains.
    Show {
        /// Directory of the recording.
        directory: PathBuf,
        #[command(flatten)]
        opening: Opening,
        /// Write its messages, opened, to this file.
        #[arg(long, value_name = "FILE")]
        raw: Option<PathBuf>,
    },
}

/// What to record.
#[derive(clap::Args)]
pub struct Start {
    /// The proxy's database. The login's principal must be an administrator, or the one whose calls
    /// are logged.
    #[command(flatten)]
    place: Place,
    /// File for the key, to be created.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Instead of a recording, log the calls of operators, with values, in the sessions of the
    /// principal who starts it.
    #[arg(long, conflicts_with = "principal")]
    calls: bool,
    /// Only sessions of this principal.
    #[arg(long, value_name = "NAME", default_value = "")]
    principal: String,
    /// Only sessions of this database.
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// Only sessions that have logged in to the database as this role.
    #[arg(long, value_name = "NAME", conflicts_with = "calls")]
    role: Option<String>,
    /// Only statements with this query identifier, as `pg_stat_statements` and `pg_stat_activity` show
    /// it, or, if it is no number, with a text there that is LIKE it. Can be repeated.
    #[arg(
        long = "statement",
        value_name = "ID|PATTERN",
        allow_hyphen_values = true,
        conflicts_with = "calls"
    )]
    statements: Vec<String>,
    /// Maximum duration in seconds.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seconds: u64,
    /// Maximum number of bytes on disk.
    #[arg(long, value_name = "N", default_value_t = 0)]
    bytes: u64,
    /// Keep only the last SECONDS.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    ring: u64,
}

/// How to open a recording.
#[derive(clap::Args)]
pub struct Opening {
    /// File with its key.
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// Accept a recording without an end, for example if the keeper was killed; nobody can tell
    /// whether it was truncated.
    #[arg(long)]
    pub unfinished: bool,
}

impl Opening {
    /// Reads the recording in a directory.
    pub fn read(&self, directory: &Path) -> Result<Recorded, String> {
        let text = std::fs::read_to_string(&self.key)
            .map_err(|e| format!("{}: {e}", self.key.display()))?;
        let key = Key::parse(&text).map_err(|e| e.to_string())?;
        recording::read(directory, &key, self.unfinished).map_err(|e| e.to_string())
    }
}

/// Runs the command; returns a summary.
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
    let named = [
        ("database", "pg_database WHERE datname", &start.database),
        ("role", "pg_roles WHERE rolname", &start.role),
    ];
    for (what, catalog, name) in named {
        let Some(name) = name else {
            continue;
        };
        let query = format!(
            "SELECT oid FROM pg_catalog.{catalog} = {};\n",
            literal(name)
        );
        match start.place.ask(&query)?.trim() {
            "" => return Err(format!("there is no {what} {name}")),
            oid => words += &format!(" {what}={oid}"),
        }
    }
    for query in queries(start)? {
        words += &format!(" statement={query}");
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

/// The identifiers of the queries that are asked for.
fn queries(start: &Start) -> Result<BTreeSet<i64>, String> {
    let mut found = BTreeSet::new();
    if start.statements.is_empty() {
        return Ok(found);
    }
    let computed = "SELECT query_id IS NOT NULL FROM pg_catalog.pg_stat_activity \
                    WHERE pid = pg_catalog.pg_backend_pid();\n";
    if start.place.ask(computed)?.trim() != "t" {
        return Err("the server computes no query identifiers: set compute_query_id = on".into());
    }
    let extension = "SELECT pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_extension e \
                     JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace \
                     WHERE e.extname = 'pg_stat_statements';\n";
    // Not this command's own statement, which has the pattern in it.
    let activity = "pg_catalog.pg_stat_activity WHERE pid <> pg_catalog.pg_backend_pid()";
    let mut sources = vec![("query_id", activity.to_owned())];
    match start.place.ask(extension)?.trim() {
        "" => {}
        schema => sources.push(("queryid", format!("{schema}.pg_stat_statements WHERE true"))),
    }
    for statement in &start.statements {
        if let Ok(query) = statement.parse::<i64>() {
            found.insert(query);
            continue;
        }
        let mut like = Vec::new();
        for (id, source) in &sources {
            let rows = start.place.ask(&format!(
                "SELECT {id} FROM {source} AND query LIKE {} AND {id} IS NOT NULL;\n",
                literal(statement)
            ))?;
            like.extend(
                rows.lines()
                    .filter_map(|row| row.trim().parse::<i64>().ok()),
            );
        }
        if like.is_empty() {
            return Err(format!(
                "no statement that the server knows is like {statement}"
            ));
        }
        found.extend(like);
    }
    match found.len() {
        0..=STATEMENTS_MAX => Ok(found),
        count => Err(format!("{count} statements are too many")),
    }
}

/// Returns the log of calls, and the number of calls. If a call was not seen to end, its outcome
/// remains unknown.
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
    // The sort is stable, so the calls of a channel stay in order.
    found.sort_by_key(|(at, _)| *at);
    let lines: Vec<&str> = found.iter().map(|(_, line)| line.as_str()).collect();
    let text = format!("{}\n{}", calls::HEADER, lines.join("\n"));
    Ok((format!("{}\n", text.trim_end()), found.len()))
}

/// Summarises a recording in numbers.
fn show(recorded: &Recorded) -> String {
    let mut kinds: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let (mut events, mut transactions, mut until) = (0, 0, 0);
    let mut statements = BTreeSet::new();
    for event in recorded.chunks.iter().filter_map(|c| c.events()).flatten() {
        let kind = Kind::from_u16(event.kind);
        let name = kind.map_or("?".into(), |kind| format!("{kind:?}"));
        let (count, bytes) = kinds.entry(name).or_default();
        *count += 1;
        *bytes += event.size() as u64;
        events += 1;
        transactions += u64::from(kind == Some(Kind::Clock));
        if let Ok(body::Statement { query }) = Part::decode(event.body)
            && kind == Some(Kind::Statement)
            && query != 0
        {
            statements.insert(query.cast_signed());
        }
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
    for query in statements {
        text += &format!("\nstatement {query}");
    }
    for (name, (count, bytes)) in kinds {
        text += &format!("\nkind {name} {count} {bytes}");
    }
    text
}
