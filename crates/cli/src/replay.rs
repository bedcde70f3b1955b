//! `confide replay`: runs a statement in a clone, and for comparison again with other settings
//! (docs/maintenance.md).
//!
//! The statement is a text from PostgreSQL's log or `pg_stat_activity`, with its envelopes.

use crate::psql::{Place, literal};
use std::path::PathBuf;

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Arguments {
    /// File with the statement.
    statement: PathBuf,
    /// The clone.
    #[command(flatten)]
    place: Place,
    /// Compare with the statement under these settings: name=value; can be repeated.
    #[arg(long, value_name = "SETTING")]
    set: Vec<String>,
    /// The search path.
    #[arg(long, value_name = "PATH")]
    search_path: Option<String>,
    /// Compare with another text of the statement.
    #[arg(long, value_name = "FILE")]
    rewritten: Option<PathBuf>,
    /// Show plan, time and buffers, with and without the settings.
    #[arg(long)]
    compare: bool,
}

/// A run: its rows, its plan with times and buffers, and the shape of the plan.
struct Run {
    rows: String,
    plan: String,
    shape: String,
}

/// Runs the statement; returns the report.
pub fn run(arguments: &Arguments) -> Result<String, String> {
    let text = statement(&arguments.statement)?;
    if !arguments.compare {
        let script = format!("{}{text};\n", settings(arguments, false)?);
        return arguments.place.ask(&script);
    }
    let other = match &arguments.rewritten {
        Some(file) => statement(file)?,
        None => text.clone(),
    };
    let before = measured(arguments, &text, false)?;
    let after = measured(arguments, &other, true)?;
    let said = |same: bool| if same { "same" } else { "differs" };
    Ok(format!(
        "-- as recorded\n{}\n-- as it would be\n{}\n-- rows: {}, plan: {}",
        before.plan,
        after.plan,
        said(before.rows == after.rows),
        said(before.shape == after.shape),
    ))
}

/// Reads a statement, without the semicolon.
fn statement(file: &PathBuf) -> Result<String, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(text.trim().trim_end_matches(';').to_owned())
}

fn settings(arguments: &Arguments, changed: bool) -> Result<String, String> {
    let mut script = String::new();
    let mut set = |name: &str, value: &str| {
        let (name, value) = (literal(name), literal(value));
        script += &format!("\\o /dev/null\nSELECT set_config({name}, {value}, false);\n\\o\n");
    };
    if let Some(path) = &arguments.search_path {
        set("search_path", path);
    }
    for setting in arguments.set.iter().filter(|_| changed) {
        let (name, value) = setting
            .split_once('=')
            .ok_or_else(|| format!("{setting}: not name=value"))?;
        set(name, value);
    }
    Ok(script)
}

fn measured(arguments: &Arguments, text: &str, changed: bool) -> Result<Run, String> {
    let ask = |explain: &str| {
        let script = format!("{}{explain}{text};\n", settings(arguments, changed)?);
        let said = arguments.place.ask(&script)?;
        Ok::<String, String>(said.replace(crate::psql::RECORD, "\n"))
    };
    let shape = ask("EXPLAIN (COSTS OFF) ")?;
    let rows = ask("")?;
    let plan = ask("EXPLAIN (ANALYZE, BUFFERS) ")?;
    Ok(Run { rows, plan, shape })
}
