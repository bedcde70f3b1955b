//! `confide audit`: displays and verifies a keeper's audit log, in its data directory or a copy
//! (docs/security.md). Needs neither a keeper nor a database.
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use ledger::audit::{self, Head, Log};

use crate::verify::By;

/// Subcommands.
#[derive(Subcommand)]
pub enum Command {
    /// Display the records.
    Show(Show),
    /// Verify the whole log, and print its head, to be kept elsewhere.
    Verify {
        /// The file: audit in the keeper's data directory.
        file: PathBuf,
        #[command(flatten)]
        by: By,
        /// A head from an earlier run: the log must extend it.
        #[arg(long, value_name = "FILE")]
        head: Option<PathBuf>,
    },
}

/// Selection of records.
#[derive(Args)]
pub struct Show {
    /// The file: audit in the keeper's data directory.
    file: PathBuf,
    /// Only this kind: started, accepted, key-used, key-withdrawn, policy, standing-grant, ticket,
    /// export, erase, recording, refused.
    #[arg(long)]
    kind: Option<String>,
    /// Only this principal.
    #[arg(long)]
    by: Option<String>,
    /// Only the last N records.
    #[arg(long, value_name = "N")]
    last: Option<usize>,
}

pub fn run(command: &Command) -> Result<String, String> {
    match command {
        Command::Show(what) => show(what),
        Command::Verify { file, by, head } => verify(file, by, head.as_deref()),
    }
}

/// Reads the complete lines of a log; a keeper may be writing another one.
fn read(file: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    Ok(text.get(..whole).unwrap_or_default().to_owned())
}

fn checked(file: &Path, by: Option<&By>) -> Result<Log, String> {
    let key = by.map(By::key).transpose()?;
    let log = audit::verify(&read(file)?, key.as_ref());
    log.map_err(|e| format!("{}: {e}", file.display()))
}

fn verify(file: &Path, by: &By, head: Option<&Path>) -> Result<String, String> {
    let log = checked(file, Some(by))?;
    if let Some(path) = head {
        let at = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let text = std::fs::read_to_string(path).map_err(|e| at(&e))?;
        let known: Head = text.parse().map_err(|e| at(&e))?;
        log.goes_on_from(&known)
            .map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Ok(log.head().to_string())
}

fn show(what: &Show) -> Result<String, String> {
    let log = checked(&what.file, None)?;
    let same = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|w| w == is);
    let numbered = (1..).zip(&log.events);
    let mut lines: Vec<String> = numbered
        .filter(|(_, e)| same(&what.kind, &e.kind) && same(&what.by, &e.by))
        .map(|(number, e)| {
            let what = e.what.replace(|c: char| c.is_control(), " ");
            format!("{number}\t{}\t{}\t{}\t{what}", time(e.time), e.kind, e.by)
        })
        .collect();
    if let Some(last) = what.last {
        lines.drain(..lines.len().saturating_sub(last));
    }
    Ok(lines.join("\n"))
}

/// Formats seconds since 1970 as UTC.
fn time(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years start in March, in eras of 400 years counted from year 0.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = era * 400 + year + next;
    let (h, m, s) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{of_month:02}T{h:02}:{m:02}:{s:02}Z")
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_704_067_199, "2023-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(time(seconds), text);
        }
    }
}
