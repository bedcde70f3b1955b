//! What the keeper's parts cost by themselves, each beside its floor.
//!
//! `cargo run --release -p keeper --example bench_micro [-- [--one] [--json]]`
//! (`--one`: single operations only). Commit and parameters come first. A time is the
//! median of the better half of many short rounds, because other load on the
//! machine only ever adds; what is compared with the floor alternates with it.

mod costs;
mod process;
mod report;

use report::Report;
use std::process::{Command, ExitCode};

/// Rounds of each measurement: many short ones, so that some are undisturbed.
const ROUNDS: u32 = 101;
/// Messages in one round.
const MESSAGES: u32 = 2_000;

fn commit() -> String {
    let output = Command::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=12"])
        .output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string());
    text.unwrap_or_else(|_| "unknown".into())
}

fn main() -> ExitCode {
    let option = |name: &str| std::env::args().any(|a| a == name);
    let (json, one) = (option("--json"), option("--one"));
    let mut report = Report::new(json);
    report.parameter("commit", &commit());
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    report.parameter("processors", &processors.to_string());
    report.parameter("rounds", &ROUNDS.to_string());
    report.parameter("messages_per_round", &MESSAGES.to_string());
    report.parameter("times", "median of the better half of the rounds");
    report.parameter(
        "profile",
        if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        },
    );
    match costs::all(&mut report, one) {
        Ok(()) => {
            report.finish();
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bench_micro: {error}");
            ExitCode::FAILURE
        }
    }
}
