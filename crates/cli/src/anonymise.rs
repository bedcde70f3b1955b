//! `confide anonymise`: hands a log of calls to `confide-anonymise`, a program of its own: its
//! operators are compiled otherwise than those of any other (docs/maintenance.md).

use std::path::PathBuf;
use std::process::Command;

/// What the command is told.
#[derive(clap::Args)]
pub struct Arguments {
    /// The log of calls.
    log: PathBuf,
    /// The masking rules.
    #[arg(long, value_name = "FILE")]
    rules: PathBuf,
    /// The masked log, made; it must not exist.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// The solver.
    #[arg(long, value_name = "PROGRAM", default_value = "z3")]
    solver: String,
}

/// Runs it; what it printed.
pub fn run(arguments: &Arguments) -> Result<String, String> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let program = own.with_file_name("confide-anonymise");
    let done = Command::new(&program)
        .arg("log")
        .arg(&arguments.log)
        .arg("--rules")
        .arg(&arguments.rules)
        .arg("--out")
        .arg(&arguments.out)
        .arg("--solver")
        .arg(&arguments.solver)
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|e| format!("{}: {e} (scripts/traced builds it)", program.display()))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).trim_end().into()),
        false => Err("the log was not masked".into()),
    }
}
