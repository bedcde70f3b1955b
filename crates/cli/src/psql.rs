//! Queries a database through psql, so that the command needs no driver.
//!
//! Invariant: no query is an argument of a process, where other users could read it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Separates fields; does not occur in SQL text.
pub const FIELD: char = '\u{1f}';
/// Separates records.
pub const RECORD: char = '\u{1e}';

/// Options of the connection.
#[derive(clap::Args, Clone, Default)]
pub struct Place {
    /// Connection string of the database.
    #[arg(long, value_name = "CONNSTR", default_value = "")]
    pub dbname: String,
    /// Directory of PostgreSQL's programs (default: search PATH).
    #[arg(long, value_name = "DIR")]
    pub bindir: Option<PathBuf>,
}

impl Place {
    /// A command for one of PostgreSQL's programs.
    pub fn program(&self, name: &str) -> Command {
        let path = self.bindir.as_ref();
        let mut command = Command::new(path.map_or(PathBuf::from(name), |dir| dir.join(name)));
        // With this name the proxy does not hide protected types (plain_catalogs).
        command.env("PGAPPNAME", "confide");
        command
    }

    /// Runs a script; returns its output with fields and records separated by the above.
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
        // psql reads everything before its output can fill the pipe.
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

/// Quotes any text as a literal.
pub fn literal(text: &str) -> String {
    let escape = if text.contains('\\') { "E" } else { "" };
    let text = text.replace('\\', "\\\\").replace('\'', "''");
    format!("{escape}'{text}'")
}
