//! `confide fix`: applies maintenance templates (docs/maintenance.md) through psql, with a role
//! that has only the privileges for this, and keeps a log.
//!
//! The actions and their rules are in crate `fix`.
//!
//! Invariants: no action is started before all actions of the file have passed their checks, and
//! before its entry is in the log. The log shows what was done, and the undo file what can be
//! undone.

use fix::audit::{self, Entry};
use fix::{Action, Step};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// Subcommands.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Check the actions of a template and carry them out.
    Apply {
        /// The template.
        file: PathBuf,
        /// Only show what would change.
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Print the script that creates the role for templates; to be run by a superuser.
    Rights {
        /// A role whose tables and indexes are maintained.
        #[arg(long = "owner", value_name = "ROLE")]
        owners: Vec<String>,
        /// Instead, print the line for sudoers that lets this operating system user have done on the
        /// host what only root does.
        #[arg(long, value_name = "USER")]
        host: Option<String>,
    },
    /// As root: carry out one action on the host, after its checks.
    Host {
        /// The action, as a template has it.
        action: String,
        /// The cluster's directory.
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
    },
    /// List the settings that a template may change.
    Settings,
    /// Verify the chain of a log; print the hash of its end, to be kept elsewhere.
    Verify {
        /// The log.
        log: PathBuf,
    },
}

/// Options for the database and the log.
#[derive(clap::Args)]
pub struct Place {
    /// Connection string of the database.
    #[arg(long, value_name = "CONNSTR", default_value = "user=confide_fix")]
    dbname: String,
    /// Directory of psql (default: search PATH).
    #[arg(long, value_name = "DIR")]
    bindir: Option<PathBuf>,
    /// The log of actions.
    #[arg(long, value_name = "FILE", default_value = "/var/lib/confide/fix.log")]
    log: PathBuf,
}

/// The field separator, and NULL: control characters, which do not occur in relevant names.
const FIELD: &str = "\u{1f}";
const RECORD: &str = "\u{1e}";
const NULL: &str = "\u{1d}";

/// Carries out a command; returns its output.
pub fn run(command: &Command) -> Result<String, String> {
    match command {
        Command::Apply {
            file,
            dry_run,
            place,
        } => apply(file, *dry_run, place),
        Command::Rights {
            host: Some(user), ..
        } => Ok(fix::host_rights(user, &own_path()?.display().to_string())),
        Command::Rights { owners, host: None } => Ok(fix::rights(owners).trim_end().to_owned()),
        Command::Host { action, data } => on_host(action, data),
        Command::Settings => Ok(fix::SETTINGS
            .iter()
            .map(|s| s.name)
            .collect::<Vec<_>>()
            .join("\n")),
        Command::Verify { log } => {
            let text = fs::read_to_string(log).map_err(at(log))?;
            let end = audit::verify(&text).map_err(|e| format!("{}: {e}", log.display()))?;
            Ok(format!("{} entries, end {}", end.count, end.hash))
        }
    }
}

fn at(path: &Path) -> impl Fn(std::io::Error) -> String + '_ {
    move |e| format!("{}: {e}", path.display())
}

fn apply(file: &Path, dry_run: bool, place: &Place) -> Result<String, String> {
    let text = fs::read_to_string(file).map_err(at(file))?;
    let actions = fix::parse(&text).map_err(|r| format!("refused by {r}"))?;
    carry_out(&actions, file, dry_run, place, Undo::beside(file))
}

fn own_path() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|e| e.to_string())
}

/// Carries out one action that needs root, whoever has asked for it, and no other.
fn on_host(action: &str, data: &Path) -> Result<String, String> {
    let actions = fix::parse(action).map_err(|r| format!("refused by {r}"))?;
    let [deed] = actions.as_slice() else {
        return Err("that is not one action on the host".into());
    };
    if !deed.is_on_host() {
        return Err("that is not one action on the host".into());
    }
    if !deed.needs_root() {
        return Err("that needs no root".into());
    }
    let host = Place::host(data, None);
    let looked = deed.look(&host).map_err(|r| format!("refused by {r}"))?;
    deed.carry_out(&host)?;
    Ok(looked.shown)
}

/// Switches the server's mode (`confide mode`): a template with one action, in the same log.
pub fn switch(mode: &str, place: &Place) -> Result<String, String> {
    let action = Action::Set {
        parameter: "confide.mode".into(),
        value: mode.into(),
    };
    let nowhere = Undo {
        path: None,
        actions: Vec::new(),
    };
    carry_out(&[action], Path::new("confide mode"), false, place, nowhere)
}

fn carry_out(
    actions: &[Action],
    file: &Path,
    dry_run: bool,
    place: &Place,
    mut undo: Undo,
) -> Result<String, String> {
    let refused = |number: usize, refused: fix::Refused| {
        format!("action {}: refused by {refused}", number + 1)
    };
    let mut steps = Vec::with_capacity(actions.len());
    for (number, action) in actions.iter().enumerate() {
        let rows = match action.question() {
            Some(question) => place.ask(&question)?,
            None => Vec::new(),
        };
        let mut step = action.step(&rows).map_err(|r| refused(number, r))?;
        if let Some(data) = &step.data {
            let looked = action.look(&Place::host(Path::new(data), None));
            let looked = looked.map_err(|r| refused(number, r))?;
            (step.shown, step.undo) = (looked.shown, looked.undo);
        }
        steps.push(step);
    }
    let mut shown = String::new();
    for (number, step) in (1..).zip(&steps) {
        shown.push_str(&describe(number, step));
    }
    if dry_run {
        shown.push_str("nothing was changed");
        return Ok(shown);
    }
    let mut log = Log::open(&place.log)?;
    for (number, (action, step)) in (1..).zip(actions.iter().zip(&steps)) {
        log.write(file, action, "begun")?;
        if let Err(error) = place.execute(action, step) {
            log.write(file, action, &format!("failed: {error}"))?;
            return Err(format!(
                "{shown}action {number} failed: {error}\n{}",
                undo.said()
            ));
        }
        log.write(file, action, "done")?;
        undo.add(step)?;
    }
    shown.push_str(&format!("done; {}", undo.said()));
    Ok(shown)
}

fn describe(number: usize, step: &Step) -> String {
    let mut text = format!("{number}. {}\n", step.shown);
    for statement in &step.statements {
        text.push_str(&format!("     {statement}\n"));
    }
    if step.restart {
        text.push_str("   takes effect when the server is restarted\n");
    }
    if step.undo.is_none() {
        text.push_str("   cannot be undone by a template\n");
    }
    text
}

impl Place {
    fn psql(&self) -> Process {
        let program = self.bindir.as_ref();
        let mut psql = Process::new(program.map_or("psql".into(), |dir| dir.join("psql")));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
        psql.args(["-F", FIELD, "-R", RECORD, "-P", &format!("null={NULL}")]);
        psql.args(["--dbname", &self.dbname]);
        // So that no other functions and operators are found.
        psql.args(["-c", "SET search_path = pg_catalog"]);
        psql.stdin(Stdio::null());
        psql
    }

    fn output(&self, statements: &[String]) -> Result<String, String> {
        let mut psql = self.psql();
        for statement in statements {
            psql.args(["-c", statement]);
        }
        let output = psql.output().map_err(|e| format!("psql: {e}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(said.trim_end().replace('\n', " "));
        }
        String::from_utf8(output.stdout).map_err(|e| format!("psql: {e}"))
    }

    /// Runs a query; returns its rows.
    pub fn ask(&self, question: &str) -> Result<Vec<Vec<Option<String>>>, String> {
        let text = self.output(&[question.to_owned()])?;
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let records = text.split(RECORD).filter(|record| !record.is_empty());
        let field = |f: &str| (f != NULL).then(|| f.to_owned());
        Ok(records
            .map(|record| record.split(FIELD).map(field).collect())
            .collect())
    }

    fn host(data: &Path, bindir: Option<&PathBuf>) -> fix::Host {
        fix::Host {
            root: "/".into(),
            data: data.to_owned(),
            bindir: bindir.cloned(),
        }
    }

    fn execute(&self, action: &Action, step: &Step) -> Result<(), String> {
        let Some(data) = &step.data else {
            return self.output(&step.statements).map(|_| ());
        };
        if !action.needs_root() || is_root() {
            return action.carry_out(&Place::host(Path::new(data), self.bindir.as_ref()));
        }
        let mut sudo = Process::new("sudo");
        sudo.args(["-n", "--"]).arg(own_path()?);
        sudo.args(["fix", "host", &fix::print(std::slice::from_ref(action))]);
        sudo.args(["--data", data]).stdin(Stdio::null());
        let output = sudo.output().map_err(|e| format!("sudo: {e}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr)
                .trim_end()
                .to_owned()),
        }
    }
}

/// Whether this process is root's.
fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    uids.and_then(|uids| uids.split_ascii_whitespace().nth(1)) == Some("0")
}

/// The log, locked for this run.
struct Log {
    path: PathBuf,
    file: File,
    end: audit::End,
}

impl Log {
    /// Refuses a log that was altered.
    fn open(path: &Path) -> Result<Log, String> {
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o640)
            .open(path)
            .map_err(at(path))?;
        file.lock().map_err(at(path))?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(at(path))?;
        let end = audit::verify(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Log {
            path: path.to_owned(),
            file,
            end,
        })
    }

    fn write(&mut self, template: &Path, action: &Action, outcome: &str) -> Result<(), String> {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let user = std::env::var("SUDO_USER").or_else(|_| std::env::var("USER"));
        let entry = Entry {
            number: 0,
            time: since.as_secs(),
            user: user.unwrap_or_else(|_| "?".into()),
            file: template.display().to_string(),
            action: action.clone(),
            outcome: outcome.to_owned(),
            previous: String::new(),
        };
        let line = self.end.append(entry)?;
        self.file
            .write_all(format!("{line}\n").as_bytes())
            .and_then(|()| self.file.sync_data())
            .map_err(at(&self.path))
    }
}

/// The template that undoes what was done, in reverse order; not written if there is no path.
struct Undo {
    path: Option<PathBuf>,
    actions: Vec<Action>,
}

impl Undo {
    fn beside(file: &Path) -> Undo {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let mut path = file.with_file_name(format!("{stem}.undo.toml"));
        let mut number = 1;
        while path.exists() {
            number += 1;
            path = file.with_file_name(format!("{stem}.undo{number}.toml"));
        }
        Undo {
            path: Some(path),
            actions: Vec::new(),
        }
    }

    fn add(&mut self, step: &Step) -> Result<(), String> {
        if let (Some(action), Some(path)) = (&step.undo, &self.path) {
            self.actions.insert(0, action.clone());
            fs::write(path, fix::print(&self.actions)).map_err(at(path))?;
        }
        Ok(())
    }

    fn said(&self) -> String {
        match &self.path {
            Some(path) if !self.actions.is_empty() => {
                format!("to undo it: confide fix apply {}", path.display())
            }
            _ => "there is nothing to undo".to_owned(),
        }
    }
}
