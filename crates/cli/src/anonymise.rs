//! `confide anonymise`: passes a log of calls to `confide-anonymise`. That is a separate program
//! because its operators are compiled differently (docs/maintenance.md). The arguments are that
//! program's.

use std::ffi::OsString;
use std::process::Command;

/// Arguments of the command.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    /// LOG --rules FILE --out FILE; --help tells more.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

/// Runs the program; returns its output.
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
