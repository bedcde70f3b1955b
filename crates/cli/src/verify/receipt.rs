//! `confide verify receipt`, and comparing a receipt with a report: what a transaction wrote must
//! be in the log, and must not be missing in the table.
//!
//! Invariant: if a report calls a version of the receipt unconfirmed, it is missing: the receipt
//! proves that its transaction committed.

use super::text;
use ledger::VerifyingKey;
use ledger::entry::Kind;
use ledger::receipt::{Receipt, Written};
use ledger::report::Report;
use std::path::Path;

/// Verifies a receipt, possibly as psql has printed it.
///
/// # Errors
/// Everything that is wrong with it.
pub fn verify(note: &str, nonce: Option<&[u8]>, key: &VerifyingKey) -> Result<Receipt, String> {
    let note = format!("{}\n", note.trim_end_matches('\n'));
    Receipt::verify(&note, nonce, key).map_err(|e| e.to_string())
}

/// Describes a receipt for people.
///
/// # Errors
/// An entry cannot be decoded.
pub fn told(receipt: &Receipt) -> Result<String, String> {
    let mut lines = vec![format!("verified: written by {}", receipt.principal)];
    for written in &receipt.logs {
        let log = &written.log;
        lines.push(format!("log: {}, {} entries", log.origin, log.size));
        for entry in written.decoded().map_err(|e| e.to_string())? {
            let done = match entry.kind {
                Kind::Write => "written",
                Kind::End => "deleted",
                Kind::Restore => "restored",
                _ => "erased",
            };
            lines.push(format!("version {}: {done}", entry.sn));
        }
    }
    Ok(lines.join("\n"))
}

/// Reads a receipt from a file and returns its part about one log.
///
/// # Errors
/// It has none, or does not verify.
pub fn of_log(path: &Path, log: &str, key: &VerifyingKey) -> Result<Written, String> {
    let receipt = verify(&text(path)?, None, key).map_err(|e| format!("the receipt: {e}"))?;
    let found = receipt.logs.into_iter().find(|w| w.log.origin == log);
    found.ok_or_else(|| format!("the receipt says nothing of log {log}"))
}

/// That no version which the receipt has is one of whose transaction nobody saw the end.
///
/// # Errors
/// Names the first that is missing.
pub fn none_missing(written: &Written, report: &Report) -> Result<(), String> {
    let entries = written.decoded().map_err(|e| e.to_string())?;
    let missing = entries.iter().find(|e| {
        [Kind::Write, Kind::Restore].contains(&e.kind) && report.unconfirmed.contains(&e.sn)
    });
    missing.map_or(Ok(()), |entry| {
        Err(format!(
            "version {} is not there, and the receipt says that its transaction committed",
            entry.sn
        ))
    })
}
