//! `confide query`: requests a signed result through the proxy with a new nonce, and verifies it
//! before it is shown.
//!
//! Invariant: nothing is written or shown that was not verified.

use crate::attest::Rules;
use crate::verify;
use clap::Args;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Arguments of the command.
#[derive(Args)]
pub struct Arguments {
    /// One SELECT, without a semicolon.
    statement: String,
    /// Ask for a signed result, as the command always does.
    #[arg(long)]
    signed: bool,
    /// The keeper's signing key, as `confide pubkey --signing` prints it; optional with --evidence.
    #[arg(long, value_name = "KEY", required_unless_present_any = ["evidence", "simulated"])]
    key: Option<String>,
    /// The policy that the keeper's evidence must satisfy (docs/attestation.md).
    #[arg(long, value_name = "POLICY")]
    evidence: Option<PathBuf>,
    /// Also accept simulated evidence, which proves nothing; without a policy, of any program.
    #[arg(long)]
    simulated: bool,
    /// Connection string of the proxy's port.
    #[arg(long, value_name = "CONNSTR", default_value = "")]
    dbname: String,
    /// File for the result; without it, the result is printed.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the compact form instead of JSON.
    #[arg(long, requires = "out")]
    compact: bool,
    /// Directory of psql (default: search PATH).
    #[arg(long, value_name = "DIR")]
    bindir: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<String, String> {
    let nonce = verify::nonce()?;
    let statement = arguments.statement.trim().trim_end_matches(';');
    let query = format!("{statement} WITH SIGNATURE '{nonce}'");
    let bundle = psql(arguments, &query)?;
    let rules = Rules::new(arguments.evidence.clone(), arguments.simulated);
    let key = arguments.key.as_deref();
    let report = verify::answer(&bundle, key, nonce.as_bytes(), &rules)?;
    match &arguments.out {
        Some(path) => {
            let bundle = match arguments.compact {
                true => verify::compact(&bundle)?,
                false => bundle,
            };
            let written = std::fs::write(path, &bundle);
            written.map_err(|e| format!("{}: {e}", path.display()))?;
            Ok(report)
        }
        None => {
            let text = String::from_utf8_lossy(&bundle);
            eprintln!("{report}");
            Ok(text.trim_end().to_owned())
        }
    }
}

fn psql(arguments: &Arguments, query: &str) -> Result<Vec<u8>, String> {
    let program = match &arguments.bindir {
        Some(directory) => directory.join("psql"),
        None => PathBuf::from("psql"),
    };
    let mut command = Command::new(&program);
    command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
    command.args(["-d", &arguments.dbname, "-c", query]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = output
        .output()
        .map_err(|e| format!("{}: {e}", program.display()))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err("psql failed".into()),
    }
}
