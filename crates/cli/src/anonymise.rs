//! `confide anonymise`: hands a log of calls to `confide-anonymise`, a program of its own: its
//! operators are compiled otherwise than those of any other (docs/maintenance.md). Arguments are
//! that program's.

use std::ffi::OsString;
use std::process::Command;

/// What the command is told.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    /// LOG --rules FILE --out FILE; --help tells more.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

/// Runs it; what it printed.
pub fn run(arguments: &Arguments) -> Result<String, String> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let program = own.with_file_name("confide-anonymise");
    let done = Command::new(&program)
        .arg("log")
        .args(&arguments.rest)
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|e| format!("{}: {e} (scripts/traced builds it)", program.display()))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).trim_end().into()),
        false => Err("the log was not masked".into()),
    }
}
