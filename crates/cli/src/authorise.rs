//! `confide authorise`: displays what statements in a schema run in addition to their own text, and
//! authorises it through the proxy. Queries through psql, like `confide backup`.
//!
//! Invariant: the text that was displayed is authorised, not what the database says when asked
//! again.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Arguments {
    /// The schema.
    schema: String,
    /// Connection string of the database, through the proxy, as the owner.
    #[arg(long, value_name = "CONNSTR", default_value = "")]
    dbname: String,
    /// Directory of psql (default: search PATH).
    #[arg(long, value_name = "DIR")]
    bindir: Option<PathBuf>,
    /// Only definitions whose name contains this text, such as "view payroll.rich".
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Authorise without asking.
    #[arg(long)]
    yes: bool,
}

/// Separates names, definitions and records; does not occur in SQL text.
const FIELD: char = '\u{1f}';
const RECORD: char = '\u{1e}';

/// Displays, asks, authorises; returns a summary.
pub fn run(arguments: &Arguments) -> Result<String, String> {
    let query = format!(
        "SELECT name, definition FROM confide.definitions({}) WHERE strpos(name, {}) > 0 ORDER BY 1",
        literal(&arguments.schema),
        literal(&arguments.only),
    );
    let text = psql(arguments, &[query])?;
    let records = text.split(RECORD).filter_map(|r| r.split_once(FIELD));
    let definitions: Vec<(&str, &str)> = records.collect();
    if definitions.is_empty() {
        return Ok("there is nothing to authorise".into());
    }
    for (name, definition) in &definitions {
        println!(
            "-- {name}\n{};\n",
            definition.trim_end().trim_end_matches(';')
        );
    }
    if !arguments.yes && !agreed(definitions.len())? {
        return Err("nothing was authorised".into());
    }
    let calls: Vec<String> = definitions
        .iter()
        .map(|(_, definition)| format!("SELECT confide.authorise({})", literal(definition)))
        .collect();
    let answers = psql(arguments, &calls)?;
    let entries: usize = answers
        .split(RECORD)
        .filter_map(|n| n.trim().parse::<usize>().ok())
        .sum();
    Ok(format!(
        "{} definitions authorised; what they do with protected columns: {entries} entries",
        definitions.len()
    ))
}

fn agreed(count: usize) -> Result<bool, String> {
    print!("Authorise these {count} definitions? [y/N] ");
    let text = |e: std::io::Error| e.to_string();
    std::io::stdout().flush().map_err(text)?;
    let mut answer = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(text)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Quotes any text as a literal.
fn literal(text: &str) -> String {
    let escape = if text.contains('\\') { "E" } else { "" };
    let text = text.replace('\\', "\\\\").replace('\'', "''");
    format!("{escape}'{text}'")
}

/// Runs these queries in psql, which reads them as a script: other users can see the arguments of
/// processes.
fn psql(arguments: &Arguments, queries: &[String]) -> Result<String, String> {
    let program = arguments
        .bindir
        .as_ref()
        .map_or("psql".into(), |dir| dir.join("psql"));
    let mut psql = Command::new(program);
    psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-f", "-"]);
    psql.args(["-F", &FIELD.to_string(), "-R", &RECORD.to_string()]);
    if !arguments.dbname.is_empty() {
        psql.args(["--dbname", &arguments.dbname]);
    }
    psql.stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    let failed = |e: std::io::Error| format!("psql: {e}");
    let mut running = psql.spawn().map_err(failed)?;
    let mut script = queries.join(";\n\\echo '\u{1e}'\n");
    script.push_str(";\n");
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Quotes and backslashes of a definition stay within its literal.
    #[test]
    fn literals() {
        assert_eq!(literal("a'b"), "'a''b'");
        assert_eq!(literal(r"a\'b"), r"E'a\\''b'");
    }
}
