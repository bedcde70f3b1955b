//! Asks a database through psql, as `confide backup` does: no driver in the command.
//!
//! Invariant: nothing that is asked is an argument of a process, where everybody could read it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Between fields and records: no text of SQL has these.
pub const FIELD: char = '\u{1f}';
/// Between records.
pub const RECORD: char = '\u{1e}';

/// Where to ask.
#[derive(clap::Args, Clone, Default)]
pub struct Place {
    /// Connection string of the database.
    #[arg(long, value_name = "CONNSTR", default_value = "")]
    pub dbname: String,
    /// Where PostgreSQL's programs are (default: found as commands are).
    #[arg(long, value_name = "DIR")]
    pub bindir: Option<PathBuf>,
}

impl Place {
    /// A program of PostgreSQL's.
    pub fn program(&self, name: &str) -> Command {
        let path = self.bindir.as_ref();
        let mut command = Command::new(path.map_or(PathBuf::from(name), |dir| dir.join(name)));
        // By this the proxy shows the catalogs as they are (plain_catalogs).
        command.env("PGAPPNAME", "confide");
        command
    }

    /// What the database says to a script, fields and records between their signs.
    pub fn ask(&self, script: &str) -> Result<String, String> {
        let mut psql = self.program("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-f", "-"]);
        psql.args(["-F", &FIELD.to_string(), "-R", &RECORD.to_string()]);
        if !self.dbname.is_empty() {
            psql.args(["--dbname", &self.dbname]);
        }
        psql.stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let failed = |e: std::io::Error| format!("psql: {e}");
        let mut running = psql.spawn().map_err(failed)?;
        // psql reads all of it before it has much to say.
        if let Some(mut input) = running.stdin.take() {
            input.write_all(script.as_bytes()).map_err(failed)?;
        }
        let output = running.wait_with_output().map_err(failed)?;
        if !output.status.success() {
            return Err(format!("psql failed: {}", output.status));
        }
        String::from_utf8(output.stdout).map_err(|e| format!("psql: {e}"))
    }
}

/// A literal in simple quotes, whatever the text.
pub fn literal(text: &str) -> String {
    let escape = if text.contains('\\') { "E" } else { "" };
    let text = text.replace('\\', "\\\\").replace('\'', "''");
    format!("{escape}'{text}'")
}
