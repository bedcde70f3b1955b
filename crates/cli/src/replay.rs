//! `confide replay`: runs a statement in a clone, and for comparison again with other settings
//! (docs/maintenance.md).
//!
//! The statement is a text from PostgreSQL's log or `pg_stat_activity`, with its envelopes.

use crate::psql::{Place, literal};
use std::path::{Path, PathBuf};

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
    /// With --compare, also show the plan, time and buffers of the recorded run, from the server's
    /// log: auto_explain writes them there.
    #[arg(long, value_name = "FILE", requires = "compare")]
    log: Option<PathBuf>,
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
    let recorded = match &arguments.log {
        Some(file) => format!("-- recorded\n{}\n", logged(file, &text)?),
        None => String::new(),
    };
    let other = match &arguments.rewritten {
        Some(file) => statement(file)?,
        None => text.clone(),
    };
    let before = measured(arguments, &text, false)?;
    let after = measured(arguments, &other, true)?;
    let said = |same: bool| if same { "same" } else { "differs" };
    Ok(format!(
        "{recorded}-- as recorded\n{}\n-- as it would be\n{}\n-- rows: {}, plan: {}",
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

/// The last run of a statement that a server's log has with its plan.
fn logged(file: &Path, text: &str) -> Result<String, String> {
    // Literals that are no UTF-8 are somebody else's.
    let log = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let log = String::from_utf8_lossy(&log);
    explained(&log, text).ok_or_else(|| {
        format!(
            "{}: no plan of this statement; auto_explain writes one, with log_analyze and \
             log_buffers",
            file.display()
        )
    })
}

/// The last plan of a statement in a log, and its time. Entries of several lines go on with tabs.
fn explained(log: &str, text: &str) -> Option<String> {
    const PLAN: &str = "plan:\n\tQuery Text: ";
    let plan_at = |(at, _): (usize, &str)| {
        let (before, entry) = log.split_at_checked(at)?;
        let mut lines = entry.strip_prefix(PLAN)?.split('\n');
        let mut own = lines.next()?.to_owned();
        for line in lines.map_while(|line| line.strip_prefix('\t')) {
            own += "\n";
            own += line;
        }
        let plan = own.strip_prefix(text)?.trim_start_matches(';');
        let (_, duration) = before.rsplit_once("duration: ")?;
        let (plan, duration) = (plan.strip_prefix('\n')?, duration.trim());
        Some(format!("{plan}\nExecution Time: {duration}"))
    };
    log.match_indices(PLAN).filter_map(plan_at).last()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_of_logs() {
        let log = "12:00 LOG:  statement: SELECT 1\n\
            12:00 LOG:  duration: 1.5 ms  plan:\n\tQuery Text: SELECT a\n\t  FROM t\n\
            \tSeq Scan on t (actual rows=1)\n\t  Buffers: shared hit=1\n\
            12:01 LOG:  duration: 2.5 ms  plan:\n\tQuery Text: SELECT a\n\t  FROM t;\n\
            \tIndex Scan on t (actual rows=1)\n\
            12:02 LOG:  duration: 3.5 ms  plan:\n\tQuery Text: SELECT a\n\t  FROM t WHERE b\n\
            \tResult\n12:03 LOG:  statement: SELECT 1\n";
        let found = |text| explained(log, text);
        let last = "Index Scan on t (actual rows=1)\nExecution Time: 2.5 ms";
        assert_eq!(found("SELECT a\n  FROM t").as_deref(), Some(last));
        let other = found("SELECT a\n  FROM t WHERE b");
        assert_eq!(other.as_deref(), Some("Result\nExecution Time: 3.5 ms"));
        assert_eq!(found("SELECT 1"), None);
    }
}
